//! A plan as text: first what the changes cause, then every step with what it changes, then the
//! time.

use std::collections::BTreeMap;

use super::{Impact, Plan};
use crate::change::Verb;
use crate::phase::{Decision, PlannedStep, StepId};
use crate::terminal;

/// More hosts than these are counted and not named.
const NAMED: usize = 4;

impl Plan {
    /// The plan as lines, without colour.
    #[must_use]
    pub(crate) fn describe(&self) -> Vec<String> {
        if self.is_empty() {
            return vec!["nothing to do".to_owned()];
        }
        let mut lines: Vec<String> = self.changed.iter().flat_map(Impact::describe).collect();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.moving().flat_map(describe_step));
        lines.extend(self.unknown_phases.iter().map(|phase| format!("unknown  {phase}: known after provision/apply")));
        let count = |decision: Decision| self.steps.iter().filter(|step| step.decision == decision).count();
        let counted = [
            (Decision::Run, "to run"),
            (Decision::Unknown, "known later"),
            (Decision::Forget, "to forget"),
            (Decision::Skip, "unchanged"),
        ];
        let counted = counted.map(|(decision, words)| (count(decision), words)).into_iter();
        let shown = counted.filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
        lines.push(String::new());
        lines.push(format!("{}; takes {}", shown.collect::<Vec<_>>().join(", "), self.estimate.describe()));
        // Names and lines of files come from hosts and from Terraform.
        lines.iter().map(|line| terminal::line(line).into_owned()).collect()
    }
}

impl Impact {
    fn describe(&self) -> Vec<String> {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
        let mut lines = vec![format!("{}: {} -> {}", self.name, value(&self.before), value(&self.after))];
        if self.is_empty() {
            lines.push("    runs       nothing".to_owned());
            return lines;
        }
        lines.push(format!("    runs       {}", name_steps(&self.steps)));
        if !self.hosts.is_empty() {
            lines.push(format!("    on         {}", name_hosts(self.hosts.iter().map(String::as_str))));
        }
        let mut by_service: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (host, services) in &self.restarts {
            for service in services {
                by_service.entry(service).or_default().push(host);
            }
        }
        if by_service.is_empty() {
            lines.push("    restarts   nothing".to_owned());
        }
        for (service, hosts) in by_service {
            lines.push(format!("    restarts   {service} on {}", name_hosts(hosts.into_iter())));
        }
        for (verb, word) in [(Verb::Create, "makes"), (Verb::Replace, "recreates"), (Verb::Delete, "removes")] {
            let hosts: Vec<&str> =
                self.recreates.iter().filter(|(_, done)| **done == verb).map(|(host, _)| host.as_str()).collect();
            if !hosts.is_empty() {
                lines.push(format!("    {word:10} {}", name_hosts(hosts.into_iter())));
            }
        }
        lines.push(format!("    takes      {}", self.estimate.describe()));
        lines
    }
}

/// `bootstrap/node-config (3 hosts), addons/apply`.
fn name_steps(ids: &[StepId]) -> String {
    let mut steps: Vec<(StepId, usize)> = Vec::new();
    for id in ids {
        let (step, hosts) = (id.on_any_host(), usize::from(id.host().is_some()));
        match steps.iter_mut().find(|(known, _)| *known == step) {
            Some((_, count)) => *count += hosts,
            None => steps.push((step, hosts)),
        }
    }
    let shown = steps.into_iter().map(|(step, hosts)| match hosts {
        0 => step.to_string(),
        1 => format!("{step} (1 host)"),
        count => format!("{step} ({count} hosts)"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn name_hosts<'h>(hosts: impl Iterator<Item = &'h str>) -> String {
    let hosts: Vec<&str> = hosts.collect();
    if hosts.len() > NAMED { format!("{} hosts", hosts.len()) } else { hosts.join(", ") }
}

fn describe_step(step: &PlannedStep) -> Vec<String> {
    let mut lines = vec![format!("{:8} {}: {}", word(step.decision), step.id, step.why)];
    for change in &step.preview.changes {
        lines.push(format!("         {:3} {} {}", change.verb.sign(), change.kind, change.name));
        lines.extend(change.lines.iter().map(|line| format!("               {line}")));
    }
    if let Some(earlier) = step.preview.known_after.as_ref().filter(|earlier| **earlier != step.id) {
        lines.push(format!("             (what it changes is known after {earlier})"));
    }
    if let Some(error) = &step.preview.failed {
        lines.push("             now it would fail:".to_owned());
        lines.extend(error.lines().map(|line| format!("               {line}")));
    }
    lines
}

/// What is done with a step, in one word.
const fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Run => "run",
        Decision::Skip => "skip",
        Decision::Unknown => "unknown",
        Decision::Forget => "forget",
    }
}
