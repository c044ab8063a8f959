//! What is looked at, and what is found.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::goal::Goal;
use crate::artifacts::{Distribution, Sources};

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingLevel {
    /// Good.
    Ok,
    /// Works, but worth knowing.
    Warning,
    /// Must be changed first.
    Missing,
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What: a tool's name, or a fact about this host.
    pub name: String,
    /// How it is.
    pub level: FindingLevel,
    /// What was found: a version, a number.
    pub found: String,
    /// What needs it.
    pub needed_by: String,
    /// The command or the advice that sets it right.
    pub fix: Option<String>,
}

impl Finding {
    pub(super) fn new(name: &str, level: FindingLevel, found: impl Into<String>, needed_by: &str) -> Self {
        Self { name: name.into(), level, found: found.into(), needed_by: needed_by.into(), fix: None }
    }

    /// Adds the advice, where there is something to set right.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        if self.level != FindingLevel::Ok {
            self.fix = Some(fix.into());
        }
        self
    }
}

/// For what this machine is looked at.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// What is to be done on it.
    pub goal: Goal,
    /// The working directory, which may have a lock file of its own.
    pub dir: &'a Path,
    /// Where artifacts come from.
    pub sources: Sources,
    /// Where they are kept; none for the user's cache directory.
    pub cache_dir: Option<PathBuf>,
    /// The version of Kubernetes; the lock file's default when not given.
    pub kubernetes: Option<String>,
    /// The releases that local hosts are made of.
    pub releases: Vec<String>,
    /// Packages that their root has besides what turnup needs.
    pub root_packages: Vec<String>,
    /// Whether the cluster enforces `NetworkPolicies`.
    pub network_policies: bool,
}

impl Subject<'_> {
    /// Whether local hosts are to be made of a release of it.
    pub(super) fn makes_hosts_of(&self, distribution: Distribution) -> bool {
        self.goal.makes_local_hosts() && self.releases.iter().any(|release| Distribution::of(release) == distribution)
    }

    /// With what holds when nothing is configured.
    #[must_use]
    pub fn of(goal: Goal) -> Self {
        let dir = Path::new(".");
        Self {
            goal,
            dir,
            sources: Sources::default(),
            cache_dir: None,
            kubernetes: None,
            releases: vec!["bookworm".to_owned()],
            root_packages: Vec::new(),
            network_policies: false,
        }
    }
}
