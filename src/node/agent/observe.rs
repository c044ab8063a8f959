//! What the agent sees of its host. Looks, and changes nothing.

use std::path::Path;

use crate::error::Result;
use crate::inventory::Role;

use super::super::digests::Digests;
use super::super::layout::BOOTSTRAP_KUBECONFIG;
use super::super::node_config::{AGENT_UNIT, NodeConfig};
use super::super::{boot_config, diff, facts, mounts, up};
use super::decide::Observation;
use super::status::one_line;

/// One look, by the holder of this host's lock, and the node config that it was compared with.
pub(super) fn observe(digests: &Digests) -> Result<(Observation, Option<NodeConfig>)> {
    let Some(node_config) = NodeConfig::read_applied()? else { return Ok((Observation::Unconfigured, None)) };
    Ok((compare(&node_config, digests)?, Some(node_config)))
}

fn compare(node_config: &NodeConfig, digests: &Digests) -> Result<Observation> {
    if up::is_unfinished() {
        return Ok(Observation::Unfinished);
    }
    // Who joins it finishes that: an operator's run, or at every boot the unit of its user data.
    let joins = node_config.role == Role::Worker && Path::new(boot_config::FILE).exists();
    if Path::new(BOOTSTRAP_KUBECONFIG).exists()
        || joins && !facts::is_valid_certificate(Path::new(facts::CLIENT_CERTIFICATE))
    {
        return Ok(Observation::Unjoined);
    }
    // The unit of the disks waits for one that comes late; a wait here would keep the lock.
    if let Some(missing) = mounts::find_differences(&node_config.mounts)?.first() {
        return Ok(Observation::DiskMissing(missing.name.clone()));
    }
    let losses = diff::find_losses(node_config, digests)?;
    // Who looks runs, perhaps with what was before: an operator's run restarts it.
    let others = losses.iter().filter(|change| !(change.kind == "service" && change.name == AGENT_UNIT));
    Ok(Observation::Losses(others.map(|change| one_line(&change.describe_fault())).collect()))
}
