//! What can be judged from the API's own words: nodes, static pods, critical pods. Pure.

use std::collections::BTreeSet;

use crate::addons::observed::{Observed, Pod};
use crate::bootstrap::UnansweredWebhook;
use crate::inventory::{Inventory, Role};

use super::CheckResult;

/// The static pods of every control-plane node.
const CONTROL_PLANE: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// All checks. Without a network of turnup's own (`network`), nodes need only be registered, and
/// pods need not run. So many workers may be not Ready (`tolerated`), and what runs on them with
/// them.
pub(super) fn judge(inventory: &Inventory, network: bool, tolerated: usize, observed: &Observed) -> Vec<CheckResult> {
    let spared = find_spared(inventory, tolerated, observed);
    let mut checks = judge_nodes(inventory, network, observed);
    checks.extend(judge_static_pods(inventory, observed));
    for check in checks.iter_mut().filter(|check| spared.contains(&check.subject)) {
        tolerate(check);
    }
    for (node, mut check) in judge_critical_pods(network, observed) {
        if node.is_some_and(|node| spared.contains(node)) {
            tolerate(&mut check);
        }
        checks.push(check);
    }
    checks
}

/// Nodes that get a probe pod. On those that may be not Ready, and are, none would start.
pub(super) fn find_probed(inventory: &Inventory, tolerated: usize, observed: &Observed) -> Vec<String> {
    let spared = find_spared(inventory, tolerated, observed);
    let hosts = inventory.hosts.iter().map(|host| &host.name);
    let is_host = |name: &str| inventory.hosts.iter().any(|host| host.name == name);
    let others = observed.nodes.iter().filter(|node| node.is_of_group && !is_host(&node.name)).map(|node| &node.name);
    hosts.chain(others).filter(|name| !spared.contains(*name)).cloned().collect()
}

/// Workers that are not Ready, where there are no more of them than may be.
fn find_spared(inventory: &Inventory, tolerated: usize, observed: &Observed) -> BTreeSet<String> {
    let is_down = |name: &str| !observed.node(name).is_some_and(|node| node.ready);
    let workers = inventory.hosts.iter().filter(|host| host.role != Role::ControlPlane).map(|host| &host.name);
    let by_themselves = observed.nodes.iter().filter(|node| node.is_of_group).map(|node| &node.name);
    let down: BTreeSet<String> = workers.chain(by_themselves).filter(|name| is_down(name)).cloned().collect();
    if down.len() <= tolerated { down } else { BTreeSet::new() }
}

fn tolerate(check: &mut CheckResult) {
    if !check.ok {
        check.ok = true;
        check.next = None;
        check.seen += " (tolerated: phase3.max_unready_nodes)";
    }
}

fn judge_nodes(inventory: &Inventory, network: bool, observed: &Observed) -> Vec<CheckResult> {
    let judge = |name: &String| match observed.node(name) {
        Some(node) if node.ready && node.pressure.is_empty() => CheckResult::passed("node", name, "Ready"),
        Some(node) if node.ready => CheckResult::failed(
            "node",
            name,
            format!("Ready, but evicts pods: {}", node.pressure.join("; ")),
            format!("kubectl describe node {name}"),
        ),
        Some(node) if !network => {
            CheckResult::passed("node", name, format!("registered, waits for a pod network ({})", node.says))
        }
        Some(node) => CheckResult::failed("node", name, node.says.clone(), format!("kubectl describe node {name}")),
        None => CheckResult::failed(
            "node",
            name,
            "is not registered: its kubelet has not reached the API server",
            "turnup bootstrap",
        ),
    };
    let mut checks: Vec<CheckResult> = inventory.hosts.iter().map(|host| judge(&host.name)).collect();
    let hosts: BTreeSet<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
    let others = observed.nodes.iter().filter(|node| !hosts.contains(node.name.as_str()));
    let (self_joining, strangers): (Vec<_>, Vec<_>) = others.partition(|node| node.is_of_group);
    checks.extend(self_joining.into_iter().map(|node| judge(&node.name)));
    checks.extend(strangers.into_iter().map(|node| {
        CheckResult::failed(
            "node",
            &node.name,
            "is registered, but no host of this cluster has this name",
            format!("kubectl delete node {}", node.name),
        )
    }));
    checks
}

fn judge_static_pods(inventory: &Inventory, observed: &Observed) -> Vec<CheckResult> {
    let hosts = inventory.hosts.iter().filter(|host| host.role == Role::ControlPlane);
    let names = hosts.flat_map(|host| CONTROL_PLANE.map(|component| format!("{component}-{}", host.name)));
    let judge = |name: String| match observed.pods.iter().find(|pod| pod.is_static && pod.name == name) {
        Some(pod) => judge_pod("static pod", pod),
        None => CheckResult::failed("static pod", name, "its kubelet does not report it", "turnup bootstrap"),
    };
    names.map(judge).collect()
}

/// Each with the node that it runs on.
fn judge_critical_pods(network: bool, observed: &Observed) -> Vec<(Option<&str>, CheckResult)> {
    let critical = |pod: &&Pod| pod.is_critical && !pod.is_static && !pod.terminating && !pod.is_replaced();
    let expected = |pod: &&Pod| network || pod.node.is_some();
    observed
        .pods
        .iter()
        .filter(critical)
        .filter(expected)
        .map(|pod| (pod.node.as_deref(), judge_pod("critical pod", pod)))
        .collect()
}

pub(super) fn judge_webhook(webhook: &UnansweredWebhook) -> CheckResult {
    CheckResult::failed("webhook", &webhook.webhook, webhook.describe(), webhook.remedy())
}

fn judge_pod(check: &'static str, pod: &Pod) -> CheckResult {
    let node = pod.node.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
    if pod.ready {
        return CheckResult::passed(check, &pod.name, format!("ready{node}"));
    }
    let what = if pod.says.is_empty() || pod.says.iter().any(|says| says.contains("CrashLoopBackOff")) {
        "logs"
    } else {
        "describe pod"
    };
    CheckResult::failed(
        check,
        &pod.name,
        pod.describe(),
        format!("kubectl --namespace=kube-system {what} {}", pod.name),
    )
}
