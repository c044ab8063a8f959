//! Hosts of a node group, which turnup never logs in to, are renewed by its rolling update:
//! drained, told to end and replaced, one after the other, while a Service answers; killed in the
//! middle it goes on, and a template that cannot work harms the first host and no other.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster_support::{Events, Site, TIMEOUT, can_make_hosts, say};
use crate::cluster_upgrade::{fewest_ready, kubectl_beside, none_is_cordoned, start_shop};

const SUBNET: &str = "10.123.43.0/24";
const CONTROL_PLANE: &str = "10.123.43.10";
const PORT: u16 = 30_080;
const COUNT: usize = 3;
/// Only what hangs takes as long.
const SOON: Duration = Duration::from_mins(10);

/// A Node of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Worker {
    boot_id: String,
    template: String,
    is_available: bool,
    is_retired: bool,
}

fn read_workers(list: &Value) -> BTreeMap<String, Worker> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |node: &Value| {
        let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let worker = Worker {
            boot_id: text(&node["status"]["nodeInfo"]["bootID"]),
            template: text(&node["metadata"]["labels"]["turnup.dev/template"]),
            is_available: is_ready && node["spec"]["unschedulable"] != true,
            is_retired: node["metadata"]["annotations"]["turnup.dev/retire"].is_string(),
        };
        (text(&node["metadata"]["name"]), worker)
    };
    list["items"].as_array().into_iter().flatten().map(read).collect()
}

fn workers(site: &Site) -> BTreeMap<String, Worker> {
    read_workers(&json!({"items": site.get(&["nodes", "--selector=turnup.dev/group=workers"])}))
}

/// The group, each host of which may run so many pods, with this kept for its kubelet.
fn configure(site: &Site, max_pods: u32, kept: &str) {
    let group = json!([{"name": "workers", "role": "worker", "size": COUNT, "max_pods": max_pods,
        "kube_reserved": {"memory": kept}}]);
    site.ok(&["config", "set", &format!("phase1.node_groups={group}")]);
}

/// The shop behind a port of every node; its pods go when no connection leads to them any more.
fn open_shop(site: &Site) {
    start_shop(site, 3, 2);
    let patch = json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 20, "containers": [
        {"name": "shop", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}]}}}});
    site.kubectl(&["patch", "deployment", "shop", &format!("--patch={patch}")]);
    site.kubectl(&["rollout", "status", "deployment/shop", "--timeout=180s"]);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {
        "type": "NodePort", "selector": {"app": "shop"}, "ports": [{"port": 80, "targetPort": 8080, "nodePort": PORT}]}});
    let file = site.dir.join("service.json");
    fs_err::write(&file, service.to_string()).unwrap();
    site.kubectl(&["apply", "--filename", &file.display().to_string()]);
}

/// Whether the shop answers.
fn is_open() -> bool {
    let request = || -> std::io::Result<String> {
        let address: SocketAddr = format!("{CONTROL_PLANE}:{PORT}").parse().map_err(std::io::Error::other)?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /hostname HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    request().is_ok_and(|answer| answer.contains(" 200 ") && answer.contains("shop-"))
}

/// What was seen while `act` ran.
#[derive(Debug)]
struct Seen {
    /// The fewest hosts of the group that took pods at once.
    fewest: usize,
    requests: usize,
    failed: usize,
}

fn watch<R>(site: &Site, act: impl FnOnce() -> R) -> (R, Seen) {
    let mut kubectl = kubectl_beside(site);
    kubectl.args(["get", "nodes", "--selector=turnup.dev/group=workers", "--output=json"]);
    let is_over = Arc::new(AtomicBool::new(false));
    let nodes = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut fewest = usize::MAX;
            while !is_over.load(Ordering::SeqCst) {
                let output = kubectl.output().unwrap();
                if output.status.success() {
                    let workers = read_workers(&serde_json::from_slice(&output.stdout).unwrap());
                    fewest = fewest.min(workers.values().filter(|worker| worker.is_available).count());
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            fewest
        }
    });
    let requests = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let (mut all, mut failed) = (0, 0);
            while !is_over.load(Ordering::SeqCst) {
                all += 1;
                failed += usize::from(!is_open());
                std::thread::sleep(Duration::from_millis(100));
            }
            (all, failed)
        }
    });
    let result = act();
    is_over.store(true, Ordering::SeqCst);
    let (requests, failed) = requests.join().unwrap();
    (result, Seen { fewest: nodes.join().unwrap(), requests, failed })
}

/// A run that dies when it has told the first machine to end.
fn kill_in_the_middle(site: &Site) {
    let mut kubectl = kubectl_beside(site);
    kubectl.args(["get", "nodes", "--output=json"]);
    let (running, start) = (site.start(&["up"]), Instant::now());
    loop {
        let nodes = serde_json::from_slice(&kubectl.output().unwrap().stdout).unwrap_or_default();
        if read_workers(&nodes).values().any(|worker| worker.is_retired) {
            break;
        }
        assert!(start.elapsed() < SOON, "no machine was told to end: {}", running.said());
        std::thread::sleep(Duration::from_millis(200));
    }
    kill_process(Pid::from_child(&running.child), Signal::KILL).unwrap();
    running.wait(TIMEOUT);
}

