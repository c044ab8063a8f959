//! What the commands that work on a cluster share: which cluster, its lock, its events, and the
//! phases one after another.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::addons::{require_no_driver_volumes, require_no_load_balancers, require_unused_definitions};
use crate::artifacts::Digest;
use crate::bootstrap::restore;
use crate::cluster::Cluster;
use crate::config::{TreeSource, parse_duration};
use crate::doctor;
use crate::error::{Context as _, Result};
use crate::exec::signals;
use crate::forecast::{Purpose, Verdict};
use crate::phase::{ApprovedPlan, Cx, Engine, Summary, What};
use crate::provision::RunOptions;
use crate::report::{DisplayMode, Reporter};
use crate::state::{ClusterLock, Store};

use super::phase_name::PhaseName;
use super::state::only_cluster;
use super::trust;
use super::{Global, OutputFormat, Printer};

/// The lock of a cluster for a command; tells of an owner that died with it.
pub(super) fn take_lock(store: &Store, command: &str, printer: &Printer) -> Result<ClusterLock> {
    let lock = store.lock(command)?;
    lock.takeover().inspect(|message| printer.remark(message));
    Ok(lock)
}

/// Below a cluster's directory: the digest of the plan that is being carried out. The same plan may
/// go on after a crash.
const RUNNING_PLAN: &str = "outputs/plan.sha256";

/// Options of every command that changes a cluster.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RunArgs {
    /// How many hosts are worked on at once [default: `phase2.parallel_hosts`]
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub parallel: Option<usize>,
    /// Begin no step on any host once so many have failed; those that run go to their end [default:
    /// no limit]
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub max_failures: Option<usize>,
    /// Fail when the whole took longer, after it has gone to its end: 90s, 5m, 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_max_duration)]
    pub max_duration: Option<Duration>,
}

pub(super) fn parse_max_duration(text: &str) -> Result<Duration, String> {
    let timeout = parse_duration(text).filter(|timeout| !timeout.is_zero());
    timeout.ok_or_else(|| "expected a duration such as 90s, 5m or 1h30m".to_owned())
}

pub(super) fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a whole number above zero".to_owned())
}

/// Options of a run that makes hosts.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct RunOptionArgs {
    /// Let Terraform delete or replace this volume of etcd, with the data on it; once for each, by
    /// its address in Terraform
    #[arg(long, value_name = "ADDRESS")]
    allow_volume_loss: Vec<String>,
    /// Ask Terraform although nothing in the configuration has changed: resources removed or
    /// changed outside of turnup are repaired
    #[arg(long)]
    refresh: bool,
}

/// Opens the cluster that the configuration describes.
pub(super) fn open_cluster(global: &Global) -> Result<Arc<Cluster>> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let settings = global.settings(&source)?;
    Cluster::open(&settings, source, &global.state_dir).map(Arc::new)
}

/// The same for a run that makes or changes what the configuration says, which has to be fit for
/// that.
fn open_checked(global: &Global, purpose: Purpose) -> Result<Arc<Cluster>> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let settings = global.settings(&source)?;
    Verdict::of(&settings, &source, &global.state_dir, purpose).into_result(&global.config)?;
    Cluster::open(&settings, source, &global.state_dir).map(Arc::new)
}

/// What turnup remembers of the cluster, for looking only: of the one that the configuration names,
/// else of the only one there is.
pub(super) fn look_at_store(global: &Global) -> Result<Store> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let state_dir = work_dir.join(&global.state_dir);
    match global.settings(&TreeSource::find(&work_dir)).and_then(|settings| settings.get("phase1.cluster_name")) {
        Ok(name) => Ok(Store::at(state_dir.join(name))),
        // A configuration that is gone or damaged is no reason not to look.
        Err(error) => only_cluster(&state_dir).map(Store::at).map_err(|_| error),
    }
}

/// A plan that a run is held to, and the command that goes on with it.
pub(super) struct PlanBinding {
    approved: ApprovedPlan,
    next: String,
}

/// A run that holds the cluster's lock and shows events.
pub(super) struct ClusterSession {
    pub(super) cluster: Arc<Cluster>,
    pub(super) reporter: Reporter,
    command: &'static str,
    max_duration: Option<Duration>,
    options: RunOptions,
}

impl ClusterSession {
    pub(super) fn start(global: &Global, command: &'static str) -> Result<Self> {
        signals::install()?;
        Ok(Self::with(open_cluster(global)?, global, command))
    }

    /// The same for a run that makes or changes what the configuration says.
    pub(super) fn begin(global: &Global, command: &'static str, purpose: Purpose) -> Result<Self> {
        signals::install()?;
        Ok(Self::with(open_checked(global, purpose)?, global, command))
    }

