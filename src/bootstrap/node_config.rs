//! Computes the node config of each host from the settings, the inventory and the host's facts.
//!
//! The result is a pure function of its inputs: the same inputs give the same bytes. It writes
//! nothing and asks no host.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::artifacts::ResolvedArtifacts;
use crate::cluster::{Cluster, find_document};
use crate::component::{OVERRIDES, OverrideScope, did_you_mean};
use crate::config::ComponentName;
use crate::document::{self, Found};
use crate::error::{Context as _, Error, Result};
use crate::inventory::{Host, Inventory, Role};
use crate::node::Facts;
use crate::node::facts::CLIENT_CERTIFICATE;
use crate::node::node_config::{BACKUP_SERVICE, Content, Directory, File, Health, NodeConfig, Unit};
use crate::node::{layout, yaml};

use super::assets::{Assets, unit_word};
use super::backup_keys;
use super::backup_store;
use super::backup_words::{self, BackupReason};
use super::component::{API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER};
use super::configuration;
use super::contents::{ComponentFiles, Contents, SecretTexts};
use super::control_plane::{self, ControlPlane};
use super::csr_approver::{self, Policy};
use super::dns;
use super::etcd_members::Members;
use super::firewall::Neighbors;
use super::groups;
use super::healthcheck;
use super::host_certificates;
use super::keyset::{self, KeysetName};
use super::kubeconfig::{self, Identity};
use super::kubelet::Agents;
use super::node_config_builder::{NodeConfigBuilder, node_directories};
use super::node_target::NodeTarget;
use super::pki::{Authority, Leaf, Pki};
use super::runtime;
use super::template;
use super::{machine_authenticator, machine_identity};

/// Where node configs lie below the cluster's directory.
pub const DIRECTORY: &str = "node-config";

/// Where a node config lies below the cluster's directory.
#[must_use]
pub fn file_of(node: &str) -> String {
    format!("{DIRECTORY}/{node}.json")
}

/// The node whose config this path names.
#[must_use]
pub fn node_of(path: &str) -> Option<&str> {
    path.strip_prefix(DIRECTORY)?.strip_prefix('/')?.strip_suffix(".json")
}

/// The node config that was written for a host; none where there is none of this version.
pub fn find_written(cluster: &Cluster, host: &str) -> Result<Option<NodeConfig>> {
    let bytes = cluster.store.read(file_of(host))?.unwrap_or_default();
    Ok(NodeConfig::parse("", &String::from_utf8_lossy(&bytes)).ok())
}

/// Where the facts of a host lie below the cluster's directory.
pub(super) fn facts_file(host: &str) -> String {
    format!("outputs/facts/{host}.json")
}

/// What is known of a host; none where it was not inspected by a turnup of this version.
pub(super) fn find_facts(cluster: &Cluster, host: &str) -> Result<Option<Facts>> {
    match find_document(&cluster.store, &facts_file(host))? {
        Found::There(facts) => Ok(Some(facts)),
        _ => Ok(None),
    }
}

/// Everything that the computation reads.
pub struct NodeConfigs<'a> {
    /// Settings, templates, PKI.
    pub cluster: &'a Cluster,
    /// The hosts.
    pub inventory: &'a Inventory,
    /// Binaries and images of the chosen version.
    pub artifacts: &'a ResolvedArtifacts,
}

