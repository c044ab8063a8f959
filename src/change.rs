//! One thing that a step would change: what `turnup plan` shows and `turnup up --plan` holds a run
//! to.
//!
//! Every module speaks of changes in the words of its own field; nothing here finds or makes one,
//! and nothing here may hold a secret.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Class, Error};
use crate::step_id::StepId;
use crate::unknown;

/// What would happen to a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// It is not there and would be made.
    Create,
    /// It would be another one in the same place.
    Update,
    /// It would be removed and made again.
    Replace,
    /// It would be removed.
    Delete,
    /// It runs, and would be stopped and started.
    Restart,
    /// It does not run, and would be started.
    Start,
    /// A command would be run.
    Run,
}

impl Verb {
    /// Terraform's sign where it has one.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Create => "+",
            Self::Update => "~",
            Self::Replace => "-/+",
            Self::Delete => "-",
            Self::Restart | Self::Start => "!",
            Self::Run => "$",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "change",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Restart => "restart",
            Self::Start => "start",
            Self::Run => "run",
        }
    }
}

/// One thing, and what would happen to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// What would happen.
    pub verb: Verb,
    /// What kind of thing: `resource` (Terraform's), `file`, `static pod`, `unit`, `binary`,
    /// `image`, `kernel setting`, `object`, …
    pub kind: String,
    /// Its name: an address, a path, `Deployment coredns`.
    pub name: String,
    /// How it differs, line by line; lines that begin with `-` are so now, those with `+` would be.
    /// Never a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// Which of the lines, by their index, have a value that is not known yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<usize>,
}

impl Change {
    /// A change without details.
    #[must_use]
    pub fn new(verb: Verb, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { verb, kind: kind.into(), name: name.into(), lines: Vec::new(), unknown: BTreeSet::new() }
    }

    /// The same with the lines that differ. Placeholders in them become words, and which lines have
    /// some is noted.
    #[must_use]
    pub fn with_lines(mut self, lines: Vec<String>) -> Self {
        let has_unknown = lines.iter().enumerate().filter(|(_, line)| unknown::is_in(line));
        self.unknown.extend(has_unknown.map(|(at, _)| at));
        let shown = |line: String| if unknown::is_in(&line) { unknown::shown(&line).into_owned() } else { line };
        self.lines = lines.into_iter().map(shown).collect();
        self
    }

    /// Whether this is what the other one announced. What was not known then may be anything now.
    #[must_use]
    pub fn fulfils(&self, announced: &Self) -> bool {
        let same = self.verb == announced.verb && self.kind == announced.kind && self.name == announced.name;
        let mut known = announced.lines.iter().enumerate().filter(|(at, _)| !announced.unknown.contains(at));
        let partly = !announced.unknown.is_empty() && known.all(|(_, line)| self.lines.contains(line));
        same && (partly || self.lines == announced.lines)
    }
}

impl Change {
    /// What is wrong with the thing as it is now: `file /etc/a is missing`.
    #[must_use]
    pub fn describe_fault(&self) -> String {
        let fault = match self.verb {
            Verb::Create => "is missing",
            Verb::Delete => "should not be there",
            Verb::Start => "does not run",
            Verb::Restart => "runs with what was before",
            Verb::Update | Verb::Replace | Verb::Run => "is not as it should be",
        };
        format!("{} {} {fault}", self.kind, self.name)
    }
}

impl fmt::Display for Change {
    /// `change file /var/lib/kubelet/config.yaml`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb.word(), self.kind, self.name)
    }
}

/// Changes, as far as they can be known before they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    /// What is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The step that has to run before the rest can be known; none when this is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_after: Option<StepId>,
    /// The whole error that looking ended with. The earlier step may cure it; if it does not, a run
    /// will end with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The class of that error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_class: Option<Class>,
}

impl Preview {
    /// Nothing is known before this step has run.
    #[must_use]
    pub fn after(step: StepId) -> Self {
        Self { known_after: Some(step), ..Self::default() }
    }

