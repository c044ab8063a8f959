//! A chain of runs that is killed once at each failpoint, on the operator's side and on the hosts,
//! and the record of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use turnup::artifacts::Digest;
use turnup::failpoint::ON_HOST;

use crate::cluster_support::{Site, names_in, say};

/// A chain with more runs than this makes no progress.
const MOST_RUNS: usize = 2000;
/// One run may include hundreds of kills of the turnup on a host.
const TIMEOUT: Duration = Duration::from_mins(20);
/// Failpoint log with which no process is killed.
pub(crate) const NO_KILLS: &str = "# one in 0 from 0\n";
/// Failpoint log with which every failpoint kills its process once.
pub(crate) const ALL_KILLS: &str = "";
/// The column of all kills together.
const ALL: &str = "all";

/// The record of the kills at one kind of failpoint.
#[derive(Clone, Debug, Default)]
struct Row {
    deaths: usize,
    converged: usize,
    /// Steps that were started and had to be started again.
    again: usize,
    /// Seconds that had been spent in them.
    seconds: f64,
}

/// Chains of runs at one site.
pub(crate) struct Chain<'s> {
    site: &'s mut Site,
    on_hosts: Option<String>,
    deaths: BTreeSet<String>,
    rows: BTreeMap<&'static str, Row>,
    runs: usize,
    start: Instant,
    kept: Kept,
}

/// What must not change once it exists.
#[derive(Default)]
pub(crate) struct Kept {
    things: BTreeMap<String, String>,
}

impl Kept {
    /// Looks after a crash: whatever was there before is still there and the same.
    pub(crate) fn check(&mut self, site: &Site, after: &str) {
        let mut found = BTreeMap::new();
        for name in ["pki/ca.key", "pki/etcd-ca.key", "pki/sa.key", "pki/encryption.key", "ssh/id_ed25519"] {
            let path = site.path(name);
            if path.exists() {
                // The digest, not the text: a failed assertion prints both sides, and these are
                // private keys.
                found.insert(name.to_owned(), Digest::of_file(&path).unwrap().to_string());
            }
        }
        found.extend(etcd_ids(site));
        for (name, value) in &self.things {
            assert_eq!(found.get(name), Some(value), "{name} after {after}");
        }
        self.things.extend(found);
    }

    /// What has been kept until now.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.things.keys().map(String::as_str).collect()
    }
}

/// etcd's IDs from its logs, each of which must always be the same.
fn etcd_ids(site: &Site) -> BTreeMap<String, String> {
    let pods = site.path("hosts/it-control-plane-0").join("root").join("var/log/pods");
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for pod in names_in(&pods).iter().filter(|name| name.starts_with("kube-system_etcd-")) {
        let dir = pods.join(pod).join("etcd");
        for log in names_in(&dir) {
            let text = fs_err::read(dir.join(log)).unwrap_or_default();
            for line in String::from_utf8_lossy(&text).lines() {
                for name in ["cluster-id", "local-member-id"] {
                    let value = line.split(&format!("\"{name}\":\"")).nth(1).and_then(|rest| rest.split('"').next());
                    if let Some(value) = value {
                        let known = ids.entry(format!("etcd {name}")).or_insert_with(|| value.to_owned());
                        assert_eq!(known, value, "etcd has had two values of {name}");
                    }
                }
            }
        }
    }
    ids
}

impl<'s> Chain<'s> {
    /// Chains with this head of the failpoint log on the operator's side and, where there is to be
    /// one, of those on the hosts.
    pub(crate) fn new(site: &'s mut Site, here: &str, on_hosts: Option<&str>) -> Self {
        let failpoint_log = site.dir.join("failpoint-log");
        fs_err::write(&failpoint_log, here).unwrap();
        site.env.insert("TURNUP_FAILPOINT_LOG".into(), failpoint_log.display().to_string());
        Self {
            site,
            on_hosts: on_hosts.map(str::to_owned),
            deaths: BTreeSet::new(),
            rows: BTreeMap::new(),
            runs: 0,
            start: Instant::now(),
            kept: Kept::default(),
        }
    }

    /// Runs this command until it succeeds. A run that fails without a kill fails the test.
    pub(crate) fn run(&mut self, args: &[&str]) {
        loop {
            self.runs += 1;
            assert!(self.runs < MOST_RUNS, "no end: {:?}", self.deaths.iter().next_back());
            self.put_failpoint_logs();
            let started = Timestamp::now();
            let done = self.site.start(args).wait(TIMEOUT);
            let new = self.read_failpoint_logs();
            let waste = self.waste(started);
            let kind = new.first().map(|(kind, _)| *kind);
            for (kind, name) in new {
                self.deaths.insert(name);
                self.row(kind).deaths += 1;
                // The chain went on after the death, to the next one or to its end. Else it panics
                // below.
                self.row(kind).converged += 1;
            }
            if let Some(kind) = kind {
                let row = self.row(kind);
                row.again += waste.0;
                row.seconds += waste.1;
            }
            let last = self.deaths.iter().next_back().cloned().unwrap_or_default();
            if !args.contains(&"down") {
                self.kept.check(self.site, &last);
            }
            match (done.signal, done.code, kind) {
                (None, Some(0), _) => return,
                (_, _, Some(_)) => {}
                _ => panic!("failed without a death: {done}"),
            }
        }
    }

