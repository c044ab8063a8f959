//! Progress bars on a terminal: one for the phase, one for each of its steps that is being worked
//! on.
//!
//! A step of many hosts has one line with counts, whatever the number of hosts; what fails is named
//! there and stays above the bars.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::lines::line;
use super::show::{Show, duration};
use super::summary::name_hosts;
use super::timeline::without_hosts;
use crate::phase::{Event, What, split_host};

/// Of a step with more hosts than this no line is printed for each that ends well.
const MANY: usize = 8;
/// So many failures of one step are printed; the rest is counted, and in the table at the end.
const PRINTED: usize = 5;
/// So many parts of one step have a line of their own; more are counted by the step's.
const PARTS: usize = 8;
const SPIN: Duration = Duration::from_millis(120);

pub(super) struct Bars {
    screen: MultiProgress,
    phase: Option<ProgressBar>,
    steps: BTreeMap<String, StepBar>,
    hosts: BTreeSet<String>,
    /// Whether any step has too many hosts for a line each.
    many: bool,
}

/// One step with all of its hosts.
struct StepBar {
    total: usize,
    ended: usize,
    well: usize,
    running: BTreeSet<String>,
    failed: Vec<String>,
    began: f64,
    /// What was said last.
    said: String,
    bar: ProgressBar,
    /// What is worked on beside each other.
    parts: BTreeMap<String, ProgressBar>,
}

impl StepBar {
    /// Shows a part while it is worked on.
    fn part(&mut self, screen: &MultiProgress, part: &str, doing: &str, elapsed: f64, ended: bool) {
        if ended {
            if let Some(bar) = self.parts.remove(part) {
                bar.finish_and_clear();
                screen.remove(&bar);
            }
            return;
        }
        if !self.parts.contains_key(part) {
            if self.parts.len() >= PARTS || self.bar.is_hidden() {
                return;
            }
            let last = self.parts.values().last().unwrap_or(&self.bar);
            let bar = screen.insert_after(last, ProgressBar::new_spinner());
            bar.set_style(style("      {spinner} {elapsed:.dim} {wide_msg}", true));
            bar.set_elapsed(Duration::try_from_secs_f64(elapsed).unwrap_or_default());
            bar.enable_steady_tick(SPIN);
            self.parts.insert(part.to_owned(), bar);
        }
        if let Some(bar) = self.parts.get(part) {
            bar.set_message(format!("{part}: {doing}"));
        }
    }

    /// Nothing of it is worked on any more.
    fn end_parts(&mut self, screen: &MultiProgress) {
        for bar in std::mem::take(&mut self.parts).into_values() {
            bar.finish_and_clear();
            screen.remove(&bar);
        }
    }

    /// Shows where it stands.
    fn refresh(&self) {
        if self.total == 1 {
            self.bar.set_message(self.said.clone());
            return;
        }
        self.bar.set_position(self.ended as u64);
        let mut message = format!("{} running", self.running.len());
        if self.failed.is_empty() {
            message = format!("{message}  {}", self.said);
        } else {
            let names = name_hosts(self.failed.iter().map(String::as_str));
            message = format!("{message}, {} failed: {names}", self.failed.len());
        }
        self.bar.set_message(message);
    }

    /// The line that stays when all of its many hosts have ended.
    fn verdict(&self, step: &str, now: f64) -> Option<Event> {
        let failed = match self.failed.len() {
            0 => String::new(),
            some => format!(", failed on {some}"),
        };
        let message =
            format!("{step}: done on {} of {} in {}{failed}", self.well, self.total, duration(now - self.began));
        (self.total > MANY).then_some(Event { seconds: now, event: What::Note { message } })
    }
}

impl Bars {
    pub(super) fn new() -> Self {
        Self { screen: MultiProgress::new(), phase: None, steps: BTreeMap::new(), hosts: BTreeSet::new(), many: false }
    }

    fn begin_phase(&mut self, phase: &str, steps: usize) {
        let bar = self.screen.add(ProgressBar::new(steps as u64));
        bar.set_style(style("{prefix:.bold} [{bar:30}] {pos}/{len} {elapsed:>5}", false));
        bar.set_prefix(phase.to_owned());
        bar.enable_steady_tick(SPIN);
        self.phase = Some(bar);
    }

    /// The line of a task's step, drawn once one of its tasks begins.
    fn step(&mut self, id: &str) -> Option<&mut StepBar> {
        self.steps.get_mut(split_host(id).0)
    }

    /// What every step of a phase needs before anything of it begins.
    fn expect(&mut self, step: &str, total: usize) {
        self.many |= total > MANY;
        let bar = ProgressBar::hidden();
        let fresh = StepBar {
            total,
            ended: 0,
            well: 0,
            running: BTreeSet::new(),
            failed: Vec::new(),
            began: 0.0,
            said: String::new(),
            bar,
            parts: BTreeMap::new(),
        };
        self.steps.insert(step.to_owned(), fresh);
    }

