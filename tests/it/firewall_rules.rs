//! The nftables rules that turnup renders, loaded in network namespaces that stand for two hosts,
//! their pods and the network around them: who reaches which port. Without the rules each of these
//! connections is made.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the namespaces are entered with ip")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::cli_support::TestEnv;

/// `a` and `c` are the control plane and `b` is a worker, with one pod each; `c` has a pod of a
/// plugin without a bridge. `lan` is everything around them, with the operator at .1.
const INVENTORY: &str = r#"{
    "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "baremetal", "api": {"host": "192.0.2.10", "port": 6443},
    "hosts": [
        {"name": "a", "role": "control-plane", "address": "192.0.2.10", "instance": "1",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
        {"name": "c", "role": "control-plane", "address": "192.0.2.30", "instance": "3",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
        {"name": "b", "role": "worker", "address": "192.0.2.20", "instance": "2",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}
    ]}"#;

/// Listens on all addresses at the ports of its arguments, by TCP and UDP, until its standard input
/// ends.
const LISTEN: &str = "
import socket, sys
kept = []
for port in map(int, sys.argv[1:]):
    tcp = socket.create_server(('', port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
    kept.append(tcp)
print('ready', flush=True)
sys.stdin.read()
";

/// Connects to each [SOURCE>]ADDRESS PORT SECONDS on standard input, all at once, and prints for
/// each whether it got through.
const CONNECT: &str = "
import socket, sys, threading
lines = [line.split() for line in sys.stdin]
said = [None] * len(lines)
def connect(at, address, port, seconds):
    source, _, address = address.rpartition('>')
    try:
        socket.create_connection((address, int(port)), float(seconds), (source, 0) if source else None).close()
        said[at] = 'open'
    except OSError:
        said[at] = 'closed'
threads = [threading.Thread(target=connect, args=(at, *line)) for at, line in enumerate(lines)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print('\\n'.join(said))
";

const NAMES: [&str; 7] = ["lan", "a", "b", "c", "pa", "pb", "pc"];
const HOST_PORTS: [u16; 8] = [22, 53, 80, 2379, 2380, 6443, 10250, 10256];

fn sh(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The namespaces and their listeners. Dropped, nothing of it is left.
struct Lab {
    prefix: String,
    listeners: Vec<Child>,
}

impl Lab {
    fn make() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A name as those of local clusters: tests of these do not take it for something left
        // behind.
        let number = (std::process::id() << 2 | COUNT.fetch_add(1, Ordering::Relaxed)) & 0xff_ffff;
        let mut lab = Self { prefix: format!("tu{number:06x}"), listeners: Vec::new() };
        for name in NAMES {
            lab.make_namespace(name);
        }
        lab.within("lan", "ip link add br0 type bridge; ip link set br0 up; ip address add 192.0.2.1/24 dev br0; ip address add fd00:1::1/64 dev br0 nodad");
        for (host, number, subnet) in [("a", 10, 0), ("b", 20, 1), ("c", 30, 2)] {
            lab.make_host(host, number, subnet);
        }
        lab.within("a", "ip route add 10.244.1.0/24 via 192.0.2.20");
        lab.within("b", "ip route add 10.244.0.0/24 via 192.0.2.10");
        // A pod that gives itself another address than it has from its plugin, and one that looks
        // for the host's loopback.
        lab.within("a", "ip route add 198.18.0.5 dev cni0; echo 1 >/proc/sys/net/ipv4/conf/cni0/route_localnet");
        lab.within("pa", "ip address add 198.18.0.5/32 dev eth0; echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet");
        lab.within("pa", "ip address delete 127.0.0.1/8 dev lo; ip route add 127.0.0.1 via 10.244.0.1 src 10.244.0.5");
        // A Service whose endpoint is etcd, as kube-proxy would write it.
        let service = "nft 'table ip kube-proxy { chain pre { type nat hook prerouting priority -100; ip daddr 10.96.0.9 tcp dport 80 dnat to 192.0.2.10:2379; }; }'";
        lab.within("a", service);
        lab.within("b", service);
        for (name, ports) in [
            ("lan", &HOST_PORTS[..]),
            ("a", &HOST_PORTS),
            ("b", &HOST_PORTS),
            ("c", &HOST_PORTS),
            ("pa", &[8080, 10250]),
            ("pb", &[8080, 10250]),
        ] {
            lab.listen(name, ports);
        }
        lab
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn make_namespace(&self, name: &str) {
        sh(&format!("ip netns add {}", self.namespace(name)));
        self.within(name, "ip link set lo up; echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad");
    }

    /// A host with flannel's bridge, routes and masquerading, the clouds' metadata on it, and a
    /// pod.
    fn make_host(&self, host: &str, number: u8, subnet: u8) {
        let (here, lan, pod) = (self.namespace(host), self.namespace("lan"), self.namespace(&format!("p{host}")));
        sh(&format!(
            "ip link add eth0 address 02:00:00:00:01:{number} netns {here} type veth peer name to-{host} netns {lan}"
        ));
        self.within("lan", &format!("ip link set to-{host} master br0 up"));
        self.within(host, &format!("ip link set eth0 up; ip address add 192.0.2.{number}/24 dev eth0; ip address add fd00:1::{number}/64 dev eth0 nodad"));
        self.within(host, "ip route add default via 192.0.2.1; echo 1 >/proc/sys/net/ipv4/ip_forward");
        self.within(host, "ip link add cni0 address 02:00:00:00:00:01 type bridge; ip link set cni0 up");
        self.within(
            host,
            &format!("ip address add 10.244.{subnet}.1/24 dev cni0; ip address add 169.254.169.254/32 dev lo"),
        );
        self.within(host, "nft 'table ip flannel { chain post { type nat hook postrouting priority 100; ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade; ip saddr 198.18.0.5 masquerade; }; }'");
        if host == "c" {
            return self.make_pod_of_another_plugin();
        }
        sh(&format!("ip link add eth0 netns {pod} type veth peer name veth0 netns {here}"));
        self.within(host, "ip link set veth0 master cni0 up");
        self.within(&format!("p{host}"), &format!("ip link set eth0 up; ip address add 10.244.{subnet}.5/24 dev eth0; ip route add default via 10.244.{subnet}.1"));
    }

    /// A pod with an interface of its own on the host, and no bridge, as some plugins make it.
    fn make_pod_of_another_plugin(&self) {
        let (here, pod) = (self.namespace("c"), self.namespace("pc"));
        sh(&format!("ip link add eth0 netns {pod} type veth peer name cali0 netns {here}"));
        self.within(
            "c",
            "ip link set cali0 up; ip route add 10.244.2.5 dev cali0; echo 1 >/proc/sys/net/ipv4/conf/cali0/proxy_arp",
        );
        self.within(
            "pc",
            "ip link set eth0 up; ip address add 10.244.2.5/32 dev eth0; ip route add 192.0.2.0/24 dev eth0",
        );
    }

    /// Runs a line of shell there.
    fn within(&self, name: &str, script: &str) {
        sh(&format!("ip netns exec {} sh -ec '{}'", self.namespace(name), script.replace('\'', "'\\''")));
    }

    fn listen(&mut self, name: &str, ports: &[u16]) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(name), "python3", "-c", LISTEN]);
        command.args(ports.iter().map(ToString::to_string)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{name} does not listen");
        self.listeners.push(child);
    }

    /// Which of these connections from there are made.
    fn connect(&self, from: &str, targets: &[(&str, u16, bool)]) -> Vec<bool> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(from), "python3", "-c", CONNECT]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // An open connection may be slow on a busy machine; a dropped one takes the whole timeout.
        let lines = targets.iter().fold(String::new(), |mut lines, (address, port, open)| {
            writeln!(lines, "{address} {port} {}", if *open { 60 } else { 2 }).unwrap();
            lines
        });
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success());
        String::from_utf8(said.stdout).unwrap().lines().map(|line| line == "open").collect()
    }

    /// Loads the rules as the unit does.
    fn load(&self, host: &str, rules: &str) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), "nft", "--file", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{rules}");
    }

    /// The connections that are not as the table says; with `open` all of them are to be made.
    fn judge(&self, table: &[Row], open: bool) -> Vec<String> {
        let judge = |from: &'static str| {
            let rows = table.iter().filter(|row| row.0 == from);
            let targets: Vec<(&str, u16, bool)> = rows
                .flat_map(|(_, to, ports, expected)| ports.iter().map(move |port| (*to, *port, open || *expected)))
                .collect();
            let found = self.connect(from, &targets);
            let wrong = targets.iter().zip(found).filter(|((_, _, expected), found)| expected != found);
            let describe = |((to, port, _), found): (&(&str, u16, bool), bool)| {
                format!("{from} to {to} {port}: {}", if found { "open" } else { "closed" })
            };
            wrong.map(describe).collect::<Vec<String>>()
        };
        std::thread::scope(|scope| {
            let threads = NAMES.map(|from| scope.spawn(move || judge(from)));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[track_caller]
    fn check(&self, table: &[Row], open: bool) {
        let wrong = self.judge(table, open);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in &mut self.listeners {
            drop(child.stdin.take());
            drop(child.wait());
        }
        for name in NAMES {
            drop(Command::new("ip").args(["netns", "delete", &self.namespace(name)]).status());
        }
    }
}

/// The rules of a host as they would be sent to it.
fn rules(test_env: &TestEnv, host: &str) -> String {
    let to = tempfile::tempdir_in(test_env.dir.path()).unwrap();
    test_env.ok(&["render", "bootstrap", "--to", to.path().to_str().unwrap()]);
    let text = fs_err::read_to_string(to.path().join(format!("node-config/{host}.json"))).unwrap();
    let node_config: Value = serde_json::from_str(&text).unwrap();
    let files = node_config["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == "/etc/turnup/firewall.nft").unwrap();
    file["content"]["text"].as_str().unwrap().to_owned()
}

const LINK_LOCAL: &str = "fe80::ff:fe00:1%eth0";
const ETCD: &[u16] = &[2379, 2380];

/// From, to, ports, and whether the connection is made.
type Row = (&'static str, &'static str, &'static [u16], bool);

const DEFAULTS: &[Row] = &[
    // Pods to their own host: by its address, by the bridge's, and by the link-local one.
    ("pa", "192.0.2.10", &[22, 2379, 2380, 10250, 10256], false),
    ("pa", "10.244.0.1", &[22, 2379, 2380, 10250, 10256], false),
    ("pa", LINK_LOCAL, &[22, 2379, 2380, 10250, 10256], false),
    ("pa", "198.18.0.5>192.0.2.10", &[22], false),
    ("pa", "198.18.0.5>192.0.2.20", &[22], false),
    ("pa", "127.0.0.1", &[6443], false),
    ("pa", "192.0.2.10", &[6443, 80], true),
    ("pb", "192.0.2.20", &[22, 10250, 10256], false),
    ("pb", LINK_LOCAL, &[22, 10250, 10256], false),
    // Other programs of a worker: no etcd is there.
    ("pb", "192.0.2.20", &[80, 2379, 6443], true),
    ("pc", "192.0.2.30", &[22, 2379, 10250, 10256], false),
    ("pc", "192.0.2.20", &[22, 10250, 10256], false),
    ("pc", "192.0.2.20", &[80, 6443], true),
    // To other hosts, where they come with their own host's address, or with their own.
    ("pb", "192.0.2.10", &[22, 2379, 2380, 10250, 10256], false),
    ("pb", "10.244.0.1", &[22, 2379, 2380, 10250, 10256], false),
    ("pb", "192.0.2.10", &[6443], true),
    ("pa", "192.0.2.20", &[22, 10250, 10256], false),
    ("pa", "192.0.2.30", &[22, 2379, 2380, 10250, 10256], false),
    ("pa", "10.244.1.1", &[22, 10250, 10256], false),
    // Through a Service whose endpoint is etcd.
    ("pa", "10.96.0.9", &[80], false),
    ("pb", "10.96.0.9", &[80], false),
    // The clouds' metadata; a name server at the same address stays.
    ("pa", "169.254.169.254", &[80], false),
    ("pb", "169.254.169.254", &[80], false),
    ("pb", "169.254.169.254", &[53], true),
    ("a", "169.254.169.254", &[80], true),
    ("b", "169.254.169.254", &[80], true),
    // To each other, whatever the port; and to the Internet.
    ("pa", "10.244.1.5", &[8080, 10250], true),
    ("pb", "10.244.0.5", &[8080, 10250], true),
    ("pa", "192.0.2.1", &[22, 80, 2379], true),
    // Hosts.
    ("a", "192.0.2.10", &[22, 2379, 2380, 10250], true),
    ("a", "192.0.2.30", &[2379, 2380, 10250], true),
    ("a", "127.0.0.1", &[2379, 10250, 10256], true),
    ("a", "192.0.2.20", &[22, 10250, 10256], true),
    ("a", "10.244.1.5", &[8080], true),
    ("b", "192.0.2.10", ETCD, false),
    ("b", "fd00:1::10", ETCD, false),
    ("b", "192.0.2.10", &[10250], false),
    ("b", "192.0.2.10", &[22, 6443, 10256], true),
    // The network around them.
    ("lan", "192.0.2.10", ETCD, false),
    ("lan", "fd00:1::10", &[2379, 2380, 10250], false),
    ("lan", "192.0.2.20", &[10250], false),
    ("lan", "fe80::ff:fe00:120%br0", &[22], false),
    ("lan", "192.0.2.10", &[22, 6443, 10256], true),
    ("lan", "fd00:1::20", &[22, 10256], true),
    ("lan", "192.0.2.20", &[22, 10256], true),
];

/// Scrapers in pods, one machine that monitors, and one from which people log in.
const CHOSEN: &[Row] = &[
    ("pa", "192.0.2.10", &[10250], true),
    ("pa", "192.0.2.20", &[10250], true),
    ("pb", "192.0.2.10", &[10250], true),
    ("pb", "192.0.2.20", &[10250], true),
    ("lan", "192.0.2.20", &[10250], true),
    ("pb", "192.0.2.10", &[22, 2379, 10256], false),
    ("pb", "192.0.2.20", &[22, 10256], false),
    ("lan", "192.0.2.10", &[22], true),
    ("lan", "fd00:1::10", &[22], false),
    ("b", "192.0.2.10", &[22], false),
    ("b", "192.0.2.20", &[22], true),
    ("pa", "169.254.169.254", &[80], true),
];

fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.write("provision.json", INVENTORY);
    test_env.ok(&["config", "set", "phase1.cloud_provider=baremetal", "phase1.api.host=192.0.2.10"]);
    test_env
}

const HOSTS: [&str; 3] = ["a", "b", "c"];

#[test]
fn each_port_is_open_only_to_hosts_that_need_it() {
    if !crate::cluster_support::can_make_hosts() {
        return;
    }
    let (test_env, lab) = (test_env(), Lab::make());
    lab.check(DEFAULTS, true);
    let load = || {
        for host in HOSTS {
            let rules = rules(&test_env, host);
            lab.load(host, &rules);
            // Loading it again replaces it.
            lab.load(host, &rules);
        }
    };
    load();
    lab.check(DEFAULTS, false);
    let set = [
        "phase2.host.firewall_kubelet_networks=10.244.0.0/16,192.0.2.1/32",
        "phase2.host.firewall_ssh_networks=192.0.2.1/32",
        "phase2.host.firewall_pods_reach_metadata=y",
    ];
    test_env.ok(&[&["config", "set"][..], &set].concat());
    load();
    lab.check(CHOSEN, false);
    // No other table is touched.
    lab.within(
        "a",
        "test \"$(nft list tables | sort)\" = \"table inet turnup\ntable ip flannel\ntable ip kube-proxy\"",
    );
}

/// Rules of which the lab has no case: pods have no address of IPv6 that leads anywhere, and no
/// tunnel is here.
const UNTRIED: [&str; 2] = ["ip6 daddr {", "udp dport 8472"];

#[test]
fn no_rule_can_be_left_out() {
    if !crate::cluster_support::can_make_hosts() {
        return;
    }
    let (test_env, lab) = (test_env(), Lab::make());
    let all: Vec<(&str, String)> = HOSTS.map(|host| (host, rules(&test_env, host))).into();
    let words = [" drop", " goto ", "jump "];
    let closing = |line: &&str| !line.contains('#') && words.iter().any(|word| line.contains(word));
    let lines: BTreeSet<&str> = all.iter().flat_map(|(_, rules)| rules.lines()).filter(closing).collect();
    assert!(lines.len() > 12, "{lines:#?}");
    let mut idle = Vec::new();
    for line in lines.into_iter().filter(|line| !UNTRIED.iter().any(|word| line.contains(word))) {
        for (host, rules) in &all {
            lab.load(host, &rules.replacen(&format!("{line}\n"), "", 1));
        }
        if lab.judge(DEFAULTS, false).is_empty() {
            idle.push(line.trim());
        }
    }
    assert!(idle.is_empty(), "without these all is the same: {idle:#?}");
}
