//! Which machine this host's Node is of, for the cloud controller manager, which deletes Nodes
//! whose machines are gone.
//!
//! A kubelet says it when it registers its Node, and never again. So a Node that was there before
//! the cluster had that controller gets its provider ID from the agent. One that was another
//! machine's keeps the provider ID of that: Kubernetes lets none be changed. The agent notes beside
//! it which machine it is now, and the controller may not delete such a Node (the policy in its
//! addon's manifest).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::Result;

use super::super::node_config::NodeConfig;
use super::super::provider_id;
use super::own_node::OwnNode;

/// The annotation: the provider ID of the machine that this is now.
const MACHINE: &str = "turnup.dev/machine";
/// Between two looks at a Node that says all: it may be registered again, or come from a backup.
const INTERVAL: Duration = Duration::from_mins(10);

/// Tells the Node its machine.
#[derive(Default)]
pub(super) struct MachineNote {
    /// When the Node said all.
    seen: Option<Instant>,
    api: OwnNode,
}

impl MachineNote {
    /// Writes what the Node lacks; what was written, and none where nothing was, on hosts whose
    /// kubelet is told no provider ID too.
    pub(super) fn write(&mut self, node_config: &NodeConfig) -> Result<Option<String>> {
        if self.seen.is_some_and(|seen| seen.elapsed() < INTERVAL) {
            return Ok(None);
        }
        let Some(provider_id) = provider_id::find() else { return Ok(None) };
        let node = self.api.read(&node_config.node)?;
        let patch = find_missing(&node, &provider_id);
        if let Some(patch) = &patch {
            self.api.merge(&node_config.node, patch)?;
        }
        self.seen = Some(Instant::now());
        Ok(patch.map(|_| format!("the Node is told its machine, {provider_id}")))
    }
}

/// What a Node of this machine lacks, as a patch; none where it says all.
fn find_missing(node: &Value, provider_id: &str) -> Option<Value> {
    let noted = node["metadata"]["annotations"][MACHINE] == provider_id;
    let has_one = node["spec"]["providerID"].as_str().is_some_and(|known| !known.is_empty());
    let mut patch = json!({});
    if !noted {
        patch["metadata"] = json!({"annotations": {MACHINE: provider_id}});
    }
    if !has_one {
        patch["spec"] = json!({"providerID": provider_id});
    }
    patch.as_object().is_some_and(|fields| !fields.is_empty()).then_some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIS: &str = "aws:///us-east-1a/i-0b";

    #[test]
    fn a_node_is_told_what_it_lacks_and_a_provider_id_is_never_changed() {
        let node = |noted: Option<&str>, provider_id: Option<&str>| {
            let annotations = noted.map_or_else(|| json!({}), |noted| json!({MACHINE: noted}));
            let spec = provider_id.map_or_else(|| json!({}), |provider_id| json!({"providerID": provider_id}));
            json!({"metadata": {"annotations": annotations}, "spec": spec})
        };
        let metadata = json!({"annotations": {MACHINE: THIS}});
        let all = json!({"metadata": metadata, "spec": {"providerID": THIS}});
        assert_eq!(find_missing(&node(None, None), THIS), Some(all), "from before the controller");
        let (old, patch) = ("aws:///us-east-1a/i-0a", json!({"metadata": metadata}));
        assert_eq!(find_missing(&node(None, Some(THIS)), THIS), Some(patch.clone()));
        assert_eq!(find_missing(&node(Some(old), Some(old)), THIS), Some(patch), "another machine in the place of one");
        assert_eq!(find_missing(&node(Some(THIS), Some(old)), THIS), None);
        assert_eq!(find_missing(&node(Some(THIS), Some(THIS)), THIS), None);
    }
}
