//! The nftables rules of a host: which of its ports are closed to whom. A pure function of the
//! settings, the inventory and the host's role.
//!
//! The table drops and never opens: what a host's own firewall closes stays closed. It asks no host
//! and writes nothing; `docs/firewall.md` has the reasons.

mod ranges;

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::cluster::{Cluster, ClusterSettings};
use crate::config::TreeSource;
use crate::error::{Error, Result};
use crate::inventory::{Host, Inventory, Role};

use super::template;
use ranges::Ranges;

/// The nftables rules on the host, as `nft --file` takes them.
pub(super) const FILE: &str = "/etc/turnup/firewall.nft";
/// The setting with the networks that may log in.
const SSH_NETWORKS: &str = "phase2.host.firewall_ssh_networks";
/// What every pod has on its own interface and on the host's end of it, whatever the pod network.
const LINK_LOCAL: &str = "fe80::/10";

/// What is known of all hosts of a cluster where a host's rules are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Neighbors {
    /// The control plane's addresses; none in user data, which is made before they are known.
    control_plane: Vec<IpAddr>,
    /// The addresses of all hosts in the inventory, the control plane's among them.
    hosts: Vec<IpAddr>,
    /// The ports of their sshd.
    ssh_ports: BTreeSet<u16>,
}

impl Neighbors {
    /// Those of an inventory.
    pub(super) fn of(inventory: &Inventory) -> Self {
        let addresses = |host: &Host| [Some(host.address), host.external_address];
        Self {
            control_plane: inventory.control_planes().map(|host| host.address).collect(),
            hosts: inventory.hosts.iter().flat_map(addresses).flatten().collect(),
            ssh_ports: inventory.hosts.iter().map(|host| host.ssh.port).collect(),
        }
    }
}

/// The rules of a host in the inventory, as text; none where the settings want none.
pub(super) fn rules_of(cluster: &Cluster, inventory: &Inventory, host: &Host) -> Result<Option<String>> {
    with_firewall(cluster, inventory, host, |firewall| firewall.render(&cluster.source))
}

/// An error when the rules of a host would lock out turnup, which logs in there from this address.
pub(super) fn require_way_in(
    cluster: &Cluster,
    inventory: &Inventory,
    host: &Host,
    client: Option<IpAddr>,
) -> Result<()> {
    with_firewall(cluster, inventory, host, |firewall| firewall.require_way_in(&host.name, client)).map(drop)
}

fn with_firewall<R>(
    cluster: &Cluster,
    inventory: &Inventory,
    host: &Host,
    act: impl FnOnce(&Firewall<'_>) -> Result<R>,
) -> Result<Option<R>> {
    let neighbors = Neighbors::of(inventory);
    let firewall = Firewall::find(&cluster.settings, host.role, host.ssh.port, &neighbors)?;
    firewall.as_ref().map(act).transpose()
}

/// The rules of one host.
pub(super) struct Firewall<'a> {
    settings: &'a ClusterSettings,
    is_control_plane: bool,
    ssh_port: u16,
    neighbors: &'a Neighbors,
    pods: Ranges,
    hosts: Ranges,
    kubelet: Allowed,
    ssh: Allowed,
}

/// Networks of a setting, those of pods apart: a wider network that has pods in it does not mean
/// them.
struct Allowed {
    networks: Ranges,
    pods: Ranges,
}

impl Allowed {
    fn of(networks: &[String], pods: &Ranges) -> Result<Self> {
        let mut allowed = Self { networks: Ranges::default(), pods: Ranges::default() };
        for network in networks {
            let range = Ranges::of_networks(&[network])?;
            let list = if range.is_within(pods) { &mut allowed.pods } else { &mut allowed.networks };
            *list = list.union(&range);
        }
        Ok(allowed)
    }
}

