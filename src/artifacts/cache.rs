//! The bytes under their digest: `blobs/sha256/<hex>`.
//!
//! A blob is whole or not there: it is written elsewhere on the same file system, synced and
//! renamed. A blob whose bytes have been checked gets a stamp (size, times, inode); while the file
//! still looks like its stamp it is not read again. Before bytes leave this machine they are read
//! whatever the stamp says. This file does not know where bytes come from.

use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::{Digest, Hasher};
use super::keylock::KeyLock;
use super::progress::Watch;
use crate::atomic_file::{AtomicFile, FileMode, sync_directory};
use crate::{Context, Error, Result};

/// The cache of one user, shared by all clusters and all concurrent runs.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// What a check of one blob's bytes found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheHealth {
    /// The bytes have the digest.
    Good,
    /// They have not; the file is in quarantine now.
    Corrupt,
    /// There is no such blob.
    Absent,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    size: u64,
    inode: u64,
    mtime_ns: i128,
    ctime_ns: i128,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs_err::metadata(path)?;
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Ok(Self {
            size: metadata.size(),
            inode: metadata.ino(),
            mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Cache {
    /// The cache of this user: `$TURNUP_CACHE`, else `$XDG_CACHE_HOME/turnup`, else
    /// `~/.cache/turnup`.
    pub fn open() -> Result<Self> {
        Self::locate()?.make()
    }

    /// The cache in this directory, or that of this user.
    pub fn open_in(dir: Option<&Path>) -> Result<Self> {
        Self::locate_in(dir)?.make()
    }

    /// The same for asking where things are or would be: makes nothing.
    pub fn locate_in(dir: Option<&Path>) -> Result<Self> {
        dir.map_or_else(Self::locate, Self::rooted)
    }

    /// The same for asking where things are or would be: makes nothing.
    pub fn locate() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = variable("TURNUP_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|dir| dir.join("turnup")))
            .or_else(|| variable("HOME").map(|dir| dir.join(".cache/turnup")))
            .ok_or_else(|| {
                Error::precondition(
                    "there is no place for the cache: none of TURNUP_CACHE, XDG_CACHE_HOME and HOME is set",
                )
                .hint("set TURNUP_CACHE to a directory with 3 GB of space")
            })?;
        Self::rooted(&root)
    }

    /// A cache in this directory, which is made when it is not there.
    pub fn at(root: &Path) -> Result<Self> {
        Self::rooted(root)?.make()
    }

    fn rooted(root: &Path) -> Result<Self> {
        let root = std::path::absolute(root).context(format!("`{}` is not a path", root.display()))?;
        Ok(Self { root })
    }

    fn make(self) -> Result<Self> {
        for dir in ["blobs/sha256", "stamps", "quarantine", "logs"] {
            fs_err::create_dir_all(self.root.join(dir)).map_err(|error| {
                Error::precondition(format!("cannot make the cache in {}", self.root.display()))
                    .source(error)
                    .hint("set TURNUP_CACHE to a directory that can be written")
            })?;
        }
        Ok(self)
    }

    /// The directory of the cache.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a blob with this digest is or would be.
    #[must_use]
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.to_string())
    }

    /// The directory of all blobs, each named by its sha256.
    #[must_use]
    pub fn blobs_dir(&self) -> PathBuf {
        self.root.join("blobs/sha256")
    }

    fn stamp_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("stamps").join(digest.to_string())
    }

    /// The blob's path when it is there and good. A corrupt one is moved to quarantine and counts
    /// as absent; its new place is handed to `on_corrupt`.
    pub fn find(&self, digest: &Digest, on_corrupt: &mut dyn FnMut(&Path)) -> Result<Option<PathBuf>> {
        let path = self.blob_path(digest);
        let stamp = match Stamp::of(&path) {
            Ok(stamp) => stamp,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // An unreadable or torn stamp only costs one more look at the bytes.
        let known = fs_err::read(self.stamp_path(digest)).ok();
        if known.and_then(|bytes| serde_json::from_slice::<Stamp>(&bytes).ok()).as_ref() == Some(&stamp) {
            return Ok(Some(path));
        }
        match self.check(digest)? {
            (CacheHealth::Good, _) => Ok(Some(path)),
            (CacheHealth::Absent, _) => Ok(None),
            (CacheHealth::Corrupt, quarantined) => {
                on_corrupt(&quarantined);
                Ok(None)
            }
        }
    }

    /// Reads the blob's bytes, whatever its stamp says. A corrupt one is moved to quarantine; the
    /// path says where.
    pub fn check(&self, digest: &Digest) -> Result<(CacheHealth, PathBuf)> {
        let path = self.blob_path(digest);
        // Taken before the bytes are read: a change in between must not get a stamp.
        let stamp = match Stamp::of(&path) {
            Ok(stamp) => stamp,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((CacheHealth::Absent, path)),
            Err(error) => return Err(error.into()),
        };
        if Digest::of_file(&path)? == *digest {
            self.write_stamp(digest, &stamp)?;
            return Ok((CacheHealth::Good, path));
        }
        Ok((CacheHealth::Corrupt, self.quarantine(digest)?))
    }

    fn quarantine(&self, digest: &Digest) -> Result<PathBuf> {
        let place = self.root.join("quarantine").join(format!("{digest}.{}", jiff::Timestamp::now().as_nanosecond()));
        fs_err::rename(self.blob_path(digest), &place)?;
        Ok(place)
    }

    /// Writes a blob's bytes and checks them on the way: when this succeeds, what was written is
    /// what the digest says.
    pub fn copy_to(&self, digest: &Digest, to: &mut dyn Write) -> Result<u64> {
        let mut from = fs_err::File::open(self.blob_path(digest))?;
        let mut hasher = Hasher::new(to);
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            hasher.write_all(&buffer[..count])?;
        }
        let count = hasher.count();
        if hasher.finish().1 == *digest {
            return Ok(count);
        }
        let place = self.quarantine(digest)?;
        Err(Error::permanent(format!("the cached file {digest} has been altered and was refused"))
            .evidence(format!("it is kept in {}", place.display()))
            .hint("run the same command again: the file is fetched again"))
    }

    /// Every blob that is here.
    pub fn digests(&self) -> Result<Vec<Digest>> {
        let mut digests = Vec::new();
        for entry in fs_err::read_dir(self.root.join("blobs/sha256"))? {
            if let Ok(digest) = entry?.file_name().to_string_lossy().parse() {
                digests.push(digest);
            }
        }
        digests.sort();
        Ok(digests)
    }

    /// Copies a file that the lock file does not know into the cache, under the digest of its
    /// bytes.
    pub fn take_in(&self, file: &Path, watch: &dyn Watch) -> Result<(Digest, u64)> {
        let digest = Digest::of_file(file)?;
        let size = fs_err::metadata(file)?.len();
        if self.find(&digest, &mut |_| ())?.is_some() {
            return Ok((digest, size));
        }
        let shown = file.display().to_string();
        let lock = KeyLock::acquire(&self.root, &digest.to_string(), &shown, watch)?;
        let copy = lock.work().join("file");
        let mut hasher = Hasher::new(fs_err::File::create(&copy)?);
        io::copy(&mut fs_err::File::open(file)?, &mut hasher)?;
        if hasher.finish().1 != digest {
            return Err(Error::transient(format!("{shown} changed while it was read")));
        }
        self.adopt(&copy, &digest, 0o444)?;
        Ok((digest, size))
    }

    /// Makes a finished file of the work directory a blob. Its bytes must have been hashed by the
    /// caller.
    pub(super) fn adopt(&self, file: &Path, digest: &Digest, mode: u32) -> Result<PathBuf> {
        let path = self.blob_path(digest);
        fs_err::set_permissions(file, std::fs::Permissions::from_mode(mode))?;
        fs_err::File::open(file)?.sync_all()?;
        fs_err::rename(file, &path)?;
        sync_directory(&self.root.join("blobs/sha256"))?;
        self.write_stamp(digest, &Stamp::of(&path)?)?;
        Ok(path)
    }

    fn write_stamp(&self, digest: &Digest, stamp: &Stamp) -> Result<()> {
        let text = serde_json::to_vec(stamp).context("a stamp cannot be written as JSON")?;
        let path = self.stamp_path(digest);
        let write = || -> io::Result<()> {
            let mut file = AtomicFile::create(&path, FileMode::Exact(0o600))?;
            file.write_all(&text)?;
            file.commit_unsynced()
        };
        write().context(format!("cannot write {}", path.display()))
    }
}