impl NodeConfigs<'_> {
    /// Every certificate of the cluster.
    pub fn leaves(&self) -> Result<Vec<Leaf>> {
        let host_names = |host: &Host| vec![host.name.clone(), host.address.to_string()];
        let cluster = Authority::Cluster;
        let mut leaves = vec![
            Leaf::client("apiserver-kubelet-client", cluster, "kube-apiserver-kubelet-client", None),
            Leaf::client("apiserver-etcd-client", Authority::Etcd, "kube-apiserver-etcd-client", None),
            Leaf::client("front-proxy-client", Authority::FrontProxy, "front-proxy-client", None),
            Leaf::client("controller-manager", cluster, "system:kube-controller-manager", None),
            Leaf::client("scheduler", cluster, "system:kube-scheduler", None),
        ];
        leaves.push(Leaf::client(healthcheck::NAME, cluster, healthcheck::USER, None));
        if self.cluster.settings.dns.is_some() {
            leaves.push(Leaf::client(dns::NAME, cluster, dns::USER, None));
        }
        if csr_approver::is_wanted(self.cluster)? {
            leaves.push(Leaf::client(csr_approver::NAME, cluster, csr_approver::USER, None));
        }
        if machine_identity::find_role(self.cluster)?.is_some() {
            let names = machine_authenticator::server_names();
            leaves.push(Leaf::server(machine_authenticator::NAME, cluster, machine_authenticator::SUBJECT, names));
        }
        for host in self.inventory.control_planes() {
            let name = &host.name;
            let mut etcd_names = host_names(host);
            etcd_names.extend(["localhost".into(), "127.0.0.1".into()]);
            let etcd =
                |file: String| Leaf { client: true, ..Leaf::server(&file, Authority::Etcd, name, etcd_names.clone()) };
            let api_names = control_plane::api_names(&self.cluster.settings, &self.inventory.api, host)?;
            leaves.extend([
                Leaf::server(&format!("apiserver-{name}"), cluster, "kube-apiserver", api_names),
                etcd(format!("etcd-server-{name}")),
                etcd(format!("etcd-peer-{name}")),
            ]);
        }
        for host in &self.inventory.hosts {
            let user = format!("system:node:{}", host.name);
            let serving = Leaf::server(&format!("kubelet-{}", host.name), cluster, &user, host_names(host));
            leaves.push(Leaf { group: Some("system:nodes".into()), ..serving });
            if host.role == Role::ControlPlane {
                let file = format!("kubelet-client-{}", host.name);
                leaves.push(Leaf::client(&file, cluster, &user, Some("system:nodes")));
            }
        }
        let pki = &self.cluster.settings.pki;
        for leaf in &mut leaves {
            leaf.life = pki.leaf_lifetime;
        }
        if pki.renew_on_hosts {
            leaves.extend(self.inventory.hosts.iter().map(|host| host_certificates::host_leaf(&host.name, pki)));
        }
        Ok(leaves)
    }

    /// The node config of one node and the secrets that it names.
    pub fn node_config(&self, host: &Host, facts: &Facts) -> Result<(NodeConfig, SecretTexts)> {
        let address = host.address.to_string();
        let builder = self.builder(self.target(host, &address)?, facts)?;
        let agents = builder.agents()?;
        let mut files = Contents::new(Pki::of(self.cluster));
        self.node_files(host, &agents, &mut files)?;
        let units = builder.units(&agents)?;
        let machine = builder.machine_beside(&agents, &units)?;
        let mut users = Vec::new();
        let mut health = Vec::new();
        if host.role == Role::ControlPlane {
            users = control_plane::users(&self.cluster.settings);
            users.push(healthcheck::system_user());
            users.extend(agents.authenticator.as_ref().map(|_| machine_authenticator::system_user()));
            self.control_plane_files(host, &machine.files, &mut files)?;
            let (name, url) = ("etcd healthy".into(), "http://127.0.0.1:2381/health".into());
            health.push(Health { name, url, pod: "kube-system_etcd-".into() });
        }
        let mut all = machine.files;
        all.extend(files.list);
        all.extend(builder.api_servers_file()?);
        all.extend(builder.firewall_file()?);
        let mut dirs = machine.directories;
        dirs.extend(node_directories(&self.cluster.settings));
        if host.role == Role::ControlPlane {
            dirs.extend(control_plane::directories(host, &self.cluster.settings));
            let path = layout::MACHINE_AUTHENTICATOR.to_owned();
            dirs.extend(agents.authenticator.as_ref().map(|_| Directory { path, mode: 0o755, owner: 0 }));
        }
        // The first item for ever, also when others came after it: disks are known by it.
        let first = files.pki.text(&KeysetName::EtcdCa.file(keyset::FIRST), "crt")?;
        let mounts = builder.mounts(&first);
        let node_config = NodeConfig { users, mounts, directories: dirs, files: all, units, health, ..machine };
        builder.require_own_places(&node_config)?;
        Ok((node_config, files.secrets))
    }

    /// The part that needs nothing of the cluster: no certificate, no secret, no other host.
    pub fn machine(&self, host: &Host, facts: &Facts) -> Result<NodeConfig> {
        self.builder(self.target(host, &host.address.to_string())?, facts)?.machine()
    }

    fn target<'t>(&'t self, host: &'t Host, address: &'t str) -> Result<NodeTarget<'t>> {
        Ok(NodeTarget::of_host(host, address, groups::find_record(self.cluster, host)?))
    }

    fn builder<'b>(&'b self, target: NodeTarget<'b>, facts: &'b Facts) -> Result<NodeConfigBuilder<'b>> {
        let has_workers = groups::has_workers(self.cluster, self.inventory);
        let api_here = self.find_api_here(target.role);
        let api_servers = self.inventory.node_balancer();
        let assets = Assets::find(self.cluster, &target)?;
        self.require_known_scopes()?;
        let approver = Policy::find(target.role, self.cluster, self.inventory)?;
        let (cluster, artifacts) = (self.cluster, self.artifacts);
        let neighbors = Neighbors::of(self.inventory);
        let api_host = self.inventory.api.host_for_nodes().to_owned();
        Ok(NodeConfigBuilder {
            cluster,
            artifacts,
            target,
            facts,
            has_workers,
            api_here,
            api_servers,
            assets,
            neighbors,
            api_host,
            approver,
        })
    }

    /// An override for a host that the cluster does not have, or of a component that does not run
    /// there, would do nothing.
    fn require_known_scopes(&self) -> Result<()> {
        let names: Vec<&str> = self.inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        if self.inventory.hosts.iter().any(Host::is_imagined) {
            // Their names are known after provision.
            return Ok(());
        }
        for (scope, component) in self.cluster.settings.overrides.scopes() {
            let OverrideScope::Host(name) = scope else { continue };
            let Some(host) = self.inventory.hosts.iter().find(|host| host.name == *name) else {
                let near = did_you_mean(name, names.iter().copied());
                let message = format!("{OVERRIDES}: the cluster has no host `{name}`{near}");
                return Err(Error::config(message)
                    .evidence(format!("its hosts: {}", names.join(", ")))
                    .hint("correct the name, then: turnup config check"));
            };
            if host.role == Role::Worker && component != ComponentName::Kubelet {
                return Err(Error::config(format!("{OVERRIDES}: hosts.{name}: {component} does not run on a worker")));
            }
        }
        Ok(())
    }

    /// Where one of several control-plane hosts is to find its own API server: at the address
    /// before all of them, which its own clients may ask also where nodes do not. A name may stand
    /// for other addresses tomorrow, and clouds that give one lead a host back to itself.
    fn find_api_here(&self, role: Role) -> Option<Ipv4Addr> {
        let is_one_of_several = role == Role::ControlPlane && self.inventory.control_planes().count() > 1;
        let api = &self.inventory.api;
        let before_all = if api.node_balancer { api.internal_host.as_deref()? } else { api.host_for_nodes() };
        before_all.parse().ok().filter(|_| is_one_of_several)
    }

    fn reference(&self, image: &str) -> Result<String> {
        self.artifacts.reference(image)
    }

    fn node_files(&self, host: &Host, agents: &Agents<'_>, files: &mut Contents<'_>) -> Result<()> {
        files.bundle(layout::CA, Authority::Cluster)?;
        files.public(layout::KUBELET_CERTIFICATE, &format!("kubelet-{}.crt", host.name))?;
        files.key(layout::KUBELET_KEY, &format!("kubelet-{}.key", host.name), 0)?;
        if self.cluster.settings.pki.renew_on_hosts {
            let file = host_certificates::file_of(&host.name);
            files.public(layout::HOST_CERTIFICATE, &format!("{file}.crt"))?;
            files.key(layout::HOST_KEY, &format!("{file}.key"), 0)?;
        }
        files.list.extend(agents.kubelet_files()?);
        if let Some(text) = runtime::read_credentials(self.cluster)? {
            let path = layout::registry_credentials(&self.cluster.settings.host_system.data_dir);
            files.secret(&path, "registry-credentials", text, 0);
        }
        let identity = Identity::Files { certificate: CLIENT_CERTIFICATE, key: CLIENT_CERTIFICATE };
        if host.role == Role::Worker {
            let (name, server) = (&self.cluster.settings.name, self.inventory.api.url_for_nodes());
            let config =
                kubeconfig::config(name, &server, &files.pki.bundle(Authority::Cluster)?, "kubelet", &identity);
            files.yaml(layout::KUBELET_KUBECONFIG, config);
            // Until it has joined, kubelet asks for its certificate with another kubeconfig, and
            // writes this one itself.
            if let Some(file) = files.list.last_mut() {
                file.only_with = Some(CLIENT_CERTIFICATE.to_owned());
            }
        } else {
            let config = self.local_kubeconfig("kubelet", &identity, files)?;
            files.yaml(layout::KUBELET_KUBECONFIG, config);
            let file = format!("kubelet-client-{}", host.name);
            let both = files.pki.text(&file, "crt")? + &files.pki.text(&file, "key")?;
            files.secret(layout::KUBELET_CLIENT, &file, both, 0);
            files.initial_link(CLIENT_CERTIFICATE, layout::KUBELET_CLIENT);
        }
        Ok(())
    }

    /// `machine` are the host's other files, among them the user's own.
    fn control_plane_files(&self, host: &Host, machine: &[File], files: &mut Contents<'_>) -> Result<()> {
        let settings = &self.cluster.settings;
        let members = Members::read(self.cluster, self.inventory)?;
        let reference = |name: &str| self.reference(name);
        let control_plane =
            ControlPlane { cluster: self.cluster, host, member: members.get(&host.name)?, image: &reference };
        let etcd = &mut files.of(&ETCD, settings);
        etcd.bundle("ca.crt", Authority::Etcd)?;
        etcd.pair("server", &format!("etcd-server-{}", host.name))?;
        etcd.pair("peer", &format!("etcd-peer-{}", host.name))?;
        self.user_files(etcd)?;
        self.api_server_files(&control_plane, &mut files.of(&API_SERVER, settings))?;
        let manager = &mut files.of(&CONTROLLER_MANAGER, settings);
        let signer = manager.all.pki.primary(KeysetName::KubernetesCa)?;
        manager.pair("ca", &signer)?;
        if manager.all.pki.trusted(KeysetName::KubernetesCa)? != [signer] {
            manager.bundle(control_plane::CA_BUNDLE, Authority::Cluster)?;
        }
        if let Some(bundle) = manager.all.pki.root_bundle()? {
            manager.push(control_plane::ROOT_BUNDLE, Content::Text(bundle));
        }
        manager.bundle("front-proxy-ca.crt", Authority::FrontProxy)?;
        Self::token_key(manager)?;
        self.client_files("controller-manager", manager)?;
        self.user_files(manager)?;
        let scheduler = &mut files.of(&SCHEDULER, settings);
        self.client_files("scheduler", scheduler)?;
        self.user_files(scheduler)?;
        scheduler.push(control_plane::SCHEDULER_CONFIG, Content::Yaml(control_plane.scheduler_config()?));
        files.public(layout::HEALTHCHECK_CERTIFICATE, &format!("{}.crt", healthcheck::NAME))?;
        files.key(layout::HEALTHCHECK_KEY, &format!("{}.key", healthcheck::NAME), healthcheck::USER_ID)?;
        if machine_identity::find_role(self.cluster)?.is_some() {
            let name = machine_authenticator::NAME;
            files.public(layout::MACHINE_AUTHENTICATOR_CERTIFICATE, &format!("{name}.crt"))?;
            let key = format!("{name}.key");
            files.key(layout::MACHINE_AUTHENTICATOR_KEY, &key, machine_authenticator::USER_ID)?;
        }
        self.root_kubeconfigs(host, files)?;
        self.authorities(files)?;
        self.dns_file(files)?;
        self.backup_service(files)?;
        let readable: Vec<File> = files.list.iter().chain(machine).cloned().collect();
        for pod in control_plane.static_pods(&readable)? {
            files.yaml(&pod.path(), pod.manifest());
        }
        Ok(())
    }

    /// What else the host signs its certificates with; the cluster's own is the controller
    /// manager's.
    fn authorities(&self, files: &mut Contents<'_>) -> Result<()> {
        if !self.cluster.settings.pki.renew_on_hosts {
            return Ok(());
        }
        for (place, name) in [(layout::ETCD_CA, KeysetName::EtcdCa), (layout::FRONT_PROXY_CA, KeysetName::FrontProxyCa)]
        {
            let signer = files.pki.primary(name)?;
            // One whose key is kept elsewhere signs nothing here.
            if files.pki.has_key(&signer)? {
                files.public(&format!("{place}.crt"), &format!("{signer}.crt"))?;
                files.key(&format!("{place}.key"), &format!("{signer}.key"), 0)?;
            }
        }
        Ok(())
    }

    /// The names that the host keeps in a DNS zone.
    fn dns_file(&self, files: &mut Contents<'_>) -> Result<()> {
        if let Some(config) = dns::config(self.cluster, self.inventory)? {
            let text = document::render(layout::DNS, &config)?;
            files.secret(layout::DNS, "dns", text, 0);
            files.public(layout::DNS_CERTIFICATE, &format!("{}.crt", dns::NAME))?;
            files.key(layout::DNS_KEY, &format!("{}.key", dns::NAME), 0)?;
        }
        Ok(())
    }

    /// What the timer of backups starts. It is no unit of the node config, whose units run on.
    fn backup_service(&self, files: &mut Contents<'_>) -> Result<()> {
        let Some(settings) = &self.cluster.settings.backup else { return Ok(()) };
        let words = backup_words::take_words(self.cluster, settings, BackupReason::Interval)?;
        let context = minijinja::context! {
            version => self.cluster.version(),
            turnup => layout::TURNUP,
            backup => words.iter().map(|word| unit_word(word)).collect::<Vec<_>>(),
        };
        let template = format!("templates/bootstrap/{BACKUP_SERVICE}");
        let text = template::render(&self.cluster.source, &template, &context)?;
        files.list.push(File::new(&layout::unit_file(BACKUP_SERVICE), Unit::MODE, 0, Content::Text(text)));
        let given = |name: &str| format!("{}/{name}", layout::BACKUP);
        let store = &self.cluster.store;
        // The step before makes both; a cluster of an older turnup has neither until its next run.
        if store.read(backup_keys::KEY)?.is_some() {
            files.key(&given(layout::BACKUP_KEY), "backup.key", 0)?;
        }
        if let Some(text) = backup_store::read(self.cluster)? {
            files.secret(&given(layout::BACKUP_STORE), "backup-store", text, 0);
        }
        if let Some(sealed) = store.read(backup_keys::DIRECTORY)?.filter(|_| !settings.recipients.is_empty()) {
            let text = String::from_utf8(sealed).context(format!("{} is not text", backup_keys::DIRECTORY))?;
            files.list.push(File::new(&given(layout::BACKUP_CLUSTER), 0o600, 0, Content::Text(text)));
        }
        Ok(())
    }

    fn api_server_files(&self, control_plane: &ControlPlane<'_>, own: &mut ComponentFiles<'_, '_>) -> Result<()> {
        for (name, authority) in [
            ("ca.crt", Authority::Cluster),
            ("etcd-ca.crt", Authority::Etcd),
            ("front-proxy-ca.crt", Authority::FrontProxy),
        ] {
            own.bundle(name, authority)?;
        }
        for file in own.all.pki.trusted(KeysetName::ServiceAccount)? {
            let name = format!("{file}.pub");
            own.public(&name, &name)?;
        }
        Self::token_key(own)?;
        own.pair("server", &format!("apiserver-{}", control_plane.host.name))?;
        own.pair("kubelet-client", "apiserver-kubelet-client")?;
        own.pair("etcd-client", "apiserver-etcd-client")?;
        own.pair("front-proxy-client", "front-proxy-client")?;
        for (name, content) in control_plane.api_server_files()? {
            own.push(name, content);
        }
        if machine_identity::find_role(self.cluster)?.is_some() {
            let (name, authority) = (&self.cluster.settings.name, own.all.pki.bundle(Authority::Cluster)?);
            let url = machine_authenticator::url();
            let config = kubeconfig::config(name, &url, &authority, "kube-apiserver", &Identity::Unproven);
            own.push(control_plane::MACHINES, Content::Yaml(config));
        }
        let of = &self.cluster.settings.control_plane;
        let encrypted: &[String] = if of.encryption_at_rest { &of.encryption_resources } else { &[] };
        let (keys, socket) = (own.all.pki.encryption_keys()?, of.encryption_kms_endpoint.as_deref());
        own.secret("encryption.yaml", encryption_configuration(encrypted, &keys, socket));
        self.user_files(own)
    }

    /// The key that signs tokens of service accounts.
    fn token_key(own: &mut ComponentFiles<'_, '_>) -> Result<()> {
        let file = own.all.pki.primary(KeysetName::ServiceAccount)?;
        own.key(&format!("{}.key", control_plane::TOKEN_KEY), &format!("{file}.key"))
    }

    /// The user's files for a component. Who may read them is unknown, so only the component may.
    fn user_files(&self, own: &mut ComponentFiles<'_, '_>) -> Result<()> {
        for (name, text) in configuration::files(self.cluster, own.component.program)? {
            own.secret(&name, text);
        }
        Ok(())
    }

    /// The client certificate and kubeconfig of a component. The kubeconfig exists twice: in the
    /// component's directory, and for root at the path that kubeadm uses.
    fn client_files(&self, name: &str, own: &mut ComponentFiles<'_, '_>) -> Result<()> {
        own.pair("client", name)?;
        let (certificate, key) = (&own.component.file("client.crt"), &own.component.file("client.key"));
        let config = self.local_kubeconfig(name, &Identity::Files { certificate, key }, own.all)?;
        own.push(control_plane::KUBECONFIG, Content::Yaml(config.clone()));
        own.all.yaml(&layout::kubeconfig(name), config);
        Ok(())
    }

    /// The kubeconfigs that only root reads: `admin.conf` and the addon-manager's, whose
    /// certificates live an hour, and the approver's.
    fn root_kubeconfigs(&self, host: &Host, files: &mut Contents<'_>) -> Result<()> {
        let addon_manager = Some("addon-manager").filter(|_| self.cluster.settings.addons.addon_manager);
        let users = [
            Some(("root", layout::kubeconfig("admin"))),
            addon_manager.map(|user| (user, layout::ADDON_MANAGER_KUBECONFIG.into())),
        ];
        for (name, path) in users.into_iter().flatten() {
            let user = format!("--user={name}@{}", host.name);
            let identity = Identity::Program(&[layout::TURNUP, "node", "credential", &user]);
            let config = self.local_kubeconfig(name, &identity, files)?;
            files.yaml(&path, config);
        }
        if csr_approver::is_wanted(self.cluster)? {
            let name = csr_approver::NAME;
            let [certificate, key] = ["crt", "key"].map(|ending| format!("{}.{ending}", layout::CSR_APPROVER_CLIENT));
            files.public(&certificate, &format!("{name}.crt"))?;
            files.key(&key, &format!("{name}.key"), 0)?;
            let identity = Identity::Files { certificate: &certificate, key: &key };
            let config = self.local_kubeconfig(name, &identity, files)?;
            files.yaml(&layout::kubeconfig(name), config);
        }
        Ok(())
    }

    /// A kubeconfig for a client on the API server's own host.
    fn local_kubeconfig(&self, user: &str, identity: &Identity<'_>, files: &Contents<'_>) -> Result<Value> {
        let settings = &self.cluster.settings;
        let server = format!("https://127.0.0.1:{}", settings.api_port);
        Ok(kubeconfig::config(&settings.name, &server, &files.pki.bundle(Authority::Cluster)?, user, identity))
    }
}

