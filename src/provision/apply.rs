//! Terraform's step: plan and apply; and what either would change, told without doing it.
//!
//! To tell, Terraform works in a directory of its own with a copy of the state: nothing is locked,
//! and nothing is left behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::change::{Change, Preview, Verb};
use crate::cluster::{Cluster, Program};
use crate::error::{Class, Context as _, Error, Result};
use crate::phase::{Action, Check, Cx, Inputs, Sink};
use crate::state::Store;

use super::local::{self, HostSpec, MachineStatus};
use super::local_cloud;
use super::planned_hosts::{find_balancer, planned_hosts};
use super::planned_inventory;
use super::render::{self, spec_file};
use super::run_options::RunOptions;
use super::step_ids::APPLY;
use super::terraform::{self, DIR, PlanMode, Terraform, VARIABLES};
use super::tfplan::TerraformChanges;
use super::user_data::USER_DATA;
use super::volume_guard::{self, is_volume};
use crate::inventory::{Host, Role};

/// Takes hosts of the control plane out of the cluster before they go.
pub type BeforeHostRemoval = fn(&Cluster, &[&Host], &Cx) -> Result<()>;

/// Terraform's plan and apply.
pub(super) struct Apply {
    cluster: Arc<Cluster>,
    /// What Terraform would change; none when it is not at hand. Asked once.
    planned: OnceLock<Option<TerraformChanges>>,
    options: RunOptions,
    before_host_removal: BeforeHostRemoval,
}

impl Apply {
    pub(super) fn new(cluster: Arc<Cluster>, options: &RunOptions, before_host_removal: BeforeHostRemoval) -> Self {
        Self { cluster, planned: OnceLock::new(), options: options.clone(), before_host_removal }
    }

    fn is_local(&self) -> bool {
        self.cluster.settings.target.is_local()
    }

    /// Hosts that are in Terraform's state but do not exist: they were removed by hand.
    fn vanished(&self) -> Result<BTreeSet<String>> {
        let mut addresses = BTreeSet::new();
        let never = terraform::remote(&self.cluster)?.is_none()
            && self.cluster.store.read(format!("{DIR}/terraform.tfstate"))?.is_none();
        if never || !self.is_local() {
            return Ok(addresses);
        }
        for host in planned_hosts(&self.cluster)? {
            let path = self.cluster.store.path(spec_file(&host.name));
            if path.exists() && local::status_of(&HostSpec::read(&path)?)? == MachineStatus::Absent {
                addresses.insert(planned_inventory::address_of(&host.name));
            }
        }
        Ok(addresses)
    }

    /// Hosts of the control plane that the configuration wants no more. A module of one's own does
    /// not say which these are.
    fn leavers(&self) -> Result<Vec<Host>> {
        let wanted: BTreeSet<String> = if let Some(spec) = &self.cluster.settings.cloud {
            spec.control_plane.keys().cloned().collect()
        } else if self.is_local() {
            planned_hosts(&self.cluster)?.into_iter().map(|host| host.name).collect()
        } else {
            return Ok(Vec::new());
        };
        let inventory = self.cluster.find_inventory().map_err(|error| {
            error.hint("set the configuration back as it was; turnup provision (recreates the inventory); then change it again")
        })?;
        let Some(inventory) = inventory else { return Ok(Vec::new()) };
        Ok(inventory.control_planes().filter(|host| !wanted.contains(&host.name)).cloned().collect())
    }

    /// Terraform's plan for what the directory would have, made in a directory of its own.
    fn planned(&self) -> Result<Option<&TerraformChanges>> {
        if let Some(planned) = self.planned.get() {
            return Ok(planned.as_ref());
        }
        // Its error is told once; what comes then only learns that nothing can be told.
        let planned = self.plan_aside().map_err(Error::without_log).inspect_err(|_| drop(self.planned.set(None)))?;
        Ok(self.planned.get_or_init(|| planned).as_ref())
    }

    fn plan_aside(&self) -> Result<Option<TerraformChanges>> {
        let Some(aside) = ScratchDir::make(&self.cluster, true)? else { return Ok(None) };
        let known = aside.terraform.resources()?;
        let replace = self.vanished()?.intersection(&known).cloned().collect();
        aside.terraform.plan(PlanMode::Look, &replace, &aside.log)?;
        aside.terraform.show_plan().map(Some)
    }

