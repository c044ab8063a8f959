//! Drives terraform or tofu through their machine-readable interface: init, plan to a file, apply
//! of exactly that file, output, destroy.
//!
//! It reads the `-json` stream (one JSON object a line) and never the text for people, but for
//! commands that have no other. It knows no target. Where the state is and how it gets there is in
//! `moving`.

mod advice;
mod backend;
mod diagnostic;
mod environment;
mod lock;
mod program;
mod progress;
mod state_migration;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::tfplan;
use super::tfstate::Resource;
use crate::cluster::{Backend, Cluster, DriverSettings};
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::{Failure, OnDeath, Run, Stream};
use crate::phase::Cx;

pub(super) use backend::BackendConfig;
use progress::Progress;
pub(super) use state_migration::{
    copy_state, identity, planned_move, ready, ready_to_destroy, remember, remote, simulate_state,
};

/// Terraform's working directory below the cluster's.
pub(super) const DIR: &str = "provision";
/// Terraform's variables below the cluster's directory.
pub(super) const VARIABLES: &str = "provision/terraform.tfvars.json";

/// Terraform finishes the resource that it works on after a signal; killed before, it may lose its
/// state.
const GRACE: Duration = Duration::from_mins(2);
const PLAN_FILE: &str = "turnup.tfplan";
/// What `init` says when the registry of providers is away.
const AWAY: [&str; 5] = ["no such host", "could not connect to", "connection refused", "timeout", "connection reset"];
/// The file that says where the state is kept.
pub(super) const BACKEND: &str = "backend.tf.json";
/// The file that says where providers come from.
pub(super) const CLI_CONFIG: &str = "terraform.tfrc";
/// Which versions of which providers are taken, by their hashes: Terraform writes it.
pub(super) const LOCK_FILE: &str = ".terraform.lock.hcl";

/// Whether the provision phase has made, or started to make, hosts.
pub fn has_made(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.store.read(VARIABLES)?.is_some())
}

/// JSON as a file for Terraform.
pub(super) fn pretty(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    Ok(text + "\n")
}

/// One module in one working directory.
pub struct Terraform {
    program: PathBuf,
    dir: PathBuf,
    exe: PathBuf,
    options: Options,
}

/// What every call is given.
#[derive(Clone)]
struct Options {
    parallelism: u32,
    lock_timeout: String,
    timeout: Duration,
    backend: Backend,
    /// Patterns of variables of our environment.
    inherit: Vec<String>,
    /// The configuration of the program itself.
    cli_config: Option<PathBuf>,
    /// Never to be logged.
    secret: Option<String>,
}

/// One resource that a plan would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceChange {
    /// The resource's address in the module.
    pub address: String,
    /// Terraform's word: create, update, delete, replace, …
    pub action: String,
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PlanMode {
    /// To be applied.
    #[default]
    Apply,
    /// Shows changes made outside of turnup.
    Refresh,
    /// To be looked at: with a copy of the state, so nothing is locked.
    Look,
}

/// How a working directory is made ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Init {
    /// As it was, or for the first time.
    Plain,
    /// The same place, perhaps with another password.
    Reconfigure,
    /// The state is copied to another place.
    Migrate,
}

impl Terraform {
    /// The program that the configuration means, on PATH; none when it is not there.
    #[must_use]
    pub fn on_path(driver: &DriverSettings) -> Option<PathBuf> {
        program::find(driver.program)
    }

