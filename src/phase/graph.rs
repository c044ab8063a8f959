//! From steps and hosts to tasks: what runs once or for a host, and which tasks each one waits for.
//! Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use super::{Phase, PhaseHost, Scope, Step};
use crate::step_id::StepId;

/// One step, for one host if it is a host step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) id: StepId,
    /// Index of the step in the manifest.
    pub(super) step: usize,
    /// Indices of the tasks that must have ended well before.
    pub(super) needs: Vec<usize>,
}

/// All tasks of a phase, in the order of the file and of the hosts.
///
/// A host step waits for the same host's task of the host step it comes after. Where that step has
/// no task for this host (other roles), it waits for all tasks of that step; where it has none at
/// all, for what that step would have waited for.
///
/// A hook (`before`) holds up a host step host by host: a host that the hook is not for goes on at
/// once, unless the two share no host at all. The work grows with the number of tasks and of their
/// needs, not with its square: a thousand hosts are ordinary.
pub(super) fn expand(phase: &Phase) -> Vec<Task> {
    let steps = &phase.manifest.steps;
    let mut tasks = Vec::new();
    let mut of_step: Vec<StepTasks<'_>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let first = tasks.len();
        let mut of_host = HashMap::new();
        match step.scope {
            Scope::Once => tasks.push(task(phase, index, None)),
            Scope::Host => {
                for host in hosts_of(step, &phase.hosts) {
                    of_host.insert(host.name.as_str(), tasks.len());
                    tasks.push(task(phase, index, Some(host)));
                }
            }
        }
        of_step.push(StepTasks { all: first..tasks.len(), of_host });
    }
    for task in &mut tasks {
        let mut needs = Vec::new();
        for name in &steps[task.step].after {
            collect(steps, &of_step, name, task.id.host(), &mut needs);
        }
        for hook in hooks_of(steps, task.step) {
            needs.extend(held_up_by(&of_step[hook], &of_step[task.step], task.id.host()));
        }
        needs.sort_unstable();
        needs.dedup();
        task.needs = needs;
    }
    tasks
}

/// The tasks of one step: all of them, and the one of each host.
struct StepTasks<'h> {
    all: Range<usize>,
    of_host: HashMap<&'h str, usize>,
}

/// For each task those that wait for it: the reverse of `needs`.
pub(super) fn dependents(tasks: &[Task]) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); tasks.len()];
    for (at, task) in tasks.iter().enumerate() {
        for need in &task.needs {
            dependents[*need].push(at);
        }
    }
    dependents
}

fn task(phase: &Phase, step: usize, host: Option<&PhaseHost>) -> Task {
    let id = StepId::new(&phase.name, &phase.manifest.steps[step].name);
    let id = host.map_or_else(|| id.clone(), |host| id.on(&host.name));
    Task { id, step, needs: Vec::new() }
}

fn hosts_of<'h>(step: &Step, hosts: &'h [PhaseHost]) -> impl Iterator<Item = &'h PhaseHost> {
    hosts.iter().filter(|host| step.is_for(&host.name, &host.role))
}

/// The steps that are to run in front of this one.
fn hooks_of(steps: &[Step], step: usize) -> impl Iterator<Item = usize> {
    let name = &steps[step].name;
    steps.iter().enumerate().filter(|(_, hook)| hook.before.contains(name)).map(|(at, _)| at)
}

/// The tasks of a hook that one task waits for: the same host's where both run on hosts and share
/// some, else all.
fn held_up_by(hook: &StepTasks<'_>, step: &StepTasks<'_>, host: Option<&str>) -> Vec<usize> {
    let shared = hook.of_host.keys().any(|host| step.of_host.contains_key(host));
    if shared {
        host.and_then(|host| hook.of_host.get(host)).copied().into_iter().collect()
    } else {
        hook.all.clone().collect()
    }
}

