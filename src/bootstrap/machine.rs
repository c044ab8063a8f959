//! What a host gets before anything of its cluster is known: binaries, containerd and images. And the way to a host for all the rest.
//!
//! No certificate and no secret is in it, so it can be done before, or beside, all that the cluster's PKI and API are waited for.

use crate::artifacts::Cache;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::node::complete::HOST_BLOBS;
use crate::node::up::Delivery;
use crate::node::{Complete, Facts};
use crate::phase::Cx;
use crate::provision::{Handoff, Host};

use super::complete::Completion;
use super::reach::Reach;

/// Copies turnup to the host and asks there what the host is.
pub fn inspect(cluster: &Cluster, host: &Host, cx: &Cx) -> Result<Facts> {
    let reach = Reach::new(cluster, host, cx)?;
    reach.copy_turnup(cluster)?;
    reach.facts()
}

/// The part of the host's complete configuration that needs nothing of the cluster.
pub fn machine(cluster: &Cluster, handoff: &Handoff, host: &Host, facts: &Facts) -> Result<Complete> {
    Completion { cluster, handoff, artifacts: &cluster.obtained()? }.machine(host, facts)
}

/// Makes the host what this says, with no secret and no token.
pub fn apply(cluster: &Cluster, host: &Host, complete: Complete, cx: &Cx) -> Result<()> {
    let delivery = Delivery { complete, secrets: std::collections::BTreeMap::new(), bootstrap_kubeconfig: None };
    let reach = Reach::new(cluster, host, cx)?;
    reach.copy_turnup(cluster)?;
    deliver(&reach, &delivery, cx)
}

/// Sends the artifacts that the host lacks, and then the delivery. The host has this turnup already.
pub(super) fn deliver(reach: &Reach<'_>, delivery: &Delivery, cx: &Cx) -> Result<()> {
    for sha256 in reach.missing(&delivery.complete)? {
        cx.progress(format!("sending {}", &sha256[..12]));
        let blob = Cache::open()?.blobs_dir().join(&sha256);
        reach.copy(&blob, &format!("{HOST_BLOBS}/{sha256}"), 0o644)?;
    }
    reach.node_up(delivery, cx)
}
