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
mod report;
mod statistics;
mod turnup;
mod workspace;

use std::path::PathBuf;

use crate::config::{Settings, TreeSource};
use crate::error::{Class, Result};
use crate::exec::signals;

pub(crate) use milestone::{Milestone, Times};
pub(crate) use report::BenchReport;

use workspace::Workspace;

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct BenchPlan {
    /// How many clusters of each kind.
    pub runs: usize,
    /// How many workers beside the one control-plane host.
    pub workers: u32,
    /// From where the clock runs.
    pub starts: Vec<Start>,
    /// Whether kubeadm is measured as well.
    pub peer: bool,
    /// Addresses of turnup's hosts.
    pub subnet: String,
    /// Addresses of kubeadm's hosts.
    pub peer_subnet: String,
    /// The directory in which the clusters are made, on a disk like that of real ones.
    pub dir: PathBuf,
}

/// From where the clock runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Binaries are in place, containerd runs, images are imported.
    Preloaded,
    /// The host has nothing but the files of the artifact cache.
    Scratch,
}

impl Start {
    /// The name in options and in JSON.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Preloaded => "preloaded",
            Self::Scratch => "scratch",
        }
    }

    /// The same as a sentence.
    #[must_use]
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Preloaded => "everything preloaded: binaries in place, containerd running, images imported",
            Self::Scratch => "from scratch: binaries are copied and images imported while the clock runs",
        }
    }
}

/// The two that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `turnup up`.
    Turnup,
    /// `kubeadm init` and `kubeadm join`.
    Kubeadm,
}

impl Side {
    /// Its name.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Turnup => "turnup",
            Self::Kubeadm => "kubeadm",
        }
    }
}

/// What one run gave.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// How long the hosts took; the clock of the milestones starts after that.
    pub hosts: f64,
    /// Seconds to each milestone.
    pub times: Times,
}

/// Both samples of one round; a ratio is taken within a round, because the machine's speed drifts
/// between them.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// `turnup up`.
    pub turnup: Sample,
    /// The peer, when it is measured.
    pub kubeadm: Option<Sample>,
}

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

impl Sample {
    fn describe(&self) -> String {
        let last = Milestone::ALL.last().and_then(|milestone| self.times.get(*milestone));
        let end = last.map_or_else(|| "not all milestones".into(), |seconds| format!("{seconds:.1} s"));
        format!("  hosts {:.1} s, then {end} to the last milestone", self.hosts)
    }
}
