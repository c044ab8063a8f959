//! The file of one backup: a tar archive with the manifest first and the snapshot behind it, so
//! that it can be read with nothing but tar and etcdutl. It appears whole or not at all.

use std::io::{self, Read, Write};
use std::path::Path;

use crate::atomic_file::{AtomicFile, FileMode};
use crate::document;
use crate::error::{Context as _, Error, Result};
use crate::failpoint;

use super::super::task;
use super::manifest::BackupManifest;

/// The name of the manifest in an archive.
const MANIFEST: &str = "manifest.json";
/// The name of the snapshot there.
pub(super) const SNAPSHOT: &str = "snapshot.db";
/// No manifest is larger.
const LONGEST_MANIFEST: u64 = 64 << 10;

/// The sha256 of what is read, and how many bytes it has.
pub(super) fn digest(source: impl Read) -> io::Result<(String, u64)> {
    task::copy_hashed(source, &mut io::sink())
}

/// Writes an archive of this snapshot, with mode 0600, synced.
pub(super) fn write(to: &Path, manifest: &BackupManifest, snapshot: &Path) -> Result<()> {
    let text = document::render(MANIFEST, manifest)?;
    failpoint::around(format_args!("backup {}", to.display()), || {
        let mut file = AtomicFile::create(to, FileMode::Exact(0o600))?;
        pack(&mut file, text.as_bytes(), snapshot)?;
        file.commit()
    })
    .map_err(|error| write_error(to, error))
}

fn pack(file: &mut AtomicFile, manifest: &[u8], snapshot: &Path) -> io::Result<()> {
    let snapshot = fs_err::File::open(snapshot)?;
    let size = snapshot.metadata()?.len();
    let mut tar = tar::Builder::new(file);
    append(&mut tar, MANIFEST, manifest.len() as u64, manifest)?;
    append(&mut tar, SNAPSHOT, size, snapshot)?;
    tar.into_inner()?.flush()
}

fn append(tar: &mut tar::Builder<&mut AtomicFile>, name: &str, size: u64, source: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, name, source)
}

/// A full disk is what stops backups most often.
pub(super) fn write_error(path: &Path, error: io::Error) -> Error {
    if [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind()) {
        return disk_full(path);
    }
    Error::precondition(format!("cannot write {}", path.display())).source(error)
}

/// No room for one more; those that are there stay.
pub(super) fn disk_full(path: &Path) -> Error {
    Error::precondition(format!("no space left on the disk of {}", path.display()))
        .evidence("no backup was taken; those that are there stay as they are")
        .hint(
            "make room there, lower phase2.backup.keep_recent, or set another phase2.backup.directory; then: turnup up",
        )
}

/// The manifest of an archive; an error says that the file is none, or damaged.
pub(crate) fn read_manifest(path: &Path) -> Result<BackupManifest> {
    let mut archive = tar::Archive::new(fs_err::File::open(path)?);
    let mut entries = archive.entries()?;
    manifest_of(path, entries.next())
}

type Entry<'a> = Option<io::Result<tar::Entry<'a, fs_err::File>>>;

fn manifest_of(path: &Path, entry: Entry<'_>) -> Result<BackupManifest> {
    let entry = entry.transpose().ok().flatten().filter(|entry| &*entry.path_bytes() == MANIFEST.as_bytes());
    let Some(entry) = entry else { return Err(damaged(path, "it does not begin with a manifest")) };
    let mut text = String::new();
    entry.take(LONGEST_MANIFEST).read_to_string(&mut text).map_err(|error| damaged(path, &error.to_string()))?;
    document::parse(&format!("{MANIFEST} of {}", path.display()), &text)
}

