//! `turnup node restore`: this host's member of etcd gets the content of a snapshot, as a member of
//! a new cluster of etcd.
//!
//! The member's own data are never deleted: they are put aside under the id of the restore. What is
//! on the disk decides what comes next ([`decide`], pure), so that the same command goes on after a
//! kill. Which snapshot it is and who the members are is the operator's side to say.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, FileMode, sync_directory};
use crate::error::{Error, Result};
use crate::exec::Run;
use crate::failpoint;

use super::backup::{EtcdPrograms, SnapshotContent, read_part};
use super::etcd_joiner;
use super::layout;
use super::node_config::{AGENT_UNIT, BACKUP_SERVICE, BACKUP_TIMER, NodeConfig};
use super::static_pod;
use super::systemd::{self, systemctl};

/// The static pods in the order in which they are stopped, and for how many seconds they may end by
/// themselves: etcd writes all it has to its database then. An API server waits for its clients and
/// for an etcd that may not answer, and has nothing to lose.
const PODS: [(&str, u8); 4] =
    [("kube-apiserver", 3), ("kube-controller-manager", 3), ("kube-scheduler", 3), ("etcd", 60)];
/// For all of them.
const STOP: Duration = Duration::from_mins(5);
/// etcd's database below the data directory of a member.
const DATABASE: &str = "member/snap/db";
/// The data directory of a member, below the directory of everything of etcd.
pub(super) const DATA: &str = "data";
/// How the names begin of what a restore has not finished with; its id follows.
pub(super) const RESTORING: &str = "restore-";
/// How the names begin of data that a restore has put aside; its id follows.
pub(super) const ASIDE: &str = "data-before-";
/// The file that holds the id of the last restore that came to its end here.
pub(super) const RESTORED: &str = "restored";

/// This host's member of etcd, as its manifest says.
#[derive(Clone)]
pub(crate) struct OwnMember {
    host: String,
    /// Where everything of etcd is: on its own disk, or on the host's.
    directory: PathBuf,
}

/// How a member stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberState {
    /// Where everything of etcd is on the host; its own data are below `data`.
    pub directory: PathBuf,
    /// Whether there are data of a member.
    pub has_data: bool,
    /// Whether its process runs.
    pub is_running: bool,
    /// Whether it knows a leader, and so belongs to a majority.
    pub has_leader: bool,
    /// The revision of the last change that it has applied; unknown of one that runs and does not
    /// answer.
    pub revision: Option<i64>,
}

/// What is to be made of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestoreOrder {
    /// The restore: what is put aside and made carries it in its name.
    pub id: String,
    /// The member's name.
    pub name: String,
    /// Where the others reach it.
    pub peer_url: String,
    /// `name=URL` of all members, with commas between.
    pub initial_cluster: String,
    /// What tells this cluster of etcd from any before it.
    pub token: String,
    /// By how much the revision is raised above the snapshot's.
    pub bump: i64,
    /// Whether the snapshot ends with etcd's own hash; a database that was copied does not.
    pub has_hash: bool,
}

/// What a restore has left on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    built: bool,
    aside: bool,
    data: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Build,
    PutAside,
    MoveIn,
    Mark,
    /// Something has made data since the old ones were put aside.
    Refuse,
}

const fn decide(found: Found) -> Next {
    match found {
        Found { built: false, aside: true, data: true } => Next::Mark,
        Found { built: false, .. } => Next::Build,
        Found { aside: false, .. } => Next::PutAside,
        Found { data: false, .. } => Next::MoveIn,
        Found { .. } => Next::Refuse,
    }
}

impl OwnMember {
    /// That of this host; none where the host is no node of the control plane.
    pub(crate) fn find() -> Result<Option<Self>> {
        Ok(NodeConfig::read_applied()?.as_ref().and_then(Self::of))
    }

    /// That of a host with this node config.
    pub(crate) fn of(node_config: &NodeConfig) -> Option<Self> {
        let manifest = static_pod::find_manifest(node_config, "etcd")?;
        let data = Path::new(static_pod::find_flag(manifest, "data-dir")?);
        Some(Self { host: node_config.node.clone(), directory: data.parent()?.to_owned() })
    }

    /// The same; an error where there is none.
    pub(crate) fn require() -> Result<Self> {
        Self::find()?.ok_or_else(|| Error::precondition("this host has no member of etcd").hint("turnup up"))
    }

