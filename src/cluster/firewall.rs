//! The settings of the hosts' firewall as typed values. Only read here; `bootstrap::firewall` acts
//! on them.

use crate::config::{Addresses, Settings};
use crate::error::Result;

/// `phase2.host.firewall` and what goes with it. Networks are in CIDR form, of either family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirewallSettings {
    /// Whether hosts have it.
    pub enabled: bool,
    /// Who reaches kubelets besides the control plane.
    pub kubelet_networks: Vec<String>,
    /// Who reaches sshd; empty: all but pods.
    pub ssh_networks: Vec<String>,
    /// Whether pods may ask the cloud for the credentials of the machine that they run on.
    pub pods_reach_metadata: bool,
    /// The networks in which hosts have their addresses, where the configuration says so.
    pub host_networks: Vec<String>,
}

impl FirewallSettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let mut host_networks = Vec::new();
        for name in settings.schema().networks(Addresses::Hosts) {
            // A question that is not asked has no value.
            let network = settings.get(name)?;
            host_networks.extend((!network.is_empty()).then_some(network));
        }
        Ok(Self {
            enabled: settings.get_bool("phase2.host.firewall")?,
            kubelet_networks: settings.get_list("phase2.host.firewall_kubelet_networks")?,
            ssh_networks: settings.get_list("phase2.host.firewall_ssh_networks")?,
            pods_reach_metadata: settings.get_bool("phase2.host.firewall_pods_reach_metadata")?,
            host_networks,
        })
    }
}
