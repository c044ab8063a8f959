//! Runs what is not proven done: in order, in parallel, with a journal that survives a crash at any
//! instant.
//!
//! For each step: intent to the disk, effect, outcome to the disk. A failure stops the steps that
//! need the failed one and no others. The engine never undoes anything and never prints.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::failure::{self, Failed};
use super::graph::{Task, dependents, expand};
use super::plan::{self, PhasePlan, judge};
use super::plan_guard::ApprovedPlan;
use super::step_runner::StepRunner;
use super::turns::Wait;
use super::{Action, Cx, Phase, Sink, Step, Tasks, What};
use crate::exec::signals;
use crate::failpoint;
use crate::state::{ClusterLock, JournalEntry, Outcome, State, Store};
use crate::step_id::StepId;
use crate::{Class, Error, Result};

/// How many steps run at once where nothing says so.
const PARALLEL: usize = 10;
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How often a waiting engine looks whether a signal has come.
const TICK: Duration = Duration::from_millis(100);

/// How a phase went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Steps that ran.
    pub ran: usize,
    /// Steps that were proven done.
    pub skipped: usize,
    /// How long it took.
    pub elapsed: Duration,
}

/// Runs phases against one store.
pub struct Engine<'a> {
    store: &'a Store,
    lock: &'a ClusterLock,
    sink: Sink,
    parallel: Option<usize>,
    max_failures: Option<usize>,
    next_command: String,
    first_wait: Duration,
    approved: Option<Arc<ApprovedPlan>>,
    /// Whether anything ran since this engine was made: what it did may be why a later proof fails.
    moved: bool,
}

impl<'a> Engine<'a> {
    /// An engine; the lock is proof that no other process writes.
    #[must_use]
    pub fn new(store: &'a Store, lock: &'a ClusterLock, sink: Sink) -> Self {
        Self {
            store,
            lock,
            sink,
            parallel: None,
            max_failures: None,
            next_command: "turnup up".into(),
            first_wait: Duration::from_secs(1),
            approved: None,
            moved: false,
        }
    }

    /// Nothing but what this plan announces may be done.
    #[must_use]
    pub fn approved_by(mut self, plan: Option<Arc<ApprovedPlan>>) -> Self {
        self.approved = plan;
        self
    }

    /// How many steps may run at once; by default what the phase says, else 10.
    #[must_use]
    pub fn parallel(mut self, steps: impl Into<Option<usize>>) -> Self {
        self.parallel = steps.into().map(|steps| steps.max(1));
        self
    }

    /// Once so many hosts have failed, no step begins on any host; those that run go to their end.
    /// No limit by default.
    #[must_use]
    pub fn max_failures(mut self, hosts: Option<usize>) -> Self {
        self.max_failures = hosts;
        self
    }

    /// The command with which a failure tells the user to continue; `turnup up` by default.
    #[must_use]
    pub fn next_command(mut self, command: impl Into<String>) -> Self {
        self.next_command = command.into();
        self
    }

    /// The wait before the second try, doubled before each further one; 1 s by default.
    #[must_use]
    pub fn first_wait(mut self, wait: Duration) -> Self {
        self.first_wait = wait;
        self
    }

    /// What `run` would do, and why, of a phase that works on a shadow of the cluster's directory.
    /// Needs no engine and no lock.
    pub fn plan(store: &Store, phase: &Phase, before: Option<&StepId>) -> Result<PhasePlan> {
        plan::plan(store, phase, before)
    }

    /// What `run` would leave in a directory with nothing in it: every step is simulated. Returns
    /// one digest of all inputs of each task; none where they are not known yet.
    pub fn simulate(store: &Store, phase: &Phase) -> Result<Vec<(StepId, Option<String>)>> {
        plan::simulate(store, phase)
    }

    /// What one task, and those that it needs, would leave there.
    pub fn simulate_task(store: &Store, phase: &Phase, id: &StepId) -> Result<()> {
        plan::simulate_task(store, phase, id)
    }

