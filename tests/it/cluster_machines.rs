//! A control plane of three machines of a cloud that is only played, each of which is destroyed
//! while its volume of etcd stays, in turn and all at once: each comes back as the host that it
//! was, without an operator and without a run of turnup, and nothing that was written is lost.
//!
//! As in `cluster_cloud`, the module for Google runs with a provider that makes nothing; machines
//! are hosts of this machine, booted by the real cloud-init from what real Terraform gave the
//! groups. The cloud reserves the addresses, so that the next machine has those of the last.
#![expect(clippy::disallowed_methods, reason = "kubectl writes while turnup and the test do other things")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cloud_machine::{Machine, far};
use crate::cloud_support::mirror;
use crate::cluster_reset::{ETCDCTL, on_host};
use crate::cluster_support::{Site, can_make_hosts, say};
use crate::user_data_boot::{COLD_CACHE, Mirror, PACKAGES};

const SUBNET: &str = "10.123.20.0/24";
/// The load balancer that plays the cloud's, and the machines from this address on.
const BALANCER: &str = "10.123.20.9";
const FIRST: u8 = 10;
const PORT: u16 = 8095;
const COUNT: usize = 3;
/// Where turnup is killed: after an eighth of its effects. Among them are these.
const DEATHS: &str = "# only : after\\n# one in 8 from 5524\\n";
const DEADLY: [&str; 4] = [
    "mount /var/lib/etcd-disk",
    "file /var/lib/turnup/mounts.json",
    "file /etc/kubernetes/manifests/etcd.yaml",
    "file /var/lib/turnup/node-config.json",
];
const FAILPOINT_LOG: &str = "/var/tmp/turnup-failpoint-log";
/// From the end of a machine to the API server of the next, on a machine with other work.
const RETURNS: Duration = Duration::from_mins(30);

fn address(number: usize) -> String {
    format!("10.123.20.{}", usize::from(FIRST) + number)
}

/// The cloud's cluster, beside that of the hosts that play its machines.
fn prepare() -> Option<(Site, Vec<Machine>, String)> {
    if !can_make_hosts() {
        return None;
    }
    let mut site = Site::new("machines");
    site.configure(SUBNET, 0);
    let ports = format!("phase1.local.open_ports={PORT}");
    site.ok(&["config", "set", &ports, "phase1.control_plane.count=3"]);
    site.warm_cache();
    let root = site.start(&["artifacts", "rootfs", "bookworm", "--with", PACKAGES]).wait(COLD_CACHE);
    assert_eq!(root.code, Some(0), "{root}");
    site.ok(&["provision"]);
    site.ok(&["artifacts", "export", "artifacts"]);
    let artifacts = Mirror::serve(site.dir.join("artifacts"), "10.123.20.1", PORT);
    let machines: Vec<Machine> = (0..COUNT).map(|number| Machine::new(&site, number)).collect();

    let config = json!({"phase1": {
        "cluster_name": "far", "cloud_provider": "gce", "num_nodes": 0, "gce": {"project": "a-project"},
        "control_plane": {"count": COUNT}, "api": {"exposure": "load-balancer"},
        "ssh_user": "root", "ssh": {"private_key_file": site.path("ssh/id_ed25519")},
        "terraform": {"provider_mirror": "mirror"}, "user_data": {"artifacts_url": artifacts.url},
    },
    // Machines are played by containers, which may not change the kernel's table.
    "phase3": {"kube_proxy_conntrack_per_core": 0}});
    fs_err::write(site.dir.join("far.json"), config.to_string()).unwrap();
    let of_machine = |(number, machine): (usize, &Machine)| {
        let (node, address) = (&machine.node, address(number));
        format!("{node}={address} {node}-inner={address}")
    };
    let words: Vec<String> = machines.iter().enumerate().map(of_machine).chain([BALANCER.to_owned()]).collect();
    mirror(&site.dir.join("mirror"), "gce", Some(&words.join(" ")));
    site.env.insert("TURNUP_CONFIG".into(), "far.json".into());
    Some((site, machines, root.out.trim().to_owned()))
}

