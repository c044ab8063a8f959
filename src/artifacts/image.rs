//! Assembles an image from static binaries, without a registry and without any tool: the same
//! binaries give the same bytes.
//!
//! The result is a docker-archive (`manifest.json`, a configuration, one layer), which `ctr images
//! import` loads. Times are 0, owners are root, entries are sorted.
//!
//! The layer's name contains its digest, because containerd goes on with an import that was
//! interrupted by the name of the file alone (`onUntarBlob` in its
//! core/images/archive/importer.go): under a name that another image has as well it would go on
//! with that one's bytes, and fail at every attempt until it collects its garbage, a day later.
//!
//! kube-proxy is the one image that cannot live on its binary alone: it calls `nft`, with the
//! libraries and the loader that nft needs. Its image has links where a distribution has them
//! (`bin` to `usr/bin` and so on) and an empty `usr`, and its pod mounts the host's /usr there,
//! read-only, so that it uses the host's own nft. kube-proxy itself lies in the root, because the
//! mount hides whatever the image has below usr.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tar::{Builder, EntryType, Header};

use super::digest::Hasher;
use super::selection::{Artifact, ImageArtifact};
use crate::{Context, Error, Result};

const SEARCH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[derive(Serialize)]
struct Configuration<'a> {
    architecture: &'a str,
    os: &'a str,
    created: &'a str,
    config: Process<'a>,
    rootfs: ImageRootFs,
    history: [History<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Process<'a> {
    user: &'a str,
    env: [&'a str; 1],
    entrypoint: &'a [String],
    working_dir: &'a str,
}

#[derive(Serialize)]
struct ImageRootFs {
    #[serde(rename = "type")]
    kind: &'static str,
    diff_ids: [String; 1],
}

#[derive(Serialize)]
struct History<'a> {
    created: &'a str,
    created_by: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ImageManifest<'a> {
    config: String,
    repo_tags: [&'a str; 1],
    layers: [String; 1],
}

/// Writes the docker-archive of an image; `binaries` says where each of its binaries is.
pub fn image_tar(artifact: &Artifact, binaries: &BTreeMap<String, PathBuf>, out: &mut dyn Write) -> Result<()> {
    let image = artifact.image().ok_or_else(|| Error::bug(format!("{artifact} is not an image")))?;
    let entries = list_entries(image, binaries)?;
    // The layer is read twice rather than kept: its digest goes into the configuration, its size in
    // front of it.
    let mut hasher = Hasher::new(io::sink());
    write_layer(&entries, &mut hasher)?;
    let size = hasher.count();
    let digest = hasher.finish().1;
    let layer = format!("{digest}/layer.tar");

    let epoch = "1970-01-01T00:00:00Z";
    let configuration = to_json(&Configuration {
        architecture: &artifact.platform.arch,
        os: &artifact.platform.os,
        created: epoch,
        config: Process { user: &image.user, env: [SEARCH], entrypoint: &image.entrypoint, working_dir: "/" },
        rootfs: ImageRootFs { kind: "layers", diff_ids: [format!("sha256:{digest}")] },
        history: [History { created: epoch, created_by: "turnup" }],
    })?;
    let config = format!("{}.json", super::Digest::of(&configuration));
    let manifest = ImageManifest { config: config.clone(), repo_tags: [&image.reference], layers: [layer.clone()] };

    let mut archive = Builder::new(out);
    append(&mut archive, &layer, 0o644, size, |out| write_layer(&entries, out))?;
    append(&mut archive, &config, 0o644, configuration.len() as u64, |out| Ok(out.write_all(&configuration)?))?;
    let manifest = to_json(&[manifest])?;
    append(&mut archive, "manifest.json", 0o644, manifest.len() as u64, |out| Ok(out.write_all(&manifest)?))?;
    archive.finish()?;
    Ok(())
}

fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).context("an image's metadata cannot be written as JSON")
}

/// What lies at one path of the layer.
enum Entry<'a> {
    Directory,
    Link(&'a str),
    File(&'a Path),
}

fn list_entries<'a>(
    image: &'a ImageArtifact,
    binaries: &'a BTreeMap<String, PathBuf>,
) -> Result<BTreeMap<String, Entry<'a>>> {
    let mut entries = BTreeMap::new();
    for (path, name) in &image.files {
        let file = binaries.get(name).ok_or_else(|| Error::bug(format!("{}: no file for {name}", image.reference)))?;
        entries.insert(path.clone(), Entry::File(file));
    }
    entries.extend(image.links.iter().map(|(path, target)| (path.clone(), Entry::Link(target))));
    let parents: BTreeSet<String> = entries
        .keys()
        .flat_map(|path| Path::new(path).ancestors().skip(1))
        .map(|parent| parent.display().to_string())
        .filter(|parent| !parent.is_empty())
        .collect();
    let directories = parents.into_iter().chain(image.directories.iter().cloned());
    entries.extend(directories.map(|path| (path, Entry::Directory)));
    Ok(entries)
}

fn write_layer(entries: &BTreeMap<String, Entry<'_>>, out: &mut dyn Write) -> Result<()> {
    let mut layer = Builder::new(out);
    for (path, entry) in entries {
        match entry {
            Entry::Directory => {
                // The only directory that programs expect to be able to write to.
                let mode = if path == "tmp" { 0o1777 } else { 0o755 };
                let mut header = make_header(EntryType::Directory, mode, 0);
                layer.append_data(&mut header, format!("{path}/"), io::empty())?;
            }
            Entry::Link(target) => {
                let mut header = make_header(EntryType::Symlink, 0o777, 0);
                layer.append_link(&mut header, path, target)?;
            }
            Entry::File(file) => {
                let mut from = fs_err::File::open(*file)?;
                let mut header = make_header(EntryType::Regular, 0o755, from.metadata()?.len());
                layer.append_data(&mut header, path, &mut from)?;
            }
        }
    }
    Ok(layer.finish()?)
}

fn make_header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Appends an entry whose bytes are written rather than read.
fn append<W: Write>(
    archive: &mut Builder<W>,
    path: &str,
    mode: u32,
    size: u64,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    const BLOCK: u64 = 512;
    let mut header = make_header(EntryType::Regular, mode, size);
    header.set_path(path)?;
    header.set_cksum();
    let out = archive.get_mut();
    out.write_all(header.as_bytes())?;
    write(out)?;
    let padding = usize::try_from((BLOCK - size % BLOCK) % BLOCK).unwrap_or(0);
    Ok(out.write_all(&[0; 512][..padding])?)
}
