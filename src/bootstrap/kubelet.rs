//! What kubelet and containerd need on every node: configuration files and units.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cloud::{VolumeProvider, WORKERS};
use crate::cluster::{BackupSettings, Cluster, ClusterSettings};
use crate::component::OverrideSubject;
use crate::config::{ComponentName, Destination};
use crate::error::{Error, Result};
use crate::inventory::Role;
use crate::node::Facts;
use crate::node::firewall;
use crate::node::layout;
use crate::node::node_config::{
    ADDON_MANAGER_UNIT, AGENT_UNIT, API_UNIT, BACKUP_TIMER, BALANCER_UNIT, CONTAINERD, CSR_APPROVER_UNIT, Content,
    DNS_UNIT, FIREWALL_UNIT, File, HEALTHCHECK_UNIT, MACHINE_AUTHENTICATOR_UNIT, MOUNTS_UNIT, PROXY_AUTHORITY,
    TRUST_UNIT, Unit,
};
use crate::node::provider_id;

use super::assets::unit_word;
use super::component::Flags;
use super::configuration::{self, Configuration};
use super::firewall::FILE as FIREWALL_FILE;
use super::group_node::{BALANCER, GROUP, TEMPLATE};
use super::healthcheck;
use super::machine_authenticator;
use super::node_metadata;
use super::node_target::NodeTarget;
use super::proxy::HostProxy;
use super::reserved_memory;
use super::runtime::{self, ContainerRuntime};
use super::template;
use super::template_id;

/// What a node's agents are made from.
pub(super) struct Agents<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) target: NodeTarget<'a>,
    pub(super) facts: &'a Facts,
    pub(super) pause: String,
    /// Mount points of disks without which kubelet must not start.
    pub(super) mounts: Vec<String>,
    /// The address of all API servers, where this host is to reach its own.
    pub(super) api_here: Option<Ipv4Addr>,
    /// Whether it reaches all API servers by a balancer of its own.
    pub(super) has_balancer: bool,
    /// The flags of the CSR approver, on hosts that have it.
    pub(super) approver: Option<Vec<String>>,
    /// The flags of the machine authenticator, on hosts that have it.
    pub(super) authenticator: Option<Vec<String>>,
    /// Whether pods of users must stay off this node.
    pub(super) tainted: bool,
    /// Whether the host has nftables rules of turnup's.
    pub(super) has_firewall: bool,
    /// Where the host reaches the API.
    pub(super) api_host: String,
}

