//! The one error type that reaches the user: what happened, the evidence, the cause, and the next
//! command.
//!
//! Every module returns it. It never prints: `main` renders the last one. It never holds a secret:
//! modules mask before they report.

use std::error::Error as StdError;
use std::fmt;

use crate::terminal;

/// What kind of failure this is; it decides whether a step is tried again and how the process
/// exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The command line is wrong.
    Usage,
    /// The configuration is wrong or missing.
    Config,
    /// A precondition must be met first: a missing tool, a port in use, no disk space.
    Precondition,
    /// May pass by itself; tried again inside the step's timeout, then given up.
    Transient,
    /// Will fail the same way again.
    Permanent,
    /// Another turnup works on this cluster.
    Locked,
    /// Stopped by a signal at a resumable point.
    Interrupted,
    /// A defect of turnup itself.
    Bug,
}

impl Class {
    /// The exit code of the process, as `turnup --help` documents it.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Permanent => 1,
            Self::Usage => 2,
            Self::Config => 3,
            Self::Precondition => 4,
            Self::Transient => 5,
            Self::Locked => 6,
            Self::Bug => 70,
            Self::Interrupted => 130,
        }
    }
}

impl Class {
    const ALL: [Self; 8] = [
        Self::Permanent,
        Self::Usage,
        Self::Config,
        Self::Precondition,
        Self::Transient,
        Self::Locked,
        Self::Bug,
        Self::Interrupted,
    ];

    /// The class behind the exit code of another turnup; none for a code that turnup never gives.
    #[must_use]
    pub fn from_exit_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|class| i32::from(class.exit_code()) == code)
    }
}

/// A failure as the user needs it.
#[derive(Debug)]
pub struct Error {
    class: Class,
    place: Option<String>,
    message: String,
    evidence: Vec<String>,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The error that ends a command, as `--output json` prints it.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub struct ErrorDocument<'a> {
    /// The name and version of this form.
    schema: &'static str,
    /// What kind of failure it is.
    class: Class,
    /// The exit code of the process.
    exit_code: u8,
    /// What happened, in one sentence.
    message: String,
    /// The errors that caused it, the nearest first.
    causes: Vec<String>,
    /// Output of tools and observed values.
    evidence: &'a [String],
    /// The next command, or what has to be changed.
    next: Option<&'a str>,
}

impl ErrorDocument<'_> {
    /// The name and version of the form, which `schemas/error-1.json` describes.
    pub const SCHEMA: &'static str = "turnup.error/1";
}

/// The result of everything whose failure reaches the user.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $class:ident),* $(,)?) => {
        $($(#[$doc])* #[must_use] pub fn $name(message: impl Into<String>) -> Self { Self::new(Class::$class, message) })*
    };
}

impl Error {
    /// An error of this class; the message is one sentence that does not repeat its source.
    #[must_use]
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, place: None, message: message.into(), evidence: Vec::new(), hint: None, source: None }
    }

    constructors! {
        /// The command line is wrong.
        usage => Usage,
        /// The configuration is wrong or missing.
        config => Config,
        /// A precondition must be met first.
        precondition => Precondition,
        /// May pass by itself.
        transient => Transient,
        /// Will fail the same way again.
        permanent => Permanent,
        /// Stopped by a signal.
        interrupted => Interrupted,
        /// A defect of turnup.
        bug => Bug,
    }

    /// Where in the user's files it stands, as `.config.json:3:5`: shown before the message.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// The exact next command, or what the user has to change.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// One more line of evidence: output of a tool, an observed value.
    #[must_use]
    pub fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// A line of evidence for each of these things, the first 20 of them, and how many more there
    /// are.
    #[must_use]
    pub fn evidence_of(self, things: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        const LISTED: usize = 20;
        let mut things = things.into_iter();
        let error = things.by_ref().take(LISTED).fold(self, |error, thing| error.evidence(thing.to_string()));
        match things.count() {
            0 => error,
            more => error.evidence(format!("and {more} more")),
        }
    }

    /// The same without the log's name, also as what to read next: for work in a directory that is
    /// gone when the error is read.
    #[must_use]
    pub fn without_log(mut self) -> Self {
        self.evidence.retain(|line| !line.starts_with("log: "));
        self.hint = self.hint.filter(|hint| !hint.starts_with("less "));
        self
    }

    /// The error that caused this one.
    #[must_use]
    pub fn source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// The class.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// The message alone, without its place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The lines of evidence.
    #[must_use]
    pub fn evidence_lines(&self) -> &[String] {
        &self.evidence
    }

    /// Whether the message or a line of evidence has these words.
    #[must_use]
    pub fn says(&self, words: &str) -> bool {
        self.message().contains(words) || self.evidence.iter().any(|line| line.contains(words))
    }

    /// Whether it says nothing about what was asked: the other side is away, or a signal came.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.class(), Class::Transient | Class::Interrupted)
    }

    /// Message and evidence in one line, without the next command: for the journal of a unit.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let lines = self.evidence.iter().map(String::as_str);
        [self.message()].into_iter().chain(lines).collect::<Vec<_>>().join(": ")
    }

    /// The next command, when one is known.
    #[must_use]
    pub fn next(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The whole report: `error:`, `caused by:` lines, evidence, `next:`. No colour, ends without a
    /// newline.
    ///
    /// Much of it is what hosts and other programs said: control characters are escaped, and
    /// further lines of a part are indented, so that none of them looks like another part.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        push_part(&mut text, "error: ", &self.to_string());
        let mut cause = StdError::source(self);
        while let Some(error) = cause {
            push_part(&mut text, "\n  caused by: ", &error.to_string());
            cause = error.source();
        }
        for line in &self.evidence {
            push_part(&mut text, "\n  | ", line);
        }
        if let Some(hint) = &self.hint {
            push_part(&mut text, "\nnext: ", hint);
        }
        text
    }

    /// The same for programs.
    #[must_use]
    pub fn document(&self) -> ErrorDocument<'_> {
        let causes = std::iter::successors(StdError::source(self), |error| (*error).source());
        ErrorDocument {
            schema: ErrorDocument::SCHEMA,
            class: self.class,
            exit_code: self.class.exit_code(),
            message: self.to_string(),
            causes: causes.map(ToString::to_string).collect(),
            evidence: &self.evidence,
            next: self.next(),
        }
    }

    /// The error that another turnup, on a host or below Terraform, ended with: the reverse of
    /// [`Error::render`], causes as evidence.
    #[must_use]
    pub fn from_rendered(code: i32, text: &str) -> Option<Self> {
        let class = Class::from_exit_code(code)?;
        let at = text.match_indices("error: ").map(|(at, _)| at).find(|at| *at == 0 || text[..*at].ends_with('\n'))?;
        let mut lines = text[at + "error: ".len()..].lines();
        let mut error = Self::new(class, lines.next()?);
        for line in lines.filter(|line| !line.trim().is_empty()) {
            error = match line.strip_prefix("next: ") {
                Some(hint) => error.hint(hint),
                None => error.evidence(line.trim_start().trim_start_matches("| ")),
            };
        }
        Some(error)
    }
}

