//! The file of one backup: a tar archive with the manifest first and the snapshot behind it, so
//! that it can be read with nothing but tar and etcdutl. It appears whole or not at all.

use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::atomic_file::{AtomicFile, FileMode};
use crate::document;
use crate::error::{Context as _, Error, Result};
use crate::failpoint;

use super::super::task;
use super::encryption::Identities;
use super::manifest::{BackupManifest, EncryptedParts};
use super::signature::{self, SignedManifest};

/// The name of the manifest in an archive.
const MANIFEST: &str = "manifest.json";
/// The name of the snapshot there.
pub(super) const SNAPSHOT: &str = "snapshot.db";
/// Its name where it is encrypted.
const ENCRYPTED_SNAPSHOT: &str = "snapshot.db.age";
/// What the operator's machine has of the cluster.
const DIRECTORY: &str = "directory.tar.age";
/// The signature of the manifest, in base64.
const SIGNATURE: &str = "manifest.sig";
/// No signature is longer.
const LONGEST_SIGNATURE: u64 = 1 << 10;
/// Nothing that the operator's machine has of a cluster is longer.
pub(crate) const LONGEST_DIRECTORY: u64 = 8 << 20;
/// No manifest is larger.
const LONGEST_MANIFEST: u64 = 64 << 10;

/// The sha256 of what is read, and how many bytes it has.
pub(super) fn digest(source: impl Read) -> io::Result<(String, u64)> {
    task::copy_hashed(source, &mut io::sink())
}

/// What comes into an archive.
pub(crate) struct ArchiveContent<'a> {
    /// What it says of itself.
    pub manifest: &'a BackupManifest,
    /// The snapshot, encrypted where the manifest says so.
    pub snapshot: &'a Path,
    /// What the operator's machine has of the cluster, encrypted.
    pub directory: Option<&'a [u8]>,
    /// The key that signs, in PEM.
    pub key: Option<&'a str>,
}

/// Writes an archive, with mode 0600, synced.
pub(crate) fn write(to: &Path, content: &ArchiveContent<'_>) -> Result<()> {
    let text = document::render(MANIFEST, content.manifest)?;
    let signature = content.key.map(|key| signature::sign(key, &text)).transpose()?;
    failpoint::around(format_args!("backup {}", to.display()), || {
        let mut file = AtomicFile::create(to, FileMode::Exact(0o600))?;
        pack(&mut file, &text, content, signature.as_deref())?;
        file.commit()
    })
    .map_err(|error| write_error(to, error))
}

/// The signature comes last: what reads the manifest and the snapshot alone finds them where they
/// always were.
fn pack(file: &mut AtomicFile, text: &str, content: &ArchiveContent<'_>, signature: Option<&str>) -> io::Result<()> {
    let snapshot = fs_err::File::open(content.snapshot)?;
    let size = snapshot.metadata()?.len();
    let mut tar = tar::Builder::new(file);
    append(&mut tar, MANIFEST, text.len() as u64, text.as_bytes())?;
    append(&mut tar, snapshot_name(content.manifest), size, snapshot)?;
    if let Some(directory) = content.directory {
        append(&mut tar, DIRECTORY, directory.len() as u64, directory)?;
    }
    if let Some(signature) = signature {
        append(&mut tar, SIGNATURE, signature.len() as u64, signature.as_bytes())?;
    }
    tar.into_inner()?.flush()
}

const fn snapshot_name(manifest: &BackupManifest) -> &'static str {
    if manifest.encrypted.is_some() { ENCRYPTED_SNAPSHOT } else { SNAPSHOT }
}

/// Adds a file for its owner's eyes only.
pub(crate) fn append(tar: &mut tar::Builder<impl Write>, name: &str, size: u64, source: impl Read) -> io::Result<()> {
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
    manifest_of(path, entries.next()).map(|(manifest, _)| manifest)
}

type Entry<'a> = Option<io::Result<tar::Entry<'a, fs_err::File>>>;

