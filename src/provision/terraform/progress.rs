//! What Terraform does right now, from its `-json` stream: a part for each resource in flight, and
//! how many are done.

use serde_json::Value;

use super::diagnostic::text;
use crate::failpoint;
use crate::phase::Cx;

/// Tells a step's progress from Terraform's messages.
pub(super) struct Progress<'c> {
    cx: &'c Cx,
    program: String,
    done: u64,
    total: u64,
}

impl<'c> Progress<'c> {
    /// `total` is how many resources change; 0 where that is unknown.
    pub(super) fn new(cx: &'c Cx, program: String, total: usize) -> Self {
        Self { cx, program, done: 0, total: total as u64 }
    }

    /// Takes one message.
    pub(super) fn hear(&mut self, message: &Value) {
        let kind = message["type"].as_str().unwrap_or_default();
        if kind == "change_summary" && message["changes"]["operation"] == "plan" && self.total == 0 {
            let count = |name: &str| message["changes"][name].as_u64().unwrap_or(0);
            self.total = count("add") + count("change") + count("remove");
        }
        let hook = &message["hook"];
        let (address, action) = (text(&hook["resource"]["addr"]), text(&hook["action"]));
        let seconds = hook["elapsed_seconds"].as_f64().unwrap_or(0.0);
        match kind {
            "apply_start" => {
                self.kill(kind, &address, &action);
                self.cx.progress(format!("{address}: {action}"));
                self.cx.part(&address, &action, 0.0, false);
            }
            "apply_progress" => self.cx.part(&address, &action, seconds, false),
            "apply_complete" | "apply_errored" => {
                self.kill(kind, &address, &action);
                self.cx.part(&address, &action, seconds, true);
                self.done += u64::from(kind == "apply_complete");
                self.cx.count(self.done, self.total.max(self.done));
            }
            _ => {}
        }
    }

    fn kill(&self, kind: &str, address: &str, action: &str) {
        if kind != "apply_errored" {
            failpoint::kill_children(format_args!("{kind} {address} {action}"), &self.program);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::phase::{Sink, What};

    #[test]
    fn each_resource_in_flight_is_a_part_and_those_that_are_done_are_counted() {
        let (sink, events) = Sink::channel();
        let cx = Cx::detached("provision/apply", sink, "log", Duration::ZERO);
        let mut progress = Progress::new(&cx, "terraform".into(), 0);
        let hook = |kind: &str, address: &str, seconds: u64| json!({"type": kind, "hook": {"resource": {"addr": address}, "action": "create", "elapsed_seconds": seconds}});
        let plan =
            json!({"type": "change_summary", "changes": {"add": 2, "change": 0, "remove": 1, "operation": "plan"}});
        for message in [
            plan,
            hook("apply_start", "a.one", 0),
            hook("apply_start", "a.two", 0),
            hook("apply_progress", "a.one", 10),
            hook("apply_complete", "a.two", 3),
            hook("apply_errored", "a.one", 12),
        ] {
            progress.hear(&message);
        }
        drop(progress);
        drop(cx);
        let told: Vec<String> = events
            .iter()
            .map(|event| match event.event {
                What::StepPart { part, doing, elapsed_seconds, ended, .. } => {
                    format!("{part} {doing} {elapsed_seconds}{}", if ended { " ended" } else { "" })
                }
                What::StepProgress { message, .. } => message,
                What::StepCount { done, total, .. } => format!("{done} of {total}"),
                other => format!("unexpected: {other:?}"),
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
        assert!(!told.is_empty(), "{}", told.first().unwrap());
    }
}
