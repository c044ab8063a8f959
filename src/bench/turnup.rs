//! turnup's side: `turnup up`, timed by its own events.

use crate::bootstrap::machine;
use crate::error::{Error, Result};
use crate::phase::Sink;

use super::milestone::{Times, end_of_phase};
use super::place::Place;
use super::{Sample, Start};

/// One cluster from `turnup up`; the clock starts when the hosts are up.
pub(super) fn measure(place: &Place, start: Start) -> Result<Sample> {
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
fn preload(place: &Place) -> Result<()> {
    let cx = place.context(Sink::null());
    let cluster = place.cluster(&cx)?;
    let handoff = cluster.handoff()?;
    for host in &handoff.hosts {
        let facts = machine::inspect(&cluster, host, &cx)?;
        machine::apply(&cluster, host, machine::machine(&cluster, &handoff, host, &facts)?, &cx)?;
    }
    Ok(())
}
