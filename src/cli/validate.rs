//! `turnup validate`: does the cluster do what a cluster is for, and if not, why not.

use std::time::Duration;

use crate::error::{Context as _, Result};
use crate::validate;

use super::run::ClusterSession;
use super::{Global, Printer};

/// How thorough, how patient.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Only look at nodes and system pods; start no probe pods
    #[arg(long)]
    quick: bool,
    /// How long to wait for what is not good yet, whatever the configuration says
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

/// Runs the command.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let session = ClusterSession::start(global, "validate")?;
    session.cluster.inventory()?;
    let deep = !args.quick;
    let report = session.finish(|session| {
        let patience = args.wait.map_or(session.cluster.settings.validation.timeout, Duration::from_secs);
        let context = session.context("validate", patience + validate::REQUESTS)?;
        validate::run(&session.cluster, &context, deep, patience)
    })?;
    if printer.is_json() {
        printer.json(&serde_json::to_value(&report).context("cannot write the report as JSON")?)?;
    } else {
        printer.line(report.table().trim_end())?;
    }
    report.into_result()
}