    /// Where everything of etcd is.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn data(&self) -> PathBuf {
        self.directory.join(DATA)
    }

    /// Whatever its manifest says by now: whether something has its data.
    pub(super) fn is_running(&self) -> bool {
        static_pod::runs_with(&static_pod::data_dir_flag(&self.data()))
    }

    /// Changes nothing.
    pub(crate) fn look(&self, programs: &EtcdPrograms<'_>) -> MemberState {
        let directory = self.directory.clone();
        let has_data = self.data().join(DATABASE).is_file();
        let is_running = self.is_running();
        let (revision, has_leader) = if is_running {
            programs.applied_revision().map_or((None, false), |(revision, has_leader)| (Some(revision), has_leader))
        } else if has_data {
            // Damaged data are what a restore is for.
            (programs.snapshot_content(&self.data().join(DATABASE)).ok().map(|content| content.revision), false)
        } else {
            (None, false)
        };
        MemberState { directory, has_data, is_running, has_leader, revision }
    }

    /// Stops what writes and what answers, now and at the next boot: the agent and kubelet first,
    /// which would start the static pods again. Pods of others run on.
    pub(crate) fn stop(&self) -> Result<()> {
        for unit in [AGENT_UNIT, BACKUP_TIMER, BACKUP_SERVICE, "kubelet.service"] {
            if Path::new(&layout::unit_file(unit)).exists() {
                failpoint::around(format_args!("stop {unit}"), || systemctl(&["disable", "--now", unit]))?;
            }
        }
        // It has etcd's ports, and is none of kubelet's.
        etcd_joiner::stop()?;
        for (pod, seconds) in PODS {
            failpoint::around(format_args!("stop {pod}"), || self.stop_pod(pod, seconds))?;
        }
        if self.is_running() {
            return Err(Error::transient("etcd runs on although its container was stopped")
                .hint("look on the host with: crictl ps --name etcd"));
        }
        Ok(())
    }

    fn stop_pod(&self, pod: &str, seconds: u8) -> Result<()> {
        let ids = self.find_containers(pod, "running")?;
        if ids.is_empty() { Ok(()) } else { crictl(&["stop", &format!("--timeout={seconds}")], &ids).map(drop) }
    }

    /// The containers of a static pod in this state.
    fn find_containers(&self, pod: &str, state: &str) -> Result<Vec<String>> {
        let label = format!("--label=io.kubernetes.pod.name={pod}-{}", self.host);
        let state = format!("--state={state}");
        let found = crictl(
            &["ps", "--quiet", "--all", &state, &label, "--label=io.kubernetes.pod.namespace=kube-system"],
            &[],
        )?;
        Ok(found.split_whitespace().map(str::to_owned).collect())
    }

    /// Has kubelet start etcd now, whose data are there again: it waits ever longer between two
    /// tries, for the container that failed last.
    pub(super) fn forget_failed(&self) -> Result<()> {
        let failed = self.find_containers("etcd", "exited")?;
        if failed.is_empty() { Ok(()) } else { crictl(&["rm"], &failed).map(drop) }
    }

    /// The same where it waits for a directory that was missing, which a new kubelet does not. It
    /// waits a minute for an API server that does not answer, as one without its etcd, and not for
    /// one that is not there.
    pub(super) fn restart_kubelet(&self) -> Result<()> {
        self.stop_pod("kube-apiserver", 3)?;
        systemctl(&["restart", "kubelet.service"])
    }

    /// A part of the member's database from this byte on, in base64; empty behind its end. The
    /// member must be stopped.
    pub(crate) fn part(&self, offset: u64) -> Result<String> {
        if self.is_running() {
            return Err(Error::precondition("etcd runs, so that its database may change while it is read"));
        }
        read_part(&self.data().join(DATABASE), offset)
    }

    /// Where the operator puts the snapshot of a restore.
    fn snapshot(&self, id: &str) -> PathBuf {
        self.directory.join(snapshot_name(id))
    }

    /// What is in the snapshot of a restore.
    pub(crate) fn check(&self, programs: &EtcdPrograms<'_>, id: &str) -> Result<SnapshotContent> {
        programs.snapshot_content(&self.snapshot(id))
    }

    /// Carries out what is left of this order. The member must be stopped.
    pub(crate) fn restore(&self, programs: &EtcdPrograms<'_>, order: &RestoreOrder) -> Result<()> {
        if self.is_running() {
            return Err(Error::precondition("etcd runs, so that its data cannot be exchanged"));
        }
        Exchange { member: self, programs, order }.carry_out()
    }

    /// Starts again what was stopped, now and at each boot.
    pub(crate) fn start(&self, id: &str) -> Result<()> {
        // It is another cluster of etcd by now; the agent writes down which once it is well.
        remove_file(Path::new(layout::ETCD_RECORD))?;
        for unit in ["kubelet.service", BACKUP_TIMER, AGENT_UNIT] {
            if Path::new(&layout::unit_file(unit)).exists() {
                failpoint::around(format_args!("start {unit}"), || systemctl(&["enable", "--now", unit]))?;
            }
        }
        systemd::reset_failed(BACKUP_SERVICE);
        remove_file(&self.snapshot(id))
    }
}

