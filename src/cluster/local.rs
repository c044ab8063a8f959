//! The settings of local hosts that stand behind "Advanced", as typed values: what they are made
//! of, and how much of this machine they may use. Only read here.

use crate::config::{Settings, parse_quantity};
use crate::error::Result;

/// The settings below `phase1.local` of single hosts and their root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalHostSettings {
    /// Debian packages that the root has besides what turnup needs.
    pub packages: Vec<String>,
    /// Where the root's packages come from; empty: where this machine's own do.
    pub debian_mirror: String,
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
            memory: memory.and_then(|bytes| u64::try_from(bytes).ok()),
            cpu_millis: cpu.and_then(|millis| u64::try_from(millis).ok()),
        })
    }
}
