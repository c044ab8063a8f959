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

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub level: ProblemLevel,
    /// The setting, or the unknown key, that it is about.
    pub symbol: Option<String>,
    /// Where it stands in the file.
    pub at: Option<Position>,
    /// What gave it for this run, in place of the file: `--set NAME`.
    pub given: Option<String>,
    /// One sentence.
    pub message: String,
}

impl Problem {
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self { level: ProblemLevel::Error, symbol: None, at: None, given: None, message: message.into() }
    }

    /// What is wrong with one setting.
    pub(super) fn of(setting: &str, why: impl std::fmt::Display) -> Self {
        Self::error(format!("{setting}: {why}")).about(setting)
    }

    pub(super) fn notice(message: impl Into<String>) -> Self {
        Self { level: ProblemLevel::Notice, symbol: None, at: None, given: None, message: message.into() }
    }

    pub(super) fn about(mut self, symbol: &str) -> Self {
        self.symbol = Some(symbol.to_owned());
        self
    }

    pub(super) fn at(mut self, place: Position) -> Self {
        self.at = Some(place);
        self
    }

    /// Where it stands; `path` is the file of the configuration.
    #[must_use]
    pub fn place(&self, path: &Path) -> String {
        match (&self.given, self.at) {
            (Some(given), _) => given.clone(),
            (None, Some(at)) => format!("{}:{at}", path.display()),
            (None, None) => path.display().to_string(),
        }
    }

    /// One line: place, then message.
    #[must_use]
    pub fn line(&self, path: &Path) -> String {
        format!("{}: {}", self.place(path), self.message)
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
