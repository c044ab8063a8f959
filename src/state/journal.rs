//! `journal.jsonl`: intent before, outcome after, both on the disk before the next thing happens.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Counts from one.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub entry: Entry,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Entry {
    /// A step is about to change something.
    Intent {
        /// The step's id.
        step: String,
        /// Digest of its inputs.
        digest: String,
    },
    /// A step ended.
    Outcome {
        /// The step's id.
        step: String,
        /// How.
        outcome: Outcome,
    },
    /// The record of a step is dropped: its host is gone, or its effect was undone.
    Forgotten {
        /// The step's id.
        step: String,
    },
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// Well.
    Done {
        /// Digest of all inputs.
        digest: String,
        /// Digest of each input.
        inputs: BTreeMap<String, String>,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// Not well.
    Failed {
        /// The cause in one line.
        message: String,
    },
}

/// The open journal.
#[derive(Debug)]
pub struct Journal {}
