//! What is in the directory of this host's member of etcd. Looks, and changes nothing but what
//! [`move_in`] is asked for.
//!
//! Empty is only what was seen to be empty. A name that turnup does not know, a file anywhere in
//! the data, a directory that cannot be read: all of these are data, or may be.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::atomic_file::{self, sync_directory};
use crate::error::{Error, Result};

use super::etcd_restore::{ASIDE, DATA, RESTORED, RESTORING};
use super::mounts;

/// What is in this host's data directory of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnData {
    /// Seen to be empty: what should be there can be read, and there is no file.
    Empty,
    /// A member's.
    Present,
    /// It cannot be told, and why.
    Unknown(String),
}

/// How the names of directories begin in which a learner gets its data; its id follows.
pub(crate) const JOINING: &str = "joining-";
/// Where the data of a member that takes part from the first start of all on are made.
pub(super) const FOUNDING: &str = "founding";
/// The directory of a member's write-ahead log below its data. In its static pod it is a mount of
/// its own, which etcd cannot exchange, and so it cannot begin another log there: a member whose
/// data are gone would take part as if it were new. kubelet waits for it; `etcd_first_start`,
/// etcdutl and a learner make it, and nothing else does.
pub(crate) const WAL: &str = "member/wal";
/// How deep directories may be in a directory that counts as empty: `data/member/wal`.
const DEPTH: u8 = 3;

/// Where a learner of this id gets its data.
pub(super) fn joining(directory: &Path, id: u64) -> PathBuf {
    directory.join(format!("{JOINING}{id:016x}"))
}

/// What is in the data directory below this one of a host.
pub(super) fn find_data(directory: &Path, host: &str) -> OwnData {
    match look(directory, host) {
        Ok(data) => data,
        Err(error) => OwnData::Unknown(error.to_string()),
    }
}

fn look(directory: &Path, host: &str) -> io::Result<OwnData> {
    let data = directory.join(DATA);
    if has_log(&data) {
        return Ok(OwnData::Present);
    }
    for name in names_in(directory)? {
        let is_ours = name == DATA
            || name == RESTORED
            || name == FOUNDING
            || name.starts_with(JOINING)
            || name.starts_with(ASIDE)
            || name.starts_with(atomic_file::PREFIX)
            || mounts::is_no_data(&name);
        if name.starts_with(RESTORING) {
            return Ok(unknown(&directory.join(name), "a restore is under way: turnup restore"));
        }
        if !is_ours {
            return Ok(unknown(
                &directory.join(name),
                &format!("when it is of no use: turnup reset {host}, then: turnup up"),
            ));
        }
    }
    match fs_err::symlink_metadata(&data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(OwnData::Empty),
        Err(error) => Err(error),
        Ok(_) => Ok(match find_file(&data, DEPTH)? {
            None => OwnData::Empty,
            Some(path) => unknown(
                &path,
                &format!("it is no whole member; when it is of no use: turnup reset {host}, then: turnup up"),
            ),
        }),
    }
}

fn unknown(path: &Path, what: &str) -> OwnData {
    OwnData::Unknown(format!("{} is there: {what}", path.display()))
}

/// Whether a member's write-ahead log is there, without which etcd takes itself for a new one.
pub(super) fn has_log(data: &Path) -> bool {
    let names = names_in(&data.join(WAL)).unwrap_or_default();
    names.iter().any(|name| Path::new(name).extension().is_some_and(|end| end == "wal"))
}

/// The learners' directories, by their ids, and whether each has data.
pub(super) fn find_joining(directory: &Path) -> BTreeMap<u64, bool> {
    let names = names_in(directory).unwrap_or_default();
    let id = |name: &String| u64::from_str_radix(name.strip_prefix(JOINING)?, 16).ok();
    names.iter().filter_map(id).map(|id| (id, has_log(&joining(directory, id)))).collect()
}

/// Gives this directory, which has a member's data, the name of the data directory. What is there
/// by that name must have no file: only empty directories are removed.
pub(super) fn move_in(directory: &Path, from: &Path) -> Result<()> {
    let data = directory.join(DATA);
    if find_data(directory, "HOST") != OwnData::Empty {
        return Err(Error::precondition(format!("{} has data meanwhile", data.display())));
    }
    remove_empty(&data)?;
    fs_err::rename(from, &data)?;
    Ok(sync_directory(directory)?)
}