    /// The same when looking ended with this error.
    #[must_use]
    pub fn failed(self, error: &Error) -> Self {
        Self { failed: Some(error.render()), failed_class: Some(error.class()), ..self }
    }

    /// With words in place of the placeholders, which come back in what hosts and programs say of a
    /// plan's values.
    #[must_use]
    pub fn shown(mut self) -> Self {
        let shown = |change: Change| Change { lines: Vec::new(), ..change.clone() }.with_lines(change.lines);
        self.changes = self.changes.into_iter().map(shown).collect();
        self.failed = self.failed.map(|failed| unknown::shown(&failed).into_owned());
        self
    }

    /// The first change that the plan did not announce; none when all were, or when the
    /// announcement is incomplete.
    #[must_use]
    pub fn find_unannounced<'c>(&self, changes: &'c [Change]) -> Option<&'c Change> {
        if self.known_after.is_some() {
            return None;
        }
        changes.iter().find(|change| !self.changes.iter().any(|announced| change.fulfils(announced)))
    }
}

impl From<Vec<Change>> for Preview {
    fn from(changes: Vec<Change>) -> Self {
        Self { changes, ..Self::default() }
    }
}

/// How many lines of one thing a plan shows.
const LINES: usize = 60;

/// Cuts lines that are too many to be read, and says how many more there are.
#[must_use]
pub fn shorten(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.truncate(LINES);
        lines.push(format!("… and {more} more lines"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: StepId = StepId::of("provision", "keys");

    #[test]
    fn what_was_announced_is_admitted_and_nothing_else() {
        let file = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            Change::new(Verb::Update, "file", "/etc/a").with_lines(lines)
        };
        let announced = Preview::from(vec![file(&["+ one"])]);
        assert_eq!(announced.find_unannounced(&[file(&["+ one"])]), None);
        assert_eq!(announced.find_unannounced(&[]), None, "what is done already need not be done");
        let other = [file(&["+ two"])];
        assert_eq!(announced.find_unannounced(&other), Some(&other[0]));
        let new = [Change::new(Verb::Create, "file", "/etc/b")];
        assert_eq!(announced.find_unannounced(&new), Some(&new[0]));
        let placeholder = format!("+ key {}", unknown::after(&KEYS));
        assert_eq!(Preview::from(vec![file(&[&placeholder])]).find_unannounced(&other), None, "it was not known");
        let partly = Preview::from(vec![file(&[&placeholder, "+ one"])]);
        assert_eq!(partly.find_unannounced(&other), Some(&other[0]), "what was known has to be there");
        assert_eq!(Preview::after(KEYS).find_unannounced(&other), None);
    }

    #[test]
    fn words_of_a_users_own_are_no_placeholder() {
        let file = |line: &str| Change::new(Verb::Update, "file", "/etc/motd").with_lines(vec![line.to_owned()]);
        for words in ["+ (known after x)", "+ (made by provision: y)", "+ (known after provision/keys)"] {
            let announced = Preview::from(vec![file(words)]);
            let text = serde_json::to_string(&announced).unwrap_or_default();
            assert_eq!(serde_json::from_str::<Preview>(&text).ok().as_ref(), Some(&announced));
            let other = [file("+ something else")];
            assert_eq!(announced.find_unannounced(&other), Some(&other[0]), "{words}");
            assert_eq!(announced.find_unannounced(&[file(words)]), None);
        }
    }

    #[test]
    fn what_comes_back_from_a_host_is_shown_in_words() {
        let line = format!("+ {}", unknown::after(&KEYS));
        let raw = Change { lines: vec!["+ a".to_owned(), line], ..Change::new(Verb::Update, "file", "/etc/a") };
        let shown = Preview::from(vec![raw]).shown();
        assert_eq!(shown.changes[0].lines, ["+ a", "+ (known after provision/keys)"]);
        assert_eq!(shown.changes[0].unknown, BTreeSet::from([1]));
        assert_eq!(shown.clone().shown(), shown);
    }
}
