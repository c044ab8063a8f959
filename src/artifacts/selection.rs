//! The artifacts of one Kubernetes version on one platform, every reference resolved and every
//! template filled in.
//!
//! This is what the other modules see of the lock file. It reads no file and gets no byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::lock::{BinarySpec, Cgo, ImageSpec, LOCK_FILE, Lock, Module, Pin, Pins};
use super::platform::Platform;
use super::registry_image::RegistryImage;
use crate::{Error, Result};

/// Who compiled the bytes; each has its own digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// Our own reproducible build.
    Source,
    /// The upstream project.
    Upstream,
}

/// One file that a node or the user needs, with its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// `kubelet`; an image may have the name of a binary, so see [`Artifact::id`].
    pub name: String,
    /// The version of the project that it belongs to.
    pub version: String,
    /// For which machines.
    pub platform: Platform,
    /// What our own build may be, the preferred one first; never empty.
    pub pins: Vec<Pin>,
    /// What upstream's file may be; empty until it is pinned.
    pub upstream_pins: Vec<Pin>,
    /// Fetched only when asked for by name.
    pub optional: bool,
    /// What it is.
    pub kind: ArtifactKind,
}

/// What an artifact is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArtifactKind {
    /// An executable.
    Binary(BinaryArtifact),
    /// A docker-archive.
    Image(ImageArtifact),
}

/// How an executable is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryArtifact {
    /// The module in the lock file; what is built together.
    pub module: String,
    /// Its directory below `templates/artifacts`.
    pub directory: String,
    /// The Go release.
    pub toolchain: String,
    /// The Go package.
    pub package: String,
    /// The linker's flags.
    pub ldflags: String,
    /// Further arguments of `go build`.
    pub flags: Vec<String>,
    /// The C part of the module, where it has one.
    pub cgo: Option<Cgo>,
    /// Where upstream publishes the same command as one file.
    pub upstream_url: Option<String>,
    /// Where upstream publishes the digest of that file.
    pub upstream_checksums: Option<String>,
}

/// How an image is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageArtifact {
    /// The name in containerd: `turnup.local/kube-apiserver:v1.36.3`.
    pub reference: String,
    /// The command and its first arguments.
    pub entrypoint: Vec<String>,
    /// The user that runs it.
    pub user: String,
    /// Path in the image to the name of the binary.
    pub files: BTreeMap<String, String>,
    /// Path in the image to the target of the symbolic link.
    pub links: BTreeMap<String, String>,
    /// Empty directories.
    pub directories: Vec<String>,
    /// The binaries that `files` names.
    pub binaries: Vec<Artifact>,
}

impl Artifact {
    /// The unambiguous name: `kubelet`, `image/kube-proxy`.
    #[must_use]
    pub fn id(&self) -> String {
        if self.image().is_some() { format!("image/{}", self.name) } else { self.name.clone() }
    }

    /// The image, when it is one.
    #[must_use]
    pub const fn image(&self) -> Option<&ImageArtifact> {
        match &self.kind {
            ArtifactKind::Image(image) => Some(image),
            ArtifactKind::Binary(_) => None,
        }
    }

    /// The binary, when it is one.
    #[must_use]
    pub const fn binary(&self) -> Option<&BinaryArtifact> {
        match &self.kind {
            ArtifactKind::Binary(binary) => Some(binary),
            ArtifactKind::Image(_) => None,
        }
    }

    /// What the file of this variant may be, the preferred one first; empty when it is not pinned.
    #[must_use]
    pub fn pins(&self, variant: Variant) -> &[Pin] {
        match variant {
            Variant::Source => &self.pins,
            Variant::Upstream => &self.upstream_pins,
        }
    }

    /// The mode of the file wherever it is put.
    #[must_use]
    pub const fn mode(&self) -> u32 {
        if self.image().is_some() { 0o444 } else { 0o555 }
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id(), self.version)
    }
}

/// Every artifact of one Kubernetes version on one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The Kubernetes version.
    pub kubernetes: String,
    /// For which machines.
    pub platform: Platform,
    /// Binaries and images, optional ones included.
    pub artifacts: Vec<Artifact>,
    /// Images that nodes pull.
    pub registry_images: BTreeMap<String, RegistryImage>,
    /// Those of them that the cluster needs.
    pub pulled: BTreeSet<String>,
}

