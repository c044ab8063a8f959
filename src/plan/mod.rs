//! The plan: what `turnup up` would do in all three phases, and why, as one file that the user
//! reads and that a run can be held to.
//!
//! It asks hosts, Terraform and the API what they are, and changes nothing: the phases work on a
//! shadow of the cluster's directory. What is not known before an earlier step has run is shown as
//! such, and never made up.

mod duration;
mod impact;
mod inputs;
mod text;

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use duration::Estimate;
pub(crate) use impact::Impact;
pub(crate) use inputs::PlanInputs;

use impact::is_moving;

use crate::cluster::Cluster;
use crate::config::{Settings, TreeSource};
use crate::document::{self, Document, Fields};
use crate::error::{Class, Error, Result};
use crate::phase::{ApprovedPlan, Decision, Engine, Phase, PlannedStep};
use crate::state::State;
use crate::{addons, bootstrap};

/// Name and version of the file's format. A file of another version is refused.
pub(crate) const SCHEMA: &str = "turnup.plan/2";

/// How a phase is made from a cluster.
type Load = fn(&Arc<Cluster>) -> Result<Phase>;
const PHASES: [(&str, Load); 3] =
    [("provision", bootstrap::provision_phase), ("bootstrap", bootstrap::phase), ("addons", addons::phase)];

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the names stand in the file")]
pub(crate) struct Plan {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When it was made.
    pub made: Timestamp,
    /// The cluster's name.
    pub cluster: String,
    /// What it was made from; other inputs make another plan.
    pub plan_inputs: PlanInputs,
    /// What each setting that changed since the last complete `turnup up` sets in motion.
    pub changed: Vec<Impact>,
    /// Every step of every phase that can be told, in an order in which they could run.
    pub steps: Vec<PlannedStep>,
    /// The phases of which nothing can be told before this step has run.
    pub unknown_phases: Vec<String>,
    /// How long it will take.
    pub estimate: Estimate,
}

impl Document for Plan {
    const SCHEMA: &'static str = SCHEMA;
    const WHAT: &'static str = "a plan";
    const REMEDY: &'static str = "make it again: turnup plan --out FILE";
    const CLASS: Class = Class::Usage;

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("made", "word"),
            ("cluster", "dns-label"),
            ("plan_inputs.turnup", "sha256"),
            ("plan_inputs.configuration.*", "content"),
            ("plan_inputs.templates.*", "sha256"),
            ("changed[].name", "text"),
            ("changed[].before", "content"),
            ("changed[].after", "content"),
            ("changed[].steps[]", "text"),
            ("changed[].hosts[]", "dns-label"),
            ("changed[].restarts.*[]", "text"),
            ("changed[].recreates.*", "word"),
            ("steps[].id", "text"),
            ("steps[].step", "text"),
            ("steps[].host", "dns-label"),
            ("steps[].decision", "word"),
            ("steps[].why", "content"),
            ("steps[].needs[]", "text"),
            ("steps[].preview.changes[].verb", "word"),
            ("steps[].preview.changes[].kind", "text"),
            ("steps[].preview.changes[].name", "text"),
            ("steps[].preview.changes[].lines[]", "content"),
            ("steps[].preview.known_after", "text"),
            ("steps[].preview.failed", "content"),
            ("steps[].preview.failed_class", "word"),
            ("steps[].inputs.*", "text"),
            ("steps[].unknown_inputs[]", "text"),
            ("unknown_phases[]", "text"),
        ])
    }
}

impl Plan {
    /// Makes the plan for these settings.
    pub(crate) fn make(settings: &Settings, source: &TreeSource, state_dir: &Path) -> Result<Self> {
        let cluster = Arc::new(Cluster::shadow(settings, source.clone(), state_dir)?);
        let plan_inputs = PlanInputs::look(&cluster, settings)?;
        let (mut steps, mut unknown_phases) = (Vec::<PlannedStep>::new(), Vec::new());
        let mut blind = false;
        for (name, load) in PHASES {
            if blind {
                unknown_phases.push(name.to_owned());
                continue;
            }
            let before = steps.iter().find(|step| is_moving(step)).map(|step| step.id.clone());
            let phase_plan = Engine::plan(&cluster.store, &load(&cluster)?, before.as_ref())?;
            blind = phase_plan.unknown_after.is_some();
            steps.extend(phase_plan.steps);
        }
        let changed = impact::find(settings, source, state_dir, &cluster, &steps)?;
        let estimate = Estimate::of(&steps, is_moving);
        let (schema, made) = (SCHEMA.to_owned(), Timestamp::now());
        let cluster = cluster.settings.name.clone();
        Ok(Self { schema, made, cluster, plan_inputs, changed, steps, unknown_phases, estimate })
    }

    /// The error that a run would end with now, of the first step that has one: a command that
    /// shows the plan ends with its exit code.
    pub(crate) fn into_result(self) -> Result<()> {
        let failed = |step: PlannedStep| step.preview.failed.map(|text| (step.id, step.preview.failed_class, text));
        let Some((id, class, text)) = self.steps.into_iter().find_map(failed) else { return Ok(()) };
        let class = class.unwrap_or(Class::Permanent);
        let cause = Error::from_rendered(class.exit_code().into(), &text);
        let message = cause.as_ref().map_or(text.as_str(), Error::message);
        let error = Error::new(class, format!("now {id} would fail: {message}"));
        Err(match cause.as_ref().and_then(Error::next) {
            Some(next) => error.hint(next),
            None => error,
        })
    }