    /// The same for a cluster that is open already.
    pub(super) fn with(cluster: Arc<Cluster>, global: &Global, command: &'static str) -> Self {
        let mode =
            if global.quiet { DisplayMode::Quiet } else { DisplayMode::detect(global.output == OutputFormat::Json) };
        let reporter = Reporter::start(mode, command, &cluster.settings.name, &trust::replaced(&cluster.work_dir));
        Self { cluster, reporter, command, max_duration: None, options: RunOptions::default() }
    }

    /// Makes the run fail at its end when it took longer than this.
    pub(super) fn within(mut self, max_duration: Option<Duration>) -> Self {
        self.max_duration = max_duration;
        self
    }

    /// Applies the user's options to the run.
    pub(super) fn with_options(mut self, args: &RunOptionArgs) -> Self {
        self.options.allow_volume_loss = args.allow_volume_loss.iter().cloned().collect();
        self.options.refresh = args.refresh;
        self
    }

    /// Resets the host keys of the machines that the user named.
    pub(super) fn resetting_host_keys(mut self, names: &[String]) -> Self {
        self.options.reset_host_keys = names.iter().cloned().collect();
        self
    }

    /// Tells what the question that follows is about: an event where results are JSON.
    pub(super) fn tell(&self, printer: &Printer, message: String) {
        if printer.is_json() {
            self.reporter.sink().emit(What::Note { message });
        } else {
            printer.remark(&message);
        }
    }

    /// The command's name.
    pub(super) const fn command(&self) -> &'static str {
        self.command
    }

    /// Takes the cluster's lock, and says so when its last owner died holding it; from here on the
    /// run's events are kept.
    pub(super) fn lock(&self) -> Result<ClusterLock> {
        let store = &self.cluster.store;
        let lock = store.lock(&format!("turnup {}", self.command))?;
        self.reporter.keep(store.keep_events(&lock, self.command)?)?;
        if let Some(message) = lock.takeover() {
            self.reporter.sink().emit(What::Note { message });
        }
        Ok(lock)
    }

    /// Runs the work and then shows the tables of times, whether it failed or not. A run that took
    /// too long fails after all.
    pub(super) fn finish<T>(self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let result = work(&self);
        let finished = self.reporter.finish(result.is_ok(), self.max_duration);
        let value = result?;
        finished.judge()?;
        Ok(value)
    }

    /// Runs these phases under the cluster's lock. What they are bound to is asked under that lock,
    /// too.
    pub(super) fn run_phases(
        &self,
        args: &RunArgs,
        phases: &[PhaseName],
        bind: impl FnOnce(&Self) -> Result<Option<PlanBinding>>,
    ) -> Result<Summary> {
        let store = &self.cluster.store;
        let lock = self.lock()?;
        restore::require_none(store)?;
        let binding = bind(self)?;
        if binding.is_none() {
            store.remove(RUNNING_PLAN)?;
        }
        require_unused_definitions(&self.cluster)?;
        require_no_load_balancers(&self.cluster)?;
        require_no_driver_volumes(&self.cluster)?;
        if phases.contains(&PhaseName::Provision) && !matches!(self.cluster.find_inventory(), Ok(Some(_))) {
            // Before the first host is made: better now than after some minutes.
            let subject = self.cluster.doctor_subject();
            doctor::require(subject.goal, &doctor::inspect(&subject))?;
        }
        let next = binding.as_ref().map_or_else(|| format!("turnup {}", self.command), |binding| binding.next.clone());
        let engine = Engine::new(store, &lock, self.reporter.sink()).parallel(args.parallel).next_command(next);
        let mut engine = engine.approved_by(binding.map(|binding| Arc::new(binding.approved)));
        engine = engine.max_failures(args.max_failures);
        let mut total = Summary::default();
        for name in phases {
            let phase = name.load(&self.cluster, &self.options)?;
            let summary = engine.run(&phase)?;
            total.ran += summary.ran;
            total.skipped += summary.skipped;
            total.elapsed += summary.elapsed;
        }
        Ok(total)
    }

    /// What this run is held to: the plan, provided that the inputs are still those for which it
    /// was made.
    pub(super) fn bind(&self, global: &Global, file: &Path) -> Result<PlanBinding> {
        let store = &self.cluster.store;
        let (plan, text) = super::plan::read(file)?;
        let digest = Digest::of(text.as_bytes()).to_string();
        let going_on = store.read(RUNNING_PLAN)?.as_deref() == Some(digest.as_bytes());
        plan.require_same_world(&super::plan::make(global, None)?, going_on, &store.state()?)?;
        store.write_file(RUNNING_PLAN, digest.as_bytes(), 0o600)?;
        let next = format!("turnup up --plan {}", shell_words::quote(&file.display().to_string()));
        Ok(PlanBinding { approved: plan.bind(), next })
    }

    /// A context for work that is no step of a phase.
    pub(super) fn context(&self, name: &str, timeout: Duration) -> Result<Cx> {
        let log = self.cluster.store.create_dir("logs")?.join(format!("{name}.log"));
        Ok(Cx::detached(name, self.reporter.sink(), log, timeout))
    }
}
