//! What was obtained for one cluster: which bytes every artifact really has. What the artifacts
//! step gives to all that follow.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::registry_image::under;
use super::{Artifact, Cache, Digest, ImageArchive, Pin, Selection, Sources, Watch};
use crate::document::{Document, Fields};
use crate::{Error, Result};

/// `outputs/artifacts.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolvedArtifacts {
    schema: String,
    /// The Kubernetes version that it was obtained for.
    pub kubernetes: String,
    artifacts: BTreeMap<String, Item>,
    /// Images that nodes pull.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pulled: BTreeMap<String, Pulled>,
    /// The registry, and path in it, under which nodes know the images; turnup's own names where
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    registry: Option<String>,
    /// Images of the user's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preloaded: Vec<ImageArchive>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    version: String,
    sha256: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pulled {
    version: String,
    reference: String,
}

impl Item {
    fn new(artifact: &Artifact, sha256: Digest, size: Option<u64>) -> Self {
        let reference = artifact.image().map(|image| image.reference.clone());
        Self { version: artifact.version.clone(), sha256, size, reference }
    }
}

impl Document for ResolvedArtifacts {
    const SCHEMA: &'static str = "turnup.artifacts/1";
    const WHAT: &'static str = "the list of this cluster's artifacts";
    const REMEDY: &'static str = "remove the file; turnup bootstrap recreates it";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("kubernetes", "semver"),
            ("artifacts.*.version", "word"),
            ("artifacts.*.sha256", "sha256"),
            ("artifacts.*.reference", "word"),
            ("pulled.*.version", "word"),
            ("pulled.*.reference", "word"),
            ("registry", "word"),
            ("preloaded[].sha256", "sha256"),
            ("preloaded[].references[]", "word"),
        ])
    }
}

impl ResolvedArtifacts {
    /// Where it lies below the cluster's directory.
    pub const FILE: &'static str = "outputs/artifacts.json";
    /// Gets everything of the selection that a cluster needs.
    pub fn fetch(cache: &Cache, selection: &Selection, sources: &Sources, watch: &dyn Watch) -> Result<Self> {
        let wanted: Vec<&Artifact> = selection.required().collect();
        let blobs = cache.ensure_all(wanted.iter().copied(), sources, watch)?;
        let items = wanted.iter().zip(blobs).map(|(artifact, blob)| {
            let size = fs_err::metadata(&blob.path)?.len();
            Ok((artifact.id(), Item::new(artifact, blob.digest, Some(size))))
        });
        let artifacts = items.collect::<Result<_>>()?;
        Ok(Self::of(selection, artifacts))
    }

    fn of(selection: &Selection, artifacts: BTreeMap<String, Item>) -> Self {
        let kubernetes = selection.kubernetes.clone();
        let pulled = selection.pulled_images().map(|(name, image)| {
            (name.to_owned(), Pulled { version: image.version().to_owned(), reference: image.reference() })
        });
        let (schema, pulled) = (Self::SCHEMA.into(), pulled.collect());
        Self { schema, kubernetes, artifacts, pulled, registry: None, preloaded: Vec::new() }
    }

    /// The same with images that nodes know under a registry, and path in it, and with these of the
    /// user's own.
    #[must_use]
    pub fn with_images(self, registry: &str, preloaded: Vec<ImageArchive>) -> Self {
        let registry = (!registry.is_empty()).then(|| registry.to_owned());
        Self { registry, preloaded, ..self }
    }

    /// What will be obtained, as far as that can be known before: of the files that the lock file
    /// accepts the one that an earlier run obtained, else the one in the cache, else our own build.
    #[must_use]
    pub fn expected(selection: &Selection, sources: &Sources, known: Option<&Self>, cache: Option<&Cache>) -> Self {
        let items = selection.required().map(|artifact| {
            let accepted = || sources.accepted(artifact).into_iter().map(|(_, pin)| pin);
            let before = known.and_then(|known| known.artifacts.get(&artifact.id())).map(|item| item.sha256);
            let is_here = |pin: &&Pin| cache.is_some_and(|cache| cache.blob_path(&pin.sha256).is_file());
            let pin = accepted().find(|pin| Some(pin.sha256) == before).or_else(|| accepted().find(is_here));
            let pin = pin.unwrap_or(&artifact.pins[0]);
            (artifact.id(), Item::new(artifact, pin.sha256, pin.size))
        });
        Self::of(selection, items.collect())
    }

