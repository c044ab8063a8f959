//! Real members of etcd that lose their data again and again, one, some or all at once, also while
//! another one joins again: agents decide and act as they do on hosts, and nothing is lost that was
//! confirmed. Hosts, kubelet and the runtime are played.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "members that run until the test ends")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::super::backup::EtcdPrograms;
use super::super::super::emulator::free_port;
use super::super::super::etcd_answers::ListedMember;
use super::super::super::etcd_data;
use super::super::super::{etcd_first_start, etcd_joiner};
use super::cluster::AskedMembers;
use super::decide::{RejoinStep, Seen, decide};
use super::record::{EtcdRecord, RecordedMember};
use crate::artifacts::{Cache, Lock, NoProgress, Sources};

/// How long a cluster may take until it is whole again.
const PATIENCE: Duration = Duration::from_mins(4);
/// For how many rounds all must say that nothing goes on by itself.
const STUCK: usize = 3;

/// etcdctl without what it is believed with, and with less patience.
const ETCDCTL: &str = r#"#!/bin/sh
for word in "$@"; do
    shift
    case "$word" in
    --cacert=* | --cert=* | --key=* | --*-timeout=*) ;;
    *) set -- "$@" "$word" ;;
    esac
done
exec PROGRAM --dial-timeout=500ms --command-timeout=1500ms "$@"
"#;

/// Programs of etcd.
struct Programs {
    etcd: PathBuf,
    etcdctl: PathBuf,
    etcdutl: PathBuf,
    _dir: tempfile::TempDir,
}

impl Programs {
    fn install() -> Self {
        let lock = Lock::embedded().unwrap();
        let selection = lock.select(&lock.default).unwrap();
        let wanted = ["etcd", "etcdctl", "etcdutl"].map(|name| selection.binary(name).unwrap());
        let blobs = Cache::open().unwrap().ensure_all(wanted, &Sources::default(), &NoProgress).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let client = dir.path().join("etcdctl");
        fs_err::write(&client, ETCDCTL.replace("PROGRAM", &blobs[1].path.display().to_string())).unwrap();
        let utility = dir.path().join("etcdutl");
        fs_err::copy(&blobs[2].path, &utility).unwrap();
        for program in [&client, &utility] {
            fs_err::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
        }
        Self { etcd: blobs[0].path.clone(), etcdctl: client, etcdutl: utility, _dir: dir }
    }
}

/// How the data of a member go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// With their directory, as a disk does.
    Directory,
    /// Those in it: the runtime makes what is missing of it, and etcd starts there.
    Content,
}

struct Host {
    name: String,
    /// Its member's, when that was well.
    id: u64,
    client_url: String,
    peer_url: String,
    /// Where everything of etcd is.
    directory: PathBuf,
    record: PathBuf,
    manifest: Value,
    pod: Option<Child>,
    joiner: Option<Child>,
    kubelet_told: bool,
    /// The runtime starts the pod again, and does not ask kubelet.
    restarts: bool,
    said: String,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        drop((child.kill(), child.wait()));
    }
}

impl Host {
    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn runs(&mut self) -> bool {
        self.pod.as_mut().is_some_and(|pod| pod.try_wait().unwrap().is_none())
    }

    fn stop(&mut self) {
        end(&mut self.pod);
        end(&mut self.joiner);
    }

    /// The flags of its manifest, but where it has its data and whom it joins.
    fn words(&self, data: &Path, initial_cluster: Option<&str>) -> Vec<String> {
        let words = self.manifest.pointer("/spec/containers/0/command").unwrap().as_array().unwrap();
        let own = |word: &&str| initial_cluster.is_none() || !word.starts_with("--initial-cluster=");
        let words = words.iter().skip(1).map(|word| word.as_str().unwrap()).filter(own).map(str::to_owned);
        let more = initial_cluster.map(|list| format!("--initial-cluster={list}"));
        words.chain(more).chain([super::super::super::static_pod::data_dir_flag(data)]).collect()
    }

    /// `before` is what the runtime does in the pod's own mount namespace.
    fn start(&self, etcd: &Path, before: &str, words: &[String]) -> Child {
        let log = fs_err::File::create(self.directory.join("../log")).unwrap().into_file();
        // No member outlives a test that is killed.
        let script = format!("{before}\nexec setpriv --pdeathsig KILL \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", &script, "sh"]).arg(etcd).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    /// What kubelet and the runtime do by themselves.
    fn run_pod(&mut self, etcd: &Path, has_own_mount: bool) {
        if self.runs() {
            return;
        }
        let log = self.data().join(etcd_data::WAL);
        if self.restarts && !log.exists() {
            fs_err::create_dir_all(&log).unwrap();
        }
        if !log.exists() {
            return;
        }
        let mount = format!("mount --bind {0} {0}", log.display());
        let before = if has_own_mount { mount.as_str() } else { "" };
        self.pod = Some(self.start(etcd, before, &self.words(&self.data(), None)));
    }
}

