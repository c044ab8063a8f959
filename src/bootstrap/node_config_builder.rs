//! What a host gets before anything of its cluster is known, and what every worker of a group gets:
//! binaries, images, containerd, kubelet.
//!
//! No certificate of a host's own and no secret is in it. A pure function, as `node_config` is; it
//! writes nothing and asks no host.

use std::net::Ipv4Addr;

use sha2::{Digest as _, Sha256};

use crate::artifacts::ResolvedArtifacts;
use crate::cluster::{Addon, Cluster, ClusterSettings, ECR_PROVIDER};
use crate::document;
use crate::error::Result;
use crate::inventory::{Disk, Host, Role, ServerList};
use crate::node::Facts;
use crate::node::boot_config::Placeholder;
use crate::node::layout;
use crate::node::node_config::{
    Binary, Content, Directory, File, HOST_BLOBS, Image, Mount, NodeConfig, SCHEMA, Unit, count_early,
};
use crate::unknown;

use super::assets::Assets;
use super::component::ETCD;
use super::control_plane::{ETCD_DIR, ETCD_DISK};
use super::csr_approver::{self, Policy};
use super::firewall::{self, Firewall, Neighbors};
use super::host_system;
use super::kubelet::{self, Agents};
use super::machine_authenticator;
use super::node_target::NodeTarget;
use super::proxy::HostProxy;
use super::template;

/// Where the collectors of log shipping keep what they have read and not sent yet; the manifest of
/// `templates/addons/log-shipping` names it.
const LOG_SHIPPING: &str = "/var/lib/turnup-log-shipping";
/// The lock file of host-local, which assigns addresses to pods.
const ADDRESS_LOCK: &str = "/var/lib/cni/networks/turnup/lock";

/// What a node config is made from.
pub(super) struct NodeConfigBuilder<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) artifacts: &'a ResolvedArtifacts,
    pub(super) target: NodeTarget<'a>,
    pub(super) facts: &'a Facts,
    /// Whether there are workers: the control plane is kept free of pods of users then.
    pub(super) has_workers: bool,
    /// The address of all API servers, where the host is to reach its own.
    pub(super) api_here: Option<Ipv4Addr>,
    /// The API servers that its balancer leads to, where it has one.
    pub(super) api_servers: Option<ServerList>,
    /// The user's own files and programs for the host.
    pub(super) assets: Assets,
    /// The other hosts, as far as they are known.
    pub(super) neighbors: Neighbors,
    /// Where the host reaches the API, which no proxy leads to.
    pub(super) api_host: String,
    /// By what this host approves requests of kubelets, where it does.
    pub(super) approver: Option<Policy>,
}

impl<'a> NodeConfigBuilder<'a> {
    /// The part that needs nothing of the cluster.
    pub(super) fn machine(&self) -> Result<NodeConfig> {
        let agents = self.agents()?;
        self.machine_beside(&agents, &self.units(&agents)?)
    }

