//! The events of a run as they go into its file, and the last run of the same command to compare
//! with.

use crate::Result;
use crate::phase::Event;
use crate::state::{EventFile, KeptRun};

use super::timeline::Timeline;

/// Only these lines say anything about times; the rest of a long file is not worth reading.
const TELLING: [&str; 9] = [
    "phase-started",
    "phase-done",
    "step-started",
    "step-skipped",
    "step-done",
    "step-failed",
    "step-blocked",
    "milestone",
    "run-done",
];

/// Keeps events. Until there is a file they wait: a run begins before it holds the lock, and
/// without the lock nothing is written.
#[derive(Debug, Default)]
pub(super) struct RunHistory {
    file: Option<EventFile>,
    early: Vec<Vec<u8>>,
    /// An event could not be written: from then on none is, so that no file has a hole.
    broken: bool,
}

impl RunHistory {
    /// Writes what has happened so far; all that follows goes there as well.
    pub(super) fn begin(&mut self, mut file: EventFile) -> Result<()> {
        for line in std::mem::take(&mut self.early) {
            file.append(&line)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Takes one event. An error comes once, and ends the keeping.
    pub(super) fn take(&mut self, event: &Event) -> Result<()> {
        if self.broken {
            return Ok(());
        }
        // Every event is a plain object, which has a form in JSON.
        let Ok(line) = serde_json::to_vec(event) else { return Ok(()) };
        let Some(file) = &mut self.file else {
            self.early.push(line);
            return Ok(());
        };
        file.append(&line).inspect_err(|_| self.broken = true)
    }

    /// The last run of the same command that did any work.
    pub(super) fn last(&self) -> Option<Timeline> {
        last_of(self.file.as_ref()?.earlier())
    }
}

/// Of these runs, the newest first, the first one that ended and did any work.
pub(super) fn last_of<'r>(mut earlier: impl Iterator<Item = &'r KeptRun>) -> Option<Timeline> {
    earlier.find_map(|run| read(run).filter(|timeline| timeline.total.is_some() && timeline.has_work()))
}

/// The course of a kept run; a line that does not read is none.
fn read(run: &KeptRun) -> Option<Timeline> {
    let mut timeline = Timeline::default();
    let lines = run.lines().ok()?;
    let telling = lines.iter().filter(|line| TELLING.iter().any(|kind| line.contains(kind)));
    for event in telling.filter_map(|line| serde_json::from_str(line).ok()) {
        timeline.note(&super::show::shown(&event));
    }
    Some(timeline)
}