    /// Reads a plan's file; `path` is for messages.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self> {
        document::parse(&path.display().to_string(), text)
    }

    /// The steps of one phase alone, with the time that they take. No run can be held to it.
    #[must_use]
    pub(crate) fn only(mut self, phase: &str) -> Self {
        self.steps.retain(|step| step.id.phase() == phase);
        self.unknown_phases.retain(|unknown| unknown == phase);
        self.changed.clear();
        self.estimate = Estimate::of(&self.steps, is_moving);
        self
    }

    /// The steps that will run, may run, or are forgotten: all but those that are proven done.
    pub(crate) fn moving(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|step| step.decision != Decision::Skip)
    }

    /// Whether a run would do nothing at all.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.moving().next().is_none() && self.unknown_phases.is_empty()
    }

    /// What a run is held to.
    #[must_use]
    pub(crate) fn bind(&self) -> ApprovedPlan {
        ApprovedPlan::new(self.steps.iter().cloned(), &self.unknown_phases)
    }

    /// Refuses when the inputs are not those that this plan was made for, and names what is
    /// different. `going_on` says that a run with this very plan started before: what it has done
    /// since is no difference.
    pub(crate) fn require_same_world(&self, now: &Self, going_on: bool, state: &State) -> Result<()> {
        if self.cluster != now.cluster {
            let message =
                format!("the plan is for the cluster {}, and the configuration is for {}", self.cluster, now.cluster);
            return Err(Error::config(message).hint("turnup plan --out FILE"));
        }
        self.plan_inputs.require_same(&now.plan_inputs)?;
        if self.plan_inputs.journal != now.plan_inputs.journal && !going_on {
            return Err(self.plan_inputs.describe_steps_since(self.made, state));
        }
        self.bind().check(&now.steps, going_on)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::change::Preview;

    #[test]
    fn a_file_that_is_no_plan_of_this_version_is_refused_with_the_way_out() {
        let path = Path::new("plan.json");
        let texts = [
            "",
            "{\"schema\": \"turnup.plan/3\", \"more\": 1}",
            "{\"schema\": \"turnup.plan/2\",\n \"stepps\": []}",
            "{\"schema\": \"turnup.plan/2\", \"made\": \"2026-01-01T00:00:00Z\", \"cluster\": \"c\"",
        ];
        let said: Vec<String> = texts.iter().map(|text| Plan::parse(path, text).unwrap_err().render()).collect();
        insta::assert_snapshot!(said.join("\n\n"));
    }

    #[test]
    fn a_plan_survives_its_file() {
        let source = TreeSource::embedded();
        let settings = Settings::defaults(&source).unwrap();
        let dir = tempfile::tempdir().unwrap();
        // Nothing is there, and Terraform may or may not be: the steps are told either way.
        let plan = Plan::make(&settings, &source, dir.path()).unwrap();
        assert!(!plan.is_empty());
        let text = serde_json::to_string_pretty(&plan).unwrap();
        assert_eq!(Plan::parse(Path::new("p"), &text).unwrap(), plan);
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0, "to plan writes nothing");
    }

    #[test]
    fn what_would_fail_now_is_how_the_command_ends() {
        let settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut plan = Plan::make(&settings, &TreeSource::embedded(), dir.path()).unwrap();
        for step in &mut plan.steps {
            (step.preview.failed, step.preview.failed_class) = (None, None);
        }
        plan.clone().into_result().unwrap();
        let error = Error::precondition("the port is in use").evidence("LISTEN").hint("stop it");
        let (first, second) = (plan.steps[1].id.clone(), plan.steps[2].preview.clone());
        plan.steps[1].preview = Preview::default().failed(&error);
        plan.steps[2].preview = second.failed(&Error::config("later"));
        let text = serde_json::to_string(&plan).unwrap();
        let told = Plan::parse(Path::new("p"), &text).unwrap().into_result().unwrap_err();
        assert_eq!(told.class(), Class::Precondition);
        assert_eq!(told.message(), format!("now {first} would fail: the port is in use"));
        assert_eq!(told.next(), Some("stop it"));
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        document::hostile::try_every_text::<Plan>(&serde_json::json!({
            "schema": SCHEMA, "made": "2026-01-01T00:00:00Z", "cluster": "c",
            "plan_inputs": {"turnup": "0".repeat(64), "configuration": {"a": "b"}, "templates": {"t": "0".repeat(64)}, "journal": 1},
            "changed": [{
                "name": "a", "before": "b", "after": "c", "steps": ["p/s"], "hosts": ["h"], "restarts": {"h": ["s"]},
                "recreates": {"h": "create"}, "estimate": {"seconds": 1.0, "never_ran": 0},
            }],
            "steps": [{
                "id": "p/s@h", "step": "s", "host": "h", "decision": "run", "why": "w", "needs": ["p/r"],
                "preview": {"changes": [{"verb": "create", "kind": "file", "name": "/a", "lines": ["+ a"]}], "known_after": "p/r", "failed": "e", "failed_class": "transient"},
                "inputs": {"a": "b"}, "unknown_inputs": ["c"], "seconds": 1.0,
            }],
            "unknown_phases": ["addons"], "estimate": {"seconds": 1.0, "never_ran": 0},
        }));
    }
}
