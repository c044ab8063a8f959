//! What the API server knows of nodes, and the labels and taints that it is told: proofs share one
//! call when they ask at about the same time.
//!
//! A thousand hosts that each start a kubectl of their own, to ask about their own node, are a
//! thousand processes; one list says it all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Class, Context as _, Error, Result};
use crate::inventory::Taint;
use crate::phase::Cx;

use super::api::Kubectl;
use super::latest::Latest;

/// How old an answer may be for a proof.
const CACHE_LIFETIME: Duration = Duration::from_secs(2);
/// The interval between two polls while a step waits for a node.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The label of nodes that turnup made, and may delete when their host is gone.
pub(super) const MANAGED: &str = "turnup.dev/managed";
/// The annotation that says which taints are from us: others may have put theirs beside them.
const TAINTS: &str = "turnup.dev/taints";
/// Who says so to the API server, which takes away what this one does not say any more.
const MANAGER: &str = "--field-manager=turnup-register";

/// What keeps pods of users off a control-plane host.
pub(super) fn control_plane_taint() -> Taint {
    let key = "node-role.kubernetes.io/control-plane";
    Taint { key: key.into(), value: String::new(), effect: "NoSchedule".into() }
}

/// Each node by its name.
type Look = BTreeMap<String, NodeMetadata>;

/// What a Node carries, or is to carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeMetadata {
    /// Labels.
    pub(super) labels: BTreeMap<String, String>,
    /// Taints of ours.
    pub(super) taints: Vec<Taint>,
    /// The annotation about them; empty for none.
    noted: String,
}

impl NodeMetadata {
    /// What a Node is to carry.
    pub(super) fn new(labels: BTreeMap<String, String>, mut taints: Vec<Taint>) -> Self {
        taints.sort();
        let noted = taints.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Self { labels, taints, noted }
    }

    /// What a Node carries.
    fn of(node: &Value) -> Self {
        let metadata = &node["metadata"];
        let pairs = |value: &Value| {
            let pairs = value.as_object().into_iter().flatten();
            pairs.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let taint = |taint: &Value| Taint {
            key: text(&taint["key"]),
            value: text(&taint["value"]),
            effect: text(&taint["effect"]),
        };
        let noted = text(&metadata["annotations"][TAINTS]);
        Self { labels: pairs(&metadata["labels"]), taints: taints.map(taint).collect(), noted }
    }

    /// Whether a node that carries this needs nothing of what is wanted, and has nothing of ours
    /// that is not wanted any more.
    fn has(&self, wanted: &Self) -> bool {
        let of_role = control_plane_taint();
        wanted.labels.iter().all(|(key, value)| self.labels.get(key) == Some(value))
            && wanted.taints.iter().all(|taint| self.taints.contains(taint))
            && (wanted.taints.contains(&of_role) || !self.taints.contains(&of_role))
            && self.noted == wanted.noted
    }

    /// What `kubectl taint` is to be told, so that a node that carries this has the taints that are
    /// wanted.
    fn taint_arguments(&self, wanted: &Self) -> Vec<String> {
        let same = |one: &Taint, other: &Taint| one.key == other.key && one.effect == other.effect;
        // A kubelet registers a new control-plane node with the taint of its role, before any note.
        let noted = self.noted.split(',').filter_map(|text| text.parse::<Taint>().ok());
        let ours: BTreeSet<Taint> = noted.chain([control_plane_taint()]).collect();
        let there = |taint: &Taint| self.taints.iter().any(|one| same(one, taint));
        let gone = ours.into_iter().filter(|taint| there(taint) && !wanted.taints.iter().any(|one| same(one, taint)));
        let gone = gone.map(|taint| format!("{}:{}-", taint.key, taint.effect));
        let new = wanted.taints.iter().filter(|taint| !self.taints.contains(taint));
        gone.chain(new.map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect))).collect()
    }
}

/// The nodes as they were at the last look.
#[derive(Default)]
pub(super) struct Nodes {
    last: Latest<Look>,
}

impl Nodes {
    /// Whether the node is there and carries this.
    pub(super) fn carries(&self, kubectl: &Kubectl, node: &str, wanted: &NodeMetadata) -> Result<bool> {
        Ok(self.look(kubectl)?.get(node).is_some_and(|metadata| metadata.has(wanted)))
    }

    /// Whether the node is there.
    pub(super) fn knows(&self, kubectl: &Kubectl, node: &str) -> Result<bool> {
        Ok(self.look(kubectl)?.contains_key(node))
    }

    fn look(&self, kubectl: &Kubectl) -> Result<Arc<Look>> {
        self.last.get(CACHE_LIFETIME, || Ok(read(&kubectl.get(&["nodes"])?)))
    }
}

