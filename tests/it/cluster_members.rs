//! Three control-plane hosts without anything in front of them, on real hosts that another
//! directory lends: all at once, one cut off, two of them lost and recreated, each changed in its
//! turn, and down again. Their names are in the zone of a real DNS server.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_reset::{ETCDCTL, assert_same, look, on_host, settle};
use crate::cluster_support::{Site, say};
use crate::dns_support::{DnsServer, Kind};

/// The lent hosts behind the names of this cluster.
const HOSTS: [(&str, &str); 4] =
    [("m1", "it-control-plane-0"), ("m2", "it-worker-0"), ("m3", "it-worker-1"), ("w1", "it-worker-2")];
const SUBNET: &str = "10.123.64.0/24";
/// This machine, as the hosts see it.
const GATEWAY: &str = "10.123.64.1";
fn prepare() -> Option<(Site, Value, DnsServer)> {
    let site = Site::of_cluster("three", SUBNET, 3)?;
    // The hosts reach this machine once their network is there.
    site.ok(&["provision"]);
    let dns = DnsServer::start(Kind::Bind, GATEWAY.parse().unwrap());
    site.ok(&["config", "set", &format!("phase1.local.open_ports={}", dns.address.port())]);
    site.ok(&["provision"]);
    settle(&site);
    let lent = site.hosts();
    let field = |host: &str, pointer: &str| lent[host].pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let listed = |(name, host): &(&str, &str)| {
        let role = if name.starts_with('m') { "control-plane" } else { "worker" };
        json!({"name": name, "address": field(host, "/address"), "role": role, "host_key": field(host, "/ssh/host_key")})
    };
    let list = HOSTS.iter().map(listed).collect();
    Some((site, list, dns))
}

fn kubectl(site: &Site, args: &[&str]) -> Output {
    site.lent_kubectl("three").args(args).output().unwrap()
}

