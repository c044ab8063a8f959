//! Plain lines: for logs, pipes and CI. One line for each event that stays useful later.

use std::io::Write;

use owo_colors::OwoColorize as _;

use super::show::{Show, duration};
use crate::phase::{Event, What};

/// Writes lines; the writer decides about colour.
pub(super) struct Lines {
    out: Box<dyn Write>,
}

impl Lines {
    pub(super) fn new(out: Box<dyn Write>) -> Self {
        Self { out }
    }
}

impl Show for Lines {
    fn show(&mut self, event: &Event) {
        if let Some(text) = line(&event.event) {
            let seconds = format!("{:.1}s", event.seconds);
            // The reader is gone: the work goes on.
            let _closed = writeln!(self.out, "{} {text}", format_args!("{seconds:>7}").dimmed());
        }
    }

    fn close(&mut self, table: &str) {
        if !table.is_empty() {
            let _closed = write!(self.out, "\n{table}");
        }
        let _closed = self.out.flush();
    }
}

/// The line for an event, for those that have one. The bars print the same above themselves.
pub(super) fn line(what: &What) -> Option<String> {
    Some(match what {
        What::RunStarted { version, command, cluster, .. } => {
            format!("{command} (turnup {version}, cluster {cluster})")
        }
        What::PhaseStarted { phase, steps, .. } => format!("{} {steps} steps", format_args!("{phase}:").bold()),
        What::StepStarted { step, why, .. } => format!("{step} begins: {why}"),
        What::StepProgress { step, message } => format!("{step}: {message}"),
        What::StepRetry { step, attempt, wait_seconds, cause } => {
            format!("{step} {}: try {attempt} failed, next in {}: {cause}", "waits".yellow(), duration(*wait_seconds))
        }
        What::StepDone { step, elapsed_seconds } => {
            format!("{step} {} in {}", "done".green(), duration(*elapsed_seconds))
        }
        What::StepFailed { step, message, .. } => format!("{step} {}: {message}", "failed".red()),
        What::StepBlocked { step, because } if because.starts_with("--") => {
            format!("{step} {}: enough hosts failed ({because})", "not started".red())
        }
        What::StepBlocked { step, because } => format!("{step} {}: {because} failed", "not started".red()),
        What::StepForgotten { step } => format!("{step} forgotten: no longer part of the cluster"),
        What::Milestone { name, .. } => format!("{} {name}", "reached:".green()),
        What::PhaseDone { phase, ran, skipped, failed, blocked, elapsed_seconds } => {
            let verdict = if failed + blocked > 0 { "failed".red().to_string() } else { "done".green().to_string() };
            let time = duration(*elapsed_seconds);
            format!("{} {verdict} in {time}: {ran} ran, {skipped} unchanged", format_args!("{phase}:").bold())
        }
        What::Note { message } => message.clone(),
        // Its beginning is told as progress.
        What::StepPart { .. } | What::StepCount { .. } | What::StepSkipped { .. } | What::RunDone { .. } => {
            return None;
        }
        What::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::Class;
    use crate::phase::Tasks;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if let Ok(mut screen) = self.0.lock() {
                screen.extend_from_slice(bytes);
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A run with everything in it, told once.
    fn story() -> Vec<Event> {
        let step = || "bootstrap/node-up@cp-0".to_owned();
        let what = vec![
            What::RunStarted {
                schema: "turnup.events/1".into(),
                version: "0.1.0".into(),
                command: "turnup up".into(),
                cluster: "demo".into(),
                at: jiff::Timestamp::UNIX_EPOCH,
                replaced: Vec::new(),
            },
            What::PhaseStarted {
                phase: "bootstrap".into(),
                steps: 4,
                tasks: vec![
                    Tasks { step: "bootstrap/pki".into(), count: 1 },
                    Tasks { step: "bootstrap/node-up".into(), count: 2 },
                    Tasks { step: "bootstrap/ready".into(), count: 1 },
                ],
            },
            What::StepSkipped { step: "bootstrap/pki".into(), needs: vec![], look_seconds: 0.25 },
            What::StepForgotten { step: "bootstrap/node-up@w-7".into() },
            What::StepStarted {
                step: step(),
                summary: "host becomes node".into(),
                why: "never ran".into(),
                needs: vec!["bootstrap/pki".into()],
                look_seconds: 0.5,
            },
            What::StepProgress { step: step(), message: "copying artifacts".into() },
            What::StepCount { step: step(), done: 3, total: 9 },
            What::StepPart {
                step: step(),
                part: "pull".into(),
                doing: "image".into(),
                elapsed_seconds: 1.0,
                ended: false,
            },
            What::StepRetry { step: step(), attempt: 1, wait_seconds: 1.0, cause: "cannot reach root@10.0.0.2".into() },
            What::Milestone { step: step(), name: "etcd healthy".into() },
            What::StepDone { step: step(), elapsed_seconds: 4.12 },
            What::StepFailed {
                step: "bootstrap/node-up@w-0".into(),
                class: Class::Permanent,
                message: "no space".into(),
                evidence: vec![],
                log: None,
            },
            What::StepBlocked { step: "bootstrap/ready".into(), because: "bootstrap/node-up@w-0".into() },
            What::PhaseDone {
                phase: "bootstrap".into(),
                ran: 1,
                skipped: 1,
                failed: 1,
                blocked: 1,
                elapsed_seconds: 16.5,
            },
            What::RunDone { ok: false, elapsed_seconds: 20.0, max_duration_seconds: None, path: vec![] },
        ];
        what.into_iter().zip(0..).map(|(event, at)| Event { seconds: f64::from(at) * 1.5, event }).collect()
    }

    #[test]
    fn a_run_as_lines() {
        let screen = Screen::default();
        let mut lines = Lines::new(Box::new(anstream::StripStream::new(Box::new(screen.clone()) as Box<dyn Write>)));
        let mut timeline = super::super::timeline::Timeline::default();
        for event in story() {
            timeline.note(&event);
            lines.show(&event);
        }
        let path = super::super::critical_path::critical_path(&timeline);
        lines.close(&super::super::summary::render(&timeline, &path, None));
        let bytes = screen.0.lock().map(|bytes| bytes.clone()).unwrap_or_default();
        insta::assert_snapshot!(String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_run_as_json() {
        let screen = Screen::default();
        let mut json = super::super::json::Json::new(Box::new(screen.clone()));
        let story = story();
        for event in &story {
            json.show(event);
        }
        let bytes = screen.0.lock().map(|bytes| bytes.clone()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let back: Result<Vec<Event>, _> = text.lines().map(serde_json::from_str).collect();
        assert_eq!(back.ok(), Some(story));
        insta::assert_snapshot!(text);
    }
}
