//! Three control-plane hosts behind a load balancer, on real hosts that another directory lends:
//! all at once, two of them lost and recreated, each changed in its turn, and down again.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_reset::{ETCDCTL, assert_same, look, on_host, settle};
use crate::cluster_support::{Site, say};

/// The lent hosts behind the names of this cluster.
const HOSTS: [(&str, &str); 4] =
    [("m1", "it-control-plane-0"), ("m2", "it-worker-0"), ("m3", "it-worker-1"), ("w1", "it-worker-2")];
const SUBNET: &str = "10.123.64.0/24";
/// This machine, as the hosts see it.
const GATEWAY: &str = "10.123.64.1";
const PORT: u16 = 6443;

/// A minimal load balancer: each connection goes to the next server that accepts it.
fn balance(servers: Vec<SocketAddr>) {
    let listener = TcpListener::bind((GATEWAY, PORT)).unwrap();
    let next = AtomicUsize::new(0);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let first = next.fetch_add(1, Ordering::Relaxed);
            let mut in_turn = servers.iter().cycle().skip(first % servers.len()).take(servers.len());
            let server = in_turn.find_map(|address| TcpStream::connect_timeout(address, Duration::from_secs(1)).ok());
            if let Some(server) = server {
                pass(&client, &server);
            }
        }
    });
}

fn pass(client: &TcpStream, server: &TcpStream) {
    for (from, to) in [(client, server), (server, client)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        std::thread::spawn(move || {
            copy(&mut from, &mut to).ok();
            to.shutdown(Shutdown::Write).ok();
        });
    }
}

fn prepare() -> Option<(Site, Value)> {
    let site = Site::of_cluster("three", SUBNET, 3)?;
    site.ok(&["config", "set", &format!("phase1.local.open_ports={PORT}")]);
    site.ok(&["provision"]);
    settle(&site);
    let lent = site.hosts();
    let field = |host: &str, pointer: &str| lent[host].pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let listed = |(name, host): &(&str, &str)| {
        let role = if name.starts_with('m') { "control-plane" } else { "worker" };
        json!({"name": name, "address": field(host, "/address"), "role": role, "host_key": field(host, "/ssh/host_key")})
    };
    let list = HOSTS.iter().map(listed).collect();
    let address = |host: &str| SocketAddr::new(field(host, "/address").parse().unwrap(), PORT);
    balance(HOSTS[..3].iter().map(|(_, host)| address(host)).collect());
    Some((site, list))
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

/// Each control-plane host asks its own API server at the balancer's address; the worker asks the
/// balancer.
fn each_asks_its_own(site: &Site) {
    for (name, host) in HOSTS {
        let counted = on_host(site, host, "nft list table ip turnup-api 2>/dev/null || true");
        let packets = counted.split("counter packets ").nth(1).and_then(|rest| rest.split(' ').next());
        let packets = packets.map(|packets| packets.parse::<u32>().unwrap());
        assert_eq!(packets.is_some_and(|packets| packets > 0), name != "w1", "{name}: {counted}");
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
    let Some((site, list)) = prepare() else { return };
    let before = look(&site, HOSTS[1].1);
    let hosts = format!("phase1.baremetal.hosts={list}");
    let key = format!("phase1.ssh.private_key_file={}", site.path("ssh/id_ed25519").display());
    let set = ["config", "set", "phase1.cloud_provider=baremetal", "phase1.cluster_name=three", &key, &hosts];
    site.lent(0, &[&set[..], &["phase1.api.host=10.123.64.1", "phase2.network.flannel_backend=vxlan"]].concat());

    timed("three control-plane hosts and a worker", || site.lent(0, &["up"]));
    assert_eq!(members(&site), three());
    each_asks_its_own(&site);
    assert_eq!(site.lent(0, &["plan"]).out.trim(), "nothing to do");
    kubectl_ok(&site, &["create", "configmap", "kept", "--from-literal=word=kept"]);

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
    assert_same(&before, &look(&site, HOSTS[1].1), "m2 after down");
    site.ok(&["down", "--yes"]);
}
