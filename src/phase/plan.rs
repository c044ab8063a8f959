//! Whether a step has to run, and why. The plan and the run ask the same function.

use std::collections::BTreeMap;

use super::graph::{expand, in_order};
use super::{Action, Inputs, Phase, Proof};
use crate::Result;
use crate::state::{State, Store};

/// What the engine would do with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Run,
    /// Leave it: proven done.
    Skip,
    /// Only known once an earlier step has run.
    Unknown,
    /// Drop its record: its host or the step itself is gone.
    Forget,
}

/// One line of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The step's id.
    pub id: String,
    /// The step's name.
    pub step: String,
    /// The host, for a host step.
    pub host: Option<String>,
    /// What would be done.
    pub decision: Decision,
    /// Why.
    pub why: String,
    /// What would change, as the action previews it.
    pub preview: Vec<String>,
}

/// Why a step has to run; nothing when it is proven done. With the inputs that the judgement rests on.
pub(super) fn judge(
    state: &State,
    id: &str,
    action: &dyn Action,
    host: Option<&str>,
) -> Result<(Option<String>, Inputs)> {
    let inputs = action.inputs(host)?;
    let why = match reason_without_looking(state, id, &inputs) {
        Some(why) => Some(why),
        None => match action.verify(host)? {
            Proof::Holds => None,
            Proof::Gone(why) => Some(format!("outputs gone: {why}")),
        },
    };
    Ok((why, inputs))
}

fn reason_without_looking(state: &State, id: &str, inputs: &Inputs) -> Option<String> {
    if let Some(open) = state.open.get(id) {
        return Some(match &open.failure {
            None => "interrupted last time".into(),
            Some(failure) => format!("failed last time: {failure}"),
        });
    }
    let Some(record) = state.steps.get(id) else { return Some("never ran".into()) };
    if record.digest == inputs.digest() {
        return None;
    }
    Some(format!("inputs changed: {}", inputs.diff(&record.inputs).join(", ")))
}

/// Records of this phase whose step or host is no longer there.
pub(super) fn gone(state: &State, phase: &Phase) -> Vec<String> {
    let tasks = expand(phase);
    let start = format!("{}/", phase.name);
    let mut gone: Vec<String> = state.steps.keys().chain(state.open.keys()).cloned().collect();
    gone.retain(|id| id.starts_with(&start) && !tasks.iter().any(|task| task.id == *id));
    gone.sort();
    gone.dedup();
    gone
}

/// One digest of all inputs of each step; none where they are not known before an earlier step has run.
pub(super) fn fingerprints(store: &Store, phase: &Phase) -> Result<BTreeMap<String, Option<String>>> {
    let (actions, mut steps) = (phase.all_actions(store)?, BTreeMap::new());
    for task in expand(phase) {
        let step = format!("{}/{}", phase.name, phase.manifest.steps[task.step].name);
        let digest = actions[task.step].as_ref().inputs(task.host.as_deref()).ok().map(|inputs| inputs.digest());
        let known: &mut Option<String> = steps.entry(step).or_insert_with(|| Some(String::new()));
        // Of a host step the digests of all hosts, one behind the other.
        *known = known.take().zip(digest).map(|(known, digest)| known + &digest);
    }
    Ok(steps)
}

/// What a run would do with each step, in an order in which it could happen. Changes nothing and needs no lock.
pub fn plan(store: &Store, phase: &Phase) -> Result<Vec<Planned>> {
    let state = store.state()?;
    let actions = phase.all_actions(store)?;
    let tasks = expand(phase);
    let mut settled = vec![false; tasks.len()];
    let mut planned = Vec::new();
    for at in in_order(&tasks) {
        let task = &tasks[at];
        let host = task.host.as_deref();
        let action = actions[task.step].as_ref();
        let waits_for = task.needs.iter().find(|need| !settled[**need]).map(|need| tasks[*need].id.as_str());
        let judged = judge(&state, &task.id, action, host);
        let (decision, why) = match (judged, waits_for) {
            (Ok((Some(why), _)), None) => (Decision::Run, why),
            (Ok((None, _)), None) => (Decision::Skip, "inputs unchanged, outputs hold".into()),
            (Err(error), None) => return Err(error),
            // What a step finds now may be different once an earlier one has run; only what is in the journal stays true.
            (Ok((Some(why), _)), Some(_)) if !why.starts_with("outputs gone") => (Decision::Run, why),
            (_, Some(earlier)) => (Decision::Unknown, format!("known once {earlier} has run")),
        };
        settled[at] = decision == Decision::Skip;
        let preview = if decision == Decision::Run && waits_for.is_none() { action.preview(host)? } else { Vec::new() };
        let step = phase.manifest.steps[task.step].name.clone();
        planned.push(Planned { id: task.id.clone(), step, host: task.host.clone(), decision, why, preview });
    }
    planned.extend(gone(&state, phase).into_iter().map(|id| {
        let step = id.split(['/', '@']).nth(1).unwrap_or_default().to_owned();
        let host = id.split_once('@').map(|(_, host)| host.to_owned());
        Planned {
            step,
            host,
            decision: Decision::Forget,
            why: "no longer part of the cluster".into(),
            preview: Vec::new(),
            id,
        }
    }));
    Ok(planned)
}
