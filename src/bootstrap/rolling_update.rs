//! The rolling update: what surrounds the change of a host that is a node already. Its pods move
//! away first where the change would interrupt them, and the next host is taken only when the
//! cluster is as well as it was.
//!
//! It decides when and around what; cordon and drain are `drain`'s part, the change the caller's.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::change::{Change, Verb};
use crate::cluster::UpdateSettings;
use crate::error::{Class, Error, Result};
use crate::phase::{Cx, Turns};

use super::api::Kubectl;
use super::condition::is_ready;
use super::drain;
use super::latest::Latest;

/// How long nodes and pods may take to be well again.
const WELL_WITHIN: Duration = Duration::from_mins(5);
/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A change of one of these programs may end containers that run, and a kubelet of another minor
/// version must not find pods of the old one
/// (<https://kubernetes.io/releases/version-skew-policy/#kubelet>).
const PROGRAMS: [&str; 4] = ["kubelet", "containerd", "containerd-shim-runc-v2", "runc"];
const RUNTIME: &str = "containerd.service";

/// The update of a cluster's nodes in one run.
pub(super) struct RollingUpdate {
    settings: UpdateSettings,
    /// The turns of workers; control-plane hosts have those of etcd.
    pub(super) turns: Turns,
    /// What was wrong before the first node was changed: it stops nothing.
    before: Latest<BTreeSet<String>>,
}

/// Whether a host's changes interrupt its pods.
fn interrupts_pods(changes: &[Change]) -> bool {
    changes.iter().any(|change| match (change.verb, change.kind.as_str()) {
        (Verb::Update | Verb::Replace, "binary") => {
            PROGRAMS.iter().any(|program| change.name.rsplit('/').next() == Some(program))
        }
        (Verb::Restart, "service") => change.name == RUNTIME,
        _ => false,
    })
}

/// Whether a change may make a node worse than it was.
fn restarts(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.verb == Verb::Restart || change.kind == "static pod")
}

impl RollingUpdate {
    pub(super) fn new(settings: &UpdateSettings) -> Self {
        let turns = Turns::new(settings.max_unavailable, settings.pause);
        Self { settings: settings.clone(), turns, before: Latest::default() }
    }

    /// The drain that would come before these changes of a node, for a plan.
    pub(super) fn preview(&self, node: &str, changes: &[Change]) -> Option<Change> {
        self.drain_timeout(changes).map(|_| Change::new(Verb::Run, "drain", node))
    }

    /// How long pods may take to leave a node before these changes; none where they stay.
    fn drain_timeout(&self, changes: &[Change]) -> Option<Duration> {
        self.settings.drain_timeout.filter(|_| interrupts_pods(changes))
    }

    /// Changes a node in its turn.
    pub(super) fn around(
        &self,
        kubectl: &Kubectl,
        node: &str,
        changes: &[Change],
        cx: &Cx,
        change: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        // A control plane that does not answer is one that this run may mend.
        let answers = kubectl.is_ready();
        let judged = answers && self.settings.validate;
        let before = judged.then(|| self.before.get(Duration::MAX, || look(kubectl))).transpose()?;
        if answers {
            cx.excuse(|| self.drain(kubectl, node, changes, cx))?;
        }
        change()?;
        if answers {
            uncordon(kubectl, node, cx)?;
            if let Some(before) = before.filter(|_| restarts(changes)) {
                cx.excuse(|| wait_until_well(kubectl, node, &before, cx))?;
            }
        }
        Ok(())
    }

    /// Cordons a node whose machine is going to end, and drains it where the settings say so.
    pub(super) fn drain_before_end(&self, kubectl: &Kubectl, node: &str, cx: &Cx) -> Result<()> {
        if let Some(timeout) = self.settings.drain_timeout {
            self.drain_within(kubectl, node, timeout, cx)?;
        }
        drain::cordon(kubectl, node)
    }

    fn drain(&self, kubectl: &Kubectl, node: &str, changes: &[Change], cx: &Cx) -> Result<()> {
        let Some(timeout) = self.drain_timeout(changes) else { return Ok(()) };
        self.drain_within(kubectl, node, timeout, cx)
    }

    fn drain_within(&self, kubectl: &Kubectl, node: &str, timeout: Duration, cx: &Cx) -> Result<()> {
        if !drain::has_room(&kubectl.get(&["nodes"])?, node) {
            cx.progress(format!("not draining {node}: no other node takes pods"));
            return Ok(());
        }
        drain::drain(kubectl, node, timeout, self.settings.force_drain, cx)
    }
}

