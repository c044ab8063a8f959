//! The result of a validation: one line a check, for people and for programs.

use serde::Serialize;

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::report::Table;

/// Name and version of the JSON form.
const SCHEMA: &str = "turnup.validation/1";

/// The result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ValidationReport {
    schema: &'static str,
    /// The cluster's name.
    pub cluster: String,
    /// Whether probe pods were started.
    pub deep: bool,
    /// Whether every check was passed.
    pub ok: bool,
    /// The checks in the order in which they were made.
    pub checks: Vec<CheckResult>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CheckResult {
    /// What was checked: `node`, `static pod`, `pod to pod`, …
    pub check: &'static str,
    /// On what: a node, a pod.
    pub subject: String,
    /// Whether it was passed.
    pub ok: bool,
    /// What was seen.
    pub seen: String,
    /// The command that shows more, when it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl CheckResult {
    pub(super) fn passed(check: &'static str, subject: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { check, subject: subject.into(), ok: true, seen: seen.into(), next: None }
    }

    pub(super) fn failed(
        check: &'static str,
        subject: impl Into<String>,
        seen: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { check, subject: subject.into(), ok: false, seen: seen.into(), next: Some(next.into()) }
    }
}

impl ValidationReport {
    pub(super) fn new(cluster: &Cluster, deep: bool, checks: Vec<CheckResult>) -> Self {
        let ok = checks.iter().all(|check| check.ok);
        Self { schema: SCHEMA, cluster: cluster.settings.name.clone(), deep, ok, checks }
    }

    /// The checks as a table for people.
    #[must_use]
    pub(crate) fn table(&self) -> String {
        let mut table = Table::new(&["CHECK", "ON", "RESULT", "SEEN"]);
        for check in &self.checks {
            table.row([check.check, &*check.subject, if check.ok { "ok" } else { "FAILED" }, &*check.seen]);
        }
        table.render()
    }

    /// An error that names every failed check and the command that shows more about the first.
    pub(crate) fn into_result(self) -> Result<()> {
        let failed: Vec<&CheckResult> = self.checks.iter().filter(|check| !check.ok).collect();
        let Some(first) = failed.first() else { return Ok(()) };
        let message =
            format!("{} of {} checks of the cluster {} failed", failed.len(), self.checks.len(), self.cluster);
        let error = Error::permanent(message).hint(first.next.clone().unwrap_or_else(|| "turnup status".into()));
        Err(failed
            .iter()
            .fold(error, |error, check| error.evidence(format!("{} {}: {}", check.check, check.subject, check.seen))))
    }
}
