//! What the API server knows of nodes: for proofs one call for everybody who asks at about the same time.
//!
//! A thousand hosts that each start a kubectl of their own, to ask about their own node, are a thousand processes; one list says it all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Class, Error, Result};
use crate::phase::Cx;

use super::api::Kubectl;

/// How old an answer may be for a proof.
const FRESH: Duration = Duration::from_secs(2);
/// Between two questions of somebody who waits for a node.
const POLL: Duration = Duration::from_millis(200);

/// The labels of each node.
type Labels = BTreeMap<String, BTreeSet<String>>;

/// The nodes as they were at the last look.
#[derive(Default)]
pub(super) struct Nodes {
    last: Mutex<Option<(Instant, Arc<Labels>)>>,
}

impl Nodes {
    /// Whether the node is there and has the label.
    pub(super) fn has_label(&self, kubectl: &Kubectl, node: &str, label: &str) -> Result<bool> {
        Ok(self.look(kubectl)?.get(node).is_some_and(|labels| labels.contains(label)))
    }

    /// Who comes while somebody else is asking waits for that answer and takes it.
    fn look(&self, kubectl: &Kubectl) -> Result<Arc<Labels>> {
        let asked = Instant::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((began, nodes)) = last.as_ref()
            && asked.saturating_duration_since(*began) < FRESH
        {
            return Ok(Arc::clone(nodes));
        }
        let began = Instant::now();
        let nodes = Arc::new(labels(&kubectl.get(&["nodes"])?));
        *last = Some((began, Arc::clone(&nodes)));
        Ok(nodes)
    }
}

/// Waits until one node is there. An API server that is away for a moment is waited for as well; any other error ends the wait.
///
/// It asks for this node alone: hosts join one after another, and a list of all for each of them would grow with the square.
pub(super) fn wait_for(kubectl: &Kubectl, node: &str, cx: &Cx) -> Result<()> {
    loop {
        let why = match kubectl.run(&["get", "node", node, "--output=name", "--ignore-not-found"]) {
            Ok(name) if !name.trim().is_empty() => return Ok(()),
            Ok(_) => None,
            Err(error) if error.class() == Class::Transient => Some(error),
            Err(error) => return Err(error),
        };
        if cx.remaining() < Duration::from_secs(5) {
            let error = Error::transient(format!("the kubelet of {node} did not register its node"));
            let error = match why {
                Some(why) => error.source(why),
                None => error,
            };
            return Err(error.hint("turnup status"));
        }
        cx.sleep(POLL)?;
    }
}

fn labels(list: &Value) -> Labels {
    let metadata = list["items"].as_array().into_iter().flatten().map(|node| &node["metadata"]);
    let of = |metadata: &Value| {
        metadata["labels"].as_object().into_iter().flat_map(|labels| labels.keys().cloned()).collect()
    };
    metadata.filter_map(|metadata| Some((metadata["name"].as_str()?.to_owned(), of(metadata)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_read_from_a_list() {
        let list = serde_json::json!({"items": [
            {"metadata": {"name": "a", "labels": {"turnup.dev/managed": ""}}}, {"metadata": {"name": "b"}}]});
        let labels = labels(&list);
        assert!(labels["a"].contains("turnup.dev/managed"));
        assert!(labels["b"].is_empty());
    }
}
