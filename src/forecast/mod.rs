//! What a configuration would become, computed before anything exists: every rendered file, and the
//! inputs of every step.
//!
//! The phases are simulated over an imagined directory, as `plan` simulates them over the real one.
//! A pure function of settings, templates and what is already known of real hosts; nothing is
//! written and nothing is asked. What only a real run makes (keys, certificates, instances) is a
//! placeholder (`unknown`).

mod affected;
mod check;
mod compare;
#[cfg(test)]
mod dry_parse_tests;
mod origin;
#[cfg(test)]
mod own_fields_tests;
#[cfg(test)]
mod own_parse_tests;
#[cfg(test)]
mod random_tests;
mod reach;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use affected::Affected;
pub use check::{Purpose, Verdict};
pub use origin::{NodeValue, Origins};

use crate::cluster::Cluster;
use crate::config::{Settings, TreeSource};
use crate::error::{Error, Result};
use crate::inventory::{self, Endpoint, Host, Inventory, Role, SshAccess};
use crate::node::NodeConfig;
use crate::phase::{Engine, Phase, StepId};
use crate::provision::step_ids::INVENTORY;
use crate::state::Store;
use crate::{addons, bootstrap, unknown};

/// The folders of a cluster's directory that a phase renders for Terraform, for the nodes and for
/// the API server.
const RENDERED: [(&str, &str); 3] =
    [("provision", "provision"), ("bootstrap", bootstrap::node_config::DIRECTORY), ("addons", "addons")];
/// The public key of a host that is not there.
const IMAGINED_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// What the provision phase leaves there that is not rendered.
const STATE: &str = "provision/terraform.tfstate";

/// What a forecast takes over of the directory as it is, where it is there: what follows from no
/// setting, but from machines and from chance.
fn is_taken_over(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    match folder {
        "ssh" | "ssh/hosts" | "outputs/facts" => true,
        "pki" => is_authority(name) || name.starts_with("token-"),
        "outputs" => ["provision.json", "artifacts.json", "etcd.json"].contains(&name),
        _ => false,
    }
}

/// The certificates of the cluster's authority, and which of them there are.
fn is_authority(name: &str) -> bool {
    let item = name.strip_suffix(".crt").unwrap_or_default();
    name == "keysets.json" || item == "ca" || item.starts_with("ca-")
}

/// One forecast.
pub struct Forecast {
    /// The texts by their paths below the cluster's directory: Terraform's input, node configs,
    /// manifests.
    pub files: BTreeMap<String, String>,
    /// Those of them that have something in the place of what only a run makes: keys, certificates,
    /// tokens.
    pub placeholders: BTreeSet<String>,
    /// The hosts by their names.
    pub hosts: BTreeMap<String, Role>,
    /// The host that each one is: another one where it would be recreated.
    pub instances: BTreeMap<String, String>,
    /// The names of the steps in their order.
    steps: Vec<StepId>,
    /// The tasks by their ids, each with one digest of all its inputs; none where only a run can
    /// know them.
    tasks: BTreeMap<StepId, Option<String>>,
    source: TreeSource,
    state_dir: PathBuf,
    /// The directory of the cluster as it is.
    real: PathBuf,
}

impl Forecast {
    /// The forecast for these settings. An error where they cannot be turned up.
    pub fn of(settings: &Settings, source: &TreeSource, state_dir: &Path) -> Result<Self> {
        Self::simulate(settings, source, state_dir, None)
    }

    /// An error where any phase would refuse these settings. Where only a run makes hosts known,
    /// one of each role is imagined.
    pub(super) fn check(settings: &Settings, source: &TreeSource, state_dir: &Path) -> Result<()> {
        Self::rehearse(settings, source, state_dir).map(drop)
    }

