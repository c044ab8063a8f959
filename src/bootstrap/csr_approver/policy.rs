//! What the CSR approver of a control-plane host is told: the flags of its unit. Which names belong
//! to which node group, and which names and addresses no kubelet may have, though the same
//! authority signs them: those of API servers, of Services and of other hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::cloud::Cloud;
use crate::cluster::{Cluster, ClusterSettings};
use crate::config::Network;
use crate::error::Result;
use crate::inventory::{Inventory, Role};

use super::super::control_plane::api_names;
use super::super::groups;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// How the names of a group's Nodes begin, by the name of the group.
    node_groups: BTreeMap<String, String>,
    /// Names of hosts that turnup logs in to, as far as a node group's could be taken for them.
    deny_nodes: BTreeSet<String>,
    deny_sans: DeniedSans,
    /// How the names end that the cloud gives machines, where its controller manager writes them on
    /// Nodes: a kubelet serves under them, too.
    machine_domains: Vec<String>,
}

impl Policy {
    /// `deny_sans` are names, addresses and networks: `localhost`, `10.0.0.1`, `10.96.0.0/16`, and
    /// `.svc` for all names that end so.
    #[must_use]
    pub fn new(node_groups: BTreeMap<String, String>, deny_nodes: Vec<String>, deny_sans: Vec<String>) -> Self {
        let (deny_nodes, deny_sans) = (deny_nodes.into_iter().collect(), DeniedSans::parse(deny_sans));
        Self { node_groups, deny_nodes, deny_sans, machine_domains: Vec::new() }
    }

    /// The same, and names of machines that end so are theirs: `.ec2.internal`.
    #[must_use]
    pub fn with_machine_domains(self, machine_domains: Vec<String>) -> Self {
        Self { machine_domains, ..self }
    }

    /// That of a host of this role; none where it approves nothing.
    pub(in crate::bootstrap) fn find(role: Role, cluster: &Cluster, inventory: &Inventory) -> Result<Option<Self>> {
        let approves = role == Role::ControlPlane && is_wanted(cluster)?;
        approves.then(|| Self::of(cluster, inventory)).transpose()
    }

    /// That of this cluster.
    pub(in crate::bootstrap) fn of(cluster: &Cluster, inventory: &Inventory) -> Result<Self> {
        let node_groups = groups::name_prefixes(cluster)?;
        let could_be_theirs = |name: &&str| node_groups.values().any(|prefix| name.starts_with(prefix));
        let names = inventory.hosts.iter().map(|host| host.name.as_str());
        let deny_nodes = names.filter(could_be_theirs).map(str::to_owned).collect();
        let deny_sans = DeniedSans::parse(list_sans(&cluster.settings, inventory)?);
        let domains = cluster.settings.find_cloud_controller().map(Cloud::machine_domains);
        let machine_domains = domains.unwrap_or_default().iter().map(|domain| (*domain).to_owned()).collect();
        Ok(Self { node_groups, deny_nodes, deny_sans, machine_domains })
    }

    /// The flags of `turnup node csr-approver`.
    pub(in crate::bootstrap) fn flags(&self) -> Vec<String> {
        let groups = self.node_groups.iter().map(|(group, prefix)| group_flag(group, prefix));
        let nodes = self.deny_nodes.iter().map(|name| format!("--deny-node={name}"));
        let sans = self.deny_sans.list.iter().map(|name| format!("--deny-san={name}"));
        let domains = self.machine_domains.iter().map(|domain| format!("--machine-domain={domain}"));
        groups.chain(nodes).chain(sans).chain(domains).collect()
    }

    /// Whether there are node groups.
    pub(super) fn has_node_groups(&self) -> bool {
        !self.node_groups.is_empty()
    }

    /// How the names of a group's Nodes begin.
    pub(super) fn name_prefix(&self, group: &str) -> Option<&str> {
        self.node_groups.get(group).map(String::as_str)
    }

    /// The node group to which a Node of this name belongs: that of `web-b-1` is `web-b` where
    /// there is also a `web`.
    pub(super) fn group_of(&self, node: &str) -> Option<&str> {
        let of_prefix =
            |(_, prefix): &(&String, &String)| node.len() > prefix.len() && node.starts_with(prefix.as_str());
        let group = self.node_groups.iter().filter(of_prefix).max_by_key(|(_, prefix)| prefix.len());
        group.map(|(group, _)| group.as_str())
    }

    /// Whether no host of a node group may have this name.
    pub(super) fn denies_node(&self, name: &str) -> bool {
        self.deny_nodes.contains(name) || self.deny_sans.has_name(name)
    }

    /// Whether a name is one that the cloud gives a machine.
    pub(super) fn is_of_machine(&self, name: &str) -> bool {
        self.machine_domains.iter().any(|domain| name.len() > domain.len() && name.ends_with(domain.as_str()))
    }

    pub(super) const fn deny_sans(&self) -> &DeniedSans {
        &self.deny_sans
    }
}

/// Whether there is who asks: hosts of node groups, or hosts that renew what their kubelets need.
pub(in crate::bootstrap) fn is_wanted(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.settings.pki.renew_on_hosts || groups::has_node_groups(cluster)?)
}

/// The flag for one group.
pub(in crate::bootstrap) fn group_flag(group: &str, prefix: &str) -> String {
    format!("--node-group={group}={prefix}")
}

/// What belongs to API servers and Services.
fn list_sans(settings: &ClusterSettings, inventory: &Inventory) -> Result<Vec<String>> {
    let services = [".svc".to_owned(), format!(".svc.{}", settings.cluster_domain), settings.service_cidr.to_string()];
    let mut all = BTreeSet::from(services);
    for host in inventory.control_planes() {
        all.extend(api_names(settings, &inventory.api, host)?);
    }
    Ok(all.into_iter().collect())
}

/// Names, addresses and networks for which no kubelet gets a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeniedSans {
    /// As they were given.
    list: Vec<String>,
    /// Lower case; one that begins with a dot stands for all names that end so.
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
    networks: Vec<Network>,
}

impl DeniedSans {
    /// A wildcard stands for what it covers, and for what is below that.
    fn parse(list: Vec<String>) -> Self {
        let mut denied = Self::default();
        for text in &list {
            if let Ok(address) = text.parse::<IpAddr>() {
                denied.addresses.insert(address.to_canonical());
            } else if let Ok(network) = text.parse() {
                denied.networks.push(network);
            } else {
                denied.names.insert(text.trim_start_matches('*').to_lowercase());
            }
        }
        Self { list, ..denied }
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.iter().any(|known| if known.starts_with('.') { name.ends_with(known) } else { name == *known })
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        let is_within = |network: &Network| matches!(address, IpAddr::V4(address) if network.contains(address));
        self.addresses.contains(&address) || self.networks.iter().any(is_within)
    }
}
