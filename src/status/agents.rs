//! How the agents of the hosts stand, by what the hosts said. Those that run and have nothing to
//! tell are passed over in the text.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::error::Result;
use crate::node::agent::{AgentStatus, PastRepair};

/// Repairs of this time are shown.
const RECENT: SignedDuration = SignedDuration::from_hours(24);

/// The agent of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HostAgent {
    /// The name of the host.
    pub host: String,
    /// Whether its unit runs.
    pub runs: bool,
    /// What it last said of the host; nothing where it did not yet.
    pub status: Option<AgentStatus>,
}

impl HostAgent {
    /// From the state of its unit in the words of systemd, and from its file.
    pub(super) fn read(host: &str, state: &str, status: &str) -> Result<Self> {
        let status = Some(status).filter(|status| !status.is_empty());
        let status = status.map(AgentStatus::parse).transpose()?;
        Ok(Self { host: host.to_owned(), runs: state == "active", status })
    }

    /// What there is to tell, a line each.
    pub(super) fn news(&self, now: Timestamp) -> Vec<String> {
        let host = &self.host;
        if !self.runs {
            return vec![format!("{host}: turnup-agent.service does not run: turnup up (starts it)")];
        }
        let Some(status) = &self.status else { return Vec::new() };
        let mut lines = Vec::new();
        if let Some(next) = status.state.next() {
            let parts = [&[status.state.words().to_owned()], &status.problems[..], &[next.to_owned()]].concat();
            lines.push(format!("{host}: {}", parts.join(": ")));
        }
        let is_recent = |repair: &&PastRepair| now.duration_since(repair.at) < RECENT;
        let recent: Vec<&PastRepair> = status.repairs.iter().filter(is_recent).collect();
        if let Some(last) = recent.last() {
            let times = if recent.len() == 1 { String::new() } else { format!(" {} times", recent.len()) };
            let what = last.losses.join(", ");
            lines.push(format!(
                "{host}: repaired{times} in the last day, last at {}: {what}",
                last.at.strftime("%H:%M:%SZ")
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    const STATUS: &str = r#"{"schema": "turnup.agent-status/1", "state": "unrepaired",
        "problems": ["file /etc/ca.key is missing", "a repair failed: ca.key was not sent"],
        "repairs": [{"at": "2026-01-01T00:00:00Z", "losses": ["file /etc/a is missing"]},
            {"at": "2026-01-02T03:04:05Z", "losses": ["file /etc/b is missing"]}]}"#;

    #[test]
    fn what_is_wrong_and_what_was_repaired_is_told() {
        let now: Timestamp = "2026-01-02T04:00:00Z".parse().unwrap();
        let told = |state: &str, status: &str| HostAgent::read("w0", state, status).unwrap().news(now).join("\n");
        insta::assert_snapshot!(told("active", STATUS), @r"
        w0: not as its node config says: file /etc/ca.key is missing: a repair failed: ca.key was not sent: turnup plan (shows what differs), turnup up (puts it right)
        w0: repaired in the last day, last at 03:04:05Z: file /etc/b is missing
        ");
        assert_eq!(told("active", ""), "");
        let well = r#"{"schema": "turnup.agent-status/1", "state": "as-declared", "problems": [], "repairs": []}"#;
        assert_eq!(told("active", well), "");
        for state in ["failed", "inactive", "activating", ""] {
            assert_eq!(told(state, STATUS), "w0: turnup-agent.service does not run: turnup up (starts it)");
        }
        assert!(HostAgent::read("w0", "active", "{}").is_err());
    }
}
