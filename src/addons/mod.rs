//! The addons phase.
use std::sync::Arc;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::phase::Phase;
/// x
pub fn phase(cluster: &Arc<Cluster>) -> Result<Phase> { Ok(Phase::new("addons", crate::phase::Manifest::default(), cluster.phase_hosts()?)) }
