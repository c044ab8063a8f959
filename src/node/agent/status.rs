//! How the agent stands: a file below `/run`, written only when it changes, which `turnup node
//! agent status` and `turnup status` read.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::document::{self, Document, Fields};
use crate::error::{Error, Result};
use crate::input;

use super::super::task;

/// Where it lies: gone with a restart of the host, and when the unit stops.
pub(super) const FILE: &str = "/run/turnup/agent.json";
/// How many repairs are remembered.
const REMEMBERED: usize = 20;

/// The host as the agent last saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostState {
    /// It is as its node config says.
    AsDeclared,
    /// turnup works on it.
    Busy,
    /// No node config was applied to it yet.
    Unconfigured,
    /// What the operator brought last was not applied to the end.
    Unfinished,
    /// It has not joined its cluster yet.
    Unjoined,
    /// A disk of its own is not mounted.
    DiskMissing,
    /// What it lost could not be put right, or is lost again and again.
    Unrepaired,
    /// Its member of etcd is full, differs from the others or does not answer.
    EtcdUnwell,
}

impl HostState {
    pub(super) const ALL: [Self; 8] = [
        Self::AsDeclared,
        Self::Busy,
        Self::Unconfigured,
        Self::Unfinished,
        Self::Unjoined,
        Self::DiskMissing,
        Self::Unrepaired,
        Self::EtcdUnwell,
    ];

    /// The word for it in [`FILE`].
    pub(super) fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// In words; nothing more is to be said while it is as declared.
    #[must_use]
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::AsDeclared => "as its node config says",
            Self::Busy => "turnup works on it",
            Self::Unconfigured => "no node config was applied to it yet",
            Self::Unfinished => "the last run of the operator's turnup did not come to its end",
            Self::Unjoined => "it has not joined its cluster yet",
            Self::DiskMissing => "a disk is not mounted",
            Self::Unrepaired => "not as its node config says",
            Self::EtcdUnwell => "etcd is not well",
        }
    }

    /// What goes on with a host in a state that does not end by itself.
    #[must_use]
    pub(crate) const fn next(self) -> Option<&'static str> {
        match self {
            Self::Unfinished => Some("turnup up"),
            Self::Unjoined => Some("systemctl status turnup-node (on the host)"),
            Self::DiskMissing => Some("systemctl status turnup-mounts (on the host)"),
            Self::EtcdUnwell => Some("journalctl --unit=turnup-agent (on the host)"),
            Self::Unrepaired => Some("turnup plan (shows what differs), turnup up (puts it right)"),
            Self::AsDeclared | Self::Busy | Self::Unconfigured => None,
        }
    }
}

/// What was put right at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastRepair {
    /// When.
    pub at: Timestamp,
    /// What had been lost, each in a few words.
    pub losses: Vec<String>,
}

/// The content of [`FILE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentStatus {
    /// Always [`AgentStatus::SCHEMA`](Document::SCHEMA).
    pub schema: String,
    /// How the host stands.
    pub state: HostState,
    /// What is not as it should be now, and why it stays so.
    pub problems: Vec<String>,
    /// The last repairs, the oldest first.
    pub repairs: Vec<PastRepair>,
}

impl Document for AgentStatus {
    const SCHEMA: &'static str = "turnup.agent-status/1";
    const WHAT: &'static str = "the status of a host's agent";
    const REMEDY: &'static str = "systemctl restart turnup-agent (on the host)";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("state", "word"),
            ("problems[]", "text"),
            ("repairs[].at", "text"),
            ("repairs[].losses[]", "text"),
        ])
    }
}

impl Default for AgentStatus {
    fn default() -> Self {
        let (problems, repairs) = (Vec::new(), Vec::new());
        Self { schema: Self::SCHEMA.into(), state: HostState::Unconfigured, problems, repairs }
    }
}

impl AgentStatus {
    /// What an earlier agent of this boot left; a first one begins with nothing.
    pub(super) fn read_or_default(path: &Path) -> Self {
        let known = input::read_text(path, input::DOCUMENT).ok();
        known.and_then(|text| Self::parse(&text).ok()).unwrap_or_default()
    }

