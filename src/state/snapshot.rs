//! `state.json`: what the journal adds up to.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The state of one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Version of the file format.
    pub version: u32,
    /// Grows by one with every write.
    pub generation: u64,
    /// The last line of the journal that is part of this snapshot.
    pub seq: u64,
    /// Steps that ended well, by step id.
    pub steps: BTreeMap<String, Record>,
    /// Steps that were begun and did not end well since.
    pub open: BTreeMap<String, Open>,
}

/// What is known about a step that ended well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Digest of all inputs.
    pub digest: String,
    /// Digest of each input, so that a plan can name the one that changed.
    pub inputs: BTreeMap<String, String>,
    /// When it ended.
    pub finished: Timestamp,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

/// A step that was begun and did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// When it was begun.
    pub since: Timestamp,
    /// How it failed; nothing when the process ended in the middle.
    pub failure: Option<String>,
}
