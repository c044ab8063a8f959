//! Files that appear whole or not at all: written beside their place, synced, renamed. It knows
//! nothing of what is in a file, and does not judge who may write where.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What begins the name of a file that is being written; the id of the process that writes it
/// follows. The dot hides it from kubelet, which reads every other file of its manifest directory.
pub(crate) const PREFIX: &str = ".part-";

/// The mode of the new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileMode {
    /// This one, whatever the umask.
    Exact(u32),
    /// That of the file it replaces; where there is none, what the umask leaves of 0644.
    Kept,
}

/// A file on its way to its place. Dropped before it is committed, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    temporary: tempfile::NamedTempFile,
    path: PathBuf,
}

impl AtomicFile {
    /// An empty file beside `path`. It has its mode before its first byte.
    pub(crate) fn create(path: &Path, mode: FileMode) -> io::Result<Self> {
        let replaced = fs_err::metadata(path).ok().map(|metadata| metadata.permissions());
        let (first, exact) = match mode {
            FileMode::Exact(mode) => (0o600, Some(Permissions::from_mode(mode))),
            FileMode::Kept => (0o644, replaced),
        };
        let temporary = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .permissions(Permissions::from_mode(first))
            .tempfile_in(directory_of(path))?;
        if let Some(exact) = exact {
            temporary.as_file().set_permissions(exact)?;
        }
        Ok(Self { temporary, path: path.to_owned() })
    }

    /// Where the bytes are until they are committed.
    pub(crate) fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the file its name. When this returns, a crash of the machine takes neither the bytes
    /// nor the name away.
    pub(crate) fn commit(self) -> io::Result<()> {
        self.temporary.as_file().sync_all()?;
        let directory = directory_of(&self.path).to_owned();
        self.commit_unsynced()?;
        sync_directory(&directory)
    }

    /// The same for what can be made again and is verified before it is used.
    pub(crate) fn commit_unsynced(self) -> io::Result<()> {
        self.temporary.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.flush()
    }
}

/// Replaces a file: a reader sees all of the old or all of the new content, also after a crash.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    let mut file = AtomicFile::create(path, mode)?;
    file.write_all(bytes)?;
    file.commit()
}

/// Makes the names of new and renamed files in a directory survive a crash.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    fs_err::File::open(directory)?.sync_all()
}

/// The directory in which a file has its name: `.` for a bare name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs_err::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_has_its_mode_whatever_it_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&path, b"new", FileMode::Exact(0o666)).unwrap();
        assert_eq!((mode_of(&path), fs_err::read(&path).unwrap()), (0o666, b"new".to_vec()));
        replace(&path, b"newer", FileMode::Kept).unwrap();
        assert_eq!((mode_of(&path), fs_err::read(&path).unwrap()), (0o666, b"newer".to_vec()));
        replace(&path, b"", FileMode::Exact(0o400)).unwrap();
        assert_eq!((mode_of(&path), names(dir.path())), (0o400, vec!["file".to_owned()]));
    }

    #[test]
    fn until_it_is_committed_the_old_file_stands() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs_err::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path, FileMode::Kept).unwrap();
        file.write_all(b"half").unwrap();
        let name = file.temporary().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(&format!("{PREFIX}{}-", std::process::id())), "{name}");
        assert_eq!(fs_err::read(&path).unwrap(), b"old");
        drop(file);
        assert_eq!(names(dir.path()), ["file"]);
        assert!(replace(&dir.path().join("no/such/dir"), b"", FileMode::Kept).is_err());
    }
}