    /// What the agent of this host says.
    pub(crate) fn read() -> Result<Self> {
        if !Path::new(FILE).exists() {
            return Err(Error::precondition(format!("{FILE} is missing: the agent of this host does not run"))
                .hint("systemctl status turnup-agent; journalctl -u turnup-agent"));
        }
        Self::parse(&input::read_text(Path::new(FILE), input::DOCUMENT)?)
    }

    /// From the text of [`FILE`] of any host.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        document::parse(FILE, text)
    }

    /// Remembers a repair.
    pub(super) fn add(&mut self, at: Timestamp, losses: Vec<String>) {
        self.repairs.push(PastRepair { at, losses });
        let surplus = self.repairs.len().saturating_sub(REMEMBERED);
        self.repairs.drain(..surplus);
    }

    /// As text for people, every line with its newline.
    #[must_use]
    pub(crate) fn render(&self) -> String {
        let mut lines = vec![self.state.words().to_owned()];
        lines.extend(self.problems.iter().map(|problem| format!("  {problem}")));
        lines.extend(self.state.next().map(|next| format!("next: {next}")));
        for repair in &self.repairs {
            lines.push(format!("repaired {}:", repair.at.strftime("%Y-%m-%d %H:%M:%SZ")));
            lines.extend(repair.losses.iter().map(|loss| format!("  {loss}")));
        }
        lines.join("\n")
    }
}

/// The file that has the status, and what it was last.
#[derive(Debug)]
pub(super) struct StatusFile<'p> {
    path: &'p Path,
    written: Option<AgentStatus>,
}

impl<'p> StatusFile<'p> {
    pub(super) const fn new(path: &'p Path) -> Self {
        Self { path, written: None }
    }

    /// Writes it if it is another one than before. Returns whether it did.
    pub(super) fn write(&mut self, status: &AgentStatus) -> Result<bool> {
        if self.written.as_ref() == Some(status) {
            return Ok(false);
        }
        let text = serde_json::to_string(status)
            .map_err(|error| Error::bug(format!("{FILE} cannot be written as JSON")).source(error))?;
        task::write_atomic(self.path, text.as_bytes(), 0o600, rustix::process::getuid().as_raw())?;
        self.written = Some(status.clone());
        Ok(true)
    }
}

/// One line, whatever a program said: no control character reaches the file.
pub(super) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;

    fn sample() -> serde_json::Value {
        json!({
            "schema": AgentStatus::SCHEMA, "state": "unrepaired", "problems": ["file /etc/a is missing"],
            "repairs": [{"at": "2026-01-02T03:04:05Z", "losses": ["file /etc/crictl.yaml is missing"]}],
        })
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        document::hostile::try_every_text::<AgentStatus>(&sample());
    }

    #[test]
    fn people_read_how_the_host_stands_and_what_was_repaired() {
        let status: AgentStatus = serde_json::from_value(sample()).unwrap();
        insta::assert_snapshot!(status.render(), @r"
        not as its node config says
          file /etc/a is missing
        next: turnup plan (shows what differs), turnup up (puts it right)
        repaired 2026-01-02 03:04:05Z:
          file /etc/crictl.yaml is missing
        ");
    }

    #[test]
    fn only_the_last_repairs_are_remembered() {
        let mut status = AgentStatus::default();
        for second in 0..50 {
            status.add(Timestamp::from_second(second).unwrap(), vec!["a".into()]);
        }
        assert_eq!(status.repairs.len(), REMEMBERED);
        assert_eq!(status.repairs[0].at.as_second(), 30);
    }

    #[test]
    fn a_status_is_written_once_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.json");
        let mut file = StatusFile::new(&path);
        let status: AgentStatus = serde_json::from_value(sample()).unwrap();
        assert!(file.write(&status).unwrap());
        fs_err::remove_file(&path).unwrap();
        assert!(!file.write(&status).unwrap(), "the same once more");
        assert!(!path.exists());
        assert!(file.write(&AgentStatus::default()).unwrap());
        assert_eq!(AgentStatus::read_or_default(&path), AgentStatus::default());
        assert!(file.write(&status).unwrap());
        assert_eq!(AgentStatus::read_or_default(&path), status);
        assert_eq!(one_line("a\nb\u{1b}[0m"), "a b [0m");
    }
}
