//! The ports of a control-plane host that its own components use.

use std::ops::RangeInclusive;

use super::values::Values;

/// Whose ports they are, and the switch of what is not always there.
const TAKEN: [(RangeInclusive<i64>, &str, Option<&str>); 15] = [
    (22..=22, "sshd", None),
    (2379..=2381, "etcd", None),
    (3990..=3990, "turnup's health check of the API server", None),
    (3991..=3991, "turnup's agent", None),
    (3992..=3992, "turnup's balancer of API servers", None),
    (3993..=3993, "turnup's machine authenticator", None),
    (4443..=4443, "metrics-server", Some("phase3.metrics_server")),
    (8085..=8085, "cluster-autoscaler", Some("phase3.cluster_autoscaler")),
    (9252..=9252, "kube-network-policies", Some("phase3.network_policies")),
    (9808..=9809, "the CSI driver", Some("phase3.cloud_storage")),
    (10249..=10249, "kube-proxy", None),
    (10248..=10250, "kubelet", None),
    (10256..=10256, "kube-proxy", None),
    (10257..=10257, "kube-controller-manager", None),
    (10259..=10259, "kube-scheduler", None),
];

/// A port that a setting names.
pub(super) const EXPORTER: &str = "phase3.node_exporter_port";

/// The first of these ports that has an owner in this configuration, and the owner.
pub(super) fn find_taken(facts: &Values<'_, '_>, wanted: &RangeInclusive<i64>) -> Option<(i64, &'static str)> {
    let exporter = facts.number(EXPORTER).filter(|port| wanted.contains(port));
    find_fixed(facts, wanted).or_else(|| Some((exporter?, "node-exporter")))
}

/// The same, of ports that no setting names.
pub(super) fn find_fixed(facts: &Values<'_, '_>, wanted: &RangeInclusive<i64>) -> Option<(i64, &'static str)> {
    let is_used = |switch: Option<&str>| switch.is_none_or(|switch| facts.text(switch) == Some("y"));
    let meets = |ports: &RangeInclusive<i64>| ports.start() <= wanted.end() && wanted.start() <= ports.end();
    let (ports, owner, _) = TAKEN.iter().find(|(ports, _, switch)| meets(ports) && is_used(*switch))?;
    Some((*ports.start(), owner))
}