fn collect(steps: &[Step], of_step: &[StepTasks<'_>], name: &str, host: Option<&str>, needs: &mut Vec<usize>) {
    let Some(index) = steps.iter().position(|step| step.name == name) else { return };
    let there = &of_step[index];
    match host.and_then(|host| there.of_host.get(host)) {
        Some(task) => needs.push(*task),
        None if there.all.is_empty() => {
            for earlier in &steps[index].after {
                collect(steps, of_step, earlier, host, needs);
            }
            needs.extend(hooks_of(steps, index).flat_map(|hook| of_step[hook].all.clone()));
        }
        None => needs.extend(there.all.clone()),
    }
}

/// The tasks in an order in which each comes after all that it needs; the manifest has been checked
/// for cycles.
pub(super) fn in_order(tasks: &[Task]) -> Vec<usize> {
    let dependents = dependents(tasks);
    let mut waiting: Vec<usize> = tasks.iter().map(|task| task.needs.len()).collect();
    // Of those that could be next, the first of the file: a plan reads like the phase.
    let mut ready: BinaryHeap<Reverse<usize>> = (0..tasks.len()).filter(|at| waiting[*at] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(tasks.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for next in &dependents[at] {
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::phase::Manifest;

    fn edges(text: &str, hosts: &[(&str, &str)]) -> Vec<String> {
        let hosts = hosts.iter().map(|(name, role)| PhaseHost { name: (*name).into(), role: (*role).into() }).collect();
        let phase = Phase::new("p", Manifest::parse("x", text).unwrap(), hosts);
        let tasks = expand(&phase);
        let ids = |needs: &[usize]| needs.iter().map(|need| tasks[*need].id.to_string()).collect::<Vec<_>>().join(" ");
        tasks.iter().map(|task| format!("{} <- {}", task.id, ids(&task.needs))).collect()
    }

    const TEXT: &str = r#"
[[step]]
name = "pki"
[[step]]
name = "push"
scope = "host"
after = ["pki"]
[[step]]
name = "control"
scope = "host"
roles = ["cp"]
after = ["push"]
[[step]]
name = "join"
scope = "host"
roles = ["w"]
after = ["control"]
[[step]]
name = "check"
after = ["join"]
"#;

    #[test]
    fn once_and_host_steps_wait_for_the_right_tasks() {
        assert_eq!(
            edges(TEXT, &[("c0", "cp"), ("w0", "w"), ("w1", "w")]),
            [
                "p/pki <- ",
                "p/push@c0 <- p/pki",
                "p/push@w0 <- p/pki",
                "p/push@w1 <- p/pki",
                "p/control@c0 <- p/push@c0",
                "p/join@w0 <- p/control@c0",
                "p/join@w1 <- p/control@c0",
                "p/check <- p/join@w0 p/join@w1",
            ]
        );
    }

    const HOOKS: &str = r#"
[[step]]
name = "push"
scope = "host"
[[step]]
name = "join"
scope = "host"
roles = ["w"]
after = ["push"]
[[step]]
name = "check"
after = ["join"]
[[step]]
name = "tune"
where = "host"
hosts = ["w*"]
run = ["true"]
after = ["push"]
before = ["join"]
[[step]]
name = "tell"
run = ["true"]
before = ["push"]
"#;

    #[test]
    fn a_hook_holds_up_its_own_host_and_no_other() {
        let hosts = [("c0", "cp"), ("w0", "w"), ("x1", "w")];
        assert_eq!(
            edges(HOOKS, &hosts),
            [
                "p/push@c0 <- p/tell",
                "p/push@w0 <- p/tell",
                "p/push@x1 <- p/tell",
                "p/join@w0 <- p/push@w0 p/tune@w0",
                "p/join@x1 <- p/push@x1",
                "p/check <- p/join@w0 p/join@x1",
                "p/tune@w0 <- p/push@w0",
                "p/tell <- ",
            ]
        );
    }

    #[test]
    fn a_hook_on_other_hosts_holds_up_all() {
        let elsewhere = HOOKS.replace("hosts = [\"w*\"]", "roles = [\"cp\"]");
        let edges = edges(&elsewhere, &[("c0", "cp"), ("w0", "w"), ("w1", "w")]);
        let join = |host: &str| format!("p/join@{host} <- p/push@{host} p/tune@c0");
        assert!(edges.contains(&join("w0")) && edges.contains(&join("w1")), "{edges:#?}");
    }

    #[test]
    fn a_hook_in_front_of_a_step_without_tasks_holds_up_what_comes_after() {
        let edges = edges(&HOOKS.replace("hosts = [\"w*\"]", "roles = [\"cp\"]"), &[("c0", "cp")]);
        assert!(edges.contains(&"p/check <- p/push@c0 p/tune@c0".to_owned()), "{edges:#?}");
    }

    #[test]
    fn a_plan_reads_like_the_file_where_needs_allow() {
        let text =
            "[[step]]\nname = \"last\"\nafter = [\"first\"]\n[[step]]\nname = \"own\"\n[[step]]\nname = \"first\"\n";
        let tasks = expand(&Phase::new("p", Manifest::parse("x", text).unwrap(), Vec::new()));
        let ids: Vec<String> = in_order(&tasks).into_iter().map(|at| tasks[at].id.to_string()).collect();
        assert_eq!(ids, ["p/own", "p/first", "p/last"]);
    }

    #[test]
    fn a_step_without_tasks_passes_its_waiting_on() {
        assert_eq!(edges(TEXT, &[("c0", "cp")]).last().map(String::as_str), Some("p/check <- p/control@c0"));
        assert_eq!(edges(TEXT, &[]), ["p/pki <- ", "p/check <- p/pki"]);
    }
}
