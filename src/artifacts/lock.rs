//! `cluster.lock.json`: which artifacts exist for which Kubernetes version, and what the bytes of
//! each must be.
//!
//! The file is parsed strictly: an unknown key, a duplicate, a digest that is none, or a reference
//! to something that is not there is an error with its place. This file does not know where
//! artifacts come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::digest_origin::DigestOrigin;
use super::platform::Platform;
use super::registry_image::RegistryImage;
use super::size::Size;
use super::unique::Unique;
use crate::{Error, Result, input};

/// The file's name, in the working directory and in the repository's root.
pub const LOCK_FILE: &str = "cluster.lock.json";
/// More than any artifact has: the limit where its size is not known. The largest one,
/// kube-apiserver's image, has a tenth of it.
pub const LARGEST: u64 = 1 << 30;
const SCHEMA: &str = "turnup.lock/1";

/// The accepted files by platform, the preferred one first. An empty list says that none is
/// recorded yet.
pub type Pins = Unique<Platform, Vec<Pin>>;

/// One accepted file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// What its bytes must be.
    pub sha256: Digest,
    /// How many bytes it has: no source may send another number. None where the file itself was
    /// never here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How digest and size became known.
    pub origin: DigestOrigin,
}

impl Pin {
    /// How many bytes a source may send.
    #[must_use]
    pub fn limit(&self) -> Size {
        self.size.map_or(Size::AtMost(LARGEST), Size::Exactly)
    }
}

/// The whole lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    schema: String,
    /// The Go release that builds everything; another one gives other bytes.
    pub toolchain: String,
    /// The Kubernetes version of a cluster whose configuration names none.
    pub default: String,
    /// Per Kubernetes version the modules that make a complete set.
    pub sets: Unique<String, Vec<String>>,
    /// What is built together, by name.
    pub modules: Unique<String, Module>,
    /// Images that nodes pull, by the names that addons have for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub registry_images: Unique<String, RegistryImage>,
}

/// A Go module of ours that pins one upstream project, and the commands that are built from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// The upstream project's version.
    pub version: String,
    /// The directory of go.mod below `templates/artifacts`.
    pub directory: String,
    /// The linker's flags; `{version}`, `{major}` and `{minor}` stand for the version's parts.
    pub ldflags: String,
    /// Further arguments of `go build`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The C part of the module, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgo: Option<Cgo>,
    /// The commands.
    pub binaries: Unique<String, BinarySpec>,
    /// Images that are assembled from these commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: Unique<String, ImageSpec>,
}

/// What a build needs of C. Compiler, linker and libraries are the machine's own, so another
/// distribution builds other bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgo {
    /// The C compiler's flags.
    pub cflags: String,
    /// Static libraries by the name of pkg-config: `libseccomp`.
    pub libraries: Vec<String>,
}

impl Cgo {
    /// The programs and static libraries that the build needs, as `exec::tools` names them.
    #[must_use]
    pub fn needs(&self) -> Vec<String> {
        let libraries = self.libraries.iter().map(|library| format!("{library}.a"));
        ["gcc", "pkg-config", "libc.a"].map(str::to_owned).into_iter().chain(libraries).collect()
    }
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinarySpec {
    /// The Go package.
    pub package: String,
    /// Fetched only when it is requested by name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Our own builds; more than one where the C compiler has a say in the bytes.
    pub pins: Pins,
    /// The upstream project's own file of the same command, whose bytes differ from our build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamSpec>,
}

/// Where the upstream project publishes a command as a single file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamSpec {
    /// `{version}`, `{os}` and `{arch}` are replaced.
    pub url: String,
    /// The checksum file that the project publishes for it, in the form of sha256sum or one digest
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<String>,
    /// That file; refused until it is pinned.
    pub pins: Pins,
}

/// An image: static binaries in an otherwise empty file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSpec {
    /// The name in containerd; `{version}` is replaced.
    pub reference: String,
    /// Why the image is as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The command and its first arguments.
    pub entrypoint: Vec<String>,
    /// The user that runs it.
    pub user: String,
    /// Path in the image to the name of the binary.
    pub files: Unique<String, String>,
    /// Path in the image to the target of the symbolic link.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: Unique<String, String>,
    /// Empty directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// The docker-archive made of our own builds.
    pub pins: Pins,
    /// The archive made of upstream's files; it follows from theirs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream_pins: Pins,
}

impl Lock {
    /// The lock file of this directory, else the one that this program was built with.
    pub fn load(dir: &Path) -> Result<Arc<Self>> {
        let path = dir.join(LOCK_FILE);
        match input::read_text(&path, input::DOCUMENT) {
            Ok(text) => Self::parse(&text, &path.display().to_string()).map(Arc::new),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::embedded(),
            Err(error) => Err(Error::config(format!("cannot read {LOCK_FILE}")).source(error).hint(repair(LOCK_FILE))),
        }
    }

