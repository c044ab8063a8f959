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
struct Writer {
    is_over: Arc<AtomicBool>,
    taken: Arc<Mutex<BTreeSet<u32>>>,
    thread: JoinHandle<()>,
}

impl Writer {
    fn start(site: &Site) -> Self {
        let (is_over, taken) = (Arc::<AtomicBool>::default(), Arc::<Mutex<BTreeSet<u32>>>::default());
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
                    shared.1.lock().unwrap().insert(number);
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
    fn wait_for_one_more(&self) {
        let (before, since) = (self.count(), Instant::now());
        while self.count() == before {
            assert!(since.elapsed() < RETURNS, "nothing is taken any more");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every object that was taken is there, with what it says.
    fn require_all(self, site: &Site) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        let number = |object: &Value| object["data"]["number"].as_str()?.parse::<u32>().ok();
        let there: BTreeSet<u32> = site.get(&["configmaps"]).iter().filter_map(number).collect();
        let taken = self.taken.lock().unwrap();
        let lost: Vec<&u32> = taken.difference(&there).collect();
        assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), taken.len());
        say(&format!("{} objects were taken meanwhile, and all are there", taken.len()));
    }
}

/// What a machine in the place of another one has to have again.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    /// Those of the cluster of etcd, and of its members that vote, by name.
    etcd: (u64, BTreeSet<(String, u64)>),
    /// Digests of the authorities and keys of each host, of its SSH keys among them.
    files: Vec<String>,
}

impl Identity {
    fn of(site: &Site, machines: &[Machine]) -> Self {
        let list = format!("{ETCDCTL} --write-out=json member list");
        let list: Value = serde_json::from_str(&on_host(site, &machines[0].host, &list)).unwrap();
        let voters = list["members"].as_array().unwrap().iter().filter(|member| member["isLearner"] != true);
        let voters = voters
            .map(|member| (member["name"].as_str().unwrap().to_owned(), member["ID"].as_u64().unwrap()))
            .collect();
        let digests = "find /etc/kubernetes /etc/ssh -name 'ssh_host_*' -o -path '*kubernetes*' -name '*.crt' -o \
            -path '*kubernetes*' -name '*.key' | sort | xargs sha256sum";
        let files = machines.iter().map(|machine| on_host(site, &machine.host, digests)).collect();
        Self { etcd: (list["header"]["cluster_id"].as_u64().unwrap(), voters), files }
    }
}

/// Whether the API server of this machine says that it is ready, which its member of etcd has to be
/// for that.
fn is_ready(number: usize) -> bool {
    let ask = || -> Option<bool> {
        let at = std::net::SocketAddr::new(address(number).parse().ok()?, 3990);
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
}

impl Times {
    fn tell(&self, what: &str) {
        let look = |times: &[f64]| {
            let mut sorted = times.to_vec();
            sorted.sort_by(f64::total_cmp);
            format!("median {:.1} s, max {:.1} s", sorted[sorted.len() / 2], sorted[sorted.len() - 1])
        };
        let after: Vec<f64> = self.ready.iter().zip(&self.boot).map(|(ready, boot)| ready - boot).collect();
        say(&format!(
            "{what}, {} machines: from the end of one to the API server of the next {}; of that the boot {}; turnup {}",
            self.ready.len(),
            look(&self.ready),
            look(&self.boot),
            look(&after)
        ));
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
    for number in numbers {
        machines[*number].replace(site, root, facts);
        machines[*number].plug_in(site);
    }
    ended
}

/// The API servers of these machines are ready again.
fn wait_until_ready(site: &Site, machines: &[Machine], numbers: &[usize], ended: &[f64], times: &mut Times) {
    let since = Instant::now();
    let mut waiting: Vec<usize> = (0..numbers.len()).collect();
    while !waiting.is_empty() {
        let (ready, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|at| is_ready(numbers[*at]));
        for at in &ready {
            let machine = &machines[numbers[*at]];
            times.ready.push(now() - ended[*at]);
            times.boot.push(started(site, machine) - ended[*at]);
            let journal = "journalctl --output=short-precise --unit=turnup-node | cut --delimiter=' ' --fields=3,6- | cut --bytes=-200 | tail -120";
            say(&format!("{} is ready:\n{}", machine.node, on_host(site, &machine.host, journal)));
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
    let before = Identity::of(&site, &machines);
    assert_eq!(before.etcd.1.len(), COUNT, "{before:?}");
    let writer = Writer::start(&site);
    writer.wait_for_one_more();

    let mut times = Times::default();
    for number in 0..COUNT {
        let ended = destroy(&site, &mut machines, &[number], &root, &facts);
        wait_until_ready(&site, &machines, &[number], &ended, &mut times);
        writer.wait_for_one_more();
        assert_eq!(Identity::of(&site, &machines), before);
    }
    times.tell("one after the other");

    let (all, mut times): (Vec<usize>, _) = ((0..COUNT).collect(), Times::default());
    let ended = destroy(&site, &mut machines, &all, &root, &facts);
    wait_until_ready(&site, &machines, &all, &ended, &mut times);
    writer.wait_for_one_more();
    times.tell("all at once");
    assert_eq!(Identity::of(&site, &machines), before);

    writer.require_all(&site);
    // turnup logs in with the host keys that it knows, and finds nothing to do.
    let up = site.ok(&["up"]);
    assert!(up.err.contains("0 ran"), "{up}");
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    site.ok(&["validate"]);
    assert_eq!(site.ready_nodes(), machines.iter().map(|machine| machine.node.clone()).collect::<Vec<_>>());
    site.ok(&["down", "--destroy-volumes", "--yes"]);
}
