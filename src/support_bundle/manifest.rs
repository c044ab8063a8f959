//! `MANIFEST.json`: what is in the archive, what was taken out, and what is missing. It holds no
//! content.

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::gathered::Item;
use crate::error::{Error, Result};

/// Its name in the archive.
pub(super) const FILE: &str = "MANIFEST.json";
/// What is never taken, whatever is in it.
const NEVER: [&str; 7] = [
    "pki/: keys",
    "ssh/: keys",
    "kubeconfig: the administrator's key",
    "provision/: Terraform's variables and state",
    "user-data/: the tokens with which workers join",
    "addons/ and validate/: manifests may hold Secrets",
    "hosts/: the disks of local hosts",
];

/// What is in an archive.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BundleManifest {
    /// `turnup.support-bundle/1`; it grows only by new fields.
    pub schema: &'static str,
    /// The turnup that made it.
    pub turnup: &'static str,
    /// When.
    pub at: Timestamp,
    /// The cluster's name.
    pub cluster: String,
    /// Every file.
    pub files: Vec<BundleEntry>,
    /// What could not be had or did not fit, with the reason: hosts that do not answer, files that
    /// cannot be read.
    pub missing: Vec<(String, String)>,
    /// What of a cluster's directory is never taken.
    pub never: [&'static str; 7],
    /// How many secrets of the configuration are too short to be searched for in texts.
    pub unsearchable: usize,
}

/// A file in the archive.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BundleEntry {
    /// Its path.
    pub path: String,
    /// Its length.
    pub bytes: usize,
    /// The digest of its content.
    pub sha256: String,
    /// Whether only the end of it is there.
    pub cut: bool,
    /// How many secrets were taken out of it.
    pub removed: usize,
}

impl BundleManifest {
    pub(super) fn new(cluster: &str) -> Self {
        Self {
            schema: "turnup.support-bundle/1",
            turnup: env!("CARGO_PKG_VERSION"),
            at: Timestamp::now(),
            cluster: cluster.to_owned(),
            files: Vec::new(),
            missing: Vec::new(),
            never: NEVER,
            unsearchable: 0,
        }
    }

    pub(super) fn add(&mut self, item: &Item, removed: usize) {
        self.files.push(BundleEntry {
            path: item.path.clone(),
            bytes: item.bytes.len(),
            sha256: hex::encode(Sha256::digest(&item.bytes)),
            cut: item.cut,
            removed,
        });
    }

    /// How many secrets were taken out of all files.
    #[must_use]
    pub(crate) fn removed(&self) -> usize {
        self.files.iter().map(|file| file.removed).sum()
    }

    pub(super) fn render(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| Error::bug("the manifest is no JSON").source(error))
    }
}