    /// The first artifact that is no longer in the cache.
    #[must_use]
    pub fn find_missing(&self, cache: &Cache) -> Option<&str> {
        let gone = |sha256: &Digest| !cache.blob_path(sha256).is_file();
        let missing = self.artifacts.iter().find(|(_, item)| gone(&item.sha256)).map(|(name, _)| name.as_str());
        let own = || self.preloaded.iter().find(|archive| gone(&archive.sha256));
        missing.or_else(|| own().and_then(|archive| archive.references.first()).map(String::as_str))
    }

    /// Whether there is an artifact of this id.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.item(id).is_ok()
    }

    /// The digest of an artifact by its id: `kubelet`, `image/etcd`.
    pub fn sha256(&self, id: &str) -> Result<String> {
        self.item(id).map(|item| item.sha256.to_string())
    }

    /// How many bytes an artifact has, when that is known.
    pub fn size(&self, id: &str) -> Result<Option<u64>> {
        self.item(id).map(|item| item.size)
    }

    /// Images of the user's own.
    #[must_use]
    pub fn preloaded(&self) -> &[ImageArchive] {
        &self.preloaded
    }

    /// The name of an image in containerd.
    pub fn reference(&self, image: &str) -> Result<String> {
        if let Some(pulled) = self.pulled.get(image) {
            let own = pulled.reference.as_str();
            return Ok(self.registry.as_ref().map_or_else(|| own.to_owned(), |registry| under(registry, own)));
        }
        let archived = self.archived_reference(image)?;
        Ok(match (&self.registry, archived.split_once('/')) {
            (Some(registry), Some((_, rest))) => format!("{registry}/{rest}"),
            _ => archived,
        })
    }

    /// The name of an image in its archive.
    pub fn archived_reference(&self, image: &str) -> Result<String> {
        let item = self.item(&format!("image/{image}"))?;
        item.reference.clone().ok_or_else(|| Error::bug(format!("{image} is not an image")))
    }

    /// The version of an artifact.
    pub fn version(&self, id: &str) -> Result<&str> {
        self.item(id).map(|item| item.version.as_str())
    }

    /// The version of an image, made here or pulled.
    pub fn image_version(&self, image: &str) -> Result<&str> {
        match self.pulled.get(image) {
            Some(pulled) => Ok(&pulled.version),
            None => self.version(&format!("image/{image}")),
        }
    }

    /// Every artifact by its id, with its version.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.artifacts.iter().map(|(id, item)| (id.as_str(), item.version.as_str()))
    }

    /// Where an artifact lies in the cache.
    pub fn path(&self, cache: &Cache, id: &str) -> Result<PathBuf> {
        Ok(cache.blob_path(&self.item(id)?.sha256))
    }

    fn item(&self, id: &str) -> Result<&Item> {
        let missing =
            || Error::permanent(format!("{id} is not among the artifacts of this cluster")).hint("turnup bootstrap");
        self.artifacts.get(id).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<ResolvedArtifacts>(&serde_json::json!({
            "schema": ResolvedArtifacts::SCHEMA, "kubernetes": "1.36.3",
            "artifacts": {"image/etcd": {"version": "3.6.8", "sha256": "0".repeat(64), "reference": "registry.local/etcd:3.6.8"}},
            "pulled": {"csi-provisioner": {"version": "6.0.0", "reference": format!("registry.example.com/csi-provisioner:v6.0.0@sha256:{}", "0".repeat(64))}},
            "registry": "registry.example.com/k8s",
            "preloaded": [{"sha256": "0".repeat(64), "size": 1, "references": ["docker.io/library/app:1"]}],
        }));
    }
}
