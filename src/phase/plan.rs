//! Whether a step has to run, and why; and what a run would do, planned. The plan and the run ask
//! the same function.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::graph::{Task, expand, in_order};
use super::step_runner::StepRunner;
use super::{Action, Check, Inputs, Phase};
use crate::Result;
use crate::change::Preview;
use crate::error::{Class, Error};
use crate::parallel;
use crate::state::{State, Store};
use crate::step_id::{StepId, split_host};

/// How many hosts are looked at at once.
const LOOKERS: usize = 16;

/// What the engine would do with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedStep {
    /// The step's id.
    pub id: StepId,
    /// The step's name.
    pub step: String,
    /// The host, for a host step.
    pub host: Option<String>,
    /// What would be done.
    pub decision: Decision,
    /// Why.
    pub why: String,
    /// The ids of the steps that it waits for.
    pub needs: Vec<StepId>,
    /// What would change.
    pub preview: Preview,
    /// Digest of each input, by its name.
    pub inputs: BTreeMap<String, String>,
    /// The inputs that are only known once an earlier step has run.
    pub unknown_inputs: BTreeSet<String>,
    /// How long it took the last time, in seconds; of a host that never ran it, as long as others
    /// took.
    pub seconds: Option<f64>,
}

/// A phase as it would go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhasePlan {
    /// Every step, in an order in which it could happen.
    pub steps: Vec<PlannedStep>,
    /// The first step after which nothing can be told, neither of this phase nor of later ones.
    pub unknown_after: Option<StepId>,
}

/// What is known of a step before it runs.
pub(super) struct Judgement {
    /// Why it has to run; none when it is proven done.
    pub(super) why: Option<String>,
    /// Its record would let it be skipped, but what it made is not there.
    pub(super) gone: bool,
    /// What the judgement rests on.
    pub(super) inputs: Inputs,
}

/// Judges a step by its record and by what it made.
pub(super) fn judge(state: &State, id: &StepId, action: &dyn Action, host: Option<&str>) -> Result<Judgement> {
    let inputs = action.inputs(host)?;
    if let Some(why) = reason_without_looking(state, &id.to_string(), &inputs) {
        return Ok(Judgement { why: Some(why), gone: false, inputs });
    }
    Ok(match action.verify(host)? {
        Check::Ok => Judgement { why: None, gone: false, inputs },
        Check::Drifted(why) => Judgement { why: Some(format!("outputs gone: {why}")), gone: true, inputs },
    })
}

/// Whether the last run of a step ended well, with these inputs; what it made is not looked at.
#[must_use]
pub fn is_up_to_date(state: &State, id: &StepId, inputs: &Inputs) -> bool {
    reason_without_looking(state, &id.to_string(), inputs).is_none()
}

fn reason_without_looking(state: &State, id: &str, inputs: &Inputs) -> Option<String> {
    if let Some(why) = reason_of_record(state, id) {
        return Some(why);
    }
    let record = state.steps.get(id)?;
    if record.digest == inputs.digest() {
        return None;
    }
    Some(format!("inputs changed: {}", inputs.diff(&record.inputs).join(", ")))
}

/// Why it has to run whatever its inputs are.
fn reason_of_record(state: &State, id: &str) -> Option<String> {
    match state.open.get(id) {
        Some(open) => Some(match &open.failure {
            None => "interrupted last time".into(),
            Some(failure) => format!("failed last time: {failure}"),
        }),
        None => (!state.steps.contains_key(id)).then(|| "never ran".into()),
    }
}

/// Records of this phase whose step or host is no longer there.
pub(super) fn gone(state: &State, phase: &Phase) -> Vec<StepId> {
    let tasks = expand(phase);
    let there: HashSet<String> = tasks.iter().map(|task| task.id.to_string()).collect();
    let recorded: BTreeSet<&String> = state.steps.keys().chain(state.open.keys()).collect();
    let gone = recorded.into_iter().filter(|id| !there.contains(*id)).filter_map(|id| id.parse().ok());
    gone.filter(|id: &StepId| id.phase() == phase.name).collect()
}

/// Simulates every step, whether or not it would run: what the phase makes of a directory with
/// nothing in it. Returns one digest of all inputs of each task; none where they are not known
/// before an earlier step has run.
pub(super) fn simulate(store: &Store, phase: &Phase) -> Result<Vec<(StepId, Option<String>)>> {
    let actions = phase.all_actions(store)?;
    let tasks = expand(phase);
    let simulate = |at: usize| {
        let (task, action) = (&tasks[at], actions[tasks[at].step].as_ref());
        let digest = action.inputs(task.id.host()).ok().map(|inputs| inputs.digest());
        action.simulate(task.id.host())?;
        Ok((task.id.clone(), digest))
    };
    in_order(&tasks).into_iter().map(simulate).collect()
}

