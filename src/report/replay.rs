//! Finished runs, and runs of other processes: shown from their recorded events.

use std::io::Write;

use super::lines::Lines;
use super::timeline::Timeline;
use super::{Show as _, critical_path, history, summary};
use crate::phase::{Event, What};
use crate::state::KeptRun;

/// Shows the events of a run one by one as plain lines, and at their end the tables of times.
pub struct Replay {
    lines: Lines,
    timeline: Timeline,
}

impl Replay {
    /// A replay that writes there.
    #[must_use]
    pub fn new(out: Box<dyn Write>) -> Self {
        Self { lines: Lines::new(out), timeline: Timeline::default() }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &Event) {
        let event = super::shown(event);
        self.timeline.note(&event);
        self.lines.show(&event);
    }

    /// Shows the tables. `earlier` are the runs before this one, the newest first.
    pub fn finish(mut self, earlier: &[KeptRun]) {
        let last = if self.timeline.has_work() { history::last_of(earlier.iter()) } else { None };
        let mut chain = critical_path::critical_path(&self.timeline);
        critical_path::compare(&mut chain, last.as_ref());
        self.lines.close(&summary::render(&self.timeline, &chain, last.as_ref()));
    }
}

/// What is to be said of a kept run in one line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRun {
    /// When it began, as far as its file says so.
    pub began: Option<jiff::Timestamp>,
    /// Whether all went well; nothing when it has not ended, or not in order.
    pub ok: Option<bool>,
    /// How long it took; of a run without an end, up to its last event.
    pub seconds: f64,
    /// Steps that ran, that were proven done, that failed and that did not begin.
    pub counts: [usize; 4],
}

impl RecordedRun {
    /// Reads its file.
    pub fn read(run: &KeptRun) -> crate::Result<Self> {
        let mut recorded = Self::default();
        let lines = run.lines()?;
        let telling = ["run-started", "run-done", "phase-done"];
        for (at, line) in lines.iter().enumerate() {
            if at + 1 < lines.len() && !telling.iter().any(|kind| line.contains(kind)) {
                continue;
            }
            let Ok(Event { seconds, event }) = serde_json::from_str(line) else { continue };
            recorded.seconds = seconds;
            match event {
                What::RunStarted { at, .. } => recorded.began = Some(at),
                What::PhaseDone { ran, skipped, failed, blocked, .. } => {
                    for (sum, count) in recorded.counts.iter_mut().zip([ran, skipped, failed, blocked]) {
                        *sum += count;
                    }
                }
                What::RunDone { ok, .. } => recorded.ok = Some(ok),
                _ => {}
            }
        }
        Ok(recorded)
    }
}
