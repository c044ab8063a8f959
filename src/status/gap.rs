//! What could not be looked at.

use serde::Serialize;

use crate::error::Error;

/// Something that could not be asked.
#[derive(Debug, Serialize)]
pub(crate) struct Gap {
    /// What: "the API", a host, a file.
    pub what: String,
    /// The reason in one line.
    pub why: String,
    /// The whole error; its class decides the exit code.
    #[serde(skip)]
    pub error: Error,
}

impl Gap {
    pub(super) fn new(what: impl Into<String>, error: Error) -> Self {
        // What a tool said last says more than that it failed.
        let said =
            error.evidence_lines().iter().rev().find(|line| !line.starts_with("log: ") && !line.starts_with("$ "));
        let said = said.filter(|said| !error.message().contains(said.trim()));
        let why = said.map_or_else(|| error.message().to_owned(), |said| format!("{}: {said}", error.message()));
        Self { what: what.into(), why, error }
    }
}