    /// The cluster with all that the phases would make of these settings.
    fn rehearse(settings: &Settings, source: &TreeSource, state_dir: &Path) -> Result<Arc<Cluster>> {
        let cluster = imagine(settings, source, state_dir, None)?;
        Engine::simulate(&cluster.store, &bootstrap::provision_phase(&cluster)?)?;
        if cluster.find_inventory()?.is_none() {
            cluster.write_inventory(&imagined_inventory(&cluster))?;
        }
        rehearse_nodes(&cluster)?;
        Ok(cluster)
    }

    /// An error where the phases after the first would refuse these settings for the hosts that
    /// exist.
    pub(super) fn check_nodes(settings: &Settings, source: &TreeSource, state_dir: &Path) -> Result<()> {
        rehearse_nodes(&imagine(settings, source, state_dir, None)?)
    }

    /// What the same cluster would become with other settings, its name included.
    pub fn with(&self, settings: &Settings) -> Result<Self> {
        Self::simulate(settings, &self.source, &self.state_dir, Some(&self.real))
    }

    /// What one node's config alone would become with other settings, wherever the node then has
    /// another name; none where it would not be there. Nothing else is computed for it.
    pub(super) fn node_with(&self, settings: &Settings, node: &str) -> Result<Option<NodeConfig>> {
        let cluster = self.imagine(settings)?;
        Engine::simulate_task(&cluster.store, &bootstrap::hosts_phase(&cluster)?, &INVENTORY)?;
        let Some(inventory) = cluster.find_inventory()? else { return Ok(None) };
        let names: BTreeSet<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        let Some(name) = self.counterpart(node, &names).filter(|name| names.contains(name)) else { return Ok(None) };
        bootstrap::assume_facts(&cluster)?;
        bootstrap::simulate_node_config(&cluster, name).map(Some)
    }

    /// The same cluster with other settings, of which nothing is computed yet.
    fn imagine(&self, settings: &Settings) -> Result<Arc<Cluster>> {
        imagine(settings, &self.source, &self.state_dir, Some(&self.real))
    }

