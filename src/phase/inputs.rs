//! What a step depends on, and whether it changed.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// Names with values or digests. Only digests of the values are ever stored, so a value may be a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(BTreeMap<String, String>);

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
        self.0.insert(name.into(), hex::encode(Sha256::digest(value.as_ref())));
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
        &self.0
    }
    /// One digest of all of them.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, value) in &self.0 {
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
        let changed = self.0.iter().filter(|(name, value)| old.get(*name) != Some(value)).map(|(name, _)| name);
        let gone = old.keys().filter(|name| !self.0.contains_key(*name));
        let mut names: Vec<String> = changed.chain(gone).cloned().collect();
        names.sort();
        names
    }
}
