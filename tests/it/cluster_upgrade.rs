//! Rolling updates on real hosts: pods leave a node before its container runtime or its kubelet is
//! exchanged, budgets hold, and what a failure leaves is as it was.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "asks the API while turnup runs")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster_addons::agnhost;
use crate::cluster_support::{Events, Site, TIMEOUT, say};

const CONTROL_PLANE: &str = "it-control-plane-0";
pub(crate) const OLD: &str = "1.35.4";
pub(crate) const NEW: &str = "1.36.3";
/// Only what hangs takes as long.
const SOON: Duration = Duration::from_mins(5);

/// A Deployment of agnhost's web server with a budget of so many pods that must stay.
pub(crate) fn start_shop(site: &Site, replicas: u32, min_available: u32) {
    start_changed_shop(site, replicas, min_available, |pod| pod["terminationGracePeriodSeconds"] = 1.into());
}

/// The same with pods that end in another way.
pub(crate) fn start_changed_shop(site: &Site, replicas: u32, min_available: u32, change: impl FnOnce(&mut Value)) {
    let labels = json!({"app": "shop"});
    let container = json!({
        "name": "shop", "image": agnhost(site), "imagePullPolicy": "Never", "args": ["netexec", "--http-port=8080"],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
    });
    let spread = json!({"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels}});
    let mut pod = json!({"containers": [container], "topologySpreadConstraints": [spread]});
    change(&mut pod);
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "shop"}, "spec": {
            "minAvailable": min_available, "selector": {"matchLabels": labels}}},
    ]});
    let file = site.dir.join("shop.json");
    fs_err::write(&file, objects.to_string()).unwrap();
    site.kubectl(&["apply", "--filename", &file.display().to_string()]);
    site.kubectl(&["rollout", "status", "deployment/shop", "--timeout=180s"]);
}

/// kubectl for the time in which turnup runs.
pub(crate) fn kubectl_beside(site: &Site) -> Command {
    let mut kubectl = Command::new(site.ok(&["artifacts", "path", "kubectl"]).out.trim());
    kubectl.arg(format!("--kubeconfig={}", site.path("kubeconfig").display())).arg("--request-timeout=5s");
    kubectl
}

/// The fewest pods of the shop that were ready at once while `act` ran.
pub(crate) fn fewest_ready<R>(site: &Site, act: impl FnOnce() -> R) -> (R, i64) {
    let mut kubectl = kubectl_beside(site);
    kubectl.args(["get", "deployment", "shop", "--output=jsonpath={.status.readyReplicas}"]);
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut fewest = i64::MAX;
            while !is_over.load(Ordering::SeqCst) {
                // An API server that restarts says nothing about pods.
                let output = kubectl.output().unwrap();
                if output.status.success() {
                    fewest = fewest.min(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap_or(0));
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            fewest
        }
    });
    let result = act();
    is_over.store(true, Ordering::SeqCst);
    (result, watching.join().unwrap())
}

/// No Node is cordoned, or says that turnup cordoned it.
pub(crate) fn none_is_cordoned(site: &Site) {
    for node in site.get(&["nodes"]) {
        assert_ne!(node["spec"]["unschedulable"], true, "{node}");
        assert!(node["metadata"]["annotations"].get("turnup.dev/cordoned").is_none(), "{node}");
    }
}

/// The places of these in the stream of events, in their order.
fn order(events: &Events, wanted: &[(&str, &str, &str)]) {
    let find = |(kind, field, value): &(&str, &str, &str)| {
        let mut all = events.0.iter().map(|event| &event["event"]);
        all.position(|event| event["kind"] == *kind && event[*field] == *value).unwrap_or_else(|| panic!("{value}"))
    };
    let places: Vec<usize> = wanted.iter().map(find).collect();
    assert!(places.is_sorted(), "{wanted:?}: {places:?}");
}

