//! `turnup up`, and `turnup provision|bootstrap|addons` one by one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::config::{Settings, TreeSource};
use crate::error::{Context as _, Result};
use crate::forecast::Purpose;
use crate::validate;

use super::phase_name::PhaseName;
use super::run::{ClusterSession, RunArgs, RunOptionArgs};
use super::status::Overview;
use super::{Global, Printer};

/// The time for validation, the cold start of every node's first pods included.
const VALIDATION: Duration = Duration::from_mins(4);

/// Options of `turnup up`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What every run takes
    #[command(flatten)]
    run: RunArgs,
    /// What is ordered beside the configuration
    #[command(flatten)]
    options: RunOptionArgs,
    /// Take the defaults when there is no configuration yet, and write them
    #[arg(long)]
    defaults: bool,
    /// Do what this plan says and nothing else (from `turnup plan --out FILE`)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["defaults", "refresh"])]
    plan: Option<PathBuf>,
}

/// Everything: provision, bootstrap, addons, validate.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    if args.defaults && !global.config.exists() {
        let work_dir = std::env::current_dir().context("the working directory is gone")?;
        Settings::defaults(&TreeSource::find(&work_dir))?.save(&global.config)?;
        printer.remark(&format!("wrote {} with all defaults", global.config.display()));
    }
    let cluster = converge(&args.run, &args.options, args.plan.as_deref(), global)?;
    Overview::read(&cluster)?.print(printer)
}

/// Brings the cluster to what its configuration says and validates it.
pub(super) fn converge(
    run: &RunArgs,
    options: &RunOptionArgs,
    plan: Option<&Path>,
    global: &Global,
) -> Result<Arc<Cluster>> {
    let session = ClusterSession::begin(global, "up", Purpose::Hosts)?.within(run.max_duration).with_options(options);
    let cluster = Arc::clone(&session.cluster);
    session.finish(|session| {
        let summary = session
            .run_phases(run, &PhaseName::ALL, |session| plan.map(|file| session.bind(global, file)).transpose())?;
        session.cluster.remember_applied()?;
        // Where nothing was done, the proofs of the steps have just looked at nodes and addons.
        let deep = summary.ran > 0;
        let patience = session.cluster.settings.validation.timeout;
        let context = session.context("validate", patience + VALIDATION)?;
        let report = validate::run(&session.cluster, &context, deep, patience)?;
        report.into_result()
    })?;
    Ok(cluster)
}

/// Options of `turnup provision`.
#[derive(Clone, Debug, clap::Args)]
pub struct ProvisionArgs {
    /// What every run takes
    #[command(flatten)]
    run: RunArgs,
    /// What is ordered beside the configuration
    #[command(flatten)]
    options: RunOptionArgs,
    /// Learn the host key of a cloud's machine again, because it was recreated: its name, or the
    /// bastion's address; may be repeated
    #[arg(long, value_name = "NAME")]
    reset_host_key: Vec<String>,
}

/// Phase 1 alone.
pub(super) fn provision(args: &ProvisionArgs, global: &Global, printer: &Printer) -> Result<()> {
    let phase = PhaseName::Provision;
    let session = ClusterSession::begin(global, phase.name(), Purpose::Hosts)?
        .with_options(&args.options)
        .resetting_host_keys(&args.reset_host_key);
    run_in(session, phase, &args.run, printer)
}

/// One phase alone.
pub(super) fn run_one(phase: PhaseName, args: &RunArgs, global: &Global, printer: &Printer) -> Result<()> {
    run_in(ClusterSession::begin(global, phase.name(), Purpose::Nodes)?, phase, args, printer)
}

fn run_in(session: ClusterSession, phase: PhaseName, args: &RunArgs, printer: &Printer) -> Result<()> {
    let session = session.within(args.max_duration);
    let summary = session.finish(|session| session.run_phases(args, &[phase], |_| Ok(None)))?;
    if summary.ran == 0 {
        printer.remark(&format!("{}: nothing to do", phase.name()));
    }
    Ok(())
}