/// Waits until nothing is wrong that was not wrong before.
fn wait_until_well(kubectl: &Kubectl, node: &str, before: &BTreeSet<String>, cx: &Cx) -> Result<()> {
    let start = Instant::now();
    loop {
        let worse = match look(kubectl) {
            Ok(now) => now.difference(before).cloned().collect(),
            Err(error) if error.class() == Class::Transient => vec![error.message().to_owned()],
            Err(error) => return Err(error),
        };
        if worse.is_empty() {
            return Ok(());
        }
        if start.elapsed() > WELL_WITHIN {
            let message = format!("the cluster is not well after the change of {node}; no other node was changed");
            let error = worse.iter().take(8).fold(Error::precondition(message), Error::evidence);
            return Err(error.hint("turnup status; or, without this check: turnup up --set phase2.update.validate=n"));
        }
        cx.sleep(POLL_INTERVAL)?;
    }
}

/// Lifts a cordon of ours, also that of an earlier run that was killed. The API server may be the
/// one that was just restarted.
fn uncordon(kubectl: &Kubectl, node: &str, cx: &Cx) -> Result<()> {
    loop {
        match drain::uncordon(kubectl, node) {
            Ok(lifted) => {
                if lifted {
                    cx.progress(format!("uncordoned {node}"));
                }
                return Ok(());
            }
            Err(error) if error.class() != Class::Transient || cx.remaining() < POLL_INTERVAL * 5 => return Err(error),
            Err(_) => cx.sleep(POLL_INTERVAL)?,
        }
    }
}

/// What is wrong in the cluster now: nodes that are not Ready, and workloads of kube-system that
/// lack pods.
pub(super) fn look(kubectl: &Kubectl) -> Result<BTreeSet<String>> {
    let nodes = kubectl.get(&["nodes"])?;
    let workloads = kubectl.get(&["deployments,daemonsets", "--namespace=kube-system"])?;
    Ok(find_ills(&nodes, &workloads))
}

fn find_ills(nodes: &Value, workloads: &Value) -> BTreeSet<String> {
    let items = |list: &'_ Value| list["items"].as_array().cloned().unwrap_or_default();
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let silent = items(nodes).into_iter().filter(|node| !is_ready(node));
    let lacking = items(workloads).into_iter().filter(|workload| count_missing(workload) > 0);
    let of_nodes = silent.map(|node| format!("node {} is not Ready", name(&node)));
    let of_workloads = lacking.map(|workload| {
        let kind = workload["kind"].as_str().unwrap_or_default();
        format!("{kind} kube-system/{} has pods that are not ready", name(&workload))
    });
    of_nodes.chain(of_workloads).collect()
}

/// How many pods of a Deployment or `DaemonSet` are wanted and not available, or of an older
/// template.
fn count_missing(workload: &Value) -> i64 {
    let (spec, status) = (&workload["spec"], &workload["status"]);
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let wanted = if workload["kind"] == "DaemonSet" {
        number(&status["desiredNumberScheduled"])
    } else {
        spec["replicas"].as_i64().unwrap_or(1)
    };
    let available = number(&status["numberAvailable"]).max(number(&status["availableReplicas"]));
    wanted - available
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn programs_that_run_pods_interrupt_them_and_a_file_of_kubelets_does_not() {
        let one = |verb, kind: &str, name: &str| interrupts_pods(&[Change::new(verb, kind, name)]);
        for program in PROGRAMS {
            assert!(one(Verb::Update, "binary", &format!("/opt/turnup/bin/{program}")));
        }
        assert!(one(Verb::Restart, "service", "containerd.service"));
        assert!(!one(Verb::Create, "binary", "/opt/turnup/bin/kubelet"), "nothing runs yet");
        assert!(!one(Verb::Update, "binary", "/opt/turnup/bin/kubectl"));
        assert!(!one(Verb::Restart, "service", "kubelet.service"));
        assert!(!one(Verb::Update, "file", "/var/lib/kubelet/config.yaml"));
        assert!(!interrupts_pods(&[]));
    }

    #[test]
    fn a_cluster_is_as_well_as_its_nodes_and_its_own_workloads() {
        let node = |name: &str, ready: &str| json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let workload = |kind: &str, name: &str, spec: Value, status: Value| json!({"kind": kind, "metadata": {"name": name}, "spec": spec, "status": status});
        let nodes = json!({"items": [node("a", "True"), node("b", "Unknown"), {"metadata": {"name": "c"}}]});
        let workloads = json!({"items": [
            workload("Deployment", "coredns", json!({"replicas": 2}), json!({"availableReplicas": 1})),
            workload("Deployment", "whole", json!({}), json!({"availableReplicas": 1})),
            workload("Deployment", "off", json!({"replicas": 0}), json!({})),
            workload("DaemonSet", "flannel", json!({}), json!({"desiredNumberScheduled": 3})),
            workload("DaemonSet", "proxy", json!({}), json!({"desiredNumberScheduled": 3, "numberAvailable": 3})),
        ]});
        let ills: Vec<String> = find_ills(&nodes, &workloads).into_iter().collect();
        assert_eq!(
            ills,
            [
                "DaemonSet kube-system/flannel has pods that are not ready",
                "Deployment kube-system/coredns has pods that are not ready",
                "node b is not Ready",
                "node c is not Ready",
            ]
        );
        assert!(find_ills(&Value::Null, &Value::Null).is_empty());
    }
}
