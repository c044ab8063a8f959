//! Bytes as a file that has no name and no disk: for standard input, and for what a child reads by
//! its path and nothing may keep.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::Arc;

/// A file in memory. It is gone when the last clone is dropped, and with this process, however that
/// ends.
#[derive(Clone, Debug)]
pub struct MemoryFile(Arc<File>);

impl MemoryFile {
    /// A file with these bytes.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        // No child inherits it: several may be running, and only one is meant.
        let descriptor = rustix::fs::memfd_create("turnup", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = File::from(descriptor);
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(Self(Arc::new(file)))
    }

    /// Where a child of this process finds it: `/proc/PID/fd/N`. The kernel lets in who may also
    /// read the memory of this process, which is its own user and root.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// The open file, for standard input.
    pub(super) fn open(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::exec::Run;

    #[test]
    fn a_child_reads_it_by_its_path_and_no_other_inherits_it() {
        let file = MemoryFile::new(b"one\ntwo\n").unwrap();
        let path = file.path();
        let cat = || Run::new("cat").arg(&path).dir("/").output();
        assert_eq!(cat().unwrap().stdout, "one\ntwo\n");
        assert_eq!(cat().unwrap().stdout, "one\ntwo\n", "each reader begins at its beginning");
        let descriptors = Run::new("ls").args(["-l", "/proc/self/fd"]).dir("/").output().unwrap().stdout;
        assert!(!descriptors.contains("memfd:turnup"), "{descriptors}");
        drop(file);
        assert!(!path.exists());
    }
}
