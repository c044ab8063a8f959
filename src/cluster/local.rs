//! The settings of local hosts that stand behind "Advanced", as typed values: what they are made
//! of, and how much of this machine they may use. Only read here.

use std::collections::BTreeSet;

use super::user_data::UserDataSettings;
use super::{ClusterSettings, GroupRecord};
use crate::artifacts::Distribution;
use crate::config::{Settings, parse_quantity};
use crate::error::Result;

/// The settings below `phase1.local` of single hosts and their root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalHostSettings {
    /// Packages that the root has besides what turnup needs.
    pub packages: Vec<String>,
    /// Where the packages of a root with Debian come from; empty: where this machine's own do.
    pub debian_mirror: String,
    /// The same of a root with Ubuntu.
    pub ubuntu_mirror: String,
    /// Whether this machine does for hosts what a cloud does: they boot with user data, etcd has a
    /// volume, and a host that dies is replaced.
    pub replaces_hosts: bool,
    /// The most memory of a host, in bytes.
    pub memory: Option<u64>,
    /// The most CPU time of a host, in thousandths of a CPU.
    pub cpu_millis: Option<u64>,
}

impl LocalHostSettings {
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let thousandths = |name: &str| Ok::<_, crate::Error>(parse_quantity(&settings.get(name)?));
        let memory = thousandths("phase1.local.memory_limit")?.map(|thousandths| thousandths / 1000);
        let cpu = thousandths("phase1.local.cpu_limit")?;
        Ok(Self {
            packages: settings.get_list("phase1.local.packages")?,
            debian_mirror: settings.get("phase1.local.debian_mirror")?,
            ubuntu_mirror: settings.get("phase1.local.ubuntu_mirror")?,
            replaces_hosts: settings.get_bool(UserDataSettings::OF_LOCAL_HOSTS)?,
            memory: memory.and_then(|bytes| u64::try_from(bytes).ok()),
            cpu_millis: cpu.and_then(|millis| u64::try_from(millis).ok()),
        })
    }

    /// Where the packages of a root with this release come from.
    #[must_use]
    pub fn mirror_of(&self, release: &str) -> &str {
        match Distribution::of(release) {
            Distribution::Debian => &self.debian_mirror,
            Distribution::Ubuntu => &self.ubuntu_mirror,
        }
    }
}

impl ClusterSettings {
    /// The release that local hosts of this group are made of: its own, or that of all others.
    #[must_use]
    pub fn release_of(&self, group: &str) -> &str {
        let own = self.node_groups.iter().find(|record| record.name == group);
        own.and_then(|record| record.image.as_deref()).unwrap_or(&self.root_suite)
    }

    /// The releases of all local hosts.
    #[must_use]
    pub fn releases(&self) -> Vec<String> {
        releases(&self.root_suite, &self.node_groups)
    }
}

/// The releases that these settings make local hosts of.
pub fn local_releases(settings: &Settings) -> Result<Vec<String>> {
    Ok(releases(&settings.get("phase1.local.root_suite")?, &settings.get_records("phase1.node_groups")?))
}

/// The common one first.
fn releases(common: &str, groups: &[GroupRecord]) -> Vec<String> {
    let others: BTreeSet<&str> = groups.iter().filter_map(|group| group.image.as_deref()).collect();
    std::iter::once(common).chain(others.into_iter().filter(|own| *own != common)).map(str::to_owned).collect()
}
