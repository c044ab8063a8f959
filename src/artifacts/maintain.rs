//! Records digests in the lock file: how a maintainer adds a version, and how a user pins what upstream publishes.
//!
//! This is the one place that trusts bytes without knowing their digest, and therefore never part of turning up a cluster.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::cache::Cache;
use super::digest::{Digest, Hasher};
use super::download;
use super::gobuild::{Order, executable_name};
use super::image::image_tar;
use super::keylock::KeyLock;
use super::lock::{LOCK_FILE, Lock};
use super::selection::{Artifact, Kind, Platform, Variant, make_binary, make_image};
use super::watch::Watch;
use crate::{Context, Error, Result};

/// A digest that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
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
) -> Result<Vec<Change>> {
    let version = add_version(lock, kubernetes)?;
    let mut changes = Vec::new();
    for module in lock.sets[&version].clone() {
        let files = build_unpinned(lock, &module, platform, cache, watch)?;
        let recording = Recording { module: &module, platform, variant: Variant::Source, files: &files };
        recording.record(lock, &mut changes)?;
    }
    Ok(changes)
}

/// Downloads what upstream publishes of a Kubernetes version and records what came.
pub fn pin_upstream(
    lock: &mut Lock,
    kubernetes: &str,
    platform: &Platform,
    cache: &Cache,
    watch: &dyn Watch,
) -> Result<Vec<Change>> {
    let version = lock.find_version(kubernetes)?.to_owned();
    let mut changes = Vec::new();
    for module in lock.sets[&version].clone() {
        let mut files = BTreeMap::new();
        for (name, spec) in lock.modules[&module].binaries.iter() {
            if let Some(url) = make_binary(lock, &module, spec, platform).upstream_url {
                let key = format!("pin-{module}-{name}-{}-{}", platform.os, platform.arch);
                let work = KeyLock::acquire(cache.root(), &key, name, watch)?;
                watch.progress(&format!("downloading {url}"));
                let file = work.work().join("file");
                let digest = download::fetch_url(&url, &file, watch)?;
                files.insert(name.clone(), (digest, cache.adopt(&file, &digest, 0o555)?));
            }
        }
        let recording = Recording { module: &module, platform, variant: Variant::Upstream, files: &files };
        recording.record(lock, &mut changes)?;
    }
    Ok(changes)
}

/// Writes the lock file of this directory, whole or not at all.
pub fn write_lock(lock: &Lock, dir: &Path) -> Result<PathBuf> {
    let path = dir.join(LOCK_FILE);
    let mut file = tempfile::NamedTempFile::new_in(dir).context(format!("cannot write in {}", dir.display()))?;
    io::Write::write_all(&mut file, lock.to_text()?.as_bytes())?;
    fs_err::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.as_file().sync_all()?;
    file.persist(&path).context(format!("cannot replace {}", path.display()))?;
    super::cache::sync_dir(dir)?;
    Ok(path)
}

/// The set of this version; a new one is a copy of the newest, with a Kubernetes module of its own and nothing recorded.
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
        spec.sha256.clear();
        if let Some(upstream) = &mut spec.upstream {
            upstream.sha256.clear();
        }
    }
    for spec in module.images.values_mut() {
        spec.sha256.clear();
        spec.upstream_sha256.clear();
    }
    let set = lock.sets[&newest].iter().map(|name| if *name == old { new.clone() } else { name.clone() }).collect();
    lock.modules.insert(new, module);
    lock.sets.insert(plain.to_owned(), set);
    Ok(plain.to_owned())
}

type Files = BTreeMap<String, (Digest, PathBuf)>;

fn build_unpinned(lock: &Lock, name: &str, platform: &Platform, cache: &Cache, watch: &dyn Watch) -> Result<Files> {
    let module = &lock.modules[name];
    let Some(first) = module.binaries.values().next() else { return Ok(Files::new()) };
    let binary = make_binary(lock, name, first, platform);
    let key = format!("build-{name}-{}-{}", platform.os, platform.arch);
    let work = KeyLock::acquire(cache.root(), &key, name, watch)?;
    let packages = module.binaries.values().map(|spec| spec.package.as_str()).collect();
    let out = Order { binary: &binary, platform, packages }.build(work.work(), &cache.log_path(name), watch)?;
    let mut files = Files::new();
    for (binary, spec) in module.binaries.iter() {
        let file = out.join(executable_name(&spec.package));
        let digest = Digest::of_file(&file)?;
        files.insert(binary.clone(), (digest, cache.adopt(&file, &digest, 0o555)?));
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
    fn record(&self, lock: &mut Lock, changes: &mut Vec<Change>) -> Result<()> {
        let images = self.hash_images(lock)?;
        let Some(module) = lock.modules.get_mut(self.module) else { return Ok(()) };
        let version = module.version.clone();
        let mut note = |artifact: String, old: Option<Option<Digest>>, new: Digest| {
            if old.flatten() != Some(new) {
                changes.push(Change { artifact, version: version.clone(), old: old.flatten(), new });
            }
        };
        for (name, spec) in module.binaries.iter_mut() {
            let Some((digest, _)) = self.files.get(name) else { continue };
            let digests = match (self.variant, &mut spec.upstream) {
                (Variant::Source, _) => &mut spec.sha256,
                (Variant::Upstream, Some(upstream)) => &mut upstream.sha256,
                (Variant::Upstream, None) => continue,
            };
            note(name.clone(), digests.insert(self.platform.clone(), Some(*digest)), *digest);
        }
        for (name, digest) in images {
            let Some(spec) = module.images.get_mut(&name) else { continue };
            let digests = match self.variant {
                Variant::Source => &mut spec.sha256,
                Variant::Upstream => &mut spec.upstream_sha256,
            };
            note(format!("image/{name}"), digests.insert(self.platform.clone(), Some(digest)), digest);
        }
        Ok(())
    }

    /// The digests of the images all of whose binaries are known.
    fn hash_images(&self, lock: &Lock) -> Result<BTreeMap<String, Digest>> {
        let module = &lock.modules[self.module];
        let paths: BTreeMap<String, PathBuf> =
            self.files.iter().map(|(name, (_, path))| (name.clone(), path.clone())).collect();
        let mut digests = BTreeMap::new();
        for (name, spec) in module.images.iter() {
            if !spec.files.values().all(|binary| paths.contains_key(binary)) {
                continue;
            }
            let artifact = Artifact {
                name: name.clone(),
                version: module.version.clone(),
                platform: self.platform.clone(),
                sha256: Digest::of(b""),
                upstream_sha256: None,
                optional: false,
                kind: Kind::Image(make_image(spec, &module.version, &[])),
            };
            let mut hasher = Hasher::new(io::sink());
            image_tar(&artifact, &paths, &mut hasher)?;
            digests.insert(name.clone(), hasher.finish().1);
        }
        Ok(digests)
    }
}
