//! Records digests in the lock file: how a maintainer adds a version, and how a user pins what
//! upstream publishes.
//!
//! This is the one place that takes bytes without knowing their digest, and therefore never part of
//! turning up a cluster. Each pin says how its digest became known.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::cache::Cache;
use super::digest::{Digest, Hasher};
use super::digest_origin::DigestOrigin;
use super::download;
use super::gobuild::{Order, executable_name};
use super::image::image_tar;
use super::keylock::KeyLock;
use super::lock::{LARGEST, LOCK_FILE, Lock, Pin, Pins};
use super::platform::Platform;
use super::progress::Watch;
use super::selection::{Artifact, ArtifactKind, Variant, make_binary, make_image};
use super::size::Size;
use super::sources::Effort;
use crate::atomic_file::{self, FileMode};
use crate::exec::tools;
use crate::{Context, Error, Result};

/// The largest checksum file, in bytes: that of a Kubernetes release has some ten kilobytes.
const LARGEST_LIST: u64 = 1 << 20;

/// A digest that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedDigest {
    /// The artifact: `kubelet`, `image/kube-proxy`.
    pub artifact: String,
    /// Its version.
    pub version: String,
    /// The digest so far.
    pub old: Option<Digest>,
    /// The digest now.
    pub new: Digest,
}

/// Builds everything of a Kubernetes version and records what came out.
pub fn rewrite_lock(
    lock: &mut Lock,
    kubernetes: &str,
    platform: &Platform,
    cache: &Cache,
    watch: &dyn Watch,
) -> Result<Vec<RecordedDigest>> {
    let version = add_version(lock, kubernetes)?;
    let mut changes = Vec::new();
    for module in lock.sets[&version].clone() {
        let files = build_unpinned(lock, &module, platform, cache, watch)?;
        let recording = Recording { module: &module, platform, variant: Variant::Source, files: &files };
        recording.record(lock, &mut changes)?;
    }
    Ok(changes)
}

/// Downloads what upstream publishes of a Kubernetes version and records what came: checked against
/// the project's checksum file where it has one, else on trust, which is said and recorded.
pub fn pin_upstream(
    lock: &mut Lock,
    kubernetes: &str,
    platform: &Platform,
    cache: &Cache,
    watch: &dyn Watch,
) -> Result<Vec<RecordedDigest>> {
    let version = lock.find_version(kubernetes)?.to_owned();
    let mut changes = Vec::new();
    for module in lock.sets[&version].clone() {
        let mut files = Files::new();
        for (name, spec) in lock.modules[&module].binaries.iter() {
            let binary = make_binary(lock, &module, spec, platform);
            let Some(url) = &binary.upstream_url else { continue };
            let key = format!("pin-{module}-{name}-{}-{}", platform.os, platform.arch);
            let work = KeyLock::acquire(cache.root(), &key, name, watch)?;
            let on = jiff::Zoned::now().date();
            let published = binary.upstream_checksums.as_deref();
            let published = published.map(|list| read_checksum(list, url, work.work(), watch)).transpose()?;
            watch.progress(&format!("downloading {url}"));
            let path = work.work().join("file");
            let sha256 = download::fetch_url(url, Size::AtMost(LARGEST), &path, watch)?;
            let origin = match (binary.upstream_checksums, published) {
                (Some(list), Some(published)) if published == sha256 => DigestOrigin::ChecksumFile { url: list, on },
                (Some(list), Some(published)) => {
                    return Err(Error::permanent(format!(
                        "{url} is not the file that {list} names; nothing was recorded"
                    ))
                    .evidence(format!("expected sha256 {published}"))
                    .evidence(format!("got      sha256 {sha256}"))
                    .hint("try again later; if it stays so, tell the project"));
                }
                _ => {
                    watch.progress(&format!(
                        "{name}: nothing but this connection vouches for {url}; recorded as a first download"
                    ));
                    DigestOrigin::FirstDownload { url: url.clone(), on }
                }
            };
            files.insert(name.clone(), Made::adopt(cache, &path, sha256, origin)?);
        }
        let recording = Recording { module: &module, platform, variant: Variant::Upstream, files: &files };
        recording.record(lock, &mut changes)?;
    }
    Ok(changes)
}

