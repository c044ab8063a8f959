//! Kills turnup on both sides, Terraform and `turnup local`, before and after each effect and at
//! random moments, while a real cluster is made: the next run goes on from there, and the end is
//! the cluster that an uninterrupted run would have made.
//!
//! `make test` runs a sample; `make test-crash` runs all of it and prints the table of
//! `docs/crash.md`.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cluster_agent::wait_for_agents;
use crate::cluster_support::{Site, TIMEOUT, can_make_hosts, processes, say};
use crate::crash_chain::{ALL_KILLS, Chain, Kept, NO_KILLS};
use crate::crash_picture::{Picture, differences, look, look_at_cluster};

const NODES: [&str; 2] = ["it-control-plane-0", "it-worker-0"];
const PHASES: [&str; 3] = ["provision", "bootstrap", "addons"];
/// The seeds of the random moments of `make test-crash`; `TURNUP_TEST_SEED` names one for `make
/// test`.
const SEEDS: [u64; 3] = [7, 77, 777];

/// A site without any run.
fn site(name: &str, subnet: &str) -> Site {
    let site = Site::new(name);
    site.configure(subnet, 1);
    site.warm_cache();
    site
}

/// What these commands make when no process is killed, and how long they take; afterwards all of it
/// is removed.
fn make_uninterrupted(site: &Site, commands: &[&str], look: fn(&Site) -> Picture) -> Picture {
    let start = Instant::now();
    for command in commands {
        site.ok(&[command]);
    }
    let took = start.elapsed().as_secs_f64();
    let picture = look(site);
    site.ok(&["down", "--yes"]);
    say(&format!("uninterrupted: {took:.0} s, {} things to compare", picture.len()));
    picture
}

#[track_caller]
fn assert_same(wanted: &Picture, found: &Picture) {
    let differing = differences(wanted, found);
    assert!(differing.is_empty(), "not what an uninterrupted run makes:\n{}", differing.join("\n"));
}

/// The cluster works, there is nothing to do, and its identity is unchanged.
fn check_cluster(site: &Site) {
    wait_for_agents(site, &NODES);
    assert_eq!(site.ready_nodes(), NODES);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.ok(&["validate"]);
    assert!(site.up().ran().is_empty());
}

#[test]
#[ignore = "a part of make test-crash"]
fn killed_at_every_point_of_provision_and_down_nothing_is_left() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("sweep-hosts", "10.122.1.0/24");
    let before = site.look_around();
    let wanted = make_uninterrupted(&site, &["provision"], look);
    let mut chain = Chain::new(&mut site, ALL_KILLS, None);
    chain.run(&["provision"]);
    assert_same(&wanted, &look(chain.site()));
    chain.print("provision");
    for kind in ["journal ", "write ", "run terraform", "create host", "network", "apply_start"] {
        assert!(chain.deaths_at(kind) > 0, "no process was killed at {kind}");
    }
    let mut chain = Chain::new(&mut site, ALL_KILLS, None);
    chain.run(&["down", "--yes"]);
    chain.print("down");
    assert!(chain.deaths_at("delete host") > 0 && chain.deaths_at("delete network") > 0);
    chain.disarm();
    assert!(!site.state().exists());
    fs_err::remove_file(site.dir.join("failpoint-log")).unwrap();
    let after = site.look_around();
    let left: Vec<&String> = after.difference(&before).collect();
    assert!(left.is_empty(), "left behind or changed: {left:#?}");
}

#[test]
#[ignore = "a part of make test-crash"]
fn killed_at_every_point_of_bootstrap_and_addons_it_is_the_same_cluster() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("sweep-nodes", "10.122.2.0/24");
    let wanted = make_uninterrupted(&site, &["up"], look_at_cluster);
    site.ok(&["provision"]);
    let mut chain = Chain::new(&mut site, ALL_KILLS, None);
    for phase in &PHASES[1..] {
        chain.run(&[phase]);
    }
    chain.run(&["up"]);
    chain.disarm();
    chain.print("bootstrap and addons");
    for kind in ["journal ", "write pki/", "run turnup node up", "run kubectl", "addons/"] {
        assert!(chain.deaths_at(kind) > 0, "no process was killed at {kind}");
    }
    assert!(chain.kept().contains(&"etcd cluster-id"), "{:?}", chain.kept());
    assert_same(&wanted, &look_at_cluster(&site));
    check_cluster(&site);
    site.ok(&["down", "--yes"]);
}

