//! Kinds that addons define, and their objects, which are users'. The API server deletes all
//! objects of a kind with its definition, so turnup removes no definition that has any.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bootstrap::{Kubectl, find_condition};
use crate::cluster::{Addon, Cluster};
use crate::error::{Error, Result};

use super::early_look::judge_early;
use super::object::{ADDON, DEFINITION, Object};
use super::prunable::MANAGED_BY;
use super::render::file_of;

/// What defines kinds, as kubectl lists it.
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// A kind that an addon has defined.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DefinedKind {
    /// As kubectl lists its objects: `volumesnapshots.snapshot.storage.k8s.io`.
    name: String,
    /// The addon that has brought it.
    addon: String,
    /// `VolumeSnapshot`.
    kind: String,
    is_namespaced: bool,
}

impl DefinedKind {
    fn parse(item: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metadata, spec) = (&item["metadata"], &item["spec"]);
        Self {
            name: text(&metadata["name"]),
            addon: text(&metadata["labels"][ADDON]),
            kind: text(&spec["names"]["kind"]),
            is_namespaced: spec["scope"] == "Namespaced",
        }
    }
}

/// The definitions of addons that the cluster has, and serves: without that there are no objects.
fn find_definitions(kubectl: &Kubectl) -> Result<Vec<DefinedKind>> {
    let selector = format!("--selector={}={},{ADDON}", MANAGED_BY.0, MANAGED_BY.1);
    let list = kubectl.get(&[DEFINITIONS, &selector])?;
    let served = list["items"].as_array().into_iter().flatten().filter(|item| is_served(item));
    Ok(served.map(DefinedKind::parse).collect())
}

/// Whether the API server serves what an object defines.
pub(super) fn is_served(item: &Value) -> bool {
    item["kind"] == DEFINITION && find_condition(item, "Established").is_some_and(|found| found["status"] == "True")
}

/// An error while a definition among these objects, which are to go, has objects itself.
pub(super) fn require_removable(cluster: &Cluster, kubectl: &Kubectl, going: &[Object]) -> Result<()> {
    let names: BTreeSet<&str> = names_of(going).collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut going = find_definitions(kubectl)?;
    going.retain(|definition| names.contains(definition.name.as_str()));
    judge(&going, &list_objects(kubectl, &going)?, &Addon::all(&cluster.source)?)
}

/// Waits until the API server takes objects of the kinds that are defined among these.
pub(super) fn wait_until_served<'o>(kubectl: &Kubectl, applied: impl IntoIterator<Item = &'o Object>) -> Result<()> {
    let names: Vec<&str> = names_of(applied).collect();
    if names.is_empty() {
        return Ok(());
    }
    let args = ["wait", "--for=condition=Established", "--timeout=60s", DEFINITIONS];
    kubectl.run(&[&args[..], &names].concat()).map(drop)
}

fn names_of<'o>(objects: impl IntoIterator<Item = &'o Object>) -> impl Iterator<Item = &'o str> {
    objects.into_iter().filter(|object| object.kind == DEFINITION).map(|object| object.name.as_str())
}

/// All objects of these kinds.
fn list_objects(kubectl: &Kubectl, kinds: &[DefinedKind]) -> Result<Value> {
    if kinds.is_empty() {
        return Ok(Value::Null);
    }
    let names: Vec<&str> = kinds.iter().map(|definition| definition.name.as_str()).collect();
    kubectl.get(&[names.join(",").as_str(), "--all-namespaces"])
}

/// Whether an addon has brought the object. It is not rendered without its kind, and so goes first.
fn is_of_addon(item: &Value) -> bool {
    let labels = &item["metadata"]["labels"];
    labels[MANAGED_BY.0] == MANAGED_BY.1 && labels[ADDON].is_string()
}

