//! Times turnup next to kubeadm on this machine: the same kind of host, the same binaries and
//! images, the same addons and probes.
//!
//! Each run makes a cluster of its own and removes it, however the run ends. turnup is measured as
//! a user runs it (`turnup up`, from its own events); kubeadm gets its hosts from the same
//! provision phase and its addons and probes from the same code, so the only difference is what
//! makes hosts into nodes. Where the two cannot be treated alike, kubeadm has the advantage: see
//! `kubeadm`. This module judges nothing but the ratio, and changes nothing outside its own
//! directory.

mod kubeadm;
mod milestone;
mod plan;
mod report;
mod statistics;
mod turnup;
mod workspace;

use crate::config::{Settings, TreeSource};
use crate::error::{Class, Result};
use crate::exec::signals;

pub(crate) use plan::{BenchPlan, Round, Sample, Side, Start};
pub(crate) use report::BenchReport;

use workspace::Workspace;

/// Runs everything; `tell` hears in a line what is being done.
pub(crate) fn run(
    plan: &BenchPlan,
    settings: &Settings,
    source: &TreeSource,
    tell: &dyn Fn(&str),
) -> Result<BenchReport> {
    signals::install()?;
    fs_err::create_dir_all(&plan.dir)?;
    let measured = run_tables(plan, settings, source, tell);
    // Not empty when a log was kept, or when it was there before.
    let _not_empty = fs_err::remove_dir(&plan.dir);
    Ok(BenchReport::new(plan, settings.get("phase2.kubernetes_version")?, &measured?))
}

fn run_tables(
    plan: &BenchPlan,
    settings: &Settings,
    source: &TreeSource,
    tell: &dyn Fn(&str),
) -> Result<Vec<(Start, Vec<Round>)>> {
    let mut tables = Vec::new();
    for start in &plan.starts {
        let rounds = (0..plan.runs).map(|index| run_round(plan, settings, source, *start, index, tell));
        tables.push((*start, rounds.collect::<Result<_>>()?));
    }
    Ok(tables)
}

/// Who goes first changes from round to round.
fn run_round(
    plan: &BenchPlan,
    settings: &Settings,
    source: &TreeSource,
    start: Start,
    index: usize,
    tell: &dyn Fn(&str),
) -> Result<Round> {
    let mut order = if plan.peer { vec![Side::Turnup, Side::Kubeadm] } else { vec![Side::Turnup] };
    if index % 2 == 1 {
        order.reverse();
    }
    let (mut turnup, mut kubeadm) = (None, None);
    for side in order {
        tell(&format!("{} {} of {}: {}", start.name(), index + 1, plan.runs, side.name()));
        let sample = run_side(plan, settings, source, start, side)?;
        tell(&sample.describe());
        match side {
            Side::Turnup => turnup = Some(sample),
            Side::Kubeadm => kubeadm = Some(sample),
        }
    }
    let missing = || crate::Error::bug("a round without turnup");
    Ok(Round { turnup: turnup.ok_or_else(missing)?, kubeadm })
}

fn run_side(plan: &BenchPlan, settings: &Settings, source: &TreeSource, start: Start, side: Side) -> Result<Sample> {
    let subnet = if side == Side::Turnup { &plan.subnet } else { &plan.peer_subnet };
    let name = format!("bench-{}", side.name());
    let place = Workspace::make(&plan.dir, settings, source, &name, subnet, plan.workers)?;
    let measured = match side {
        Side::Turnup => turnup::measure(&place, start),
        Side::Kubeadm => kubeadm::measure(&place, start),
    };
    match measured {
        Ok(sample) => place.remove().map(|()| sample),
        Err(error) if error.class() == Class::Interrupted => place.remove().and(Err(error)),
        Err(error) => Err(place.abandon(error)),
    }
}