#[test]
#[ignore = "a part of make test-crash"]
fn killed_at_every_effect_on_a_host_it_is_the_same_cluster() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("sweep-agent", "10.122.3.0/24");
    let wanted = make_uninterrupted(&site, &["up"], look_at_cluster);
    site.ok(&["provision"]);
    let mut chain = Chain::new(&mut site, NO_KILLS, Some(ALL_KILLS));
    chain.run(&["bootstrap"]);
    chain.disarm();
    chain.print("the host's side of bootstrap");
    for kind in ["file ", "binary ", "image ", "run systemctl", "directory "] {
        assert!(chain.deaths_at(kind) > 0, "no process was killed at {kind}");
    }
    assert!(chain.kept().contains(&"etcd cluster-id"), "{:?}", chain.kept());
    site.ok(&["up"]);
    assert_same(&wanted, &look_at_cluster(&site));
    check_cluster(&site);
    site.ok(&["down", "--yes"]);
}

/// A sample of the failpoints, for the time limit of `make test`.
#[test]
fn killed_at_a_sample_of_all_points_it_is_one_cluster_in_the_end() {
    if !can_make_hosts() {
        return;
    }
    let mut site = site("sweep", "10.122.4.0/24");
    let seed = seed();
    let head = format!("# one in 16 from {seed}\n");
    let mut chain = Chain::new(&mut site, &head, Some(&head));
    for phase in PHASES {
        chain.run(&[phase]);
    }
    chain.disarm();
    chain.print("a sample");
    assert!(chain.deaths_at("") > 10, "only {} have died", chain.deaths_at(""));
    check_cluster(&site);
    assert_eq!(halves(&site), Vec::<String>::new());
    site.ok(&["down", "--yes"]);
}

/// Files that a killed process had not finished writing.
fn halves(site: &Site) -> Vec<String> {
    let names = look(site).into_keys();
    names.filter(|name| name.contains("/.part-") || name.contains(".part.")).collect()
}

pub(crate) fn seed() -> u64 {
    let seed = std::env::var("TURNUP_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    say(&format!("TURNUP_TEST_SEED={seed} repeats this"));
    seed
}

#[test]
#[ignore = "a part of make test-crash"]
fn killed_at_the_random_moments_of_three_seeds_it_is_the_same_cluster() {
    if !can_make_hosts() {
        return;
    }
    let site = site("random-seeds", "10.122.6.0/24");
    let wanted = make_uninterrupted(&site, &["up"], look_at_cluster);
    for seed in SEEDS {
        kill_at_random(&site, seed, 12);
        assert_same(&wanted, &look_at_cluster(&site));
        site.ok(&["down", "--yes"]);
    }
}
/// This many runs of `up`, each killed at a random moment, alone or after a process that it waits
/// for: Terraform, `turnup local`, or the turnup of a host. Then one run without a kill.
fn kill_at_random(site: &Site, seed: u64, kills: usize) {
    let (mut random, mut kept, start) = (Random(seed), Kept::default(), Instant::now());
    let mut victims = Vec::new();
    for _ in 0..kills {
        // Up to the length of one whole run, in tenths of a second; more often early, when there is
        // more to break.
        let pause = Duration::from_millis(100 * (1 + random.below(80)));
        let running = site.start(&["up"]);
        std::thread::sleep(pause);
        let others = helpers(site);
        if let Some((pid, name)) = others.get(usize::try_from(random.below(1 + others.len() as u64)).unwrap()) {
            let _gone = kill_process(*pid, Signal::KILL);
            victims.push(name.clone());
            std::thread::sleep(Duration::from_millis(100 * random.below(20)));
        }
        // The run may have completed before.
        let _gone = kill_process(running.pid(), Signal::KILL);
        let done = running.wait(TIMEOUT);
        let of_another = !others.is_empty() && done.code == Some(1);
        assert!(done.signal == Some(9) || done.code == Some(0) || of_another, "{done}");
        kept.check(site, &format!("{pause:?}"));
    }
    site.up();
    kept.check(site, "the end");
    let took = start.elapsed().as_secs_f64();
    say(&format!("seed {seed}: {kills} runs killed, and {victims:?} before them, in {took:.0} s"));
    check_cluster(site);
    assert_eq!(halves(site), Vec::<String>::new());
}

/// The processes that work for turnup at this moment, here and on the hosts.
fn helpers(site: &Site) -> Vec<(Pid, String)> {
    let dir = site.dir.display().to_string();
    let ours = processes().into_iter().filter(|process| process.belongs_to(&dir));
    let named = ours.filter_map(|process| {
        let words: Vec<&str> = process.argv.iter().map(|word| word.rsplit('/').next().unwrap_or_default()).collect();
        let name = match words.as_slice() {
            ["terraform" | "tofu", command, ..] => format!("terraform {command}"),
            ["turnup", "local", thing, verb, ..] => format!("local {thing} {verb}"),
            ["turnup", "node", command, ..] => format!("node {command}"),
            _ => return None,
        };
        Some((process.pid, name))
    });
    named.collect()
}

/// xorshift: the seed is printed, so that a failure can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        for shift in [13_i32, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        self.0 % end
    }
}
