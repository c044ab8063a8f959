//! What a host gets before anything of its cluster is known: binaries, containerd and images. And
//! the way to a host for all the rest.
//!
//! No certificate and no secret is in it, so it can be done before, or beside, all that the
//! cluster's PKI and API are waited for.

use crate::cluster::Cluster;
use crate::error::Result;
use crate::inventory::{Host, Inventory};
use crate::node::node_config::HOST_BLOBS;
use crate::node::up::Delivery;
use crate::node::{Facts, NodeConfig};
use crate::phase::Cx;

use super::host_connection::HostConnection;
use super::node_config::NodeConfigs;

/// Copies turnup to the host and asks there what the host is.
pub fn gather_facts(cluster: &Cluster, host: &Host, cx: &Cx) -> Result<Facts> {
    let connection = HostConnection::new(cluster, host, cx)?;
    connection.copy_turnup(cluster)?;
    connection.facts()
}

/// The part of the host's node config that needs nothing of the cluster.
pub fn base_config(cluster: &Cluster, inventory: &Inventory, host: &Host, facts: &Facts) -> Result<NodeConfig> {
    NodeConfigs { cluster, inventory, artifacts: &cluster.resolved()? }.machine(host, facts)
}

/// Makes the host what this says, with no secret and no token.
pub fn apply(cluster: &Cluster, host: &Host, node_config: NodeConfig, cx: &Cx) -> Result<()> {
    let delivery = Delivery::of(node_config);
    let connection = HostConnection::new(cluster, host, cx)?;
    connection.copy_turnup(cluster)?;
    deliver(cluster, &connection, &delivery, cx)
}

/// Sends the artifacts that the host lacks, and then the delivery. The host has this turnup
/// already.
pub(super) fn deliver(cluster: &Cluster, connection: &HostConnection<'_>, delivery: &Delivery, cx: &Cx) -> Result<()> {
    for sha256 in connection.missing(&delivery.node_config)? {
        cx.progress(format!("sending {}", &sha256[..12]));
        let blob = cluster.cache()?.blobs_dir().join(&sha256);
        connection.copy(&blob, &format!("{HOST_BLOBS}/{sha256}"), 0o644)?;
    }
    connection.node_up(delivery, cx)
}