impl Agents<'_> {
    const fn settings(&self) -> &ClusterSettings {
        &self.cluster.settings
    }

    /// Where this host's backups go; none where it has no etcd, or none are taken.
    fn backup(&self) -> Option<&BackupSettings> {
        self.settings().backup.as_ref().filter(|_| self.target.role == Role::ControlPlane)
    }

    fn configuration(&self) -> Configuration<'_> {
        // As files and hooks of the user's mean it: where there are no groups, all workers are one.
        let alone = if self.target.role == Role::Worker { WORKERS } else { "" };
        let group = self.target.group_name().unwrap_or(alone);
        let subject = OverrideSubject { host: self.target.name, role: self.target.role.name(), group };
        Configuration { settings: self.settings(), component: ComponentName::Kubelet, subject }
    }

    /// How often the agent defragments this host's member of etcd, as a flag says it; empty for
    /// never.
    fn defragment_every(&self) -> String {
        let every = self.settings().control_plane.etcd_defragment_interval;
        let every = every.filter(|every| self.target.role == Role::ControlPlane && !every.is_zero());
        every.map_or_else(String::new, |every| format!("{}s", every.as_secs()))
    }

    /// `KubeletConfiguration` with every setting that turnup decides.
    pub(super) fn kubelet_config(&self) -> Result<Value> {
        let settings = self.settings();
        let dns = settings.service_cidr.address(10).ok_or_else(|| Error::config("phase2.service_cidr is too small"))?;
        let mut config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": false},
                "webhook": {"enabled": true},
                "x509": {"clientCAFile": layout::CA},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": runtime::cgroup_driver(self.cluster, self.facts),
            "clusterDNS": [dns.to_string()],
            "clusterDomain": settings.cluster_domain,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "readOnlyPort": 0,
            "registerWithTaints": self.taints(),
            "resolvConf": self.facts.resolv_conf,
            "rotateCertificates": true,
            "staticPodPath": layout::MANIFESTS,
        });
        configuration::merge(&mut config, self.serving());
        let decided = config.clone();
        let own_defaults = json!({
            "failCgroupV1": false,
            "failSwapOn": false,
            "imagePullCredentialsVerificationPolicy": if settings.control_plane.verify_image_credentials {
                "NeverVerifyPreloadedImages"
            } else {
                "NeverVerify"
            },
            // Kubernetes' default of a minute is how long a static pod would be shown as pending
            // that began before the API server did.
            "syncFrequency": if self.target.role == Role::ControlPlane { "10s" } else { "1m" },
        });
        configuration::merge(&mut config, own_defaults);
        // What is known of the host counts more than a default, an answer more than both, and the
        // group's own most.
        let of = self.configuration();
        of.set_fields(&mut config, true);
        if self.facts.container {
            configuration::merge(&mut config, shared_disk_thresholds());
        }
        of.set_fields(&mut config, false);
        if let Some(reserved) = self.target.kube_reserved() {
            configuration::merge(&mut config, json!({"kubeReserved": reserved}));
        }
        if let Some(most) = self.target.max_pods() {
            config["maxPods"] = most.into();
        }
        of.set_own_fields(&mut config, &decided)?;
        if config.get("evictionHard").is_some() && config.get("mergeDefaultEvictionSettings").is_none() {
            // Without it the signals that are not named would have no threshold at all.
            config["mergeDefaultEvictionSettings"] = true.into();
        }
        reserved_memory::set(&mut config)?;
        require_swap(&config, self.target.name, self.facts)?;
        Ok(config)
    }

    /// The files that kubelet reads: its configuration, and what settings bring along.
    pub(super) fn kubelet_files(&self) -> Result<Vec<File>> {
        let config = File::new(layout::KUBELET_CONFIG, 0o600, 0, Content::Yaml(self.kubelet_config()?));
        let own = configuration::files(self.cluster, ComponentName::Kubelet)?;
        let own = own.into_iter().map(|(name, text)| File::new(&kubelet_file(&name), 0o600, 0, Content::Text(text)));
        let mut files: Vec<File> = std::iter::once(config).chain(own).collect();
        if self.settings().runtime.ecr_credentials {
            let path = kubelet_file(configuration::file_name(CREDENTIAL_PROVIDERS));
            let text = template::render(&self.cluster.source, ECR_CONFIG, &minijinja::context! {})?;
            files.push(File::new(&path, 0o600, 0, Content::Text(text)));
        }
        Ok(files)
    }

    /// With what kubelet serves: a certificate that was made for this host, or one that it asks the
    /// API for.
    fn serving(&self) -> Value {
        let version = if self.settings().tls13 { "VersionTLS13" } else { "VersionTLS12" };
        if self.target.group.is_some() {
            return json!({"serverTLSBootstrap": true, "tlsMinVersion": version});
        }
        let (certificate, key) = (layout::KUBELET_CERTIFICATE, layout::KUBELET_KEY);
        json!({"tlsCertFile": certificate, "tlsPrivateKeyFile": key, "tlsMinVersion": version})
    }

    /// From the first moment on; later changes are told to the API server, which a kubelet asks for
    /// nothing of this kind.
    fn taints(&self) -> Vec<Value> {
        let control_plane = self.tainted.then(node_metadata::control_plane_taint);
        let all = control_plane.into_iter().chain(self.target.all_taints().cloned());
        all.map(|taint| match taint.value.as_str() {
            "" => json!({"key": taint.key, "effect": taint.effect}),
            value => json!({"key": taint.key, "value": value, "effect": taint.effect}),
        })
        .collect()
    }

    /// Labels that a kubelet may give its own Node; those of hosts that do not come by themselves
    /// are the step's `label-nodes`.
    fn labels(&self) -> String {
        let Some(group) = self.target.group else { return String::new() };
        let own = [(GROUP.to_owned(), group.name.clone()), (TEMPLATE.to_owned(), template_id::MARK.to_owned())];
        let mut labels = self.settings().node_labels.clone();
        labels.extend(group.labels.clone().into_iter().chain(own));
        labels.extend(self.has_balancer.then(|| (BALANCER.to_owned(), "true".to_owned())));
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }

    pub(super) fn runtime(&self) -> ContainerRuntime<'_> {
        ContainerRuntime { cluster: self.cluster, facts: self.facts, pause: &self.pause }
    }

    /// The paths of everything that kubelet reads once, when it starts.
    fn files_of_kubelet(&self) -> Result<Vec<String>> {
        let mut paths: Vec<String> = self.kubelet_files()?.into_iter().map(|file| file.path).collect();
        paths.extend([
            layout::KUBELET_KUBECONFIG.into(),
            layout::BOOTSTRAP_KUBECONFIG.into(),
            layout::registry_credentials(&self.settings().host_system.data_dir),
            PROXY_AUTHORITY.into(),
            layout::program("kubelet"),
            layout::KUBELET_CERTIFICATE.into(),
            layout::CA.into(),
        ]);
        if self.target.role == Role::ControlPlane {
            paths.push(layout::KUBELET_CLIENT.into());
        }
        Ok(paths)
    }

    fn kubelet_flags(&self) -> Result<Flags> {
        let labels = self.labels();
        let flags = Flags::new()
            .set("config", layout::KUBELET_CONFIG)
            .set("hostname-override", self.target.name)
            .set("kubeconfig", layout::KUBELET_KUBECONFIG)
            .set("node-ip", self.target.address)
            .set_if(!labels.is_empty(), "node-labels", labels)
            .set_if(self.target.role == Role::Worker, "bootstrap-kubeconfig", layout::BOOTSTRAP_KUBECONFIG);
        let own_dir = self.settings().host_system.own_kubelet_root();
        let flags = flags.set_if(own_dir.is_some(), "root-dir", own_dir.unwrap_or_default());
        let flags = set_credential_providers(flags, self.settings());
        let has_cloud = self.settings().find_cloud_controller().is_some();
        let flags = flags.set_if(has_cloud, "cloud-provider", "external");
        self.configuration().with_flags(flags, kubelet_file)
    }

    /// The units in the order to start them.
    pub(super) fn units(&self) -> Result<Vec<Unit>> {
        let flags = self.kubelet_flags()?;
        let cloud = self.settings().find_cloud_controller();
        let proxy = HostProxy::find(self.cluster, Some(&self.api_host));
        let trusts = proxy.as_ref().is_some_and(HostProxy::has_authority);
        let config = self.kubelet_config()?;
        let context = minijinja::context! {
            node => self.target.name,
            data_dir => unit_word(&self.settings().host_system.data_dir),
            containerd_root => unit_word(&self.settings().runtime.data_dir),
            open_files => self.settings().host_system.open_files,
            proxy => proxy.as_ref().map(HostProxy::environment).unwrap_or_default(),
            authority => PROXY_AUTHORITY,
            managers => managers(&config),
            machine_of => cloud.map(VolumeProvider::name),
            provider_id => provider_id::FILE,
            provider_id_variable => provider_id::VARIABLE,
            turnup => layout::TURNUP,
            flags => flags.render().iter().map(|flag| unit_word(flag)).collect::<Vec<_>>(),
            lowers_oom_score => self.facts.lowers_oom_score,
            mounts => &self.mounts,
            mounts_unit => MOUNTS_UNIT,
            api_here => self.api_here.map(|address| address.to_string()),
            api_port => self.settings().api_port,
            api_servers => layout::API_SERVERS,
            dns => layout::DNS,
            addon_manager => layout::ADDON_MANAGER_KUBECONFIG,
            version => self.cluster.version(),
            approver => self.approver.clone().unwrap_or_default(),
            authenticator => self.authenticator.clone().unwrap_or_default(),
            authenticator_user => machine_authenticator::USER_ID,
            healthcheck => healthcheck::flags(self.target.address, self.settings().api_port),
            healthcheck_user => healthcheck::USER_ID,
            backup_seconds => self.backup().map(|settings| settings.interval.as_secs()),
            rules => FIREWALL_FILE,
            loaded => firewall::LOADED,
            defragment => self.defragment_every(),
            renew => self.target.group.is_none() && self.settings().pki.renew_on_hosts,
        };
        let unit = |name: &str, restart_on: &[&str]| -> Result<Unit> {
            let text = template::render(&self.cluster.source, &format!("templates/bootstrap/{name}"), &context)?;
            let restart_on = restart_on.iter().map(|path| (*path).to_owned()).collect();
            Ok(Unit {
                name: name.to_owned(),
                text,
                mode: Unit::MODE,
                restart_on,
                reloads: [FIREWALL_UNIT, TRUST_UNIT].contains(&name),
            })
        };
        let mut units = Vec::new();
        if trusts {
            units.push(unit(TRUST_UNIT, &[PROXY_AUTHORITY])?);
        }
        let containerd = layout::program("containerd");
        units.push(unit(CONTAINERD, &[runtime::CONFIG, runtime::EXTRA, PROXY_AUTHORITY, &containerd])?);
        if self.has_firewall {
            units.push(unit(FIREWALL_UNIT, &[FIREWALL_FILE])?);
        }
        if !self.mounts.is_empty() {
            units.push(unit(MOUNTS_UNIT, &[])?);
        }
        if self.api_here.is_some() {
            units.push(unit(API_UNIT, &[])?);
        }
        if self.has_balancer {
            units.push(unit(BALANCER_UNIT, &[])?);
        }
        if self.target.role == Role::ControlPlane {
            units.push(unit(HEALTHCHECK_UNIT, &[])?);
        }
        if self.authenticator.is_some() {
            units.push(unit(MACHINE_AUTHENTICATOR_UNIT, &[])?);
        }
        // Before the first API server: a name that does not exist is remembered.
        if self.target.role == Role::ControlPlane && self.settings().dns.is_some() {
            units.push(unit(DNS_UNIT, &[layout::DNS])?);
        }
        let read = self.files_of_kubelet()?;
        units.push(unit("kubelet.service", &read.iter().map(String::as_str).collect::<Vec<_>>())?);
        if self.backup().is_some() {
            units.push(unit(BACKUP_TIMER, &[])?);
        }
        if self.approver.is_some() {
            units.push(unit(CSR_APPROVER_UNIT, &[])?);
        }
        if self.target.role == Role::ControlPlane && self.settings().addons.addon_manager {
            units.push(unit(ADDON_MANAGER_UNIT, &[])?);
        }
        // Last: what it looks after runs before its first look.
        units.push(unit(AGENT_UNIT, &[])?);
        Ok(units)
    }
}

