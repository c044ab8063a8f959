//! What a lost control-plane host costs, in numbers: hosts lose their power or their network, and
//! members of etcd their data, round after round, while clients ask the API by the balancer of a
//! worker, and others write to etcd itself. Nothing that was acknowledged is lost, no worker ever
//! leaves, and each address that is gone leaves the DNS zone and the Service's endpoints.
//!
//! `TURNUP_TEST_ROUNDS=20` for numbers that mean something; `TURNUP_TEST_SEED` repeats a choice.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster_agent::wait_for_agents;
use crate::cluster_crash::{Random, seed};
use crate::cluster_heal::{LOSE, LOSE_QUIETLY, require_voter_again, settle_records};
use crate::cluster_machines::rounds;
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, can_make_hosts, say};
use crate::dns_support::{DnsServer, Kind};
use crate::history::HistoryRecorder;
use crate::prober::{Prober, create};

const HOSTS: [&str; 3] = ["it-control-plane-0", "it-control-plane-1", "it-control-plane-2"];
const WORKERS: [&str; 2] = ["it-worker-0", "it-worker-1"];
const SUBNET: &str = "10.124.47.0/24";
const GATEWAY: &str = "10.124.47.1";
/// Longer than Kubernetes waits for a node that says nothing (50 s).
const WATCHED: Duration = Duration::from_mins(1);
/// The longest that anything may take on a machine with other work. What it takes is printed.
const PATIENCE: Duration = Duration::from_mins(3);

/// What is done to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// It loses its power.
    Killed,
    /// It loses its network: no connection is reset.
    CutOff,
}

/// The times of one kind of harm, in seconds.
#[derive(Default)]
struct Times {
    write_pauses: Vec<f64>,
    read_pauses: Vec<f64>,
    endpoints: Vec<f64>,
    names: Vec<f64>,
}

fn tell(what: &str, times: &[f64]) {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
    say(&format!("{what}: median {:.1} s, p95 {:.1} s, worst {:.1} s of {}", at(50), at(95), at(100), sorted.len()));
}

fn prepare() -> Option<(Site, DnsServer)> {
    if !can_make_hosts() {
        return None;
    }
    let site = Site::new("gates");
    site.configure(SUBNET, 2);
    // Clients of etcd come from this machine.
    site.ok(&["config", "set", "phase1.control_plane.count=3", "phase2.host.firewall=n"]);
    site.warm_cache();
    site.ok(&["provision"]);
    let dns = DnsServer::start(Kind::Bind, GATEWAY.parse().unwrap());
    let ports = format!("phase1.local.open_ports={}", dns.address.port());
    let set = [dns.settings(&site.dir), vec![ports]].concat();
    site.ok(&["config", "set"].into_iter().chain(set.iter().map(String::as_str)).collect::<Vec<_>>());
    Some((site, dns))
}

/// The addresses at which the name of the API server leads to one.
fn names(dns: &DnsServer) -> Vec<String> {
    dns.dig("api.internal.it.example.test", "A")
}

/// The addresses of the Service `kubernetes`.
fn endpoints(site: &Site) -> Option<Vec<String>> {
    let path = "--raw=/api/v1/namespaces/default/endpoints/kubernetes";
    let object: Value = serde_json::from_str(&site.try_kubectl(&["get", path, "--request-timeout=2s"]).ok()?).unwrap();
    let addresses = object["subsets"].as_array()?.iter().filter_map(|subset| subset["addresses"].as_array());
    Some(addresses.flatten().map(|address| address["ip"].as_str().unwrap().to_owned()).collect())
}

/// Waits until this is so, and returns after how many seconds that was.
fn wait(what: &str, since: Instant, is_so: impl Fn() -> bool) -> f64 {
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
    since.elapsed().as_secs_f64()
}

/// How many times a worker was not ready in these lists of nodes.
fn count_unready(lists: &[Value]) -> usize {
    let is_unready = |node: &&Value| {
        let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        WORKERS.contains(&node["metadata"]["name"].as_str().unwrap_or_default())
            && !conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    lists.iter().filter_map(|list| list["items"].as_array()).flatten().filter(is_unready).count()
}

/// What is watched while a host is away.
struct Watch<'a> {
    site: &'a Site,
    dns: &'a DnsServer,
    writes: Prober,
    reads: Prober,
}

