//! The steps of the provision phase, in the order of `phases/provision/phase.toml`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::artifacts::host_root_digest;
use crate::cluster::{Cluster, DriverSettings, KNOWN_HOSTS, SSH_KEY};
use crate::error::{Error, Result};
use crate::exec::{Failure, Run};
use crate::phase::{Action, Check, Cx, Inputs, Manifest, Phase, PhaseHost};
use crate::state::Store;
use crate::unknown;

use super::api_guard;
use super::apply::{Apply, BeforeHostRemoval, find_program};
use super::baremetal;
use super::custom;
use super::external_inventory;
use super::host_keys;
use super::local::{self, HostSpec, MachineStatus};
use super::local_cloud::{Joining, SERVICE};
use super::planned_hosts::{PlannedHost, planned_hosts, replaces_hosts};
use super::planned_inventory::prove_inventory;
use super::render::{self, host_key, public_key, spec_file};
use super::run_options::RunOptions;
use super::ssh_keys::ensure_key;
use super::step_ids::{KEYS, USER_DATA};
use super::terraform;
use crate::cloud::{Spec, Target};
use crate::inventory::Inventory;

/// What the second phase does during this one. It stands above, and hands it in.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Adds the step `user-data`, for hosts that join by themselves.
    pub add_user_data: fn(Phase, &Arc<Cluster>) -> Phase,
    /// Takes hosts of the control plane out of the cluster, before Terraform takes them away.
    pub before_host_removal: BeforeHostRemoval,
}

/// The phase for this cluster's target.
pub fn phase(cluster: &Arc<Cluster>, options: &RunOptions, hooks: Hooks) -> Result<Phase> {
    external_inventory::refuse_adopted(cluster)?;
    options.require_fit(cluster)?;
    api_guard::require_way_to_api(cluster)?;
    let mut manifest = cluster.manifest("provision")?;
    manifest.set_timeouts(&["apply"], cluster.settings.driver.timeout, DriverSettings::TIMEOUT);
    match cluster.settings.target {
        Target::BareMetal => Ok(baremetal::phase(cluster, manifest)),
        Target::Cloud(_) => {
            let phase = made_elsewhere(cluster, manifest, options, hooks.before_host_removal);
            Ok((hooks.add_user_data)(phase, cluster))
        }
        Target::Custom => Ok(made_elsewhere(cluster, manifest, options, hooks.before_host_removal)),
        Target::Local if replaces_hosts(cluster) => {
            let phase = made_here(cluster, manifest, options, hooks.before_host_removal)?;
            Ok((hooks.add_user_data)(phase, cluster))
        }
        Target::Local => {
            manifest.remove(USER_DATA.step());
            made_here(cluster, manifest, options, hooks.before_host_removal)
        }
    }
}

/// The phase for hosts on this machine: which they will be is known before Terraform makes them.
fn made_here(
    cluster: &Arc<Cluster>,
    manifest: Manifest,
    options: &RunOptions,
    before_host_removal: BeforeHostRemoval,
) -> Result<Phase> {
    let shared = || Arc::clone(cluster);
    let hosts = planned_hosts(cluster)?;
    let seen = hosts.iter().map(|host| PhaseHost { name: host.name.clone(), role: host.role_name().into() }).collect();
    Ok(cluster
        .phase("provision", manifest, seen)
        .with("keys", Keys(shared()))
        .with("root", Root(shared()))
        .with("render", Render(shared()))
        .with("apply", Apply::new(shared(), options, before_host_removal))
        .with("start", Start(shared()))
        .with("inventory", Collect::new(shared(), options)))
}

/// The phase for a cloud, and for a module of one's own: what the hosts will be, only Terraform's
/// output says.
fn made_elsewhere(
    cluster: &Arc<Cluster>,
    manifest: Manifest,
    options: &RunOptions,
    before_host_removal: BeforeHostRemoval,
) -> Phase {
    let shared = || Arc::clone(cluster);
    cluster
        .phase("provision", manifest, Vec::new())
        .with("keys", Key(shared()))
        .with("render", Render(shared()))
        .with("apply", Apply::new(shared(), options, before_host_removal))
        .with("inventory", Collect::new(shared(), options))
}

/// Both halves of each key are there.
fn prove_keys(store: &Store, keys: &[String]) -> Result<Check> {
    for file in keys.iter().flat_map(|key| [format!("{key}.pub"), key.clone()]) {
        if store.read(&file)?.is_none() {
            return Ok(Check::Drifted(format!("{file} is missing")));
        }
    }
    Ok(Check::Ok)
}

/// The public halves that others read, as far as they can be known.
fn simulate_keys(store: &Store, keys: &[String]) -> Result<bool> {
    for file in keys.iter().map(|key| format!("{key}.pub")) {
        if store.read(&file)?.is_none() {
            store.write_file(&file, unknown::after(&KEYS).as_bytes(), 0o600)?;
        }
    }
    Ok(true)
}

