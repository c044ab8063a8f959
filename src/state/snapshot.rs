//! `state.json`: what the journal adds up to. Pure: no file is touched here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Credential;
use super::journal::{JournalEntry, Line, Outcome};

/// The version that this program writes, and the newest that it reads.
pub(super) const VERSION: u32 = 1;

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
    /// The last line that is about a step: what was planned before holds as long as this stays.
    #[serde(default)]
    pub step_seq: u64,
    /// Steps that ended well, by step id.
    pub steps: BTreeMap<String, Record>,
    /// Steps that started and did not end well since.
    pub open: BTreeMap<String, Open>,
    /// Credentials that were issued, the oldest first: break-glass for good, others until the next
    /// one after their end.
    #[serde(default)]
    pub credentials: Vec<Credential>,
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

/// A step that started and did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// When it started.
    pub since: Timestamp,
    /// How it failed; nothing when the process ended in the middle.
    pub failure: Option<String>,
}

impl Default for State {
    fn default() -> Self {
        let (steps, open) = (BTreeMap::new(), BTreeMap::new());
        Self { version: VERSION, generation: 0, seq: 0, step_seq: 0, steps, open, credentials: Vec::new() }
    }
}

impl State {
    /// Whether a step has ended well whose id begins so: `bootstrap/`.
    #[must_use]
    pub fn has_ended(&self, start: &str) -> bool {
        self.steps.keys().any(|step| step.starts_with(start))
    }

    /// Takes in the lines that came after this snapshot.
    #[must_use]
    pub fn replay(mut self, lines: &[Line]) -> Self {
        for line in lines {
            self.apply(line);
        }
        self
    }

    /// Takes in one line; a line that is already part of the snapshot changes nothing.
    pub(super) fn apply(&mut self, line: &Line) {
        if line.seq <= self.seq {
            return;
        }
        self.seq = line.seq;
        if !matches!(line.entry, JournalEntry::Issued { .. }) {
            self.step_seq = line.seq;
        }
        match &line.entry {
            JournalEntry::Intent { step, .. } => {
                self.open.insert(step.clone(), Open { since: line.at, failure: None });
            }
            JournalEntry::Outcome { step, outcome: Outcome::Done { digest, inputs, elapsed_ms } } => {
                self.open.remove(step);
                let record = Record {
                    digest: digest.clone(),
                    inputs: inputs.clone(),
                    finished: line.at,
                    elapsed_ms: *elapsed_ms,
                };
                self.steps.insert(step.clone(), record);
            }
            JournalEntry::Outcome { step, outcome: Outcome::Failed { message } } => {
                let since = self.open.get(step).map_or(line.at, |open| open.since);
                self.open.insert(step.clone(), Open { since, failure: Some(message.clone()) });
            }
            JournalEntry::Forgotten { step } => {
                self.open.remove(step);
                self.steps.remove(step);
            }
            JournalEntry::Issued { credential } => {
                self.credentials.retain(|known| known.break_glass || known.expires > credential.issued);
                self.credentials.push(credential.clone());
            }
        }
    }

    /// The entries that bring an empty state to this one.
    pub(super) fn entries(&self) -> Vec<JournalEntry> {
        let done = self.steps.iter().map(|(step, record)| JournalEntry::Outcome {
            step: step.clone(),
            outcome: Outcome::Done {
                digest: record.digest.clone(),
                inputs: record.inputs.clone(),
                elapsed_ms: record.elapsed_ms,
            },
        });
        let open = self.open.iter().flat_map(|(step, open)| {
            let intent = JournalEntry::Intent { step: step.clone(), digest: String::new() };
            let failed = open
                .failure
                .clone()
                .map(|message| JournalEntry::Outcome { step: step.clone(), outcome: Outcome::Failed { message } });
            std::iter::once(intent).chain(failed)
        });
        let issued = self.credentials.iter().map(|credential| JournalEntry::Issued { credential: credential.clone() });
        done.chain(open).chain(issued).collect()
    }
}
