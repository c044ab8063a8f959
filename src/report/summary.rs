//! What the end of a run shows: the time of each phase, and when each milestone was reached. Pure.

use std::fmt::Write as _;

use super::{Table, duration};
use crate::phase::{Event, What};

/// Times, collected from events.
#[derive(Debug, Default)]
pub(super) struct Times {
    phases: Vec<[String; 4]>,
    milestones: Vec<(String, f64)>,
    total: f64,
    ran: usize,
}

impl Times {
    pub(super) fn note(&mut self, event: &Event) {
        match &event.event {
            What::PhaseDone { phase, ran, skipped, failed, blocked, elapsed_seconds } => {
                self.ran += ran + failed + blocked;
                let mut steps = format!("{ran} ran, {skipped} unchanged");
                for (count, word) in [(failed, "failed"), (blocked, "not begun")] {
                    if *count > 0 {
                        // Writing to a String cannot fail.
                        let _ = write!(steps, ", {count} {word}");
                    }
                }
                let verdict = if failed + blocked > 0 { "failed" } else { "done" };
                self.phases.push([phase.clone(), verdict.into(), steps, duration(*elapsed_seconds)]);
            }
            What::Milestone { name, .. } => self.milestones.push((name.clone(), event.seconds)),
            What::RunDone { elapsed_seconds, .. } => self.total = *elapsed_seconds,
            _ => {}
        }
    }

    /// The text, empty when no phase has ended.
    pub(super) fn render(&self) -> String {
        if self.phases.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["phase", "result", "steps", "time"]).right(3);
        for phase in &self.phases {
            table.row(phase);
        }
        table.row(["total", "", "", &duration(self.total)]);
        let mut text = table.render();
        if !self.milestones.is_empty() {
            let mut table = Table::new(&["milestone", "after"]).right(1);
            for (name, seconds) in &self.milestones {
                table.row([name.clone(), duration(*seconds)]);
            }
            text.push('\n');
            text.push_str(&table.render());
        }
        if self.ran == 0 {
            text.push_str("\nnothing to do: everything is as the configuration says\n");
        }
        text
    }
}