    /// How many hosts do not run yet, and how many of them are control-plane hosts.
    fn to_start(&self) -> Result<(usize, usize)> {
        let (mut count, mut control_planes) = (0, 0);
        for host in planned_hosts(&self.cluster)? {
            let spec = HostSpec::read(&self.cluster.store.path(spec_file(&host.name)))?;
            if local::status_of(&spec)? != MachineStatus::Running {
                count += 1;
                control_planes += usize::from(host.role == Some(Role::ControlPlane));
            }
        }
        Ok((count, control_planes))
    }

    /// Removes the descriptions of hosts that Terraform has deleted; until then it needs them.
    fn forget_specs(&self) -> Result<()> {
        let hosts = planned_hosts(&self.cluster)?;
        let planned: BTreeSet<String> = hosts.iter().map(|host| spec_file(&host.name)).collect();
        for entry in fs_err::read_dir(self.cluster.store.path(format!("{DIR}/hosts")))? {
            let file = format!("{DIR}/hosts/{}", entry?.file_name().to_string_lossy());
            if !planned.contains(&file) {
                let host = HostSpec::read(&self.cluster.store.path(&file))?.name;
                self.cluster.store.remove(local_cloud::user_data_file(&host))?;
                self.cluster.store.remove(file)?;
            }
        }
        if find_balancer(&hosts).is_none() { self.cluster.store.remove(render::BALANCER_DIR) } else { Ok(()) }
    }
}

impl Action for Apply {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let cluster = &self.cluster;
        let variables = cluster.store.read(VARIABLES)?.unwrap_or_default();
        let inputs = Inputs::new().with("Terraform module", render::module_digest(cluster)?);
        let inputs = inputs.with("Terraform variables", variables);
        // What hosts are told at their first boot, and their token: of clouds.
        let inputs = match cluster.store.read(USER_DATA)? {
            Some(user_data) => inputs.with("user data of hosts", user_data),
            None => inputs,
        };
        // Only where it is not the working directory: clusters that never heard of other places
        // stay as they are.
        Ok(match cluster.store.read(format!("{DIR}/{}", terraform::BACKEND))? {
            Some(block) => inputs.with("place of the state", block),
            None => inputs,
        })
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        if self.options.refresh {
            return Ok(Check::Drifted("what is there is to be looked for (--refresh)".into()));
        }
        match self.vanished()?.first() {
            Some(address) => Ok(Check::Drifted(format!("{address} is gone"))),
            None => Ok(Check::Ok),
        }
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        let moved = terraform::planned_move(&self.cluster)?;
        let Some(planned) = self.planned()? else { return Ok(Preview::after(APPLY)) };
        let left = leaving(&self.leavers()?);
        Ok(moved.into_iter().chain(left).chain(planned.changes.clone()).collect::<Vec<_>>().into())
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        // Where nothing is there all is made, and Terraform need not be asked.
        let changed = if self.cluster.store.is_shadow() {
            // Why it cannot be told is the preview's to say.
            let Ok(Some(planned)) = self.planned() else { return Ok(false) };
            if planned.changes_nothing() {
                return Ok(true);
            }
            Some(planned.changed_addresses())
        } else {
            None
        };
        terraform::simulate_state(&self.cluster)?;
        if !self.is_local() {
            // Which hosts there will be is the module's to say.
            return Ok(false);
        }
        planned_inventory::write(&self.cluster, changed.as_ref())?;
        Ok(true)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        if self.is_local() {
            let (hosts, control_planes) = self.to_start()?;
            if let Some(raised) = local::make_room(hosts, control_planes)? {
                cx.progress(raised.to_string());
            }
        }
        let moved = terraform::planned_move(&self.cluster)?;
        let terraform = find_program(&self.cluster, cx)?;
        terraform.require_version()?;
        if let Some(moved) = &moved {
            cx.admit(std::slice::from_ref(moved))?;
        }
        let terraform = terraform::ready(&self.cluster, terraform, cx)?;
        // What was made halfway is not in Terraform's state; making it again completes it, so only
        // what it believes in is replaced.
        let known = terraform.resources()?;
        let replace = self.vanished()?.intersection(&known).cloned().collect();
        let changes = terraform.plan(PlanMode::Apply, &replace, cx.log_path())?;
        let touches_volumes = changes.iter().any(|change| change.action != "create" && is_volume(&change.address));
        if cx.is_bound() || touches_volumes {
            let planned = terraform.show_plan()?;
            cx.admit(&planned.changes)?;
            volume_guard::refuse_data_loss(&planned.losses, &self.options.allow_volume_loss, &self.cluster)?;
        }
        for change in &changes {
            cx.progress(format!("{}: {}", change.address, change.action));
        }
        let leavers = self.leavers()?;
        if !leavers.is_empty() {
            cx.admit(&leaving(&leavers))?;
            // etcd counts a member that is gone as one that is dead: with too many of these it
            // stops for ever.
            (self.before_host_removal)(&self.cluster, &leavers.iter().collect::<Vec<_>>(), cx)
                .map_err(|error| error.evidence("nothing was applied: hosts that go must leave etcd first"))?;
        }
        terraform.apply(changes.len(), cx)?;
        terraform::remember(&self.cluster, &terraform)?;
        if self.is_local() { self.forget_specs() } else { Ok(()) }
    }
}

