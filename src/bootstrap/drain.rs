//! Cordon, drain and uncordon of one Node. A cordon of ours carries an annotation, and no other one
//! is ever lifted. Which nodes are drained, and when, is decided in `rolling_update`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Class, Error, Result};
use crate::phase::Cx;

use super::api::{Kubectl, has_ended};
use super::condition::is_ready;

/// Says that turnup cordoned the Node, and will uncordon it.
pub(super) const CORDONED: &str = "turnup.dev/cordoned";
/// Says to a cluster autoscaler that it is not to end the machine.
const KEEP: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
/// Says that turnup said so.
const KEPT: &str = "turnup.dev/kept-from-autoscaler";
/// kubectl ends by its own limit first, which names the pods.
const GRACE: Duration = Duration::from_secs(30);
/// The label of pods of `turnup validate`, which end by themselves (`templates/validate`).
const PROBE: &str = "turnup.dev/probe";
/// So many pods are named.
const NAMED: usize = 8;

/// Whether a Node takes new pods of any kind: it is Ready, not cordoned, and has no taint that
/// keeps pods off.
fn takes_pods(node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    is_ready(node)
        && node["spec"]["unschedulable"] != true
        && !taints.any(|taint| taint["effect"] != "PreferNoSchedule")
}

/// Whether pods that leave this Node find another one.
pub(super) fn has_room(nodes: &Value, name: &str) -> bool {
    let mut others = nodes["items"].as_array().into_iter().flatten().filter(|node| node["metadata"]["name"] != name);
    others.any(takes_pods)
}

/// Cordons the Node and evicts its pods, as far as their `PodDisruptionBudgets` allow it within the
/// time. When they do not, the Node is as it was.
pub(super) fn drain(kubectl: &Kubectl, node: &str, timeout: Duration, force: bool, cx: &Cx) -> Result<()> {
    cordon(kubectl, node)?;
    cx.progress(format!("draining {node}"));
    let Err(error) = evict(kubectl, node, timeout, force, cx) else {
        cx.milestone(format!("{node} drained"));
        return Ok(());
    };
    if error.class() == Class::Interrupted {
        return Err(error);
    }
    uncordon(kubectl, node)?;
    Err(error)
}

/// An operator's cordon stays theirs.
pub(super) fn cordon(kubectl: &Kubectl, node: &str) -> Result<()> {
    match cordon_patch(&kubectl.get(&["node", node])?) {
        Some(patch) => kubectl.patch_node(node, &patch),
        None => Ok(()),
    }
}

