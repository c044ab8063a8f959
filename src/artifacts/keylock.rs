//! One lock a key, held by the operating system, so that two runs never make the same thing and a
//! dead owner needs no cleaning up.
//!
//! The owner of a key is also the only one that works in the directories of that key. What is found
//! there when the lock has been taken was left by a process that was killed, and is removed.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::progress::Watch;
use crate::{Error, Result};

const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A held lock and a fresh directory to work in; both are gone when it is dropped.
pub(super) struct KeyLock {
    /// Keeps the lock.
    _file: File,
    work: PathBuf,
}

impl KeyLock {
    /// Takes the lock of this key below the cache's root; waits, and says so, while another process
    /// has it.
    pub(super) fn acquire(root: &Path, key: &str, what: &str, watch: &dyn Watch) -> Result<Self> {
        let (locks, works) = (root.join("locks"), root.join("work"));
        fs_err::create_dir_all(&locks)?;
        fs_err::create_dir_all(&works)?;
        let path = locks.join(format!("{key}.lock"));
        let mut options = fs_err::OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(&path)?;
        let mut file = opened.into_file();
        wait_for(&mut file, &path, what, watch)?;
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{}", std::process::id())?;
        remove_leftovers(&works, key)?;
        // Another name each time: a compiler that outlived its killed parent must not write into
        // our directory.
        let work = works.join(format!("{key}+{}", std::process::id()));
        fs_err::create_dir(&work)?;
        Ok(Self { _file: file, work })
    }

    /// A directory that belongs to the owner of the lock.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next owner of the key.
        drop(fs_err::remove_dir_all(&self.work));
    }
}

fn wait_for(file: &mut File, path: &Path, what: &str, watch: &dyn Watch) -> Result<()> {
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                return Err(Error::permanent(format!("cannot lock {}", path.display()))
                    .source(error)
                    .hint("put the cache on a file system with locks: TURNUP_CACHE=<directory>"));
            }
        }
        if !said {
            let mut owner = String::new();
            file.rewind()?;
            file.read_to_string(&mut owner)?;
            watch.progress(&format!("waiting for process {owner}, which is getting {what}"));
            said = true;
        }
        watch.check()?;
        crate::exec::signals::sleep(POLL_INTERVAL)?;
    }
}

fn remove_leftovers(works: &Path, key: &str) -> Result<()> {
    let prefix = format!("{key}+");
    for entry in fs_err::read_dir(works)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs_err::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