    /// The names of the programs that the configuration allows.
    pub(super) fn names(driver: &DriverSettings) -> &'static [&'static str] {
        program::names(driver.program)
    }

    /// `dir` is the working directory; turnup's own binary is what the local target's module calls.
    #[must_use]
    pub fn new(program: PathBuf, dir: PathBuf, cluster: &Cluster) -> Self {
        let (driver, target) = (&cluster.settings.driver, cluster.settings.target);
        let cli_config = (!driver.provider_mirror.is_empty()).then(|| dir.join(CLI_CONFIG));
        let options = Options {
            parallelism: driver.parallelism,
            lock_timeout: driver.lock_timeout.clone(),
            timeout: driver.timeout,
            backend: driver.backend.clone(),
            inherit: environment::patterns(target, driver),
            cli_config,
            secret: None,
        };
        Self { program, dir, exe: cluster.exe.clone(), options }
    }

    /// The same with the credentials of every cloud: it is not known any more which one it was.
    #[must_use]
    pub(super) fn for_any_cloud(mut self) -> Self {
        self.options.inherit.extend(environment::all());
        self
    }

    fn with_secret(mut self, secret: Option<&str>) -> Self {
        self.options.secret = secret.map(str::to_owned);
        self
    }

    /// The same program in another directory.
    fn at(&self, dir: &Path) -> Self {
        let (program, exe, options) = (self.program.clone(), self.exe.clone(), self.options.clone());
        Self { program, dir: dir.to_owned(), exe, options }
    }

    /// The program's version, for the inputs of a step: an apply by another version is another
    /// apply.
    pub fn version(&self) -> Result<String> {
        let output = self.command("version").arg("-json").timeout(Duration::from_mins(1)).succeed()?;
        let value: Value = self.parse("version", &output.stdout)?;
        Ok(diagnostic::text(&value["terraform_version"]))
    }

    /// Refuses a program that is too old for what the configuration asks.
    pub fn require_version(&self) -> Result<()> {
        program::require(&self.name(), &self.version()?, &self.options.backend)
    }

    /// Downloads what the module needs; nothing for a module of built-in resources. The state stays
    /// where it is.
    pub fn init(&self, cx: &Cx) -> Result<()> {
        self.init_as(Init::Plain, None, cx)
    }

    fn init_as(&self, how: Init, secret: Option<&Path>, cx: &Cx) -> Result<()> {
        cx.progress(format!("{} init", self.name()));
        let mut run = self.command("init").args(["-input=false", "-no-color"]).log(cx.log_path());
        run = match how {
            Init::Plain => run,
            Init::Reconfigure => run.arg("-reconfigure"),
            // What may be overwritten was looked at before.
            Init::Migrate => {
                run.args(["-migrate-state", "-force-copy"]).arg(format!("-lock-timeout={}", self.options.lock_timeout))
            }
        };
        if let Some(file) = secret {
            run = run.arg(format!("-backend-config={}", file.display()));
        }
        run.output().map(drop).map_err(|failure| {
            if let Some(error) = diagnostic::explain_text(&self.name(), &self.dir, &failure) {
                return error;
            }
            let away = AWAY.iter().any(|words| failure.stderr().contains(words));
            if away { failure.into_error(Class::Transient) } else { failure.into() }
        })
    }

    /// Plans, and returns what would change. `replace` names resources that are to be recreated.
    pub(super) fn plan(&self, mode: PlanMode, replace: &BTreeSet<String>, log: &Path) -> Result<Vec<ResourceChange>> {
        let mut run = self.limited("plan").args(["-input=false", "-json"]).arg(format!("-out={PLAN_FILE}")).log(log);
        run = match mode {
            PlanMode::Apply => run.arg(self.lock_timeout()),
            PlanMode::Look => run.arg("-lock=false"),
            PlanMode::Refresh => run.args(["-lock=false", "-refresh-only"]),
        };
        for address in replace {
            run = run.arg(format!("-replace={address}"));
        }
        self.plan_as(run)
    }

    /// Plans for these resources alone, as the state has them, and returns what would change.
    pub(super) fn plan_only(&self, targets: &BTreeSet<String>, log: &Path) -> Result<Vec<ResourceChange>> {
        let run = self.limited("plan").args(["-input=false", "-json", "-refresh=false"]).arg(self.lock_timeout());
        let run = run.args(targets.iter().map(|address| format!("-target={address}")));
        self.plan_as(run.arg(format!("-out={PLAN_FILE}")).log(log))
    }

    fn plan_as(&self, run: Run) -> Result<Vec<ResourceChange>> {
        let mut changes = Vec::new();
        self.follow(run, |message| {
            if message["type"] == "planned_change" {
                let address = diagnostic::text(&message["change"]["resource"]["addr"]);
                changes.push(ResourceChange { address, action: diagnostic::text(&message["change"]["action"]) });
            }
        })?;
        Ok(changes)
    }

    /// What the plan made last would change, with every attribute that it knows.
    pub fn show_plan(&self) -> Result<tfplan::TerraformChanges> {
        let output = self.command("show").args(["-json", "-no-color", PLAN_FILE]).succeed()?;
        let value: Value = self.parse("show", &output.stdout)?;
        Ok(tfplan::TerraformChanges::parse(&value))
    }

    /// Applies the plan made last, and only that.
    pub fn apply(&self, changes: usize, cx: &Cx) -> Result<()> {
        let run = self.limited("apply").args(["-input=false", "-json"]).arg(self.lock_timeout()).log(cx.log_path());
        self.watch(run.arg(PLAN_FILE), changes, cx)
    }

    /// Destroys everything in the state.
    pub fn destroy(&self, cx: &Cx) -> Result<()> {
        let run = self.limited("destroy").args(["-input=false", "-json", "-auto-approve"]).arg(self.lock_timeout());
        self.watch(run.log(cx.log_path()), 0, cx)
    }

    /// The addresses of all managed resources in the state.
    pub fn resources(&self) -> Result<BTreeSet<String>> {
        let state = self.pull()?.unwrap_or_default();
        Ok(Resource::parse_all(state.as_bytes()).into_iter().map(|resource| resource.address).collect())
    }

    /// Takes resources out of the state: they stay where they are, and Terraform knows them no
    /// more.
    pub(super) fn forget(&self, addresses: &BTreeSet<String>, cx: &Cx) -> Result<()> {
        if addresses.is_empty() {
            return Ok(());
        }
        let run = self.command("state").arg("rm").arg(self.lock_timeout()).args(addresses.iter().cloned());
        run.log(cx.log_path()).output().map(drop).map_err(|failure| self.explain(failure))
    }

    /// What is in the state, wherever that is.
    pub(super) fn list_state(&self) -> Result<Vec<Resource>> {
        Ok(Resource::parse_all(self.pull()?.unwrap_or_default().as_bytes()))
    }

    /// The state as it is; none when there is none yet. It holds secrets.
    pub(super) fn pull(&self) -> Result<Option<String>> {
        let output = self.command("state").arg("pull").output().map_err(|failure| self.explain(failure))?;
        Ok(Some(json_part(&output.stdout).to_owned()).filter(|text| !text.is_empty()))
    }

    /// Writes a state from a file of the working directory to its place.
    fn push(&self, file: &str, cx: &Cx) -> Result<()> {
        let run = self.command("state").arg("push").arg(self.lock_timeout()).arg(file).log(cx.log_path());
        run.output().map(drop).map_err(|failure| self.explain(failure))
    }

    /// The value of one output; none before the first apply.
    pub fn output(&self, name: &str) -> Result<Option<Value>> {
        let output = self.command("output").arg("-json").output().map_err(|failure| self.explain(failure))?;
        let all: Value = self.parse("output", &output.stdout)?;
        Ok(all.get(name).and_then(|output| output.get("value")).cloned())
    }

    /// What a command printed.
    fn parse(&self, command: &str, stdout: &str) -> Result<Value> {
        serde_json::from_str(json_part(stdout)).context(format!("{} {command} did not print JSON", self.name()))
    }

    fn name(&self) -> String {
        self.program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn lock_timeout(&self) -> String {
        format!("-lock-timeout={}", self.options.lock_timeout)
    }

    fn command(&self, subcommand: &str) -> Run {
        let mut run = Run::new(&self.program)
            .arg(subcommand)
            .dir(&self.dir)
            .env("TF_IN_AUTOMATION", "1")
            // No call to the maker's version service.
            .env("CHECKPOINT_DISABLE", "1")
            .env("TURNUP_EXE", &self.exe)
            .grace(GRACE)
            .on_death(OnDeath::Terminate)
            // State, plans and providers: 0600 and 0700.
            .private()
            .label(format!("{} {subcommand}", self.name()));
        if let Some(file) = &self.options.cli_config {
            run = run.env("TF_CLI_CONFIG_FILE", file);
        }
        if let Some(secret) = &self.options.secret {
            run = run.secret(secret);
        }
        self.options.inherit.iter().fold(run, Run::inherit)
    }

    /// A command that works on the resources themselves.
    fn limited(&self, subcommand: &str) -> Run {
        let run = self.command(subcommand).timeout(self.options.timeout);
        run.arg(format!("-parallelism={}", self.options.parallelism))
    }

    fn watch(&self, run: Run, total: usize, cx: &Cx) -> Result<()> {
        let mut progress = Progress::new(cx, self.name(), total);
        self.follow(run, |message| progress.hear(message))
    }

    /// Runs to the end and turns the diagnostics of the stream into the error.
    fn follow(&self, run: Run, mut on_message: impl FnMut(&Value)) -> Result<()> {
        let mut problems = Vec::new();
        let ended = run.stream(|stream, line| {
            let message = (stream == Stream::Stdout).then(|| serde_json::from_str::<Value>(line).ok()).flatten();
            let Some(message) = message else { return };
            if message["type"] == "diagnostic" && message["diagnostic"]["severity"] == "error" {
                problems.push(message["diagnostic"].clone());
            }
            on_message(&message);
        });
        match ended {
            Ok(_) => Ok(()),
            Err(failure @ (Failure::Exited { .. } | Failure::Signalled { .. })) if !problems.is_empty() => {
                Err(diagnostic::explain(&self.name(), &self.dir, &failure, &problems))
            }
            Err(failure @ Failure::TimedOut { .. }) => Err(Error::from(failure)
                .hint("turnup config set phase1.timeout=1h, then the same command again: it goes on where it stopped")),
            Err(failure) => Err(self.explain(failure)),
        }
    }

    /// The error of a command without `-json`.
    fn explain(&self, failure: Failure) -> Error {
        match failure {
            Failure::Exited { .. } => {
                diagnostic::explain_text(&self.name(), &self.dir, &failure).unwrap_or_else(|| failure.into())
            }
            other => other.into(),
        }
    }
}

/// The JSON that a command printed: what `OpenTofu` has to say of its own configuration comes
/// before it, in words.
fn json_part(stdout: &str) -> &str {
    let start = if stdout.starts_with('{') { Some(0) } else { stdout.find("\n{").map(|at| at + 1) };
    start.map_or("", |at| &stdout[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_before_its_json_is_no_part_of_it() {
        assert_eq!(json_part("{\n  \"a\": 1\n}\n"), "{\n  \"a\": 1\n}\n");
        assert_eq!(json_part("\nWarning: Unable to open {x}\n\nIt does not exist.\n{\"a\": 1}\n"), "{\"a\": 1}\n");
        assert_eq!(json_part("\nWarning: there is no state\n"), "");
    }
}
