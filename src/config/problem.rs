//! What is wrong with, or worth knowing about, a configuration: data, so that each front-end shows
//! it in its own way.

use std::path::Path;

use super::json::Position;
use crate::error::{Error, Result};

/// Whether the configuration can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemLevel {
    /// It cannot.
    Error,
    /// It can; the user may want to know.
    Notice,
}

/// What a finding is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemSource {
    /// The file of the configuration.
    File,
    /// A value for this run alone, in place of the file: `--set NAME`.
    Run(String),
    /// No setting of either: an inventory, a lock file. The message says where.
    Elsewhere,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub level: ProblemLevel,
    /// The setting, or the unknown key, that it is about.
    pub symbol: Option<String>,
    /// Where it stands in the file.
    pub at: Option<Position>,
    /// What it is in.
    pub source: ProblemSource,
    /// One sentence.
    pub message: String,
}

impl Problem {
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self::new(ProblemLevel::Error, message)
    }

    /// What is wrong with one setting.
    pub(super) fn of(setting: &str, why: impl std::fmt::Display) -> Self {
        Self::error(format!("{setting}: {why}")).about(setting)
    }

    pub(super) fn notice(message: impl Into<String>) -> Self {
        Self::new(ProblemLevel::Notice, message)
    }

    fn new(level: ProblemLevel, message: impl Into<String>) -> Self {
        Self { level, symbol: None, at: None, source: ProblemSource::File, message: message.into() }
    }

    pub(super) fn about(mut self, symbol: &str) -> Self {
        self.symbol = Some(symbol.to_owned());
        self
    }

    pub(super) fn at(mut self, place: Position) -> Self {
        self.at = Some(place);
        self
    }

    /// Where it stands, unless its message says that; `path` is the file of the configuration.
    fn place(&self, path: &Path) -> Option<String> {
        match (&self.source, self.at) {
            (ProblemSource::Elsewhere, _) => None,
            (ProblemSource::Run(option), _) => Some(option.clone()),
            (ProblemSource::File, Some(at)) => Some(format!("{}:{at}", path.display())),
            (ProblemSource::File, None) => Some(path.display().to_string()),
        }
    }

    /// The error that it is made of, at its place.
    #[must_use]
    pub fn locate(&self, error: Error, path: &Path) -> Error {
        match self.place(path) {
            Some(place) => error.at(place),
            None => error,
        }
    }

    /// One line: place, then message.
    #[must_use]
    pub fn line(&self, path: &Path) -> String {
        self.place(path).map_or_else(|| self.message.clone(), |place| format!("{place}: {}", self.message))
    }

    /// As one member of a list in JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "level": self.level,
            "setting": self.symbol,
            "line": self.at.map(|at| at.line),
            "column": self.at.map(|at| at.column),
            "message": self.message,
        })
    }
}

/// What to do where a file has mistakes.
pub const CORRECT: &str =
    "correct the file, or set values: turnup config set NAME=VALUE; remove keys: turnup config unset NAME";

/// One error that lists all problems that make a configuration unusable; nothing when none does.
/// `path` is its file.
pub fn refuse(path: &Path, problems: &[Problem]) -> Result<()> {
    let errors: Vec<&Problem> = problems.iter().filter(|problem| problem.level == ProblemLevel::Error).collect();
    let error = match errors.as_slice() {
        [] => return Ok(()),
        [one] => Error::config(one.line(path)),
        many => {
            let error = Error::config(format!("{} has {} mistakes", path.display(), many.len()));
            many.iter().fold(error, |error, problem| error.evidence(problem.line(path)))
        }
    };
    Err(error.hint(CORRECT))
}
