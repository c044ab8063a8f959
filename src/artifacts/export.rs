//! Writes a mirror: a directory that any web server can serve and that can be carried to where
//! there is no network.
//!
//! `sha256/<hex>` are the files; `index.json` says to people what they are. Readers need only the
//! files.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::cache::Cache;
use super::digest::Digest;
use super::fetch::Blob;
use super::platform::Platform;
use super::progress::Watch;
use super::selection::Artifact;
use crate::atomic_file::{AtomicFile, FileMode};
use crate::{Context, Result};

#[derive(Serialize)]
struct Index {
    schema: &'static str,
    files: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    artifact: String,
    version: String,
    platform: String,
    sha256: Digest,
    size: u64,
}

/// A file of the cache that goes into a mirror, and what people call it.
pub struct Exported {
    /// `kubelet`, `image/etcd`, the name of an image.
    pub artifact: String,
    /// Its version; empty where it has none.
    pub version: String,
    /// For which machines.
    pub platform: String,
    /// What its bytes are.
    pub sha256: Digest,
}

impl Exported {
    /// An artifact of the lock file.
    #[must_use]
    pub fn of(artifact: &Artifact, blob: &Blob) -> Self {
        let (version, platform) = (artifact.version.clone(), artifact.platform.to_string());
        Self { artifact: artifact.id(), version, platform, sha256: blob.digest }
    }
}

/// Copies these artifacts, and turnup itself, into a mirror; what is already there and good is
/// kept.
pub fn export_mirror(cache: &Cache, items: &[Exported], own: &Path, dir: &Path, watch: &dyn Watch) -> Result<()> {
    let blobs = dir.join("sha256");
    fs_err::create_dir_all(&blobs)?;
    let mut index = Index { schema: "turnup.mirror/1", files: Vec::new() };
    for Exported { artifact, version, platform, sha256 } in items {
        watch.check()?;
        let path = blobs.join(sha256.to_string());
        if !path.is_file() || Digest::of_file(&path)? != *sha256 {
            watch.progress(&format!("writing {artifact} {version}"));
            write(&path, |file| cache.copy_to(sha256, file).map(drop))?;
        }
        index.files.push(Entry {
            artifact: artifact.clone(),
            version: version.clone(),
            platform: platform.clone(),
            sha256: *sha256,
            size: fs_err::metadata(&path)?.len(),
        });
    }
    index.files.push(export_own(own, &blobs)?);
    let text = serde_json::to_vec_pretty(&index).context("the mirror's index cannot be written as JSON")?;
    write(&dir.join("index.json"), |file| Ok(file.write_all(&text)?))
}

/// The same as a bundle: a directory, or one tar file where the name ends with `.tar`, which is
/// there once it is whole.
pub fn export_bundle(cache: &Cache, items: &[Exported], own: &Path, to: &Path, watch: &dyn Watch) -> Result<()> {
    if to.extension().is_none_or(|extension| extension != "tar") {
        return export_mirror(cache, items, own, to, watch);
    }
    let failed = || format!("cannot write {}", to.display());
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".turnup-bundle-").tempdir_in(parent).context(failed())?;
    export_mirror(cache, items, own, scratch.path(), watch)?;
    write(to, |file| {
        let mut archive = tar::Builder::new(file);
        archive.mode(tar::HeaderMode::Deterministic);
        let mut blobs: Vec<_> = fs_err::read_dir(scratch.path().join("sha256"))?.collect::<std::io::Result<_>>()?;
        blobs.sort_by_key(fs_err::DirEntry::file_name);
        archive.append_path_with_name(scratch.path().join("index.json"), "index.json")?;
        for blob in blobs {
            watch.check()?;
            archive.append_path_with_name(blob.path(), Path::new("sha256").join(blob.file_name()))?;
        }
        archive.finish()?;
        Ok(())
    })
}

/// turnup's own binary: hosts that make themselves nodes begin with it.
fn export_own(own: &Path, blobs: &Path) -> Result<Entry> {
    let sha256 = Digest::of_file(own)?;
    let path = blobs.join(sha256.to_string());
    if !path.is_file() || Digest::of_file(&path)? != sha256 {
        write(&path, |file| Ok(std::io::copy(&mut fs_err::File::open(own)?, file).map(drop)?))?;
    }
    Ok(Entry {
        artifact: "turnup".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        platform: Platform::host().to_string(),
        sha256,
        size: fs_err::metadata(&path)?.len(),
    })
}

/// A file that a web server can read, which may run as another user.
fn write(path: &Path, write_to: impl FnOnce(&mut AtomicFile) -> Result<()>) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = AtomicFile::create(path, FileMode::Exact(0o644)).context(failed())?;
    write_to(&mut file)?;
    file.commit().context(failed())
}
