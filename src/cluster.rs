//! One cluster: its settings as typed values, its directory, its templates. What every phase is
//! given.
//!
//! The settings are read once; nothing here decides anything about a node (that is
//! `bootstrap::node_config`).

mod access;
mod addons;
mod artifact_settings;
mod artifacts;
pub mod assets;
mod authorized_keys;
mod backup;
mod catalog;
mod control_plane;
mod custom;
mod dns;
mod driver;
mod firewall;
mod host_system;
mod kubeconfig;
mod local;
mod manifests;
mod overrides;
mod own_steps;
mod pki;
mod runtime;
mod time_limits;
mod update;
pub mod user_data;
mod validation;

pub use addons::{AddonSettings, CLOUD_CONTROLLER};
pub use artifact_settings::{ArtifactSettings, artifact_sources, cache_dir};
pub use artifacts::ECR_PROVIDER;
pub use backup::{BackupSettings, BlobSettings, S3Settings};
pub use catalog::{Addon, Minor};
pub use control_plane::{ControlPlaneSettings, Oidc, PodSecurity};
pub use custom::ModuleSettings;
pub use dns::{DnsAccess, DnsSettings};
pub use driver::{Backend, DriverSettings, Program};
pub use firewall::FirewallSettings;
pub use host_system::HostSystemSettings;
pub use kubeconfig::{KubeconfigSettings, operator};
pub use local::{LocalHostSettings, local_releases};
pub use manifests::{ManifestSource, OwnManifests};
pub use pki::{KeyAlgorithm, PkiSettings};
pub use runtime::{ProxySettings, RegistryMirrors, RuntimeSettings};
pub use time_limits::TimeLimits;
pub use update::UpdateSettings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::artifacts::{ResolvedArtifacts, Sources};
use crate::cloud::{Cloud, Spec, Target};
use crate::component::ComponentOverrides;
use crate::config::{Assignment, Network, Settings, TreeSource};
use crate::doctor::{Goal, Subject};
use crate::document::{self, Document, Found};
use crate::error::{Context as _, Error, Result};
use crate::exec::{Jump, Ssh};
use crate::inventory::{self, Host, Inventory, ListedHost, Role};
use crate::phase::{Inputs, Manifest, PhaseHost};
use crate::state::Store;

pub use validation::ValidationSettings;

use assets::AssetSettings;
use user_data::{GroupRecord, UserDataSettings};

pub use access::{Bastion, SshSettings};

/// The cluster's SSH key, below its directory.
pub const SSH_KEY: &str = "ssh/id_ed25519";
/// The administrator's kubeconfig, below its directory.
pub const KUBECONFIG: &str = "kubeconfig";
/// The host keys that are trusted, below its directory.
pub const KNOWN_HOSTS: &str = "ssh/known_hosts";

/// So many connections to hosts stay open for the next step.
const MOST_CONNECTIONS: usize = 64;

/// A cluster that a command works on.
pub struct Cluster {
    /// What the configuration says.
    pub settings: ClusterSettings,
    /// Kconfig, phases and templates.
    pub source: TreeSource,
    /// `.turnup/<cluster>/`.
    pub store: Store,
    /// turnup's own binary: what Terraform calls back and what is copied to the hosts.
    pub exe: PathBuf,
    /// The directory in which the command was given.
    pub work_dir: PathBuf,
    version: String,
    size: u64,
    configured: Settings,
    connections: Mutex<BTreeMap<String, Ssh>>,
    /// What was read last, with its text: every node config asks for it.
    resolved: Mutex<Option<(Vec<u8>, ResolvedArtifacts)>>,
    /// The same of the inventory, which every kubectl asks for.
    handed_over: Mutex<Option<(Vec<u8>, Inventory)>>,
}