    /// What those that a task needs would leave there.
    pub fn simulate_needs(store: &Store, phase: &Phase, id: &StepId) -> Result<()> {
        plan::simulate_needs(store, phase, id)
    }

    /// Runs what is not proven done.
    pub fn run(&mut self, phase: &Phase) -> Result<Summary> {
        let start = Instant::now();
        signals::check()?;
        self.require_room(phase)?;
        let actions = phase.all_actions(self.store)?;
        let tasks = expand(phase);
        let state = self.forget_gone(phase)?;
        let counts = count_tasks(phase, &tasks);
        self.sink.emit(What::PhaseStarted { phase: phase.name.clone(), steps: tasks.len(), tasks: counts });
        let mut board = Scheduler::new(&tasks, self.moved, self.max_failures);
        let clock = Clock::start(&phase.limits);
        self.work_off(phase, &actions, (&state, &clock), &mut board);
        self.store.flush(self.lock)?;
        self.moved |= board.ran > 0;
        self.sink.emit(What::PhaseDone {
            phase: phase.name.clone(),
            ran: board.ran,
            skipped: board.skipped,
            failed: board.failures.len(),
            blocked: board.blocked.len(),
            elapsed_seconds: start.elapsed().as_secs_f64(),
        });
        if board.is_clean() {
            return Ok(Summary { ran: board.ran, skipped: board.skipped, elapsed: start.elapsed() });
        }
        if let Some(over) = clock.over(board.left).filter(|_| board.failures.is_empty()) {
            return Err(over.hint(self.next_command.clone()));
        }
        let full = self.max_failures.filter(|_| board.is_full());
        Err(failure::into_error(&phase.name, board.failures, &board.blocked, board.left, full, &self.next_command))
    }

    /// What waits for each other would wait for ever when it may not run side by side.
    fn require_room(&self, phase: &Phase) -> Result<()> {
        let parallel = self.parallel_in(phase);
        if phase.at_once <= parallel {
            return Ok(());
        }
        let (needed, name) = (phase.at_once, &phase.name);
        let message = format!("{needed} steps of the phase {name} wait for each other, and --parallel is {parallel}");
        Err(Error::usage(message).hint(format!("{} --parallel {needed}", self.next_command)))
    }

    fn parallel_in(&self, phase: &Phase) -> usize {
        self.parallel.or(phase.limits.parallel).unwrap_or(PARALLEL).max(1)
    }

    /// Drops the records of hosts and steps that are gone; returns the state from which this run
    /// sets out. Each task is judged once and only by its own record, so the state need not be read
    /// again while the phase runs.
    fn forget_gone(&self, phase: &Phase) -> Result<State> {
        let state = self.store.state()?;
        for step in plan::gone(&state, phase).iter().map(ToString::to_string) {
            self.store.record(self.lock, JournalEntry::Forgotten { step: step.clone() })?;
            self.sink.emit(What::StepForgotten { step });
        }
        Ok(state)
    }