/// An error while one of these kinds, whose definitions are to go, has objects.
fn judge(going: &[DefinedKind], list: &Value, addons: &[Addon]) -> Result<()> {
    let items: Vec<&Value> = list["items"].as_array().into_iter().flatten().filter(|item| !is_of_addon(item)).collect();
    if items.is_empty() {
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let describe = |item: &&Value| match item["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{} {namespace}/{}", text(&item["kind"]), text(&item["metadata"]["name"])),
        None => format!("{} {}", text(&item["kind"]), text(&item["metadata"]["name"])),
    };
    let objects: BTreeSet<String> = items.iter().map(describe).collect();
    let mut used: Vec<&DefinedKind> =
        going.iter().filter(|definition| items.iter().any(|item| item["kind"] == definition.kind.as_str())).collect();
    // What is bound to others goes with them.
    used.sort_by_key(|definition| (!definition.is_namespaced, &definition.name));
    let names: Vec<&str> = used.iter().map(|definition| definition.name.as_str()).collect();
    let of: BTreeSet<&str> = used.iter().map(|definition| definition.addon.as_str()).collect();
    let of: Vec<&str> = of.into_iter().collect();
    let message = format!(
        "{} of kinds that the addon {} defines would be deleted with it; nothing was changed",
        if objects.len() == 1 { "an object".to_owned() } else { format!("{} objects", objects.len()) },
        of.join(" and ")
    );
    let delete = format!("kubectl delete {} --all --all-namespaces", names.join(","));
    let switches = addons.iter().filter(|addon| of.contains(&addon.name.as_str()));
    let keep: Vec<String> = switches.map(|addon| format!("{}=y", addon.switch)).collect();
    let hint = if keep.is_empty() {
        delete
    } else {
        format!("turnup config set {}; or, to lose them: {delete}", keep.join(" "))
    };
    Err(Error::precondition(message).evidence_of(objects).hint(hint))
}

/// An error where the addons phase would refuse to remove definitions of addons that are off,
/// before an earlier phase takes their images away from hosts. It asks the cluster only where such
/// an addon was on; a cluster that does not answer is asked again by the step that removes them.
pub fn require_unused_definitions(cluster: &Cluster) -> Result<()> {
    let settings = &cluster.settings.addons;
    let addons = Addon::all(&cluster.source)?;
    let was_on = |addon: &&Addon| {
        let manifest = cluster.store.read(file_of(&addon.name)).ok().flatten();
        manifest.is_some_and(|text| String::from_utf8_lossy(&text).contains(DEFINITION))
    };
    let off: Vec<&str> =
        addons.iter().filter(|addon| !addon.is_on(settings)).filter(was_on).map(|addon| addon.name.as_str()).collect();
    if off.is_empty() || !settings.prune {
        return Ok(());
    }
    judge_early(cluster, |kubectl| {
        let mut going = find_definitions(kubectl)?;
        going.retain(|definition| off.contains(&definition.addon.as_str()));
        Ok(judge(&going, &list_objects(kubectl, &going)?, &addons))
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;
    use crate::config::TreeSource;
    use crate::error::Class;

    fn definition(kind: &str, is_namespaced: bool) -> DefinedKind {
        let plural = format!("{}s.snapshot.storage.k8s.io", kind.to_lowercase());
        DefinedKind::parse(&json!({
            "metadata": {"name": plural, "labels": {ADDON: "snapshot-controller"}},
            "spec": {"names": {"kind": kind}, "scope": if is_namespaced { "Namespaced" } else { "Cluster" }},
        }))
    }

    fn going() -> [DefinedKind; 3] {
        [
            definition("VolumeSnapshotClass", false),
            definition("VolumeSnapshotContent", false),
            definition("VolumeSnapshot", true),
        ]
    }

    fn object(kind: &str, namespace: Option<&str>, name: &str) -> Value {
        json!({"kind": kind, "metadata": {"namespace": namespace, "name": name}})
    }

    #[test]
    fn a_definition_goes_only_without_objects() {
        let addons = Addon::all(&TreeSource::embedded()).unwrap();
        let judge = |objects: &[Value]| judge(&going(), &json!({"items": objects}), &addons);
        judge(&[]).unwrap();
        let objects = [
            object("VolumeSnapshotContent", None, "snapcontent-1"),
            object("VolumeSnapshot", Some("shop"), "monday"),
            object("VolumeSnapshot", Some("default"), "monday"),
        ];
        insta::assert_snapshot!(judge(&objects).unwrap_err().render(), @r"
        error: 3 objects of kinds that the addon snapshot-controller defines would be deleted with it; nothing was changed
          | VolumeSnapshot default/monday
          | VolumeSnapshot shop/monday
          | VolumeSnapshotContent snapcontent-1
        next: turnup config set phase3.snapshots=y; or, to lose them: kubectl delete volumesnapshots.snapshot.storage.k8s.io,volumesnapshotcontents.snapshot.storage.k8s.io --all --all-namespaces
        ");
        let class = judge(&[object("VolumeSnapshotClass", None, "fast")]).unwrap_err();
        assert_eq!(class.class(), Class::Precondition);
        assert!(class.message().starts_with("an object of kinds"), "{}", class.message());
        let mut own = object("VolumeSnapshotClass", None, "fast");
        own["metadata"]["labels"] = json!({MANAGED_BY.0: MANAGED_BY.1, ADDON: "other"});
        judge(&[own]).unwrap();
    }
}
