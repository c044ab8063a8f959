//! How each phase stands: the judgement of its steps, added up. It runs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::error::Result;
use crate::phase::{Condition, Phase, StepId, StepStatus, review};
use crate::state::{State, Store};
use crate::{addons, bootstrap, provision};

/// The phases in their order.
const PHASES: [&str; 3] = ["provision", "bootstrap", "addons"];
/// Steps whose proof is an answer of the API, all of `addons` besides.
const ASK_THE_API: [&str; 6] = ["api", "rbac", "wait-groups", "label-nodes", "renew-groups", "delete-nodes"];

/// How a phase stands, the worst of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PhaseState {
    /// All steps are done.
    Done,
    /// Some step was not run yet, all others are done.
    Started,
    /// No step was ever run.
    Never,
    /// Of some step it could not be found out.
    Unknown,
    /// Some step would run again.
    Stale,
    /// turnup was killed in the middle of a step.
    Interrupted,
    /// A step runs now.
    Running,
    /// A step failed last time.
    Failed,
}

/// A phase.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PhaseStatus {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: PhaseState,
    /// How many steps are done, hosts counted one by one.
    pub done: usize,
    /// How many there are.
    pub total: usize,
    /// When a step of it last ended well.
    pub last_ran: Option<Timestamp>,
    /// For how long some step of it was at work, each counted at its last run.
    pub took_seconds: Option<f64>,
    /// Every step.
    pub steps: Vec<StepStatus>,
}

impl PhaseStatus {
    fn new(name: &str, steps: Vec<StepStatus>, busy: bool) -> Self {
        let done = steps.iter().filter(|step| step.condition == Condition::Done).count();
        Self {
            name: name.to_owned(),
            state: add_up(&steps, busy),
            done,
            total: steps.len(),
            last_ran: steps.iter().filter_map(|step| step.finished).max(),
            took_seconds: at_work(&steps),
            steps,
        }
    }
}

/// Every phase by the judgement of the engine; looks at what was made unless `quick`, and asks no
/// API that is away.
pub(super) fn judge(cluster: &Arc<Cluster>, quick: bool, away: bool, busy: bool) -> Result<Vec<PhaseStatus>> {
    let known = cluster.find_inventory()?.is_some();
    let mut all = vec![match provision::find_external_inventory(cluster)? {
        None => judge_one(cluster, &bootstrap::provision_phase(cluster)?, quick, away, busy)?,
        // Its hosts come from an external inventory: that phase never runs.
        Some(_) => PhaseStatus::new("provision", Vec::new(), busy),
    }];
    if known {
        all.push(judge_one(cluster, &bootstrap::phase(cluster)?, quick, away, busy)?);
        all.push(judge_one(cluster, &addons::phase(cluster)?, quick, away, busy)?);
    } else {
        // Their hosts are known from the inventory; what was recorded before it was lost is all
        // there is.
        all.extend(recorded(&cluster.store, busy)?.into_iter().skip(1));
    }
    Ok(all)
}

fn judge_one(cluster: &Cluster, phase: &Phase, quick: bool, away: bool, busy: bool) -> Result<PhaseStatus> {
    // Steps of the user's own have proofs of their own.
    let asks_the_api = |step: &str| {
        let asks = phase.name == "addons" && step != "render" || ASK_THE_API.contains(&step);
        asks && phase.actions.contains_key(step)
    };
    let mut steps = review(&cluster.store, phase, |step| !(quick || away && asks_the_api(step)))?;
    for step in steps.iter_mut().filter(|step| away && step.condition == Condition::Done) {
        if asks_the_api(step.id.step()) {
            step.condition = Condition::Unknown("the API does not answer".to_owned());
        }
    }
    Ok(PhaseStatus::new(&phase.name, steps, busy))
}

/// Every phase by the journal alone.
pub(super) fn recorded(store: &Store, busy: bool) -> Result<Vec<PhaseStatus>> {
    let state = store.state()?;
    Ok(PHASES.iter().map(|name| PhaseStatus::new(name, standings(&state, name), busy)).collect())
}

