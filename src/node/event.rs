//! What `turnup node` says of its work: one line of JSON an event, which the operator's turnup
//! reads.

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::error::{Context as _, Result};

/// One line of progress, as JSON on standard output.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeEvent {
    /// This was changed.
    Changed(String),
    /// This is waited for.
    Waiting(String),
    /// A milestone of the cluster was reached.
    Milestone(String),
    /// All is as it should be; so many things were changed.
    Done(usize),
}

impl NodeEvent {
    /// Writes its line, for the operator to read at once.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        let line = serde_json::to_string(self).context("cannot write a report")?;
        writeln!(out, "{line}")?;
        Ok(out.flush()?)
    }
}

/// Who hears what is done.
pub(super) type Tell<'a> = &'a mut dyn FnMut(NodeEvent) -> Result<()>;