/// The digest of the file at `url` in a checksum file: lines of sha256sum, or one digest alone.
fn read_checksum(list: &str, url: &str, work: &Path, watch: &dyn Watch) -> Result<Digest> {
    let path = work.join("checksums");
    download::fetch_url(list, Size::AtMost(LARGEST_LIST), &path, watch)?;
    let text = fs_err::read_to_string(&path)?;
    find_checksum(&text, url.rsplit('/').next().unwrap_or(url))
        .ok_or_else(|| Error::permanent(format!("{list} names no sha256 of {url}; nothing was recorded")))
}

fn find_checksum(text: &str, name: &str) -> Option<Digest> {
    text.lines().find_map(|line| {
        let (digest, file) = line.split_once(char::is_whitespace).unwrap_or((line, name));
        // sha256sum marks binary mode by an asterisk.
        (file.trim_start().trim_start_matches('*').trim_end() == name).then(|| digest.parse().ok())?
    })
}

/// Writes the lock file of this directory, whole or not at all.
pub fn write_lock(lock: &Lock, dir: &Path) -> Result<PathBuf> {
    let path = dir.join(LOCK_FILE);
    let text = lock.to_text()?;
    atomic_file::replace(&path, text.as_bytes(), FileMode::Exact(0o644))
        .context(format!("cannot replace {}", path.display()))?;
    Ok(path)
}

/// The set of this version; a new one is a copy of the newest, with a Kubernetes module of its own
/// and nothing recorded.
fn add_version(lock: &mut Lock, kubernetes: &str) -> Result<String> {
    if let Ok(known) = lock.find_version(kubernetes) {
        return Ok(known.to_owned());
    }
    let plain = kubernetes.strip_prefix('v').unwrap_or(kubernetes);
    semver::Version::parse(plain)
        .map_err(|error| Error::usage(format!("`{kubernetes}` is not a version such as 1.36.3")).source(error))?;
    let newest = lock.versions().first().copied().unwrap_or_default().to_owned();
    let (old, new) = (format!("kubernetes-{newest}"), format!("kubernetes-{plain}"));
    let mut module =
        lock.modules.get(&old).cloned().ok_or_else(|| Error::config(format!("{LOCK_FILE} has no {old}")))?;
    plain.clone_into(&mut module.version);
    new.clone_into(&mut module.directory);
    for spec in module.binaries.values_mut() {
        spec.pins.clear();
        if let Some(upstream) = &mut spec.upstream {
            upstream.pins.clear();
        }
    }
    for spec in module.images.values_mut() {
        spec.pins.clear();
        spec.upstream_pins.clear();
    }
    let set = lock.sets[&newest].iter().map(|name| if *name == old { new.clone() } else { name.clone() }).collect();
    lock.modules.insert(new, module);
    lock.sets.insert(plain.to_owned(), set);
    Ok(plain.to_owned())
}

/// A file that came out, in the cache now.
struct Made {
    pin: Pin,
    path: PathBuf,
}

impl Made {
    fn adopt(cache: &Cache, file: &Path, sha256: Digest, origin: DigestOrigin) -> Result<Self> {
        let size = Some(fs_err::metadata(file)?.len());
        Ok(Self { pin: Pin { sha256, size, origin }, path: cache.adopt(file, &sha256, 0o555)? })
    }
}

/// By the binary's name.
type Files = BTreeMap<String, Made>;

fn build_unpinned(lock: &Lock, name: &str, platform: &Platform, cache: &Cache, watch: &dyn Watch) -> Result<Files> {
    let module = &lock.modules[name];
    let Some(first) = module.binaries.values().next() else { return Ok(Files::new()) };
    let binary = make_binary(lock, name, first, platform);
    let key = format!("build-{name}-{}-{}", platform.os, platform.arch);
    let work = KeyLock::acquire(cache.root(), &key, name, watch)?;
    let packages = module.binaries.values().map(|spec| spec.package.as_str()).collect();
    let out = Order { binary: &binary, platform, packages, reference: &[], effort: &Effort::default() }.build(
        work.work(),
        &cache.log_path(name),
        watch,
    )?;
    let c_toolchain = binary.cgo.as_ref().map(|cgo| tools::describe_c_toolchain(&cgo.libraries));
    let mut files = Files::new();
    for (binary, spec) in module.binaries.iter() {
        let file = out.join(executable_name(&spec.package));
        let origin = DigestOrigin::SourceBuild { c_toolchain: c_toolchain.clone() };
        files.insert(binary.clone(), Made::adopt(cache, &file, Digest::of_file(&file)?, origin)?);
    }
    Ok(files)
}

