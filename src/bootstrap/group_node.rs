//! Nodes that joined by themselves: their group, and since when their kubelets are silent. It asks
//! nothing; what the API server said is handed in.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::condition::find_condition;

/// The label of Nodes that joined by themselves, with the name of their group.
pub(super) const GROUP: &str = "turnup.dev/group";
/// The label of the same Nodes, with the id of the template that their machines were made from.
pub(super) const TEMPLATE: &str = "turnup.dev/template";
/// The label of those among them that reach the API servers by a balancer of their own.
pub(super) const BALANCER: &str = "turnup.dev/balancer";
/// Kubernetes, too, leaves pods for so long on a node that says nothing. Then the machine counts as
/// gone everywhere in turnup: its Node may be deleted, its name and its addresses may be another
/// machine's.
pub(super) const GONE_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// A Node that joined by itself.
pub(super) struct GroupNode<'n> {
    pub(super) name: &'n str,
    pub(super) group: &'n str,
    /// Since when its kubelet is silent; none while it reports. A node that lacks the
    /// network of its pods is not ready, but reports.
    pub(super) silent_since: Option<Timestamp>,
}

/// All Nodes of a list that joined by themselves.
pub(super) fn find_nodes<'n>(nodes: &'n Value) -> Vec<GroupNode<'n>> {
    let read = |node: &'n Value| {
        let group = node["metadata"]["labels"][GROUP].as_str()?;
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        Some(GroupNode { name, group, silent_since: silent_since(node) })
    };
    nodes["items"].as_array().into_iter().flatten().filter_map(read).collect()
}

/// Since when the kubelet of this Node is silent.
pub(super) fn silent_since(node: &Value) -> Option<Timestamp> {
    let ready = find_condition(node, "Ready")?;
    let since = ready["lastTransitionTime"].as_str().and_then(|time| time.parse().ok());
    // Without a time it is silent, but for an unknown time.
    (ready["status"] == "Unknown").then(|| since.unwrap_or(Timestamp::MAX))
}
