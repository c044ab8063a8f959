//! The course of a run: what each step did and when, collected from events. Pure.

use std::collections::HashMap;

use crate::phase::{Event, Tasks, What, split_host};

/// What happened in one run.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The phases in their order.
    pub(super) phases: Vec<PhaseTimeline>,
    /// Milestones, with the seconds after which each was reached.
    pub(super) milestones: Vec<(String, f64)>,
    /// The work that was done outside of any phase after the last one.
    pub(super) aside: Option<String>,
    /// How long the run took; nothing while it goes on.
    pub(super) total: Option<f64>,
}

/// What happened in one phase. Times are seconds since the start of the run.
#[derive(Debug)]
pub(super) struct PhaseTimeline {
    pub(super) name: String,
    pub(super) began: f64,
    /// Nothing while it goes on, and when the process was killed.
    pub(super) ended: Option<f64>,
    pub(super) tasks: Vec<TaskTimeline>,
    by_id: HashMap<String, usize>,
    counts: Vec<Tasks>,
}

/// What happened to one step, or to one host's share of it.
#[derive(Debug)]
pub(super) struct TaskTimeline {
    pub(super) id: String,
    /// The ids of the tasks that had to end before.
    pub(super) needs: Vec<String>,
    /// How long it was looked at before it began, or was skipped.
    pub(super) look: f64,
    pub(super) began: f64,
    pub(super) ended: Option<f64>,
    pub(super) state: TaskState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    Running,
    Done,
    Skipped,
    Failed,
    Blocked,
}

/// All tasks of one step together.
#[derive(Debug, Default)]
pub(super) struct StepTimeline<'c> {
    /// `<phase>/<step>`.
    pub(super) step: &'c str,
    pub(super) ran: usize,
    pub(super) skipped: usize,
    pub(super) blocked: usize,
    pub(super) failed: usize,
    /// The hosts on which it failed, in their order.
    pub(super) failed_hosts: Vec<&'c str>,
    /// From the begin of the first to the end of the last that ran.
    pub(super) seconds: f64,
}

