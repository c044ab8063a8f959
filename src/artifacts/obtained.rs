//! What was obtained for one cluster: which bytes every artifact really has. The hand-off from the artifacts step to all that follow.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Artifact, Cache, Digest, Selection, Sources, Watch};
use crate::document::Document;
use crate::{Error, Result};

/// `outputs/artifacts.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Obtained {
    schema: String,
    /// The Kubernetes version that it was obtained for.
    pub kubernetes: String,
    artifacts: BTreeMap<String, Item>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    version: String,
    sha256: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl Document for Obtained {
    const SCHEMA: &'static str = "turnup.artifacts/1";
    const WHAT: &'static str = "the list of this cluster's artifacts";
    const REMEDY: &'static str = "remove the file; turnup bootstrap writes it anew";
}

impl Obtained {
    /// Where it lies below the cluster's directory.
    pub const FILE: &'static str = "outputs/artifacts.json";
    /// Gets everything of the selection that a cluster needs.
    pub fn obtain(cache: &Cache, selection: &Selection, sources: &Sources, watch: &dyn Watch) -> Result<Self> {
        let wanted: Vec<&Artifact> = selection.required().collect();
        let blobs = cache.ensure_all(wanted.iter().copied(), sources, watch)?;
        let items = wanted.iter().zip(blobs).map(|(artifact, blob)| {
            let reference = artifact.image().map(|image| image.reference.clone());
            (artifact.id(), Item { version: artifact.version.clone(), sha256: blob.digest, reference })
        });
        let artifacts = items.collect();
        Ok(Self { schema: Self::SCHEMA.into(), kubernetes: selection.kubernetes.clone(), artifacts })
    }

    /// What the lock file pins, without looking whether it is here.
    #[must_use]
    pub fn pinned(selection: &Selection) -> Self {
        let items = selection.required().map(|artifact| {
            let reference = artifact.image().map(|image| image.reference.clone());
            (artifact.id(), Item { version: artifact.version.clone(), sha256: artifact.sha256, reference })
        });
        Self { schema: Self::SCHEMA.into(), kubernetes: selection.kubernetes.clone(), artifacts: items.collect() }
    }

    /// The first artifact that is no longer in the cache.
    #[must_use]
    pub fn find_missing(&self, cache: &Cache) -> Option<&str> {
        let gone = |item: &Item| !cache.blob_path(&item.sha256).is_file();
        self.artifacts.iter().find(|(_, item)| gone(item)).map(|(name, _)| name.as_str())
    }

    /// The digest of an artifact by its id: `kubelet`, `image/etcd`.
    pub fn sha256(&self, id: &str) -> Result<String> {
        self.item(id).map(|item| item.sha256.to_string())
    }

    /// The name of an image in containerd.
    pub fn reference(&self, image: &str) -> Result<String> {
        let item = self.item(&format!("image/{image}"))?;
        item.reference.clone().ok_or_else(|| Error::bug(format!("{image} is not an image")))
    }

    /// The version of an artifact.
    pub fn version(&self, id: &str) -> Result<&str> {
        self.item(id).map(|item| item.version.as_str())
    }

    /// Every artifact by its id, with its version.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.artifacts.iter().map(|(id, item)| (id.as_str(), item.version.as_str()))
    }

    /// Where an artifact lies in the cache.
    pub fn path(&self, id: &str) -> Result<PathBuf> {
        Ok(Cache::open()?.blob_path(&self.item(id)?.sha256))
    }

    fn item(&self, id: &str) -> Result<&Item> {
        let missing =
            || Error::permanent(format!("{id} is not among the artifacts of this cluster")).hint("turnup bootstrap");
        self.artifacts.get(id).ok_or_else(missing)
    }
}