/// A cluster of etcd, its hosts, and what it has confirmed.
struct World {
    programs: Programs,
    hosts: Vec<Host>,
    id: u64,
    written: BTreeSet<String>,
    /// The members that agents have taken out.
    removed: BTreeSet<u64>,
    /// Of `SplitMix64`.
    random: u64,
    has_own_mount: bool,
    decide: fn(&Seen) -> RejoinStep,
    patience: Duration,
    dir: tempfile::TempDir,
}

impl World {
    /// `state` is that of its manifests; they are founded as on a host.
    fn found(size: usize, seed: u64, state: &str, has_own_mount: bool) -> Self {
        let (programs, dir) = (Programs::install(), tempfile::tempdir().unwrap());
        let urls: Vec<[String; 2]> =
            (0..size).map(|_| [(); 2].map(|()| format!("http://127.0.0.1:{}", free_port()))).collect();
        let list: Vec<String> = urls.iter().enumerate().map(|(at, [peer, _])| format!("m{at}={peer}")).collect();
        let utl = programs.etcdutl.display().to_string();
        let host = |(at, [peer, client]): (usize, &[String; 2])| {
            let directory = dir.path().join(format!("m{at}/etcd"));
            fs_err::create_dir_all(&directory).unwrap();
            let flags = [
                format!("--name=m{at}"),
                format!("--initial-cluster={}", list.join(",")),
                format!("--initial-cluster-state={state}"),
                "--initial-cluster-token=wipes".to_owned(),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--listen-peer-urls={peer}"),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                "--unsafe-no-fsync".to_owned(),
            ];
            let command: Vec<String> = ["etcd".to_owned()].into_iter().chain(flags).collect();
            let manifest = json!({"spec": {"containers": [{"command": command}]}});
            etcd_first_start::found(&directory, &manifest, &EtcdPrograms::with_etcdutl(&utl)).unwrap();
            let record = dir.path().join(format!("m{at}/etcd.json"));
            let (name, client_url, peer_url) = (format!("m{at}"), client.clone(), peer.clone());
            let (pod, joiner, said) = (None, None, String::new());
            let (kubelet_told, restarts) = (false, false);
            Host {
                name,
                id: 0,
                client_url,
                peer_url,
                directory,
                record,
                manifest,
                pod,
                joiner,
                kubelet_told,
                restarts,
                said,
            }
        };
        let hosts = urls.iter().enumerate().map(host).collect();
        let (written, removed) = (BTreeSet::new(), BTreeSet::new());
        let mut world = Self {
            programs,
            hosts,
            id: 0,
            written,
            removed,
            random: seed,
            has_own_mount,
            decide,
            patience: PATIENCE,
            dir,
        };
        world.go_on_until(Self::is_whole);
        world.id = world.ask(0).list().unwrap().cluster;
        world
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from(mixed >> 33).unwrap() % limit
    }

