//! Manifests of the user's own: what is in them, and what the cluster remembers of them.
//!
//! Their text goes to the API server as it is. An inventory in the cluster, a `ConfigMap` for each
//! set, names every object that a set has ever made and not yet lost, so that those that leave it
//! are found in any namespace and of any kind. Pure but for kustomize.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::bootstrap::kubectl;
use crate::cluster::{Cluster, ManifestSource};
use crate::error::{Error, Result};

use super::object::{HASH, Object, SET};
use super::render::Rendered;

/// All manifests of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnSet {
    pub(super) name: &'static str,
    /// The setting that names the manifests.
    pub(super) setting: &'static str,
    pub(super) text: String,
    /// The sha256 of the text.
    pub(super) hash: String,
    pub(super) objects: BTreeSet<OwnObject>,
}

/// Those of a network plugin: they come before all addons.
pub(super) const NETWORK: &str = "network";
/// All others: they come after the addons.
pub(super) const OWN: &str = "own";

/// An object of any namespace and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnObject {
    pub(super) group: String,
    pub(super) kind: String,
    /// `default` where the manifest names none; of no meaning for objects without one.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What the inventory in the cluster says of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    /// The hash of the text that was applied whole; empty while that is under way.
    pub(super) hash: String,
    pub(super) objects: BTreeSet<OwnObject>,
}

impl OwnObject {
    /// The objects of a manifest, as [`Object::read`] finds them.
    pub(super) fn read(manifest: &str) -> std::result::Result<Vec<(Self, Value)>, String> {
        let found = Object::read(manifest)?;
        Ok(found.into_iter().map(|(object, value)| (Self::new(&object, &value), value)).collect())
    }

    pub(super) fn new(object: &Object, manifest: &Value) -> Self {
        let namespace = manifest["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        Self {
            group: object.group.clone(),
            kind: object.kind.clone(),
            namespace: namespace.unwrap_or("default").to_owned(),
            name: object.name.clone(),
        }
    }

    /// How kubectl is told about it: `deployment.apps/web`.
    pub(super) fn argument(&self) -> String {
        self.object().argument()
    }

    /// All objects of its kind, as kubectl is asked for them: `deployment.apps`.
    pub(super) fn resource(&self) -> String {
        self.object().resource()
    }

    fn object(&self) -> Object {
        Object { group: self.group.clone(), kind: self.kind.clone(), name: self.name.clone() }
    }

    /// As `kubectl diff` names it in a plan.
    pub(super) fn short(&self) -> String {
        self.object().to_string()
    }

    pub(super) fn is_kind(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

impl fmt::Display for OwnObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl Recorded {
    /// The inventory of a set, from a `ConfigMap`; with the set's name.
    pub(super) fn parse(item: &Value) -> Option<(String, Self)> {
        let set = item["metadata"]["labels"][SET].as_str().filter(|_| item["kind"] == "ConfigMap")?;
        let objects = serde_json::from_str(item["data"]["objects"].as_str().unwrap_or_default()).unwrap_or_default();
        let hash = item["metadata"]["annotations"][HASH].as_str().unwrap_or_default().to_owned();
        Some((set.to_owned(), Self { hash, objects }))
    }

    /// The `ConfigMap` of a set with this inventory.
    pub(super) fn config_map(&self, set: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": config_map_name(set),
                "namespace": "kube-system",
                "labels": {"app.kubernetes.io/managed-by": "turnup", SET: set},
                "annotations": {HASH: self.hash},
            },
            "data": {"objects": json!(self.objects).to_string()},
        })
    }
}

/// The name of the inventory of a set.
pub(super) fn config_map_name(set: &str) -> String {
    format!("turnup-{set}-manifests")
}

impl OwnSet {
    /// Where the manifests lie below the cluster's directory.
    pub(super) fn file(&self) -> String {
        format!("addons/{}-manifests.yaml", self.name)
    }

    /// The set of these texts, each with the place that it is from.
    fn new(name: &'static str, setting: &'static str, texts: &[(String, String)]) -> Result<Self> {
        let mut objects = BTreeSet::new();
        for (place, text) in texts {
            let found = Object::read(text).map_err(|why| Error::config(format!("{setting}: {place}: {why}")))?;
            for (object, manifest) in found {
                let object = OwnObject::new(&object, &manifest);
                if objects.contains(&object) {
                    return Err(Error::config(format!("{setting}: {place}: {object} is there twice")));
                }
                objects.insert(object);
            }
        }
        let texts: Vec<&str> = texts.iter().map(|(_, text)| text.trim_end()).filter(|text| !text.is_empty()).collect();
        let text = if texts.is_empty() { String::new() } else { texts.join("\n---\n") + "\n" };
        let hash = hex::encode(Sha256::digest(&text));
        Ok(Self { name, setting, text, hash, objects })
    }