    /// Hands out tasks to threads until nothing is ready and nothing runs.
    fn work_off(
        &self,
        phase: &Phase,
        actions: &[StepRunner<'_>],
        (state, clock): (&State, &Clock),
        board: &mut Scheduler<'_>,
    ) {
        let (sender, receiver) = mpsc::channel();
        let parallel = self.parallel_in(phase);
        let mut running: Vec<String> = Vec::new();
        let mut told = false;
        thread::scope(|scope| {
            loop {
                while running.len() < parallel
                    && !signals::interrupted()
                    && !clock.is_over()
                    && let Some(at) = board.ready.pop_front()
                {
                    let task = &board.tasks[at];
                    let work = Work {
                        task,
                        needs: board.names_of(&task.needs),
                        step: &phase.manifest.steps[task.step],
                        action: actions[task.step].as_ref(),
                        state,
                        follows: board.follows(at),
                        clock,
                    };
                    let sender = sender.clone();
                    running.push(task.id.to_string());
                    scope.spawn(move || drop(sender.send((at, self.perform(&work)))));
                }
                if running.is_empty() {
                    break;
                }
                match receiver.recv_timeout(TICK) {
                    Ok((at, result)) => {
                        let ended = board.tasks[at].id.to_string();
                        running.retain(|id| *id != ended);
                        for (step, because) in board.settle(at, result) {
                            self.sink.emit(What::StepBlocked { step, because });
                        }
                    }
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                }
                if signals::interrupted() && !told && !running.is_empty() {
                    told = true;
                    let message =
                        format!("stopping: waiting for {}; a second signal changes nothing", running.join(", "));
                    self.sink.emit(What::Note { message });
                }
            }
        });
    }

    /// One task from judgement to outcome. A panic of an action is a failure of that step alone.
    fn perform(&self, work: &Work<'_>) -> Result<Ended, Box<Failed>> {
        let task = work.task;
        let log = self.store.log_path(&task.id.to_string());
        let performed = catch_unwind(AssertUnwindSafe(|| self.judge_and_run(work, &log)));
        let result = performed.unwrap_or_else(|panic| Err(failure::from_panic(panic.as_ref())));
        result.map_err(|error| {
            let log = log.is_file().then_some(log);
            self.sink.emit(What::StepFailed {
                step: task.id.to_string(),
                class: error.class(),
                message: failure::one_line(&error),
                evidence: error.evidence_lines().to_vec(),
                log: log.as_ref().map(|log| log.display().to_string()),
            });
            Box::new(Failed { id: task.id.clone(), error, log })
        })
    }

    fn judge_and_run(&self, work: &Work<'_>, log: &Path) -> Result<Ended> {
        let Work { task, step, action, state, follows, .. } = *work;
        let (host, id) = (task.id.host(), task.id.to_string());
        let _inside = failpoint::within(format_args!("{id}"));
        let look = Instant::now();
        let plan::Judgement { why, inputs, .. } = judge(state, &task.id, action, host)?;
        let (needs, look_seconds) = (work.needs.clone(), look.elapsed().as_secs_f64());
        let Some(why) = why else {
            self.sink.emit(What::StepSkipped { step: id, needs, look_seconds });
            return Ok(Ended::Skipped);
        };
        let turns = action.turns(host);
        let _turn = match turns.map(|turns| turns.wait(|| work.clock.is_over())).transpose()? {
            Some(Wait::Stopped(because)) => return Ok(Ended::Blocked(because)),
            Some(Wait::Over) => return Ok(Ended::NotStarted),
            turn => turn,
        };
        let deadline = work.clock.deadline(step.timeout, host)?;
        let announced = match &self.approved {
            Some(approved) => Some(Arc::new(approved.admit(&task.id, &why, &inputs, follows)?)),
            None => None,
        };
        let start = Instant::now();
        let digest = inputs.digest();
        self.store.record(self.lock, JournalEntry::Intent { step: id.clone(), digest: digest.clone() })?;
        let summary = step.summary.clone();
        self.sink.emit(What::StepStarted { step: id.clone(), summary, why, needs, look_seconds });
        let left = deadline.saturating_duration_since(Instant::now());
        let cx = Cx { announced, ..Cx::detached(&id, self.sink.clone(), log, left) };
        let tried = catch_unwind(AssertUnwindSafe(|| self.try_until(step, action, host, &cx)));
        let result = tried.unwrap_or_else(|panic| Err(failure::from_panic(panic.as_ref())));
        work.clock.spend(host, start.elapsed().saturating_sub(cx.excused()));
        let result = result.map_err(|error| work.clock.explain(error, host));
        if let Err(error) = result {
            // Without an outcome the intent stays open, and the next run says "interrupted last
            // time".
            if error.class() != Class::Interrupted {
                if let Some(turns) = turns {
                    turns.stop(&id);
                }
                self.conclude(&id, Outcome::Failed { message: failure::one_line(&error) })?;
            }
            return Err(error);
        }
        let elapsed = start.elapsed();
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.conclude(&id, Outcome::Done { digest, inputs: inputs.fingerprints().clone(), elapsed_ms })?;
        self.sink.emit(What::StepDone { step: id, elapsed_seconds: elapsed.as_secs_f64() });
        Ok(Ended::Ran)
    }

    fn conclude(&self, id: &str, outcome: Outcome) -> Result<()> {
        self.store.record(self.lock, JournalEntry::Outcome { step: id.to_owned(), outcome })
    }

    /// Tries until it succeeds, fails with a class that is not tried again, or has no time left.
    fn try_until(&self, step: &Step, action: &dyn Action, host: Option<&str>, cx: &Cx) -> Result<()> {
        // A test that kills hundreds of times has no time for these waits.
        let mut wait = if failpoint::is_enabled() { TICK } else { self.first_wait };
        for attempt in 1.. {
            signals::check()?;
            let Err(error) = action.run(host, cx) else { return Ok(()) };
            if let Err(stopped) = signals::check() {
                // Whatever a tool made of the signal that it was sent: the step did not fail, it
                // was stopped.
                return Err(stopped.source(error));
            }
            if !step.retry.contains(&error.class()) {
                return Err(error);
            }
            if wait >= cx.remaining() {
                let tries = if attempt == 1 { "try" } else { "tries" };
                return Err(error
                    .evidence(format!("gave up after {attempt} {tries}: the step's timeout is {:?}", step.timeout)));
            }
            self.sink.emit(What::StepRetry {
                step: cx.id.clone(),
                attempt,
                wait_seconds: wait.as_secs_f64(),
                cause: failure::one_line(&error),
            });
            signals::sleep(wait)?;
            wait = if failpoint::is_enabled() { TICK } else { (wait * 2).min(LONGEST_WAIT) };
        }
        Ok(())
    }
}

/// A task with all that it takes to do it.
struct Work<'w> {
    task: &'w Task,
    /// The ids of what it waited for.
    needs: Vec<String>,
    step: &'w Step,
    action: &'w dyn Action,
    state: &'w State,
    /// Whether something that it comes after ran in this run.
    follows: bool,
    /// How much time is left.
    clock: &'w Clock,
}

