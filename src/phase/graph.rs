//! From steps and hosts to tasks: what runs once or for a host, and which tasks each one waits for. Pure.

use super::{Host, Phase, Scope, Step};

/// One step, for one host if it is a host step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// `<phase>/<step>` or `<phase>/<step>@<host>`.
    pub(super) id: String,
    /// Index of the step in the manifest.
    pub(super) step: usize,
    pub(super) host: Option<String>,
    /// Indices of the tasks that must have ended well before.
    pub(super) needs: Vec<usize>,
}

/// All tasks of a phase, in the order of the file and of the hosts.
///
/// A host step waits for the same host's task of the host step it comes after. Where that step has no task for this host (other roles), it
/// waits for all tasks of that step; where it has none at all, for what that step would have waited for.
///
/// A hook (`before`) holds up a host step host by host: a host that the hook is not for goes on at once, unless the two share no host at
/// all.
pub(super) fn expand(phase: &Phase) -> Vec<Task> {
    let steps = &phase.manifest.steps;
    let mut tasks = Vec::new();
    let mut of_step: Vec<Vec<usize>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let first = tasks.len();
        match step.scope {
            Scope::Once => tasks.push(task(phase, index, None)),
            Scope::Host => tasks.extend(hosts_of(step, &phase.hosts).map(|host| task(phase, index, Some(host)))),
        }
        of_step.push((first..tasks.len()).collect());
    }
    for at in 0..tasks.len() {
        let mut needs = Vec::new();
        for name in &steps[tasks[at].step].after {
            collect(steps, &tasks, &of_step, name, tasks[at].host.as_deref(), &mut needs);
        }
        for hook in hooks_of(steps, tasks[at].step) {
            needs.extend(held_up_by(&tasks, &of_step[hook], &of_step[tasks[at].step], tasks[at].host.as_deref()));
        }
        needs.sort_unstable();
        needs.dedup();
        tasks[at].needs = needs;
    }
    tasks
}

fn task(phase: &Phase, step: usize, host: Option<&Host>) -> Task {
    let name = &phase.manifest.steps[step].name;
    let id =
        host.map_or_else(|| format!("{}/{name}", phase.name), |host| format!("{}/{name}@{}", phase.name, host.name));
    Task { id, step, host: host.map(|host| host.name.clone()), needs: Vec::new() }
}

fn hosts_of<'h>(step: &Step, hosts: &'h [Host]) -> impl Iterator<Item = &'h Host> {
    hosts.iter().filter(|host| step.is_for(&host.name, &host.role))
}

/// The steps that are to run in front of this one.
fn hooks_of(steps: &[Step], step: usize) -> impl Iterator<Item = usize> {
    let name = &steps[step].name;
    steps.iter().enumerate().filter(|(_, hook)| hook.before.contains(name)).map(|(at, _)| at)
}

/// The tasks of a hook that one task waits for: the same host's where both run on hosts and share some, else all.
fn held_up_by(tasks: &[Task], hook: &[usize], step: &[usize], host: Option<&str>) -> Vec<usize> {
    let host_of = |at: &usize| tasks[*at].host.as_deref();
    let shared = hook.iter().any(|at| host_of(at).is_some() && step.iter().any(|other| host_of(other) == host_of(at)));
    hook.iter().copied().filter(|at| !shared || host_of(at) == host).collect()
}

fn collect(
    steps: &[Step],
    tasks: &[Task],
    of_step: &[Vec<usize>],
    name: &str,
    host: Option<&str>,
    needs: &mut Vec<usize>,
) {
    let Some(index) = steps.iter().position(|step| step.name == name) else { return };
    let all = &of_step[index];
    let same_host = all.iter().find(|task| host.is_some() && tasks[**task].host.as_deref() == host);
    match same_host {
        Some(task) => needs.push(*task),
        None if all.is_empty() => {
            for earlier in &steps[index].after {
                collect(steps, tasks, of_step, earlier, host, needs);
            }
            needs.extend(hooks_of(steps, index).flat_map(|hook| of_step[hook].iter().copied()));
        }
        None => needs.extend(all),
    }
}

/// The tasks in an order in which each comes after all that it needs; the manifest has been checked for cycles.
pub(super) fn in_order(tasks: &[Task]) -> Vec<usize> {
    let mut done = vec![false; tasks.len()];
    let mut order = Vec::with_capacity(tasks.len());
    while order.len() < tasks.len() {
        let before = order.len();
        for (at, task) in tasks.iter().enumerate() {
            if !done[at] && task.needs.iter().all(|need| done[*need]) {
                done[at] = true;
                order.push(at);
            }
        }
        if order.len() == before {
            break;
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
        let hosts = hosts.iter().map(|(name, role)| Host { name: (*name).into(), role: (*role).into() }).collect();
        let phase = Phase::new("p", Manifest::parse("x", text).unwrap(), hosts);
        let tasks = expand(&phase);
        let ids = |needs: &[usize]| needs.iter().map(|need| tasks[*need].id.as_str()).collect::<Vec<_>>().join(" ");
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
    fn a_step_without_tasks_passes_its_waiting_on() {
        assert_eq!(edges(TEXT, &[("c0", "cp")]).last().map(String::as_str), Some("p/check <- p/control@c0"));
        assert_eq!(edges(TEXT, &[]), ["p/pki <- ", "p/check <- p/pki"]);
    }
}
