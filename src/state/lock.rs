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
    // Where the kernel has no such list, a process of this number has to do. An empty list is one.
    let alive = fs_err::read_to_string("/proc/locks")
        .map_or_else(|_| Path::new("/proc").join(owner.pid.to_string()).exists(), |locks| is_held(&locks, inode));
    Ok(Some(Holder { owner, alive }))
}

/// Whether the kernel's list of locks has one on this inode. To try the lock would be surer, and
/// would get in the way of a process that takes it at that moment.
fn is_held(locks: &str, inode: u64) -> bool {
    let end = format!(":{inode}");
    let of_file = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("FLOCK") && words.any(|word| word.ends_with(&end))
    };
    locks.lines().any(of_file)
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
