//! Local hosts that this machine replaces when they die, as a cloud does: a worker, the load
//! balancer, each of three control-plane hosts in turn, and all of these at once. Each comes back
//! with no run of turnup, as the member that it was, and nothing that was written is lost.
#![expect(clippy::disallowed_methods, reason = "the test looks at this machine with the system's own tools")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cluster_machines::{Identity, Writer, is_ready};
use crate::cluster_support::{Site, can_make_hosts, processes, say, sh};

const SUBNET: &str = "10.123.41.0/24";
const GATEWAY: &str = "10.123.41.1";
const FIRST: usize = 10;
const COUNT: usize = 3;
const WORKER: &str = "it-workers-0";
const BALANCER: &str = "it-api";
/// Where that has its list of servers.
const FOLDER: &str = "/etc/turnup/balancer";
/// From the end of a host to the next one at work, on a machine with other work.
const RETURNS: Duration = Duration::from_mins(15);

/// Ends the loop devices that a failed test leaves.
struct Loops(PathBuf);

impl Loops {
    fn list(&self) -> Vec<String> {
        let output = Command::new("losetup").args(["--noheadings", "--output", "NAME,BACK-FILE"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let ours = self.0.display().to_string();
        text.lines().filter(|line| line.contains(&ours)).map(str::to_owned).collect()
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for line in self.list() {
            sh(&format!("losetup --detach {}", line.split_whitespace().next().unwrap()));
        }
    }
}

fn control_plane(number: usize) -> String {
    format!("it-control-plane-{number}")
}

fn address(number: usize) -> String {
    format!("10.123.41.{}", FIRST + number)
}

/// The end of these hosts at once, without a word to anything that runs on them, until other
/// machines are in their places. What ran on the old ones is gone by then.
fn replace(site: &Site, hosts: &[String]) -> Instant {
    let ended: Vec<(Pid, Pid)> = hosts.iter().map(|host| (site.leader(host).unwrap(), site.init(host))).collect();
    let since = Instant::now();
    for (_, init) in &ended {
        kill_process(*init, Signal::KILL).unwrap();
    }
    for (host, (old, _)) in hosts.iter().zip(ended) {
        wait("another machine", since, || site.leader(host).is_some_and(|pid| pid != old));
    }
    since
}

fn wait(what: &str, since: Instant, is_so: impl Fn() -> bool) -> f64 {
    while !is_so() {
        assert!(since.elapsed() < RETURNS, "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
    since.elapsed().as_secs_f64()
}

/// The names of the Nodes of the group that are ready.
fn ready_workers(site: &Site) -> Vec<String> {
    // Of the first host itself: the load balancer may be away.
    let server = format!("--server=https://{}:6443", address(0));
    let nodes = site.try_kubectl(&[&server, "get", "nodes", "--selector=turnup.dev/group=workers", "--output=json"]);
    let Ok(text) = nodes else { return Vec::new() };
    let list: Value = serde_json::from_str(&text).unwrap();
    let is_ready = |node: &&Value| {
        let mut conditions = node["status"]["conditions"].as_array().unwrap().iter();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let nodes = list["items"].as_array().unwrap().iter().filter(is_ready);
    nodes.map(|node| node["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// The next one is another Node. Returns the name of the dead one.
fn a_worker_is_replaced(site: &Site) -> String {
    let before = ready_workers(site);
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(before[0].starts_with("it-workers-0-"), "{before:?}");
    let since = replace(site, &[WORKER.to_owned()]);
    let took = wait("another worker", since, || ready_workers(site).iter().any(|name| *name != before[0]));
    say(&format!("from a dead worker to the next Node that is ready: {took:.1} s"));
    before[0].clone()
}

/// The load balancer is for clients alone: while it answers none, a worker joins and works.
fn a_worker_joins_without_the_load_balancer(site: &Site) {
    let proxy = site.kubectl(&["--namespace=kube-system", "get", "configmap", "kube-proxy", "--output=yaml"]);
    assert!(proxy.contains("server: https://127.0.0.1:3992"), "{proxy}");
    let is_it = |argv: &[String]| argv.get(2).is_some_and(|word| word == "balancer") && argv.concat().contains(FOLDER);
    let balancer = processes().into_iter().find(|process| is_it(&process.argv)).unwrap().pid;
    kill_process(balancer, Signal::STOP).unwrap();
    let dead = a_worker_is_replaced(site);
    kill_process(balancer, Signal::CONT).unwrap();
    let joined = ready_workers(site).into_iter().find(|name| *name != dead).unwrap();
    let label = "--output=jsonpath={.metadata.labels.turnup\\.dev/balancer}";
    assert_eq!(site.kubectl(&["get", "node", &joined, label]), "true");
    site.kubectl(&["delete", "node", &dead]);
}

fn control_planes_are_replaced(site: &Site, numbers: &[usize]) {
    let hosts: Vec<String> = numbers.iter().map(|number| control_plane(*number)).collect();
    let since = replace(site, &hosts);
    for number in numbers {
        let took = wait("its API server", since, || is_ready(&address(*number)));
        say(&format!("{} of {}: ready after {took:.1} s", control_plane(*number), numbers.len()));
    }
}

/// The answer of the service to a host, or to this machine where no host asks.
fn ask(site: &Site, host: Option<usize>, request: &str) -> String {
    let script = format!(
        "exec 3<>/dev/tcp/{GATEWAY}/3994; printf '{request} HTTP/1.0\\r\\nContent-Length: 0\\r\\n\\r\\n' >&3; cat <&3"
    );
    let output = match host {
        Some(number) => {
            let machine = site.spec(&control_plane(number))["machine"].as_str().unwrap().to_owned();
            let netns = format!("--net=/run/netns/{machine}");
            Command::new("nsenter").args([&netns, "bash", "-c", &script]).output().unwrap()
        }
        None => Command::new("bash").args(["-c", &script]).output().unwrap(),
    };
    String::from_utf8(output.stdout).unwrap()
}

/// A volume is one host's as long as that runs, whichever other one asks for it.
fn no_host_gets_the_volume_of_another(site: &Site) {
    let of_first = "/volumes/it-etcd-main-a";
    let found = ask(site, Some(0), &format!("GET {of_first}"));
    let told = r#"{"name":"it-etcd-main-a","tags":{"cluster":"it","etcd":"main","member":"a"},"state":"in-use","host":"it-control-plane-0","here":true}"#;
    assert!(found.ends_with(told), "{found}");
    let refused = ask(site, Some(1), &format!("POST {of_first}"));
    assert!(refused.contains(" 409 "), "{refused}");
    assert!(ask(site, Some(1), &format!("GET {of_first}")).contains(r#""here":false"#));
    assert!(ask(site, None, "GET /volumes").contains(" 403 "), "this machine is no host");
    assert!(ask(site, Some(0), "GET /volumes/../../etc/passwd").contains(" 404 "));
}

/// As slow as a cloud, and asked twice at the same time.
fn slow_volumes_come_all_the_same(site: &Site) {
    let path = site.path("provision/service.json");
    let mut service: Value = serde_json::from_str(&fs_err::read_to_string(&path).unwrap()).unwrap();
    service["attach_delay"] = serde_json::json!(4000);
    fs_err::write(&path, service.to_string()).unwrap();
    site.ok(&["local", "service", "start", "--spec", &path.display().to_string()]);
    control_planes_are_replaced(site, &[0, 1]);
    let log = site.read("logs/service.log");
    assert!(log.contains("the volume it-etcd-main-b is attached to it-control-plane-1"), "{log}");
}

fn service_of(site: &Site) -> Option<Pid> {
    let path = site.path("provision/service.json").display().to_string();
    let is_it = |argv: &[String]| argv.get(2).is_some_and(|word| word == "serve") && argv.contains(&path);
    processes().into_iter().find(|process| is_it(&process.argv)).map(|process| process.pid)
}

#[test]
#[ignore = "many minutes: make test-heal"]
fn cluster_replaced_hosts_come_back_by_themselves() {
    if !can_make_hosts() {
        return;
    }
    let site = Site::new("replaced");
    let loops = Loops(site.dir.clone());
    site.configure(SUBNET, 1);
    site.ok(&["config", "set", "phase1.control_plane.count=3", "phase1.local.replace_hosts=y"]);
    site.warm_cache();
    let before = site.look_around();
    site.ok(&["up"]);
    site.ok(&["validate"]);
    assert!(site.ok(&["up"]).err.contains("0 ran"));
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    a_worker_joins_without_the_load_balancer(&site);
    let hosts: Vec<String> = (0..COUNT).map(control_plane).collect();
    let who = Identity::of(&site, &hosts);
    let writer = Writer::start(&site);
    writer.wait_for_one_more();

    no_host_gets_the_volume_of_another(&site);
    let worker = a_worker_is_replaced(&site);
    let since = replace(&site, &[BALANCER.to_owned()]);
    let took = wait("the load balancer", since, || site.try_kubectl(&["get", "--raw=/readyz"]).is_ok());
    say(&format!("from a dead load balancer to an answer: {took:.1} s"));
    for number in 0..COUNT {
        control_planes_are_replaced(&site, &[number]);
        writer.wait_for_one_more();
        who.require_at(&site, &hosts);
    }
    control_planes_are_replaced(&site, &[0, 1, 2]);
    writer.wait_for_one_more();
    slow_volumes_come_all_the_same(&site);
    writer.wait_for_one_more();
    writer.require_all(&site);
    who.require_at(&site, &hosts);

    // A Node whose machine is gone is an error for `validate`; after five minutes `up` deletes it.
    site.kubectl(&["delete", "node", &worker]);
    // A service that died is started again, and turnup logs in with the host keys that it knows.
    kill_process(service_of(&site).unwrap(), Signal::KILL).unwrap();
    while service_of(&site).is_some() {
        std::thread::sleep(Duration::from_millis(20));
    }
    site.ok(&["up"]);
    assert!(service_of(&site).is_some());
    assert!(site.ok(&["up"]).err.contains("0 ran"));
    site.ok(&["validate"]);

    site.ok(&["down", "--yes"]);
    assert_eq!(service_of(&site), None);
    assert_eq!(loops.list(), [""; 0]);
    assert!(!Path::new(&site.state()).exists());
    let after = site.look_around();
    let left: Vec<&String> = after.difference(&before).collect();
    assert!(left.is_empty(), "left behind or changed: {left:#?}");
}
