//! Findings: what is wrong, where, and what was probably meant.
//!
//! Data first; `annotate-snippets` draws the pictures and appears in this file only.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Message, Renderer, Snippet};

use crate::dialect::Detected;
use crate::source::{FileId, Sources, Span};
use crate::text;

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
    /// Of a file that includes itself: all `source` lines on the way there, from the top file's on.
    pub(crate) trail: Vec<Span>,
}

impl Diagnostic {
    pub(crate) fn new(level: Level, id: &'static str, span: Span, message: impl Into<String>) -> Self {
        let label = Label { span, text: String::new() };
        Self { id, level, message: message.into(), labels: vec![label], help: None, trail: Vec::new() }
    }

    pub(crate) fn error(id: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Level::Error, id, span, message)
    }

    pub(crate) fn warning(id: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Level::Warning, id, span, message)
    }

    /// Says something about the main place.
    pub(crate) fn with_text(mut self, text: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.text = text.into();
        }
        self
    }

    /// Adds another place.
    pub(crate) fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn is_error(&self) -> bool {
        self.level == Level::Error
    }
}

/// All findings of one run, with the texts that their pictures need.
#[derive(Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    sources: Arc<Sources>,
    detected: Option<Detected>,
}

impl Diagnostics {
    pub(crate) fn new(list: Vec<Diagnostic>, sources: Arc<Sources>) -> Self {
        Self { list, sources, detected: None }
    }

    /// The same, with the rules that the tree was read by.
    pub(crate) fn with_rules(mut self, detected: Detected) -> Self {
        self.detected = Some(detected);
        self
    }

    /// Whose rules a tree that was refused was read by, and why by those.
    #[must_use]
    pub fn detected(&self) -> Option<&Detected> {
        self.detected.as_ref()
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
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
        let renderer = if plain { Renderer::plain() } else { Renderer::styled().decor_style(DecorStyle::Unicode) };
        let mut text = String::new();
        for finding in &self.list {
            text.push_str(&text::show(&renderer.render(&[self.draw(finding)])));
            text.push_str("\n\n");
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// One finding as a group of snippets, one a file, the main place's file first.
    fn draw<'d>(&'d self, finding: &'d Diagnostic) -> Group<'d> {
        let level = match finding.level {
            Level::Warning => annotate_snippets::Level::WARNING,
            Level::Error => annotate_snippets::Level::ERROR,
        };
        let mut group =
            level.primary_title(finding.message.as_str()).id(finding.id).elements(std::iter::empty::<Message<'_>>());
        let mut drawn: Vec<FileId> = Vec::new();
        for label in &finding.labels {
            let file = label.span.file;
            if drawn.contains(&file) {
                continue;
            }
            drawn.push(file);
            let same_file = finding.labels.iter().enumerate().filter(|(_, other)| other.span.file == file);
            let snippet = Snippet::source(text::show(self.sources.text(file))).path(self.sources.path(file));
            group = group.element(snippet.annotations(same_file.map(|(index, label)| self.annotate(index, label))));
        }
        match &finding.help {
            Some(help) => group.element(annotate_snippets::Level::HELP.message(help.as_str())),
            None => group,
        }
    }

    fn annotate<'d>(&self, index: usize, label: &'d Label) -> annotate_snippets::Annotation<'d> {
        let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let text = (!label.text.is_empty()).then_some(label.text.as_str());
        kind.span(self.sources.bytes(label.span)).label(text)
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
