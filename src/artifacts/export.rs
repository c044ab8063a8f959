//! Writes a mirror: a directory that any web server can serve and that can be carried to where there is no network.
//!
//! `sha256/<hex>` are the files; `index.json` says to people what they are. Readers need only the files.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::cache::{Cache, sync_dir};
use super::digest::Digest;
use super::fetch::Blob;
use super::progress::Watch;
use super::selection::{Artifact, Platform};
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

/// Copies these artifacts, and turnup itself, into a mirror; what is already there and good is kept.
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
            let mut file = new_file(&blobs)?;
            cache.copy_to(&blob.digest, &mut file)?;
            persist(file, &path)?;
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
    let mut file = new_file(dir)?;
    let text = serde_json::to_vec_pretty(&index).context("the mirror's index cannot be written as JSON")?;
    file.write_all(&text)?;
    persist(file, &dir.join("index.json"))?;
    sync_dir(&blobs)?;
    sync_dir(dir)
}

/// turnup's own binary: hosts that make themselves nodes begin with it.
fn export_own(own: &Path, blobs: &Path) -> Result<Entry> {
    let sha256 = Digest::of_file(own)?;
    let path = blobs.join(sha256.to_string());
    if !path.is_file() || Digest::of_file(&path)? != sha256 {
        let mut file = new_file(blobs)?;
        std::io::copy(&mut fs_err::File::open(own)?, &mut file)?;
        persist(file, &path)?;
    }
    Ok(Entry {
        artifact: "turnup".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        platform: Platform::host().to_string(),
        sha256,
        size: fs_err::metadata(&path)?.len(),
    })
}

fn new_file(dir: &Path) -> Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // A web server that runs as another user must be able to read it.
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644)).prefix(".part-");
    builder.tempfile_in(dir).context(format!("cannot write in {}", dir.display()))
}

fn persist(file: tempfile::NamedTempFile, path: &Path) -> Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).context(format!("cannot write {}", path.display()))?;
    Ok(())
}
