//! The phases by the words of the command line.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::error::Result;
use crate::phase::Phase;
use crate::provision::RunOptions;
use crate::{addons, bootstrap};

/// The phases in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum PhaseName {
    /// Hosts.
    Provision,
    /// Nodes.
    Bootstrap,
    /// What runs in the cluster from the start.
    Addons,
}

impl PhaseName {
    pub(super) const ALL: [Self; 3] = [Self::Provision, Self::Bootstrap, Self::Addons];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Bootstrap => "bootstrap",
            Self::Addons => "addons",
        }
    }

    /// The phase with its steps. The later phases know their hosts from the inventory of the first.
    pub(super) fn load(self, cluster: &Arc<Cluster>, options: &RunOptions) -> Result<Phase> {
        match self {
            Self::Provision => bootstrap::provision_phase_with(cluster, options),
            Self::Bootstrap => bootstrap::phase(cluster),
            Self::Addons => addons::phase(cluster),
        }
    }
}
