//! Progress bars on a terminal: one for the phase, one for each running step as long as there are few of them.
//!
//! With hundreds of hosts the screen would be all bars, so above a number of running steps only a count is shown.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::lines::line;
use super::{Show, duration};
use crate::phase::{Event, What};

/// More running steps than this do not get a bar each.
const MOST_BARS: usize = 8;
const SPIN: Duration = Duration::from_millis(120);

pub(super) struct Bars {
    screen: MultiProgress,
    phase: Option<ProgressBar>,
    /// The running steps; those without a bar are only counted.
    steps: BTreeMap<String, Option<ProgressBar>>,
    more: Option<ProgressBar>,
}

impl Bars {
    pub(super) fn new() -> Self {
        Self { screen: MultiProgress::new(), phase: None, steps: BTreeMap::new(), more: None }
    }

    fn begin_phase(&mut self, phase: &str, steps: usize) {
        let bar = self.screen.add(ProgressBar::new(steps as u64));
        bar.set_style(style("{prefix:.bold} [{bar:30}] {pos}/{len} {elapsed:>5}", false));
        bar.set_prefix(phase.to_owned());
        bar.enable_steady_tick(SPIN);
        self.phase = Some(bar);
    }

    fn begin_step(&mut self, step: &str, why: &str) {
        if self.steps.values().flatten().count() >= MOST_BARS {
            self.steps.insert(step.to_owned(), None);
            self.count_more();
            return;
        }
        let bar = self.screen.add(ProgressBar::new_spinner());
        bar.set_style(style("  {spinner} {prefix} {elapsed:.dim} {wide_msg}", true));
        bar.set_prefix(step.to_owned());
        bar.set_message(why.to_owned());
        bar.enable_steady_tick(SPIN);
        self.steps.insert(step.to_owned(), Some(bar));
    }

    fn end_step(&mut self, step: &str) {
        if let Some(Some(bar)) = self.steps.remove(step) {
            bar.finish_and_clear();
            self.screen.remove(&bar);
        }
        self.count_more();
        if let Some(phase) = &self.phase {
            phase.inc(1);
        }
    }

    fn count_more(&mut self) {
        let more = self.steps.values().filter(|bar| bar.is_none()).count();
        if more == 0 {
            if let Some(bar) = self.more.take() {
                bar.finish_and_clear();
                self.screen.remove(&bar);
            }
            return;
        }
        let bar = self.more.get_or_insert_with(|| {
            let bar = self.screen.add(ProgressBar::new_spinner());
            bar.set_style(style("  {msg}", true));
            bar
        });
        bar.set_message(format!("and {more} more steps are running"));
    }

    fn with_bar(&self, step: &str, act: impl FnOnce(&ProgressBar)) {
        if let Some(Some(bar)) = self.steps.get(step) {
            act(bar);
        }
    }

    /// Above the bars, where it stays.
    fn print(&self, event: &Event) {
        if let Some(text) = line(&event.event) {
            let line = format!("{:>7} {text}", format!("{:.1}s", event.seconds));
            self.screen.suspend(|| {
                // anstream decides about colour.
                let _closed = writeln!(anstream::stderr(), "{line}");
            });
        }
    }

    fn clear(&mut self) {
        for bar in self.steps.values().flatten().chain(&self.more).chain(&self.phase) {
            bar.finish_and_clear();
        }
        self.steps.clear();
        (self.more, self.phase) = (None, None);
    }
}

impl Show for Bars {
    fn show(&mut self, event: &Event) {
        match &event.event {
            What::PhaseStarted { phase, steps, .. } => self.begin_phase(phase, *steps),
            What::StepStarted { step, why, .. } => self.begin_step(step, why),
            What::StepProgress { step, message } => self.with_bar(step, |bar| bar.set_message(message.clone())),
            What::StepCount { step, done, total } => self.with_bar(step, |bar| {
                bar.set_style(style("  {spinner} {prefix} {elapsed:.dim} [{bar:20}] {pos}/{len} {wide_msg}", false));
                bar.set_length(*total);
                bar.set_position(*done);
            }),
            What::StepRetry { step, wait_seconds, cause, .. } => {
                let message = format!("next try in {}: {cause}", duration(*wait_seconds));
                self.with_bar(step, |bar| bar.set_message(message));
            }
            What::StepDone { step, .. } | What::StepFailed { step, .. } => {
                self.end_step(step);
                self.print(event);
            }
            What::StepSkipped { .. } | What::StepBlocked { .. } => {
                if let Some(phase) = &self.phase {
                    phase.inc(1);
                }
            }
            What::PhaseDone { .. } => {
                self.clear();
                self.print(event);
            }
            What::Milestone { .. } | What::Note { .. } | What::RunStarted { .. } | What::StepForgotten { .. } => {
                self.print(event);
            }
            What::RunDone { .. } | What::Unknown => {}
        }
    }

    fn close(&mut self, table: &str) {
        self.clear();
        if !table.is_empty() {
            let _closed = write!(anstream::stderr(), "\n{table}");
        }
    }
}

/// A style from one of the templates above; a template with a mistake shows as the default.
fn style(template: &str, spinner: bool) -> ProgressStyle {
    let default = || if spinner { ProgressStyle::default_spinner() } else { ProgressStyle::default_bar() };
    default().template(template).unwrap_or_else(|_| default()).progress_chars("=> ")
}
