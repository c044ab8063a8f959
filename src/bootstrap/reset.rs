//! The way back: hosts that are nodes become what they were. Their own restore logs decide what
//! that is; nothing here knows it.

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::{Host, Role};
use crate::parallel;
use crate::phase::Cx;

use super::api::kubectl;
use super::etcd_step;
use super::host_connection::HostConnection;
use super::node_config::file_of;

/// What became of one host.
#[derive(Debug)]
pub enum ResetOutcome {
    /// So many things were removed or put back.
    Clean(usize),
    /// ssh does not get there.
    Unreachable(Error),
    /// It answered, and something else failed.
    Failed(Error),
}

/// Undoes on these hosts what turnup made, at most `parallel` at once. One that fails stops no
/// other; the outcomes are in the order of the hosts. `cx` gives each host a context of its own.
pub fn reset(
    cluster: &Cluster,
    hosts: &[&Host],
    parallel: usize,
    cx: &(dyn Fn(&Host) -> Result<Cx> + Sync),
) -> Vec<ResetOutcome> {
    parallel::map(hosts, parallel, |host| {
        cx(host).and_then(|cx| reset_host(cluster, host, &cx)).unwrap_or_else(ResetOutcome::Failed)
    })
}

fn reset_host(cluster: &Cluster, host: &Host, cx: &Cx) -> Result<ResetOutcome> {
    cx.check()?;
    let connection = HostConnection::new(cluster, host, cx)?;
    if let Err(error) = connection.greet() {
        cx.check()?;
        return Ok(ResetOutcome::Unreachable(error));
    }
    connection.copy_turnup(cluster)?;
    let count = connection.node_down(cx)?;
    // It is no node any more, and keeps nothing of what it was.
    cluster.store.remove(file_of(&host.name))?;
    Ok(ResetOutcome::Clean(count))
}

/// Tells the cluster that these hosts leave it: their Node objects go, so that their pods go
/// elsewhere, and etcd forgets its members on them. An etcd that cannot be told is an error: what
/// it still counts on must not lose its data.
pub fn leave(cluster: &Cluster, hosts: &[&Host], cx: &Cx) -> Result<()> {
    let inventory = cluster.inventory()?;
    let stays = inventory.control_planes().any(|host| hosts.iter().all(|gone| gone.name != host.name));
    // Without its control plane there is no API to ask.
    for host in hosts.iter().filter(|host| stays || host.role == Role::Worker) {
        delete_node(cluster, host, cx)?;
    }
    etcd_step::take_out(cluster, hosts, cx)
}

/// Says when the API does not answer; the reset goes on.
fn delete_node(cluster: &Cluster, host: &Host, cx: &Cx) -> Result<()> {
    let client = kubectl(cluster).map(|client| client.within(cx));
    let deleted =
        client.and_then(|client| client.run(&["delete", "node", &host.name, "--ignore-not-found", "--wait=false"]));
    if let Err(error) = deleted {
        cx.check()?;
        cx.progress(format!("the Node object of {} stays, if there is one: {}", host.name, error.message()));
    }
    Ok(())
}
