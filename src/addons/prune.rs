//! What is in the cluster with an addon's label, but in no manifest: addons that were switched off,
//! and objects of older versions.

use std::collections::{BTreeMap, BTreeSet};

use crate::bootstrap::Kubectl;
use crate::error::Result;

use super::object::{ADDON, Object};
use super::observed::Observed;
use super::prunable::{KINDS, MANAGED_BY};

/// All objects of addons that the cluster has.
pub(super) fn find_objects(kubectl: &Kubectl) -> Result<Observed> {
    let selector = format!("--selector={}={},{ADDON}", MANAGED_BY.0, MANAGED_BY.1);
    Ok(Observed::parse(&kubectl.get(&[KINDS, "--namespace=kube-system", &selector])?))
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
    let mut args = vec!["delete".to_owned(), "--namespace=kube-system".into(), "--ignore-not-found".into()];
    args.extend(objects.iter().map(Object::argument));
    kubectl.run(&args).map(drop)
}
