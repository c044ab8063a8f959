//! `turnup render`: the files of all phases without running any.

use std::path::PathBuf;

use serde_json::json;

use crate::config::TreeSource;
use crate::error::{Error, Result};
use crate::forecast::{Forecast, phase_of};
use crate::state::Store;

use super::phase_name::PhaseName;
use super::{Global, Printer};

/// Below the options.
const NOTES: &str = "\
Nothing is asked of any host or cloud. What only a run makes (keys, certificates, tokens) has a placeholder,
as in a plan: \"(known after provision/keys)\". Which files hold any is said. Of hosts that turnup has not
seen yet it is assumed that they are virtual machines with systemd and cgroup v2.";

/// What is rendered, and where to.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Only the files of this phase
    #[arg(value_name = "PHASE")]
    phase: Option<PhaseName>,
    /// A directory that is empty or does not exist [default: .turnup/<cluster>/rendered, recreated
    /// each time]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Renders.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let source = TreeSource::find(std::path::Path::new("."));
    let settings = global.settings(&source)?;
    let forecast = Forecast::of(&settings, &source, &global.state_dir)?;
    let without_hosts = forecast.require_hosts();
    if args.phase.is_some_and(|phase| phase != PhaseName::Provision) {
        without_hosts?;
    } else if let Err(why) = without_hosts {
        printer.remark(&format!("only provision is rendered: {}", why.message()));
    }
    let wanted = |path: &str| args.phase.is_none_or(|phase| phase_of(path) == Some(phase.name()));
    let store = if let Some(dir) = &args.to {
        require_empty(dir)?;
        Store::open(dir)?
    } else {
        let cluster = Store::open(global.state_dir.join(settings.get("phase1.cluster_name")?))?;
        cluster.remove("rendered")?;
        Store::open(cluster.path("rendered"))?
    };
    let files: Vec<(&String, &String)> = forecast.files.iter().filter(|(path, _)| wanted(path)).collect();
    for (path, text) in &files {
        store.write_file(path, text.as_bytes(), 0o600)?;
    }
    let placeholders: Vec<&str> =
        forecast.placeholders.iter().map(String::as_str).filter(|path| wanted(path)).collect();
    remark_on(&placeholders, printer);
    if printer.is_json() {
        let files: Vec<&String> = files.iter().map(|(path, _)| *path).collect();
        let (schema, directory) = ("turnup.render/1", store.dir());
        return printer
            .json(&json!({"schema": schema, "directory": directory, "files": files, "placeholders": placeholders}));
    }
    files.iter().try_for_each(|(path, _)| printer.line(&store.path(path).display().to_string()))
}

/// Reports files with unknown values, and the command that completes them.
fn remark_on(placeholders: &[&str], printer: &Printer) {
    const SHOWN: usize = 4;
    if placeholders.is_empty() {
        return;
    }
    let named = placeholders.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = placeholders.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more files") };
    let of_provision = placeholders.iter().all(|path| phase_of(path) == Some(PhaseName::Provision.name()));
    let maker = if of_provision { "turnup provision" } else { "turnup up" };
    printer.remark(&format!(
        "{named}{more}: with placeholders for keys, certificates or tokens, so not to be used before `{maker}` has made these; then render again"
    ));
}

/// Files that turnup did not write are neither mixed with ours nor removed.
fn require_empty(dir: &std::path::Path) -> Result<()> {
    if !dir.exists() || fs_err::read_dir(dir)?.next().is_none() {
        return Ok(());
    }
    Err(Error::usage(format!("{} is not empty", dir.display())).hint("turnup render --to another directory"))
}