#[track_caller]
fn kubectl_ok(site: &Site, args: &[&str]) -> String {
    let output = kubectl(site, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The members of etcd and whether each votes, asked on the first host.
fn members(site: &Site) -> Vec<(String, bool)> {
    let command = format!("{ETCDCTL} --write-out=json member list");
    let list: Value = serde_json::from_str(&on_host(site, HOSTS[0].1, &command)).unwrap();
    let member = |member: &Value| (member["name"].as_str().unwrap().to_owned(), member["isLearner"] != true);
    let mut members: Vec<_> = list["members"].as_array().unwrap().iter().map(member).collect();
    members.sort();
    members
}

fn three() -> Vec<(String, bool)> {
    ["m1", "m2", "m3"].map(|name| (name.to_owned(), true)).into()
}

/// A worker reaches the API servers by its own balancer, a control-plane host's kubelet the one
/// beside it.
fn each_has_its_balancer(site: &Site) {
    for (name, host) in HOSTS {
        on_host(site, host, "systemctl is-active --quiet turnup-balancer");
        let port = if name == "w1" { 3992 } else { 6443 };
        on_host(site, host, &format!("grep -q https://127.0.0.1:{port} /etc/kubernetes/kubelet.conf"));
    }
    let proxied = kubectl_ok(site, &["get", "configmaps", "--namespace=kube-system", "--output=yaml"]);
    assert!(proxied.contains("https://127.0.0.1:3992"), "kube-proxy: {proxied}");
}

/// The first host, which the kubeconfig names, is cut off without a word, longer than Kubernetes
/// waits for a node: workers go on, and so does turnup.
fn the_first_is_cut_off(site: &Site, list: &Value, dns: &DnsServer) {
    let (first, third) = (HOSTS[0].1, format!("--server=https://{}:6443", list[2]["address"].as_str().unwrap()));
    let elsewhere = |args: &[&str]| kubectl(site, &[&[third.as_str(), "--request-timeout=2s"], args].concat());
    let ready = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    let heartbeat = ["get", "lease", "w1", "--namespace=kube-node-lease", "--output=jsonpath={.spec.renewTime}"];
    let said = |args: &[&str]| String::from_utf8(elsewhere(args).stdout).unwrap();
    site.in_host(first, "ip link set host0 down");
    let since = Instant::now();
    while !elsewhere(&["create", "configmap", "meanwhile"]).status.success() {
        assert!(since.elapsed() < OUTAGE, "writes did not go on");
    }
    say(&format!("cut off: writes go on after {:.1} s", since.elapsed().as_secs_f64()));
    wait_for_names(dns, list, &[1, 2]);
    say(&format!("its name is without it after {:.1} s", since.elapsed().as_secs_f64()));
    let before = said(&heartbeat);
    let (mut looks, mut unready) = (0, 0);
    while since.elapsed() < Duration::from_secs(80) {
        let status = said(&["get", "node", "w1", ready]);
        (looks, unready) = (looks + 1, unready + u32::from(status == "False" || status == "Unknown"));
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_eq!((unready, looks > 5), (0, true), "of {looks} looks {unready} found the worker not ready");
    assert_ne!(before, said(&heartbeat), "its kubelet goes on");
    assert!(site.lent(0, &["addons", "list"]).out.contains("flannel"), "turnup asks another host");
    let told = site.lent(5, &["status"]).out;
    assert!(told.contains("w1: turnup-balancer: m1 is out: "), "{told}");
    site.in_host(first, &format!("ip link set host0 up && ip route add default via {GATEWAY} dev host0"));
    timed("it is back", || {
        kubectl_ok(site, &[third.as_str(), "wait", "--for=condition=Ready", "node/m1", "--timeout=300s"])
    });
}

/// The hosts are to keep names on this server.
fn set_names(site: &Site, dns: &DnsServer) {
    let set = dns.settings(&site.dir);
    site.lent(0, &["config", "set"].into_iter().chain(set.iter().map(String::as_str)).collect::<Vec<_>>());
}

/// Both names lead to these of the listed hosts.
#[track_caller]
fn wait_for_names(dns: &DnsServer, list: &Value, hosts: &[usize]) {
    let mut expected: Vec<&str> = hosts.iter().map(|at| list[at]["address"].as_str().unwrap()).collect();
    expected.sort_unstable();
    for name in ["api.it.example.test", "api.internal.it.example.test"] {
        let since = Instant::now();
        while dns.dig(name, "A") != expected {
            assert!(since.elapsed() < Duration::from_mins(2), "{name}: {:?}", dns.dig(name, "A"));
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn timed<R>(what: &str, act: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = act();
    say(&format!("{what}: {:.1} s", start.elapsed().as_secs_f64()));
    result
}

/// Longer than any request on a slow machine; shorter than an outage of an API server.
const OUTAGE: Duration = Duration::from_mins(1);

/// How many requests the API server got meanwhile, and how many had no answer within this time.
fn asked_meanwhile(site: &Site, act: impl FnOnce()) -> (usize, usize) {
    let mut kubectl = site.lent_kubectl("three");
    kubectl.args(["get", "configmap", "kept", "--request-timeout=30s"]);
    let is_over = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut ask = || kubectl.output().unwrap().status.success();
            let (mut asked, mut failed) = (0, 0);
            while !is_over.load(Ordering::SeqCst) {
                asked += 1;
                let since = Instant::now();
                while !ask() {
                    if since.elapsed() > OUTAGE {
                        failed += 1;
                        break;
                    }
                    std::thread::sleep(Duration::from_secs(1));
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            (asked, failed)
        }
    });
    act();
    is_over.store(true, Ordering::SeqCst);
    asking.join().unwrap()
}

/// One dies: it is taken off the list while it is unreachable, and joins again as a new host.
fn without_a_dead_one(site: &Site, list: &Value) {
    let (dead, hosts) = (HOSTS[1].1, |list: &Value| format!("phase1.baremetal.hosts={list}"));
    site.in_host(dead, "ip link set host0 down");
    let mut others = list.clone();
    others.as_array_mut().unwrap().remove(1);
    site.lent(0, &["config", "set", &hosts(&others)]);
    let check = site.lent(0, &["config", "check"]);
    assert!([&*check.out, &*check.err].concat().contains("survive no more losses than 1"), "{check}");
    timed("it is taken out", || site.lent(0, &["up"]));
    assert_eq!(members(site), [("m1".to_owned(), true), ("m3".to_owned(), true)]);
    assert!(!kubectl(site, &["get", "node", "m2"]).status.success());

    // The route went with the link.
    site.in_host(dead, &format!("ip link set host0 up && ip route add default via {GATEWAY} dev host0"));
    site.lent(0, &["config", "set", &hosts(list)]);
    let refused = site.lent(4, &["up"]);
    assert!(refused.err.contains("m2 has the data of a member that etcd has forgotten"), "{refused}");
    site.lent(0, &["reset", "m2", "--yes"]);
    timed("it comes back", || site.lent(0, &["up"]));
    assert_eq!(members(site), three());
}

#[test]
#[ignore = "some minutes: make test-heal"]
fn three_control_planes_survive_lost_members() {
    let Some((site, list, dns)) = prepare() else { return };
    let before = look(&site, HOSTS[1].1);
    let hosts = format!("phase1.baremetal.hosts={list}");
    let key = format!("phase1.ssh.private_key_file={}", site.path("ssh/id_ed25519").display());
    let set = ["config", "set", "phase1.cloud_provider=baremetal", "phase1.cluster_name=three", &key, &hosts];
    site.lent(0, &[&set[..], &["phase2.network.flannel_backend=vxlan"]].concat());
    set_names(&site, &dns);

    timed("three control-plane hosts and a worker", || site.lent(0, &["up"]));
    assert_eq!(members(&site), three());
    each_has_its_balancer(&site);
    wait_for_names(&dns, &list, &[0, 1, 2]);
    assert_eq!(site.lent(0, &["plan"]).out.trim(), "nothing to do");
    kubectl_ok(&site, &["create", "configmap", "kept", "--from-literal=word=kept"]);

    the_first_is_cut_off(&site, &list, &dns);
    timed("two of them lost", || site.lent(0, &["reset", "m2", "m3", "--yes"]));
    assert_eq!(members(&site), [("m1".to_owned(), true)]);
    assert_same(&before, &look(&site, HOSTS[1].1), "m2 after reset");
    assert_eq!(kubectl_ok(&site, &["get", "configmap", "kept", "--output=jsonpath={.data.word}"]), "kept");
    let planned = site.lent(0, &["plan"]).out;
    for line in ["+   etcd member m2", "+   etcd member m3"] {
        assert!(planned.contains(line), "{line}: {planned}");
    }
    let (asked, failed) = asked_meanwhile(&site, || {
        timed("two that join again", || site.lent(0, &["up"]));
    });
    assert_eq!((failed, asked > 3), (0, true), "of {asked} questions {failed} had no answer");
    assert_eq!(members(&site), three());
    assert_eq!(site.lent(0, &["plan"]).out.trim(), "nothing to do");

    without_a_dead_one(&site, &list);

    site.lent(0, &["config", "set", "phase2.security.audit=false"]);
    let (asked, failed) = asked_meanwhile(&site, || {
        timed("a rolling restart of the API servers", || site.lent(0, &["up"]));
    });
    assert_eq!((failed, asked > 3), (0, true), "of {asked} questions {failed} had no answer");
    assert_eq!(kubectl_ok(&site, &["get", "configmap", "kept", "--output=jsonpath={.data.word}"]), "kept");

    site.lent(0, &["down", "--yes"]);
    assert!(dns.dig("api.it.example.test", "A").is_empty() && dns.dig("api.it.example.test", "TXT").is_empty());
    assert_same(&before, &look(&site, HOSTS[1].1), "m2 after down");
    site.ok(&["down", "--yes"]);
}
