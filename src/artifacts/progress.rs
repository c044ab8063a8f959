//! How long work in this module is followed and stopped from outside, without knowing who follows.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
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

/// Follows several downloads at once as one: what is done of all of them.
pub(super) struct Joint<'w> {
    watch: &'w dyn Watch,
    /// Bytes that are there and that there will be, by download.
    parts: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl<'w> Joint<'w> {
    pub(super) fn new(watch: &'w dyn Watch) -> Self {
        Self { watch, parts: Mutex::default() }
    }

    /// The part of one download.
    pub(super) fn part(&self, name: &str) -> DownloadPart<'_> {
        DownloadPart { joint: self, name: name.to_owned() }
    }
}

/// Follows one of several downloads.
pub(super) struct DownloadPart<'j> {
    joint: &'j Joint<'j>,
    name: String,
}

impl Watch for DownloadPart<'_> {
    fn progress(&self, message: &str) {
        self.joint.watch.progress(message);
    }

    fn count(&self, done: u64, total: u64) {
        let (done, total) = {
            let mut parts = self.joint.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.insert(self.name.clone(), (done, total));
            parts.values().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
        };
        self.joint.watch.count(done, total);
    }

    fn check(&self) -> Result<()> {
        self.joint.watch.check()
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