impl Selection {
    /// The artifact with this id: `kubelet`, `image/kube-proxy`.
    pub fn get(&self, id: &str) -> Result<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.id() == id).ok_or_else(|| {
            let ids: Vec<String> = self.artifacts.iter().map(Artifact::id).collect();
            let error = Error::usage(format!("there is no artifact `{id}` for Kubernetes {}", self.kubernetes));
            match kconfig::suggest(id, ids.iter().map(String::as_str)) {
                Some(close) => error.hint(format!("did you mean `{close}`?")),
                None => error.hint("turnup artifacts list"),
            }
        })
    }

    /// A binary by name.
    pub fn binary(&self, name: &str) -> Result<&Artifact> {
        self.get(name)
    }

    /// An image by name.
    pub fn image(&self, name: &str) -> Result<&Artifact> {
        self.get(&format!("image/{name}"))
    }

    /// The default selection.
    pub fn required(&self) -> impl Iterator<Item = &Artifact> {
        self.artifacts.iter().filter(|artifact| !artifact.optional)
    }

    /// Fetches this image by default too, with its binaries; nodes pull one of a registry. One that
    /// the lock file lacks is missed by what needs it.
    pub fn require_image(&mut self, name: &str) {
        if self.registry_images.contains_key(name) {
            self.pulled.insert(name.into());
            return;
        }
        let image = self.image(name).ok().and_then(Artifact::image);
        let binaries: Vec<String> = image.map(|image| image.files.values().cloned().collect()).unwrap_or_default();
        for artifact in &mut self.artifacts {
            let is_image = artifact.image().is_some();
            artifact.optional &= !(is_image && artifact.name == name || !is_image && binaries.contains(&artifact.name));
        }
    }

    /// Fetches this binary by default too. One that the lock file lacks is missed by what needs it.
    pub fn require_binary(&mut self, name: &str) {
        let binaries = self.artifacts.iter_mut().filter(|artifact| artifact.image().is_none());
        binaries.filter(|artifact| artifact.name == name).for_each(|artifact| artifact.optional = false);
    }

    /// The version of an image, made here or pulled.
    #[must_use]
    pub fn image_version(&self, name: &str) -> Option<&str> {
        let pulled = self.registry_images.get(name).map(RegistryImage::version);
        pulled.or_else(|| Some(&self.image(name).ok()?.version))
    }

    /// The images that nodes of this cluster pull.
    pub fn pulled_images(&self) -> impl Iterator<Item = (&str, &RegistryImage)> {
        self.pulled.iter().filter_map(|name| Some((name.as_str(), self.registry_images.get(name)?)))
    }

    /// The images.
    pub fn images(&self) -> impl Iterator<Item = &Artifact> {
        self.artifacts.iter().filter(|artifact| artifact.image().is_some())
    }
}

impl Lock {
    /// Every artifact of a Kubernetes version for the platform that this program runs on.
    pub fn select(&self, version: &str) -> Result<Selection> {
        self.select_for(version, &Platform::host())
    }

    /// Every artifact of a Kubernetes version for one platform.
    pub fn select_for(&self, version: &str, platform: &Platform) -> Result<Selection> {
        let version = self.find_version(version)?;
        let mut artifacts = Vec::new();
        for name in &self.sets[version] {
            let module = Resolving { lock: self, name, module: &self.modules[name], platform, kubernetes: version };
            let binaries = module.resolve_binaries()?;
            let images = module.resolve_images(&binaries)?;
            artifacts.extend(binaries);
            artifacts.extend(images);
        }
        let registry_images = (*self.registry_images).clone();
        let (kubernetes, platform) = (version.into(), platform.clone());
        Ok(Selection { kubernetes, platform, artifacts, registry_images, pulled: BTreeSet::new() })
    }
}

struct Resolving<'a> {
    lock: &'a Lock,
    name: &'a str,
    module: &'a Module,
    platform: &'a Platform,
    kubernetes: &'a str,
}

