//! What is in the cluster with an addon's label, but in no manifest: addons that were switched off, and objects of older versions.

use std::collections::{BTreeMap, BTreeSet};

use crate::bootstrap::Kubectl;
use crate::error::Result;

use super::object::Object;
use super::observed::Observed;
use super::render::Rendered;

/// Every kind of which an addon may have objects, in the order of removal: what runs goes before what it needs.
const KINDS: &str = "deployments.apps,daemonsets.apps,services,configmaps,serviceaccounts,\
    clusterrolebindings.rbac.authorization.k8s.io,clusterroles.rbac.authorization.k8s.io";

/// All objects of addons that the cluster has.
pub(super) fn find_objects(kubectl: &Kubectl) -> Result<Observed> {
    let selector = "--selector=app.kubernetes.io/managed-by=turnup,turnup.dev/addon";
    Ok(Observed::parse(&kubectl.get(&[KINDS, "--namespace=kube-system", selector])?))
}

/// What is there and should not be.
pub(super) fn superfluous(there: &BTreeMap<Object, String>, manifests: &[Rendered]) -> Vec<Object> {
    let wanted: BTreeSet<&Object> = manifests.iter().flat_map(|manifest| &manifest.objects).collect();
    let mut found: Vec<Object> = there.keys().filter(|object| !wanted.contains(object)).cloned().collect();
    let position = |object: &Object| KINDS.find(&object.kind.to_lowercase()).unwrap_or(usize::MAX);
    found.sort_by_key(position);
    found
}

/// Removes these objects and waits until they are gone.
pub(super) fn remove(kubectl: &Kubectl, objects: &[Object]) -> Result<()> {
    let mut args = vec!["delete".to_owned(), "--namespace=kube-system".into(), "--ignore-not-found".into()];
    args.extend(objects.iter().map(Object::argument));
    kubectl.run(&args).map(drop)
}
