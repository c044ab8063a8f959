//! One thing that a step would change: what `turnup plan` shows and `turnup up --plan` holds a run
//! to. And the placeholder for values not known until apply.
//!
//! Every module speaks of changes in the words of its own field; nothing here finds or makes one, and nothing here may hold a secret.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// What kind of thing: `resource` (Terraform's), `file`, `static pod`, `unit`, `binary`, `image`, `kernel setting`, `object`, …
    pub kind: String,
    /// Its name: an address, a path, `Deployment coredns`.
    pub name: String,
    /// How it differs, line by line; lines that begin with `-` are so now, those with `+` would be. Never a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

impl Change {
    /// A change without details.
    #[must_use]
    pub fn new(verb: Verb, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { verb, kind: kind.into(), name: name.into(), lines: Vec::new() }
    }

    /// The same with the lines that differ.
    #[must_use]
    pub fn with_lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    /// Whether this is what the other one announced. What was not known then may be anything now.
    #[must_use]
    pub fn fulfils(&self, announced: &Self) -> bool {
        let same = self.verb == announced.verb && self.kind == announced.kind && self.name == announced.name;
        let mut known = announced.lines.iter().filter(|line| !is_unknown(line));
        let partly = announced.lines.iter().any(|line| is_unknown(line)) && known.all(|line| self.lines.contains(line));
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
    pub known_after: Option<String>,
    /// The whole error that looking ended with. The earlier step may cure it; if it does not, a run will end with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Preview {
    /// Nothing is known before this step has run.
    #[must_use]
    pub fn after(step: impl Into<String>) -> Self {
        Self { known_after: Some(step.into()), ..Self::default() }
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

const PLACEHOLDER: &str = "(known after ";

/// A placeholder for a value that is not known before this step has run. It is shown and never
/// used: every value derived from it contains it.
#[must_use]
pub fn known_after(step: &str) -> String {
    format!("{PLACEHOLDER}{step})")
}

/// Whether a text stands for something unknown, or has such a part.
#[must_use]
pub fn is_unknown(text: &str) -> bool {
    text.contains(PLACEHOLDER)
}

/// Whether a text is a placeholder of a plan or forecast and nothing else: `(known after STEP)`, `(made by PHASE: FILE)`.
#[must_use]
pub fn is_placeholder(text: &str) -> bool {
    (text.starts_with(PLACEHOLDER) || text.starts_with("(made by ")) && text.ends_with(')')
}

/// The step after which the first unknown part of a text is known.
#[must_use]
pub fn step_of_mark(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(PLACEHOLDER)?;
    rest.split_once(')').map(|(step, _)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let placeholder = format!("+ key {}", known_after("provision/keys"));
        assert_eq!(Preview::from(vec![file(&[&placeholder])]).find_unannounced(&other), None, "it was not known");
        let partly = Preview::from(vec![file(&[&placeholder, "+ one"])]);
        assert_eq!(partly.find_unannounced(&other), Some(&other[0]), "what was known has to be there");
        assert_eq!(Preview::after("provision/apply").find_unannounced(&other), None);
    }

    #[test]
    fn a_mark_tells_its_step_through_other_text() {
        let text = format!("instance {} of a host", known_after("provision/apply"));
        assert!(is_unknown(&text));
        assert_eq!(step_of_mark(&text), Some("provision/apply"));
        assert_eq!(step_of_mark("known"), None);
        assert!(!is_placeholder(&text) && is_placeholder(&known_after("provision/apply")));
        assert!(is_placeholder("(made by provision: ssh/id_ed25519.pub)"));
    }
}