    /// The same beside all units of the host, of which it has the early ones.
    pub(super) fn machine_beside(&self, agents: &Agents<'_>, units: &[Unit]) -> Result<NodeConfig> {
        let blobs = [self.target.blobs, HOST_BLOBS].into_iter().filter(|dir| !dir.is_empty());
        // For the next boot; `turnup node up` sets them now.
        let system = &self.cluster.settings.host_system;
        host_system::require_own_kernel(system, self.facts)?;
        let sysctls = host_system::sysctls(system);
        let settings = sysctls.iter().map(|(name, value)| format!("{name} = {value}\n"));
        let runtime = agents.runtime();
        let mut files = runtime.files()?;
        files.extend([
            text_file("/etc/sysctl.d/90-turnup.conf", 0o600, settings.collect()),
            // For people who log in to the host; every user may read them.
            text_file("/etc/crictl.yaml", 0o644, self.plain("crictl.yaml")?),
            text_file("/etc/profile.d/turnup.sh", 0o644, self.plain("profile.sh")?),
        ]);
        if self.cluster.settings.addons.cni {
            // host-local would create it with mode 0750 (CIS 1.1.9).
            files.push(text_file(ADDRESS_LOCK, 0o600, String::new()));
        }
        files.extend(host_system::files(system));
        let proxy = HostProxy::find(self.cluster, Some(&self.api_host));
        if let Some(proxy) = &proxy {
            files.extend(proxy.files()?);
        }
        files.extend(self.assets.files_beside(units));
        Ok(NodeConfig {
            schema: SCHEMA.into(),
            node: self.target.name.into(),
            role: self.target.role,
            kubernetes_version: self.cluster.settings.kubernetes_version.clone(),
            blobs: blobs.map(Into::into).collect(),
            ports: self.ports(agents),
            users: Vec::new(),
            // A container's kernel is the machine's around it, which the doctor has looked at.
            modules: if self.facts.container { Vec::new() } else { self.modules() },
            sysctls,
            packages: system.packages.clone(),
            extra_hosts: system.extra_hosts.clone(),
            shared_directories: self.shared_directories(),
            pod_networks: vec![self.cluster.settings.pod_cidr.to_string()],
            mounts: Vec::new(),
            directories: machine_directories(),
            binaries: self.binaries()?,
            files,
            proxy: proxy.as_ref().map(HostProxy::decided),
            runtime: runtime.decided(),
            images: self.images()?,
            units: units[..count_early(units)].to_vec(),
            health: Vec::new(),
        })
    }

    /// What programs fill that a node has only with some settings: a reset empties it.
    fn shared_directories(&self) -> Vec<String> {
        let settings = &self.cluster.settings;
        let kubelet = settings.host_system.own_kubelet_root();
        kubelet.into_iter().chain(settings.addons.log_shipping.then_some(LOG_SHIPPING)).map(Into::into).collect()
    }

    fn ports(&self, agents: &Agents<'_>) -> Vec<u16> {
        let balancer = self.api_servers.as_ref().map(|list| list.port);
        let authenticator = agents.authenticator.as_ref().map(|_| machine_authenticator::ADDRESS.port());
        let own = self.target.role.ports(self.cluster.settings.api_port);
        own.into_iter().chain(balancer).chain(authenticator).collect()
    }

    /// What its balancer leads to, where it has one.
    pub(super) fn api_servers_file(&self) -> Result<Option<File>> {
        let Some(list) = &self.api_servers else { return Ok(None) };
        let text = document::render(layout::API_SERVERS, list)?;
        // Its reader is no user of the host.
        Ok(Some(text_file(layout::API_SERVERS, 0o644, text)))
    }

    /// A template without a variable.
    fn plain(&self, name: &str) -> Result<String> {
        template::render(&self.cluster.source, &format!("templates/bootstrap/{name}"), &minijinja::context! {})
    }

    /// All units in the order to start them, the user's own among them.
    pub(super) fn units(&self, agents: &Agents<'_>) -> Result<Vec<Unit>> {
        self.assets.arrange(agents.units()?, &agents.kubelet_config()?)
    }

    /// An error when one of the user's own files is one that turnup writes itself.
    pub(super) fn require_own_places(&self, node_config: &NodeConfig) -> Result<()> {
        self.assets.require_own_places(node_config)
    }

    fn modules(&self) -> Vec<String> {
        let wraps = self.cluster.settings.addons.has_vxlan();
        let own = ["overlay", "nf_tables"].into_iter().chain(wraps.then_some("vxlan"));
        let mut modules: Vec<String> = own.map(Into::into).collect();
        for module in &self.cluster.settings.host_system.kernel_modules {
            if !modules.contains(module) {
                modules.push(module.clone());
            }
        }
        modules
    }