impl Resolving<'_> {
    fn resolve_binaries(&self) -> Result<Vec<Artifact>> {
        self.module.binaries.iter().map(|(name, spec)| self.resolve_binary(name, spec)).collect()
    }

    fn resolve_binary(&self, name: &str, spec: &BinarySpec) -> Result<Artifact> {
        let upstream = spec.upstream.as_ref();
        Ok(Artifact {
            name: name.into(),
            version: self.module.version.clone(),
            platform: self.platform.clone(),
            pins: self.find_pins(name, &spec.pins)?,
            upstream_pins: upstream.map(|upstream| self.known_pins(&upstream.pins)).unwrap_or_default(),
            optional: spec.optional,
            kind: ArtifactKind::Binary(make_binary(self.lock, self.name, spec, self.platform)),
        })
    }

    fn resolve_images(&self, binaries: &[Artifact]) -> Result<Vec<Artifact>> {
        let images = self.module.images.iter();
        images.map(|(name, spec)| self.resolve_image(name, spec, binaries)).collect()
    }

    fn resolve_image(&self, name: &str, spec: &ImageSpec, binaries: &[Artifact]) -> Result<Artifact> {
        Ok(Artifact {
            name: name.into(),
            version: self.module.version.clone(),
            platform: self.platform.clone(),
            pins: self.find_pins(&format!("image/{name}"), &spec.pins)?,
            upstream_pins: self.known_pins(&spec.upstream_pins),
            // An image is fetched with its binaries.
            optional: spec.files.values().any(|name| self.module.binaries[name].optional),
            kind: ArtifactKind::Image(make_image(spec, &self.module.version, binaries)),
        })
    }

    fn known_pins(&self, pins: &Pins) -> Vec<Pin> {
        pins.get(self.platform).cloned().unwrap_or_default()
    }

    fn find_pins(&self, id: &str, pins: &Pins) -> Result<Vec<Pin>> {
        let version = &self.module.version;
        match pins.get(self.platform) {
            Some(known) if !known.is_empty() => Ok(known.clone()),
            Some(_) => Err(Error::config(format!("{id} {version} has no sha256 in {LOCK_FILE}"))
                .hint(format!("turnup artifacts lock --write --kubernetes {}", self.kubernetes))),
            None => {
                let known: Vec<String> = pins.keys().map(Platform::to_string).collect();
                Err(Error::config(format!("{id} {version} is not in {LOCK_FILE} for {}", self.platform))
                    .evidence(format!("it is there for {}", known.join(", ")))
                    .hint(format!("on such a machine: turnup artifacts lock --write --kubernetes {}", self.kubernetes)))
            }
        }
    }
}

pub(super) fn make_binary(lock: &Lock, module: &str, spec: &BinarySpec, platform: &Platform) -> BinaryArtifact {
    let Module { version, directory, ldflags, flags, cgo, .. } = &lock.modules[module];
    let fill = |text: &str| fill_template(text, version, platform);
    BinaryArtifact {
        module: module.into(),
        directory: directory.clone(),
        toolchain: lock.toolchain.clone(),
        package: spec.package.clone(),
        ldflags: fill(ldflags),
        flags: flags.clone(),
        cgo: cgo.clone(),
        upstream_url: spec.upstream.as_ref().map(|upstream| fill(&upstream.url)),
        upstream_checksums: spec.upstream.as_ref().and_then(|upstream| upstream.checksums.as_deref()).map(fill),
    }
}

pub(super) fn make_image(spec: &ImageSpec, version: &str, binaries: &[Artifact]) -> ImageArtifact {
    let needed = |artifact: &&Artifact| spec.files.values().any(|name| *name == artifact.name);
    ImageArtifact {
        reference: spec.reference.replace("{version}", version),
        entrypoint: spec.entrypoint.clone(),
        user: spec.user.clone(),
        files: (*spec.files).clone(),
        links: (*spec.links).clone(),
        directories: spec.directories.clone(),
        binaries: binaries.iter().filter(needed).cloned().collect(),
    }
}

fn fill_template(text: &str, version: &str, platform: &Platform) -> String {
    let mut parts = version.split('.');
    let major = parts.next().unwrap_or_default();
    let minor = parts.next().unwrap_or_default();
    let known =
        [("version", version), ("major", major), ("minor", minor), ("os", &platform.os), ("arch", &platform.arch)];
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn an_image_of_an_addon_is_required_with_its_binaries() {
        let mut selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
        let ids = |selection: &Selection| -> Vec<String> { selection.required().map(Artifact::id).collect() };
        let of_addon = ["metrics-server", "image/metrics-server"].map(str::to_owned);
        let before = ids(&selection);
        assert!(of_addon.iter().all(|id| !before.contains(id)), "{before:?}");
        selection.require_image("metrics-server");
        let added: Vec<String> = ids(&selection).into_iter().filter(|id| !before.contains(id)).collect();
        assert_eq!(added, of_addon);
        selection.require_image("no-such");
        assert_eq!(ids(&selection).len(), before.len() + 2);
    }
}