fn push_part(text: &mut String, head: &str, part: &str) {
    let mut lines = part.lines();
    text.push_str(head);
    text.push_str(&terminal::line(lines.next().unwrap_or_default()));
    for line in lines {
        text.push_str("\n  | ");
        text.push_str(&terminal::line(line));
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<std::io::Error> for Error {
    /// `fs_err` already names the path, so the message is the error itself.
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        let hint = match error.kind() {
            Kind::StorageFull | Kind::QuotaExceeded => "free disk space there, then run the same command again",
            Kind::PermissionDenied => "run as the user that owns it, or with sudo",
            Kind::ReadOnlyFilesystem => "make that file system writable, or use a directory on another one",
            _ => return Self::new(Class::Permanent, error.to_string()),
        };
        Self::new(Class::Precondition, error.to_string()).hint(hint)
    }
}

/// Adds what was being done to an error of a library.
pub trait Context<T> {
    /// A permanent error with this message and the library's error as its cause.
    fn context(self, message: impl Into<String>) -> Result<T>;
    /// The same with a class of its own.
    fn context_class(self, class: Class, message: impl Into<String>) -> Result<T>;
}

impl<T, E: StdError + Send + Sync + 'static> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.context_class(Class::Permanent, message)
    }

    fn context_class(self, class: Class, message: impl Into<String>) -> Result<T> {
        self.map_err(|error| Error::new(class, message).source(error))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn what_another_turnup_said_is_read_back() {
        let cause = std::io::Error::other("no such device");
        let error = Error::precondition("port 6443 is in use").evidence("LISTEN").source(cause).hint("stop it");
        let text = format!("a remark\n{}\n", error.render());
        let read = Error::from_rendered(4, &text).unwrap();
        assert_eq!(read.class(), Class::Precondition);
        assert_eq!((read.message(), read.next()), ("port 6443 is in use", Some("stop it")));
        assert_eq!(read.evidence_lines(), ["caused by: no such device", "LISTEN"]);
        assert!(Error::from_rendered(0, &text).is_none(), "success is no error");
        assert!(Error::from_rendered(9, &text).is_none(), "no exit code of ours");
        assert!(Error::from_rendered(4, "Terror: none\n").is_none());
    }

    #[test]
    fn what_others_said_forges_no_other_part() {
        let error = Error::transient("a\x1b[2J\rb\nnext: rm -rf /")
            .evidence("said\nerror: none\n\x1b]0;t\x07")
            .hint("try \u{202e}again\nerror: all is well");
        let shown = "error: a\\x1b[2J\\rb\n  | next: rm -rf /\n  | said\n  | error: none\n  | \\x1b]0;t\\x07\nnext: try \\u{202e}again\n  | error: all is well";
        assert_eq!(error.render(), shown);
    }

    #[test]
    fn the_published_schema_is_that_of_the_document() {
        let mut schema = schemars::schema_for!(ErrorDocument<'_>);
        schema.insert("$id".into(), "urn:turnup:error:1".into());
        schema.insert("title".into(), ErrorDocument::SCHEMA.into());
        let text = serde_json::to_string_pretty(&schema).unwrap();
        assert_eq!(include_str!("../schemas/error-1.json").trim_end(), text, "schemas/error-1.json has to be:\n{text}");
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let error = Error::transient("no answer").evidence("a").source(std::io::Error::other("b")).hint("c");
        let document = serde_json::to_value(error.document()).unwrap();
        assert!(validator.is_valid(&document), "{document}");
        assert_eq!((&document["causes"][0], &document["exit_code"]), (&"b".into(), &5.into()));
    }

    #[test]
    fn every_class_is_known_by_its_exit_code() {
        for class in Class::ALL {
            assert_eq!(Class::from_exit_code(class.exit_code().into()), Some(class));
        }
    }
}