/// What lies in etcd: these kinds of objects under the keys of the KMS plugin at this socket, else
/// under secretbox (`XSalsa20` and `Poly1305`) with the first of the keys, all others as they are.
/// Objects of every key and plain ones are read, so that what was written before stays readable.
fn encryption_configuration(
    encrypted: &[String],
    keys: &[(String, Zeroizing<String>)],
    socket: Option<&str>,
) -> String {
    const ALL: &str = "*.*";
    let keys: Vec<Value> = keys.iter().map(|(name, key)| json!({"name": name, "secret": key.as_str()})).collect();
    let (secretbox, identity) = (json!({"secretbox": {"keys": keys}}), json!({"identity": {}}));
    let plugin = socket.map(|socket| {
        json!({"kms": {"apiVersion": "v2", "name": "turnup", "endpoint": format!("unix://{socket}"), "timeout": "10s"}})
    });
    let providers: Vec<&Value> = plugin.iter().chain([&secretbox, &identity]).collect();
    let encrypted_kinds = (!encrypted.is_empty()).then(|| json!({"resources": encrypted, "providers": providers}));
    // Of two entries for all kinds the API server refuses the second.
    let is_all = encrypted.iter().any(|kind| kind == ALL);
    let others = (!is_all).then(|| json!({"resources": [ALL], "providers": [identity, secretbox]}));
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": encrypted_kinds.into_iter().chain(others).collect::<Vec<_>>(),
    });
    yaml::render(&config)
}

#[cfg(test)]
#[path = "node_config_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "balancer_tests.rs"]
mod balancer_tests;

#[cfg(test)]
#[path = "cloud_controller_tests.rs"]
mod cloud_controller_tests;

#[cfg(test)]
#[path = "credential_tests.rs"]
mod credential_tests;

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod certificate_tests;

#[cfg(test)]
#[path = "system_tests.rs"]
mod system_tests;
