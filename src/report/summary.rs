//! What the end of a run shows: the steps with their counts and times, who failed, the milestones,
//! and the critical path. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::show::duration;
use super::table::Table;
use super::timeline::{PhaseTimeline, StepTimeline, Timeline, without_hosts};
use crate::phase::{PartKind, PathPart, split_host};

/// How many names of hosts are listed before the rest is only counted.
const NAMED: usize = 5;
/// More milestones of one kind than this are one line.
const MANY_MILESTONES: usize = 5;
/// Parts of the critical path below this share of the whole, or these seconds, are added up.
const SHORT: (f64, f64) = (0.01, 0.05);
/// Lines are folded at this width.
const WIDTH: usize = 78;

/// The text, empty when no phase has started.
pub(super) fn render(timeline: &Timeline, path: &[PathPart], last: Option<&Timeline>) -> String {
    if timeline.phases.is_empty() {
        return String::new();
    }
    let mut text = steps(timeline, last);
    for line in failed_hosts(timeline) {
        text.push_str(&line);
    }
    text.push_str(&milestones(timeline));
    if timeline.has_work() {
        text.push_str(&critical_path(timeline, path, last.is_some()));
    } else if timeline.total.is_some()
        && timeline.phases.iter().all(|phase| phase.steps().iter().all(|step| !step.has_news()))
    {
        text.push_str("\nnothing to do: everything is as the configuration says\n");
    }
    text
}

/// Names of hosts as far as a line has room for them: the first ones, and how many more.
pub(super) fn name_hosts<'h>(hosts: impl ExactSizeIterator<Item = &'h str>) -> String {
    let more = hosts.len().saturating_sub(NAMED);
    let names: Vec<&str> = hosts.take(NAMED).collect();
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}