    /// All of a worker that asks for its certificates itself: the machine, the cluster's authority
    /// and kubelet. `authority` is in PEM.
    pub(super) fn worker(&self, authority: &str) -> Result<NodeConfig> {
        let agents = self.agents()?;
        let units = self.units(&agents)?;
        let machine = self.machine_beside(&agents, &units)?;
        let mut files = machine.files;
        files.push(text_file(layout::CA, 0o644, authority.to_owned()));
        files.extend(agents.kubelet_files()?);
        files.extend(self.api_servers_file()?);
        files.extend(self.firewall_file()?);
        let mut directories = machine.directories;
        directories.extend(node_directories(&self.cluster.settings));
        let node_config = NodeConfig { directories, files, units, ..machine };
        self.require_own_places(&node_config)?;
        Ok(node_config)
    }

    pub(super) fn agents(&self) -> Result<Agents<'a>> {
        Ok(Agents {
            cluster: self.cluster,
            target: self.target,
            facts: self.facts,
            pause: self.artifacts.reference("pause")?,
            mounts: self.etcd_disk().map(|_| ETCD_DISK.to_owned()).into_iter().collect(),
            api_here: self.api_here,
            has_balancer: self.api_servers.is_some(),
            approver: self.approver.as_ref().map(Policy::flags),
            // As the approver: not on a machine that is only made ready.
            authenticator: match self.approver {
                Some(_) => machine_authenticator::find_flags(self.cluster)?,
                None => None,
            },
            tainted: self.target.role == Role::ControlPlane
                && self.has_workers
                && !self.cluster.settings.control_plane.runs_pods,
            has_firewall: self.cluster.settings.firewall.enabled,
            api_host: self.api_host.clone(),
        })
    }

    /// The host's nftables rules, where the settings want some.
    pub(super) fn firewall_file(&self) -> Result<Option<File>> {
        let settings = &self.cluster.settings;
        let ssh_port = self.target.host.map_or(settings.access.port, |host| host.ssh.port);
        let Some(firewall) = Firewall::find(settings, self.target.role, ssh_port, &self.neighbors)? else {
            return Ok(None);
        };
        Ok(Some(text_file(firewall::FILE, 0o600, firewall.render(&self.cluster.source)?)))
    }

    /// The disk of an etcd member on its host. `authority` is etcd's, in PEM.
    pub(super) fn mounts(&self, authority: &str) -> Vec<Mount> {
        let name = &self.cluster.settings.name;
        let mount = |disk| Mount {
            // A disk that is no volume goes with its machine, or stays in a machine that is not
            // made again from user data.
            keeps_identity: self.cluster.settings.control_plane.keeps_identity && matches!(disk, Disk::Volume(_)),
            disk,
            path: ETCD_DISK.into(),
            mode: 0o700,
            owner: ETCD.user(&self.cluster.settings),
            label: label_of(name),
            belongs_to: format!("{name} {}", unknown::digest(authority)),
            instead_of: ETCD_DIR.into(),
        };
        self.etcd_disk().map(mount).into_iter().collect()
    }

    fn etcd_disk(&self) -> Option<Disk> {
        self.target.host.and_then(Host::etcd_disk)
    }

    fn binaries(&self) -> Result<Vec<Binary>> {
        let place = |name: &str, dir: &str| -> Result<Binary> {
            let (sha256, size) = (self.artifacts.sha256(name)?, self.artifacts.size(name)?);
            Ok(Binary { name: name.into(), sha256, size, path: format!("{dir}/{name}") })
        };
        let tools = ["containerd", "containerd-shim-runc-v2", "crictl", "ctr", "kubelet", "runc"];
        let is_control_plane = self.target.role == Role::ControlPlane;
        let control: &[&str] = if is_control_plane { &["etcdctl", "etcdutl", csr_approver::KUBECTL] } else { &[] };
        let plugins = ["bridge", "host-local", "loopback", "portmap"];
        let tools = tools.iter().chain(control).map(|name| place(name, layout::BIN));
        let tools = tools.chain(plugins.into_iter().map(|name| place(name, "/opt/cni/bin")));
        let provider = Some(ECR_PROVIDER).filter(|_| self.cluster.settings.runtime.ecr_credentials);
        tools.chain(provider.map(|name| place(name, layout::CREDENTIAL_PROVIDERS))).collect()
    }

    /// Static pods wait for their images; the images of addons can follow while the control plane
    /// starts.
    fn images(&self) -> Result<Vec<Image>> {
        let role = self.target.role;
        let control: &[&str] = &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
        let first = ["pause"].iter().chain(if role == Role::ControlPlane { control } else { &[] });
        let addons = Addon::all(&self.cluster.source)?;
        // An image that is fetched only for its addon is not there while that is off.
        let there = |image: &&str| self.artifacts.has(&format!("image/{image}"));
        let of_addons = addons.iter().flat_map(Addon::all_images);
        let later = of_addons.filter(there).chain(["agnhost"]);
        let image = |name: &str, first: bool| -> Result<Image> {
            let id = format!("image/{name}");
            let (sha256, size) = (self.artifacts.sha256(&id)?, self.artifacts.size(&id)?);
            let (reference, archived) = (self.artifacts.reference(name)?, self.artifacts.archived_reference(name)?);
            let archived = Some(archived).filter(|archived| *archived != reference);
            Ok(Image { reference, sha256, size, first, archived, further: Vec::new() })
        };
        let own = self.artifacts.preloaded().iter().filter_map(|archive| {
            let (reference, further) = archive.references.split_first()?;
            let (sha256, size) = (archive.sha256.to_string(), Some(archive.size));
            let (reference, further) = (reference.clone(), further.to_vec());
            Some(Ok(Image { reference, sha256, size, first: true, archived: None, further }))
        });
        // A worker joins a cluster that may send it pods at once, so it waits for all of them.
        let wait = role == Role::Worker;
        first.map(|name| image(name, true)).chain(own).chain(later.map(|name| image(name, wait))).collect()
    }
}