    /// From here on no process is killed.
    pub(crate) fn disarm(&mut self) {
        self.site.env.remove("TURNUP_FAILPOINT_LOG");
        for failpoint_log in self.host_failpoint_logs() {
            drop(fs_err::remove_file(failpoint_log));
        }
    }

    pub(crate) fn site(&self) -> &Site {
        self.site
    }

    pub(crate) fn kept(&self) -> Vec<&str> {
        self.kept.names()
    }

    /// The number of kills at failpoints whose names contain this text.
    pub(crate) fn deaths_at(&self, text: &str) -> usize {
        self.deaths.iter().filter(|name| name.contains(text)).count()
    }

    /// The table, as it stands in `docs/crash.md`.
    pub(crate) fn print(&self, title: &str) {
        say(&format!("{title}: {} runs in {:.0} s", self.runs, self.start.elapsed().as_secs_f64()));
        say("| kind of point | deaths | converged | steps started again | seconds repeated |");
        say("|---|---:|---:|---:|---:|");
        let mut all = Row::default();
        for row in self.rows.values() {
            all.deaths += row.deaths;
            all.converged += row.converged;
            all.again += row.again;
            all.seconds += row.seconds;
        }
        for (kind, row) in self.rows.iter().chain([(&ALL, &all)]) {
            let Row { deaths, converged, again, seconds } = row;
            say(&format!("| {kind} | {deaths} | {converged} | {again} | {seconds:.0} |"));
        }
    }

    fn row(&mut self, kind: &'static str) -> &mut Row {
        self.rows.entry(kind).or_default()
    }

    fn host_failpoint_logs(&self) -> Vec<PathBuf> {
        let hosts = self.site.path("hosts");
        names_in(&hosts)
            .iter()
            .map(|host| hosts.join(host).join("root").join(ON_HOST.trim_start_matches('/')))
            .collect()
    }

    /// Every host that is there gets a failpoint log, with all that is known to have died on it.
    fn put_failpoint_logs(&self) {
        let Some(head) = &self.on_hosts else { return };
        for failpoint_log in self.host_failpoint_logs() {
            if !failpoint_log.exists() && failpoint_log.parent().is_some_and(Path::is_dir) {
                fs_err::write(&failpoint_log, head).unwrap();
            }
        }
    }

    /// Deaths that are new since the last look, in the order in which they came, and their kinds.
    fn read_failpoint_logs(&self) -> Vec<(&'static str, String)> {
        let mut new = Vec::new();
        let here = fs_err::read_to_string(self.site.dir.join("failpoint-log")).unwrap();
        new.extend(here.lines().map(|line| (kind_of(line), line.to_owned())));
        for failpoint_log in self.host_failpoint_logs() {
            let host =
                failpoint_log.components().rev().nth(4).map(|part| part.as_os_str().to_string_lossy().into_owned());
            let text = fs_err::read_to_string(&failpoint_log).unwrap_or_default();
            new.extend(
                text.lines().map(|line| ("effect on a host", format!("{} > {line}", host.as_deref().unwrap_or("")))),
            );
        }
        new.retain(|(_, name)| !name.contains("# ") && !self.deaths.contains(name));
        new
    }

    /// Of the steps that this run began: how many have to be started again, or had been done
    /// before, and the seconds spent in them.
    fn waste(&self, started: Timestamp) -> (usize, f64) {
        let ended = Timestamp::now();
        let text = fs_err::read_to_string(self.site.path("journal.jsonl")).unwrap_or_default();
        let mut open: BTreeMap<String, Timestamp> = BTreeMap::new();
        let (mut done, mut seconds) = (BTreeSet::new(), Vec::new());
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let at: Timestamp = line["at"].as_str().unwrap().parse().unwrap();
            let entry = &line["entry"];
            let step = entry["step"].as_str().unwrap().to_owned();
            if entry["kind"] == "intent" {
                open.insert(step, at);
            } else if entry["outcome"]["result"] == "done" {
                open.remove(&step);
                if !done.insert(step) && at >= started {
                    seconds.push(entry["outcome"]["elapsed_ms"].as_f64().unwrap() / 1000.0);
                }
            }
        }
        let open = open.values().filter(|since| **since >= started);
        seconds.extend(open.map(|since| ended.duration_since(*since).as_secs_f64()));
        (seconds.len(), seconds.iter().sum())
    }
}

fn kind_of(name: &str) -> &'static str {
    let last = name.rsplit(" > ").next().unwrap_or_default();
    let local = ["create host", "start host", "delete host", "network", "delete network"];
    if local.iter().any(|place| name.starts_with(place)) {
        "local host or network"
    } else if last.starts_with("apply_") {
        "terraform itself"
    } else if last.starts_with("journal ") {
        "journal line"
    } else if ["write ", "remove ", "lock "].iter().any(|word| last.starts_with(word)) {
        "file of the cluster's directory"
    } else {
        "child process"
    }
}