/// The cluster's SSH key and every host's own key, made before the hosts so that the first
/// connection already knows them.
struct Keys(Arc<Cluster>);

impl Keys {
    fn files(&self) -> Result<Vec<String>> {
        let hosts = planned_hosts(&self.0)?;
        Ok(std::iter::once(SSH_KEY.to_owned()).chain(hosts.iter().map(|host| host_key(&host.name))).collect())
    }

    fn known_hosts(&self) -> Result<String> {
        let line = |host: &PlannedHost| {
            let key = public_key(&self.0, &host_key(&host.name))?;
            Ok(format!("{} {key}\n", host.address))
        };
        planned_hosts(&self.0)?.iter().map(line).collect()
    }
}

impl Action for Keys {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(self.0.inputs(&["phase1.cluster_name", "phase1.local.subnet"]).with("hosts", describe_hosts(&self.0)?))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        prove_keys(&self.0.store, &self.files()?)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        self.0.store.create_dir("ssh/hosts")?;
        for file in self.files()? {
            ensure_key(&self.0.store, &file, cx)?;
        }
        self.0.store.write_file(KNOWN_HOSTS, self.known_hosts()?.as_bytes(), 0o600)
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        simulate_keys(&self.0.store, &self.files()?)
    }
}

/// The cluster's SSH key alone: the hosts bring their own.
struct Key(Arc<Cluster>);

impl Action for Key {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(self.0.inputs(&["phase1.cluster_name"]))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        prove_keys(&self.0.store, &[SSH_KEY.to_owned()])
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        self.0.store.create_dir("ssh")?;
        ensure_key(&self.0.store, SSH_KEY, cx)
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        simulate_keys(&self.0.store, &[SSH_KEY.to_owned()])
    }
}

/// The read-only root that all local hosts of one release share.
struct Root(Arc<Cluster>);

impl Action for Root {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let settings = &self.0.settings;
        let digest = |release: &String| host_root_digest(release, &settings.local_hosts.packages).to_string();
        let digests: Vec<String> = settings.releases().iter().map(digest).collect();
        Ok(Inputs::new().with("host root", digests.join("\n")))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let (settings, cache) = (&self.0.settings, self.0.cache()?);
        let paths = settings.releases().into_iter();
        let mut paths = paths.map(|release| cache.host_root_path_with(&release, &settings.local_hosts.packages));
        Ok(paths.find(|path| !path.is_dir()).map_or(Check::Ok, |path| {
            let missing = format!("{} is missing", path.display());
            Check::Drifted(missing)
        }))
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let (settings, cache) = (&self.0.settings, self.0.cache()?);
        let local = &settings.local_hosts;
        for release in settings.releases() {
            cache.rootfs_from(&release, &local.packages, local.mirror_of(&release), false, cx)?;
        }
        Ok(())
    }
}

/// Names, groups and addresses of the hosts of this machine, and releases of their own.
fn describe_hosts(cluster: &Cluster) -> Result<String> {
    let common = &cluster.settings.root_suite;
    let line = |host: PlannedHost| {
        let own = if host.release == *common { String::new() } else { format!(" {}", host.release) };
        format!("{} {} {}{own}\n", host.name, host.address, host.group)
    };
    Ok(planned_hosts(cluster)?.into_iter().map(line).collect())
}

/// The Terraform module, its variables and the hosts' descriptions, as files that the user can read
/// before they are used.
struct Render(Arc<Cluster>);

impl Render {
    /// What is rendered, of which each setting of a cloud is a part.
    fn cloud_inputs(&self, spec: &Spec) -> Result<Inputs> {
        let inputs = self.0.inputs(&["phase1.state", "phase1.terraform.provider_mirror"]);
        let inputs = inputs.with("Terraform module", render::module_digest(&self.0)?);
        let variables = render::cloud_variables(&self.0, spec)?.into_iter();
        Ok(variables.fold(inputs, |inputs, (path, text)| inputs.with(path, text)))
    }
}