/// The settings by their types; one field a symbol of the Kconfig tree.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct ClusterSettings {
    pub name: String,
    pub target: Target,
    pub num_nodes: u32,
    /// How many control-plane hosts there are where turnup makes them; at least one.
    pub control_planes: u32,
    /// Groups of workers as the user described them; empty where there is one pool, and on targets
    /// without groups.
    pub node_groups: Vec<GroupRecord>,
    pub hosts_file: String,
    /// What leads to all API servers of bare metal; empty where the one control-plane host does.
    pub api_host: String,
    pub hosts: Vec<ListedHost>,
    pub access: SshSettings,
    pub subnet: Network,
    /// TCP ports of this machine that local hosts may reach.
    pub open_ports: BTreeSet<u16>,
    pub root_suite: String,
    pub local_hosts: LocalHostSettings,
    pub kubernetes_version: String,
    pub pod_cidr: Network,
    pub service_cidr: Network,
    pub cluster_domain: String,
    pub api_port: u16,
    /// Labels of every Node, beside its host's or group's own.
    pub node_labels: BTreeMap<String, String>,
    /// Further names in the certificate of the API server.
    pub extra_sans: Vec<String>,
    pub kubeconfig: KubeconfigSettings,
    pub pki: PkiSettings,
    /// How many hosts phase 2 works on at once, and for how long.
    pub limits: TimeLimits,
    pub update: UpdateSettings,
    /// The names that hosts keep in a DNS zone; none where they keep none.
    pub dns: Option<DnsSettings>,
    /// Where backups of etcd go; none where none are taken.
    pub backup: Option<BackupSettings>,
    /// The first and the last port of Services on nodes.
    pub node_ports: (u16, u16),
    pub tls13: bool,
    pub control_plane: ControlPlaneSettings,
    /// What settings assign to single flags and fields of components.
    pub assignments: Vec<Assignment>,
    /// The user's own flags and fields of components, which count more.
    pub overrides: ComponentOverrides,
    pub addons: AddonSettings,
    /// Manifests of the user's own, read when the cluster is opened.
    pub own_manifests: OwnManifests,
    pub validation: ValidationSettings,
    pub sources: Sources,
    pub artifacts: ArtifactSettings,
    pub driver: DriverSettings,
    pub user_data: UserDataSettings,
    pub assets: AssetSettings,
    pub firewall: FirewallSettings,
    pub host_system: HostSystemSettings,
    pub runtime: RuntimeSettings,
    pub proxy: ProxySettings,
    pub cloud: Option<Spec>,
    /// What a Terraform module of the user's own is told.
    pub module: Option<ModuleSettings>,
}

impl Cluster {
    /// The cluster that the configuration describes; its state lies below `state_dir`, and nothing
    /// is made there before something is written.
    pub fn open(settings: &Settings, source: TreeSource, state_dir: &Path) -> Result<Self> {
        Self::with_store(settings, source, state_dir, Store::at)
    }

    /// The cluster as it would become: its directory is read, and what is written stays in memory.
    pub fn shadow(settings: &Settings, source: TreeSource, state_dir: &Path) -> Result<Self> {
        Self::with_store(settings, source, state_dir, Store::shadow)
    }

    /// The cluster with another kind of directory, which `store` makes.
    pub fn with_store(
        settings: &Settings,
        source: TreeSource,
        state_dir: &Path,
        store: impl FnOnce(PathBuf) -> Store,
    ) -> Result<Self> {
        let work_dir = std::env::current_dir().context("the working directory is gone")?;
        let read = || -> Result<ClusterSettings> {
            let mut typed = ClusterSettings::read(settings, &work_dir)?;
            typed.read_overrides(settings, &source, &work_dir)?;
            Addon::require_all_fit(&source, &typed.addons, &typed.kubernetes_version)?;
            typed.own_manifests = OwnManifests::read(settings, &work_dir)?;
            Ok(typed)
        };
        let typed = read().map_err(|error| settings.locate(error))?;
        let exe = std::env::current_exe().context("cannot find turnup's own binary")?;
        let (version, size) = own_version(&exe)?;
        let store = store(work_dir.join(state_dir).join(&typed.name));
        Ok(Self {
            settings: typed,
            source,
            store,
            exe,
            work_dir,
            version,
            size,
            configured: settings.clone(),
            connections: Mutex::default(),
            resolved: Mutex::default(),
            handed_over: Mutex::default(),
        })
    }

    /// Remembers that all phases have worked with this configuration, for `turnup config diff
    /// applied`.
    pub fn remember_applied(&self) -> Result<()> {
        if self.store.read_json(Settings::APPLIED)?.as_ref() == Some(self.configuration()) {
            return Ok(());
        }
        self.store.write_json(Settings::APPLIED, self.configuration(), 0o600)
    }

    /// The configuration as its file has it.
    #[must_use]
    pub fn configuration(&self) -> &serde_json::Value {
        self.configured.json()
    }

