//! Digests of files, remembered as long as a file is the same by what the kernel says of it. Who
//! compares a host every minute reads its hundreds of megabytes once.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::Result;

use super::task;

/// What was read, by path. A new one remembers nothing.
#[derive(Debug, Default)]
pub(crate) struct Digests(Mutex<BTreeMap<PathBuf, (Stamp, String)>>);

/// The file system, the file, its size, and the times of the last change of bytes and of anything:
/// a program cannot set the last one.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

impl Digests {
    /// The sha256 of a file.
    pub(super) fn of(&self, path: &Path) -> Result<String> {
        // Before the file is read: a change meanwhile makes it another one at the next look.
        let stamp = stamp(path)?;
        if let Some((known, digest)) = self.lock().get(path)
            && *known == stamp
        {
            return Ok(digest.clone());
        }
        let digest = task::digest_of(path)?;
        self.lock().insert(path.to_owned(), (stamp, digest.clone()));
        Ok(digest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, (Stamp, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(path: &Path) -> Result<Stamp> {
    let data = fs_err::metadata(path)?;
    let (modified, changed) = ((data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec()));
    Ok((data.dev(), data.ino(), data.size(), modified, changed))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn a_file_is_read_again_when_it_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubelet");
        fs_err::write(&path, "one").unwrap();
        let digests = Digests::default();
        let first = digests.of(&path).unwrap();
        assert_eq!(first, task::digest_of(&path).unwrap());
        // What is remembered is used: nothing but the memory can say this.
        digests.lock().get_mut(&path).unwrap().1 = "remembered".into();
        assert_eq!(digests.of(&path).unwrap(), "remembered");
        // The same size in the same place, and another inode.
        fs_err::write(dir.path().join("next"), "two").unwrap();
        fs_err::rename(dir.path().join("next"), &path).unwrap();
        assert_eq!(digests.of(&path).unwrap(), task::digest_of(&path).unwrap());
        fs_err::remove_file(&path).unwrap();
        assert!(digests.of(&path).is_err());
    }
}