    fn ask(&self, at: usize) -> AskedMembers<'_> {
        AskedMembers::at(&self.programs.etcdctl, &[self.hosts[at].client_url.clone()])
    }

    fn etcdctl(&self, at: usize, words: &[&str]) -> Option<String> {
        let mut command = Command::new(&self.programs.etcdctl);
        command.args(["--endpoints", &self.hosts[at].client_url]).args(words);
        let output = command.output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// All vote, and each says so itself.
    fn is_whole(&mut self) -> bool {
        (0..self.hosts.len()).all(|at| {
            self.hosts[at].pod.is_some()
                && self.etcdctl(at, &["endpoint", "health"]).is_some()
                && self.ask(at).list().is_ok_and(|list| {
                    list.members.len() == self.hosts.len()
                        && list.members.iter().all(|member| !member.is_learner && member.is_started())
                })
        })
    }

    /// All whose data are gone say that nothing goes on by itself.
    fn is_stuck(&mut self) -> bool {
        let mut lost = self.hosts.iter().filter(|host| !etcd_data::has_log(&host.data())).peekable();
        lost.peek().is_some() && lost.all(|host| host.said.starts_with("Report"))
    }

    /// One look and one step of each host, and one write.
    fn round(&mut self) {
        for at in 0..self.hosts.len() {
            let (etcd, has_own_mount) = (self.programs.etcd.clone(), self.has_own_mount);
            self.hosts[at].run_pod(&etcd, has_own_mount);
            if !self.remember(at) {
                let step = (self.decide)(&self.look(at));
                self.hosts[at].said = format!("{step:?}");
                // Killed before the effect.
                if self.below(4) > 0 {
                    self.act(at, &step);
                }
            }
        }
        let key = format!("k{:05}", self.written.len());
        let count = self.hosts.len();
        let at = self.below(count);
        let at = (at..at + count).map(|at| at % count).find(|at| self.hosts[*at].runs());
        if at.is_some_and(|at| self.etcdctl(at, &["put", &key, "value"]).is_some()) {
            self.written.insert(key);
        }
    }

    fn go_on_until(&mut self, is_over: fn(&mut Self) -> bool) {
        let since = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < STUCK {
            self.round();
            in_a_row = if is_over(self) { in_a_row + 1 } else { 0 };
            let said: Vec<&str> = self.hosts.iter().map(|host| host.said.as_str()).collect();
            assert!(since.elapsed() < self.patience, "not whole: {}: {said:?}", self.dir.path().display());
        }
    }

    /// As `Rejoin::remember` does while its member is well.
    fn remember(&mut self, at: usize) -> bool {
        if !etcd_data::has_log(&self.hosts[at].data()) || self.etcdctl(at, &["endpoint", "health"]).is_none() {
            return false;
        }
        let Ok(listed) = self.ask(at).list() else { return false };
        if listed.members.iter().all(|member| !member.is_learner && member.is_started()) {
            let host = &mut self.hosts[at];
            host.id = listed.member;
            let others = listed.members.into_iter().filter(|member| member.id != listed.member);
            let others = others.map(|it| RecordedMember { name: it.name, client_urls: it.client_urls }).collect();
            EtcdRecord::new(listed.cluster, listed.member, others).keep(&host.record).unwrap();
        }
        true
    }

    /// As `Rejoin::look` does.
    fn look(&mut self, at: usize) -> Seen {
        let host = &mut self.hosts[at];
        let joining = etcd_data::find_joining(&host.directory);
        let path = |id: &u64| etcd_data::joining(&host.directory, *id);
        let joiner = joining.keys().copied().find(|id| etcd_joiner::runs_in(&path(id)));
        let runs = host.runs();
        let known = EtcdRecord::find(&host.record);
        let program = self.programs.etcdctl.clone();
        let endpoints = known.as_ref().map(EtcdRecord::endpoints).filter(|endpoints| !endpoints.is_empty());
        let others = endpoints.map_or_else(
            || Err("this host knows none of them".to_owned()),
            |urls| AskedMembers::at(&program, &urls).view(&host.peer_url).map_err(|error| error.message().to_owned()),
        );
        Seen {
            name: host.name.clone(),
            peer_url: host.peer_url.clone(),
            known: known.and_then(|known| known.known()),
            data: etcd_data::find_data(&host.directory, &host.name),
            listens: runs,
            runs,
            joining,
            joiner,
            others,
            kubelet_told: host.kubelet_told,
        }
    }

    fn act(&mut self, at: usize, step: &RejoinStep) {
        let program = self.programs.etcdctl.clone();
        let endpoints = EtcdRecord::find(&self.hosts[at].record).as_ref().map(EtcdRecord::endpoints);
        let asked = AskedMembers::at(&program, &endpoints.unwrap_or_default());
        let etcd = self.programs.etcd.clone();
        let host = &mut self.hosts[at];
        match step {
            // etcd may refuse: the next look says what follows.
            RejoinStep::Remove(id) => {
                if asked.remove(*id).is_ok() {
                    self.removed.insert(*id);
                }
            }
            RejoinStep::Add => drop(asked.add_learner(&host.name, &host.peer_url)),
            RejoinStep::StartJoiner { id, initial_cluster } => {
                let data = etcd_data::joining(&host.directory, *id);
                end(&mut host.joiner);
                host.joiner = Some(host.start(&etcd, "", &host.words(&data, Some(initial_cluster))));
            }
            RejoinStep::StopJoiner(_) => end(&mut host.joiner),
            RejoinStep::MoveIn(id) => {
                let from = etcd_data::joining(&host.directory, *id);
                etcd_data::move_in(&host.directory, &from).unwrap();
            }
            RejoinStep::TellKubelet => host.kubelet_told = true,
            RejoinStep::Promote(id) => host.kubelet_told = !asked.promote(*id).unwrap_or_default(),
            RejoinStep::Nothing | RejoinStep::Wait(_) | RejoinStep::Report(_) => {}
        }
    }

    /// Takes the data of a member away. Returns where they are.
    fn lose(&mut self, at: usize, loss: Loss) -> (u64, PathBuf) {
        let number = self.below(usize::MAX);
        let host = &mut self.hosts[at];
        host.stop();
        let kept = host.directory.join(format!("../kept-{number}"));
        fs_err::rename(host.data(), &kept).unwrap();
        host.restarts = loss == Loss::Content;
        if loss == Loss::Content {
            fs_err::create_dir_all(host.data().join("member")).unwrap();
        }
        (host.id, kept)
    }

    /// What an operator does: what is no member goes, and data that were found again come back.
    fn repair(&mut self, lost: &BTreeMap<usize, (u64, PathBuf)>) {
        for (at, (id, kept)) in lost {
            let host = &mut self.hosts[*at];
            host.restarts = false;
            if etcd_data::has_log(&host.data()) {
                continue;
            }
            host.stop();
            if host.data().exists() {
                fs_err::remove_dir_all(host.data()).unwrap();
            }
            if !self.removed.contains(id) {
                fs_err::rename(kept, host.data()).unwrap();
            }
        }
    }

    /// Some lose their data, and the cluster is whole again. Returns how many did.
    fn wipe(&mut self) -> usize {
        let mut lost = BTreeMap::new();
        let count = [1, 1, 2, 3][self.below(4)].min(self.hosts.len());
        while lost.len() < count {
            let at = self.below(self.hosts.len());
            if lost.contains_key(&at) {
                continue;
            }
            let how = [Loss::Directory, Loss::Content][self.below(2)];
            lost.insert(at, self.lose(at, how));
            for _ in 0..self.below(12) {
                self.round();
            }
        }
        self.go_on_until(|world| world.is_whole() || world.is_stuck());
        for _ in 0..3 {
            if !self.is_whole() {
                self.repair(&lost);
                self.go_on_until(|world| world.is_whole() || world.is_stuck());
            }
        }
        self.require_all();
        count
    }

    /// It is the same cluster, and each member has all that was confirmed.
    fn require_all(&mut self) {
        for at in 0..self.hosts.len() {
            let ids = self.ask(at).list().map(|list| list.cluster);
            assert_eq!(ids.unwrap(), self.id);
            let keys = self.etcdctl(at, &["get", "k", "--prefix", "--keys-only"]).unwrap();
            let there: BTreeSet<&str> = keys.lines().filter(|line| !line.is_empty()).collect();
            let lost: Vec<&String> = self.written.iter().filter(|key| !there.contains(key.as_str())).collect();
            assert!(lost.is_empty(), "m{at} lost {} of {}: {lost:?}", lost.len(), self.written.len());
        }
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// `TURNUP_TEST_ROUNDS=20` for 500 losses, `TURNUP_TEST_SEED` for others than these.
fn losses() -> usize {
    usize::try_from(setting("TURNUP_TEST_ROUNDS", 1)).unwrap() * 25
}

#[test]
#[ignore = "some minutes: make test-heal"]
fn rejoin_whatever_is_wiped_no_write_is_lost_and_no_other_cluster_forms() {
    std::thread::scope(|scope| {
        for (seed, size) in [(1, 1), (2, 3), (3, 3), (4, 3)] {
            scope.spawn(move || {
                let seed = seed + setting("TURNUP_TEST_SEED", 0);
                let mut world = World::found(size, seed, "existing", true);
                let mut wiped = 0;
                while wiped < losses().div_ceil(4) {
                    wiped += world.wipe();
                }
                let written = world.written.len();
                writeln!(anstream::stdout(), "    {size} members: {wiped} losses, {written} writes confirmed").unwrap();
            });
        }
    });
}

/// The same with what keeps a static pod from a log of its own removed.
#[test]
#[ignore = "some minutes: make test-heal"]
#[should_panic(expected = "m0 lost")]
fn rejoin_without_the_mount_of_the_log_a_write_is_lost() {
    let mut world = World::found(1, 5, "new", false);
    for _ in 0..5 {
        world.round();
    }
    world.lose(0, Loss::Content);
    world.go_on_until(World::is_whole);
    world.require_all();
}

/// The same with the check removed that the member which lost its data is taken out before it
/// joins: it would start as the one that it was.
#[test]
#[ignore = "some minutes: make test-heal"]
#[should_panic(expected = "not whole")]
fn rejoin_as_the_member_that_it_was_never_ends() {
    let mut world = World::found(3, 6, "existing", true);
    world.patience = Duration::from_mins(1);
    world.decide = |seen| match decide(seen) {
        RejoinStep::Remove(id) => {
            let members = &seen.others.as_ref().unwrap().members;
            let line = |member: &ListedMember| format!("{}={}", member.name, member.peer_urls[0]);
            let initial_cluster = members.iter().map(line).collect::<Vec<_>>().join(",");
            RejoinStep::StartJoiner { id, initial_cluster }
        }
        step => step,
    };
    world.lose(1, Loss::Directory);
    world.go_on_until(World::is_whole);
}