fn leaving(hosts: &[Host]) -> Vec<Change> {
    hosts.iter().map(|host| Change::new(Verb::Delete, "etcd member", &host.name)).collect()
}

/// What was changed outside of turnup since the last apply, as far as Terraform's providers see it;
/// none when Terraform is not at hand, has made nothing yet or makes nothing. Changes nothing.
pub fn find_drift(cluster: &Cluster) -> Result<Option<Vec<Change>>> {
    if !cluster.settings.target.uses_terraform() {
        return Ok(None);
    }
    refresh_aside(cluster).map_err(Error::without_log)
}

fn refresh_aside(cluster: &Cluster) -> Result<Option<Vec<Change>>> {
    let Some(aside) = ScratchDir::make(cluster, false)? else { return Ok(None) };
    if aside.terraform.resources()?.is_empty() {
        return Ok(None);
    }
    aside.terraform.plan(PlanMode::Refresh, &BTreeSet::new(), &aside.log)?;
    aside.terraform.show_plan().map(|planned| Some(planned.drift))
}

/// A directory like Terraform's working directory, with a copy of the state; gone when it is
/// dropped.
struct ScratchDir {
    terraform: Terraform,
    log: PathBuf,
    _dir: tempfile::TempDir,
}

impl ScratchDir {
    /// With the module as the configuration would have it, or as it was applied.
    fn make(cluster: &Cluster, as_configured: bool) -> Result<Option<Self>> {
        let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
        let Some(terraform) = program_at_hand(cluster, scratch.path()) else { return Ok(None) };
        // Placeholders included, which `state` would refuse: nothing of this directory is ever
        // applied.
        let put = |name: &str, bytes: &[u8]| -> Result<()> {
            let path = scratch.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap_or(scratch.path()))?;
            Ok(fs_err::write(path, bytes)?)
        };
        let lock = format!("{DIR}/{}", terraform::LOCK_FILE);
        let files: Vec<String> = if as_configured {
            render::files(cluster)?.into_iter().map(|(path, _)| path).collect()
        } else {
            render::list_module(cluster)
        };
        for path in files.into_iter().chain([lock]) {
            let name = path.trim_start_matches(DIR).trim_start_matches('/').to_owned();
            // The state is a copy beside it, wherever the real one is.
            let needed = !name.starts_with("hosts/") && name != terraform::BACKEND;
            if let Some(bytes) = cluster.store.read(&path)?.filter(|_| needed) {
                put(&name, &bytes)?;
            }
        }
        lend_providers(&cluster.store.path(DIR), scratch.path())?;
        let log = scratch.path().join("plan.log");
        let cx = Cx::detached(APPLY, Sink::null(), &log, Duration::from_mins(10));
        if let Some(state) = terraform::copy_state(cluster, &terraform, &cx)? {
            put("terraform.tfstate", &state)?;
        }
        terraform.require_version()?;
        terraform.init(&cx)?;
        Ok(Some(Self { terraform, log, _dir: scratch }))
    }
}