fn standings(state: &State, phase: &str) -> Vec<StepStatus> {
    let of_phase = |id: &String| id.parse().ok().filter(|id: &StepId| id.phase() == phase);
    let mut steps = BTreeMap::new();
    for (id, record) in state.steps.iter().filter_map(|(id, record)| Some((of_phase(id)?, record))) {
        let (finished, elapsed_ms) = (Some(record.finished), Some(record.elapsed_ms));
        steps.insert(id.clone(), StepStatus { id, condition: Condition::Done, finished, elapsed_ms });
    }
    for (id, open) in state.open.iter().filter_map(|(id, open)| Some((of_phase(id)?, open))) {
        let condition = open.failure.clone().map_or(Condition::Interrupted, Condition::Failed);
        let fresh = StepStatus { id: id.clone(), condition: Condition::Never, finished: None, elapsed_ms: None };
        steps.entry(id).or_insert(fresh).condition = condition;
    }
    steps.into_values().collect()
}

fn add_up(steps: &[StepStatus], busy: bool) -> PhaseState {
    let any = |wanted: fn(&Condition) -> bool| steps.iter().any(|step| wanted(&step.condition));
    if any(|step| matches!(step, Condition::Interrupted)) {
        return if busy { PhaseState::Running } else { PhaseState::Interrupted };
    }
    if any(|step| matches!(step, Condition::Failed(_))) {
        PhaseState::Failed
    } else if steps.iter().all(|step| step.condition == Condition::Never) {
        PhaseState::Never
    } else if any(|step| matches!(step, Condition::Stale(_))) {
        PhaseState::Stale
    } else if any(|step| matches!(step, Condition::Unknown(_))) {
        PhaseState::Unknown
    } else if any(|step| *step == Condition::Never) {
        PhaseState::Started
    } else {
        PhaseState::Done
    }
}

/// The length of all steps' last runs laid over each other: what runs side by side counts once,
/// what lies between runs does not.
fn at_work(steps: &[StepStatus]) -> Option<f64> {
    let run = |step: &StepStatus| {
        let (end, length) = (step.finished?.as_millisecond(), i64::try_from(step.elapsed_ms?).ok()?);
        Some((end - length, end))
    };
    let mut runs: Vec<(i64, i64)> = steps.iter().filter_map(run).collect();
    runs.sort_unstable();
    let mut until = runs.first()?.0;
    let mut total = 0;
    for (start, end) in runs {
        total += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a run are far below 2^52")]
    Some(total as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    fn step(condition: Condition, end: i64, length: u64) -> StepStatus {
        let finished = Some(Timestamp::from_millisecond(end).unwrap());
        StepStatus { id: StepId::of("p", "s"), condition, finished, elapsed_ms: Some(length) }
    }

    #[test]
    fn what_runs_side_by_side_counts_once() {
        let runs = [(10_000, 4_000), (9_000, 2_000), (12_000, 3_000), (90_000, 500)];
        let steps: Vec<StepStatus> = runs.map(|(end, length)| step(Condition::Done, end, length)).into();
        assert_eq!(at_work(&steps), Some(6.5));
        assert_eq!(at_work(&[]), None);
    }

    #[test]
    fn the_worst_step_speaks_for_the_phase() {
        let (done, never) = (Condition::Done, Condition::Never);
        let stale = Condition::Stale(String::new());
        let failed = Condition::Failed(String::new());
        for (conditions, busy, expected) in [
            (vec![], false, PhaseState::Never),
            (vec![&never, &never], false, PhaseState::Never),
            (vec![&done, &done], false, PhaseState::Done),
            (vec![&done, &never], false, PhaseState::Started),
            (vec![&done, &stale, &never], false, PhaseState::Stale),
            (vec![&stale, &failed], false, PhaseState::Failed),
            (vec![&failed, &Condition::Interrupted], false, PhaseState::Interrupted),
            (vec![&failed, &Condition::Interrupted], true, PhaseState::Running),
        ] {
            let steps: Vec<StepStatus> =
                conditions.into_iter().map(|condition| step(condition.clone(), 0, 0)).collect();
            assert_eq!(add_up(&steps, busy), expected);
        }
    }
}
