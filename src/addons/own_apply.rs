//! Brings the cluster to the user's own manifests: what would change, and the change.
//!
//! The inventory is written before the first object and after the last one, so that a run that was
//! killed in between leaves no object that no inventory names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bootstrap::{APPLY, Kubectl};
use crate::change::{Change, Verb};
use crate::error::{Error, Result};
use crate::exec::signals;
use crate::parallel;

use super::object::{DEFINITION, SET, is_ours, list_of, read_answer};
use super::observed::Observed;
use super::own::{OwnObject, OwnSet, Recorded, config_map_name};
use super::preview::{compare, diff};
use super::replacement::{replace_where_refused, require_replaceable};

/// How often a set is applied: kinds and namespaces that are in it count only once they are there.
const ATTEMPTS: usize = 4;

/// So many objects go by one call of kubectl.
const BATCH: usize = 1000;
/// So many kinds and namespaces at a time.
const AT_ONCE: usize = 4;
/// How long what was deleted may stay.
const GONE: Duration = Duration::from_secs(90);
/// Between two looks whether it is gone.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

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
    /// Objects that the set has no longer.
    fn left(&self) -> Vec<&OwnObject> {
        let recorded = self.recorded.filter(|_| self.prune);
        recorded.into_iter().flat_map(|recorded| recorded.objects.difference(&self.set.objects)).collect()
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
            Err(error) if error.is_passing() => Err(error),
            // A namespace or kind of it is gone.
            Err(error) => Ok(Some(format!("the manifests of {}: {}", set.setting, error.message()))),
        }
    }

    /// What applying and pruning would change, and whether that is refused.
    pub(super) fn find_changes(&self) -> Result<(Vec<Change>, Result<()>)> {
        let none = BTreeSet::new();
        let before = self.recorded.map_or(&none, |recorded| &recorded.objects);
        let new = self.set.objects.difference(before);
        let mut changes: Vec<Change> =
            new.map(|object| Change::new(Verb::Create, "object", object.to_string())).collect();
        let mut allowed = Ok(());
        let known: Vec<&OwnObject> = self.set.objects.intersection(before).collect();
        if !known.is_empty() {
            match compare(self.kubectl, &self.set.text) {
                Ok((found, replacements)) => {
                    let is_known = |change: &Change| known.iter().any(|object| object.short() == change.name);
                    changes.extend(found.into_iter().filter(is_known));
                    changes.extend(replacements.iter().map(|one| one.change(one.object.to_string())));
                    allowed = require_replaceable(&replacements);
                }
                Err(error) if error.is_passing() => {
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
        Ok((changes, allowed))
    }

    /// An error when the set has an object that can only be replaced, and data would go with it.
    pub(super) fn require_replaceable(&self) -> Result<()> {
        if self.recorded.is_none() || self.set.objects.is_empty() {
            return Ok(());
        }
        match compare(self.kubectl, &self.set.text) {
            Ok((_, replacements)) => require_replaceable(&replacements),
            Err(error) if error.is_passing() => Err(error),
            // A namespace or kind of it is not there yet; to apply it says all else.
            Err(_) => Ok(()),
        }
    }

    /// Applies the set where it is not there as it should be, and prunes; whether anything was
    /// done.
    pub(super) fn run(&self) -> Result<bool> {
        let set = self.set;
        if self.drift()?.is_none() {
            return Ok(false);
        }
        let before = self.recorded.map(|recorded| recorded.objects.clone()).unwrap_or_default();
        let all: BTreeSet<OwnObject> = set.objects.union(&before).cloned().collect();
        if !set.objects.is_empty() {
            self.record("", &all)?;
            self.apply()?;
        }
        self.remove(&self.left())?;
        let kept = if self.prune { set.objects.clone() } else { all };
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
        let args = [&APPLY[..], &[&file]].concat();
        let apply = || apply_until_known(self.kubectl, &self.set.objects, || self.kubectl.run(&args).map(drop));
        replace_where_refused(self.kubectl, &self.set.text, apply)
            .map_err(|error| error.hint(format!("turnup config explain {}", self.set.setting)))
    }

    /// Removes these objects, what others need last: their kind, their namespace.
    fn remove(&self, objects: &[&OwnObject]) -> Result<()> {
        let rank = |object: &OwnObject| match object.kind.as_str() {
            DEFINITION => 1,
            "Namespace" => 2,
            _ => 0,
        };
        for turn in 0..=2 {
            let mut alike: BTreeMap<(String, &str), Vec<&OwnObject>> = BTreeMap::new();
            for object in objects.iter().filter(|object| rank(object) == turn) {
                alike.entry((object.resource(), &object.namespace)).or_default().push(object);
            }
            let alike: Vec<_> = alike.into_iter().collect();
            let ended = parallel::map(&alike, AT_ONCE, |((resource, namespace), objects)| {
                self.remove_alike(resource, &format!("--namespace={namespace}"), objects)
            });
            ended.into_iter().collect::<Result<()>>()?;
        }
        Ok(())
    }

    /// Removes objects of one kind and namespace, as far as turnup has applied them; one of the
    /// same name that others made stays.
    ///
    /// Asked for by name, kubectl holds itself to five requests a second: they are listed, and
    /// deleted as a manifest, object by object without a wait.
    fn remove_alike(&self, resource: &str, namespace: &str, objects: &[&OwnObject]) -> Result<()> {
        let ours = self.find_ours(resource, namespace, objects)?;
        for batch in ours.chunks(BATCH) {
            let identity = |item: &Value| {
                let metadata = json!({"name": item["metadata"]["name"], "namespace": item["metadata"]["namespace"]});
                json!({"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata})
            };
            let items: Vec<Value> = batch.iter().map(identity).collect();
            let args = ["delete", "--ignore-not-found", "--wait=false", "--filename=-"];
            self.kubectl.run_with(&args, &list_of(&items))?;
        }
        let (start, uid) = (Instant::now(), |item: &Value| item["metadata"]["uid"].clone());
        let deleted: Vec<Value> = ours.iter().map(uid).collect();
        while !deleted.is_empty() {
            let there = self.find_ours(resource, namespace, objects)?;
            let left: Vec<&Value> = there.iter().filter(|item| deleted.contains(&uid(item))).collect();
            let Some(first) = left.first().and_then(|item| item["metadata"]["name"].as_str()) else { break };
            if start.elapsed() > GONE {
                let message = format!("{resource} {first} was deleted, and is still there: a finalizer holds it");
                return Err(Error::transient(message)
                    .evidence(format!("{} objects in all", left.len()))
                    .hint(format!("kubectl get {resource} {first} {namespace} --output=yaml; then: turnup up")));
            }
            signals::sleep(POLL_INTERVAL)?;
        }
        Ok(())
    }

    /// Those of these objects that are there and of turnup's own making.
    fn find_ours(&self, resource: &str, namespace: &str, objects: &[&OwnObject]) -> Result<Vec<Value>> {
        let args = ["get", resource, namespace, "--output=json", "--show-managed-fields"];
        let mut items = match self.kubectl.run(&args) {
            Ok(said) => read_answer(&said)?,
            // Their kind is gone, and with it all objects of the kind.
            Err(error) if lacks_kind(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names: BTreeSet<&str> = objects.iter().map(|object| object.name.as_str()).collect();
        let is_one = |item: &Value| item["metadata"]["name"].as_str().is_some_and(|name| names.contains(name));
        items.retain(|item| is_one(item) && is_ours(item));
        Ok(items)
    }
}

/// Applies these objects until the kinds and namespaces among them count, which they do only once
/// they are there.
pub(super) fn apply_until_known<T>(
    kubectl: &Kubectl,
    objects: &BTreeSet<OwnObject>,
    apply: impl Fn() -> Result<T>,
) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match apply() {
            Err(error) if may_come(&error) => wait_for_kinds(kubectl, objects)?,
            ended => return ended,
        }
    }
    apply()
}

/// Until the API server serves the kinds that are among these objects.
fn wait_for_kinds(kubectl: &Kubectl, objects: &BTreeSet<OwnObject>) -> Result<()> {
    let kinds = objects.iter().filter(|object| object.kind == DEFINITION);
    let names: Vec<String> = kinds.map(OwnObject::argument).collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut args = vec!["wait", "--for=condition=Established", "--timeout=30s"];
    args.extend(names.iter().map(String::as_str));
    kubectl.run(&args).map(drop)
}

fn lacks_kind(error: &Error) -> bool {
    ["no matches for kind", "the server doesn't have a resource type"].iter().any(|words| error.says(words))
}

/// Whether it may be that the set itself brings what it lacks.
fn may_come(error: &Error) -> bool {
    lacks_kind(error) || ["namespaces \"", "(NotFound)"].iter().any(|words| error.says(words))
}

#[cfg(test)]
mod tests {
    use super::*;

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