/// The name of the snapshot of a restore on a host.
#[must_use]
pub(crate) fn snapshot_name(id: &str) -> String {
    format!("{RESTORING}{id}.db")
}

/// The name of the data of a member that were put aside.
#[must_use]
pub(crate) fn aside_name(id: &str) -> String {
    format!("{ASIDE}{id}")
}

fn crictl(words: &[&str], ids: &[String]) -> Result<String> {
    let run = Run::new(layout::program("crictl")).dir("/").timeout(STOP);
    let words = words.iter().copied().chain(ids.iter().map(String::as_str));
    run.args(words).succeed().map(|output| output.stdout)
}

fn remove_file(path: &Path) -> Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Gives these files to whom the directory of everything of etcd belongs: etcd has a user of its
/// own.
pub(super) fn hand_over(directory: &Path, files: &Path) -> Result<()> {
    let owner = format!("--reference={}", directory.display());
    Run::new("chown").dir("/").args(["--recursive", &owner, &files.display().to_string()]).succeed().map(drop)
}

/// The exchange of the data of one member.
struct Exchange<'a> {
    member: &'a OwnMember,
    programs: &'a EtcdPrograms<'a>,
    order: &'a RestoreOrder,
}

impl Exchange<'_> {
    fn aside(&self) -> PathBuf {
        self.member.directory.join(aside_name(&self.order.id))
    }

    fn built(&self) -> PathBuf {
        self.member.directory.join(format!("{RESTORING}{}", self.order.id))
    }

    fn find(&self) -> Found {
        Found { built: self.built().exists(), aside: self.aside().exists(), data: self.member.data().exists() }
    }

    /// Whether this restore came to its end here.
    fn is_marked(&self) -> bool {
        fs_err::read_to_string(self.member.directory.join(RESTORED)).is_ok_and(|mark| mark.trim() == self.order.id)
    }

    fn carry_out(&self) -> Result<()> {
        while !self.is_marked() {
            let next = decide(self.find());
            let effect = || match next {
                Next::Build => self.build(),
                Next::PutAside => self.put_aside(),
                Next::MoveIn => self.rename(&self.built(), &self.member.data()),
                Next::Mark => Ok(atomic_file::replace(
                    &self.member.directory.join(RESTORED),
                    self.order.id.as_bytes(),
                    FileMode::Exact(0o600),
                )?),
                Next::Refuse => Err(self.refuse()),
            };
            failpoint::around(format_args!("{next:?}"), effect)?;
        }
        Ok(())
    }

    /// A data directory of the new member beside the old one. It gets its name when it is whole.
    fn build(&self) -> Result<()> {
        let RestoreOrder { id, name, peer_url, initial_cluster, token, bump, has_hash } = self.order;
        let half = self.member.directory.join(format!("{RESTORING}{id}.half"));
        if half.exists() {
            fs_err::remove_dir_all(&half)?;
        }
        let snapshot = self.member.snapshot(id).display().to_string();
        let flags = [
            format!("--data-dir={}", half.display()),
            format!("--name={name}"),
            format!("--initial-cluster={initial_cluster}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster-token={token}"),
            format!("--bump-revision={bump}"),
            format!("--skip-hash-check={}", !has_hash),
        ];
        let words = ["snapshot", "restore", &snapshot, "--mark-compacted"].into_iter();
        self.programs.utl(&words.chain(flags.iter().map(String::as_str)).collect::<Vec<_>>())?;
        hand_over(&self.member.directory, &half)?;
        self.rename(&half, &self.built())
    }

    fn put_aside(&self) -> Result<()> {
        if self.member.data().exists() {
            return self.rename(&self.member.data(), &self.aside());
        }
        // That there was nothing has to be seen later, too.
        fs_err::create_dir(self.aside())?;
        Ok(sync_directory(&self.member.directory)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs_err::rename(from, to)?;
        Ok(sync_directory(&self.member.directory)?)
    }

    fn refuse(&self) -> Error {
        Error::precondition(format!("{} is there although it was put aside", self.member.data().display()))
            .evidence(format!("the data of before: {}", self.aside().display()))
            .hint("see what started etcd meanwhile, and move its data elsewhere; then: turnup restore")
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    /// Restores a directory with one file that has the words of the call.
    const ETCDUTL: &str = r#"#!/bin/sh
for word in "$@"; do case "$word" in --data-dir=*) dir=${word#--data-dir=};; esac; done
[ ! -e "$dir" ] || { echo "data-dir $dir not empty" >&2; exit 1; }
mkdir -p "$dir/member/snap" && echo "$*" >"$dir/member/snap/db"
"#;

    struct Fake {
        dir: tempfile::TempDir,
        utl: String,
        order: RestoreOrder,
    }

    impl Fake {
        fn new(with_data: bool) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let utl = dir.path().join("etcdutl");
            fs_err::write(&utl, ETCDUTL).unwrap();
            fs_err::set_permissions(&utl, Permissions::from_mode(0o755)).unwrap();
            let etcd = dir.path().join("etcd");
            fs_err::create_dir(&etcd).unwrap();
            if with_data {
                fs_err::create_dir_all(etcd.join("data/member/snap")).unwrap();
                fs_err::write(etcd.join("data/member/snap/db"), "the old ones").unwrap();
            }
            let order = RestoreOrder {
                id: "t1".into(),
                name: "h0".into(),
                peer_url: "https://10.0.0.1:2380".into(),
                initial_cluster: "h0=https://10.0.0.1:2380".into(),
                token: "turnup-c-t1".into(),
                bump: 1_000_000_000,
                has_hash: false,
            };
            Self { utl: utl.display().to_string(), dir, order }
        }

        fn etcd(&self) -> PathBuf {
            self.dir.path().join("etcd")
        }

        fn member(&self) -> OwnMember {
            OwnMember { host: self.order.name.clone(), directory: self.etcd() }
        }

        fn carry_out(&self) -> Result<()> {
            let programs = EtcdPrograms::with_etcdutl(&self.utl);
            Exchange { member: &self.member(), programs: &programs, order: &self.order }.carry_out()
        }

        /// One effect, or half of one, and then the machine is gone.
        fn step(&self, is_cut: bool) {
            let programs = EtcdPrograms::with_etcdutl(&self.utl);
            let member = self.member();
            let exchange = Exchange { member: &member, programs: &programs, order: &self.order };
            match decide(exchange.find()) {
                // Killed within it: etcdutl leaves a half.
                Next::Build if is_cut => fs_err::create_dir_all(self.etcd().join("restore-t1.half/member")).unwrap(),
                Next::Build => exchange.build().unwrap(),
                Next::PutAside => exchange.put_aside().unwrap(),
                Next::MoveIn => exchange.rename(&exchange.built(), &member.data()).unwrap(),
                _ => {}
            }
        }

        fn require_restored(&self, with_data: bool) {
            let etcd = self.etcd();
            let db = fs_err::read_to_string(etcd.join("data").join(DATABASE)).unwrap();
            assert!(db.starts_with("snapshot restore ") && db.contains("--bump-revision=1000000000"), "{db}");
            assert!(db.contains("--skip-hash-check=true") && db.contains("--mark-compacted"), "{db}");
            let old = fs_err::read_to_string(etcd.join("data-before-t1").join(DATABASE));
            assert_eq!(old.ok().as_deref(), with_data.then_some("the old ones"), "never deleted");
            let mut names: Vec<String> = fs_err::read_dir(&etcd)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            assert_eq!(names, ["data", "data-before-t1", RESTORED]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn killed_wherever_it_ends_the_same_and_deletes_no_data(
            with_data: bool,
            cuts in proptest::collection::vec(any::<bool>(), 0..6),
        ) {
            let fake = Fake::new(with_data);
            for is_cut in cuts {
                fake.step(is_cut);
            }
            fake.carry_out().unwrap();
            fake.require_restored(with_data);
            // What runs since is not touched by a second call.
            fs_err::write(fake.etcd().join("data/member/new"), "since").unwrap();
            fake.carry_out().unwrap();
            prop_assert!(fake.etcd().join("data/member/new").exists());
        }
    }

    #[test]
    fn data_that_something_made_meanwhile_are_not_overwritten() {
        let fake = Fake::new(true);
        fake.step(false);
        fake.step(false);
        fs_err::create_dir_all(fake.etcd().join("data/member")).unwrap();
        let error = fake.carry_out().unwrap_err().render();
        assert!(error.contains("is there although it was put aside"), "{error}");
        assert!(fake.etcd().join("data/member").is_dir());
    }

    #[test]
    fn a_second_restore_puts_the_data_of_the_first_aside() {
        let mut fake = Fake::new(true);
        fake.carry_out().unwrap();
        fake.order.id = "t2".into();
        fake.carry_out().unwrap();
        let first = fs_err::read_to_string(fake.etcd().join("data-before-t2").join(DATABASE)).unwrap();
        assert!(first.contains("restore-t1.half"), "{first}");
        assert!(fake.etcd().join("data-before-t1").join(DATABASE).exists());
    }
}