/// The text with a star for every host that it names: texts that are alike but for the host become
/// one.
pub(super) fn without_hosts(text: &str, is_host: impl Fn(&str) -> bool) -> String {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let (mut starred, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(is_name) {
        let end = rest[start..].find(|letter| !is_name(letter)).map_or(rest.len(), |length| start + length);
        starred.push_str(&rest[..start]);
        starred.push_str(if is_host(&rest[start..end]) { "*" } else { &rest[start..end] });
        rest = &rest[end..];
    }
    starred + rest
}

impl Timeline {
    /// Takes in one event.
    pub(super) fn note(&mut self, event: &Event) {
        let at = event.seconds;
        match &event.event {
            What::PhaseStarted { phase, tasks, .. } => {
                self.aside = None;
                self.phases.push(PhaseTimeline::new(phase, at, tasks));
            }
            What::PhaseDone { phase, .. } => {
                if let Some(phase) = self.phases.iter_mut().rfind(|known| known.name == *phase) {
                    phase.ended = Some(at);
                }
            }
            What::StepStarted { step, needs, look_seconds, .. } => {
                self.put(TaskTimeline::new(step, needs, *look_seconds, at, TaskState::Running));
            }
            What::StepSkipped { step, needs, look_seconds } => {
                self.put(TaskTimeline::new(step, needs, *look_seconds, at, TaskState::Skipped));
            }
            What::StepDone { step, .. } => self.end(step, at, TaskState::Done),
            What::StepFailed { step, .. } => self.end(step, at, TaskState::Failed),
            What::StepBlocked { step, .. } => self.end(step, at, TaskState::Blocked),
            What::Milestone { name, step } => {
                self.milestones.push((name.clone(), at));
                self.work_aside(step);
            }
            What::StepProgress { step, .. } => self.work_aside(step),
            What::RunDone { elapsed_seconds, .. } => self.total = Some(*elapsed_seconds),
            _ => {}
        }
    }

    /// Whether any step did anything: only such a run has times to compare with.
    pub(super) fn has_work(&self) -> bool {
        self.tasks().any(|task| matches!(task.state, TaskState::Done | TaskState::Failed))
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = &TaskTimeline> {
        self.phases.iter().flat_map(|phase| &phase.tasks)
    }

    fn work_aside(&mut self, step: &str) {
        if !step.contains('/') {
            self.aside = Some(step.to_owned());
        }
    }

    fn put(&mut self, task: TaskTimeline) {
        if let Some(phase) = self.phases.last_mut() {
            phase.by_id.insert(task.id.clone(), phase.tasks.len());
            phase.tasks.push(task);
        }
    }

    fn end(&mut self, id: &str, at: f64, state: TaskState) {
        let Some(phase) = self.phases.last_mut() else { return };
        match phase.by_id.get(id) {
            Some(known) => (phase.tasks[*known].ended, phase.tasks[*known].state) = (Some(at), state),
            // It never began: blocked, or failed while it was looked at.
            None => self.put(TaskTimeline::new(id, &[], 0.0, at, state)),
        }
    }
}

impl PhaseTimeline {
    fn new(name: &str, began: f64, counts: &[Tasks]) -> Self {
        Self {
            name: name.to_owned(),
            began,
            ended: None,
            tasks: Vec::new(),
            by_id: HashMap::new(),
            counts: counts.to_vec(),
        }
    }

    pub(super) fn task(&self, id: &str) -> Option<&TaskTimeline> {
        self.by_id.get(id).map(|at| &self.tasks[*at])
    }

    /// Its steps in the order of the phase, each with all of its tasks.
    pub(super) fn steps(&self) -> Vec<StepTimeline<'_>> {
        let mut order: Vec<&str> = self.counts.iter().map(|tasks| tasks.step.as_str()).collect();
        let mut groups: HashMap<&str, Vec<&TaskTimeline>> = HashMap::new();
        for task in &self.tasks {
            let (step, _) = split_host(&task.id);
            groups.entry(step).or_default().push(task);
            // Events of an older turnup do not say which steps there are.
            if self.counts.is_empty() && !order.contains(&step) {
                order.push(step);
            }
        }
        order.iter().filter_map(|step| Some(StepTimeline::new(step, groups.get(step)?))).collect()
    }
}

impl TaskTimeline {
    fn new(id: &str, needs: &[String], look: f64, at: f64, state: TaskState) -> Self {
        let ended = (state != TaskState::Running).then_some(at);
        Self { id: id.to_owned(), needs: needs.to_vec(), look, began: at, ended, state }
    }

    /// How long it worked.
    pub(super) fn seconds(&self) -> f64 {
        self.ended.map_or(0.0, |ended| ended - self.began)
    }
}

impl<'c> StepTimeline<'c> {
    fn new(step: &'c str, tasks: &[&'c TaskTimeline]) -> Self {
        let count = |state: TaskState| tasks.iter().filter(|task| task.state == state).count();
        let worked = || tasks.iter().filter(|task| matches!(task.state, TaskState::Done | TaskState::Failed));
        let began = worked().map(|task| task.began).fold(f64::INFINITY, f64::min);
        let ended = worked().filter_map(|task| task.ended).fold(0.0, f64::max);
        let failed = tasks.iter().filter(|task| task.state == TaskState::Failed);
        Self {
            step,
            ran: count(TaskState::Done),
            skipped: count(TaskState::Skipped),
            blocked: count(TaskState::Blocked),
            failed: count(TaskState::Failed),
            failed_hosts: failed.filter_map(|task| split_host(&task.id).1).collect(),
            seconds: (ended - began).max(0.0),
        }
    }

    /// Whether anything else happened than that it was proven done.
    pub(super) fn has_news(&self) -> bool {
        self.ran + self.failed + self.blocked > 0
    }
}