    /// The sha256 of turnup's own binary: another turnup may do a step another way.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How many bytes turnup's own binary has.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// What the doctor is asked about.
    #[must_use]
    pub fn doctor_subject(&self) -> Subject<'_> {
        Subject {
            goal: Goal::Clusters(self.settings.target),
            dir: &self.work_dir,
            sources: self.settings.sources.clone(),
            cache_dir: self.settings.artifacts.cache_dir.clone(),
            kubernetes: Some(self.settings.kubernetes_version.clone()),
            releases: self.settings.releases(),
            root_packages: self.settings.local_hosts.packages.clone(),
            network_policies: self.settings.addons.network_policies,
        }
    }

    /// What the artifacts step obtained for this cluster.
    pub fn resolved(&self) -> Result<ResolvedArtifacts> {
        if let Some(imagined) = self.store.imagined_value(ResolvedArtifacts::FILE) {
            return Ok(imagined);
        }
        let bytes = self.store.read(ResolvedArtifacts::FILE)?;
        let mut known = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, resolved)) = known.as_ref().filter(|(of, _)| Some(of) == bytes.as_ref()) {
            return Ok(resolved.clone());
        }
        let resolved = self.read_resolved(bytes.as_deref())?;
        *known = bytes.map(|bytes| (bytes, resolved.clone()));
        Ok(resolved)
    }

    fn read_resolved(&self, bytes: Option<&[u8]>) -> Result<ResolvedArtifacts> {
        match document::find(&self.store.path(ResolvedArtifacts::FILE).display().to_string(), bytes)? {
            Found::There(resolved) => Ok(resolved),
            Found::Older(schema) => {
                Err(Error::permanent(format!("{} is of an older turnup ({schema})", ResolvedArtifacts::FILE))
                    .hint("turnup bootstrap"))
            }
            Found::Missing => {
                Err(Error::permanent(format!("{} is not there yet", ResolvedArtifacts::FILE)).hint("turnup bootstrap"))
            }
        }
    }

    /// Writes a document below the cluster's directory, checked as its reader will.
    pub fn write_document<D: Document + Clone + Send + Sync + 'static>(
        &self,
        rel: &str,
        document: &D,
        mode: u32,
    ) -> Result<()> {
        let text = document::render(rel, document)?;
        self.store.write_value(rel, document, &text, mode)
    }

    /// The settings below these prefixes, as inputs of a step.
    #[must_use]
    pub fn inputs(&self, prefixes: &[&str]) -> Inputs {
        let mut inputs = Inputs::new();
        inputs.extend(self.configured.subset_digest(prefixes));
        inputs
    }

    /// The steps of a phase: the target's own list, else the phase's.
    pub fn manifest(&self, phase: &str) -> Result<Manifest> {
        let own = format!("phases/{phase}/targets/{}/phase.toml", self.settings.target);
        let file = if self.source.files(&own).is_empty() { format!("phases/{phase}/phase.toml") } else { own };
        let parse = |text: &str| Manifest::parse_for(&file, text, &Role::ALL.map(Role::name));
        self.source.parse(&file, parse).map(|manifest| Manifest::clone(&manifest))
    }

    /// What provision handed over; an error that names the command when it has not yet.
    pub fn inventory(&self) -> Result<Inventory> {
        self.find_inventory()?.ok_or_else(|| {
            Error::permanent(format!("{} is not there yet", self.store.path(inventory::FILE).display()))
                .hint("turnup provision")
        })
    }

    /// What provision handed over, if it has.
    pub fn find_inventory(&self) -> Result<Option<Inventory>> {
        if let Some(inventory) = self.store.imagined_value(inventory::FILE) {
            return Ok(Some(Inventory::sorted(inventory)));
        }
        let Some(bytes) = self.store.read(inventory::FILE)? else { return Ok(None) };
        let mut known = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, inventory)) = known.as_ref().filter(|(of, _)| *of == bytes) {
            return Ok(Some(inventory.clone()));
        }
        let path = self.store.path(inventory::FILE).display().to_string();
        let inventory = document::parse(&path, &String::from_utf8_lossy(&bytes)).map(Inventory::sorted)?;
        *known = Some((bytes, inventory.clone()));
        Ok(Some(inventory))
    }

    /// Writes what provision hands over, for this user's eyes only.
    pub fn write_inventory(&self, inventory: &Inventory) -> Result<()> {
        self.write_document(inventory::FILE, inventory, 0o600)
    }

    /// The hosts as the engine sees them.
    pub fn phase_hosts(&self) -> Result<Vec<PhaseHost>> {
        let hosts = self.find_inventory()?.map(|inventory| inventory.hosts).unwrap_or_default();
        Ok(hosts.into_iter().map(|host| PhaseHost { name: host.name, role: host.role.name().into() }).collect())
    }

    /// The private key that logs in to the hosts: the user's own, else the cluster's.
    #[must_use]
    pub fn ssh_key(&self) -> PathBuf {
        self.settings.access.key.clone().unwrap_or_else(|| self.store.path(SSH_KEY))
    }

    /// The one connection to a host that all steps share.
    pub fn ssh(&self, host: &Host) -> Result<Ssh> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // Each is a process with open files: unused ones are closed before there are a thousand.
        let idle = if connections.len() < MOST_CONNECTIONS { BTreeMap::new() } else { take_idle(&mut connections) };
        let identity = format!("{} {} {}", host.name, host.instance, host.address);
        let make = || self.ssh_with(host, &self.store.path(KNOWN_HOSTS));
        let ssh = connections.entry(identity).or_insert_with(make).clone();
        drop(connections);
        // Closing takes a moment, and nothing depends on it.
        drop(idle);
        Ok(ssh)
    }

    /// A connection of its own, which believes a host whose key is not in this file yet, and writes
    /// it there.
    #[must_use]
    pub fn first_ssh(&self, host: &Host, known_hosts: &Path) -> Ssh {
        self.ssh_with(host, known_hosts).learns().single()
    }

    fn ssh_with(&self, host: &Host, known_hosts: &Path) -> Ssh {
        let access = &self.settings.access;
        let jump = host.ssh.jump.as_ref();
        let jump = jump.map(|jump| Jump { user: jump.user.clone(), host: jump.host.clone(), port: jump.port });
        let address = host.ssh_address().to_string();
        Ssh::new(&host.ssh.user, &address, host.ssh.port, &self.ssh_key(), known_hosts, self.store.dir())
            .sudo(host.ssh.user != "root")
            .agent(access.use_agent)
            .connect_timeout(access.connect_timeout)
            .learnt_as(self.settings.cloud.as_ref().map(|_| host.name.clone()))
            .returns(
                host.etcd_volume.is_some()
                    && self.settings.control_plane.keeps_identity
                    && self.settings.user_data.pull,
            )
            .jump(jump)
    }
}