/// How a task ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ended {
    Ran,
    Skipped,
    /// It took no turn, because this step failed in its own.
    Blocked(String),
    /// It took no turn within the phase's time.
    NotStarted,
}

/// How many tasks each step has, in the order of the file.
fn count_tasks(phase: &Phase, tasks: &[Task]) -> Vec<Tasks> {
    let mut counts = vec![0; phase.manifest.steps.len()];
    for task in tasks {
        counts[task.step] += 1;
    }
    let named = phase.manifest.steps.iter().zip(counts);
    named.map(|(step, count)| Tasks { step: StepId::new(&phase.name, &step.name).to_string(), count }).collect()
}

/// What is ready, what has ended and what never will begin.
struct Scheduler<'t> {
    tasks: &'t [Task],
    /// Of each task, whether it or one that it comes after ran.
    moved: Vec<bool>,
    /// For each task those that wait for it.
    dependents: Vec<Vec<usize>>,
    waiting: Vec<usize>,
    ready: VecDeque<usize>,
    ran: usize,
    skipped: usize,
    failures: Vec<Failed>,
    blocked: Vec<String>,
    is_blocked: Vec<bool>,
    /// Tasks that have not ended and are not blocked.
    left: usize,
    failed_hosts: BTreeSet<&'t str>,
    /// So many failed hosts are enough.
    max_failures: Option<usize>,
}