/// Objects that are made one after the other all the time, as fast as a small machine bears.
pub(crate) struct Writer {
    is_over: Arc<AtomicBool>,
    /// The number of each object that the API has taken, and when.
    taken: Arc<Mutex<Vec<(u32, f64)>>>,
    thread: JoinHandle<()>,
}

impl Writer {
    pub(crate) fn start(site: &Site) -> Self {
        let (is_over, taken) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<(u32, f64)>>>::default());
        let program = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
        let kubeconfig = format!("--kubeconfig={}", site.path("kubeconfig").display());
        let shared = (Arc::clone(&is_over), Arc::clone(&taken));
        let thread = std::thread::spawn(move || {
            for number in 1.. {
                if shared.0.load(Ordering::SeqCst) {
                    return;
                }
                let (name, value) = (format!("written-{number}"), format!("--from-literal=number={number}"));
                let words = [&kubeconfig, "--request-timeout=10s", "create", "configmap", &name, &value];
                if Command::new(&program).args(words).output().unwrap().status.success() {
                    shared.1.lock().unwrap().push((number, now()));
                }
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        Self { is_over, taken, thread }
    }

    /// How many objects the API has taken.
    fn count(&self) -> usize {
        self.taken.lock().unwrap().len()
    }

    /// Waits until the API takes one more.
    pub(crate) fn wait_for_one_more(&self) {
        let (before, since) = (self.count(), Instant::now());
        while self.count() == before {
            assert!(since.elapsed() < RETURNS, "nothing is taken any more");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The longest time without an object that was taken, from this moment on.
    fn longest_pause(&self, from: f64) -> f64 {
        let taken = self.taken.lock().unwrap();
        let times: Vec<f64> = taken.iter().map(|(_, at)| *at).filter(|at| *at > from).collect();
        std::iter::once(from).chain(times.iter().copied()).zip(&times).map(|(one, next)| next - one).fold(0.0, f64::max)
    }

    /// Every object that was taken is there, with what it says.
    pub(crate) fn require_all(self, site: &Site) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        let number = |object: &Value| object["data"]["number"].as_str()?.parse::<u32>().ok();
        let there: BTreeSet<u32> = site.get(&["configmaps"]).iter().filter_map(number).collect();
        let taken = self.taken.lock().unwrap();
        let lost: Vec<u32> = taken.iter().map(|(number, _)| *number).filter(|number| !there.contains(number)).collect();
        assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), taken.len());
        say(&format!("{} objects were taken meanwhile, and all are there", taken.len()));
    }
}

/// What a machine in the place of another one has to have again: the ids of the cluster of etcd and
/// of its members that vote, digests of authorities and keys of each host, of its SSH keys too.
pub(crate) struct Identity(BTreeSet<String>);

impl Identity {
    /// That of these control-plane hosts, which are all that there are.
    pub(crate) fn of(site: &Site, hosts: &[String]) -> Self {
        let list = format!("{ETCDCTL} --write-out=json member list");
        let list: Value = serde_json::from_str(&on_host(site, &hosts[0], &list)).unwrap();
        let members = list["members"].as_array().unwrap();
        let voters = members.iter().filter(|member| member["isLearner"] != true);
        let mut lines: BTreeSet<String> = voters.map(|one| format!("{} votes as {}", one["name"], one["ID"])).collect();
        assert_eq!((lines.len(), members.len()), (hosts.len(), hosts.len()), "{list}");
        lines.insert(format!("the cluster of etcd is {}", list["header"]["cluster_id"]));
        for host in hosts {
            let files =
                on_host(site, host, "find /etc/kubernetes /etc/ssh -name '*key*' -o -name '*.crt' | xargs sha256sum");
            lines.extend(files.lines().map(|line| format!("{host}: {line}")));
        }
        Self(lines)
    }

