//! What is in the cluster with an addon's label, but in no manifest: addons that were switched off,
//! and objects of older versions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bootstrap::Kubectl;
use crate::error::Result;

use super::object::{ADDON, HOMES, Object, SYSTEM};
use super::observed::Observed;
use super::prunable::{KINDS, MANAGED_BY};

/// All objects of addons that the cluster has.
pub(super) fn find_objects(kubectl: &Kubectl) -> Result<Observed> {
    Ok(Observed::parse(&list_objects(kubectl)?))
}

/// The same as the API says it.
pub(super) fn list_objects(kubectl: &Kubectl) -> Result<Value> {
    let selector = format!("--selector={}={},{ADDON}", MANAGED_BY.0, MANAGED_BY.1);
    kubectl.get(&[KINDS, "--all-namespaces", &selector])
}

/// What is there and should not be.
pub(super) fn superfluous<'o>(
    there: &BTreeMap<Object, String>,
    wanted: impl IntoIterator<Item = &'o Object>,
) -> Vec<Object> {
    let wanted: BTreeSet<&Object> = wanted.into_iter().collect();
    let mut found: Vec<Object> = there.keys().filter(|object| !wanted.contains(object)).cloned().collect();
    let position = |object: &Object| KINDS.split(',').position(|kind| kind == object.plural()).unwrap_or(usize::MAX);
    found.sort_by_key(position);
    found
}

/// Removes these objects and waits until they are gone.
pub(super) fn remove(kubectl: &Kubectl, objects: &[Object]) -> Result<()> {
    HOMES.into_iter().try_for_each(|namespace| {
        let in_it = |object: &&Object| object.home().unwrap_or(SYSTEM) == namespace;
        let mut found = objects.iter().filter(in_it).map(Object::argument).peekable();
        if found.peek().is_none() {
            return Ok(());
        }
        let options = ["delete".to_owned(), format!("--namespace={namespace}"), "--ignore-not-found".into()];
        let args: Vec<String> = options.into_iter().chain(found).collect();
        kubectl.run(&args).map(drop)
    })
}