/// The same for one task and those that it needs, and without a look at their inputs: what they
/// leave there is all that is asked for.
pub(super) fn simulate_task(store: &Store, phase: &Phase, id: &StepId) -> Result<()> {
    simulate_some(store, phase, id, |_| true)
}

/// The same for those that a task needs, without itself.
pub(super) fn simulate_needs(store: &Store, phase: &Phase, id: &StepId) -> Result<()> {
    simulate_some(store, phase, id, |needed| needed != id)
}

fn simulate_some(store: &Store, phase: &Phase, id: &StepId, is_chosen: impl Fn(&StepId) -> bool) -> Result<()> {
    let actions = phase.all_actions(store)?;
    let tasks = expand(phase);
    let mut needed: HashSet<usize> = tasks.iter().position(|task| task.id == *id).into_iter().collect();
    let order = in_order(&tasks);
    for at in order.iter().rev() {
        if needed.contains(at) {
            needed.extend(&tasks[*at].needs);
        }
    }
    let mut chosen = order.into_iter().filter(|at| needed.contains(at) && is_chosen(&tasks[*at].id));
    chosen.try_for_each(|at| actions[tasks[at].step].as_ref().simulate(tasks[at].id.host()).map(drop))
}

/// What a run would do with each step. Changes nothing and needs no lock, provided that the phase
/// works on a directory that is a [shadow](Store::shadow) or imagined: what earlier steps would
/// write there is what later ones are judged by. `before` is the first step of an earlier phase
/// that will or may run.
pub fn plan(store: &Store, phase: &Phase, before: Option<&StepId>) -> Result<PhasePlan> {
    let state = store.state()?;
    let actions = phase.all_actions(store)?;
    let tasks = expand(phase);
    let planner = Planner { state: &state, actions: &actions, tasks: &tasks, before };
    let order = in_order(&tasks);
    let mut told: Vec<Option<PlannedTask>> = tasks.iter().map(|_| None).collect();
    for level in levels(&tasks, &order) {
        let results = parallel::map(&level, LOOKERS, |at| planner.tell(*at, &told));
        for (at, result) in level.into_iter().zip(results) {
            told[at] = Some(result?);
        }
    }
    let mut phase_plan = PhasePlan::default();
    for at in order {
        let Some(told) = told[at].take() else { continue };
        if told.blind && phase_plan.unknown_after.is_none() {
            phase_plan.unknown_after = Some(told.planned.id.clone());
        }
        phase_plan.steps.push(told.planned);
    }
    phase_plan.steps.extend(gone(&state, phase).into_iter().map(forgotten));
    Ok(phase_plan)
}

fn forgotten(id: StepId) -> PlannedStep {
    PlannedStep {
        step: id.step().to_owned(),
        host: id.host().map(str::to_owned),
        decision: Decision::Forget,
        why: "no longer part of the cluster".into(),
        needs: Vec::new(),
        preview: Preview::default(),
        inputs: BTreeMap::new(),
        unknown_inputs: BTreeSet::new(),
        seconds: None,
        id,
    }
}

/// A step whose plan is made.
struct PlannedTask {
    planned: PlannedStep,
    /// The first step in front of it, or itself, that will or may run.
    moving: Option<StepId>,
    /// Nothing behind it can be told.
    blind: bool,
}

/// Makes the plan of one step after another.
struct Planner<'p> {
    state: &'p State,
    actions: &'p [StepRunner<'p>],
    tasks: &'p [Task],
    before: Option<&'p StepId>,
}