impl Watch<'_> {
    fn is_whole(&self) -> bool {
        let endpoints = endpoints(self.site).unwrap_or_default();
        (names(self.dns).len(), endpoints.len()) == (HOSTS.len(), HOSTS.len())
    }

    /// The host is away, and comes back.
    fn lose(&self, host: &str, harm: Harm, times: &mut Times) {
        let address = self.site.hosts()[host]["address"].as_str().unwrap().to_owned();
        let has_left = |list: &[String]| !list.is_empty() && !list.contains(&address);
        let since = Instant::now();
        match harm {
            Harm::Killed => self.site.cut_power(host),
            Harm::CutOff => self.site.in_host(host, "ip link set host0 down"),
        }
        let (endpoints, names_left) = std::thread::scope(|scope| {
            let left = || wait("the endpoints", since, || endpoints(self.site).is_some_and(|list| has_left(&list)));
            let endpoints = scope.spawn(left);
            let names_left = wait("its name", since, || has_left(&names(self.dns)));
            (endpoints.join().unwrap(), names_left)
        });
        while since.elapsed() < WATCHED {
            assert!(has_left(&names(self.dns)), "the address of {host} is back");
            std::thread::sleep(Duration::from_millis(500));
        }
        let pauses = (self.writes.longest_pause(since), self.reads.longest_pause(since));
        let lists = self.reads.answers_since(since);
        assert_eq!((count_unready(&lists), lists.len() > 20), (0, true), "of {} looks", lists.len());
        say(&format!(
            "{host} {harm:?}: no write for {:.1} s, no read for {:.1} s; out of the endpoints after {endpoints:.1} s, of DNS after {names_left:.1} s",
            pauses.0, pauses.1
        ));
        times.write_pauses.push(pauses.0);
        times.read_pauses.push(pauses.1);
        times.endpoints.push(endpoints);
        times.names.push(names_left);
        match harm {
            Harm::Killed => drop(self.site.ok(&["up"])),
            Harm::CutOff => {
                let back = format!("ip link set host0 up && ip route replace default via {GATEWAY} dev host0");
                self.site.in_host(host, &back);
            }
        }
        wait("all are back", Instant::now(), || self.is_whole());
        wait_for_agents(self.site, &HOSTS);
    }
}

#[test]
#[ignore = "minutes a round: make test-heal"]
fn cluster_gates_of_a_control_plane_that_loses_hosts_and_data() {
    let Some((site, dns)) = prepare() else { return };
    site.ok(&["up"]);
    settle_records(&site);
    let history = HistoryRecorder::start(&site, &HOSTS);
    let list = |_| vec!["get".to_owned(), "--raw=/api/v1/nodes".to_owned()];
    let (writes, reads) =
        (Prober::by_balancer(&site, WORKERS[0], create(&site.dir)), Prober::by_balancer(&site, WORKERS[0], list));
    let watch = Watch { site: &site, dns: &dns, writes, reads };
    wait("the names", Instant::now(), || watch.is_whole());

    let mut random = Random(seed());
    let mut pick = || HOSTS[usize::try_from(random.below(3)).unwrap()];
    for harm in [Harm::Killed, Harm::CutOff] {
        let mut times = Times::default();
        for _ in 0..rounds() {
            watch.lose(pick(), harm, &mut times);
        }
        tell(&format!("{harm:?}: no write"), &times.write_pauses);
        tell(&format!("{harm:?}: no read"), &times.read_pauses);
        tell(&format!("{harm:?}: out of the endpoints"), &times.endpoints);
        tell(&format!("{harm:?}: out of DNS"), &times.names);
    }
    let removed = |host: &&str| {
        let journal = "journalctl --quiet --unit=turnup-agent --grep='accepts no connection' || true";
        !on_host(&site, host, journal).is_empty()
    };
    assert!(HOSTS.iter().any(removed), "every address stayed until its lease ended");
    let mut voters = Vec::new();
    for round in 0..rounds() {
        let lose = if round % 2 == 0 { LOSE } else { LOSE_QUIETLY };
        voters.push(require_voter_again(&site, pick(), PATIENCE, lose));
        settle_records(&site);
        wait_for_agents(&site, &HOSTS);
    }
    tell("a member without data is a voter again", &voters);
    drop(watch);
    history.require_linearizable();
    site.ok(&["up"]);
    site.ok(&["validate"]);
    site.ok(&["down", "--yes"]);
}