struct Recording<'a> {
    module: &'a str,
    platform: &'a Platform,
    variant: Variant,
    files: &'a Files,
}

impl Recording<'_> {
    fn record(&self, lock: &mut Lock, changes: &mut Vec<RecordedDigest>) -> Result<()> {
        let images = self.hash_images(lock)?;
        let Some(module) = lock.modules.get_mut(self.module) else { return Ok(()) };
        let (version, has_c) = (module.version.clone(), module.cgo.is_some());
        let mut note = |artifact: String, pins: &mut Pins, new: &Pin| {
            let pins = pins.entry(self.platform.clone()).or_default();
            let old = pins.first().map(|pin| pin.sha256);
            // Another C compiler's build stands beside those of others; everything else has one
            // right form.
            if !(has_c && self.variant == Variant::Source) {
                pins.retain(|pin| pin.sha256 == new.sha256);
            }
            if let Some(pin) = pins.iter_mut().find(|pin| pin.sha256 == new.sha256) {
                *pin = new.clone();
            } else {
                changes.push(RecordedDigest { artifact, version: version.clone(), old, new: new.sha256 });
                pins.push(new.clone());
            }
        };
        for (name, spec) in module.binaries.iter_mut() {
            let Some(made) = self.files.get(name) else { continue };
            let pins = match (self.variant, &mut spec.upstream) {
                (Variant::Source, _) => &mut spec.pins,
                (Variant::Upstream, Some(upstream)) => &mut upstream.pins,
                (Variant::Upstream, None) => continue,
            };
            note(name.clone(), pins, &made.pin);
        }
        for (name, pin) in images {
            let Some(spec) = module.images.get_mut(&name) else { continue };
            let pins = match self.variant {
                Variant::Source => &mut spec.pins,
                Variant::Upstream => &mut spec.upstream_pins,
            };
            note(format!("image/{name}"), pins, &pin);
        }
        Ok(())
    }

    /// The pins of the images all of whose binaries are known.
    fn hash_images(&self, lock: &Lock) -> Result<BTreeMap<String, Pin>> {
        let module = &lock.modules[self.module];
        let paths: BTreeMap<String, PathBuf> =
            self.files.iter().map(|(name, made)| (name.clone(), made.path.clone())).collect();
        let mut pins = BTreeMap::new();
        for (name, spec) in module.images.iter() {
            if !spec.files.values().all(|binary| paths.contains_key(binary)) {
                continue;
            }
            let artifact = Artifact {
                name: name.clone(),
                version: module.version.clone(),
                platform: self.platform.clone(),
                pins: Vec::new(),
                upstream_pins: Vec::new(),
                optional: false,
                kind: ArtifactKind::Image(make_image(spec, &module.version, &[])),
            };
            let mut hasher = Hasher::new(io::sink());
            image_tar(&artifact, &paths, &mut hasher)?;
            let size = Some(hasher.count());
            pins.insert(name.clone(), Pin { sha256: hasher.finish().1, size, origin: DigestOrigin::Assembled });
        }
        Ok(pins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_found_by_the_files_name_and_nothing_else() {
        let (one, other) = (Digest::of(b"1"), Digest::of(b"2"));
        let list = format!("{other}  runc.arm64\n{one} *runc.amd64\nnonsense  runc.s390x\n");
        assert_eq!(find_checksum(&list, "runc.amd64"), Some(one));
        assert_eq!(find_checksum(&list, "runc.arm64"), Some(other));
        assert_eq!(find_checksum(&list, "runc.s390x"), None);
        assert_eq!(find_checksum(&list, "runc"), None);
        assert_eq!(find_checksum(&one.to_string(), "kubelet"), Some(one), "a digest alone is the file's");
        assert_eq!(find_checksum(&format!("{one}\n"), "kubelet"), Some(one));
    }
}
