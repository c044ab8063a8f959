//! The directory of ssh's control sockets: this user's alone, and with a path that is short enough
//! for a socket.
//!
//! Who can write there could be the other end of a connection. So a directory is used only when the
//! open directory itself says whose it is, and a directory of another user with our name in `/tmp`
//! stops nothing: another one is made.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

use crate::{Context as _, Result};

/// `sun_path` holds 108 bytes with its end, and ssh appends 17 of its own while it makes the
/// socket.
const LONGEST: usize = 104 - 17;

/// The directory for sockets whose names have so many bytes. Sockets of processes that are gone are
/// removed from it.
pub(super) fn directory(name: usize) -> Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let dir = find(runtime.as_deref(), Path::new("/tmp"), name)?;
    remove_stale(&dir);
    Ok(dir)
}

/// In the user's runtime directory when that is what it should be (XDG Base Directory
/// Specification: ours, 0700), else in `tmp`.
fn find(runtime: Option<&Path>, tmp: &Path, name: usize) -> Result<PathBuf> {
    let fits = |dir: &Path| dir.as_os_str().len() + 1 + name <= LONGEST;
    let runtime = runtime.filter(|dir| dir.is_absolute() && is_own(dir)).map(|dir| dir.join("turnup"));
    if let Some(dir) = runtime.filter(|dir| fits(dir) && make_own(dir)) {
        return Ok(dir);
    }
    let usual = format!("turnup-{}", rustix::process::geteuid().as_raw());
    let dir = tmp.join(&usual);
    if make_own(&dir) {
        return Ok(dir);
    }
    // Another user's, or a file: use an unpredictable name, which the next run finds again.
    let prefix = format!("{usual}-");
    let entries =
        fs_err::read_dir(tmp)?.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    if let Some(known) = entries.map(|entry| entry.path()).filter(|dir| is_own(dir)).min() {
        return Ok(known);
    }
    let private = std::fs::Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().prefix(&prefix).permissions(private).tempdir_in(tmp);
    Ok(made.context(format!("cannot make a directory for sockets of ssh in {}", tmp.display()))?.keep())
}

/// Makes the directory unless it is there; whether it is ours then.
fn make_own(dir: &Path) -> bool {
    // What is there already is judged like one that was made: another thread may have made it in
    // the meantime.
    let _exists = rustix::fs::mkdirat(CWD, dir, Mode::RWXU);
    is_own(dir)
}

/// Whether it is a directory and no link to one, this user's, and not readable or writable by
/// others. In a directory with the sticky bit it stays the same one from then on.
fn is_own(dir: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(open) = rustix::fs::open(dir, flags, Mode::empty()) else { return false };
    is_ours_alone(&open)
}

fn is_ours_alone(open: &OwnedFd) -> bool {
    rustix::fs::fstat(open).is_ok_and(|stat| {
        stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o777 == Mode::RWXU.as_raw_mode()
    })
}

fn remove_stale(dir: &Path) {
    let Ok(entries) = fs_err::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.split_once('-')).and_then(|(pid, _)| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // Another process may be faster.
            let _gone = fs_err::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::fs::Permissions;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn usual(tmp: &Path) -> PathBuf {
        tmp.join(format!("turnup-{}", rustix::process::geteuid().as_raw()))
    }

    #[test]
    fn the_runtime_directory_is_used_when_it_is_ours_alone() {
        let (runtime, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        set_mode(runtime.path(), 0o700);
        let find = |name| find(Some(runtime.path()), tmp.path(), name).unwrap();
        assert_eq!(find(20), runtime.path().join("turnup"));
        assert_eq!(find(20), runtime.path().join("turnup"), "a second time too");
        assert_eq!(find(LONGEST), usual(tmp.path()), "too long for a socket");
        set_mode(runtime.path(), 0o755);
        assert_eq!(find(20), usual(tmp.path()), "others may look into it");
        set_mode(runtime.path(), 0o700);
        fs_err::remove_dir(runtime.path().join("turnup")).unwrap();
        symlink("/etc", runtime.path().join("turnup")).unwrap();
        assert_eq!(find(20), usual(tmp.path()), "a link");
    }

    #[test]
    fn what_another_user_put_there_stops_nothing_and_is_not_used() {
        let tmp = tempfile::tempdir().unwrap();
        let (dir, elsewhere) = (usual(tmp.path()), tempfile::tempdir().unwrap());
        let place = |what: &str| match what {
            "mode" => fs_err::create_dir(&dir).map(|()| set_mode(&dir, 0o777)),
            "link" => symlink(elsewhere.path(), &dir),
            "loop" => symlink(&dir, &dir),
            "file" => fs_err::write(&dir, ""),
            _ => fs_err::create_dir(&dir).and_then(|()| chown(&dir, Some(1), Some(1))),
        };
        let is_root = rustix::process::geteuid().is_root();
        for what in ["mode", "link", "loop", "file"].into_iter().chain(is_root.then_some("owner")) {
            place(what).unwrap();
            let found = find(None, tmp.path(), 20).unwrap();
            assert_ne!(found, dir, "{what}");
            assert!(is_own(&found) && found.starts_with(tmp.path()), "{what}: {}", found.display());
            assert_eq!(find(None, tmp.path(), 20).unwrap(), found, "{what}: found again");
            assert_eq!(fs_err::read_dir(tmp.path()).unwrap().count(), 2, "{what}: one is enough");
            if fs_err::symlink_metadata(&dir).unwrap().is_dir() {
                fs_err::remove_dir(&dir).unwrap();
            } else {
                fs_err::remove_file(&dir).unwrap();
            }
        }
        assert_eq!(find(None, tmp.path(), 20).unwrap(), dir, "free again");
    }
}
