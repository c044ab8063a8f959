//! `turnup plan`: what `turnup up` would do now, and why. Changes nothing.

use std::path::{Path, PathBuf};

use crate::bootstrap::restore;
use crate::change::Change;
use crate::cluster::Cluster;
use crate::config::TreeSource;
use crate::error::{Context as _, Error, Result};
use crate::exec::signals;
use crate::forecast::{Purpose, Verdict};
use crate::input;
use crate::plan::Plan;
use crate::provision;
use crate::state::Store;

use super::phase_name::PhaseName;
use super::{Global, Printer};

/// Below the options.
const NOTES: &str = "\
First comes what each changed setting causes (the steps, hosts, restarts, and how long they took last time), then every
step that is not proven done, with what it changes: Terraform's resources, files and services on the hosts, objects in the
cluster. What only a run can know is said to be known after a step; nothing is made up.

turnup plan provision also asks Terraform's providers what was changed outside of turnup since the last apply,
and shows it first.

When a step would fail now, the plan says so and the command ends with the exit code that a run would end with.

turnup plan --out FILE writes it down; turnup up --plan FILE does that and nothing else, and refuses when turnup, the
configuration, a template, the state, a host or the cluster is not what it was. The file holds no secrets.";

/// Where the plan goes.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Also write the plan to this file, for `turnup up --plan`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Show a plan that was written before, without looking at anything else
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    show: Option<PathBuf>,
    /// Only this phase; of provision also what was changed outside of turnup since the last apply
    #[arg(value_name = "PHASE", conflicts_with_all = ["out", "show"])]
    phase: Option<PhaseName>,
}

/// Shows the plan.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    signals::install()?;
    if let Some(phase) = args.phase {
        return show_phase(phase, global, printer);
    }
    let plan = match &args.show {
        Some(file) => read(file)?.0,
        None => make(global, Some(printer))?,
    };
    if let Some(file) = &args.out {
        write(&plan, file)?;
        printer.remark(&format!("wrote the plan; next: turnup up --plan {}", file.display()));
    }
    if printer.is_json() {
        printer.json(&serde_json::to_value(&plan).context("cannot write the plan as JSON")?)?;
    } else {
        plan.describe().iter().try_for_each(|line| printer.line(line))?;
    }
    plan.into_result()
}

/// One phase alone, and what happened behind Terraform's back.
fn show_phase(phase: PhaseName, global: &Global, printer: &Printer) -> Result<()> {
    let plan = make(global, Some(printer))?.only(phase.name());
    let drift = if phase == PhaseName::Provision { find_drift(global)? } else { None };
    if printer.is_json() {
        let mut value = serde_json::to_value(&plan).context("cannot write the plan as JSON")?;
        if let Some(drift) = &drift {
            value["drift"] = serde_json::to_value(drift).context("cannot write the drift as JSON")?;
        }
        printer.json(&value)?;
        return plan.into_result();
    }
    if let Some(drift) = &drift {
        for line in describe_drift(drift) {
            printer.line(&line)?;
        }
    }
    plan.describe().iter().try_for_each(|line| printer.line(line))?;
    plan.into_result()
}

fn find_drift(global: &Global) -> Result<Option<Vec<Change>>> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let settings = global.settings(&source)?;
    let cluster = Cluster::shadow(&settings, source, &global.state_dir)?;
    provision::find_drift(&cluster)
}

fn describe_drift(drift: &[Change]) -> Vec<String> {
    if drift.is_empty() {
        return vec!["outside of turnup nothing was changed".to_owned(), String::new()];
    }
    let mut lines = vec!["changed outside of turnup since the last apply:".to_owned()];
    for change in drift {
        lines.push(format!("         {:3} {} {}", change.verb.sign(), change.kind, change.name));
        lines.extend(change.lines.iter().map(|line| format!("               {line}")));
    }
    lines.push(String::new());
    lines
}

/// The plan for the configuration and the values for this run; warnings of it go to the printer.
pub(super) fn make(global: &Global, printer: Option<&Printer>) -> Result<Plan> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let settings = global.settings(&source)?;
    let verdict = Verdict::of(&settings, &source, &global.state_dir, Purpose::Hosts);
    if let Some(printer) = printer {
        for warning in verdict.warnings(settings.schema()) {
            printer.remark(&format!("notice: {}", warning.line(&global.config)));
        }
    }
    verdict.into_result(&global.config)?;
    // As `up` is refused while one is under way; the configuration is not to blame.
    restore::require_none(&Store::at(global.state_dir.join(settings.get("phase1.cluster_name")?)))?;
    Plan::make(&settings, &source, &global.state_dir)
}

/// A plan from its file, and the file's text.
pub(super) fn read(file: &Path) -> Result<(Plan, String)> {
    let text = input::read_text(file, input::STATE)
        .map_err(|error| Error::usage("cannot read the plan").source(error).hint("turnup plan --out FILE"))?;
    Ok((Plan::parse(file, &text)?, text))
}

/// Whole or not at all, for this user's eyes only: it names hosts, addresses and files.
fn write(plan: &Plan, file: &Path) -> Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().ok_or_else(|| Error::usage(format!("{} is not a file", file.display())))?;
    if !dir.is_dir() {
        return Err(Error::usage(format!("there is no directory {}", dir.display())));
    }
    Store::at(dir).write_json(name, plan, 0o600)
}