fn manifest_of(path: &Path, entry: Entry<'_>) -> Result<(BackupManifest, String)> {
    let entry = entry.transpose().ok().flatten().filter(|entry| &*entry.path_bytes() == MANIFEST.as_bytes());
    let Some(entry) = entry else { return Err(damaged(path, "it does not begin with a manifest")) };
    let mut text = String::new();
    entry.take(LONGEST_MANIFEST).read_to_string(&mut text).map_err(|error| damaged(path, &error.to_string()))?;
    Ok((document::parse(&format!("{MANIFEST} of {}", path.display()), &text)?, text))
}

/// Reads an archive to its end; an error where a file in it is not the one that the manifest names.
/// Nothing is decrypted for that.
pub(crate) fn inspect(path: &Path) -> Result<SignedManifest> {
    read(path, &mut |_, entry| {
        io::copy(entry, &mut io::sink())?;
        Ok(())
    })
}

/// Hands each file of an archive besides the manifest to `on`, and compares what was read of it
/// with the manifest.
fn read(path: &Path, on: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>) -> Result<SignedManifest> {
    let mut archive = tar::Archive::new(fs_err::File::open(path)?);
    let mut entries = archive.entries()?;
    let (manifest, text) = manifest_of(path, entries.next())?;
    let mut expected = expected_parts(&manifest).into_iter();
    let mut signature = None;
    for entry in entries {
        let entry = entry.map_err(|error| damaged(path, &error.to_string()))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if name == SIGNATURE {
            let mut text = String::new();
            let read = entry.take(LONGEST_SIGNATURE).read_to_string(&mut text);
            read.map_err(|error| damaged(path, &error.to_string()))?;
            signature = Some(text);
            continue;
        }
        let Some((wanted, sha256, size)) = expected.next().filter(|(wanted, ..)| *wanted == name) else {
            return Err(damaged(path, &format!("{name} is not what the manifest names")));
        };
        require_part(path, entry, (wanted, &sha256, size), on)?;
    }
    match expected.next() {
        Some((missing, ..)) => Err(damaged(path, &format!("{missing} is missing"))),
        None => Ok(SignedManifest { manifest, text, signature }),
    }
}

/// Name, sha256 and size of the files behind a manifest.
fn expected_parts(manifest: &BackupManifest) -> Vec<(&'static str, String, u64)> {
    match &manifest.encrypted {
        None => vec![(SNAPSHOT, manifest.sha256.clone(), manifest.size)],
        Some(EncryptedParts { snapshot, directory, .. }) => {
            let directory = directory.iter().map(|part| (DIRECTORY, part));
            let all = std::iter::once((ENCRYPTED_SNAPSHOT, snapshot)).chain(directory);
            all.map(|(name, part)| (name, part.sha256.clone(), part.size)).collect()
        }
    }
}