/// Every host is another machine, of another template, and was drained first.
fn every_host_is_renewed(site: &Site) {
    let before = workers(site);
    let of_old: BTreeSet<&str> = before.values().map(|worker| worker.template.as_str()).collect();
    assert!(before.len() == COUNT && of_old.len() == 1 && !of_old.contains(""), "{before:?}");
    configure(site, 60, "50Mi");
    let plan = site.ok(&["plan"]).out;
    for name in before.keys() {
        assert!(plan.contains(&format!("-/+ host {name}")), "{plan}");
    }
    assert!(plan.contains("of the group workers: drained first, at most 1 at a time"), "{plan}");
    let since = Instant::now();
    let renew = || {
        kill_in_the_middle(site);
        site.up()
    };
    let ((events, seen), fewest) = fewest_ready(site, || watch(site, renew));
    say(&format!("{COUNT} hosts renewed in {:.1} s, with a kill: {seen:?}", since.elapsed().as_secs_f64()));
    assert_eq!((seen.fewest, seen.failed), (COUNT - 1, 0), "{seen:?}");
    assert!(seen.requests > 100, "{seen:?}");
    assert!(fewest >= 2, "only {fewest} pods were ready");
    let after = workers(site);
    let of_new: BTreeSet<&str> = after.values().map(|worker| worker.template.as_str()).collect();
    assert!(after.len() == COUNT && of_new.len() == 1 && of_new.is_disjoint(&of_old), "{after:?}");
    assert!(after.values().all(|worker| worker.is_available), "{after:?}");
    let old_boots: BTreeSet<&String> = before.values().map(|worker| &worker.boot_id).collect();
    assert!(after.values().all(|worker| !old_boots.contains(&worker.boot_id)), "{before:?} {after:?}");
    were_drained(&events, COUNT - 1);
    none_is_cordoned(site);
    assert!(site.ok(&["up"]).err.contains("0 ran"));
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
}

fn were_drained(events: &Events, least: usize) {
    let drained = events.of("milestone", "name").into_iter().filter(|name| name.ends_with(" drained"));
    let drained: BTreeSet<String> = drained.collect();
    assert!(drained.len() >= least, "{drained:?}");
}

/// kubelet ends at once where it keeps more memory than there is; nothing sees that beforehand.
fn a_template_that_cannot_work_harms_one_host(site: &Site) {
    let before = workers(site);
    configure(site, 60, "900Gi");
    let (done, seen) = watch(site, || site.fails(4, &["up"]));
    assert!(done.err.contains("no new host of the group workers became Ready within"), "{done}");
    assert!(
        done.err.contains("no other host is touched")
            && done.err.contains("turnup provision; then end that machine; then: turnup up"),
        "{done}"
    );
    assert_eq!((seen.fewest, seen.failed), (COUNT - 1, 0), "{seen:?}");
    let left = workers(site);
    assert_eq!(left.len(), COUNT - 1, "{left:?}");
    for (name, worker) in &left {
        assert_eq!(Some(worker), before.get(name), "it is as it was");
    }
    // As the error says: a good configuration, for the next machine, and the end of this one.
    configure(site, 60, "50Mi");
    site.ok(&["provision"]);
    let host = |number: usize| format!("it-workers-{number}");
    let is_node = |number: &usize| left.keys().any(|name| name.starts_with(&host(*number)));
    let broken = (0..COUNT).find(|number| !is_node(number)).unwrap();
    let (old, start) = (site.leader(&host(broken)).unwrap(), Instant::now());
    kill_process(old, Signal::KILL).unwrap();
    while site.leader(&host(broken)).is_none_or(|leader| leader == old) {
        assert!(start.elapsed() < SOON, "no other machine");
        std::thread::sleep(Duration::from_millis(200));
    }
    site.ok(&["up"]);
    let after = workers(site);
    assert!(after.len() == COUNT && after.values().all(|worker| worker.is_available), "{after:?}");
    assert_eq!(after.values().map(|worker| &worker.template).collect::<BTreeSet<_>>().len(), 1, "{after:?}");
    assert!(left.iter().all(|(name, worker)| after.get(name) == Some(worker)), "{left:?} {after:?}");
}

#[test]
#[ignore = "many minutes: make test-upgrade"]
fn cluster_renew_hosts_that_join_by_themselves() {
    if !can_make_hosts() {
        return;
    }
    let site = Site::new("renew");
    site.configure(SUBNET, 0);
    site.ok(&["config", "set", "phase1.local.replace_hosts=y", "phase2.host_timeout=4m"]);
    configure(&site, 50, "50Mi");
    site.warm_cache();
    site.ok(&["up"]);
    open_shop(&site);
    let start = Instant::now();
    while !is_open() {
        assert!(start.elapsed() < SOON, "the shop does not answer");
        std::thread::sleep(Duration::from_millis(200));
    }
    every_host_is_renewed(&site);
    a_template_that_cannot_work_harms_one_host(&site);
    site.ok(&["validate"]);
    site.ok(&["down", "--yes"]);
}