    /// The lock file that this program was built with.
    pub fn embedded() -> Result<Arc<Self>> {
        static EMBEDDED: OnceLock<Arc<Lock>> = OnceLock::new();
        if let Some(lock) = EMBEDDED.get() {
            return Ok(Arc::clone(lock));
        }
        let lock = Self::parse(super::tree::LOCK, LOCK_FILE).map(Arc::new)?;
        Ok(Arc::clone(EMBEDDED.get_or_init(|| lock)))
    }

    /// Reads the text of a lock file; `name` is what errors call it.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        // The schema goes first: whatever else a newer file says would only be misread.
        check_schema(text, name)?;
        let lock: Self = serde_json::from_str(text).map_err(|error| syntax_error(name, &error))?;
        lock.check_references(name)?;
        Ok(lock)
    }

    /// The text of the lock file.
    pub fn to_text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n")
            .map_err(|error| Error::bug("the lock file cannot be written as JSON").source(error))
    }

    /// The Kubernetes versions that have a complete set, newest first.
    #[must_use]
    pub fn versions(&self) -> Vec<&str> {
        let mut versions: Vec<&str> = self.sets.keys().map(String::as_str).collect();
        versions.sort_by_key(|version| std::cmp::Reverse(semver::Version::parse(version).ok()));
        versions
    }

    /// The name of the set for what the user wrote: `1.36.3` or `v1.36.3`.
    pub fn find_version(&self, version: &str) -> Result<&str> {
        let plain = version.strip_prefix('v').unwrap_or(version);
        if let Some((known, _)) = self.sets.get_key_value(plain) {
            return Ok(known);
        }
        let versions = self.versions();
        let error = Error::config(format!("Kubernetes {version} is not in {LOCK_FILE}: {}", versions.join(", ")));
        Err(match closest_version(plain, &versions) {
            Some(close) => error.hint(format!("did you mean {close}?")),
            None => error.hint(format!("choose one of {}", versions.join(", "))),
        })
    }

    fn check_references(&self, name: &str) -> Result<()> {
        let wrong = |what: String| Err(Error::config(format!("{name}: {what}")).hint(repair(name)));
        for (version, modules) in &*self.sets {
            if semver::Version::parse(version).is_err() {
                return wrong(format!("sets: `{version}` is not a version such as 1.36.3"));
            }
            if let Some(module) = modules.iter().find(|module| !self.modules.contains_key(*module)) {
                return wrong(format!("sets: {version} names the module `{module}`, which is not in modules"));
            }
        }
        if !self.sets.contains_key(&self.default) {
            return wrong(format!("default: {} is not in sets", self.default));
        }
        let is_made = |image: &&String| self.modules.values().any(|module| module.images.contains_key(*image));
        if let Some(image) = self.registry_images.keys().find(is_made) {
            return wrong(format!("registry_images: {image} is an image of a module, too"));
        }
        for (module, spec) in &*self.modules {
            if let Some(name) = spec.binaries.iter().find(|(_, spec)| has_twins(&spec.pins)).map(|(name, _)| name) {
                return wrong(format!("modules.{module}.binaries.{name}: one sha256 is there twice"));
            }
            for (image, files) in spec.images.iter().map(|(image, spec)| (image, &spec.files)) {
                if let Some(binary) = files.values().find(|binary| !spec.binaries.contains_key(*binary)) {
                    return wrong(format!("modules.{module}.images.{image}: `{binary}` is not a binary of {module}"));
                }
            }
        }
        Ok(())
    }
}

fn has_twins(pins: &Pins) -> bool {
    pins.values().any(|pins| pins.iter().map(|pin| pin.sha256).collect::<BTreeSet<_>>().len() < pins.len())
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<String>,
}

fn check_schema(text: &str, name: &str) -> Result<()> {
    let head: SchemaOnly = serde_json::from_str(text).map_err(|error| syntax_error(name, &error))?;
    match head.schema.as_deref() {
        Some(SCHEMA) => Ok(()),
        Some(other) => Err(Error::config(format!("{name}: schema `{other}` is not `{SCHEMA}`"))
            .hint("use the turnup that this lock file came with, or delete the file to use the built-in one")),
        None => Err(Error::config(format!("{name}: there is no \"schema\": \"{SCHEMA}\"")).hint(repair(name))),
    }
}

fn repair(name: &str) -> String {
    format!("correct {name}, or delete it to use the built-in one")
}

fn syntax_error(name: &str, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    // serde_json appends the place to its sentence; ours stands in front, where an editor finds it.
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    Error::config(format!("{name}:{}:{}: {message}", error.line(), error.column())).hint(repair(name))
}

/// The version the user probably meant: the closest text, but never one of another minor version by
/// accident.
fn closest_version(wanted: &str, versions: &[&str]) -> Option<String> {
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    let same_minor =
        versions.iter().find(|version| minor(version) == minor(wanted) || minor(version).as_deref() == Some(wanted));
    let same_minor = same_minor.map(|version| (*version).to_owned());
    same_minor.or_else(|| kconfig::suggest(wanted, versions.iter().copied()))
}
