//! Whether nodes and addons are as far as they should be, and what is still missing. Pure.

use std::collections::BTreeMap;

use super::object::Object;
use super::observed::{Observed, ObservedNode, Pod, Workload};
use super::render::Rendered;

/// What should be.
pub(super) struct ExpectedAddons<'a> {
    /// The names of the hosts.
    pub(super) hosts: &'a [String],
    /// The addons.
    pub(super) addons: &'a [Rendered],
    /// Whether a pod network of turnup's own makes the nodes Ready; without one they wait for the
    /// user's own network plugin.
    pub(super) network: bool,
    /// So many nodes may be not Ready.
    pub(super) tolerated: usize,
}

/// What is, compared with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outlook {
    /// Hosts whose node is Ready.
    pub(super) ready_nodes: Vec<String>,
    /// Addons that are rolled out.
    pub(super) ready_addons: Vec<String>,
    /// One line for everything that is not there yet; empty when nothing is to be waited for.
    pub(super) missing: Vec<String>,
}

impl ExpectedAddons<'_> {
    pub(super) fn compare(&self, observed: &Observed) -> Outlook {
        let mut outlook = Outlook::default();
        let nodes: BTreeMap<&str, &ObservedNode> =
            observed.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let is_ready = |host: &&String| nodes.get(host.as_str()).is_some_and(|node| node.ready);
        let down = self.hosts.iter().filter(|host| !is_ready(host)).count();
        let spares = down <= self.tolerated;
        let hosts: Vec<&String> = self.hosts.iter().filter(|host| !spares || is_ready(host)).collect();
        for host in &hosts {
            match nodes.get(host.as_str()) {
                Some(node) if node.ready => outlook.ready_nodes.push((*host).clone()),
                Some(_) if !self.network => {}
                Some(node) => outlook.missing.push(format!("node {host} is not Ready: {}", node.says)),
                None => outlook.missing.push(format!("node {host} is not registered")),
            }
        }
        for addon in self.addons.iter().filter(|addon| addon.has_workload()) {
            let missing = missing_of(addon, &hosts, observed);
            if missing.is_empty() {
                outlook.ready_addons.push(addon.name.clone());
            } else if self.network || addon.main.kind == "DaemonSet" {
                // Without a network of ours, only pods on the hosts' own network can be expected to
                // start.
                outlook.missing.extend(missing);
            }
        }
        if !outlook.missing.is_empty() {
            // Not awaited by itself, but the likely reason for all the rest.
            let pressed = observed.nodes.iter().filter(|node| !node.pressure.is_empty());
            let lines = pressed.map(|node| format!("node {} refuses pods: {}", node.name, node.pressure.join("; ")));
            outlook.missing.splice(0..0, lines.collect::<Vec<_>>());
        }
        outlook
    }
}

fn missing_of(addon: &Rendered, hosts: &[&String], observed: &Observed) -> Vec<String> {
    let name = &addon.name;
    let Some(workload) = observed.workloads.iter().find(|workload| workload.object == addon.main) else {
        return vec![format!("{} is not in the cluster", addon.main)];
    };
    if observed.hashes.get(&addon.main) != Some(&addon.hash) {
        return vec![format!("{} is of another version", addon.main)];
    }
    if !workload.is_current {
        return vec![format!("{name}: its controller has not seen it yet")];
    }
    let others = addon.objects.iter().filter(|object| object.kind == "Deployment" && **object != addon.main);
    let mut missing: Vec<String> = others.flat_map(|other| missing_deployment(other, observed)).collect();
    missing.extend(if addon.main.kind == "Deployment" {
        missing_replicas(&addon.name, workload, observed)
    } else {
        missing_pods(addon, hosts, observed)
    });
    missing
}

/// A Deployment beside the main object, which alone records the hash.
fn missing_deployment(object: &Object, observed: &Observed) -> Vec<String> {
    match observed.workloads.iter().find(|workload| workload.object == *object) {
        Some(workload) if workload.is_current => missing_replicas(&object.name, workload, observed),
        Some(_) => vec![format!("{}: its controller has not seen it yet", object.name)],
        None => vec![format!("{object} is not in the cluster")],
    }
}

/// A `DaemonSet` counts nodes that no host stands behind any more, so its pods are looked at
/// and not its numbers.
fn missing_pods(addon: &Rendered, hosts: &[&String], observed: &Observed) -> Vec<String> {
    let of_addon = |pod: &&Pod| pod.owner.as_deref() == Some(addon.name.as_str()) && !pod.terminating;
    let mut on_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in observed.pods.iter().filter(of_addon) {
        on_node.entry(pod.node.as_deref().unwrap_or_default()).or_default().push(pod);
    }
    let missing = |host: &&String| {
        let mut pods = on_node.get(host.as_str()).into_iter().flatten().copied();
        let pod = pods.clone().find(|pod| pod.hash.as_ref() == Some(&addon.hash));
        match pod.or_else(|| pods.next()) {
            Some(pod) if pod.hash.as_ref() != Some(&addon.hash) => {
                Some(format!("{}: {host} runs the old form", addon.name))
            }
            Some(pod) if !pod.ready => Some(format!("{}: {}", addon.name, pod.describe())),
            Some(_) => None,
            None => Some(format!("{}: no pod on {host} yet", addon.name)),
        }
    };
    hosts.iter().filter_map(missing).collect()
}

fn missing_replicas(name: &str, workload: &Workload, observed: &Observed) -> Vec<String> {
    let [wanted, updated, available] = workload.replicas;
    if updated >= wanted && available >= wanted {
        return Vec::new();
    }
    // A ReplicaSet has the Deployment's name and one word more.
    let is_of_it = |owner: &str| owner.rsplit_once('-').is_some_and(|(deployment, _)| deployment == name);
    let of_it = |pod: &&Pod| pod.owner.as_deref().is_some_and(is_of_it) && !pod.ready;
    let pods: Vec<String> =
        observed.pods.iter().filter(of_it).map(|pod| format!("{name}: {}", pod.describe())).collect();
    if pods.is_empty() { vec![format!("{name}: {available} of {wanted} pods are available")] } else { pods }
}