impl<'t> Scheduler<'t> {
    fn new(tasks: &'t [Task], moved: bool, max_failures: Option<usize>) -> Self {
        let waiting: Vec<usize> = tasks.iter().map(|task| task.needs.len()).collect();
        let ready = (0..tasks.len()).filter(|at| waiting[*at] == 0).collect();
        Self {
            tasks,
            moved: vec![moved; tasks.len()],
            dependents: dependents(tasks),
            waiting,
            ready,
            ran: 0,
            skipped: 0,
            failures: Vec::new(),
            blocked: Vec::new(),
            is_blocked: vec![false; tasks.len()],
            left: tasks.len(),
            failed_hosts: BTreeSet::new(),
            max_failures,
        }
    }

    fn follows(&self, at: usize) -> bool {
        self.moved[at] || self.tasks[at].needs.iter().any(|need| self.moved[*need])
    }

    fn names_of(&self, tasks: &[usize]) -> Vec<String> {
        tasks.iter().map(|at| self.tasks[*at].id.to_string()).collect()
    }

    /// Whether so many hosts have failed that no step may begin on any host.
    fn is_full(&self) -> bool {
        self.max_failures.is_some_and(|most| self.failed_hosts.len() >= most)
    }

    fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.left == 0
    }

    /// Notes how a task ended; returns the tasks that it blocks, each with the one to blame.
    fn settle(&mut self, at: usize, result: Result<Ended, Box<Failed>>) -> Vec<(String, String)> {
        self.left -= 1;
        self.moved[at] = self.follows(at) || matches!(result, Ok(Ended::Ran) | Err(_));
        match result {
            Ok(Ended::Blocked(because)) => {
                let id = self.tasks[at].id.to_string();
                self.blocked.push(id.clone());
                let mut blocked = vec![(id, because.clone())];
                blocked.extend(self.block(at, &because));
                blocked
            }
            Ok(Ended::NotStarted) => {
                self.left += 1;
                Vec::new()
            }
            Ok(ended) => {
                if ended == Ended::Ran {
                    self.ran += 1;
                } else {
                    self.skipped += 1;
                }
                for next in &self.dependents[at] {
                    self.waiting[*next] -= 1;
                    if self.waiting[*next] == 0 {
                        self.ready.push_back(*next);
                    }
                }
                Vec::new()
            }
            Err(failed) => {
                // A stop is no failure: the steps after it simply have not started.
                let blamed = (failed.error.class() != Class::Interrupted).then(|| failed.id.to_string());
                self.failures.push(*failed);
                let Some(because) = blamed else { return Vec::new() };
                let mut blocked = self.block(at, &because);
                self.failed_hosts.extend(self.tasks[at].id.host());
                if self.is_full() {
                    blocked.extend(self.close_hosts());
                }
                blocked
            }
        }
    }

    /// Blocks every step of a host that has not started, and what waits for it.
    fn close_hosts(&mut self) -> Vec<(String, String)> {
        let because = "--max-failures";
        let mut blocked = Vec::new();
        let tasks = self.tasks;
        for (at, task) in tasks.iter().enumerate().filter(|(_, task)| task.id.host().is_some()) {
            let is_ready = self.ready.iter().position(|ready| *ready == at);
            let id = task.id.to_string();
            if is_ready.is_none() && (self.waiting[at] == 0 || self.blocked.contains(&id)) {
                continue;
            }
            is_ready.and_then(|place| self.ready.remove(place));
            // One that it waits for may run, and fail as well.
            self.is_blocked[at] = true;
            self.blocked.push(id.clone());
            self.left -= 1;
            blocked.push((id, because.to_owned()));
            blocked.extend(self.block(at, because));
        }
        blocked
    }

    fn block(&mut self, at: usize, because: &str) -> Vec<(String, String)> {
        let mut blocked = Vec::new();
        let mut roots = vec![at];
        while let Some(root) = roots.pop() {
            for next in &self.dependents[root] {
                if !std::mem::replace(&mut self.is_blocked[*next], true) {
                    let id = self.tasks[*next].id.to_string();
                    self.blocked.push(id.clone());
                    self.left -= 1;
                    blocked.push((id, because.to_owned()));
                    roots.push(*next);
                }
            }
        }
        blocked
    }
}
