//! The identity of a Kubernetes object, from a manifest's text or from the API's JSON.

use std::fmt;

use serde_json::{Value, json};

use crate::error::{Context as _, Result};

/// The label that names the addon to which an object belongs.
pub(super) const ADDON: &str = "turnup.dev/addon";

/// The annotation that records the hash of the manifest of an addon, or of a set.
pub(super) const HASH: &str = "turnup.dev/hash";
/// The label of an inventory of the user's own manifests: which set it is of.
pub(super) const SET: &str = "turnup.dev/manifests";

/// On everything that the cluster keeps for the addon-manager: its name, or `lease`.
pub(super) const MANAGER: &str = "turnup.dev/addon-manager";

/// The namespace of nearly all objects of addons.
pub(super) const SYSTEM: &str = "kube-system";
/// All namespaces in which addons have objects.
pub(super) const HOMES: [&str; 2] = [SYSTEM, "default"];
/// Kinds of addons without a namespace.
const CLUSTER_SCOPED: [&str; 13] = [
    "APIService",
    DRIVER,
    "ClusterRole",
    "ClusterRoleBinding",
    DEFINITION,
    "GatewayClass",
    "IngressClass",
    POLICIES[0],
    POLICIES[1],
    WEBHOOKS[0],
    WEBHOOKS[1],
    "StorageClass",
    "VolumeSnapshotClass",
];

/// Tells kubelets and controllers of a CSI driver, which has its name.
pub(super) const DRIVER: &str = "CSIDriver";
/// Defines a kind.
pub(super) const DEFINITION: &str = "CustomResourceDefinition";
/// What a controller writes for itself: which of several pods acts, the keys of a webhook. The
/// addon's manifest has such an object alone so that it goes with the addon.
pub(super) const HELD: [&str; 2] = [LEASE, SECRET];
/// Says which of several pods acts.
pub(super) const LEASE: &str = "Lease";
/// Holds keys.
pub(super) const SECRET: &str = "Secret";
/// Have the API server ask a pod about objects of some kinds.
pub(super) const WEBHOOKS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Refuse what some may otherwise do.
const POLICIES: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

/// Kinds without pods whose objects are looked at all the same: they decide what others may do, or
/// no pod starts without them.
pub(super) const LISTED: [&str; 6] = [DEFINITION, SECRET, POLICIES[0], POLICIES[1], WEBHOOKS[0], WEBHOOKS[1]];

/// One object; where it is an addon's, its kind decides about its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// `apps`, empty for the core group.
    pub group: String,
    /// `DaemonSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Object {
    /// The identity of an object of the API.
    pub(super) fn from_json(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self::new(&text(&value["apiVersion"]), text(&value["kind"]), text(&value["metadata"]["name"]))
    }

    /// The objects of a manifest in YAML or JSON, each with all that is said of it; lists are
    /// opened.
    ///
    /// # Errors
    ///
    /// A text that is no YAML, and a document without an identity: it could be neither awaited nor
    /// pruned. The message counts documents as kubectl does, without the empty ones.
    pub fn read(manifest: &str) -> std::result::Result<Vec<(Self, Value)>, String> {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(manifest).map_err(|error| error.without_snippet().to_string())?;
        let mut objects = Vec::new();
        for (number, document) in (1..).zip(documents) {
            open_list(document, &mut objects).map_err(|why| format!("document {number} {why}"))?;
        }
        Ok(objects)
    }

    fn identify(value: &Value) -> std::result::Result<Self, &'static str> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let api_version = text("/apiVersion").ok_or("has no apiVersion")?;
        let kind = text("/kind").ok_or("has no kind")?;
        match text("/metadata/name") {
            Some(name) => Ok(Self::new(api_version, kind.to_owned(), name.to_owned())),
            None if text("/metadata/generateName").is_some() => {
                Err("has a generateName: each `turnup up` would make one more; give it a metadata.name")
            }
            None => Err("has no metadata.name"),
        }
    }

    fn new(api_version: &str, kind: String, name: String) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
        Self { group, kind, name }
    }

    /// The namespace in which addons have objects of its kind; none for kinds without one.
    ///
    /// A copy in another namespace, which has the same labels, is not turnup's.
    pub(super) fn home(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            // It is for the pods beside it, and in kube-system all pods say what they need.
            "LimitRange" => Some("default"),
            kind if CLUSTER_SCOPED.contains(&kind) => None,
            _ => Some(SYSTEM),
        }
    }

    /// The resource of its kind, as kubectl lists it: `daemonsets.apps`.
    pub(super) fn plural(&self) -> String {
        let kind = self.kind.to_lowercase();
        let plural = match kind.strip_suffix("cy") {
            Some(stem) => format!("{stem}cies"),
            None => kind + if self.kind.ends_with('s') { "es" } else { "s" },
        };
        if self.group.is_empty() { plural } else { format!("{plural}.{}", self.group) }
    }

    /// All objects of its kind, as kubectl is asked for them: `daemonset.apps`.
    pub(super) fn resource(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }

    /// How kubectl is told about it: `daemonset.apps/flannel`.
    #[must_use]
    pub fn argument(&self) -> String {
        format!("{}/{}", self.resource(), self.name)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// The objects that `kubectl get --output=json` printed: a list, or one alone; none where it
/// printed nothing, as for names that are not there.
pub(super) fn read_answer(said: &str) -> Result<Vec<Value>> {
    if said.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut found: Value = serde_json::from_str(said).context("kubectl get did not print JSON")?;
    match found.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Ok(vec![found]),
    }
}