/// Reads an archive to its end and writes its snapshot to `out`; an error where it is not the one
/// that the manifest names.
pub(crate) fn extract(path: &Path, out: &mut dyn Write) -> Result<BackupManifest> {
    let mut archive = tar::Archive::new(fs_err::File::open(path)?);
    let mut entries = archive.entries()?;
    let manifest = manifest_of(path, entries.next())?;
    let entry = entries.next().transpose().map_err(|error| damaged(path, &error.to_string()))?;
    let Some(entry) = entry.filter(|entry| &*entry.path_bytes() == SNAPSHOT.as_bytes()) else {
        return Err(damaged(path, "it has no snapshot behind its manifest"));
    };
    let mut tee = Tee { source: entry, out, failed: None };
    let read = digest(&mut tee);
    if let Some(error) = tee.failed {
        return Err(Error::precondition(format!("cannot write what is in {}", path.display())).source(error));
    }
    let (sha256, size) = read.map_err(|error| damaged(path, &error.to_string()))?;
    if (&sha256, size) != (&manifest.sha256, manifest.size) {
        let expected = format!("the manifest says {} bytes, sha256 {}", manifest.size, manifest.sha256);
        return Err(damaged(path, &format!("its snapshot has {size} bytes, sha256 {sha256}")).evidence(expected));
    }
    Ok(manifest)
}

fn damaged(path: &Path, why: &str) -> Error {
    Error::precondition(format!("{} is no whole backup", path.display()))
        .evidence(why)
        .hint("use another one: turnup backup list")
}

/// Hands on what is read through it.
struct Tee<'a, R> {
    source: R,
    out: &'a mut dyn Write,
    /// Why it could not: no fault of the source.
    failed: Option<io::Error>,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        if let Err(error) = self.out.write_all(&buffer[..count]) {
            self.failed = Some(error);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(count)
    }
}

/// A part of a file, for those who fetch it piece by piece; empty at its end.
pub(super) fn read_part(path: &Path, offset: u64, most: u64) -> Result<Vec<u8>> {
    use std::io::Seek as _;
    let mut file = fs_err::File::open(path)?;
    file.seek(io::SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).context(format!("cannot read {}", path.display()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use std::os::unix::fs::PermissionsExt as _;

    use super::super::manifest::sample;
    use super::*;

    fn archive(dir: &Path, bytes: &[u8]) -> std::path::PathBuf {
        let (snapshot, path) = (dir.join("s"), dir.join("a.tar"));
        fs_err::write(&snapshot, bytes).unwrap();
        let (sha256, size) = digest(bytes).unwrap();
        write(&path, &BackupManifest { sha256, size, ..sample() }, &snapshot).unwrap();
        path
    }

    #[test]
    fn what_was_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = archive(dir.path(), b"all that etcd has");
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let mut out = Vec::new();
        let manifest = extract(&path, &mut out).unwrap();
        assert_eq!((out, &manifest), (b"all that etcd has".to_vec(), &read_manifest(&path).unwrap()));
        assert_eq!(read_part(&path, 0, 13).unwrap(), b"manifest.json");
        assert!(read_part(&path, 1 << 30, 13).unwrap().is_empty());
    }

    #[test]
    fn no_byte_may_be_another_and_none_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = archive(dir.path(), &[7; 5000]);
        let whole = fs_err::read(&path).unwrap();
        // Behind the two headers and the manifest, which has one block of its own or several.
        let start = whole.windows(8).position(|bytes| bytes == [7; 8]).unwrap();
        for at in [start, start + 2500, start + 4999] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs_err::write(&path, &bytes).unwrap();
            let error = extract(&path, &mut io::sink()).unwrap_err().render();
            assert!(error.contains("is no whole backup"), "{error}");
        }
        for end in [0, 100, 600, start, start + 4999] {
            fs_err::write(&path, &whole[..end]).unwrap();
            assert!(extract(&path, &mut io::sink()).is_err(), "{end} bytes");
        }
        fs_err::write(&path, b"a file of another program").unwrap();
        assert!(read_manifest(&path).is_err());
    }

    #[test]
    fn a_full_disk_says_so_and_what_stays() {
        insta::assert_snapshot!(write_error(Path::new("/backup/a.tar"), io::ErrorKind::StorageFull.into()).render());
    }
}
