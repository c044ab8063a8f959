//! What goes into a bundle, before it is redacted.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::config::Settings;
use crate::state::Store;

/// What one file may hold; of a longer one the end is taken.
pub(super) const FILE: usize = 1 << 20;

/// What the archive is about.
pub(crate) struct BundleSubject {
    /// The cluster's name.
    pub name: String,
    /// Its directory.
    pub store: Store,
    /// The configuration, as far as it can be read.
    pub settings: Option<Settings>,
    /// The cluster, where the configuration is usable; without it no host is asked.
    pub cluster: Option<Arc<Cluster>>,
    /// Why there is no cluster, as the user is told it.
    pub trouble: Option<String>,
}

/// A file on its way into the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    /// Whether only the end of it is here.
    pub(super) cut: bool,
}

impl Item {
    pub(super) fn new(path: impl Into<String>, mut bytes: Vec<u8>) -> Self {
        let cut = bytes.len() > FILE;
        if cut {
            bytes.drain(..bytes.len() - FILE);
        }
        Self { path: path.into(), bytes, cut }
    }
}

/// What was gathered: the files, and what could not be had or was left out, each with the reason.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) items: Vec<Item>,
    pub(super) missing: Vec<(String, String)>,
}

impl Gathered {
    pub(super) fn miss(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.missing.push((what.into(), why.into()));
    }
}
