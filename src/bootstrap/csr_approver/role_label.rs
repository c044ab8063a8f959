//! The role label of Nodes that joined by themselves. No kubelet may give itself one
//! (`NodeRestriction`), so the control plane does, to Nodes whose name and group belong together.
//! It takes no label away.

use serde_json::{Value, json};

use crate::error::Result;
use crate::inventory::Role;

use super::super::api::Kubectl;
use super::super::group_node::{GROUP, find_nodes};
use super::Policy;

/// The label of a role, as kubectl shows it in the column ROLES.
pub(in crate::bootstrap) fn of(role: Role) -> String {
    format!("node-role.kubernetes.io/{}", role.name())
}

/// Labels Nodes of node groups that have no role yet, and says which.
pub(super) fn give(kubectl: &Kubectl, policy: &Policy) -> Result<Vec<String>> {
    // The API server selects, so that a look at a thousand labelled Nodes costs nothing here.
    let [worker, control_plane] = [Role::Worker, Role::ControlPlane].map(of);
    let selector = format!("--selector={GROUP},!{worker},!{control_plane}");
    let nodes = kubectl.get(&["nodes", &selector])?;
    let patch = json!({"metadata": {"labels": {worker: ""}}});
    let mut news = Vec::new();
    for name in find_workers(&nodes, policy) {
        kubectl.patch_node(name, &patch)?;
        news.push(format!("labelled the node {name} as worker"));
    }
    Ok(news)
}

/// The Nodes that are of the group that they name. A kubelet says its group itself; its name was
/// judged when it joined.
fn find_workers<'n>(nodes: &'n Value, policy: &Policy) -> Vec<&'n str> {
    let is_of_its_group = |name: &str, group: &str| policy.group_of(name) == Some(group) && !policy.denies_node(name);
    let nodes = find_nodes(nodes).into_iter();
    nodes.filter(|node| is_of_its_group(node.name, node.group)).map(|node| node.name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::policy;
    use super::*;

    #[test]
    fn a_node_of_its_own_group_is_a_worker() {
        let node = |(name, group): (&str, &str)| json!({"metadata": {"name": name, "labels": {GROUP: group}}});
        let nodes = [("web-1", "web"), ("web-b-1", "web-b"), ("web-2", "web-b"), ("web-own", "web"), ("db-1", "db")];
        let nodes = json!({"items": nodes.map(node)});
        assert_eq!(find_workers(&nodes, &policy()), ["web-1", "web-b-1"], "the others are of no or another group");
        assert_eq!(find_workers(&Value::Null, &policy()), Vec::<&str>::new());
    }

    #[test]
    fn the_label_is_the_one_that_kubectl_knows() {
        assert_eq!(of(Role::Worker), "node-role.kubernetes.io/worker");
        assert_eq!(of(Role::ControlPlane), "node-role.kubernetes.io/control-plane");
    }
}