    /// Nothing of it is lost: a machine of another image may have more kinds of SSH keys.
    #[track_caller]
    pub(crate) fn require_at(&self, site: &Site, hosts: &[String]) {
        let now = Self::of(site, hosts);
        let lost: Vec<&String> = self.0.difference(&now.0).collect();
        assert!(lost.is_empty(), "another cluster, or another host: {lost:#?}");
    }
}

/// Whether the API server of this machine says that it is ready, which its member of etcd has to be
/// for that.
pub(crate) fn is_ready(address: &str) -> bool {
    let ask = || -> Option<bool> {
        let at = std::net::SocketAddr::new(address.parse().ok()?, 3990);
        let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        std::io::Write::write_all(&mut stream, b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).ok()?;
        Some(text.split(' ').nth(1) == Some("200"))
    };
    ask().unwrap_or_default()
}

/// The times from the end of machines to the readiness of those in their places.
#[derive(Default)]
struct Times {
    /// Until cloud-init has started turnup: what any machine takes.
    boot: Vec<f64>,
    /// Until the API server is ready.
    ready: Vec<f64>,
    /// How long the API has taken no write, once for each round.
    pauses: Vec<f64>,
}

impl Times {
    fn tell(&self, what: &str) {
        let look = |times: &[f64]| {
            let mut sorted = times.to_vec();
            sorted.sort_by(f64::total_cmp);
            let at = |part: usize| sorted[(sorted.len() * part / 100).min(sorted.len() - 1)];
            format!("median {:.1} s, p95 {:.1} s, max {:.1} s", at(50), at(95), at(100))
        };
        let after: Vec<f64> = self.ready.iter().zip(&self.boot).map(|(ready, boot)| ready - boot).collect();
        say(&format!("{} machines {what}, from the end of one to the API server of the next:", self.ready.len()));
        for (part, times) in
            [("all", &self.ready), ("boot", &self.boot), ("turnup", &after), ("no write is taken", &self.pauses)]
        {
            say(&format!("  {part}: {}", look(times)));
        }
    }
}

/// When cloud-init first started turnup on a machine.
fn started(site: &Site, machine: &Machine) -> f64 {
    let first = "journalctl --unit=turnup-node --output=short-unix --lines=all | grep --max-count=1 ' systemd'";
    let line = on_host(site, &machine.host, first);
    line.split(' ').next().unwrap().parse().unwrap()
}

fn now() -> f64 {
    jiff::Timestamp::now().as_duration().as_secs_f64()
}

/// Machines of these numbers are destroyed at once, and others made in their places, which get
/// their volumes.
fn destroy(site: &Site, machines: &mut [Machine], numbers: &[usize], root: &str, facts: &Value) -> Vec<f64> {
    let ended: Vec<f64> = numbers
        .iter()
        .map(|number| {
            let at = now();
            machines[*number].kill(site);
            at
        })
        .collect();
    std::thread::scope(|scope| {
        let others = machines.iter_mut().enumerate().filter(|(number, _)| numbers.contains(number));
        for (_, machine) in others {
            scope.spawn(|| {
                machine.replace(site, root, facts);
                machine.plug_in(site);
            });
        }
    });
    ended
}

/// The API servers of these machines are ready again.
fn wait_until_ready(site: &Site, machines: &[Machine], numbers: &[usize], ended: &[f64], times: &mut Times) {
    let since = Instant::now();
    let mut waiting: Vec<usize> = (0..numbers.len()).collect();
    while !waiting.is_empty() {
        let (ready, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|at| is_ready(&address(numbers[*at])));
        for at in &ready {
            let machine = &machines[numbers[*at]];
            times.ready.push(now() - ended[*at]);
            times.boot.push(started(site, machine) - ended[*at]);
        }
        waiting = others;
        if since.elapsed() > RETURNS {
            for at in &waiting {
                let host = &machines[numbers[*at]].host;
                site.in_host(host, "journalctl --no-pager -u turnup-node -u turnup-agent -u kubelet | tail -80 >&2");
            }
        }
        assert!(since.elapsed() < RETURNS, "not ready: {waiting:?} of {numbers:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A machine that finds the volume of another one, whether that lives or not, has nothing of it and
/// changes nothing on it. With its own it goes on by itself, also where turnup is killed meanwhile.
fn a_volume_of_another_is_refused(site: &Site, machines: &mut [Machine], root: &str, facts: &Value) {
    for number in [0, 1] {
        machines[number].kill(site);
    }
    for number in [0, 1] {
        machines[number].replace(site, root, facts);
        // That of the one that lives, and of one that is dead.
        let other = &machines[if number == 0 { 2 } else { 0 }];
        other.disk.plug_in_as(site, &machines[number].host, &machines[number].device);
    }
    let told = [
        "cannot be looked at: on it is something that is in use",
        "the volume is that of far-control-plane-0, whose address 10.123.20.10 this machine has not",
    ];
    for (machine, told) in machines.iter().zip(told) {
        let waits = format!("timeout 900 sh -c 'until journalctl -u turnup-node | grep \"{told}\"; do sleep 1; done'");
        site.in_host(&machine.host, &waits);
        site.in_host(&machine.host, "test -z \"$(find /etc/kubernetes -name '*.key')\" && ! pgrep -x etcd");
        site.in_host(&machine.host, &format!("systemctl stop turnup-node && rm {}", machine.device));
        machine.plug_in(site);
    }
    // As where it was killed while it looked; and after some of its effects.
    let look = "/run/turnup-identity";
    site.in_host(&machines[0].host, &format!("mkdir -p {look} && mount -o ro {} {look}", machines[0].device));
    site.in_host(&machines[1].host, &format!("printf '{DEATHS}' >{FAILPOINT_LOG}"));
    for machine in &machines[..2] {
        site.in_host(&machine.host, "systemctl start --no-block turnup-node");
    }
}

/// How often machines are destroyed one after the other, and then all of them at once; more often
/// for numbers that mean something.
pub(crate) fn rounds() -> usize {
    rounds_or(1)
}

/// The same where another number is usual.
pub(crate) fn rounds_or(usual: usize) -> usize {
    std::env::var("TURNUP_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}

#[test]
#[ignore = "many minutes: make test-heal"]
fn cluster_machines_die_and_come_back_as_the_hosts_that_they_were() {
    let Some((site, mut machines, root)) = prepare() else { return };
    site.ok(&["up"]);
    site.ok(&["validate"]);
    assert!(site.ok(&["up"]).err.contains("0 ran"));
    assert_eq!(far(&site, "outputs/provision.json")["api"]["host"], BALANCER);
    fs_err::copy(site.dir.join(".turnup/far/kubeconfig"), site.path("kubeconfig")).unwrap();
    let facts = machines[0].facts(&site);
    let hosts: Vec<String> = machines.iter().map(|machine| machine.host.clone()).collect();
    let before = Identity::of(&site, &hosts);
    let writer = Writer::start(&site);
    writer.wait_for_one_more();

    let one_by_one = (0..COUNT * rounds()).map(|number| vec![number % COUNT]).collect();
    let at_once = vec![(0..COUNT).collect::<Vec<_>>(); rounds()];
    for (what, rounds) in [("one after the other", one_by_one), ("all at once", at_once)] {
        let mut times = Times::default();
        for numbers in rounds {
            let ended = destroy(&site, &mut machines, &numbers, &root, &facts);
            wait_until_ready(&site, &machines, &numbers, &ended, &mut times);
            writer.wait_for_one_more();
            times.pauses.push(writer.longest_pause(ended[0]));
            before.require_at(&site, &hosts);
        }
        times.tell(what);
    }
    a_volume_of_another_is_refused(&site, &mut machines, &root, &facts);
    wait_until_ready(&site, &machines, &[0, 1], &[now(); 2], &mut Times::default());
    // Images of addons come after the API server.
    let ends = "timeout 900 sh -c 'until systemctl is-active --quiet turnup-node; do sleep 1; done'";
    site.in_host(&machines[1].host, ends);
    let deaths = on_host(&site, &machines[1].host, &format!("cat {FAILPOINT_LOG}; rm {FAILPOINT_LOG}"));
    say(&format!("turnup was killed on its way to the host:\n{deaths}"));
    for effect in DEADLY {
        assert!(deaths.contains(&format!("{effect}: after\n")), "{effect}");
    }
    writer.wait_for_one_more();
    before.require_at(&site, &hosts);

    writer.require_all(&site);
    // turnup logs in with the host keys that it knows, and finds nothing to do.
    let up = site.ok(&["up"]);
    assert!(up.err.contains("0 ran"), "{up}");
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    site.ok(&["validate"]);
    assert_eq!(site.ready_nodes(), machines.iter().map(|machine| machine.node.clone()).collect::<Vec<_>>());
    site.ok(&["down", "--destroy-volumes", "--yes"]);
}