/// What kubelet's managers keep their state for: each with a digest of what that depends on.
fn managers(config: &Value) -> [(&'static str, String); 2] {
    let cpu = json!([
        config["cpuManagerPolicy"],
        config["cpuManagerPolicyOptions"],
        config["reservedSystemCPUs"],
        config["kubeReserved"]["cpu"],
        config["systemReserved"]["cpu"],
    ]);
    let memory = json!([config["memoryManagerPolicy"], config["reservedMemory"]]);
    [("cpu", cpu), ("memory", memory)].map(|(name, of)| (name, hex::encode(&Sha256::digest(of.to_string())[..8])))
}

/// The flag that names the programs which get passwords for registries.
const CREDENTIAL_PROVIDERS: &str = "image-credential-provider-config";
/// What kubelet asks turnup's own program for.
const ECR_CONFIG: &str = "templates/bootstrap/ecr-credential-provider.yaml";

fn set_credential_providers(flags: Flags, settings: &ClusterSettings) -> Flags {
    let file = kubelet_file(configuration::file_name(CREDENTIAL_PROVIDERS));
    flags
        .set_if(provides_credentials(settings), "image-credential-provider-bin-dir", layout::CREDENTIAL_PROVIDERS)
        .set_if(settings.runtime.ecr_credentials, CREDENTIAL_PROVIDERS, file)
}

/// Whether programs get passwords for registries: turnup's, or the user's.
pub(super) fn provides_credentials(settings: &ClusterSettings) -> bool {
    if settings.runtime.ecr_credentials {
        return true;
    }
    let flag = Destination::Flag(CREDENTIAL_PROVIDERS.into());
    settings.assignments.iter().any(|one| one.component == ComponentName::Kubelet && one.destination == flag)
}

/// A file that a setting brings along for kubelet.
fn kubelet_file(name: &str) -> String {
    layout::component_file("kubelet", name)
}

/// When kubelet of a host that is a container evicts pods: at absolute limits. The disk is the
/// machine's around it, which others fill as well; kubelet's own limit of 15 % would keep every pod
/// away from a machine with a large disk and dozens of gigabytes free.
pub(crate) fn shared_disk_thresholds() -> Value {
    json!({
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1Gi",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1Gi",
            "imagefs.inodesFree": "1%",
        },
        // Images come from archives and are pinned: there is nothing to collect.
        "imageGCHighThresholdPercent": 100,
    })
}

