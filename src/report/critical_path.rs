//! The critical path: the chain of steps that decided how long a run took, with the times between
//! them, so that the parts add up to the whole. Pure.
//!
//! It is walked from the end: of all tasks of a phase the one that ended last, then, of those that
//! this one waited for, the one that ended last, and so on to the begin of the phase. Whatever time
//! lies between two of them has a name as well.

use std::collections::HashMap;

use super::timeline::{PhaseTimeline, TaskState, TaskTimeline, Timeline};
use crate::phase::{PartKind, PathPart};

/// The parts in the order in which they happened. Their seconds add up to the whole run, once that
/// has ended.
pub(super) fn critical_path(timeline: &Timeline) -> Vec<PathPart> {
    let Some(total) = timeline.total else { return Vec::new() };
    let mut path = Vec::new();
    let mut at = 0.0;
    for phase in &timeline.phases {
        push(&mut path, PartKind::Between, &format!("before {}", phase.name), phase.began - at);
        let ended = phase.ended.unwrap_or(total);
        path.extend(phase_path(phase, ended));
        at = ended;
    }
    if let Some(last) = timeline.phases.last() {
        let rest = timeline.aside.clone().unwrap_or_else(|| format!("after {}", last.name));
        push(&mut path, PartKind::Between, &rest, total - at);
    }
    path
}

/// Puts beside each part how long the same took in another run.
pub(super) fn compare(path: &mut [PathPart], last: Option<&Timeline>) {
    let Some(last) = last else { return };
    let mut times: HashMap<(PartKind, String), f64> = HashMap::new();
    for phase in &last.phases {
        for task in &phase.tasks {
            for part in task_parts(phase, task) {
                times.insert((part.kind, part.name), part.seconds);
            }
        }
    }
    let between = critical_path(last).into_iter().filter(|part| part.kind == PartKind::Between);
    times.extend(between.map(|part| ((part.kind, part.name), part.seconds)));
    for part in path {
        part.last_seconds = times.get(&(part.kind, part.name.clone())).copied();
    }
}

fn phase_path(phase: &PhaseTimeline, ended: f64) -> Vec<PathPart> {
    let mut chain = Vec::new();
    let mut next = latest(phase.tasks.iter());
    let last_end = next.and_then(|task| task.ended).unwrap_or(phase.began);
    // A task stands behind all that it needs, so the chain ends; the count guards against events
    // that no engine sent.
    while let Some(task) = next.filter(|_| chain.len() <= phase.tasks.len()) {
        chain.push(task);
        next = latest(task.needs.iter().filter_map(|need| phase.task(need)));
    }
    let mut path: Vec<PathPart> = chain.iter().rev().flat_map(|task| task_parts(phase, task)).collect();
    push(&mut path, PartKind::Between, &format!("end of {}", phase.name), ended - last_end);
    path
}

/// The task that ended last, of those that did anything or were looked at.
fn latest<'t>(tasks: impl Iterator<Item = &'t TaskTimeline>) -> Option<&'t TaskTimeline> {
    let ended = tasks.filter(|task| task.state != TaskState::Blocked && task.ended.is_some());
    ended.max_by(|one, other| one.ended.unwrap_or(0.0).total_cmp(&other.ended.unwrap_or(0.0)))
}

/// What happened from the moment a task could have started to its end.
fn task_parts(phase: &PhaseTimeline, task: &TaskTimeline) -> Vec<PathPart> {
    let could_begin = latest(task.needs.iter().filter_map(|need| phase.task(need)));
    let free = could_begin.and_then(|need| need.ended).unwrap_or(phase.began);
    // Seconds of two clocks: what was looked at before it could begin is none.
    let look = task.look.min(task.began - free).max(0.0);
    let mut parts = Vec::new();
    push(&mut parts, PartKind::Turn, &task.id, task.began - look - free);
    push(&mut parts, PartKind::Proof, &task.id, look);
    push(&mut parts, PartKind::Step, &task.id, task.seconds());
    parts
}

