//! The first start of this host's member of etcd, before kubelet starts its static pod: that one
//! takes part only with the data of a member, for it cannot begin a write-ahead log
//! ([`etcd_data::WAL`]). So its manifest never says `new`, and a cluster of etcd is made once,
//! here, on the word of the operator's run; whatever is wiped later, nothing forms another one.
//!
//! Deletes no data of a member: a founding that was cut off has taken part in nothing, and a
//! learner that was is taken up again.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::backup::EtcdPrograms;
use super::etcd_data::{self, FOUNDING, OwnData};
use super::etcd_joiner::{self, Joiner};
use super::etcd_restore::{OwnMember, hand_over};
use super::layout;
use super::node_config::NodeConfig;
use super::static_pod::{find_flag, find_manifest};
use super::systemd;
use crate::error::{Error, Result};
use crate::exec::signals;
use crate::failpoint;

/// How long a learner may take until it has heard of a leader.
const JOINS: Duration = Duration::from_mins(3);
/// The learner's directory: its id is not known here, and no member has this one.
const ID: u64 = 0;

/// How a member of etcd starts for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EtcdStart {
    /// With the others of its list, all at once.
    Founding,
    /// As one more, which etcd does not count yet.
    Joining,
}

/// Makes the data of this host's member, where it has none. Returns whether it did.
pub(super) fn run(node_config: &NodeConfig, start: EtcdStart, programs: &EtcdPrograms<'_>) -> Result<bool> {
    let (Some(member), Some(manifest)) = (OwnMember::of(node_config), find_manifest(node_config, "etcd")) else {
        return Ok(false);
    };
    match etcd_data::find_data(member.directory(), &node_config.node) {
        OwnData::Present => {
            clear(&member.directory().join(FOUNDING))?;
            return Ok(false);
        }
        OwnData::Unknown(why) => {
            return Err(Error::precondition(format!("etcd cannot start for the first time: {why}")));
        }
        OwnData::Empty => {}
    }
    match start {
        EtcdStart::Founding => {
            require_none(Path::new(layout::ETCD_RECORD))?;
            let found = || found(member.directory(), manifest, programs);
            failpoint::around(format_args!("found the member of etcd"), found)?;
        }
        EtcdStart::Joining => {
            let joiner = Joiner { manifest, snapshotter: &node_config.runtime.snapshotter };
            failpoint::around(format_args!("join etcd"), || join(&member, &joiner, programs))?;
        }
    }
    if systemd::is("is-active", "kubelet.service") {
        // It has waited for them, ever longer.
        member.restart_kubelet()?;
    }
    Ok(true)
}

/// This host was a member of no cluster yet, as far as it knows.
fn require_none(record: &Path) -> Result<()> {
    if !record.exists() {
        return Ok(());
    }
    Err(Error::precondition("this host has lost the data of its member of etcd, so it founds no cluster again")
        .evidence(format!("{} says which cluster that was", record.display()))
        .hint("turnup restore (from a backup); or, to give all data up: turnup down"))
}

/// The data that each member of a new cluster has when all have started: as etcdutl restores them
/// from a snapshot with nothing in it. The ids follow from the flags, so the members agree.
pub(super) fn found(directory: &Path, manifest: &Value, programs: &EtcdPrograms<'_>) -> Result<()> {
    let founding = directory.join(FOUNDING);
    clear(&founding)?;
    fs_err::create_dir(&founding)?;
    let (snapshot, data) = (founding.join("empty.db"), founding.join("data"));
    fs_err::write(&snapshot, empty_database())?;
    let mut words = vec!["snapshot".to_owned(), "restore".to_owned(), snapshot.display().to_string()];
    words.extend(["--skip-hash-check".to_owned(), format!("--data-dir={}", data.display())]);
    for name in ["name", "initial-cluster", "initial-cluster-token", "initial-advertise-peer-urls"] {
        words.push(format!("--{name}={}", require_flag(manifest, name)?));
    }
    programs.utl(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    hand_over(directory, &founding)?;
    etcd_data::move_in(directory, &data)?;
    clear(&founding)
}

/// Removes what a founding leaves beside the data that it has made.
fn clear(founding: &Path) -> Result<()> {
    match fs_err::remove_dir_all(founding) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn require_flag<'m>(manifest: &'m Value, name: &str) -> Result<&'m str> {
    let missing = || Error::precondition(format!("the static pod of etcd has no flag --{name}"));
    find_flag(manifest, name).ok_or_else(missing)
}

