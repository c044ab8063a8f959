//! turnup's side: `turnup up`, timed by its own events.

use crate::bootstrap::base_config;
use crate::error::{Error, Result};
use crate::phase::Sink;

use super::milestone::{Times, end_of_phase};
use super::workspace::Workspace;
use super::{Sample, Start};

/// One cluster from `turnup up`; the clock starts when the hosts are up.
pub(super) fn measure(place: &Workspace, start: Start) -> Result<Sample> {
    let hosts = place.provision()?;
    if start == Start::Preloaded {
        preload(place)?;
    }
    let events = place.events(&["up"])?;
    // The hosts are there, so this phase only looks at them; what comes after it is the work.
    let zero = end_of_phase(&events, "provision");
    let zero = zero.ok_or_else(|| Error::bug("turnup up told nothing of its provision phase"))?;
    Ok(Sample { hosts, times: Times::read(&events, zero) })
}

/// The part of `turnup node up` that needs nothing of the cluster, on every host.
fn preload(place: &Workspace) -> Result<()> {
    let cx = place.context(Sink::null());
    let cluster = place.cluster(&cx)?;
    let inventory = cluster.inventory()?;
    for host in &inventory.hosts {
        let facts = base_config::gather_facts(&cluster, host, &cx)?;
        base_config::apply(&cluster, host, base_config::base_config(&cluster, &inventory, host, &facts)?, &cx)?;
    }
    Ok(())
}
