//! `turnup plan`: what `turnup up` would do now, and why. Changes nothing.

use serde_json::json;

use crate::error::Result;
use crate::phase::{Decision, Engine, Planned};

use super::run::{PhaseName, open_cluster};
use super::{Global, Printer};

/// No options of its own.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

/// Shows the plan.
pub(super) fn run(_args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let cluster = open_cluster(global)?;
    let mut lines = Vec::new();
    let mut unknown = Vec::new();
    for phase in PhaseName::ALL {
        // The later phases know their hosts from provision's hand-off; before it there is nothing to say about them.
        if phase != PhaseName::Provision && cluster.find_handoff()?.is_none() {
            unknown.push(phase.name());
            continue;
        }
        lines.extend(Engine::plan(&cluster.store, &phase.load(&cluster)?)?);
    }
    lines.retain(|line| line.decision != Decision::Skip);
    if printer.is_json() {
        let steps: Vec<_> = lines.iter().map(to_json).collect();
        return printer.json(&json!({"schema": "turnup.plan/1", "steps": steps, "known_after_provision": unknown}));
    }
    if lines.is_empty() && unknown.is_empty() {
        return printer.line("nothing to do");
    }
    for line in &lines {
        printer.line(&format!("{:8} {}: {}", word(line.decision), line.id, line.why))?;
        for preview in &line.preview {
            printer.line(&format!("         {preview}"))?;
        }
    }
    for phase in unknown {
        printer.line(&format!("{:8} {phase}: known after provision", "unknown"))?;
    }
    Ok(())
}

fn to_json(line: &Planned) -> serde_json::Value {
    json!({"id": line.id, "step": line.step, "host": line.host, "decision": word(line.decision), "why": line.why, "preview": line.preview})
}

const fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Run => "run",
        Decision::Skip => "skip",
        Decision::Unknown => "unknown",
        Decision::Forget => "forget",
    }
}