/// A learner gets its data outside of the static pod, which goes on with them.
fn join(member: &OwnMember, joiner: &Joiner<'_>, programs: &EtcdPrograms<'_>) -> Result<()> {
    let directory = etcd_data::joining(member.directory(), ID);
    let initial_cluster = require_flag(joiner.manifest, "initial-cluster")?;
    // One of a run that was cut off goes on with what it has.
    etcd_joiner::stop()?;
    joiner.start(&directory, initial_cluster)?;
    let since = Instant::now();
    while !(etcd_data::has_log(&directory) && programs.applied_revision().is_ok_and(|(_, has_leader)| has_leader)) {
        let is_late = since.elapsed() > JOINS;
        if is_late || !etcd_joiner::runs_in(&directory) {
            let what = if is_late { "hears of no leader" } else { "has ended by itself" };
            let error = Error::transient(format!("the learner of etcd {what}")).hint("turnup up");
            return Err(error.evidence_of(etcd_joiner::last_words()));
        }
        signals::sleep(Duration::from_millis(300))?;
    }
    etcd_joiner::stop()?;
    etcd_data::move_in(member.directory(), &directory)
}

/// bbolt's page.
const PAGE: u16 = 4096;

/// A database of etcd without a key: a file of bbolt, version 2, with the bucket `meta`, which
/// etcdutl writes to and does not make. Two pages about the file, a list of free pages, and a page
/// of buckets (go.etcd.io/bbolt: `internal/common/{page,meta,bucket}.go`).
fn empty_database() -> Vec<u8> {
    let [meta, freelist, leaf] = [0x04, 0x10, 0x02];
    let bucket = [number(0), number(0), page_head(0, leaf, 0)].concat();
    let name = b"meta";
    let lengths = [1_u32, 16, 4, 32].map(u32::to_le_bytes).concat();
    let buckets = [lengths.as_slice(), name, &bucket].concat();
    [
        page(0, meta, 0, &describe_file(0)),
        page(1, meta, 0, &describe_file(1)),
        page(2, freelist, 0, &[]),
        page(3, leaf, 1, &buckets),
    ]
    .concat()
}

