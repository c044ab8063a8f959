//! Who in the cluster still knows other authorities of the API than those of now: pods that started
//! before. kubelet writes `kube-root-ca.crt` into their volumes again, and most programs read it
//! once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::error::Result;

use super::api::{Kubectl, has_ended};

/// Where the authorities are in every namespace, for its pods.
pub const CONFIG_MAP: &str = "kube-root-ca.crt";
/// The key in it.
const KEY: &str = "ca.crt";
/// Kubernetes' controller that writes it.
const WRITER: &str = "kube-controller-manager";

/// Pods of one owner that started before the authorities of now were there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AuthorityHolder {
    namespace: String,
    /// As kubectl takes it: `deployment/web`.
    owner: String,
    pods: usize,
}

impl AuthorityHolder {
    /// Whose they are, and what starts them again.
    pub(super) fn describe(&self) -> String {
        let Self { namespace, owner, pods } = self;
        let restarts = ["deployment/", "daemonset/", "statefulset/"].iter().any(|kind| owner.starts_with(kind));
        let verb = if restarts { "rollout restart" } else { "delete" };
        let pods = if *pods == 1 { "1 pod".to_owned() } else { format!("{pods} pods") };
        format!("{namespace}: {owner} ({pods}): kubectl --namespace {namespace} {verb} {owner}")
    }
}

/// All of them, by namespace and owner. Jobs and pods without an owner are themselves.
pub(super) fn find(kubectl: &Kubectl) -> Result<Vec<AuthorityHolder>> {
    let maps = kubectl.get(&[
        "configmaps",
        "--all-namespaces",
        &format!("--field-selector=metadata.name={CONFIG_MAP}"),
        "--show-managed-fields",
    ])?;
    Ok(judge(&kubectl.get(&["pods", "--all-namespaces"])?, &written(&maps)))
}

/// Whether these authorities, in PEM, and no others are what pods of the namespace that start now
/// get.
#[must_use]
pub fn knows_exactly(map: &Value, bundle: &str) -> bool {
    map["data"][KEY].as_str().is_some_and(|text| text.trim() == bundle.trim())
}

/// When the authorities of each namespace were written last.
fn written(maps: &Value) -> BTreeMap<&str, Timestamp> {
    let items = maps["items"].as_array().into_iter().flatten().filter(|map| map["metadata"]["name"] == CONFIG_MAP);
    let times = items.filter_map(|map| {
        let fields = map["metadata"]["managedFields"].as_array().into_iter().flatten();
        let own = fields.filter(|field| field["manager"] == WRITER);
        let time = own.filter_map(|field| field["time"].as_str()?.parse().ok()).max()?;
        Some((map["metadata"]["namespace"].as_str()?, time))
    });
    times.collect()
}

fn judge(pods: &Value, written: &BTreeMap<&str, Timestamp>) -> Vec<AuthorityHolder> {
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let metadata = &pod["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let start = metadata["creationTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
        let is_before = written.get(namespace).zip(start).is_some_and(|(written, start)| start < *written);
        if is_before && !has_ended(pod) && mounts_authorities(pod) {
            *found.entry((namespace.to_owned(), owner(pod))).or_default() += 1;
        }
    }
    found.into_iter().map(|((namespace, owner), pods)| AuthorityHolder { namespace, owner, pods }).collect()
}

fn mounts_authorities(pod: &Value) -> bool {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let is_map = |map: &Value| map["name"] == CONFIG_MAP;
    volumes.into_iter().any(|volume| {
        let sources = volume["projected"]["sources"].as_array().into_iter().flatten();
        is_map(&volume["configMap"]) || sources.into_iter().any(|source| is_map(&source["configMap"]))
    })
}

/// What is started again with all of its pods: the Deployment behind a `ReplicaSet`.
fn owner(pod: &Value) -> String {
    let metadata = &pod["metadata"];
    let owners = metadata["ownerReferences"].as_array();
    let owner = owners.and_then(|all| all.iter().find(|owner| owner["controller"] == true).or_else(|| all.first()));
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let Some(owner) = owner else { return format!("pod/{}", text(metadata, "name")) };
    let name = text(owner, "name");
    let hash = metadata["labels"]["pod-template-hash"].as_str();
    match (owner["kind"].as_str(), hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-'))) {
        (Some("ReplicaSet"), Some(deployment)) => format!("deployment/{deployment}"),
        (Some(kind @ ("DaemonSet" | "StatefulSet")), _) => format!("{}/{name}", kind.to_lowercase()),
        _ => format!("pod/{}", text(metadata, "name")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_of_before_are_named_by_what_starts_them_again() {
        let pod = |name: &str, start: &str, owner: Value, phase: &str| {
            let sources = json!([{"serviceAccountToken": {}}, {"configMap": {"name": CONFIG_MAP}}]);
            json!({"metadata": {"namespace": "shop", "name": name, "creationTimestamp": start,
                    "labels": {"pod-template-hash": "5f6"}, "ownerReferences": owner},
                "spec": {"volumes": [{"projected": {"sources": sources}}]}, "status": {"phase": phase}})
        };
        let owned = |kind: &str, name: &str| json!([{"kind": kind, "name": name, "controller": true}]);
        let (before, after) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let mut plain = pod("plain", before, Value::Null, "Running");
        plain["spec"] = json!({});
        let pods = json!({"items": [
            pod("web-5f6-a", before, owned("ReplicaSet", "web-5f6"), "Running"),
            pod("web-5f6-b", before, owned("ReplicaSet", "web-5f6"), "Pending"),
            pod("web-5f6-c", after, owned("ReplicaSet", "web-5f6"), "Running"),
            pod("db-0", before, owned("StatefulSet", "db"), "Running"),
            pod("job-x", before, owned("Job", "job"), "Running"),
            pod("job-y", before, owned("Job", "job"), "Succeeded"),
            pod("alone", before, Value::Null, "Running"),
            plain,
        ]});
        let field = |manager: &str, time: &str| json!({"manager": manager, "time": time});
        let fields = json!([field(WRITER, "2026-01-01T12:00:00Z"), field("kubectl", "2026-01-03T00:00:00Z")]);
        let map = json!({"metadata": {"namespace": "shop", "name": CONFIG_MAP, "managedFields": fields},
            "data": {"ca.crt": "one\ntwo\n"}});
        let maps = json!({"items": [map, {"metadata": {"namespace": "shop", "name": "other"}}]});
        let found: Vec<String> = judge(&pods, &written(&maps)).iter().map(AuthorityHolder::describe).collect();
        assert_eq!(
            found,
            [
                "shop: deployment/web (2 pods): kubectl --namespace shop rollout restart deployment/web",
                "shop: pod/alone (1 pod): kubectl --namespace shop delete pod/alone",
                "shop: pod/job-x (1 pod): kubectl --namespace shop delete pod/job-x",
                "shop: statefulset/db (1 pod): kubectl --namespace shop rollout restart statefulset/db",
            ]
        );
        assert!(judge(&pods, &BTreeMap::new()).is_empty(), "no time, no judgement");
        assert!(knows_exactly(&map, "one\ntwo") && !knows_exactly(&map, "two"));
    }
}
