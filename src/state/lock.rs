//! The lock: one writer for each cluster.
//!
//! The operating system's lock on the file decides, not the text in it: a dead owner's lock is free
//! whatever the text says. The text names the owner to the process that has to wait.

use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::errors;
use crate::{Class, Error, Result, input};

/// Who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Name of the machine.
    pub host: String,
    /// When it was taken.
    pub start: Timestamp,
    /// The command that took it.
    pub command: String,
}

/// Who has the lock, or had it last and died with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// As it signed.
    #[serde(flatten)]
    pub owner: Owner,
    /// Whether it has the lock now.
    pub alive: bool,
}

/// Proof that this process is the only writer; dropped, the lock is free.
#[derive(Debug)]
pub struct ClusterLock {
    file: fs_err::File,
    previous: Option<Owner>,
}

impl ClusterLock {
    /// The owner that died holding the lock, if the last one did.
    #[must_use]
    pub fn previous(&self) -> Option<&Owner> {
        self.previous.as_ref()
    }

    /// The message for the user when the last owner died holding the lock: who it was.
    #[must_use]
    pub fn takeover(&self) -> Option<String> {
        let owner = self.previous()?;
        Some(format!(
            "`{}` (process {} on {}, since {}) ended without letting go of this cluster; taking over from it",
            owner.command,
            owner.pid,
            owner.host,
            owner.start.strftime("%Y-%m-%d %H:%M:%SZ"),
        ))
    }

    pub(super) fn take(path: &Path, command: &str) -> Result<Self> {
        let open =
            fs_err::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = open.map_err(|error| errors::io(path, error))?;
        let mut text = String::new();
        // A text that does not read is no reason to stop: it only says who.
        let _unreadable = (&file).take(input::KEYS).read_to_string(&mut text);
        let owner: Option<Owner> = serde_json::from_str(&text).ok();
        match file.file().try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(held(owner.as_ref())),
            Err(std::fs::TryLockError::Error(error)) => return Err(errors::io(path, error)),
        }
        let mut lock = Self { file, previous: owner };
        lock.sign(command).map_err(|error| errors::io(path, error))?;
        Ok(lock)
    }

    fn sign(&mut self, command: &str) -> std::io::Result<()> {
        let owner = Owner {
            pid: std::process::id(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            start: Timestamp::now(),
            command: command.to_owned(),
        };
        let text = serde_json::to_vec(&owner)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&text)
    }
}

impl Drop for ClusterLock {
    fn drop(&mut self) {
        // An empty file says that the owner left in order. Unlocked in so many words: a child
        // between fork and exec still has a copy of the descriptor, and with it the lock.
        let _left = self.file.set_len(0);
        let _unlocked = self.file.file().unlock();
    }
}

/// The owner of the lock at this path, as its text names it: one who has it now, or one who died
/// with it. Takes nothing.
pub(super) fn look(path: &Path) -> Result<Option<Holder>> {
    let text = match input::read(path, input::KEYS) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(errors::io(path, error)),
    };
    let Ok(owner) = serde_json::from_slice::<Owner>(&text) else { return Ok(None) };
    let inode = fs_err::metadata(path).map_err(|error| errors::io(path, error))?.ino();
    Ok(Some(Holder { alive: is_held_by(owner.pid, inode) || is_listed(owner.pid, inode), owner }))
}

/// Whether an open file of this process has a lock on this inode. Each file's locks are told in one
/// piece, so the answer is right however many locks come and go meanwhile.
fn is_held_by(process: u32, inode: u64) -> bool {
    let Ok(files) = fs_err::read_dir(format!("/proc/{process}/fdinfo")) else { return false };
    files.flatten().any(|file| {
        let facts = fs_err::read_to_string(file.path()).unwrap_or_default();
        facts.lines().filter_map(|line| line.strip_prefix("lock:")).any(|lock| is_lock_on(lock, inode))
    })
}

/// Whether the kernel's list has a lock on this inode: for an owner whose number means another
/// process here, as that of a container does. The list is told in pieces and may leave out a lock
/// when another one goes meanwhile. To try the lock would be surer, and would get in the way of a
/// process that takes it at that moment.
fn is_listed(process: u32, inode: u64) -> bool {
    // Where the kernel has no such list, a process of this number has to do. An empty list is one.
    fs_err::read_to_string("/proc/locks").map_or_else(
        |_| Path::new("/proc").join(process.to_string()).exists(),
        |locks| locks.lines().any(|lock| is_lock_on(lock, inode)),
    )
}

/// Whether this line of the kernel, `1: FLOCK  ADVISORY  WRITE PID MAJOR:MINOR:INODE 0 EOF`, is of
/// a lock on this inode.
fn is_lock_on(line: &str, inode: u64) -> bool {
    let end = format!(":{inode}");
    let mut words = line.split_whitespace().skip(1);
    words.next() == Some("FLOCK") && words.any(|word| word.ends_with(&end))
}

fn held(owner: Option<&Owner>) -> Error {
    let Some(owner) = owner else {
        return Error::new(Class::Locked, "another turnup works on this cluster").hint("wait until it has ended");
    };
    let minutes = owner.start.until(Timestamp::now()).map_or(0, |span| span.get_seconds() / 60 + span.get_minutes());
    let message = format!(
        "`{}` (process {} on {}) has worked on this cluster for {minutes} min, since {}",
        owner.command,
        owner.pid,
        owner.host,
        owner.start.strftime("%Y-%m-%d %H:%M:%SZ"),
    );
    Error::new(Class::Locked, message).hint(format!("wait until it has ended, or stop it: kill -INT {}", owner.pid))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn an_owner_is_seen_however_many_other_locks_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let other = |at: usize| {
            let file = fs_err::File::create(dir.path().join(at.to_string())).unwrap();
            file.file().try_lock().unwrap();
            file
        };
        let path = dir.path().join("lock");
        // Between others: the kernel lists the latest first.
        let older: Vec<fs_err::File> = (0..100).map(other).collect();
        let lock = ClusterLock::take(&path, "up").unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let younger: Vec<fs_err::File> = (100..200).map(other).collect();
                    drop(younger);
                }
            });
            let unseen = (0..1_000).filter(|_| !look(&path).unwrap().unwrap().alive).count();
            ended.store(true, Ordering::Relaxed);
            assert_eq!(unseen, 0, "of 1,000");
        });
        drop((older, lock));
        assert!(look(&path).unwrap().is_none(), "an owner that left in order");
    }
}