fn require_part(
    path: &Path,
    entry: impl Read,
    (name, sha256, size): (&str, &str, u64),
    on: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<()> {
    let mut hashed = Hashed { source: entry, hash: Sha256::new(), size: 0 };
    let done = on(name, &mut hashed).and_then(|()| io::copy(&mut hashed, &mut io::sink()).map(drop));
    done.map_err(|error| match error.downcast::<NotWritten>() {
        Ok(NotWritten(error)) => {
            Error::precondition(format!("cannot write what is in {}", path.display())).source(error)
        }
        Err(error) => damaged(path, &error.to_string()),
    })?;
    let found = (hex::encode(hashed.hash.finalize()), hashed.size);
    if found == (sha256.to_owned(), size) {
        return Ok(());
    }
    let expected = format!("the manifest says {size} bytes, sha256 {sha256}");
    Err(damaged(path, &format!("{name} has {} bytes, sha256 {}", found.1, found.0)).evidence(expected))
}

/// Reads an archive to its end and writes its snapshot to `out`, decrypted; an error where it is
/// not the one that the manifest names.
pub(crate) fn extract(path: &Path, identities: Option<&Identities>, out: &mut dyn Write) -> Result<SignedManifest> {
    let Some(encrypted) = read_manifest(path)?.encrypted else {
        return read(path, &mut |_, entry| copy(entry, out));
    };
    // What is damaged is told from what is of another key by its digest.
    let signed = inspect(path)?;
    let manifest = &signed.manifest;
    let identities = identities.ok_or_else(|| needs_identity(path, &encrypted))?;
    let mut archive = tar::Archive::new(fs_err::File::open(path)?);
    let entry = find(path, &mut archive, ENCRYPTED_SNAPSHOT)?;
    let mut plain = identities.decrypt(&path.display().to_string(), &encrypted.recipients, entry)?;
    let part = (SNAPSHOT, manifest.sha256.as_str(), manifest.size);
    require_part(path, &mut plain, part, &mut |_, entry| copy(entry, out))?;
    Ok(signed)
}

/// What the operator's machine had of the cluster, decrypted.
pub(crate) fn read_directory(path: &Path, identities: &Identities) -> Result<Vec<u8>> {
    let manifest = inspect(path)?.manifest;
    let encrypted = manifest.encrypted.filter(|encrypted| encrypted.directory.is_some()).ok_or_else(|| {
        Error::precondition(format!("{} has no keys of the cluster in it", path.display()))
            .evidence("only encrypted backups have them: those with phase2.backup.recipients")
            .hint("put .turnup back from a copy of your own; then: turnup restore --file FILE")
    })?;
    let mut archive = tar::Archive::new(fs_err::File::open(path)?);
    let entry = find(path, &mut archive, DIRECTORY)?;
    let plain = identities.decrypt(&path.display().to_string(), &encrypted.recipients, entry)?;
    let mut bytes = Vec::new();
    plain.take(LONGEST_DIRECTORY).read_to_end(&mut bytes).map_err(|error| damaged(path, &error.to_string()))?;
    Ok(bytes)
}

fn find<'a>(
    path: &Path,
    archive: &'a mut tar::Archive<fs_err::File>,
    name: &str,
) -> Result<tar::Entry<'a, fs_err::File>> {
    let found = archive.entries()?.filter_map(io::Result::ok).find(|entry| &*entry.path_bytes() == name.as_bytes());
    found.ok_or_else(|| damaged(path, &format!("{name} is missing")))
}

/// What is encrypted and cannot be read without a key.
pub(crate) fn needs_identity(path: &Path, encrypted: &EncryptedParts) -> Error {
    let error = Error::usage(format!(
        "{} is encrypted: what is in it can be read with an identity of age alone",
        path.display()
    ));
    let keys =
        encrypted.recipients.iter().fold(error, |error, key| error.evidence(format!("it is encrypted for {key}")));
    keys.hint("the same with the file of one of these keys: --identity FILE")
}

fn damaged(path: &Path, why: &str) -> Error {
    Error::precondition(format!("{} is no whole backup", path.display()))
        .evidence(why)
        .hint("use another one: turnup backup list")
}

/// Counts and hashes what is read through it.
struct Hashed<R> {
    source: R,
    hash: Sha256,
    size: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.size += count as u64;
        Ok(count)
    }
}

/// Why something could not be written: no fault of what was read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotWritten(io::Error);