/// One manifest of these objects.
pub(super) fn list_of(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Whether a server-side apply of turnup's has made the object what it is. One that says nothing
/// but its name (a Namespace, mostly) leaves no fields to manage: what it has then comes from the
/// API server, which a later apply ascribes to `before-first-apply` (Kubernetes' documentation of
/// server-side apply).
pub(super) fn is_ours(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().any(|entry| entry["manager"] == "turnup" && entry["operation"] == "Apply")
        || object.is_object() && entries.iter().all(|entry| entry["manager"] == "before-first-apply")
}

/// An object, or the items of a list of them.
fn open_list(mut value: Value, objects: &mut Vec<(Object, Value)>) -> std::result::Result<(), &'static str> {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items.into_iter().try_for_each(|item| open_list(item, objects)),
        Some(items) if !is_list => {
            value["items"] = items;
            Object::identify(&value).map(|object| objects.push((object, value)))
        }
        Some(_) => Err("is a list without items"),
        None => Object::identify(&value).map(|object| objects.push((object, value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_turnup_applied_is_removed() {
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation});
        let object = |entries: &[Value]| json!({"metadata": {"managedFields": entries}});
        assert!(is_ours(&object(&[entry("helm", "Update"), entry("turnup", "Apply")])));
        assert!(!is_ours(&object(&[entry("turnup", "Update"), entry("kubectl", "Apply")])));
        assert!(is_ours(&object(&[])) && is_ours(&object(&[entry("before-first-apply", "Update")])));
        assert!(!is_ours(&object(&[entry("before-first-apply", "Update"), entry("kubectl-create", "Update")])));
        assert!(!is_ours(&Value::Null), "what is gone needs no removal");
    }

    fn names(manifest: &str) -> std::result::Result<Vec<String>, String> {
        Ok(Object::read(manifest)?.into_iter().map(|(object, _)| object.argument()).collect())
    }

    #[test]
    fn an_object_is_known_in_whatever_style_it_is_written() {
        for manifest in [
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: agent\n",
            "# first a comment\n\n---  # and one more\n\"kind\": 'DaemonSet'\n\"apiVersion\": \"apps/v1\"\nmetadata: {labels: {name: other}, name: \"agent\"}\n",
            "apiVersion: apps/v1\r\nkind: DaemonSet\r\nmetadata:\r\n    labels:\r\n        name: other\r\n    name: agent\r\n",
            "{\"kind\": \"DaemonSet\", \"apiVersion\": \"apps/v1\", \"metadata\": {\"name\": \"agent\"}}",
            "--- {kind: DaemonSet, apiVersion: apps/v1, metadata: {name: agent}}\n...\n",
            "metadata:\n  annotations:\n    note: |\n      kind: Pod\n  name: agent\nkind: DaemonSet\napiVersion: apps/v1",
        ] {
            assert_eq!(names(manifest).as_deref(), Ok(&["daemonset.apps/agent".to_owned()][..]), "{manifest}");
        }
    }

    #[test]
    fn documents_and_lists_are_opened() {
        let one = |name: &str| format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n");
        let manifest = format!("---\n# nothing here\n---\n{}--- # the second\n{}\n---\n---\n", one("a"), one("b"));
        assert_eq!(names(&manifest).as_deref(), Ok(&["service/a".to_owned(), "service/b".to_owned()][..]));
        let item = |name: &str| format!("- apiVersion: v1\n  kind: Service\n  metadata: {{name: {name}}}\n");
        let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", item("a"), item("b"));
        assert_eq!(names(&list).as_deref(), Ok(&["service/a".to_owned(), "service/b".to_owned()][..]));
        // What only looks like a list.
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nitems: {x: y}\n";
        assert_eq!(names(other).as_deref(), Ok(&["configmap/a".to_owned()][..]));
        assert_eq!(names("").as_deref(), Ok(&[][..]));
    }

    #[test]
    fn what_has_no_identity_is_an_error_with_the_number_of_its_document() {
        let good = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n";
        for (second, why) in [
            ("kind: Service\nmetadata: {name: b}", "document 2 has no apiVersion"),
            ("apiVersion: v1\nmetadata: {name: b}", "document 2 has no kind"),
            ("apiVersion: v1\nkind: Service\nmetadata: {name: 7}", "document 2 has no metadata.name"),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {generateName: b-}",
                "document 2 has a generateName: each `turnup up` would make one more; give it a metadata.name",
            ),
            ("apiVersion: v1\nkind: List\nitems: [{kind: Pod}]", "document 2 has no apiVersion"),
            ("just words", "document 2 has no apiVersion"),
        ] {
            assert_eq!(names(&format!("{good}{second}\n")), Err(why.to_owned()));
        }
        let broken = names(&format!("{good}kind: [\n"));
        assert!(broken.as_ref().is_err_and(|why| why.contains("line ")), "{broken:?}");
    }
}