impl<'a> Firewall<'a> {
    /// The rules for a host of this role whose sshd listens there; none where the settings want
    /// none.
    pub(super) fn find(
        settings: &'a ClusterSettings,
        role: Role,
        ssh_port: u16,
        neighbors: &'a Neighbors,
    ) -> Result<Option<Self>> {
        let wanted = &settings.firewall;
        if !wanted.enabled {
            return Ok(None);
        }
        let pods = Ranges::of_networks(&[settings.pod_cidr.to_string()])?;
        let known = Ranges::of_addresses(neighbors.hosts.iter().copied());
        Ok(Some(Self {
            settings,
            is_control_plane: role == Role::ControlPlane,
            ssh_port,
            neighbors,
            hosts: Ranges::of_networks(&wanted.host_networks)?.union(&known),
            kubelet: Allowed::of(&wanted.kubelet_networks, &pods)?,
            ssh: Allowed::of(&wanted.ssh_networks, &pods)?,
            pods,
        }))
    }

    /// The text of [`FILE`].
    pub(super) fn render(&self, source: &TreeSource) -> Result<String> {
        let control_plane = Ranges::of_addresses(self.neighbors.control_plane.iter().copied());
        let ssh_ports: BTreeSet<u16> = self.neighbors.ssh_ports.iter().copied().chain([self.ssh_port]).collect();
        let (cp, hosts) = (control_plane.elements(), self.hosts.elements());
        let (kubelet, ssh) = (self.kubelet.networks.elements(), self.ssh.networks.elements());
        let context = minijinja::context! {
            pods => self.settings.pod_cidr.to_string(),
            control_plane4 => cp.v4,
            control_plane6 => cp.v6,
            hosts4 => hosts.v4,
            hosts6 => hosts.v6,
            kubelet4 => kubelet.v4,
            kubelet6 => kubelet.v6,
            kubelet_pods => self.kubelet.pods.elements().v4,
            ssh4 => ssh.v4,
            ssh6 => ssh.v6,
            ssh_pods => self.ssh.pods.elements().v4,
            ssh_port => self.ssh_port,
            ssh_ports => ssh_ports.into_iter().collect::<Vec<u16>>(),
            // Without the addresses of the API servers `kubectl logs` would end.
            limits_kubelet => !control_plane.is_empty(),
            limits_ssh => self.limits_ssh(),
            is_control_plane => self.is_control_plane && !control_plane.is_empty(),
            guards_metadata => !self.settings.firewall.pods_reach_metadata,
            has_vxlan => self.settings.addons.cni && self.settings.addons.has_vxlan(),
        };
        template::render(source, "templates/bootstrap/firewall.nft", &context)
    }

    fn limits_ssh(&self) -> bool {
        !self.settings.firewall.ssh_networks.is_empty()
    }

    /// Whether a new connection from this address reaches sshd.
    fn lets_log_in(&self, address: IpAddr) -> Result<bool> {
        let is_pod = self.pods.contains(address) || Ranges::of_networks(&[LINK_LOCAL])?.contains(address);
        if is_pod {
            return Ok(self.ssh.pods.contains(address));
        }
        let passed_on = !self.ssh.pods.is_empty() && self.hosts.contains(address);
        Ok(!self.limits_ssh() || passed_on || self.ssh.networks.contains(address) || address.is_loopback())
    }

    /// An error when the rules would lock out turnup, which is logged in from this address.
    fn require_way_in(&self, host: &str, client: Option<IpAddr>) -> Result<()> {
        let Some(client) = client.map(|address| address.to_canonical()) else { return Ok(()) };
        if self.lets_log_in(client)? {
            return Ok(());
        }
        let networks = &self.settings.firewall.ssh_networks;
        let network = format!("{client}/{}", if client.is_ipv4() { 32 } else { 128 });
        let wider: Vec<&str> = networks.iter().map(String::as_str).chain([network.as_str()]).collect();
        let message = format!("the firewall would lock turnup out of {host}, where it logs in from {client}");
        let listed = if networks.is_empty() { "all but pods".to_owned() } else { networks.join(", ") };
        Err(Error::precondition(message)
            .evidence(format!("{SSH_NETWORKS} lets in: {listed}"))
            .hint(format!("turnup config set {SSH_NETWORKS}={}", wider.join(","))))
    }
}

#[cfg(test)]
mod tests;
