//! What a step depends on, and whether it changed.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::unknown;

/// Names with values or digests. Only digests of the values are ever stored, so a value may be a
/// secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    digests: BTreeMap<String, String>,
    unknown: BTreeSet<String>,
}

impl Inputs {
    /// No inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds one input.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        self.insert(name, value);
        self
    }
    /// Adds one input.
    pub fn insert(&mut self, name: impl Into<String>, value: impl AsRef<[u8]>) {
        let (name, value) = (name.into(), value.as_ref());
        if unknown::is_in(value) {
            self.unknown.insert(name.clone());
        }
        self.digests.insert(name, hex::encode(Sha256::digest(unknown::shown_bytes(value))));
    }
    /// Adds many inputs.
    pub fn extend<N: Into<String>, V: AsRef<[u8]>>(&mut self, items: impl IntoIterator<Item = (N, V)>) {
        for (name, value) in items {
            self.insert(name, value);
        }
    }
    /// The digest of each input.
    #[must_use]
    pub fn fingerprints(&self) -> &BTreeMap<String, String> {
        &self.digests
    }
    /// The inputs whose values are not known until apply, in a plan; in a run there are none.
    #[must_use]
    pub fn unknown(&self) -> &BTreeSet<String> {
        &self.unknown
    }
    /// One digest of all of them.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, value) in &self.digests {
            // Lengths first: no two different lists can run together into the same bytes.
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update((value.len() as u64).to_le_bytes());
            hash.update(value);
        }
        hex::encode(hash.finalize())
    }
    /// The names whose value differs from these fingerprints, was added or is gone.
    #[must_use]
    pub fn diff(&self, old: &BTreeMap<String, String>) -> Vec<String> {
        let changed = self.digests.iter().filter(|(name, value)| old.get(*name) != Some(value)).map(|(name, _)| name);
        let gone = old.keys().filter(|name| !self.digests.contains_key(*name));
        let mut names: Vec<String> = changed.chain(gone).cloned().collect();
        names.sort();
        names
    }
}
