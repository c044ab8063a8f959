//! A plan that a run is held to: what may run, from which inputs, changing what. It finds nothing
//! out itself.

use std::collections::{BTreeMap, BTreeSet};

use super::action::{not_in_plan, require_announced};
use super::{Decision, Inputs, PlannedStep};
use crate::Result;
use crate::change::Preview;
use crate::step_id::StepId;

/// The steps of a plan by their ids.
#[derive(Clone, Debug, Default)]
pub struct ApprovedPlan {
    steps: BTreeMap<StepId, PlannedStep>,
    /// Phases of which the plan says that it does not know them.
    unknown_phases: Vec<String>,
}

impl ApprovedPlan {
    /// A run is held to these steps; phases that were unknown when the plan was made are free.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = PlannedStep>, unknown_phases: &[String]) -> Self {
        let steps = steps.into_iter().map(|step| (step.id.clone(), step)).collect();
        Self { steps, unknown_phases: unknown_phases.to_vec() }
    }

    fn is_free(&self, id: &StepId) -> bool {
        self.unknown_phases.iter().any(|phase| id.phase() == phase)
    }

    /// Whether a step may run now; what it may change. `follows` says that something in front of it
    /// ran in this run: then a step that was proven done when the plan was made may mend what that
    /// did.
    pub(super) fn admit(&self, id: &StepId, why: &str, inputs: &Inputs, follows: bool) -> Result<Preview> {
        if self.is_free(id) {
            return Ok(Preview::after(id.clone()));
        }
        let Some(planned) = self.steps.get(id) else { return Err(not_in_plan(&format!("step {id} ({why})"))) };
        // A step that could only be told by its record has no inputs in the plan.
        let changed = if planned.inputs.is_empty() { None } else { find_changed(planned, inputs) };
        if let Some(name) = changed {
            return Err(not_in_plan(&format!("{id}: {name} is not what it was")));
        }
        match planned.decision {
            Decision::Run => Ok(planned.preview.clone()),
            Decision::Unknown => Ok(Preview::after(id.clone())),
            Decision::Skip | Decision::Forget if follows => Ok(Preview::after(id.clone())),
            Decision::Skip | Decision::Forget => Err(not_in_plan(&format!("{id} ({why})"))),
        }
    }

    /// Compares the plan with the one that would be made now. `going_on` says that this plan was
    /// started before: then what is done already is no difference. The error names the first thing
    /// that is not as it was.
    pub fn check(&self, now: &[PlannedStep], going_on: bool) -> Result<()> {
        for step in now.iter().filter(|step| !self.is_free(&step.id)) {
            let Some(planned) = self.steps.get(&step.id) else {
                return Err(not_in_plan(&format!("step {} is new", step.id)));
            };
            check_step(planned, step, going_on)?;
        }
        let there: BTreeSet<&StepId> = now.iter().map(|step| &step.id).collect();
        let is_gone = |planned: &&PlannedStep| !there.contains(&planned.id);
        match self.steps.values().find(is_gone).filter(|planned| !going_on || planned.decision != Decision::Forget) {
            Some(planned) => Err(not_in_plan(&format!("step {} is no longer there", planned.id))),
            None => Ok(()),
        }
    }
}

fn find_changed<'n>(planned: &'n PlannedStep, inputs: &'n Inputs) -> Option<&'n str> {
    let known = |name: &&String| !planned.unknown_inputs.contains(*name) && !inputs.unknown().contains(*name);
    let now = inputs.fingerprints();
    let changed = planned.inputs.keys().filter(known).find(|name| now.get(*name) != planned.inputs.get(*name));
    // What was not known may turn out to be several things.
    let new = now.keys().find(|name| planned.unknown_inputs.is_empty() && !planned.inputs.contains_key(*name));
    changed.or(new).map(String::as_str)
}

fn check_step(planned: &PlannedStep, now: &PlannedStep, going_on: bool) -> Result<()> {
    use Decision::{Run, Skip, Unknown};
    let went_on = going_on && (now.decision == Skip || planned.decision != Skip && now.decision == Unknown);
    match (planned.decision, now.decision) {
        (Run, Run) => require_announced(&planned.preview, &now.id.to_string(), &now.preview.changes),
        _ if planned.decision == now.decision || went_on => Ok(()),
        (Unknown, Run) if going_on => Ok(()),
        (_, Skip) => Err(not_in_plan(&format!("{} has nothing to do any more", now.id))),
        _ => {
            let error = not_in_plan(&format!("{} ({})", now.id, now.why));
            Err(now.preview.changes.iter().take(8).fold(error, |error, change| error.evidence(change.to_string())))
        }
    }
}
