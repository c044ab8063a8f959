//! Feature gates that the next minor version of Kubernetes no longer has, by the tables in
//! `templates/components/`: a component with one of them would not start after the upgrade.
//!
//! What a gate may be now is judged in `component`, with all else that a component accepts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::problem::Problem;
use super::source::TreeSource;

const TABLES: &str = "templates/components";

/// The gates of all components, by the version of Kubernetes.
#[derive(Debug, Default)]
pub(super) struct Gates(BTreeMap<semver::Version, BTreeSet<String>>);

impl Gates {
    /// Those of the tables of this source. A table that cannot be read is told of where it is used.
    pub(super) fn read(source: &TreeSource) -> Self {
        let tables = source.files(TABLES).into_iter();
        let texts = tables.filter_map(|path| source.read_text(&path).ok());
        Self(texts.filter_map(|text| serde_json::from_str::<GateTable>(&text).ok()?.gates()).collect())
    }

    /// Which of these the next minor version does not have, and that version.
    pub(super) fn find_removed<'g>(
        &self,
        kubernetes: &str,
        gates: impl IntoIterator<Item = &'g str>,
    ) -> Option<(String, Vec<&'g str>)> {
        let version = semver::Version::parse(kubernetes).ok()?;
        let known = self.0.get(&version)?;
        let (next, its) =
            self.0.iter().rev().find(|(next, _)| next.major == version.major && next.minor == version.minor + 1)?;
        let is_removed = |gate: &&str| known.contains(*gate) && !its.contains(*gate);
        let removed: Vec<&str> = gates.into_iter().filter(is_removed).collect();
        (!removed.is_empty()).then(|| (format!("{}.{}", next.major, next.minor), removed))
    }

    /// A notice for the setting that has such gates.
    pub(super) fn warn<'g>(
        &self,
        kubernetes: &str,
        setting: &str,
        gates: impl IntoIterator<Item = &'g str>,
    ) -> Option<Problem> {
        let (next, removed) = self.find_removed(kubernetes, gates)?;
        let (removed, what) = (removed.join(", "), if removed.len() == 1 { "gate" } else { "gates" });
        let message = format!(
            "{setting}: Kubernetes {next} no longer has the {what} {removed}, and components refuse what they do not know; take it out before you go there"
        );
        Some(Problem::notice(message).about(setting))
    }
}

/// What is needed of the table of one version.
#[derive(Deserialize)]
struct GateTable {
    kubernetes: String,
    components: BTreeMap<String, ComponentGates>,
}

#[derive(Deserialize)]
struct ComponentGates {
    #[serde(default)]
    feature_gates: BTreeMap<String, Value>,
}

impl GateTable {
    fn gates(self) -> Option<(semver::Version, BTreeSet<String>)> {
        let version = semver::Version::parse(&self.kubernetes).ok()?;
        let gates = self.components.into_values().flat_map(|component| component.feature_gates.into_keys());
        Some((version, gates.collect()))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::config::Settings;

    const SETTING: &str = "phase2.feature_gates";

    fn notices(assignments: &[(&str, &str)]) -> Vec<String> {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set_all(assignments).unwrap();
        let problems = settings.check().into_iter();
        problems.filter(|problem| problem.symbol.as_deref() == Some(SETTING)).map(|problem| problem.message).collect()
    }

    #[test]
    fn a_gate_that_the_next_minor_version_removes_is_told_of() {
        let gates = (SETTING, "GangScheduling=true,ContextualLogging=true");
        insta::assert_snapshot!(notices(&[gates]).join("\n"), @"phase2.feature_gates: Kubernetes 1.37 no longer has the gate GangScheduling, and components refuse what they do not know; take it out before you go there");
        let version = ("phase2.kubernetes_version", "1.35.4");
        assert_eq!(notices(&[version, (SETTING, "ContextualLogging=true")]), [""; 0], "it stays");
        let newest = ("phase2.kubernetes_version", "1.37.2");
        assert_eq!(notices(&[newest, gates]), [""; 0], "nothing is known of what comes after it");
    }
}