/// A machine whose Node is being emptied looks unneeded to a cluster autoscaler, which would take
/// it out of its group: no other one would come in its place.
fn cordon_patch(node: &Value) -> Option<Value> {
    if node["spec"]["unschedulable"] == true {
        return None;
    }
    let mut annotations = json!({CORDONED: "update"});
    // One of the user's own stays theirs.
    if !node["metadata"]["annotations"][KEEP].is_string() {
        annotations[KEEP] = "true".into();
        annotations[KEPT] = "".into();
    }
    Some(json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": true}}))
}

/// Lifts a cordon of ours; whether there was one.
pub(super) fn uncordon(kubectl: &Kubectl, node: &str) -> Result<bool> {
    let found = kubectl.get(&["node", node, "--ignore-not-found"])?;
    match uncordon_patch(&found) {
        Some(patch) => kubectl.patch_node(node, &patch).map(|()| true),
        None => Ok(false),
    }
}

fn uncordon_patch(node: &Value) -> Option<Value> {
    let has = |annotation: &str| node["metadata"]["annotations"][annotation].is_string();
    if !has(CORDONED) {
        return None;
    }
    let mut annotations = json!({CORDONED: null});
    if has(KEPT) {
        annotations[KEEP] = Value::Null;
        annotations[KEPT] = Value::Null;
    }
    Some(json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": null}}))
}

fn evict(kubectl: &Kubectl, node: &str, timeout: Duration, force: bool, cx: &Cx) -> Result<()> {
    let asked = run_drain(kubectl, node, timeout, if force { &["--force"] } else { &[] }, cx);
    let Err(error) = asked else { return Ok(()) };
    if !force || error.class() == Class::Interrupted {
        return Err(explain(error, &find_left(kubectl, node), node, timeout));
    }
    cx.progress(format!("deleting the pods of {node} that did not go within {timeout:?}"));
    run_drain(kubectl, node, timeout, &["--force", "--disable-eviction"], cx)
}

fn run_drain(kubectl: &Kubectl, node: &str, timeout: Duration, more: &[&str], cx: &Cx) -> Result<()> {
    let timeout_flag = format!("--timeout={}s", timeout.as_secs());
    let selector = format!("--pod-selector=!{PROBE}");
    let args = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", &selector, &timeout_flag];
    let args: Vec<&str> = args.iter().chain(more).copied().collect();
    kubectl.command(&args).timeout(timeout + GRACE).log(cx.log_path()).succeed().map(drop)
}

/// The pods that a drain has to move and that are still there, as far as the API tells.
fn find_left(kubectl: &Kubectl, node: &str) -> Vec<String> {
    let selector = format!("--field-selector=spec.nodeName={node}");
    let pods = kubectl.get(&["pods", "--all-namespaces", &selector]).unwrap_or_default();
    list_movable(&pods)
}

/// `namespace/name` of pods that no `DaemonSet` and no static pod accounts for and that still run.
fn list_movable(pods: &Value) -> Vec<String> {
    let stays = |pod: &Value| {
        let metadata = &pod["metadata"];
        let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let is_probe = metadata["labels"][PROBE].is_string();
        has_ended(pod) || is_probe || owners.any(|owner| owner["kind"] == "DaemonSet" || owner["kind"] == "Node")
    };
    let name = |pod: &Value| {
        let part = |key: &str| pod["metadata"][key].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", part("namespace"), part("name"))
    };
    pods["items"].as_array().into_iter().flatten().filter(|pod| !stays(pod)).map(name).collect()
}

/// What an operator needs to know of pods that stay.
fn explain(error: Error, left: &[String], node: &str, timeout: Duration) -> Error {
    if error.class() == Class::Interrupted || left.is_empty() {
        return error;
    }
    // kubectl evicts nothing while there is a pod that nothing replaces.
    let is_bare = error.evidence_lines().iter().any(|line| line.contains("declare no controller"));
    let why = if is_bare { "cannot all be evicted".to_owned() } else { format!("did not go within {timeout:?}") };
    let message = format!("the pods of {node} {why}, {} are left; the node is as it was", left.len());
    let mut told = Error::precondition(message);
    for pod in left.iter().take(NAMED) {
        told = told.evidence(format!("pod {pod}"));
    }
    if left.len() > NAMED {
        told = told.evidence(format!("and {} more", left.len() - NAMED));
    }
    let words = ["disruption budget", "declare no controller", "cannot delete"];
    let why = error.evidence_lines().iter().filter(|line| words.iter().any(|word| line.contains(word)));
    told = why.take(NAMED).fold(told, Error::evidence);
    told.hint("kubectl get poddisruptionbudgets --all-namespaces (make room, or delete pods that nothing replaces); or: turnup up --set phase2.update.force_drain=y")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn node(name: &str, ready: &str, spec: &Value) -> Value {
        json!({"metadata": {"name": name}, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": ready}]}})
    }

    #[test]
    fn pods_find_room_on_another_node_that_takes_them() {
        let taint = |effect: &str| json!({"taints": [{"key": "k", "effect": effect}]});
        let room = |others: &[Value]| {
            let mut nodes = vec![node("w0", "True", &json!({}))];
            nodes.extend_from_slice(others);
            has_room(&json!({"items": nodes}), "w0")
        };
        assert!(!room(&[]), "the node itself is none");
        assert!(room(&[node("w1", "True", &json!({}))]));
        assert!(room(&[node("w1", "True", &taint("PreferNoSchedule"))]));
        for other in [
            node("w1", "Unknown", &json!({})),
            node("w1", "True", &json!({"unschedulable": true})),
            node("cp", "True", &taint("NoSchedule")),
            node("w1", "True", &taint("NoExecute")),
        ] {
            assert!(!room(&[other]));
        }
    }

    #[test]
    fn an_autoscaler_leaves_a_cordoned_node_alone_and_the_users_word_stays() {
        let after = |mut node: Value, patch: &Value| {
            for (name, value) in patch["metadata"]["annotations"].as_object().unwrap() {
                let annotations = node["metadata"]["annotations"].as_object_mut().unwrap();
                if value.is_null() {
                    annotations.remove(name)
                } else {
                    annotations.insert(name.clone(), value.clone())
                };
            }
            node["spec"]["unschedulable"] = patch["spec"]["unschedulable"].clone();
            node
        };
        for own in [json!({}), json!({KEEP: "true"}), json!({KEEP: "false"})] {
            let before = json!({"metadata": {"annotations": own}, "spec": {}});
            let cordoned = after(before.clone(), &cordon_patch(&before).unwrap());
            let expected = own.get(KEEP).cloned().unwrap_or_else(|| "true".into());
            assert_eq!(cordoned["metadata"]["annotations"][KEEP], expected);
            assert!(cordon_patch(&cordoned).is_none(), "it is cordoned");
            let lifted = after(cordoned.clone(), &uncordon_patch(&cordoned).unwrap());
            assert_eq!(lifted["metadata"]["annotations"], own);
        }
        let operators = json!({"metadata": {}, "spec": {"unschedulable": true}});
        assert!(cordon_patch(&operators).is_none() && uncordon_patch(&operators).is_none());
    }

    #[test]
    fn pods_that_stay_are_named_with_the_ways_out() {
        let pod = |name: &str, owner: &str, phase: &str| {
            let owners = json!([{"kind": owner}]);
            json!({"metadata": {"namespace": "shop", "name": name, "ownerReferences": owners}, "status": {"phase": phase}})
        };
        let pods = json!({"items": [
            pod("db-0", "StatefulSet", "Running"), pod("proxy", "DaemonSet", "Running"), pod("etcd", "Node", "Running"),
            pod("job", "Job", "Succeeded"), {"metadata": {"namespace": "shop", "name": "bare"}},
            {"metadata": {"namespace": "turnup-validate-1", "name": "probe-0", "labels": {PROBE: ""}}}]});
        let left = list_movable(&pods);
        assert_eq!(left, ["shop/db-0", "shop/bare"]);
        let error = Error::permanent("kubectl drain failed")
            .evidence("error when evicting pods/\"db-0\" -n \"shop\" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.")
            .evidence("There are pending pods in node \"w0\" when an error occurred");
        insta::assert_snapshot!(explain(error, &left, "w0", Duration::from_mins(10)).render());
        let bare =
            Error::permanent("x").evidence("cannot delete Pods that declare no controller (use --force): shop/bare");
        let told = explain(bare, &left, "w0", Duration::from_mins(10));
        assert!(told.message().starts_with("the pods of w0 cannot all be evicted, 2 are left"), "{}", told.message());
        let many: Vec<String> = (0..10).map(|at| format!("shop/p{at}")).collect();
        let error = explain(Error::permanent("x"), &many, "w0", Duration::from_secs(5));
        assert_eq!(error.evidence_lines().last().unwrap(), "and 2 more");
        let stopped = explain(Error::new(Class::Interrupted, "stopped"), &many, "w0", Duration::from_secs(5));
        assert_eq!(stopped.class(), Class::Interrupted);
    }
}
