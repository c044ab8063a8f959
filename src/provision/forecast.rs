//! The provision phase as it would go, without going: its files and its hand-off in an imagined directory.
//!
//! What only the real run makes, keys and instances, is a text that says so.

use crate::artifacts::Digest;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::state::Store;

use super::handoff::{self, Endpoint, Handoff, SshAccess};
use super::render::{self, DIR, PlannedHost, VARIABLES, host_key, planned_hosts, public_key, spec_file};
use super::{Host, local, steps};

/// Fills the imagined directory of the cluster; what the real one already has of keys is taken over.
pub fn forecast(cluster: &Cluster, real: &Store) -> Result<()> {
    if cluster.settings.target == "baremetal" {
        let (_, handoff) = steps::read_inventory(cluster)?;
        return cluster.write_handoff(&handoff);
    }
    let store = &cluster.store;
    let planned_hosts = planned_hosts(cluster)?;
    for host in &planned_hosts {
        let file = format!("{}.pub", host_key(&host.name));
        let unknown = || format!("(made by provision: {file})").into_bytes();
        store.write_file(&file, &real.read(&file)?.unwrap_or_else(unknown), 0o644)?;
    }
    for (path, text) in render::files(cluster)? {
        store.write_file(path, text.as_bytes(), 0o600)?;
    }
    // What Terraform's state says afterwards follows from what Terraform was given.
    let variables = store.read(VARIABLES)?.unwrap_or_default();
    store.write_file(format!("{DIR}/terraform.tfstate"), &variables, 0o600)?;
    let hosts = planned_hosts.iter().map(|host| planned(cluster, host)).collect::<Result<Vec<Host>>>()?;
    let api = Endpoint { host: hosts[0].address.to_string(), port: cluster.settings.api_port };
    let (schema, target) = (handoff::SCHEMA.into(), cluster.settings.target.clone());
    cluster.write_handoff(&Handoff { schema, cluster: cluster.settings.name.clone(), target, api, hosts })
}

fn planned(cluster: &Cluster, host: &PlannedHost) -> Result<Host> {
    let host_key = public_key(cluster, &host_key(&host.name))?;
    // A host is made anew when its description changes.
    let spec = cluster.store.read(spec_file(&host.name))?.unwrap_or_default();
    Ok(Host {
        name: host.name.clone(),
        role: host.role,
        address: host.address.into(),
        instance: Digest::of(&spec).to_string(),
        ssh: SshAccess { user: "root".into(), port: 22, host_key },
        blobs: local::BLOBS.into(),
    })
}
