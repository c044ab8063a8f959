//! What a machine is looked at for: turning up clusters of a target, or working on turnup.

use std::fmt;

use crate::cloud::Target;
use crate::error::{Error, Result};

/// The name of [`Goal::Development`].
const DEVELOPMENT: &str = "development";

/// What is to be done on a machine.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Clusters of this target.
    Clusters(Target),
    /// The project's own tests, which turn up local clusters.
    Development,
}

impl Goal {
    /// Clusters on this machine, as where nothing is configured.
    pub const LOCAL: Self = Self::Clusters(Target::Local);

    /// The goal of this name: a target or `development`.
    pub fn of(name: &str) -> Result<Self> {
        if name == DEVELOPMENT {
            return Ok(Self::Development);
        }
        let target = Target::of(name);
        if target.name() == name {
            return Ok(Self::Clusters(target));
        }
        let known = Target::all().map(Target::name).collect::<Vec<_>>().join(", ");
        Err(Error::config(format!("there is no target {name}")).hint(format!("one of: {known}, {DEVELOPMENT}")))
    }

    /// Whether hosts are made on this machine.
    pub(super) const fn makes_local_hosts(self) -> bool {
        match self {
            Self::Clusters(target) => target.is_local(),
            Self::Development => true,
        }
    }

    pub(super) const fn uses_terraform(self) -> bool {
        match self {
            Self::Clusters(target) => target.uses_terraform(),
            Self::Development => true,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clusters(target) => target.fmt(f),
            Self::Development => f.write_str(DEVELOPMENT),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn a_goal_is_a_target_or_development() {
        let said = Goal::of("nowhere").unwrap_err().render();
        for name in Target::all().map(Target::name).chain([DEVELOPMENT]) {
            assert_eq!(Goal::of(name).unwrap().to_string(), name);
            assert!(said.contains(name), "{said}");
        }
    }
}