fn push(path: &mut Vec<PathPart>, kind: PartKind, name: &str, seconds: f64) {
    if seconds > 0.0 {
        path.push(PathPart { kind, name: name.to_owned(), seconds, last_seconds: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::{Event, Tasks, What};

    fn started(step: &str, needs: &[&str], look_seconds: f64) -> What {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        What::StepStarted { step: step.into(), summary: String::new(), why: String::new(), needs, look_seconds }
    }

    fn done(step: &str) -> What {
        What::StepDone { step: step.into(), elapsed_seconds: 0.0 }
    }

    /// Two hosts, one at a time: `a` 1 s, `h@1` 2 s, `h@2` waits for its turn and takes 3 s, `z`
    /// follows both.
    fn timeline(factor: f64) -> Timeline {
        let end =
            What::PhaseDone { phase: "p".into(), ran: 4, skipped: 0, failed: 0, blocked: 0, elapsed_seconds: 0.0 };
        let events = [
            (
                0.5,
                What::PhaseStarted { phase: "p".into(), steps: 4, tasks: vec![Tasks { step: "p/a".into(), count: 1 }] },
            ),
            (0.6, started("p/a", &[], 0.1 * factor)),
            (1.6, done("p/a")),
            (1.6, started("p/h@1", &["p/a"], 0.0)),
            (3.6, done("p/h@1")),
            (3.7, started("p/h@2", &["p/a"], 0.1 * factor)),
            (6.7, done("p/h@2")),
            (6.7, started("p/z", &["p/h@1", "p/h@2"], 0.0)),
            (7.0, done("p/z")),
            (7.1, end),
            (7.2, What::Milestone { step: "validate".into(), name: "it answers".into() }),
            (
                9.0,
                What::RunDone { ok: true, elapsed_seconds: 9.0 * factor, max_duration_seconds: None, path: Vec::new() },
            ),
        ];
        let mut timeline = Timeline::default();
        for (seconds, event) in events {
            timeline.note(&Event { seconds: seconds * factor, event });
        }
        timeline
    }

    #[test]
    fn the_path_is_the_chain_that_ended_last_and_every_gap_has_a_name() {
        let path = critical_path(&timeline(1.0));
        let lines: Vec<String> =
            path.iter().map(|part| format!("{:?} {} {:.1}", part.kind, part.name, part.seconds)).collect();
        let expected = [
            "Between before p 0.5",
            "Proof p/a 0.1",
            "Step p/a 1.0",
            "Turn p/h@2 2.0",
            "Proof p/h@2 0.1",
            "Step p/h@2 3.0",
            "Step p/z 0.3",
            "Between end of p 0.1",
            "Between validate 1.9",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_last_run_stands_beside_each_part() {
        let mut path = critical_path(&timeline(1.0));
        compare(&mut path, Some(&timeline(2.0)));
        for part in &path {
            let last = part.last_seconds.unwrap_or_default();
            assert!((last - part.seconds * 2.0).abs() < 1e-9, "{part:?}");
        }
    }

    proptest::proptest! {
        /// Whatever ran when and needed what: the parts add up to the whole.
        #[test]
        fn the_parts_add_up(tasks in proptest::collection::vec((0.0f64..3.0, 0.0f64..3.0, 0.0f64..1.0, proptest::collection::vec(0usize..12, 0..3)), 1..12)) {
            let mut timeline = Timeline::default();
            timeline.note(&Event { seconds: 0.25, event: What::PhaseStarted { phase: "p".into(), steps: tasks.len(), tasks: vec![] } });
            let mut ends: Vec<f64> = Vec::new();
            for (at, (wait, work, look, needs)) in tasks.iter().enumerate() {
                let needs: Vec<usize> = needs.iter().copied().filter(|need| *need < at).collect();
                let free = needs.iter().map(|need| ends[*need]).fold(0.25, f64::max);
                let began = free + wait + look;
                let names: Vec<String> = needs.iter().map(|need| format!("p/s{need}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                timeline.note(&Event { seconds: began, event: started(&format!("p/s{at}"), &names, *look) });
                timeline.note(&Event { seconds: began + work, event: done(&format!("p/s{at}")) });
                ends.push(began + work);
            }
            let end = ends.iter().copied().fold(0.0, f64::max) + 0.5;
            timeline.note(&Event { seconds: end, event: What::PhaseDone { phase: "p".into(), ran: 0, skipped: 0, failed: 0, blocked: 0, elapsed_seconds: 0.0 } });
            timeline.note(&Event { seconds: end + 1.0, event: What::RunDone { ok: true, elapsed_seconds: end + 1.0, max_duration_seconds: None, path: vec![] } });
            let sum: f64 = critical_path(&timeline).iter().map(|part| part.seconds).sum();
            proptest::prop_assert!((sum - (end + 1.0)).abs() < 1e-6, "{sum} of {}", end + 1.0);
        }
    }
}