/// Lets a directory use the providers that the working directory has already, so that nothing is
/// downloaded to look.
fn lend_providers(from: &Path, to: &Path) -> Result<()> {
    const BELOW: &str = ".terraform/providers";
    let mut waiting = vec![PathBuf::new()];
    // Host, namespace, name and version are directories; what is below them is lent whole.
    for _depth in 0..4 {
        let mut deeper = Vec::new();
        for dir in waiting {
            for entry in fs_err::read_dir(from.join(BELOW).join(&dir)).into_iter().flatten().flatten() {
                deeper.push(dir.join(entry.file_name()));
            }
        }
        waiting = deeper;
    }
    let to = Store::at(to);
    for package in waiting {
        for entry in fs_err::read_dir(from.join(BELOW).join(&package)).into_iter().flatten().flatten() {
            let dir = to.create_dir(Path::new(BELOW).join(&package))?;
            fs_err::os::unix::fs::symlink(entry.path(), dir.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The program, provided that it need not be fetched first: to look, nothing is fetched.
fn program_at_hand(cluster: &Cluster, dir: &Path) -> Option<Terraform> {
    let driver = &cluster.settings.driver;
    let link = cluster.store.path("bin/tofu");
    let own = || (driver.program != Program::Terraform && link.exists()).then_some(link);
    let program = Terraform::on_path(driver).or_else(own)?;
    Some(Terraform::new(program, dir.to_owned(), cluster))
}

/// The program on PATH, else `OpenTofu` from the artifacts, in Terraform's working directory.
pub(super) fn find_program(cluster: &Cluster, cx: &Cx) -> Result<Terraform> {
    let driver = &cluster.settings.driver;
    let program = match Terraform::on_path(driver) {
        Some(program) => program,
        None if driver.program == Program::Terraform => {
            return Err(Error::precondition("terraform is not on PATH, and phase1.terraform.program asks for it")
                .hint("install terraform, or: turnup config set phase1.terraform.program=auto"));
        }
        None => {
            let selection = cluster.select_artifacts()?;
            let missing = Terraform::names(driver).join(" nor ");
            let neither = if Terraform::names(driver).len() > 1 { "neither " } else { "no " };
            cx.progress(format!("{neither}{missing} is on PATH: taking OpenTofu from the artifacts"));
            let tofu = cluster.cache()?.ensure(selection.binary("tofu")?, &cluster.settings.sources, cx);
            link_program(&tofu.map_err(without_terraform)?, cluster)?
        }
    };
    Ok(Terraform::new(program, cluster.store.path(DIR), cluster))
}

fn without_terraform(error: Error) -> Error {
    if error.class() == Class::Interrupted {
        return error;
    }
    let class = if error.class() == Class::Transient { Class::Transient } else { Class::Precondition };
    let message = "neither terraform nor tofu is on PATH, and OpenTofu cannot be had from the artifacts";
    Error::new(class, message)
        .hint("install terraform or tofu, or let turnup build it: turnup config set phase2.artifacts.source=y")
        .source(error)
}

/// A blob has no name that tells what it is; the link has.
fn link_program(blob: &Path, cluster: &Cluster) -> Result<PathBuf> {
    let link = cluster.store.create_dir("bin")?.join("tofu");
    if fs_err::read_link(&link).ok().as_deref() != Some(blob) {
        if link.is_symlink() {
            fs_err::remove_file(&link)?;
        }
        fs_err::os::unix::fs::symlink(blob, &link)?;
    }
    Ok(link)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn providers_are_lent_as_they_lie() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let package = ".terraform/providers/registry.example.org/hashicorp/null/3.2.4/linux_amd64";
        fs_err::create_dir_all(from.path().join(package)).unwrap();
        fs_err::write(from.path().join(package).join("provider"), "binary").unwrap();
        lend_providers(from.path(), to.path()).unwrap();
        let lent = to.path().join(package);
        assert!(lent.is_symlink() && lent.parent().unwrap().is_dir() && !lent.parent().unwrap().is_symlink());
        assert_eq!(fs_err::read_to_string(lent.join("provider")).unwrap(), "binary");
        lend_providers(&from.path().join("nothing"), to.path()).unwrap();
    }
}
