//! Which hosts of this machine the configuration asks for, and at which addresses. A pure function
//! of the settings and of the variables that Terraform was given last: a host that is there keeps
//! its address whatever becomes of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde_json::Value;

use super::terraform::VARIABLES;
use crate::cloud::WORKERS as POOL;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::{Role, is_label};

/// The load balancer, the first control-plane host and the first worker, counted from the subnet's
/// own address.
const BALANCER: u32 = 9;
const CONTROL_PLANE: u32 = 10;
const WORKERS: u32 = 20;

/// A host that the configuration asks for.
pub(super) struct PlannedHost {
    pub(super) name: String,
    /// None of the load balancer of the API servers, which becomes no node.
    pub(super) role: Option<Role>,
    /// The node group that it belongs to; empty where the configuration has none.
    pub(super) group: String,
    /// The release that it is made of.
    pub(super) release: String,
    pub(super) address: Ipv4Addr,
    /// Its number in the subnet.
    pub(super) offset: u32,
}

impl PlannedHost {
    /// The role as Terraform and the engine are told it.
    pub(super) fn role_name(&self) -> &'static str {
        self.role.map_or("balancer", Role::name)
    }
}

/// The control-plane hosts, with a load balancer before several of them, and the workers: those of
/// the node groups, or as many as `phase1.num_nodes` says.
pub(super) fn planned_hosts(cluster: &Cluster) -> Result<Vec<PlannedHost>> {
    let settings = &cluster.settings;
    let mut wanted = Vec::new();
    for index in 0..settings.control_planes {
        let name = format!("{}-{}-{index}", settings.name, Role::ControlPlane.name());
        wanted.push((name, Some(Role::ControlPlane), String::new(), Some(CONTROL_PLANE + index)));
    }
    if settings.control_planes > 1 {
        wanted.push((format!("{}-api", settings.name), None, String::new(), Some(BALANCER)));
    }
    let worker = |name: &str, index: u32, group: &str, offset: Option<u32>| {
        (format!("{}-{name}-{index}", settings.name), Some(Role::Worker), group.to_owned(), offset)
    };
    if settings.node_groups.is_empty() {
        // Hosts that join by themselves are always of a group.
        let (name, group) = if replaces_hosts(cluster) { (POOL, POOL) } else { ("worker", "") };
        let workers = (0..settings.num_nodes).map(|index| worker(name, index, group, Some(WORKERS + index)));
        wanted.extend(workers);
    }
    for group in &settings.node_groups {
        if group.name.starts_with(Role::ControlPlane.name()) {
            let message = "phase1.node_groups: no name of a group of workers can begin with control-plane";
            return Err(
                Error::config(format!("{message}, as that of {} does", group.name)).hint("give the group another name")
            );
        }
        wanted.extend((0..group.size).map(|index| worker(&group.name, index, &group.name, None)));
    }
    let mut numbers = Numbers::read(cluster)?;
    // Hosts that are there first: a new one must not take the number of one that stays.
    let kept: BTreeMap<String, u32> =
        wanted.iter().filter_map(|(name, ..)| Some((name.clone(), numbers.keep(name)?))).collect();
    let mut hosts = Vec::new();
    for (name, role, group, preferred) in wanted {
        let of_worker = role == Some(Role::Worker);
        let offset = match (kept.get(&name), preferred) {
            (Some(offset), _) if of_worker => *offset,
            (_, Some(offset)) if !of_worker => offset,
            (_, preferred) => numbers.take(preferred),
        };
        if !is_label(&name) {
            let message =
                format!("phase1.cluster_name: a host would be called {name}, which is longer than 63 characters");
            return Err(Error::config(message).hint("give the cluster or the node group a shorter name"));
        }
        // The last address of a subnet is its broadcast address.
        let subnet = settings.subnet;
        let address = subnet.address(offset).filter(|_| subnet.address(offset + 1).is_some());
        let address = address.ok_or_else(|| {
            Error::config(format!("phase1.local.subnet: {subnet} has no address for {name}"))
                .hint("turnup config set phase1.local.subnet=10.117.0.0/16")
        })?;
        let release = settings.release_of(&group).to_owned();
        hosts.push(PlannedHost { name, role, group, release, address, offset });
    }
    Ok(hosts)
}

/// Whether this machine does for hosts what a cloud does.
pub(super) fn replaces_hosts(cluster: &Cluster) -> bool {
    cluster.settings.local_hosts.replaces_hosts
}

/// The load balancer, where there is one.
pub(super) fn find_balancer(hosts: &[PlannedHost]) -> Option<&PlannedHost> {
    hosts.iter().find(|host| host.role.is_none())
}

/// The address of the API server: the load balancer's, or that of the one control-plane host.
pub(super) fn api_address(hosts: &[PlannedHost]) -> Result<Ipv4Addr> {
    let host = find_balancer(hosts).or_else(|| hosts.iter().find(|host| host.role == Some(Role::ControlPlane)));
    host.map(|host| host.address).ok_or_else(|| Error::bug("there is no control-plane host"))
}

/// The numbers of workers in the subnet.
struct Numbers {
    /// Of the hosts that Terraform was told last, by name.
    known: BTreeMap<String, u32>,
    used: BTreeSet<u32>,
}

impl Numbers {
    fn read(cluster: &Cluster) -> Result<Self> {
        let subnet = cluster.settings.subnet;
        let first = subnet.address(0).map_or(0, u32::from);
        let variables: Value = match cluster.store.read(VARIABLES)? {
            Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            None => Value::Null,
        };
        let hosts = variables["cluster"]["hosts"].as_object().into_iter().flatten();
        let known = hosts.filter_map(|(name, host)| {
            let address: Ipv4Addr = host["address"].as_str()?.parse().ok()?;
            let offset = subnet.contains(address).then(|| u32::from(address) - first)?;
            (offset >= WORKERS).then(|| (name.clone(), offset))
        });
        let known: BTreeMap<String, u32> = known.collect();
        Ok(Self { used: known.values().copied().collect(), known })
    }

    fn keep(&self, name: &str) -> Option<u32> {
        self.known.get(name).copied()
    }

    /// The preferred number when it is free, else the first one that is: also of a host that is to
    /// go, for it is there until Terraform has deleted it.
    fn take(&mut self, preferred: Option<u32>) -> u32 {
        let is_free = |offset: &u32| !self.used.contains(offset);
        let offset =
            preferred.filter(is_free).or_else(|| (WORKERS..u32::MAX - 1).find(is_free)).unwrap_or(u32::MAX - 1);
        self.used.insert(offset);
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_there_keeps_its_number_and_no_new_one_takes_that_of_one_that_goes() {
        let known = BTreeMap::from([("c-web-0".to_owned(), 20), ("c-web-1".to_owned(), 21)]);
        let mut numbers = Numbers { used: known.values().copied().collect(), known };
        assert_eq!((numbers.keep("c-web-1"), numbers.keep("c-gpu-0")), (Some(21), None));
        assert_eq!(numbers.take(None), 22);
        assert_eq!(numbers.take(Some(20)), 23, "c-web-0 may still be there");
        assert_eq!(numbers.take(Some(30)), 30);
        assert_eq!(numbers.take(None), 24);
    }
}
