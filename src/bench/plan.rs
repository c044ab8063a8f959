//! What is measured, and what each measurement gave.

use std::path::PathBuf;

use super::milestone::{Milestone, Times};

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

impl Sample {
    pub(super) fn describe(&self) -> String {
        let last = Milestone::ALL.last().and_then(|milestone| self.times.get(*milestone));
        let end = last.map_or_else(|| "not all milestones".into(), |seconds| format!("{seconds:.1} s"));
        format!("  hosts {:.1} s, then {end} to the last milestone", self.hosts)
    }
}
