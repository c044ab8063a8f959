//! What a step does, and what it may use while it does it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Inputs, Sink, Turns, What};
use crate::change::{Change, Preview};
use crate::exec::{Run, signals};
use crate::{Error, Result};

/// Whether what a step made is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It is.
    Ok,
    /// It is not, and this is why.
    Drifted(String),
}

/// What a step does. Safe to run again after a crash at any instant.
pub trait Action: Send + Sync {
    /// Everything that the outcome depends on.
    fn inputs(&self, host: Option<&str>) -> Result<Inputs>;
    /// Looks whether what the last run made is still there. Changes nothing.
    fn verify(&self, host: Option<&str>) -> Result<Check>;
    /// What running it would change, for `turnup plan`. Changes nothing. What depends on a step
    /// that has not run yet is said to.
    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        Ok(Preview::default())
    }
    /// In a plan, in place of running it: writes to the imagined directory what a run would write
    /// to the real one, so that later steps can be judged; what only a run makes is a
    /// [placeholder](crate::unknown). False when nothing of that can be told, so that no step that
    /// comes after it can be judged either.
    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        Ok(true)
    }
    /// The turns of which the step takes one before it changes this host; none where it may run
    /// beside all others.
    fn turns(&self, _host: Option<&str>) -> Option<&Turns> {
        None
    }
    /// Does it.
    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()>;
}

/// What a running step may use of the engine.
#[derive(Clone, Debug)]
pub struct Cx {
    pub(super) id: String,
    pub(super) sink: Sink,
    pub(super) log: PathBuf,
    pub(super) deadline: Instant,
    pub(super) announced: Option<Arc<Preview>>,
    /// Time that counts for no limit of the step.
    pub(super) excused: Arc<Mutex<Duration>>,
}

impl Cx {
    /// A context outside of any engine: for tests, and for commands that do a step's work by hand.
    #[must_use]
    pub fn detached(id: impl Into<String>, sink: Sink, log: impl Into<PathBuf>, timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Self { id: id.into(), sink, log: log.into(), deadline, announced: None, excused: Arc::default() }
    }
    /// Says what is being done, in a few words.
    pub fn progress(&self, message: impl Into<String>) {
        // Often a line of a tool's output: its escape codes must not reach a terminal.
        let message = anstream::adapter::strip_str(&message.into()).to_string();
        self.sink.emit(What::StepProgress { step: self.id.clone(), message });
    }
    /// Says how much of it is done.
    pub fn count(&self, done: u64, total: u64) {
        self.sink.emit(What::StepCount { step: self.id.clone(), done, total });
    }
    /// Says what is done with one of several parts that are worked on at the same time, and for how
    /// many seconds already.
    pub fn part(&self, part: &str, doing: &str, elapsed_seconds: f64, ended: bool) {
        let (part, doing) = (part.to_owned(), doing.to_owned());
        self.sink.emit(What::StepPart { step: self.id.clone(), part, doing, elapsed_seconds, ended });
    }
    /// A milestone was reached: "etcd healthy".
    pub fn milestone(&self, name: impl Into<String>) {
        self.sink.emit(What::Milestone { step: self.id.clone(), name: name.into() });
    }
    /// Whether a plan says what this step may change, so that it is worth to look once more before
    /// changing it.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.announced.is_some()
    }
    /// Refuses changes that the plan does not announce. Without a plan all are welcome.
    pub fn admit(&self, changes: &[Change]) -> Result<()> {
        self.announced.as_ref().map_or(Ok(()), |announced| require_announced(announced, &self.id, changes))
    }
    /// The file that this step's children log to.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }
    /// What is left of the step's time.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        (self.deadline + self.excused()).saturating_duration_since(Instant::now())
    }
    /// Does what has a limit of its own, so that its time counts for none of the step's.
    pub fn excuse<T>(&self, act: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = act();
        *self.excused.lock().unwrap_or_else(PoisonError::into_inner) += start.elapsed();
        result
    }
    /// How much time counts for no limit of the step.
    pub(super) fn excused(&self) -> Duration {
        *self.excused.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// An error once a signal has asked us to stop.
    pub fn check(&self) -> Result<()> {
        signals::check()
    }
    /// Sleeps, but not longer than until a signal comes.
    pub fn sleep(&self, duration: Duration) -> Result<()> {
        signals::sleep(duration)
    }
    /// A run that logs to this step's log and ends with this step's time. The working directory is
    /// still to be given.
    pub fn command(&self, program: impl Into<std::ffi::OsString>) -> Run {
        Run::new(program).log(&self.log).timeout(self.remaining())
    }
}

/// Refuses the first of a step's changes that was not announced.
pub(super) fn require_announced(announced: &Preview, id: &str, changes: &[Change]) -> Result<()> {
    let Some(change) = announced.find_unannounced(changes) else { return Ok(()) };
    Err(change.lines.iter().take(8).fold(not_in_plan(&format!("{id}: {change}")), Error::evidence))
}

/// The world is not the one that the plan was made for.
pub(super) fn not_in_plan(what: &str) -> Error {
    Error::precondition(format!("not in the plan: {what}")).hint("turnup plan --out FILE (and look at it again)")
}
