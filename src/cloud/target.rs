//! Where hosts come from, as `phase1.cloud_provider` and an inventory name it: parsed once, and
//! asked what differs. Only `provision` may tell targets apart by matching.

use std::fmt;

use super::{CLOUDS, Cloud, find};

/// Where hosts come from.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Made on this machine.
    Local,
    /// Listed by the user; nothing is made.
    BareMetal,
    /// Made by a Terraform module of turnup's.
    Cloud(&'static dyn Cloud),
    /// Made by a Terraform module of the user's, or by other means: nothing more is known.
    Custom,
}

impl Target {
    /// The target of this name. An inventory from elsewhere may have any: it is `Custom` then.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "local" => Self::Local,
            "baremetal" => Self::BareMetal,
            _ => find(name).map_or(Self::Custom, Self::Cloud),
        }
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let clouds = CLOUDS.iter().copied().map(Self::Cloud);
        [Self::Local, Self::BareMetal].into_iter().chain(clouds).chain([Self::Custom])
    }

    /// Its name in settings, files and inventories.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::BareMetal => "baremetal",
            Self::Cloud(cloud) => cloud.name(),
            Self::Custom => "custom",
        }
    }

    /// The cloud, when turnup knows it.
    #[must_use]
    pub const fn cloud(self) -> Option<&'static dyn Cloud> {
        if let Self::Cloud(cloud) = self { Some(cloud) } else { None }
    }

    /// Whether hosts are machines of this machine.
    #[must_use]
    pub const fn is_local(self) -> bool {
        matches!(self, Self::Local)
    }

    /// Whether Terraform makes the hosts.
    #[must_use]
    pub const fn uses_terraform(self) -> bool {
        !matches!(self, Self::BareMetal)
    }

    /// Whether a Terraform module of the user's makes the hosts.
    #[must_use]
    pub const fn is_custom(self) -> bool {
        matches!(self, Self::Custom)
    }

    /// What an inventory calls the provider of the volumes that hosts attach themselves, where the
    /// target makes any.
    #[must_use]
    pub fn volume_provider(self) -> Option<&'static str> {
        matches!(self, Self::Local | Self::Cloud(_)).then(|| self.name())
    }

    /// Whether controllers of the cluster can make something that outlives it: load balancers of
    /// Services, volumes of claims.
    #[must_use]
    pub const fn has_cloud_resources(self) -> bool {
        !matches!(self, Self::Local | Self::BareMetal)
    }

    /// Whether all hosts that join by themselves are of groups that the inventory lists. Elsewhere
    /// the user may give user data to hosts of their own.
    #[must_use]
    pub const fn owns_all_groups(self) -> bool {
        matches!(self, Self::Cloud(_))
    }

    /// Whether another machine, from the latest template, comes in the place of one that has
    /// powered itself off; on this machine where that is wanted.
    #[must_use]
    pub fn replaces_ended_machines(self) -> bool {
        self.is_local() || self.cloud().is_some_and(Cloud::replaces_ended_machines)
    }

    /// The largest user data in bytes; none where it is unknown.
    #[must_use]
    pub fn user_data_limit(self) -> Option<usize> {
        self.cloud().map(Cloud::user_data_limit)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_the_name_that_it_is_found_by() {
        for name in Target::all().map(Target::name) {
            assert_eq!(Target::of(name).name(), name);
        }
        assert!(Target::of("openstack").is_custom());
        let renewed = Target::all().filter(|target| target.replaces_ended_machines()).map(Target::name);
        assert_eq!(renewed.collect::<Vec<_>>(), ["local", "gce", "aws"]);
    }
}
