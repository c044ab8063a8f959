//! The step `delete-nodes`: Node objects whose hosts are gone are deleted; left alone they would
//! stay, not ready, for ever.
//!
//! The inventory says whether a host that turnup made a node is gone. It does not list hosts that
//! join by themselves: there, a Node is left over when its group has more Nodes than hosts and its
//! kubelet is silent. A kubelet that speaks never loses its Node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::change::{Change, Preview, Verb};
use crate::cloud::Target;
use crate::error::{Class, Result};
use crate::inventory::Inventory;
use crate::phase::{Action, Check, Cx, Inputs};

use super::api::{Kubectl, kubectl};
use super::group_node::{GONE_AFTER, GROUP, GroupNode, find_nodes};
use super::node_context::NodeContext;
use super::node_metadata::MANAGED;
use super::step_ids::API;

/// Node objects without a machine.
pub(super) struct DeleteNodes(pub(super) NodeContext);

/// A Node to delete, and why.
#[derive(Debug, PartialEq, Eq)]
struct Gone {
    name: String,
    why: String,
}

impl DeleteNodes {
    fn find_gone(&self, kubectl: &Kubectl) -> Result<Vec<Gone>> {
        let mut all: Vec<Gone> = find_without_host(kubectl, &self.0.inventory)?
            .into_iter()
            .map(|name| Gone { name, why: "its host is gone".into() })
            .collect();
        all.extend(self.find_silent(kubectl)?);
        Ok(all)
    }

    fn find_silent(&self, kubectl: &Kubectl) -> Result<Vec<Gone>> {
        let inventory = &self.0.inventory;
        if inventory.groups.is_empty() && !is_cloud(inventory) {
            return Ok(Vec::new());
        }
        Ok(find_silent(inventory, &kubectl.get(&["nodes", "--selector", GROUP])?, Timestamp::now()))
    }
}

/// The names of Nodes that turnup made and whose hosts the inventory does not have.
pub(super) fn find_without_host(kubectl: &Kubectl, inventory: &Inventory) -> Result<Vec<String>> {
    // Only nodes that `label-nodes` labelled: others were joined by other tools.
    let nodes = kubectl.get(&["nodes", "--selector", MANAGED])?;
    let names = nodes["items"].as_array().into_iter().flatten().filter_map(|node| node["metadata"]["name"].as_str());
    Ok(names.filter(|name| inventory.host(name).is_err()).map(str::to_owned).collect())
}

/// There, hosts that come by themselves are those of the groups and no others.
fn is_cloud(inventory: &Inventory) -> bool {
    Target::of(&inventory.target).owns_all_groups()
}

