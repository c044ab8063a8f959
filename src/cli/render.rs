//! `turnup render`: the files of all phases without running any.

use std::path::PathBuf;

use serde_json::json;

use crate::config::TreeSource;
use crate::error::{Error, Result};
use crate::forecast::{Forecast, phase_of};
use crate::state::Store;

use super::run::PhaseName;
use super::{Global, Printer};

/// Below the options.
const NOTES: &str = "\
Nothing is asked of any host or cloud. What only a run makes is named instead: certificates and keys
(\"made by bootstrap\"), and the facts of hosts that turnup has not seen yet, for which a virtual machine
with systemd and cgroup v2 is assumed.";

/// What is rendered, and where to.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Only the files of this phase
    #[arg(value_name = "PHASE")]
    phase: Option<PhaseName>,
    /// A directory that is empty or does not exist [default: .turnup/<cluster>/rendered, made anew each time]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Renders.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let source = TreeSource::find(std::path::Path::new("."));
    let settings = global.settings(&source)?;
    let forecast = Forecast::of(&settings, &source, &global.state_dir)?;
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
    if printer.is_json() {
        let files: Vec<&String> = files.iter().map(|(path, _)| *path).collect();
        return printer.json(&json!({"schema": "turnup.render/1", "directory": store.dir(), "files": files}));
    }
    files.iter().try_for_each(|(path, _)| printer.line(&store.path(path).display().to_string()))
}

/// Files of somebody else are neither mixed with ours nor removed.
fn require_empty(dir: &std::path::Path) -> Result<()> {
    if !dir.exists() || fs_err::read_dir(dir)?.next().is_none() {
        return Ok(());
    }
    Err(Error::usage(format!("{} is not empty", dir.display())).hint("turnup render --to another directory"))
}