fn number(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

/// The id of a page, what it is, how many elements it has; it overflows to no other.
fn page_head(id: u64, flags: u16, count: u16) -> Vec<u8> {
    [number(id), flags.to_le_bytes().to_vec(), count.to_le_bytes().to_vec(), vec![0; 4]].concat()
}

fn page(id: u64, flags: u16, count: u16, content: &[u8]) -> Vec<u8> {
    let mut page = [page_head(id, flags, count).as_slice(), content].concat();
    page.resize(PAGE.into(), 0);
    page
}

/// What is known of the file after this transaction: magic, version, size of a page, the page of
/// buckets, that of free pages, and how many there are.
fn describe_file(transaction: u64) -> Vec<u8> {
    let head = [0xED0C_DAED, 2, PAGE.into(), 0].map(u32::to_le_bytes).concat();
    let facts = [head, [3, 0, 2, 4, transaction].map(u64::to_le_bytes).concat()].concat();
    // FNV-1a, 64 bits.
    let sum = facts
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    [facts, number(sum)].concat()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    /// Notes its words and how many bytes the snapshot has, and restores one file.
    const ETCDUTL: &str = r#"#!/bin/sh
for word in "$@"; do case "$word" in --data-dir=*) dir=${word#--data-dir=};; esac; done
[ ! -e "$dir" ] || { echo "data-dir $dir not empty" >&2; exit 1; }
mkdir -p "$dir/member/wal" && { echo "$*"; wc -c <"$3"; } >"$dir/member/wal/0.wal"
"#;

    struct Fake {
        dir: tempfile::TempDir,
        utl: String,
        manifest: Value,
    }

    impl Fake {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let utl = dir.path().join("etcdutl");
            fs_err::write(&utl, ETCDUTL).unwrap();
            fs_err::set_permissions(&utl, Permissions::from_mode(0o755)).unwrap();
            fs_err::create_dir(dir.path().join("etcd")).unwrap();
            let manifest = json!({"spec": {"containers": [{"command": [
                "etcd", "--name=m1", "--initial-cluster=m1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380",
                "--initial-cluster-token=turnup-shop", "--initial-advertise-peer-urls=https://10.0.0.1:2380",
                "--initial-cluster-state=existing",
            ]}]}});
            Self { utl: utl.display().to_string(), dir, manifest }
        }

        fn found(&self) -> Result<()> {
            found(&self.dir.path().join("etcd"), &self.manifest, &EtcdPrograms::with_etcdutl(&self.utl))
        }

        fn names(&self) -> Vec<String> {
            let entries = fs_err::read_dir(self.dir.path().join("etcd")).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    #[test]
    fn a_member_is_made_as_its_static_pod_says_and_a_half_one_again() {
        let fake = Fake::new();
        let half = fake.dir.path().join("etcd/founding/data/member/wal");
        fs_err::create_dir_all(&half).unwrap();
        fs_err::create_dir_all(fake.dir.path().join("etcd/data/member")).unwrap();
        fake.found().unwrap();
        assert_eq!(fake.names(), ["data"]);
        let said = fs_err::read_to_string(fake.dir.path().join("etcd/data/member/wal/0.wal")).unwrap();
        insta::assert_snapshot!(said.replace(&fake.dir.path().display().to_string(), "DIR"));
    }

    #[test]
    fn data_are_not_replaced_and_nothing_is_made_up() {
        let mut fake = Fake::new();
        let db = fake.dir.path().join("etcd/data/member/snap/db");
        fs_err::create_dir_all(db.parent().unwrap()).unwrap();
        fs_err::write(&db, "data").unwrap();
        assert!(fake.found().unwrap_err().message().ends_with("has data meanwhile"));
        assert_eq!(fs_err::read_to_string(&db).unwrap(), "data");
        fake = Fake::new();
        fake.manifest = json!({"spec": {"containers": [{"command": ["etcd", "--name=m1"]}]}});
        assert!(fake.found().unwrap_err().message().contains("--initial-cluster"));
        assert_eq!(fake.names(), ["founding"], "which the next try removes");
    }

    #[test]
    fn a_host_that_was_a_member_founds_no_other_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("etcd.json");
        require_none(&record).unwrap();
        fs_err::write(&record, "{}").unwrap();
        let error = require_none(&record).unwrap_err().render();
        insta::assert_snapshot!(error.replace(&dir.path().display().to_string(), "/var/lib/turnup"), @"
        error: this host has lost the data of its member of etcd, so it founds no cluster again
          | /var/lib/turnup/etcd.json says which cluster that was
        next: turnup restore (from a backup); or, to give all data up: turnup down
        ");
    }

    #[test]
    fn an_empty_database_is_four_pages_of_which_each_says_which_it_is() {
        let database = empty_database();
        let pages: Vec<&[u8]> = database.chunks(PAGE.into()).collect();
        let ids = [0_u8, 1, 2, 3];
        assert_eq!(pages.iter().map(|page| page[0]).collect::<Vec<_>>(), ids);
        assert!(pages[3].windows(4).any(|bytes| bytes == b"meta"));
    }
}