/// Nodes beyond the number of hosts that their group can have, whose kubelets are silent: those
/// first that have been for longest.
fn find_silent(inventory: &Inventory, nodes: &Value, now: Timestamp) -> Vec<Gone> {
    let mut groups: BTreeMap<&str, Vec<GroupNode<'_>>> = BTreeMap::new();
    for node in find_nodes(nodes) {
        groups.entry(node.group).or_default().push(node);
    }
    let of_group = |(group, mut nodes): (&str, Vec<GroupNode<'_>>)| {
        let beyond = find_most(inventory, group).map_or(0, |most| nodes.len().saturating_sub(most));
        nodes.retain(|node| node.silent_since.is_some_and(|since| now.duration_since(since) >= GONE_AFTER));
        nodes.sort_by_key(|node| node.silent_since);
        let why = format!("its kubelet is silent, and the group {group} has a Node too many");
        let gone = nodes.iter().take(beyond).map(|node| Gone { name: node.name.to_owned(), why: why.clone() });
        gone.collect::<Vec<_>>()
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// How many hosts the group has at most. None where that is unknown: the user may give user data to
/// hosts of their own.
fn find_most(inventory: &Inventory, group: &str) -> Option<usize> {
    let known = inventory.groups.iter().find(|known| known.name == group);
    let most = known.map(|known| known.max.unwrap_or(known.size)).or_else(|| is_cloud(inventory).then_some(0))?;
    usize::try_from(most).ok()
}

impl Action for DeleteNodes {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let names: Vec<&str> = self.0.inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        Ok(Inputs::new().with("hosts", names.join(" ")))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        // Whose hosts are in the inventory is a question of which these are, and they are an input.
        let silent = self.find_silent(&kubectl(&self.0.cluster)?)?;
        Ok(silent.first().map_or(Check::Ok, |gone| Check::Drifted(format!("the node {}: {}", gone.name, gone.why))))
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        let change = |gone: Gone| Change::new(Verb::Delete, "object", format!("Node {}", gone.name));
        match kubectl(&self.0.cluster).and_then(|kubectl| self.find_gone(&kubectl)) {
            Ok(gone) => Ok(gone.into_iter().map(change).collect::<Vec<_>>().into()),
            Err(error) if error.class() == Class::Interrupted => Err(error),
            // No kubectl, no kubeconfig or no answer yet.
            Err(_) => Ok(Preview::after(API)),
        }
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let kubectl = kubectl(&self.0.cluster)?.within(cx);
        for Gone { name, why } in self.find_gone(&kubectl)? {
            cx.progress(format!("deleting the node {name}: {why}"));
            kubectl.run(&["delete", "node", &name, "--ignore-not-found", "--wait=false"])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T12:00:00Z";

    fn inventory(target: &str) -> Inventory {
        serde_json::from_value(json!({
            "schema": "turnup.provision/1", "cluster": "c", "target": target, "api": {"host": "192.0.2.1", "port": 6443},
            "hosts": [],
            "groups": [{"name": "web", "role": "worker", "size": 2},
                {"name": "batch", "role": "worker", "size": 2, "min": 1, "max": 3}],
        }))
        .unwrap()
    }

    /// `web-1 True`, `web-2 11:50:00`: silent since then.
    fn nodes(all: &[&str]) -> Value {
        let node = |text: &&str| {
            let (name, since) = text.split_once(' ').unwrap();
            let (group, _) = name.split_once('-').unwrap();
            let status = if since == "True" || since == "False" { since } else { "Unknown" };
            let since = format!("2026-01-01T{}Z", if status == "Unknown" { since } else { "06:00:00" });
            json!({"metadata": {"name": name, "labels": {GROUP: group}},
                "status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": since}]}})
        };
        json!({"items": all.iter().map(node).collect::<Vec<_>>()})
    }

    fn gone(target: &str, all: &[&str]) -> Vec<String> {
        let found = find_silent(&inventory(target), &nodes(all), NOW.parse().unwrap());
        found.into_iter().map(|gone| gone.name).collect()
    }

    #[test]
    fn a_silent_node_beyond_the_size_of_its_group_is_left_over() {
        let replaced = ["web-1 True", "web-2 11:50:00", "web-3 False"];
        assert_eq!(gone("gce", &replaced), ["web-2"]);
        assert!(gone("gce", &replaced[..2]).is_empty(), "within the size: its machine may come back");
        assert!(
            gone("gce", &["web-1 True", "web-2 True", "web-3 True"]).is_empty(),
            "a kubelet that speaks keeps its Node"
        );
        assert!(gone("gce", &["web-1 True", "web-2 True", "web-3 11:56:00"]).is_empty(), "not for long enough");
        let two = ["web-1 11:40:00", "web-2 11:30:00", "web-3 11:50:00", "web-4 True"];
        assert_eq!(gone("gce", &two), ["web-2", "web-1"], "the oldest silence first, and not one too many");
        let scaled = ["batch-1 True", "batch-2 11:00:00", "batch-3 11:00:00", "batch-4 True"];
        assert_eq!(gone("gce", &scaled), ["batch-2"], "the autoscaler may want as many as its upper bound");
    }

    #[test]
    fn nodes_of_a_group_that_is_gone_are_left_over_where_only_groups_bring_any() {
        let old = ["old-1 11:00:00", "old-2 True"];
        assert_eq!(gone("aws", &old), ["old-1"]);
        assert!(gone("baremetal", &old).is_empty(), "the user gave user data to hosts of their own");
    }
}