/// `rmdir`, from the inside out: it fails on whatever holds a file.
fn remove_empty(directory: &Path) -> io::Result<()> {
    match names_in(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names?.iter().try_for_each(|name| remove_empty(&directory.join(name)))?,
    }
    fs_err::remove_dir(directory)
}

/// The first thing that is no directory, or lies too deep to be what etcd or a runtime made.
fn find_file(directory: &Path, depth: u8) -> io::Result<Option<PathBuf>> {
    let is_directory = fs_err::symlink_metadata(directory)?.is_dir();
    if !is_directory || depth == 0 {
        return Ok(Some(directory.to_owned()));
    }
    for name in names_in(directory)? {
        if let Some(found) = find_file(&directory.join(name), depth - 1)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs_err::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    fs_err::read_dir(directory)?.map(name).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn made(entries: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for entry in entries {
            let path = dir.path().join(entry);
            if entry.ends_with('/') {
                fs_err::create_dir_all(&path).unwrap();
            } else {
                fs_err::create_dir_all(path.parent().unwrap()).unwrap();
                fs_err::write(&path, "x").unwrap();
            }
        }
        dir
    }

    #[test]
    fn empty_is_only_what_was_seen_to_be_empty() {
        for entries in [
            &[][..],
            &["data/"],
            &["data/member/"],
            &["data/member/wal/", "data/member/snap/"],
            &[
                "lost+found/",
                ".turnup-owner",
                "restored",
                "data-before-t1/member/wal/0.wal",
                "joining-0a/member/wal/0.wal",
                "founding/data/member/snap/db",
            ],
        ] {
            assert_eq!(find_data(made(entries).path(), "m1"), OwnData::Empty, "{entries:?}");
        }
        for entries in [
            &["data"][..],
            &["data/member/snap/db"],
            &["data/lost"],
            &["data/member/wal/0.tmp"],
            &["data/a/b/c/"],
            &["member/wal/0.wal"],
            &["restore-t1.db"],
            &["restore-t1/member/wal/0.wal"],
        ] {
            assert!(matches!(find_data(made(entries).path(), "m1"), OwnData::Unknown(_)), "{entries:?}");
        }
        assert_eq!(find_data(made(&["data/member/wal/0.wal"]).path(), "m1"), OwnData::Present);
        assert!(matches!(find_data(Path::new("/no/such/directory"), "m1"), OwnData::Unknown(_)), "a disk that is away");
        assert!(matches!(find_data(Path::new("/proc/version"), "m1"), OwnData::Unknown(_)));
    }

    #[test]
    fn a_directory_that_leads_elsewhere_is_not_empty() {
        let (dir, other) = (made(&[]), made(&[]));
        std::os::unix::fs::symlink(other.path(), dir.path().join("data")).unwrap();
        assert!(matches!(find_data(dir.path(), "m1"), OwnData::Unknown(_)));
    }

    #[test]
    fn a_learner_moves_in_where_there_is_no_file_and_nowhere_else() {
        let dir = made(&["data/member/wal/", "joining-000000000000000a/member/wal/0.wal", "joining-b/"]);
        assert_eq!(find_joining(dir.path()), BTreeMap::from([(10, true), (11, false)]));
        move_in(dir.path(), &joining(dir.path(), 10)).unwrap();
        assert_eq!(find_data(dir.path(), "m1"), OwnData::Present);
        let dir = made(&["data/member/snap/db", "joining-000000000000000a/member/wal/0.wal"]);
        assert!(move_in(dir.path(), &joining(dir.path(), 10)).is_err());
        assert!(dir.path().join("data/member/snap/db").exists(), "data are never deleted");
        assert!(joining(dir.path(), 10).exists());
        assert!(remove_empty(&dir.path().join("data")).is_err(), "rmdir does not take what holds a file");
        assert!(dir.path().join("data/member/snap/db").exists());
    }
}