    /// Whether the cluster has it in exactly this form, as far as its inventory says.
    pub(super) fn is_recorded(&self, recorded: Option<&Recorded>, prune: bool) -> bool {
        match recorded {
            None => self.objects.is_empty(),
            Some(_) if self.objects.is_empty() => !prune,
            Some(recorded) => {
                let left = recorded.objects.difference(&self.objects).next();
                recorded.hash == self.hash && (!prune || left.is_none())
            }
        }
    }
}

/// The sets of a cluster, those before the addons first; nothing while kubectl, which builds
/// kustomizations, is not there yet.
pub(super) fn load(cluster: &Cluster) -> Result<Option<Vec<OwnSet>>> {
    let manifests = &cluster.settings.own_manifests;
    let mut sets = Vec::new();
    for (name, setting, sources) in
        [(NETWORK, "phase2.network.cni_manifests", &manifests.network), (OWN, "phase3.manifests", &manifests.own)]
    {
        let mut texts = Vec::new();
        for source in sources {
            match source {
                ManifestSource::Text { place, text } => texts.push((place.clone(), text.clone())),
                ManifestSource::Kustomization { dir } => {
                    let there = cluster.resolved().and_then(|resolved| resolved.path(&cluster.cache()?, "kubectl"));
                    if !there.is_ok_and(|program| program.is_file()) {
                        return Ok(None);
                    }
                    let place = dir.display().to_string();
                    let built = kubectl(cluster)?.run(&["kustomize", &place]);
                    texts.push((place, built.map_err(|error| error.hint("turnup config explain phase3.manifests"))?));
                }
            }
        }
        sets.push(OwnSet::new(name, setting, &texts)?);
    }
    Ok(Some(sets))
}

/// An object has one owner: an addon or a set.
pub(super) fn refuse_shared(manifests: &[Rendered], sets: &[OwnSet]) -> Result<()> {
    let mut owners: BTreeMap<&OwnObject, &str> = BTreeMap::new();
    for set in sets {
        for object in &set.objects {
            let of = |manifest: &&Rendered| {
                let is_same =
                    |one: &Object| one.home().is_none_or(|home| object.namespace == home) && *one == object.object();
                manifest.objects.iter().any(is_same)
            };
            if let Some(addon) = manifests.iter().find(of) {
                let message = format!("{}: {object} belongs to the addon {}", set.setting, addon.name);
                return Err(Error::config(message).hint("give it another name, or switch the addon off"));
            }
            if let Some(other) = owners.insert(object, set.setting) {
                return Err(Error::config(format!("{}: {object} is in {other} as well", set.setting)));
            }
        }
    }
    Ok(())
}

/// The kinds that are waited for.
const AWAITED: [&str; 3] = ["Deployment", "DaemonSet", "StatefulSet"];
/// The same, as kubectl takes them.
pub(super) const WORKLOADS: &str = "deployments.apps,daemonsets.apps,statefulsets.apps";

impl OwnSet {
    pub(super) fn has_workloads(&self) -> bool {
        self.objects.iter().any(|object| AWAITED.iter().any(|kind| object.is_kind("apps", kind)))
    }

    /// One line for each workload that is not rolled out, of a list of all of them.
    pub(super) fn missing(&self, list: &Value) -> Vec<String> {
        let items = || list["items"].as_array().into_iter().flatten();
        let wanted = self.objects.iter().filter(|object| AWAITED.iter().any(|kind| object.is_kind("apps", kind)));
        let judge = |object: &OwnObject| {
            let is_it = |item: &&Value| {
                let metadata = &item["metadata"];
                item["kind"] == object.kind.as_str()
                    && metadata["name"] == object.name.as_str()
                    && metadata["namespace"] == object.namespace.as_str()
            };
            match items().find(is_it) {
                None => Some(format!("{object} is not in the cluster")),
                Some(item) => behind(item).map(|why| format!("{object}: {why}")),
            }
        };
        wanted.filter_map(judge).collect()
    }
}

/// What a workload lacks, in its own numbers.
fn behind(item: &Value) -> Option<String> {
    let (metadata, spec, status) = (&item["metadata"], &item["spec"], &item["status"]);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    if number(&status["observedGeneration"]) < number(&metadata["generation"]) {
        return Some("its controller has not seen it yet".to_owned());
    }
    let (wanted, updated, available) = if item["kind"] == "DaemonSet" {
        let wanted = number(&status["desiredNumberScheduled"]);
        (wanted, number(&status["updatedNumberScheduled"]), number(&status["numberAvailable"]))
    } else {
        let wanted = spec["replicas"].as_u64().unwrap_or(1);
        (wanted, number(&status["updatedReplicas"]), number(&status["availableReplicas"]))
    };
    let have = updated.min(available);
    (have < wanted).then(|| format!("{have} of {wanted} pods are available"))
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