    fn simulate(settings: &Settings, source: &TreeSource, state_dir: &Path, real: Option<&Path>) -> Result<Self> {
        let cluster = imagine(settings, source, state_dir, real)?;
        let (mut steps, mut tasks) = (Vec::new(), BTreeMap::new());
        let mut simulate = |phase: Phase| -> Result<()> {
            tasks.extend(Engine::simulate(&cluster.store, &phase)?);
            steps.extend(phase.manifest.steps.iter().map(|step| StepId::new(&phase.name, &step.name)));
            Ok(())
        };
        simulate(bootstrap::provision_phase(&cluster)?)?;
        // A cloud's module, or one of the user's own, tells its hosts only after it has made them.
        let inventory = cluster.find_inventory()?;
        if inventory.is_some() {
            bootstrap::assume_facts(&cluster)?;
            simulate(bootstrap::phase(&cluster)?)?;
            simulate(addons::phase(&cluster)?)?;
        }
        let files = cluster.store.imagined_files().into_iter();
        let files =
            files.map(|(path, bytes)| (path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        let files: BTreeMap<String, String> = files.filter(|(path, _)| phase_of(path).is_some()).collect();
        let placeholders = files.iter().filter(|(_, text)| unknown::is_in(text)).map(|(path, _)| path.clone());
        let shown = |text: &str| unknown::shown(text).into_owned();
        let hosts = inventory.map(|inventory| inventory.hosts).unwrap_or_default();
        Ok(Self {
            placeholders: placeholders.collect(),
            files: files.iter().map(|(path, text)| (path.clone(), shown(text))).collect(),
            hosts: hosts.iter().map(|host| (host.name.clone(), host.role)).collect(),
            instances: hosts.into_iter().map(|host| (host.name, shown(&host.instance))).collect(),
            steps,
            tasks,
            source: source.clone(),
            state_dir: state_dir.to_owned(),
            real: real.unwrap_or(cluster.store.dir()).to_owned(),
        })
    }

    /// An error where only `turnup provision` tells which hosts there are, and so what the later
    /// phases make.
    pub fn require_hosts(&self) -> Result<()> {
        if !self.hosts.is_empty() {
            return Ok(());
        }
        let message =
            "which hosts there are, and so what bootstrap and addons make for them, is known after `turnup provision`";
        Err(Error::permanent(message).hint("turnup provision"))
    }

    /// The ids of the tasks whose inputs differ, or that only one of both has.
    #[must_use]
    pub fn different_tasks(&self, other: &Self) -> BTreeSet<StepId> {
        let ids = self.tasks.keys().chain(other.tasks.keys());
        ids.filter(|id| self.tasks.get(*id) != other.tasks.get(*id)).cloned().collect()
    }

    /// The steps whose inputs differ on any host, in their order.
    #[must_use]
    pub fn different_steps(&self, other: &Self) -> Vec<StepId> {
        let tasks = self.different_tasks(other);
        self.in_order(tasks.iter().map(StepId::on_any_host).collect())
    }

    /// The same steps in the order in which they run.
    #[must_use]
    pub fn in_order(&self, mut steps: BTreeSet<StepId>) -> Vec<StepId> {
        let mut ordered: Vec<StepId> = self.steps.iter().filter_map(|name| steps.take(name)).collect();
        ordered.extend(steps);
        ordered
    }

    /// The paths of the files that differ.
    #[must_use]
    pub fn different_files(&self, other: &Self) -> Vec<String> {
        let mut paths: Vec<&String> = self.files.keys().chain(other.files.keys()).collect();
        paths.retain(|path| self.files.get(*path) != other.files.get(*path));
        paths.sort_unstable();
        paths.dedup();
        paths.into_iter().cloned().collect()
    }
}

/// What becomes of hosts that are known.
fn rehearse_nodes(cluster: &Arc<Cluster>) -> Result<()> {
    bootstrap::assume_facts(cluster)?;
    Engine::simulate(&cluster.store, &bootstrap::phase(cluster)?)?;
    Engine::simulate(&cluster.store, &addons::phase(cluster)?).map(drop)
}

/// The cluster of these settings over a directory with nothing in it but what is taken over of the
/// one that is there.
fn imagine(settings: &Settings, source: &TreeSource, state_dir: &Path, real: Option<&Path>) -> Result<Arc<Cluster>> {
    let store = |dir: PathBuf| Store::imagined(dir.clone(), real.map_or(dir, Path::to_owned), is_taken_over);
    Cluster::with_store(settings, source.clone(), state_dir, store).map(Arc::new)
}

/// Hosts of a cloud before it has made them.
fn imagined_inventory(cluster: &Cluster) -> Inventory {
    // Clouds shorten names of hosts that would be too long for a Node.
    let named = |name: &str| Some(format!("{}-{name}", cluster.settings.name)).filter(|name| name.len() <= 63);
    let host = |name: &str, role, last| Host {
        name: named(name).unwrap_or_else(|| name.to_owned()),
        role,
        address: Ipv4Addr::new(192, 0, 2, last).into(),
        group: String::new(),
        instance: inventory::IMAGINED.into(),
        ssh: SshAccess { user: "root".into(), port: 22, host_key: IMAGINED_KEY.into(), jump: None },
        blobs: String::new(),
        external_address: None,
        zone: String::new(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        etcd_device: String::new(),
        etcd_volume: None,
    };
    let hosts = vec![host("control-plane-0", Role::ControlPlane, 1), host("worker-0", Role::Worker, 2)];
    let api = Endpoint::new(hosts[0].address.to_string(), cluster.settings.api_port);
    Inventory::of_hosts(&cluster.settings.name, &cluster.settings.target, api, hosts)
}

/// The phase that renders a file; none for other files of the cluster's directory.
#[must_use]
pub fn phase_of(path: &str) -> Option<&'static str> {
    let (folder, _) = path.split_once('/')?;
    RENDERED.into_iter().find(|(_, rendered)| *rendered == folder && path != STATE).map(|(phase, _)| phase)
}