/// The facts of a host of an image, with the placeholder of what its user data cannot know.
pub(super) fn with_placeholders(facts: &Facts) -> Facts {
    Facts { resolv_conf: Placeholder::ResolvConf.text().into(), ..facts.clone() }
}

/// A label that no other cluster's disk has, within ext4's 16 bytes: the name, or its beginning and
/// a digest of all of it.
pub(super) fn label_of(cluster: &str) -> String {
    const LONGEST: usize = 16;
    if cluster.len() <= LONGEST {
        return cluster.to_owned();
    }
    let digest = &hex::encode(Sha256::digest(cluster))[..6];
    format!("{}-{digest}", &cluster[..LONGEST - 1 - digest.len()])
}

fn text_file(path: &str, mode: u32, text: String) -> File {
    File::new(path, mode, 0, Content::Text(text))
}

fn machine_directories() -> Vec<Directory> {
    let directory = |path: &str, mode| Directory { path: path.into(), mode, owner: 0 };
    vec![
        directory("/etc/cni/net.d", 0o755),
        directory("/opt/cni/bin", 0o755),
        directory("/var/lib/turnup", 0o700),
        // Units without rights run turnup from there, whatever umask made it.
        directory(layout::INSTALLED, 0o755),
        directory(layout::BIN, 0o755),
    ]
}

/// What kubelet needs on any node.
pub(super) fn node_directories(settings: &ClusterSettings) -> Vec<Directory> {
    let directory = |path: &str, mode| Directory { path: path.into(), mode, owner: 0 };
    let mut directories = vec![
        directory(layout::KUBERNETES, 0o755),
        directory(layout::MANIFESTS, 0o700),
        directory(layout::PKI, 0o755),
        directory(layout::KUBELET_PKI, 0o750),
    ];
    if settings.addons.local_storage {
        // Made here and not by the first helper pod: users of the host do not come to the volumes,
        // which pods of any user write to, and a reset knows of it.
        directories.push(directory(&settings.addons.local_storage_path, 0o700));
    }
    if settings.addons.log_shipping {
        // What it has read, and lines of pods: for root alone.
        directories.push(directory(LOG_SHIPPING, 0o700));
    }
    if kubelet::provides_credentials(settings) {
        // kubelet does not start without it, whatever is in it.
        directories.push(directory(layout::CREDENTIAL_PROVIDERS, 0o755));
    }
    directories
}
