//! The names of the API server under kills: three real members of etcd, a writer beside each, the
//! leases of API servers as they keep them, and a real DNS server. A dead address goes within half
//! a minute, and none comes back.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it plays systemd and kubelet, which start programs")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::artifacts_support::find_program;
use crate::cluster_crash::Random;
use crate::cluster_support::say;
use crate::dns_support::{DnsServer, Kind, config, write_config};

const NAME: &str = "api.internal.it.example.test";
/// What is promised: the lease of 15 seconds, a look each 5, a new leader.
const PROMISED: Duration = Duration::from_secs(30);
/// The same on a machine with other work.
const ROOM: Duration = Duration::from_mins(2);

/// A control-plane host: its member of etcd, its writer, and what its API server does in etcd.
struct Host {
    address: String,
    etcd: Command,
    writer: Command,
    endpoint: String,
    running: Option<Running>,
}

struct Running {
    children: [Child; 2],
    is_alive: Arc<AtomicBool>,
}

impl Host {
    fn start(&mut self) {
        let children = [self.etcd.spawn().unwrap(), self.writer.spawn().unwrap()];
        let is_alive = Arc::new(AtomicBool::new(true));
        let (endpoint, address, alive) = (self.endpoint.clone(), self.address.clone(), Arc::clone(&is_alive));
        std::thread::spawn(move || keep_lease(&endpoint, &address, &alive));
        self.running = Some(Running { children, is_alive });
    }

    /// All of it at once, as when its power is cut.
    fn kill(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        running.is_alive.store(false, Ordering::SeqCst);
        for child in &mut running.children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// The hosts, which end with their value.
struct Hosts {
    all: Vec<Host>,
    dir: tempfile::TempDir,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.all.iter_mut().for_each(Host::kill);
    }
}

fn post(endpoint: &str, what: &str, body: &Value) -> Option<Value> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(3))).build().into();
    let mut answer = agent.post(format!("{endpoint}/v3/{what}")).send(body.to_string().as_bytes()).ok()?;
    serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()
}

/// Every ten seconds with a new lease of 15, as Kubernetes' reconciler does.
fn keep_lease(endpoint: &str, address: &str, is_alive: &AtomicBool) {
    let key = STANDARD.encode(format!("/registry/masterleases/{address}"));
    let mut next = Instant::now();
    while is_alive.load(Ordering::SeqCst) {
        if Instant::now() >= next {
            let lease = post(endpoint, "lease/grant", &json!({"TTL": 15}))
                .and_then(|lease| Some(lease["ID"].as_str()?.to_owned()));
            // A host that was killed meanwhile writes no more.
            let written = lease.filter(|_| is_alive.load(Ordering::SeqCst));
            let written =
                written.and_then(|id| post(endpoint, "kv/put", &json!({"key": key, "value": "eA==", "lease": id})));
            next = Instant::now() + Duration::from_secs(if written.is_some() { 10 } else { 1 });
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn log_of(dir: &Path, name: &str) -> Stdio {
    fs_err::OpenOptions::new().create(true).append(true).open(dir.join(name)).unwrap().into_file().into()
}

fn prepare(server: &DnsServer) -> Option<Hosts> {
    let etcd: PathBuf = find_program("etcd")?;
    let dir = tempfile::tempdir().unwrap();
    let ports: Vec<[u16; 2]> = (0..3).map(|_| [free_port(), free_port()]).collect();
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let cluster: Vec<String> = (0..).zip(&ports).map(|(at, [_, peer])| format!("m{at}={}", url(*peer))).collect();
    let all = (0..).zip(&ports).map(|(at, [client, peer])| {
        let (client, peer, name) = (url(*client), url(*peer), format!("m{at}"));
        let mut member = Command::new(&etcd);
        member.args(["--name", &name, "--listen-client-urls", &client, "--advertise-client-urls", &client]);
        member.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer, "--logger", "zap"]);
        member.args(["--initial-cluster", &cluster.join(","), "--initial-cluster-token", "it"]);
        member.arg("--data-dir").arg(dir.path().join(&name)).stdin(Stdio::null()).stdout(Stdio::null());
        member.stderr(log_of(dir.path(), &format!("{name}.log")));
        let file = dir.path().join(format!("{name}.json"));
        write_config(&file, &config(server.address, &client));
        let mut writer = Command::new(env!("CARGO_BIN_EXE_turnup"));
        writer.args(["node", "dns", "--config"]).arg(file).stdin(Stdio::null()).current_dir(dir.path());
        writer.stdout(log_of(dir.path(), &format!("{name}-dns.log")));
        Host { address: format!("10.0.0.{at}"), etcd: member, writer, endpoint: client, running: None }
    });
    let mut hosts = Hosts { all: all.collect(), dir };
    hosts.all.iter_mut().for_each(Host::start);
    Some(hosts)
}

/// Since when each address is dead, and whether the name has led there since it was once gone.
type Dead = BTreeMap<String, (Instant, bool)>;

/// What the name does meanwhile.
#[derive(Default)]
struct Watched {
    /// How long each dead address stayed.
    stayed: Vec<Duration>,
    came_back: Vec<String>,
    is_over: bool,
}

/// The watch ends with it, also when the test fails.
struct End<'w>(&'w Mutex<Watched>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
    }
}