/// Waits until one node is there, and returns what it carries. An API server that is away for a
/// moment is waited for as well; any other error ends the wait.
///
/// It asks for this node alone: hosts join one after another, and a list of all for each of them
/// would grow with the square.
pub(super) fn wait_for(kubectl: &Kubectl, node: &str, cx: &Cx) -> Result<NodeMetadata> {
    loop {
        let why = match kubectl.run(&["get", "node", node, "--output=json", "--ignore-not-found"]) {
            Ok(text) if !text.trim().is_empty() => {
                return Ok(NodeMetadata::of(&serde_json::from_str(&text).context("kubectl get did not print JSON")?));
            }
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
        cx.sleep(POLL_INTERVAL)?;
    }
}

/// Puts labels and taints on a node that carries `now`, and takes away those that an earlier run
/// put there and that are no longer configured.
pub(super) fn mark(kubectl: &Kubectl, node: &str, now: &NodeMetadata, wanted: &NodeMetadata) -> Result<()> {
    // The note comes last: of a run that was killed before it, the next one finds the old note and
    // what is left to do.
    let taints = now.taint_arguments(wanted);
    if !taints.is_empty() {
        let words = ["taint", "node", node].into_iter().chain(taints.iter().map(String::as_str));
        kubectl.run(&words.chain(["--overwrite"]).collect::<Vec<_>>())?;
    }
    let annotations = (!wanted.noted.is_empty()).then_some((TAINTS, &wanted.noted));
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node,
            "labels": wanted.labels,
            "annotations": annotations.into_iter().collect::<BTreeMap<_, _>>(),
        },
    });
    let apply = ["apply", "--server-side", MANAGER, "--force-conflicts", "--filename=-"];
    kubectl.run_with(&apply, &object.to_string()).map(drop)
}

fn read(list: &Value) -> Look {
    let nodes = list["items"].as_array().into_iter().flatten();
    nodes.filter_map(|node| Some((node["metadata"]["name"].as_str()?.to_owned(), NodeMetadata::of(node)))).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn taints(texts: &[&str]) -> Vec<Taint> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn wanted(label: &str, texts: &[&str]) -> NodeMetadata {
        NodeMetadata::new(BTreeMap::from([("pool".to_owned(), label.to_owned())]), taints(texts))
    }

    #[test]
    fn what_nodes_carry_is_read_from_a_list() {
        let list = json!({"items": [
            {"metadata": {"name": "a", "labels": {"pool": "x"}, "annotations": {TAINTS: "gpu=yes:NoSchedule"}},
             "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                                 {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}},
            {"metadata": {"name": "b"}}]});
        let nodes = read(&list);
        assert!(nodes["a"].has(&wanted("x", &["gpu=yes:NoSchedule"])));
        assert!(!nodes["a"].has(&wanted("y", &["gpu=yes:NoSchedule"])), "another value");
        assert!(!nodes["a"].has(&wanted("x", &["gpu=no:NoSchedule"])), "another taint");
        assert!(!nodes["a"].has(&wanted("x", &[])), "a taint that is no longer configured");
        assert_eq!(nodes["b"], NodeMetadata::default());
        assert!(!nodes["b"].has(&wanted("x", &[])));
    }

    #[test]
    fn only_taints_of_ours_are_taken_away() {
        let now = NodeMetadata {
            taints: taints(&["a=1:NoSchedule", "b:NoExecute", "theirs=x:NoSchedule"]),
            noted: "a=1:NoSchedule,b:NoExecute,gone:NoSchedule".into(),
            ..NodeMetadata::default()
        };
        let arguments = |texts: &[&str]| now.taint_arguments(&wanted("x", texts));
        assert_eq!(arguments(&["a=1:NoSchedule", "b:NoExecute"]), Vec::<String>::new());
        assert_eq!(
            arguments(&["a=2:NoSchedule"]),
            ["b:NoExecute-", "a=2:NoSchedule"],
            "one goes, one has another value"
        );
        assert_eq!(arguments(&[]), ["a:NoSchedule-", "b:NoExecute-"]);
        assert_eq!(NodeMetadata::default().taint_arguments(&wanted("x", &["c:NoExecute"])), ["c=:NoExecute"]);
    }

    #[test]
    fn a_control_plane_node_that_runs_pods_loses_the_taint_that_its_kubelet_registered() {
        let taint = control_plane_taint();
        let now = NodeMetadata { taints: vec![taint.clone()], ..NodeMetadata::default() };
        let free = NodeMetadata::new(BTreeMap::new(), Vec::new());
        let kept = NodeMetadata::new(BTreeMap::new(), vec![taint]);
        assert!(!now.has(&free));
        assert_eq!(now.taint_arguments(&free), ["node-role.kubernetes.io/control-plane:NoSchedule-"]);
        assert_eq!(now.taint_arguments(&kept), Vec::<String>::new());
        assert_eq!(free.taint_arguments(&kept), ["node-role.kubernetes.io/control-plane=:NoSchedule"]);
    }
}
