//! Why pods do not start: their states, the last lines of their logs, webhooks that do not answer,
//! and the cluster's warning events.

use crate::bootstrap::{Kubectl, with_unanswered};
use crate::error::Error;

use super::observed::Pod;

/// How many pods' logs are shown; the first ones tell most.
const PODS: usize = 3;
const LOG_LINES: &str = "--tail=5";
const EVENTS: usize = 6;

/// Adds everything that helps to an error. What cannot be found out is left away: the error itself
/// counts.
pub(crate) fn collect(mut error: Error, kubectl: &Kubectl, namespace: &str, pods: &[Pod]) -> Error {
    let troubled: Vec<&Pod> = pods.iter().filter(|pod| !pod.ready && pod.phase != "Succeeded").collect();
    for pod in troubled.iter().take(PODS) {
        for line in last_log(kubectl, namespace, pod) {
            error = error.evidence(format!("{} says: {line}", pod.name));
        }
    }
    warnings(kubectl, namespace).into_iter().fold(with_unanswered(error, kubectl), Error::evidence)
}

/// The last lines of the container that runs, or else of the one that ended before it.
fn last_log(kubectl: &Kubectl, namespace: &str, pod: &Pod) -> Vec<String> {
    if pod.node.is_none() {
        return Vec::new();
    }
    let logs = |more: &[&str]| {
        let name = format!("pod/{}", pod.name);
        let mut args = vec!["logs", &name, "--namespace", namespace, LOG_LINES];
        args.extend(more);
        kubectl.run(&args).unwrap_or_default()
    };
    let now = logs(&[]);
    let text = if now.trim().is_empty() && pod.restarts > 0 { logs(&["--previous"]) } else { now };
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

fn warnings(kubectl: &Kubectl, namespace: &str) -> Vec<String> {
    let args = ["events", "--namespace", namespace, "--field-selector=type=Warning", "--sort-by=.lastTimestamp"];
    let Ok(events) = kubectl.get(&args) else { return Vec::new() };
    let mut lines = Vec::new();
    for event in events["items"].as_array().into_iter().flatten() {
        let word = |name: &str| event[name].as_str().unwrap_or_default();
        let object = event["involvedObject"]["name"].as_str().unwrap_or_default();
        let line = format!("event: {object}: {}: {}", word("reason"), word("message").trim());
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.split_off(lines.len().saturating_sub(EVENTS))
}