impl Planner<'_> {
    fn tell(&self, at: usize, told: &[Option<PlannedTask>]) -> Result<PlannedTask> {
        let task = &self.tasks[at];
        let earlier: Vec<&PlannedTask> = task.needs.iter().filter_map(|need| told[*need].as_ref()).collect();
        let moving = earlier.iter().find_map(|earlier| earlier.moving.clone());
        let moving = moving.or_else(|| self.before.cloned());
        if let Some(blind) = earlier.iter().find(|earlier| earlier.blind) {
            let planned = self.plan_blindly(task, &blind.planned.id);
            return Ok(PlannedTask { moving: Some(planned.id.clone()), planned, blind: true });
        }
        let action = self.actions[task.step].as_ref();
        let host = task.id.host();
        let judgement = match judge(self.state, &task.id, action, host) {
            Ok(judgement) => judgement,
            // What a step finds now may be different once an earlier one has run.
            Err(error) => {
                let Some(earlier) = &moving else { return Err(error) };
                let mut planned = self.plan_blindly(task, earlier);
                // No step changes what the user has configured.
                let blind = error.class() == Class::Config;
                if blind {
                    planned.preview = planned.preview.failed(&error);
                }
                return Ok(PlannedTask { moving: Some(planned.id.clone()), planned, blind });
            }
        };
        let (decision, why) = match (judgement.why, &moving) {
            (None, _) => (Decision::Skip, "inputs unchanged, outputs hold".to_owned()),
            // It may be there again by then.
            (Some(why), Some(earlier)) if judgement.gone => {
                (Decision::Unknown, format!("{why}; {}", known_once(earlier)))
            }
            (Some(why), _) => (Decision::Run, why),
        };
        let mut planned = self.start(task, decision, why);
        planned.inputs = judgement.inputs.fingerprints().clone();
        planned.unknown_inputs.clone_from(judgement.inputs.unknown());
        let mut blind = false;
        if decision == Decision::Run {
            planned.preview = or_later(action.preview(host).map(Preview::shown), moving.as_ref(), |earlier, error| {
                Preview::after(earlier.clone()).failed(&error)
            })?;
            blind = !or_later(action.simulate(host), moving.as_ref(), |_, _| true)?;
        } else if let (Decision::Unknown, Some(earlier)) = (decision, &moving) {
            planned.preview = Preview::after(earlier.clone());
        }
        let moving = if decision == Decision::Skip { moving } else { moving.or_else(|| Some(planned.id.clone())) };
        Ok(PlannedTask { planned, moving, blind })
    }

    /// By its record alone.
    fn plan_blindly(&self, task: &Task, earlier: &StepId) -> PlannedStep {
        let (decision, why) = match reason_of_record(self.state, &task.id.to_string()) {
            Some(why) => (Decision::Run, why),
            None => (Decision::Unknown, known_once(earlier)),
        };
        let mut planned = self.start(task, decision, why);
        planned.preview = Preview::after(earlier.clone());
        planned
    }

    fn start(&self, task: &Task, decision: Decision, why: String) -> PlannedStep {
        PlannedStep {
            id: task.id.clone(),
            step: task.id.step().to_owned(),
            host: task.id.host().map(str::to_owned),
            decision,
            why,
            needs: task.needs.iter().map(|need| self.tasks[*need].id.clone()).collect(),
            preview: Preview::default(),
            inputs: BTreeMap::new(),
            unknown_inputs: BTreeSet::new(),
            seconds: last_time(self.state, &task.id.to_string()),
        }
    }
}

fn known_once(earlier: &StepId) -> String {
    format!("known once {earlier} has run")
}

/// An error that an earlier step may cure is no error of the plan.
fn or_later<T>(result: Result<T>, moving: Option<&StepId>, later: impl FnOnce(&StepId, Error) -> T) -> Result<T> {
    match (result, moving) {
        (Err(error), Some(earlier)) => Ok(later(earlier, error)),
        (result, _) => result,
    }
}

/// How long a step took the last time, in seconds; on other hosts when it never ran on this one.
fn last_time(state: &State, id: &str) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a step are far below 2^52")]
    let seconds = |milliseconds: u64| milliseconds as f64 / 1000.0;
    if let Some(record) = state.steps.get(id) {
        return Some(seconds(record.elapsed_ms));
    }
    let (step, Some(_)) = split_host(id) else { return None };
    let others =
        state.steps.range(format!("{step}@")..).take_while(|(other, _)| other.starts_with(&format!("{step}@")));
    others.map(|(_, record)| seconds(record.elapsed_ms)).reduce(f64::max)
}

/// The tasks by the length of the longest way to them: those of one level wait for none of each
/// other.
fn levels(tasks: &[Task], order: &[usize]) -> Vec<Vec<usize>> {
    let mut depth = vec![0; tasks.len()];
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for at in order {
        depth[*at] = tasks[*at].needs.iter().map(|need| depth[*need] + 1).max().unwrap_or_default();
        if levels.len() <= depth[*at] {
            levels.push(Vec::new());
        }
        levels[depth[*at]].push(*at);
    }
    levels
}
