//! Which objects turnup can remove again: by their kind, namespace and labels. It removes none.

use serde_json::Value;

use super::object::{ADDON, Object};

/// Every kind of which an addon may have objects, in the order of removal: what runs goes before
/// what it needs, what asks it before that, and the right to write a Lease or a Secret, or to do
/// what a policy refuses, before these.
pub(super) const KINDS: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io,\
    mutatingwebhookconfigurations.admissionregistration.k8s.io,apiservices.apiregistration.k8s.io,deployments.apps,\
    daemonsets.apps,poddisruptionbudgets.policy,services,configmaps,limitranges,ingressclasses.networking.k8s.io,\
    storageclasses.storage.k8s.io,csidrivers.storage.k8s.io,serviceaccounts,\
    rolebindings.rbac.authorization.k8s.io,roles.rbac.authorization.k8s.io,\
    clusterrolebindings.rbac.authorization.k8s.io,clusterroles.rbac.authorization.k8s.io,leases.coordination.k8s.io,\
    validatingadmissionpolicybindings.admissionregistration.k8s.io,\
    validatingadmissionpolicies.admissionregistration.k8s.io,secrets,customresourcedefinitions.apiextensions.k8s.io";
/// The same of kinds that an addon defines, and that a cluster without it does not serve.
pub(super) const DEFINED_KINDS: [&str; 2] =
    ["gatewayclasses.gateway.networking.k8s.io", "volumesnapshotclasses.snapshot.storage.k8s.io"];
/// The labels that every object of an addon has: by them it is found.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "turnup");

/// All of them, in the order of removal: an object goes before its kind.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    DEFINED_KINDS.into_iter().chain(KINDS.split(','))
}

/// Whether it is known only to clusters in which an addon has defined its kind.
pub(super) fn is_of_defined_kind(object: &Object) -> bool {
    DEFINED_KINDS.contains(&object.plural().as_str())
}

/// Why an object of a manifest would stay when its addon is switched off.
pub(super) fn why_not_pruned(object: &Object, manifest: &Value, addon: &str) -> Option<String> {
    let label = |name: &str| manifest["metadata"]["labels"][name].as_str();
    if !kinds().any(|kind| kind == object.plural()) {
        let pruned = kinds().collect::<Vec<_>>().join(", ");
        return Some(format!("turnup prunes no objects of its kind; it prunes {pruned}"));
    }
    let namespace = object.home();
    if namespace.is_some() && manifest["metadata"]["namespace"].as_str() != namespace {
        return Some(format!("its namespace is not {}", namespace.unwrap_or_default()));
    }
    let missing = [MANAGED_BY, (ADDON, addon)].into_iter().find(|(name, value)| label(name) != Some(value));
    missing.map(|(name, value)| format!("it has no label {name}: {value}"))
}
