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

/// Copies these artifacts, and turnup itself, into a mirror; what is already there and good is
/// kept.
pub fn export_mirror(
    cache: &Cache,
    items: &[(&Artifact, Blob)],
    own: &Path,
    dir: &Path,
    watch: &dyn Watch,
) -> Result<()> {
    let blobs = dir.join("sha256");
    fs_err::create_dir_all(&blobs)?;
    let mut index = Index { schema: "turnup.mirror/1", files: Vec::new() };
    for (artifact, blob) in items {
        watch.check()?;
        let path = blobs.join(blob.digest.to_string());
        if !path.is_file() || Digest::of_file(&path)? != blob.digest {
            watch.progress(&format!("writing {artifact}"));
            write(&path, |file| cache.copy_to(&blob.digest, file).map(drop))?;
        }
        index.files.push(Entry {
            artifact: artifact.id(),
            version: artifact.version.clone(),
            platform: artifact.platform.to_string(),
            sha256: blob.digest,
            size: fs_err::metadata(&path)?.len(),
        });
    }
    index.files.push(export_own(own, &blobs)?);
    let text = serde_json::to_vec_pretty(&index).context("the mirror's index cannot be written as JSON")?;
    write(&dir.join("index.json"), |file| Ok(file.write_all(&text)?))
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
