//! Brings the cluster to the user's own manifests: what would change, and the change.
//!
//! The inventory is written before the first object and after the last one, so that a run that was
//! killed in between leaves no object that no inventory names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bootstrap::Kubectl;
use crate::change::{Change, Verb};
use crate::error::{Class, Error, Result};

use super::object::SET;
use super::observed::Observed;
use super::own::{OwnObject, OwnSet, Recorded, config_map_name};
use super::preview::diff;

/// How often a set is applied: kinds and namespaces that are in it count only once they are there.
const ATTEMPTS: usize = 4;

/// The inventories of the cluster.
pub(super) fn find_recorded(kubectl: &Kubectl) -> Result<BTreeMap<String, Recorded>> {
    let selector = format!("--selector={SET}");
    Ok(Observed::parse(&kubectl.get(&["configmaps", "--namespace=kube-system", &selector])?).recorded)
}

/// One set and what brings it into the cluster.
pub(super) struct SetDelivery<'a> {
    pub(super) kubectl: &'a Kubectl,
    pub(super) set: &'a OwnSet,
    pub(super) recorded: Option<&'a Recorded>,
    pub(super) prune: bool,
    /// The path of the set's file.
    pub(super) file: String,
}

impl SetDelivery<'_> {
    /// Objects that the set has no longer, those that came last first.
    fn left(&self) -> Vec<&OwnObject> {
        let recorded = self.recorded.filter(|_| self.prune);
        let left = recorded.into_iter().flat_map(|recorded| recorded.objects.difference(&self.set.objects));
        let mut left: Vec<&OwnObject> = left.collect();
        // What others need goes last: their kind, their namespace.
        left.sort_by_key(|object| match object.kind.as_str() {
            "CustomResourceDefinition" => 1,
            "Namespace" => 2,
            _ => 0,
        });
        left
    }

    /// Why the set is not in the cluster as it should be; nothing when it is.
    pub(super) fn drift(&self) -> Result<Option<String>> {
        let set = self.set;
        if !set.is_recorded(self.recorded, self.prune) {
            return Ok(Some(format!("the cluster does not have the manifests of {} as they are now", set.setting)));
        }
        if set.objects.is_empty() {
            return Ok(None);
        }
        match diff(self.kubectl, &set.text) {
            Ok(changes) => Ok(changes.first().map(ToString::to_string)),
            Err(error) if error.class() == Class::Transient || error.class() == Class::Interrupted => Err(error),
            // A namespace or kind of it is gone.
            Err(error) => Ok(Some(format!("the manifests of {}: {}", set.setting, error.message()))),
        }
    }

    /// What applying and pruning would change.
    pub(super) fn find_changes(&self) -> Result<Vec<Change>> {
        let none = BTreeSet::new();
        let before = self.recorded.map_or(&none, |recorded| &recorded.objects);
        let new = self.set.objects.difference(before);
        let mut changes: Vec<Change> =
            new.map(|object| Change::new(Verb::Create, "object", object.to_string())).collect();
        let known: Vec<&OwnObject> = self.set.objects.intersection(before).collect();
        if !known.is_empty() {
            match diff(self.kubectl, &self.set.text) {
                Ok(found) => {
                    let is_known = |change: &Change| known.iter().any(|object| object.short() == change.name);
                    changes.extend(found.into_iter().filter(is_known));
                }
                Err(error) if error.class() == Class::Transient || error.class() == Class::Interrupted => {
                    return Err(error);
                }
                // The server cannot say yet: a namespace or kind comes with the set.
                Err(_) => {
                    let change = |object: &&OwnObject| Change::new(Verb::Update, "object", object.to_string());
                    changes.extend(known.iter().map(change));
                }
            }
        }
        changes.extend(self.left().into_iter().map(|object| Change::new(Verb::Delete, "object", object.to_string())));
        Ok(changes)
    }

    /// Applies the set where it is not there as it should be, and prunes; whether anything was
    /// done.
    pub(super) fn run(&self) -> Result<bool> {
        let set = self.set;
        if self.drift()?.is_none() {
            return Ok(false);
        }
        let before = self.recorded.map(|recorded| recorded.objects.clone()).unwrap_or_default();
        let mut kept: BTreeSet<OwnObject> = set.objects.union(&before).cloned().collect();
        if !set.objects.is_empty() {
            self.record("", &kept)?;
            self.apply()?;
        }
        for object in self.left() {
            self.remove(object)?;
            kept.remove(object);
        }
        if kept.is_empty() {
            let name = config_map_name(set.name);
            let args = ["delete", "configmap", &name, "--namespace=kube-system", "--ignore-not-found"];
            return self.kubectl.run(&args).map(|_| true);
        }
        self.record(&set.hash, &kept)?;
        Ok(true)
    }

    fn record(&self, hash: &str, objects: &BTreeSet<OwnObject>) -> Result<()> {
        let recorded = Recorded { hash: hash.to_owned(), objects: objects.clone() };
        self.kubectl.apply(&recorded.config_map(self.set.name).to_string())
    }

    fn apply(&self) -> Result<()> {
        let file = format!("--filename={}", self.file);
        let args = ["apply", "--server-side", "--field-manager=turnup", "--force-conflicts", &file];
        for attempt in 1.. {
            let Err(error) = self.kubectl.run(&args) else { break };
            if attempt == ATTEMPTS || !may_come(&error) {
                return Err(error.hint(format!("turnup config explain {}", self.set.setting)));
            }
            self.wait_for_kinds()?;
        }
        Ok(())
    }

    /// Until the API server serves the kinds that the set brings along.
    fn wait_for_kinds(&self) -> Result<()> {
        let kinds = self.set.objects.iter().filter(|object| object.kind == "CustomResourceDefinition");
        let names: Vec<String> = kinds.map(OwnObject::argument).collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut args = vec!["wait", "--for=condition=Established", "--timeout=30s"];
        args.extend(names.iter().map(String::as_str));
        self.kubectl.run(&args).map(drop)
    }

    /// Removes an object that turnup has applied; one of the same name that others made stays.
    fn remove(&self, object: &OwnObject) -> Result<()> {
        let (argument, namespace) = (object.argument(), format!("--namespace={}", object.namespace));
        let args = ["get", &argument, &namespace, "--output=json", "--ignore-not-found", "--show-managed-fields"];
        let said = match self.kubectl.run(&args) {
            Ok(said) => said,
            // Its kind is gone, and with it all objects of the kind.
            Err(error) if lacks_kind(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !is_ours(&serde_json::from_str(&said).unwrap_or_default()) {
            return Ok(());
        }
        let args = ["delete", &argument, &namespace, "--ignore-not-found", "--timeout=90s"];
        self.kubectl.run(&args).map(drop)
    }
}

/// Whether a server-side apply of turnup's has made the object what it is. One that says nothing
/// but its name (a Namespace, mostly) leaves no fields to manage: what it has then comes from the
/// API server, which a later apply ascribes to `before-first-apply` (Kubernetes' documentation of
/// server-side apply).
fn is_ours(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().any(|entry| entry["manager"] == "turnup" && entry["operation"] == "Apply")
        || object.is_object() && entries.iter().all(|entry| entry["manager"] == "before-first-apply")
}

fn says(error: &Error, words: &[&str]) -> bool {
    let mut lines = error.evidence_lines().iter().map(String::as_str).chain([error.message()]);
    lines.any(|line| words.iter().any(|word| line.contains(word)))
}

fn lacks_kind(error: &Error) -> bool {
    says(error, &["no matches for kind", "the server doesn't have a resource type"])
}

/// Whether it may be that the set itself brings what it lacks.
fn may_come(error: &Error) -> bool {
    lacks_kind(error) || says(error, &["namespaces \"", "(NotFound)"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn what_a_set_may_bring_itself_is_worth_another_attempt() {
        let error = |line: &str| Error::permanent("kubectl apply failed").evidence(line);
        assert!(may_come(&error(
            "error: resource mapping not found: no matches for kind \"Shop\" in version \"a/v1\""
        )));
        assert!(may_come(&error("Error from server (NotFound): namespaces \"shop\" not found")));
        assert!(!may_come(&error("Error from server (Forbidden): x is forbidden")));
    }
}
