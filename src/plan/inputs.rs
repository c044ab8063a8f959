//! What a plan was made from, by digests: turnup itself, every setting, every template, and how far
//! the journal had come. Names the first thing that is not the same any more.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::artifacts::Digest;
use crate::cluster::Cluster;
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::state::State;

/// Where templates and steps lie in the tree.
const ROOTS: [&str; 3] = ["phases", "templates", "cluster.lock.json"];

/// How a new plan is made.
const AGAIN: &str = "turnup plan --out FILE (and look at it again)";
/// More steps than these are not named.
const STEPS: usize = 8;

/// The inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanInputs {
    /// The sha256 of turnup's own binary.
    pub turnup: String,
    /// The value of every setting; of a secret its digest.
    pub configuration: BTreeMap<String, String>,
    /// The digest of every file that says what phases do and render.
    pub templates: BTreeMap<String, String>,
    /// The number of the journal's last line about a step.
    pub journal: u64,
}

impl PlanInputs {
    pub(super) fn look(cluster: &Cluster, settings: &Settings) -> Result<Self> {
        let files = ROOTS.iter().flat_map(|root| cluster.source.files(root));
        let digest = |file: String| Ok((file.clone(), Digest::of(&cluster.source.read(&file)?).to_string()));
        Ok(Self {
            turnup: cluster.version().to_owned(),
            configuration: settings.subset_digest(&[""]),
            templates: files.map(digest).collect::<Result<_>>()?,
            journal: cluster.store.state()?.step_seq,
        })
    }

    /// Refuses another turnup, configuration or template; how far the journal has come is not
    /// looked at.
    pub(super) fn require_same(&self, now: &Self) -> Result<()> {
        if self.turnup != now.turnup {
            return Err(moved("turnup itself is another one").hint(AGAIN));
        }
        if let Some(name) = find_different(&self.configuration, &now.configuration) {
            let value =
                |plan_inputs: &Self| plan_inputs.configuration.get(name).cloned().unwrap_or_else(|| "nothing".into());
            let values = format!("the plan has {}, the configuration {}", value(self), value(now));
            return Err(moved(&format!("the configuration changed: {name}")).evidence(values).hint(AGAIN));
        }
        match find_different(&self.templates, &now.templates) {
            Some(file) => Err(moved(&format!("{file} changed")).hint(AGAIN)),
            None => Ok(()),
        }
    }

    /// The error that names the steps which the journal tells of since a plan was made.
    pub(super) fn describe_steps_since(&self, made: Timestamp, state: &State) -> Error {
        let done = state.steps.iter().filter(|(_, record)| record.finished > made).map(|(id, _)| id);
        let started = state.open.iter().filter(|(_, open)| open.since > made).map(|(id, _)| id);
        let error = moved(&format!("steps were run since line {} of the journal", self.journal)).hint(AGAIN);
        done.chain(started).take(STEPS).fold(error, |error, step| error.evidence(format!("since then: {step}")))
    }
}

fn find_different<'n>(before: &'n BTreeMap<String, String>, now: &'n BTreeMap<String, String>) -> Option<&'n str> {
    let names = before.keys().chain(now.keys());
    names.into_iter().find(|name| before.get(*name) != now.get(*name)).map(String::as_str)
}

fn moved(what: &str) -> Error {
    Error::precondition(format!("the plan is out of date: {what}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn map(items: &[(&str, &str)]) -> BTreeMap<String, String> {
        items.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn plan_inputs() -> PlanInputs {
        PlanInputs {
            turnup: "a".into(),
            configuration: map(&[("phase1.num_nodes", "1"), ("phase2.max_pods", "110")]),
            templates: map(&[("templates/addons/coredns/coredns.yaml", "1")]),
            journal: 7,
        }
    }

    #[test]
    fn the_thing_that_changed_is_named() {
        plan_inputs().require_same(&plan_inputs()).unwrap();
        let mut named = Vec::new();
        for turn in [
            (|plan_inputs| plan_inputs.turnup = "b".into()) as fn(&mut PlanInputs),
            |plan_inputs| plan_inputs.configuration = map(&[("phase1.num_nodes", "1"), ("phase2.max_pods", "120")]),
            |plan_inputs| plan_inputs.configuration = map(&[("phase1.num_nodes", "1")]),
            |plan_inputs| plan_inputs.templates = map(&[("templates/addons/coredns/coredns.yaml", "2")]),
            |plan_inputs| drop(plan_inputs.templates.insert("phases/addons/phase.toml".into(), "3".into())),
        ] {
            let mut now = plan_inputs();
            turn(&mut now);
            named.push(plan_inputs().require_same(&now).unwrap_err().render());
        }
        insta::assert_snapshot!(named.join("\n\n"));
    }

    #[test]
    fn steps_that_ran_since_are_named() {
        let line = |seq, step: &str| crate::state::Line {
            v: 1,
            seq,
            at: Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap(),
            entry: crate::state::JournalEntry::Intent { step: step.into(), digest: String::new() },
        };
        let state = State::default().replay(&[line(3, "provision/apply"), line(9, "bootstrap/api")]);
        let error = plan_inputs().describe_steps_since(Timestamp::from_second(5).unwrap(), &state);
        insta::assert_snapshot!(error.render());
    }
}
