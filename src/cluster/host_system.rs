//! What hosts get besides Kubernetes, as typed values. Only read here; `bootstrap::host_system`
//! puts it into the node config.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::config::{Settings, host_system};
use crate::error::{Error, Result};

/// The settings below `phase2.host` that are no files, hooks or firewall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSystemSettings {
    /// Kernel settings by name, besides turnup's own.
    pub sysctls: BTreeMap<String, String>,
    /// Kernel modules by the names that modprobe takes.
    pub kernel_modules: Vec<String>,
    /// `NAME` or `NAME=VERSION`, as the host's package manager writes them.
    pub packages: Vec<String>,
    /// Addresses or names of time servers.
    pub ntp_servers: Vec<String>,
    /// Addresses by the names of `/etc/hosts`.
    pub extra_hosts: BTreeMap<String, IpAddr>,
    /// Files of this machine, each with the manifest of a pod.
    pub static_pods: Vec<String>,
    /// How many files containerd and what it starts may have open.
    pub open_files: u32,
    /// kubelet's root directory; absolute.
    pub data_dir: String,
}

impl HostSystemSettings {
    /// kubelet's root directory, where it is another one than the usual, in which its configuration
    /// and certificates stay.
    #[must_use]
    pub fn own_kubelet_root(&self) -> Option<&str> {
        Some(self.data_dir.as_str()).filter(|dir| *dir != host_system::USUAL_DATA_DIR)
    }

    pub(super) fn read(settings: &Settings) -> Result<Self> {
        const HOSTS: &str = "phase2.host.extra_hosts";
        let address = |(name, address): (String, String)| match address.parse() {
            Ok(address) => Ok((name, address)),
            Err(_) => Err(Error::config(format!("{HOSTS}: {address} is no IP address")).hint("turnup config check")),
        };
        Ok(Self {
            sysctls: settings.get_map("phase2.host.sysctls")?,
            kernel_modules: settings.get_list("phase2.host.kernel_modules")?,
            packages: settings.get_list("phase2.host.packages")?,
            ntp_servers: settings.get_list("phase2.host.ntp_servers")?,
            extra_hosts: settings.get_map(HOSTS)?.into_iter().map(address).collect::<Result<_>>()?,
            static_pods: settings.get_list("phase2.host.static_pods")?,
            open_files: settings.get_number("phase2.host.open_files")?,
            data_dir: settings.get(host_system::DATA_DIR)?,
        })
    }
}
