//! The one error at the end of a run: which step, which host, the cause with its evidence, the log,
//! and how to go on.

use std::any::Any;
use std::collections::BTreeSet;
use std::error::Error as _;
use std::path::PathBuf;

use crate::exec::signals;
use crate::step_id::StepId;
use crate::{Class, Error};

/// How many ids an error lists before it only counts.
const LISTED: usize = 5;

/// A step that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) id: StepId,
    pub(super) error: Error,
    pub(super) log: Option<PathBuf>,
}

/// One error for all that went wrong. `left` steps had not started when a signal came; `full` is
/// the number of failed hosts that were enough to begin no other one.
pub(super) fn into_error(
    phase: &str,
    failures: Vec<Failed>,
    blocked: &[String],
    left: usize,
    full: Option<usize>,
    next: &str,
) -> Error {
    let (stopped, mut failed): (Vec<Failed>, Vec<Failed>) =
        failures.into_iter().partition(|failed| failed.error.class() == Class::Interrupted);
    if failed.is_empty() {
        return interrupted(phase, &stopped, left, next);
    }
    let hosts: BTreeSet<String> = failed.iter().filter_map(|failed| failed.id.host().map(str::to_owned)).collect();
    let first = failed.remove(0);
    let place = first.id.host().map_or_else(String::new, |host| format!(" on {host}"));
    let mut error = Error::new(first.error.class(), format!("step {phase}/{} failed{place}", first.id.step()));
    for line in first.error.evidence_lines() {
        error = error.evidence(line);
    }
    if let Some(log) = &first.log {
        let line = format!("log: {}", log.display());
        if !first.error.evidence_lines().contains(&line) {
            error = error.evidence(line);
        }
    }
    for other in failed.iter().take(LISTED) {
        error = error.evidence(format!("also failed: {}: {}", other.id, one_line(&other.error)));
    }
    if failed.len() > LISTED {
        error = error.evidence(format!("and {} more", failed.len() - LISTED));
    }
    if hosts.len() > 1 {
        error = error.evidence(format!("{} hosts failed: {}", hosts.len(), list(&Vec::from_iter(hosts))));
    }
    if let Some(most) = full {
        error = error.evidence(format!("no step began on any other host after that (--max-failures {most})"));
    }
    if !blocked.is_empty() {
        error = error.evidence(format!("not started because of it: {}", list(blocked)));
    }
    let hint = match first.error.next() {
        Some(advice) => format!("{advice}; then: {next}"),
        None if first.error.class() == Class::Bug => format!("report this with the log; {next} tries again from here"),
        None => format!("{next} (goes on with this step)"),
    };
    error.hint(hint).source(first.error)
}

fn interrupted(phase: &str, stopped: &[Failed], left: usize, next: &str) -> Error {
    let why = signals::check().err().map_or_else(|| "stopped".to_owned(), |error| error.message().to_owned());
    let ids: Vec<String> = stopped.iter().map(|failed| failed.id.to_string()).collect();
    let mut error = Error::interrupted(format!("{why} in phase {phase}"));
    if !ids.is_empty() {
        error = error.evidence(format!("stopped in the middle, will run again: {}", list(&ids)));
    }
    if left > 0 {
        error = error.evidence(format!("not started: {left} steps"));
    }
    error.hint(format!("{next} (goes on from here)"))
}

fn list(ids: &[String]) -> String {
    let named = ids.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(LISTED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Message and causes in one line.
pub(super) fn one_line(error: &Error) -> String {
    let mut text = error.message().to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A panic as the defect that it is.
pub(super) fn from_panic(panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Error::bug(format!("turnup itself failed: {}", said.unwrap_or("a panic without words")))
}