impl Action for Render {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let cluster = &self.0;
        if let Some(spec) = &cluster.settings.cloud {
            return self.cloud_inputs(spec);
        }
        let is_custom = cluster.settings.target.is_custom();
        let names = [
            if is_custom { "phase1.custom.module" } else { "phase1.local" },
            "phase1.cluster_name",
            "phase1.state",
            "phase1.terraform.provider_mirror",
            "phase2.api_port",
        ];
        let inputs = cluster.inputs(&names).with("Terraform module", render::module_digest(cluster)?);
        if is_custom {
            return Ok(inputs.with(terraform::VARIABLES, custom::variables(cluster)?.to_string()));
        }
        let blobs = cluster.locate_cache()?.blobs_dir();
        let inputs =
            Joining::inputs(cluster)?.into_iter().fold(inputs, |inputs, (name, text)| inputs.with(name, text.as_str()));
        Ok(inputs.with("hosts", describe_hosts(cluster)?).with("cache", blobs.as_os_str().as_encoded_bytes()))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let files = render::files(&self.0)?;
        for (path, text) in &files {
            if self.0.store.read(path)?.as_deref() != Some(text.as_bytes()) {
                return Ok(Check::Drifted(format!("{path} is missing or was changed")));
            }
        }
        match render::find_strange(&self.0, &files).first() {
            Some(path) => Ok(Check::Drifted(format!("{path} does not belong to the module"))),
            None => Ok(Check::Ok),
        }
    }

    fn run(&self, _host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.simulate(None).map(drop)
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        let files = render::files(&self.0)?;
        for path in render::find_strange(&self.0, &files) {
            self.0.store.remove(path)?;
        }
        for (path, text) in files.into_iter().chain(render::locks(&self.0)?) {
            self.0.store.write_file(&path, text.as_bytes(), 0o600)?;
        }
        Ok(true)
    }
}

/// A local host runs and answers, and this machine has its nftables rules; after a restart of the
/// machine neither is so.
struct Start(Arc<Cluster>);

impl Start {
    fn spec(&self, host: Option<&str>) -> Result<(PathBuf, HostSpec)> {
        let path = self.0.store.path(spec_file(host.unwrap_or_default()));
        let spec = HostSpec::read(&path)?;
        Ok((path, spec))
    }

    /// Hosts find their volumes by it.
    fn ensure_service(&self) -> Result<()> {
        let path = self.0.store.path(SERVICE);
        if !replaces_hosts(&self.0) || local::serves(&path) {
            return Ok(());
        }
        // The same step works on other hosts at the same time.
        let _turn = HostSpec::take_turn(&path)?;
        if local::serves(&path) { Ok(()) } else { local::start_service(&path) }
    }
}

impl Action for Start {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new())
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        let path = self.0.store.path(spec_file(host.unwrap_or_default()));
        if !path.exists() {
            return Ok(Check::Drifted("the host does not exist yet".into()));
        }
        let spec = HostSpec::read(&path)?;
        match local::status_of(&spec)? {
            MachineStatus::Running if !local::has_firewall(&spec.network) => {
                Ok(Check::Drifted("the nftables rules for the hosts are gone from this machine".into()))
            }
            MachineStatus::Running if replaces_hosts(&self.0) && !local::serves(&self.0.store.path(SERVICE)) => {
                Ok(Check::Drifted("the service of the local hosts does not run".into()))
            }
            MachineStatus::Running => Ok(Check::Ok),
            MachineStatus::Stopped => Ok(Check::Drifted("the host does not run".into())),
            MachineStatus::Absent => Ok(Check::Drifted("the host is gone".into())),
        }
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let (path, spec) = self.spec(host)?;
        self.ensure_service()?;
        if local::status_of(&spec)? == MachineStatus::Running && local::has_firewall(&spec.network) {
            return Ok(());
        }
        // A process of its own, because it moves itself into the host's cgroup.
        let run = Run::new(&self.0.exe).args(["local", "host", "start", "--spec"]).arg(path).dir(self.0.store.dir());
        run.log(cx.log_path()).timeout(Duration::from_secs(90)).output().map_err(Failure::relay)?;
        Ok(())
    }
}

/// Terraform's output becomes the inventory.
struct Collect {
    cluster: Arc<Cluster>,
    /// Hosts whose known host keys the user resets in this run.
    forget: BTreeSet<String>,
}

impl Collect {
    fn new(cluster: Arc<Cluster>, options: &RunOptions) -> Self {
        Self { cluster, forget: options.reset_host_keys.clone() }
    }
}

impl Action for Collect {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new().with("Terraform state", terraform::identity(&self.cluster)?))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let forgotten = self.forget.iter().next();
        let forgotten = forgotten.map(|name| Check::Drifted(format!("the host key of {name} is to be learnt again")));
        Ok(forgotten.unwrap_or_else(|| prove_inventory(&self.cluster)))
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.cluster;
        let target = cluster.settings.target;
        let missing = || {
            let message = "the Terraform module has no output named inventory";
            match target {
                Target::Custom => Error::config(message).hint("docs/custom-module.md says what it has to give back"),
                _ => Error::bug(message),
            }
        };
        let value = find_program(cluster, cx)?.output("inventory")?.ok_or_else(missing)?;
        if target.is_local() {
            return cluster.write_inventory(&Inventory::parse("terraform output inventory", &value.to_string())?);
        }
        let inventory = if target.cloud().is_some() {
            host_keys::complete(cluster, &value, &self.forget, cx)?
        } else {
            custom::parse_inventory(cluster, &value)?
        };
        external_inventory::take(cluster, &inventory, cx)
    }
}