fn copy(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count]).map_err(|error| io::Error::other(NotWritten(error)))?;
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

    use super::super::encryption::encrypt;
    use super::super::encryption::tests::new_key;
    use super::super::manifest::{EncryptedPart, sample};
    use super::super::signature::TrustedSigner;
    use super::super::signature::tests::new_pair;
    use super::*;

    fn archive(dir: &Path, bytes: &[u8]) -> std::path::PathBuf {
        let (snapshot, path) = (dir.join("s"), dir.join("a.tar"));
        fs_err::write(&snapshot, bytes).unwrap();
        let (sha256, size) = digest(bytes).unwrap();
        let manifest = &BackupManifest { sha256, size, ..sample() };
        write(&path, &ArchiveContent { manifest, snapshot: &snapshot, directory: None, key: None }).unwrap();
        path
    }

    /// An encrypted and signed one, and what opens and trusts it.
    fn encrypted_archive(dir: &Path) -> (std::path::PathBuf, Identities, TrustedSigner) {
        let (recipient, identity) = new_key(dir, "key");
        let (key, public_key) = new_pair();
        let (sealed, path, recipients) = (dir.join("s.age"), dir.join("a.age.tar"), vec![recipient]);
        encrypt(&recipients, &b"all that etcd has"[..], fs_err::File::create(&sealed).unwrap()).unwrap();
        let mut directory = Vec::new();
        encrypt(&recipients, &b"a secret"[..], &mut directory).unwrap();
        let part = |bytes: &[u8]| {
            let (sha256, size) = digest(bytes).unwrap();
            EncryptedPart { sha256, size }
        };
        let (sha256, size) = digest(&b"all that etcd has"[..]).unwrap();
        let snapshot = part(&fs_err::read(&sealed).unwrap());
        let encrypted = Some(EncryptedParts { recipients, snapshot, directory: Some(part(&directory)) });
        let manifest = &BackupManifest { sha256, size, encrypted, ..sample() };
        let (directory, key) = (Some(directory.as_slice()), Some(key.as_str()));
        write(&path, &ArchiveContent { manifest, snapshot: &sealed, directory, key }).unwrap();
        let trust = TrustedSigner { public_key: Some(public_key), unsigned: false };
        (path, Identities::read(&identity).unwrap(), trust)
    }

    #[test]
    fn what_was_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = archive(dir.path(), b"all that etcd has");
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let mut out = Vec::new();
        let signed = extract(&path, None, &mut out).unwrap();
        assert_eq!((out, &signed.manifest), (b"all that etcd has".to_vec(), &read_manifest(&path).unwrap()));
        assert_eq!(signed.signature, None);
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
            let error = extract(&path, None, &mut io::sink()).unwrap_err().render();
            assert!(error.contains("is no whole backup"), "{error}");
        }
        for end in [0, 100, 600, start, start + 4999] {
            fs_err::write(&path, &whole[..end]).unwrap();
            assert!(extract(&path, None, &mut io::sink()).is_err(), "{end} bytes");
        }
        fs_err::write(&path, b"a file of another program").unwrap();
        assert!(read_manifest(&path).is_err());
    }

    #[test]
    fn an_encrypted_one_opens_with_its_key_alone_and_its_signature_holds() {
        let dir = tempfile::tempdir().unwrap();
        let (path, identities, trust) = encrypted_archive(dir.path());
        let mut out = Vec::new();
        let signed = extract(&path, Some(&identities), &mut out).unwrap();
        assert_eq!(
            (out.as_slice(), read_directory(&path, &identities).unwrap()),
            (&b"all that etcd has"[..], b"a secret".to_vec())
        );
        trust.require("a", &signed).unwrap();
        assert_eq!(inspect(&path).unwrap(), signed, "whether it is whole and whose it is needs no key");
        let refused = extract(&path, None, &mut io::sink()).unwrap_err().render();
        assert!(refused.contains("is encrypted") && refused.contains("--identity FILE"), "{refused}");
        let other = Identities::read(&new_key(dir.path(), "other").1).unwrap();
        let refused = extract(&path, Some(&other), &mut io::sink()).unwrap_err().render();
        assert!(refused.contains("not encrypted for a key in"), "{refused}");

        let whole = fs_err::read(&path).unwrap();
        for word in ["all that", "a secret"] {
            assert!(!whole.windows(word.len()).any(|bytes| bytes == word.as_bytes()), "{word} is to be read");
        }
        let starts = whole.windows(22).enumerate().filter(|(_, bytes)| bytes == b"age-encryption.org/v1\n");
        for (start, _) in starts.collect::<Vec<_>>() {
            let mut bytes = whole.clone();
            bytes[start + 40] ^= 1;
            fs_err::write(&path, &bytes).unwrap();
            assert!(inspect(&path).unwrap_err().render().contains("is no whole backup"));
        }
        // Who changes the manifest with the content does not get past the signature.
        let at = whole.windows(4).position(|bytes| bytes == b"4711").unwrap();
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(b"4712");
        fs_err::write(&path, &bytes).unwrap();
        let error = trust.require("a", &inspect(&path).unwrap()).unwrap_err().render();
        assert!(error.contains("a is not signed by this cluster"), "{error}");
    }

    #[test]
    fn a_target_that_takes_nothing_is_no_damage() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let error = extract(&archive(dir.path(), b"much"), None, &mut Full).unwrap_err().render();
        assert!(error.contains("cannot write what is in"), "{error}");
    }

    #[test]
    fn a_full_disk_says_so_and_what_stays() {
        insta::assert_snapshot!(write_error(Path::new("/backup/a.tar"), io::ErrorKind::StorageFull.into()).render());
    }
}