/// A document below a cluster's directory.
pub fn find_document<D: Document + Clone + 'static>(store: &Store, rel: &str) -> Result<Found<D>> {
    if let Some(document) = store.imagined_value(rel) {
        return Ok(Found::There(document));
    }
    document::find(&store.path(rel).display().to_string(), store.read(rel)?.as_deref())
}

fn take_idle(connections: &mut BTreeMap<String, Ssh>) -> BTreeMap<String, Ssh> {
    let (used, idle) = std::mem::take(connections).into_iter().partition(|(_, ssh)| ssh.is_shared());
    *connections = used;
    idle
}

/// The sha256 of the binary and its size, read once: it stays the same while it runs.
fn own_version(exe: &Path) -> Result<(String, u64)> {
    static VERSION: OnceLock<(String, u64)> = OnceLock::new();
    if let Some(version) = VERSION.get() {
        return Ok(version.clone());
    }
    let version = (crate::artifacts::Digest::of_file(exe)?.to_string(), fs_err::metadata(exe)?.len());
    Ok(VERSION.get_or_init(|| version).clone())
}

impl ClusterSettings {
    /// The cloud whose controller manager tells Nodes what it knows of their machines; none where
    /// nodes do not wait for one.
    #[must_use]
    pub fn find_cloud_controller(&self) -> Option<&'static dyn Cloud> {
        let cloud = self.target.cloud().filter(|_| self.addons.cloud_controller);
        cloud.filter(|cloud| cloud.fetch_provider_id().is_some())
    }

    /// What manifests of addons name of this cluster in its cloud, as `cloud.NAME`.
    pub(crate) fn cloud_values(&self) -> BTreeMap<&'static str, String> {
        self.cloud.as_ref().map(Spec::addon_values).unwrap_or_default()
    }

    pub(crate) fn read(settings: &Settings, work_dir: &Path) -> Result<Self> {
        let network = |name: &str| -> Result<Network> {
            settings.get(name)?.parse().map_err(|why: String| Error::config(format!("{name}: {why}")))
        };
        let target = Target::of(&settings.get("phase1.cloud_provider")?);
        // A question that is not asked has no value: the subnet of local hosts on bare metal.
        let subnet =
            if target.is_local() { network("phase1.local.subnet")? } else { Network::containing([0; 4].into(), 32) };
        let name = settings.get("phase1.cluster_name")?;
        Ok(Self {
            module: target.is_custom().then(|| ModuleSettings::read(settings, &name)).transpose()?,
            name,
            num_nodes: settings.get_number("phase1.num_nodes")?,
            control_planes: settings.get_number::<u32>("phase1.control_plane.count")?.max(1),
            node_groups: settings.get_records("phase1.node_groups")?,
            hosts_file: settings.get("phase1.baremetal.hosts_file")?,
            api_host: settings.get("phase1.api.host")?,
            hosts: settings.get_records("phase1.baremetal.hosts")?,
            access: SshSettings::read(settings, work_dir)?,
            subnet,
            open_ports: settings
                .get_list("phase1.local.open_ports")?
                .iter()
                .filter_map(|port| port.parse().ok())
                .collect(),
            root_suite: settings.get("phase1.local.root_suite")?,
            local_hosts: LocalHostSettings::read(settings)?,
            kubernetes_version: settings.get("phase2.kubernetes_version")?,
            pod_cidr: network("phase2.pod_cidr")?,
            service_cidr: network("phase2.service_cidr")?,
            cluster_domain: settings.get("phase2.cluster_domain")?,
            api_port: settings.get_number("phase2.api_port")?,
            node_labels: settings.get_map("phase2.kubelet.node_labels")?,
            extra_sans: settings.get_list("phase2.apiserver.extra_sans")?,
            kubeconfig: KubeconfigSettings::read(settings)?,
            pki: PkiSettings::read(settings)?,
            limits: TimeLimits::read(settings)?,
            update: UpdateSettings::read(settings)?,
            dns: DnsSettings::read(settings)?,
            backup: BackupSettings::read(settings)?,
            node_ports: (
                settings.get_number("phase2.network.node_port_first")?,
                settings.get_number("phase2.network.node_port_last")?,
            ),
            tls13: settings.get_bool("phase2.security.tls13")?,
            control_plane: ControlPlaneSettings::read(settings)?,
            assignments: settings.assignments()?,
            overrides: ComponentOverrides::default(),
            addons: AddonSettings::read(settings)?,
            own_manifests: OwnManifests::default(),
            validation: ValidationSettings::read(settings)?,
            sources: artifact_sources(settings)?,
            artifacts: ArtifactSettings::read(settings, work_dir)?,
            driver: DriverSettings::read(settings)?,
            user_data: UserDataSettings::read(settings)?,
            assets: AssetSettings::read(settings)?,
            firewall: FirewallSettings::read(settings)?,
            host_system: HostSystemSettings::read(settings)?,
            runtime: RuntimeSettings::read(settings)?,
            proxy: ProxySettings::read(settings)?,
            cloud: Spec::find(settings)?,
            target,
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    /// Typed settings read as `default` from the defaults, and as `expected` after these changes.
    /// Returns the changed settings.
    #[track_caller]
    pub(super) fn assert_reads<T: PartialEq + std::fmt::Debug>(
        read: impl Fn(&Settings) -> Result<T>,
        default: &T,
        changes: &[(&str, &str)],
        expected: &T,
    ) -> Settings {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        assert_eq!(&read(&settings).unwrap(), default);
        settings.set_all(changes).unwrap();
        assert_eq!(&read(&settings).unwrap(), expected);
        settings
    }

    /// Each of these values is refused for a reason with these words.
    #[track_caller]
    pub(super) fn assert_refused(settings: &Settings, cases: &[(&str, &str, &str)]) {
        for (name, value, why) in cases {
            let error = settings.clone().set_all(&[(name, value)]).unwrap_err().render();
            assert!(error.contains(name) && error.contains(why), "{error}");
        }
    }

    #[test]
    fn unused_connections_are_taken() {
        let ssh = |address: &str| {
            let here = Path::new("/nowhere");
            (address.to_owned(), Ssh::new("root", address, 22, here, here, here))
        };
        let mut connections = BTreeMap::from(["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(ssh));
        let used = connections.get("10.0.0.2").cloned();
        assert_eq!(take_idle(&mut connections).into_keys().collect::<Vec<_>>(), ["10.0.0.1", "10.0.0.3"]);
        assert_eq!(connections.keys().collect::<Vec<_>>(), ["10.0.0.2"]);
        drop(used);
        assert_eq!(take_idle(&mut connections).len(), 1);
    }
}
