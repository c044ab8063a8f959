//! The user's options for one run of the phase, beside the configuration. Nothing of it is
//! remembered.

use std::collections::BTreeSet;

use crate::cluster::Cluster;
use crate::error::{Error, Result};

use super::host_keys;

/// The orders; by default there are none.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The volumes of etcd whose data may go, each by its address in Terraform.
    pub allow_volume_loss: BTreeSet<String>,
    /// The machines whose host keys are learnt again, each by the name of its host, or by the
    /// bastion's address.
    pub reset_host_keys: BTreeSet<String>,
    /// Terraform is asked although nothing in the configuration has changed, and recreates what was
    /// removed outside of turnup.
    pub refresh: bool,
}

impl RunOptions {
    /// Refuses what the target cannot do.
    pub(super) fn require_fit(&self, cluster: &Cluster) -> Result<()> {
        let option = if self.refresh { "--refresh" } else { "--allow-volume-loss" };
        if !cluster.settings.target.uses_terraform() && (self.refresh || !self.allow_volume_loss.is_empty()) {
            return Err(Error::usage(format!("{option} is for hosts that Terraform makes, and these are not"))
                .hint(format!("the same command without {option}")));
        }
        if self.reset_host_keys.is_empty() { Ok(()) } else { host_keys::require_learnt(cluster, &self.reset_host_keys) }
    }
}