/// One row a phase, below it one for each of its steps that did anything.
fn steps(timeline: &Timeline, last: Option<&Timeline>) -> String {
    let all: Vec<(&PhaseTimeline, Vec<StepTimeline<'_>>)> =
        timeline.phases.iter().map(|phase| (phase, phase.steps())).collect();
    let any =
        |count: fn(&StepTimeline<'_>) -> usize| all.iter().flat_map(|(_, steps)| steps).any(|step| count(step) > 0);
    let (failed, blocked) = (any(|step| step.failed), any(|step| step.blocked));
    let mut headings = vec!["step", "ran", "unchanged"];
    headings.extend(failed.then_some("failed"));
    headings.extend(blocked.then_some("not started"));
    headings.push("time");
    headings.extend(last.map(|_| "last run"));
    let mut table = (1..headings.len()).fold(Table::new(&headings), Table::right);
    let mut row = |name: String, steps: &[StepTimeline<'_>], time: Option<f64>, last_time: Option<f64>| {
        let sum = |count: fn(&StepTimeline<'_>) -> usize| number(steps.iter().map(count).sum());
        let mut cells = vec![name, sum(|step| step.ran), sum(|step| step.skipped)];
        cells.extend(failed.then(|| sum(|step| step.failed)));
        cells.extend(blocked.then(|| sum(|step| step.blocked)));
        cells.push(time.map_or_else(String::new, duration));
        cells.extend(last.map(|_| last_time.map_or_else(|| "-".into(), duration)));
        table.row(cells);
    };
    for (phase, steps) in &all {
        let before = last.and_then(|last| last.phases.iter().find(|known| known.name == phase.name));
        let time = |phase: &PhaseTimeline| phase.ended.map(|ended| ended - phase.began);
        row(phase.name.clone(), steps, time(phase), before.and_then(time));
        let earlier = before.map(PhaseTimeline::steps).unwrap_or_default();
        for step in steps.iter().filter(|step| step.has_news()) {
            let name = step.step.split_once('/').map_or(step.step, |(_, name)| name);
            let known = earlier.iter().find(|known| known.step == step.step && known.ran + known.failed > 0);
            row(
                format!("  {name}"),
                std::slice::from_ref(step),
                (step.ran + step.failed > 0).then_some(step.seconds),
                known.map(|known| known.seconds),
            );
        }
    }
    row("total".into(), &[], timeline.total, last.and_then(|last| last.total));
    table.render()
}

/// Zero is nothing to read.
fn number(count: usize) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn failed_hosts(timeline: &Timeline) -> Vec<String> {
    let steps: Vec<StepTimeline<'_>> = timeline.phases.iter().flat_map(PhaseTimeline::steps).collect();
    let failed = steps.iter().filter(|step| !step.failed_hosts.is_empty());
    let line = |step: &StepTimeline<'_>| {
        let hosts = if step.failed == 1 { "1 host".into() } else { format!("{} hosts", step.failed) };
        let names = name_hosts(step.failed_hosts.iter().copied());
        fold(&format!("\n{} failed on {hosts}: {names}", step.step))
    };
    failed.map(line).collect()
}

/// The text in lines that fit, divided at blanks; every further line is indented.
fn fold(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        if width > 0 && width + 1 + word.chars().count() > WIDTH {
            lines.push_str("\n ");
            width = 1;
        }
        if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += word.trim_start().chars().count();
    }
    lines.push('\n');
    lines
}

fn milestones(timeline: &Timeline) -> String {
    if timeline.milestones.is_empty() {
        return String::new();
    }
    let hosts: BTreeSet<&str> = timeline.tasks().filter_map(|task| split_host(&task.id).1).collect();
    let kind = |name: &str| without_hosts(name, |word| hosts.contains(word));
    let kinds: Vec<String> = timeline.milestones.iter().map(|(name, _)| kind(name)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in &kinds {
        *counts.entry(kind).or_default() += 1;
    }
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    let mut table = Table::new(&["milestone", "after"]).right(1);
    for (at, (name, seconds)) in timeline.milestones.iter().enumerate() {
        let (same, so_far) = (counts[kinds[at].as_str()], shown.entry(&kinds[at]).or_default());
        *so_far += 1;
        if same <= MANY_MILESTONES {
            table.row([name.clone(), duration(*seconds)]);
        } else if *so_far == same {
            // The last of them is when all have it.
            table.row([format!("{} ({same} of them)", kinds[at]), duration(*seconds)]);
        }
    }
    format!("\n{}", table.render())
}

fn critical_path(timeline: &Timeline, path: &[PathPart], compared: bool) -> String {
    let total = timeline.total.unwrap_or_default();
    let mut headings = vec!["critical path", "time"];
    headings.extend(compared.then_some("last run"));
    let mut table = (1..headings.len()).fold(Table::new(&headings), Table::right);
    let (long, short): (Vec<&PathPart>, Vec<&PathPart>) =
        path.iter().partition(|part| part.seconds >= SHORT.1.max(total * SHORT.0));
    for part in &long {
        let mut cells = vec![describe(part), duration(part.seconds)];
        cells.extend(compared.then(|| part.last_seconds.map_or_else(|| "-".into(), duration)));
        table.row(cells);
    }
    if !long.is_empty() && !short.is_empty() {
        let seconds = short.iter().map(|part| part.seconds).sum();
        let parts = if short.len() == 1 { "1 shorter part".into() } else { format!("{} shorter parts", short.len()) };
        table.row([parts, duration(seconds)]);
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

/// What a part of the critical path is, in words.
pub(super) fn describe(part: &PathPart) -> String {
    match part.kind {
        PartKind::Step => part.name.clone(),
        PartKind::Proof => format!("{}: is it done?", part.name),
        PartKind::Turn => format!("{}: waits for its turn", part.name),
        PartKind::Between => format!("({})", part.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_up_to_five() {
        let hosts = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(name_hosts(hosts[..5].iter().copied()), "a, b, c, d, e");
        assert_eq!(name_hosts(hosts.into_iter()), "a, b, c, d, e and 2 more");
    }

    #[test]
    fn many_milestones_that_are_alike_are_one_row() {
        use crate::phase::{Event, What};
        let mut timeline = Timeline::default();
        let started = What::PhaseStarted { phase: "p".into(), steps: 8, tasks: Vec::new() };
        timeline.note(&Event { seconds: 0.0, event: started });
        for at in 1..=7 {
            let step = format!("p/s@w-{at}");
            let name = format!("node w-{at} Ready");
            let seconds = f64::from(at);
            timeline.note(&Event { seconds, event: What::Milestone { step: step.clone(), name } });
            timeline.note(&Event { seconds, event: What::StepDone { step, elapsed_seconds: 1.0 } });
        }
        let name = "API server ready".into();
        timeline.note(&Event { seconds: 9.0, event: What::Milestone { step: "p/api".into(), name } });
        assert_eq!(
            milestones(&timeline),
            "\nmilestone                 after\nnode * Ready (7 of them)   7.0s\nAPI server ready           9.0s\n"
        );
    }

    #[test]
    fn a_long_line_is_folded_at_blanks() {
        let text = format!("one {} three", "x".repeat(WIDTH - 3));
        assert_eq!(fold(&text), format!("one\n  {}\n  three\n", "x".repeat(WIDTH - 3)));
        assert_eq!(fold("a b"), "a b\n");
    }
}