/// One worker at a time is drained, changed and uncordoned, and the shop never closes. As many as
/// `interrupted` may have their new kubelet from a run that was killed: nothing of them restarts.
pub(crate) fn workers_are_drained_one_by_one(site: &Site, workers: &[&str], interrupted: usize, change: &[&str]) {
    let min_available = u32::try_from(workers.len() - 1).unwrap();
    start_shop(site, min_available + 1, min_available);
    let words: Vec<&str> = ["config", "set"].into_iter().chain(change.iter().copied()).collect();
    site.ok(&words);
    let plan = site.ok(&["plan"]).out;
    let is_due = |worker: &&str| plan.contains(&format!("drain {worker}"));
    let due: Vec<&str> = workers.iter().copied().filter(is_due).collect();
    assert!(due.len() + interrupted >= workers.len(), "{plan}");
    let (events, fewest) = fewest_ready(site, || site.up());
    assert!(fewest >= i64::from(min_available), "only {fewest} pods were ready");
    let drained: Vec<String> =
        events.of("milestone", "name").into_iter().filter(|name| name.ends_with(" drained")).collect();
    for worker in &due {
        assert!(drained.contains(&format!("{worker} drained")), "{drained:?}");
    }
    // Each step ends before the next node is drained.
    let first = drained.iter().find(|name| due.iter().any(|worker| name.starts_with(worker))).unwrap();
    let first = first.strip_suffix(" drained").unwrap();
    let second = due.iter().find(|worker| **worker != first).unwrap();
    let (done, next) = (format!("bootstrap/join@{first}"), format!("{second} drained"));
    order(&events, &[("step-done", "step", &done), ("milestone", "name", &next)]);
    // A run that goes on after a failure may find the control plane done.
    let control_plane = format!("bootstrap/control-plane@{CONTROL_PLANE}");
    if events.of("step-done", "step").contains(&control_plane) {
        order(&events, &[("step-done", "step", &control_plane), ("step-done", "step", &done)]);
    }
    none_is_cordoned(site);
    site.kubectl(&["delete", "deployment/shop", "poddisruptionbudget/shop", "--wait=false"]);
}

pub(crate) fn versions(site: &Site) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let nodes = site.get(&["nodes"]).into_iter();
    nodes.map(|node| (text(&node["metadata"]["name"]), text(&node["status"]["nodeInfo"]["kubeletVersion"]))).collect()
}

/// A budget that allows nothing stops the update before its node is changed.
fn a_budget_stops_the_update(site: &Site, workers: &[&str]) {
    start_shop(site, 3, 3);
    site.ok(&["config", "set", &format!("phase2.kubernetes_version={NEW}"), "phase2.update.drain_timeout=20s"]);
    let done = site.fails(4, &["up"]);
    assert!(done.err.contains("did not go within") && done.err.contains("pod default/shop-"), "{done}");
    assert!(done.err.contains("disruption budget") && done.err.contains("phase2.update.force_drain=y"), "{done}");
    none_is_cordoned(site);
    let old = versions(site).into_iter().filter(|(_, version)| version.ends_with(OLD)).count();
    assert_eq!(old, workers.len(), "no worker was changed: {:?}", versions(site));
    site.kubectl(&["delete", "deployment/shop", "poddisruptionbudget/shop"]);
}

/// Killed while a node is cordoned: the next run uncordons it.
fn a_killed_update_leaves_no_cordon(site: &Site) {
    let is_cordoned = |node: &Value| node["spec"]["unschedulable"] == true;
    let mut kubectl = kubectl_beside(site);
    kubectl.args(["get", "nodes", "--output=json"]);
    let (running, start) = (site.start(&["up"]), Instant::now());
    loop {
        let nodes: Value = serde_json::from_slice(&kubectl.output().unwrap().stdout).unwrap_or_default();
        if nodes["items"].as_array().into_iter().flatten().any(is_cordoned) {
            break;
        }
        assert!(start.elapsed() < SOON, "no node was cordoned");
        std::thread::sleep(Duration::from_millis(200));
    }
    kill_process(Pid::from_child(&running.child), Signal::KILL).unwrap();
    running.wait(TIMEOUT);
}

#[test]
#[ignore = "builds a second version of Kubernetes: make test-upgrade"]
fn cluster_upgrade_from_one_minor_version_to_the_next() {
    let Some(site) = Site::of_cluster("upgrade", "10.125.11.0/24", 3) else { return };
    site.ok(&["config", "set", &format!("phase2.kubernetes_version={OLD}")]);
    site.warm_cache();
    site.ok(&["up"]);
    let workers = ["it-worker-0", "it-worker-1", "it-worker-2"];
    assert!(versions(&site).iter().all(|(_, version)| version.ends_with(OLD)), "{:?}", versions(&site));
    a_budget_stops_the_update(&site, &workers);
    a_killed_update_leaves_no_cordon(&site);
    let since = Instant::now();
    workers_are_drained_one_by_one(&site, &workers, 1, &["phase2.update.drain_timeout=5m"]);
    say(&format!("the rest of the upgrade: {:.1} s", since.elapsed().as_secs_f64()));
    assert!(versions(&site).iter().all(|(_, version)| version.ends_with(NEW)), "{:?}", versions(&site));
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.ok(&["down", "--yes"]);
}
