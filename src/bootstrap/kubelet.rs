//! What kubelet and containerd need on every node: configuration files, units, kernel settings.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::ClusterSettings;
use crate::config::TreeSource;
use crate::error::{Context as _, Error, Result};
use crate::node::Facts;
use crate::node::complete::{BOOTSTRAP_KUBECONFIG, Unit};
use crate::provision::{Host, Role};

use super::component::Flags;

/// kubelet's configuration file on the host.
pub(super) const CONFIG: &str = "/etc/kubernetes/kubelet.json";
/// kubelet's kubeconfig; it names the certificate that kubelet renews itself.
pub(super) const KUBECONFIG: &str = "/etc/kubernetes/kubelet-kubeconfig.json";

/// What a node's agents are made from.
pub(super) struct Agents<'a> {
    pub(super) settings: &'a ClusterSettings,
    pub(super) source: &'a TreeSource,
    pub(super) host: &'a Host,
    pub(super) facts: &'a Facts,
    pub(super) pause: String,
    /// Whether pods of users must stay off this node.
    pub(super) tainted: bool,
}

impl Agents<'_> {
    /// `KubeletConfiguration` with every setting that turnup decides.
    pub(super) fn kubelet_config(&self) -> Result<String> {
        let settings = self.settings;
        let dns = settings.service_cidr.address(10).ok_or_else(|| Error::config("phase2.service_cidr is too small"))?;
        let own = self.tainted.then(|| json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}));
        // From the first moment on; later changes are told to the API server, which a kubelet asks for nothing of this kind.
        let listed = self.host.taints.iter().map(|taint| match taint.value.as_str() {
            "" => json!({"key": taint.key, "effect": taint.effect}),
            value => json!({"key": taint.key, "value": value, "effect": taint.effect}),
        });
        let taints: Vec<Value> = own.into_iter().chain(listed).collect();
        let mut config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": false},
                "webhook": {"enabled": true},
                "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": if self.uses_systemd_cgroups() { "systemd" } else { "cgroupfs" },
            "clusterDNS": [dns.to_string()],
            "clusterDomain": settings.cluster_domain,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "eventRecordQPS": 5,
            "failCgroupV1": false,
            "failSwapOn": false,
            "maxPods": settings.max_pods,
            "memorySwap": {"swapBehavior": "NoSwap"},
            "podPidsLimit": 4096,
            "protectKernelDefaults": true,
            "readOnlyPort": 0,
            "registerWithTaints": taints,
            "resolvConf": self.facts.resolv_conf,
            "rotateCertificates": true,
            "seccompDefault": true,
            "staticPodPath": super::manifest::DIR,
            "streamingConnectionIdleTimeout": "5m",
            // The default of a minute is how long a static pod would be shown as pending that began before the API server did.
            "syncFrequency": if self.host.role == Role::ControlPlane { "10s" } else { "1m" },
            "tlsCertFile": "/etc/kubernetes/pki/kubelet.crt",
            "tlsPrivateKeyFile": "/etc/kubernetes/pki/kubelet.key",
            "tlsMinVersion": if settings.tls13 { "VersionTLS13" } else { "VersionTLS12" },
        });
        if self.facts.container
            && let (Some(config), Value::Object(thresholds)) = (config.as_object_mut(), shared_disk_thresholds())
        {
            config.extend(thresholds);
        }
        Ok(format!("{config:#}\n"))
    }

    /// containerd's configuration.
    pub(super) fn containerd_config(&self) -> Result<String> {
        let context = minijinja::context! {
            pause => &self.pause,
            lowers_oom_score => self.facts.lowers_oom_score,
            systemd_cgroup => self.uses_systemd_cgroups(),
        };
        self.render("templates/bootstrap/containerd.toml", &context)
    }

    /// The units in the order to start them.
    pub(super) fn units(&self) -> Result<Vec<Unit>> {
        let flags = Flags::new()
            .set("config", CONFIG)
            .set("hostname-override", &self.host.name)
            .set("kubeconfig", KUBECONFIG)
            .set("node-ip", self.host.address.to_string())
            .set_if(self.host.role == Role::Worker, "bootstrap-kubeconfig", BOOTSTRAP_KUBECONFIG);
        let context = minijinja::context! { node => &self.host.name, flags => flags.render(),
        lowers_oom_score => self.facts.lowers_oom_score };
        let unit = |name: &str, restart_on: &[&str]| -> Result<Unit> {
            let text = self.render(&format!("templates/bootstrap/{name}"), &context)?;
            let restart_on = restart_on.iter().map(|path| (*path).to_owned()).collect();
            Ok(Unit { name: name.to_owned(), text, restart_on })
        };
        let tls = ["/etc/kubernetes/pki/kubelet.crt", "/etc/kubernetes/pki/ca.crt"];
        Ok(vec![
            unit("containerd.service", &["/etc/containerd/config.toml", "/opt/turnup/bin/containerd"])?,
            unit(
                "kubelet.service",
                &[CONFIG, KUBECONFIG, BOOTSTRAP_KUBECONFIG, "/opt/turnup/bin/kubelet", tls[0], tls[1]],
            )?,
        ])
    }

    /// systemd manages the cgroups of a real host with the unified hierarchy; in all other cases kubelet does it alone.
    const fn uses_systemd_cgroups(&self) -> bool {
        self.facts.cgroup == 2
    }

    fn render(&self, path: &str, context: &minijinja::Value) -> Result<String> {
        let mut environment = minijinja::Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        let text = self.source.read_text(path)?;
        // The engine drops the newline at the end.
        Ok(environment.render_str(&text, context).context(format!("cannot render {path}"))? + "\n")
    }
}

/// When kubelet of a host that is a container evicts pods: at absolute limits. The disk is the machine's around it, which others fill
/// as well; kubelet's own limit of 15 % would keep every pod away from a machine with a large disk and dozens of gigabytes free.
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

/// Kernel settings: forwarding for pods, and what kubelet demands with `protectKernelDefaults`.
pub(super) fn sysctls() -> BTreeMap<String, String> {
    [
        ("net.ipv4.ip_forward", "1"),
        ("vm.overcommit_memory", "1"),
        ("vm.panic_on_oom", "0"),
        ("kernel.panic", "10"),
        ("kernel.panic_on_oops", "1"),
        ("kernel.keys.root_maxkeys", "1000000"),
        ("kernel.keys.root_maxbytes", "25000000"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
