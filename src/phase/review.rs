//! How each step stands: by its record, and by a look at what it made. For reports; it decides
//! nothing and changes nothing.

use jiff::Timestamp;
use serde::Serialize;

use super::graph::{Task, expand};
use super::{Action, Check, Phase, failure};
use crate::Result;
use crate::parallel;
use crate::state::{State, Store};
use crate::step_id::StepId;

/// How many looks go on at once: most of them wait for a host.
const LOOKS: usize = 16;

/// How a step stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "is", content = "why", rename_all = "kebab-case")]
pub enum Condition {
    /// Proven done; by its record alone where the result was not checked.
    Done,
    /// It would run again, and this is why.
    Stale(String),
    /// It failed last time, and this is how.
    Failed(String),
    /// Its end is not recorded: turnup was killed, or works on it now.
    Interrupted,
    /// It never ran.
    Never,
    /// It ran, and it could not be found out how it stands now.
    Unknown(String),
}

/// One step, for one host if it is a host step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepStatus {
    /// Its id.
    pub id: StepId,
    /// How it stands.
    pub condition: Condition,
    /// When it last ended well.
    pub finished: Option<Timestamp>,
    /// How long that took, in milliseconds.
    pub elapsed_ms: Option<u64>,
}

/// How all steps of a phase stand, in the order of the file. `look` says of which steps, by name,
/// more than the record is asked.
pub fn review(store: &Store, phase: &Phase, look: impl Fn(&str) -> bool + Sync) -> Result<Vec<StepStatus>> {
    let state = store.state()?;
    let actions = phase.all_actions(store)?;
    let tasks = expand(phase);
    let conditions = parallel::map(&tasks, LOOKS, |task| {
        let looked = look(&phase.manifest.steps[task.step].name);
        condition(&state, task, actions[task.step].as_ref(), looked)
    });
    let standing = |(task, condition): (&Task, Condition)| {
        let record = state.steps.get(&task.id.to_string());
        let (finished, elapsed_ms) = (record.map(|record| record.finished), record.map(|record| record.elapsed_ms));
        StepStatus { id: task.id.clone(), condition, finished, elapsed_ms }
    };
    Ok(tasks.iter().zip(conditions).map(standing).collect())
}

fn condition(state: &State, task: &Task, action: &dyn Action, look: bool) -> Condition {
    let id = task.id.to_string();
    if let Some(open) = state.open.get(&id) {
        return open.failure.clone().map_or(Condition::Interrupted, Condition::Failed);
    }
    let Some(record) = state.steps.get(&id) else { return Condition::Never };
    let host = task.id.host();
    match action.inputs(host) {
        Err(error) => return Condition::Unknown(failure::one_line(&error)),
        Ok(inputs) if inputs.digest() != record.digest => {
            return Condition::Stale(format!("inputs changed: {}", inputs.diff(&record.inputs).join(", ")));
        }
        Ok(_) => {}
    }
    match look.then(|| action.verify(host)) {
        None | Some(Ok(Check::Ok)) => Condition::Done,
        Some(Ok(Check::Drifted(why))) => Condition::Stale(why),
        Some(Err(error)) => Condition::Unknown(failure::one_line(&error)),
    }
}