    fn begin_step(&mut self, id: &str, why: &str, now: f64) {
        self.hosts.extend(split_host(id).1.map(str::to_owned));
        let screen = self.screen.clone();
        let Some(step) = self.step(id) else { return };
        if step.bar.is_hidden() && step.running.is_empty() && step.began == 0.0 {
            step.began = now;
            step.bar = screen.add(ProgressBar::new(step.total as u64));
            let one = "  {spinner} {prefix} {elapsed:.dim} {wide_msg}";
            let many = "  {spinner} {prefix} {elapsed:.dim} [{bar:10}] {pos}/{len} {wide_msg}";
            step.bar.set_style(style(if step.total == 1 { one } else { many }, step.total == 1));
            step.bar.set_prefix(split_host(id).0.to_owned());
            step.bar.enable_steady_tick(SPIN);
        }
        step.running.insert(id.to_owned());
        why.clone_into(&mut step.said);
        step.refresh();
    }

    fn say(&mut self, id: &str, message: &str) {
        let Some(step) = self.step(id) else { return };
        step.said = match split_host(id).1.filter(|_| step.total > 1) {
            Some(host) => format!("{host}: {message}"),
            None => message.to_owned(),
        };
        step.refresh();
    }

    fn count(&mut self, id: &str, done: u64, total: u64) {
        let Some(step) = self.step(id) else { return };
        if step.total > 1 {
            return;
        }
        step.bar.set_style(style("  {spinner} {prefix} {elapsed:.dim} [{bar:20}] {pos}/{len} {wide_msg}", false));
        step.bar.set_length(total);
        step.bar.set_position(done);
    }

    fn part(&mut self, id: &str, part: &str, doing: &str, elapsed: f64, ended: bool) {
        let screen = self.screen.clone();
        if let Some(step) = self.step(id) {
            step.part(&screen, part, doing, elapsed, ended);
        }
    }

    /// One task less to wait for. Prints what stays useful later.
    fn end_task(&mut self, id: &str, event: &Event) {
        if let Some(phase) = &self.phase {
            phase.inc(1);
        }
        let screen = self.screen.clone();
        let Some(step) = self.step(id) else { return self.print(event) };
        step.ended += 1;
        step.running.remove(id);
        step.well += usize::from(matches!(event.event, What::StepDone { .. } | What::StepSkipped { .. }));
        if let What::StepFailed { .. } = event.event {
            step.failed.push(split_host(id).1.unwrap_or(id).to_owned());
        }
        let quiet = match &event.event {
            What::StepFailed { .. } => step.failed.len() > PRINTED,
            What::StepDone { .. } => step.total > MANY,
            _ => true,
        };
        step.refresh();
        let is_last = step.ended >= step.total;
        step.end_parts(&screen);
        let verdict = if is_last && step.began > 0.0 { step.verdict(split_host(id).0, event.seconds) } else { None };
        if is_last {
            step.bar.finish_and_clear();
            screen.remove(&step.bar);
        }
        if !quiet {
            self.print(event);
        }
        if let Some(verdict) = verdict {
            self.print(&verdict);
        }
    }

    /// One of many that are alike: "node worker-17 Ready".
    fn is_one_of_many(&self, milestone: &str) -> bool {
        self.many && without_hosts(milestone, |word| self.hosts.contains(word)) != milestone
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
        for step in self.steps.values_mut() {
            step.end_parts(&self.screen);
        }
        for bar in self.steps.values().map(|step| &step.bar).chain(&self.phase) {
            bar.finish_and_clear();
        }
        self.steps.clear();
        self.phase = None;
    }
}

impl Show for Bars {
    fn show(&mut self, event: &Event) {
        match &event.event {
            What::PhaseStarted { phase, steps, tasks } => {
                self.begin_phase(phase, *steps);
                for tasks in tasks {
                    self.expect(&tasks.step, tasks.count);
                }
            }
            What::StepStarted { step, why, .. } => self.begin_step(step, why, event.seconds),
            What::StepProgress { step, message } => self.say(step, message),
            What::StepCount { step, done, total } => self.count(step, *done, *total),
            What::StepPart { step, part, doing, elapsed_seconds, ended } => {
                self.part(step, part, doing, *elapsed_seconds, *ended);
            }
            What::StepRetry { step, wait_seconds, cause, .. } => {
                self.say(step, &format!("next try in {}: {cause}", duration(*wait_seconds)));
            }
            What::StepFailed { step, .. }
            | What::StepDone { step, .. }
            | What::StepSkipped { step, .. }
            | What::StepBlocked { step, .. } => self.end_task(step, event),
            What::PhaseDone { .. } => {
                self.clear();
                self.print(event);
            }
            What::Milestone { name, .. } if self.is_one_of_many(name) => {}
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