/// An error where kubelet would end at once: it lets pods use swap with cgroup v2 alone.
fn require_swap(config: &Value, node: &str, facts: &Facts) -> Result<()> {
    if facts.cgroup == 2 || config["memorySwap"]["swapBehavior"] != "LimitedSwap" {
        return Ok(());
    }
    let message = format!("{SWAP}: LimitedSwap needs cgroup v2, and {node} has version 1");
    Err(Error::config(message).hint(format!("turnup config set {SWAP}=NoSwap, or boot that host with cgroup v2")))
}

const SWAP: &str = "phase2.kubelet.swap_behavior";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::usual_facts::usual_facts;

    #[test]
    fn swap_for_pods_is_refused_where_kubelet_would_refuse_it() {
        let old = Facts { cgroup: 1, ..usual_facts() };
        let config = |behavior: &str| json!({"memorySwap": {"swapBehavior": behavior}});
        for (behavior, facts) in [("LimitedSwap", &usual_facts()), ("NoSwap", &old)] {
            assert!(require_swap(&config(behavior), "w1", facts).is_ok(), "{behavior}");
        }
        let error = require_swap(&config("LimitedSwap"), "w1", &old).err().map(|error| error.render());
        let told = "error: phase2.kubelet.swap_behavior: LimitedSwap needs cgroup v2, and w1 has version 1";
        assert!(error.is_some_and(|error| error.starts_with(told)));
    }
}
