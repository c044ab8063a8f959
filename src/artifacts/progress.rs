//! How long work in this module is followed and stopped from outside, without knowing who follows.

use std::time::{Duration, Instant};

use crate::Result;

/// Follows the progress of downloads and builds.
pub trait Watch: Sync {
    /// What is being done now, in one line.
    fn progress(&self, message: &str);
    /// How much of it is done, in bytes; a total of 0 means unknown.
    fn count(&self, done: u64, total: u64);
    /// An error when the work has to stop, as after a signal.
    fn check(&self) -> Result<()>;
}

/// Follows nothing; work still stops at a signal.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Watch for NoProgress {
    fn progress(&self, _message: &str) {}

    fn count(&self, _done: u64, _total: u64) {}

    fn check(&self) -> Result<()> {
        crate::exec::signals::check()
    }
}

/// A step that gets artifacts shows their progress as its own.
impl Watch for crate::phase::Cx {
    fn progress(&self, message: &str) {
        Self::progress(self, message);
    }

    fn count(&self, done: u64, total: u64) {
        Self::count(self, done, total);
    }

    fn check(&self) -> Result<()> {
        Self::check(self)
    }
}

/// Lets through what comes at most this often: every consumer of progress pays for each line.
pub(super) struct Pace {
    every: Duration,
    last: Option<Instant>,
}

impl Pace {
    pub(super) const fn new(every: Duration) -> Self {
        Self { every, last: None }
    }

    pub(super) fn is_due(&mut self) -> bool {
        let due = self.last.is_none_or(|last| last.elapsed() >= self.every);
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}