/// Asks the server again and again.
fn watch(server: &DnsServer, dead: &Mutex<Dead>, watched: &Mutex<Watched>) {
    while !watched.lock().unwrap().is_over {
        // What is dead before the question, so that an answer is never judged by a later kill.
        let before: Vec<String> = dead.lock().unwrap().keys().cloned().collect();
        let addresses: BTreeSet<String> = server.dig(NAME, "A").into_iter().collect();
        if !addresses.is_empty() {
            let mut dead = dead.lock().unwrap();
            for address in before {
                let Some((since, is_gone)) = dead.get_mut(&address) else { continue };
                match (addresses.contains(&address), *is_gone) {
                    (false, false) => {
                        *is_gone = true;
                        watched.lock().unwrap().stayed.push(since.elapsed());
                    }
                    (true, true) => watched.lock().unwrap().came_back.push(address),
                    _ => {}
                }
            }
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[track_caller]
fn wait_for(what: &str, hosts: &Hosts, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        let log = || fs_err::read_to_string(hosts.dir.path().join("m1-dns.log")).unwrap();
        assert!(since.elapsed() < ROOM, "{what}: {}", log());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Kills hosts, one at a time, and starts each again, for so long and at least this often.
fn kill_for(time: Duration, kills: u32, seed: u64) {
    let server = DnsServer::start(Kind::Bind, Ipv4Addr::LOCALHOST.into());
    let Some(mut hosts) = prepare(&server) else { return };
    let all = ["10.0.0.0", "10.0.0.1", "10.0.0.2"];
    wait_for("all three", &hosts, || server.dig(NAME, "A") == all);
    let (dead, watched, mut random) = (Mutex::new(Dead::new()), Mutex::new(Watched::default()), Random(seed));
    let (start, mut killed) = (Instant::now(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&server, &dead, &watched));
        let _end = End(&watched);
        while killed < kills || start.elapsed() < time {
            let at = usize::try_from(random.below(3)).unwrap();
            let address = hosts.all[at].address.clone();
            dead.lock().unwrap().insert(address.clone(), (Instant::now(), false));
            hosts.all[at].kill();
            killed += 1;
            wait_for("the dead address goes", &hosts, || dead.lock().unwrap()[&address].1);
            std::thread::sleep(Duration::from_millis(random.below(5000)));
            dead.lock().unwrap().remove(&address);
            hosts.all[at].start();
            wait_for("it is back", &hosts, || server.dig(NAME, "A") == all);
        }
    });
    let mut watched = watched.into_inner().unwrap();
    watched.stayed.sort();
    let [median, p95] = [2, 20].map(|part| watched.stayed[(watched.stayed.len() - 1) * (part - 1) / part]);
    let worst = watched.stayed.last().unwrap();
    say(&format!(
        "{killed} kills: a dead address goes after {median:.1?} (median), {p95:.1?} (p95), {worst:.1?} (worst)"
    ));
    assert_eq!(watched.came_back, [""; 0], "an address came back while its host was dead");
    say(&format!("{} of them within {PROMISED:?}", watched.stayed.iter().filter(|time| **time <= PROMISED).count()));
}

#[test]
fn cluster_dns_has_no_dead_address() {
    kill_for(Duration::ZERO, 2, 7);
}

#[test]
#[ignore = "ten minutes: make test-heal"]
fn cluster_dns_has_no_dead_address_in_ten_minutes() {
    kill_for(Duration::from_mins(10), 20, 11);
}
