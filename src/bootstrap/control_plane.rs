//! The control plane's static pods and the files that they read. Every flag that turnup sets is in this file.

use serde_json::json;

use crate::cluster::ClusterSettings;
use crate::provision::Host;
use crate::provision::handoff::Endpoint;

use super::component::Flags;
use super::manifest::StaticPod;
use super::members::Member;

/// The system user and group of etcd on the host: its data and key are its own.
pub(super) const ETCD_USER: u32 = 2379;
/// Where etcd has its data on the host's own disk.
pub(super) const ETCD_DIR: &str = "/var/lib/etcd";
/// Where etcd's own disk is mounted. Another place than without one, so that data there is not hidden by the mount, nor taken for the disk's.
pub(super) const ETCD_DISK: &str = "/var/lib/etcd-disk";
/// How often the leader renews its lease and the others, or the first one before its rights are there, try to get it.
const RETRY: &str = "1s";
const PKI: &str = "/etc/kubernetes/pki";

/// What the manifests are made from.
pub(super) struct ControlPlane<'a> {
    pub(super) settings: &'a ClusterSettings,
    pub(super) host: &'a Host,
    /// The host's member of etcd.
    pub(super) member: &'a Member,
    /// Image references by component.
    pub(super) image: &'a dyn Fn(&str) -> crate::Result<String>,
}

impl ControlPlane<'_> {
    /// All static pods, etcd first.
    pub(super) fn static_pods(&self) -> crate::Result<Vec<StaticPod>> {
        Ok(vec![self.etcd()?, self.apiserver()?, self.controller_manager()?, self.scheduler()?])
    }

    fn etcd(&self) -> crate::Result<StaticPod> {
        let address = self.host.address;
        let dir = if self.host.etcd_disk().is_some() { ETCD_DISK } else { ETCD_DIR };
        let flags = Flags::new()
            .set("name", &self.host.name)
            // Below the root of the disk, which has a lost+found.
            .set("data-dir", format!("{dir}/data"))
            .set("listen-client-urls", format!("https://127.0.0.1:2379,https://{address}:2379"))
            .set("advertise-client-urls", format!("https://{address}:2379"))
            .set("listen-peer-urls", format!("https://{address}:2380"))
            .set("initial-advertise-peer-urls", format!("https://{address}:2380"))
            .set("initial-cluster", self.member.first.join(","))
            .set("initial-cluster-token", format!("turnup-{}", self.settings.name))
            .set_all([
                ("initial-cluster-state", self.member.cluster_state()),
                ("listen-metrics-urls", "http://127.0.0.1:2381"),
                ("client-cert-auth", "true"),
                ("peer-client-cert-auth", "true"),
                ("cert-file", "/etc/kubernetes/pki/etcd/server.crt"),
                ("key-file", "/etc/kubernetes/pki/etcd/server.key"),
                ("trusted-ca-file", "/etc/kubernetes/pki/etcd/ca.crt"),
                ("peer-cert-file", "/etc/kubernetes/pki/etcd/peer.crt"),
                ("peer-key-file", "/etc/kubernetes/pki/etcd/peer.key"),
                ("peer-trusted-ca-file", "/etc/kubernetes/pki/etcd/ca.crt"),
                ("snapshot-count", "10000"),
            ])
            .set_if(self.settings.tls13, "tls-min-version", "TLS1.3");
        Ok(StaticPod {
            name: "etcd",
            image: (self.image)("etcd")?,
            command: "etcd",
            flags,
            mounts: vec![(dir, false), ("/etc/kubernetes/pki/etcd", true)],
            probe: ("HTTP", "127.0.0.1".into(), 2381, "/livez"),
            cpu: "100m",
            user: Some(ETCD_USER),
        })
    }

    fn apiserver(&self) -> crate::Result<StaticPod> {
        let settings = self.settings;
        let issuer = format!("https://kubernetes.default.svc.{}", settings.cluster_domain);
        let flags = Flags::new()
            .set("advertise-address", self.host.address.to_string())
            .set("secure-port", settings.api_port.to_string())
            .set("service-cluster-ip-range", settings.service_cidr.to_string())
            .set("service-account-issuer", issuer)
            .set_all([
                ("admission-control-config-file", "/etc/kubernetes/config/admission.json"),
                ("allow-privileged", "true"),
                ("authentication-config", "/etc/kubernetes/config/authentication.json"),
                ("authorization-config", "/etc/kubernetes/config/authorization.json"),
                ("client-ca-file", "/etc/kubernetes/pki/ca.crt"),
                ("enable-admission-plugins", "NodeRestriction,DenyServiceExternalIPs,EventRateLimit"),
                ("enable-bootstrap-token-auth", "true"),
                ("etcd-cafile", "/etc/kubernetes/pki/etcd/ca.crt"),
                ("etcd-certfile", "/etc/kubernetes/pki/apiserver-etcd-client.crt"),
                ("etcd-keyfile", "/etc/kubernetes/pki/apiserver-etcd-client.key"),
                ("etcd-servers", "https://127.0.0.1:2379"),
                ("kubelet-certificate-authority", "/etc/kubernetes/pki/ca.crt"),
                ("kubelet-client-certificate", "/etc/kubernetes/pki/apiserver-kubelet-client.crt"),
                ("kubelet-client-key", "/etc/kubernetes/pki/apiserver-kubelet-client.key"),
                ("kubelet-preferred-address-types", "InternalIP,Hostname"),
                ("profiling", "false"),
                ("proxy-client-cert-file", "/etc/kubernetes/pki/front-proxy-client.crt"),
                ("proxy-client-key-file", "/etc/kubernetes/pki/front-proxy-client.key"),
                ("request-timeout", "60s"),
                ("requestheader-allowed-names", "front-proxy-client"),
                ("requestheader-client-ca-file", "/etc/kubernetes/pki/front-proxy-ca.crt"),
                ("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
                ("requestheader-group-headers", "X-Remote-Group"),
                ("requestheader-username-headers", "X-Remote-User"),
                ("service-account-extend-token-expiration", "false"),
                ("service-account-key-file", "/etc/kubernetes/pki/sa.pub"),
                ("service-account-lookup", "true"),
                ("service-account-signing-key-file", "/etc/kubernetes/pki/sa.key"),
                ("tls-cert-file", "/etc/kubernetes/pki/apiserver.crt"),
                ("tls-private-key-file", "/etc/kubernetes/pki/apiserver.key"),
            ]);
        let flags = self.secure(flags).set_if(
            settings.encryption_at_rest,
            "encryption-provider-config",
            "/etc/kubernetes/config/encryption.json",
        );
        let flags = if settings.audit { audited(flags) } else { flags };
        let mut mounts = vec![(PKI, true), ("/etc/kubernetes/config", true)];
        if settings.audit {
            mounts.push(("/var/log/kubernetes", false));
        }
        Ok(StaticPod {
            name: "kube-apiserver",
            image: (self.image)("kube-apiserver")?,
            command: "kube-apiserver",
            flags,
            mounts,
            probe: ("HTTPS", self.host.address.to_string(), settings.api_port, "/livez"),
            cpu: "250m",
            user: None,
        })
    }

    fn controller_manager(&self) -> crate::Result<StaticPod> {
        let settings = self.settings;
        let flags = Flags::new()
            .set("cluster-name", &settings.name)
            .set("cluster-cidr", settings.pod_cidr.to_string())
            .set("service-cluster-ip-range", settings.service_cidr.to_string())
            .set_all([
                ("allocate-node-cidrs", "true"),
                ("authentication-kubeconfig", "/etc/kubernetes/controller-manager.json"),
                ("authorization-kubeconfig", "/etc/kubernetes/controller-manager.json"),
                ("bind-address", "127.0.0.1"),
                ("client-ca-file", "/etc/kubernetes/pki/ca.crt"),
                ("cluster-signing-cert-file", "/etc/kubernetes/pki/ca.crt"),
                ("cluster-signing-key-file", "/etc/kubernetes/pki/ca.key"),
                // One year, as our own leaves; kubelets renew theirs by themselves.
                ("cluster-signing-duration", "8760h"),
                ("controllers", "*,token-cleaner-controller"),
                ("kubeconfig", "/etc/kubernetes/controller-manager.json"),
                // Its own limit of 20 requests a second holds up the start of its controllers, each of which gets an account and a
                // token first, for four seconds. The API server guards itself (priority and fairness).
                ("kube-api-burst", "150"),
                ("kube-api-qps", "100"),
                ("leader-elect", "true"),
                ("leader-elect-retry-period", RETRY),
                ("node-cidr-mask-size", "24"),
                ("profiling", "false"),
                ("requestheader-client-ca-file", "/etc/kubernetes/pki/front-proxy-ca.crt"),
                ("root-ca-file", "/etc/kubernetes/pki/ca.crt"),
                ("service-account-private-key-file", "/etc/kubernetes/pki/sa.key"),
                ("terminated-pod-gc-threshold", "500"),
                ("use-service-account-credentials", "true"),
            ]);
        Ok(StaticPod {
            name: "kube-controller-manager",
            image: (self.image)("kube-controller-manager")?,
            command: "kube-controller-manager",
            flags: self.secure(flags),
            mounts: vec![(PKI, true), ("/etc/kubernetes/controller-manager.json", true)],
            probe: ("HTTPS", "127.0.0.1".into(), 10257, "/healthz"),
            cpu: "200m",
            user: None,
        })
    }

    fn scheduler(&self) -> crate::Result<StaticPod> {
        let flags = Flags::new().set_all([
            ("authentication-kubeconfig", "/etc/kubernetes/scheduler.json"),
            ("authorization-kubeconfig", "/etc/kubernetes/scheduler.json"),
            ("bind-address", "127.0.0.1"),
            ("kubeconfig", "/etc/kubernetes/scheduler.json"),
            ("leader-elect", "true"),
            ("leader-elect-retry-period", RETRY),
            ("profiling", "false"),
        ]);
        Ok(StaticPod {
            name: "kube-scheduler",
            image: (self.image)("kube-scheduler")?,
            command: "kube-scheduler",
            flags: self.secure(flags),
            mounts: vec![("/etc/kubernetes/scheduler.json", true)],
            probe: ("HTTPS", "127.0.0.1".into(), 10259, "/healthz"),
            cpu: "100m",
            user: None,
        })
    }

    fn secure(&self, flags: Flags) -> Flags {
        flags.set("tls-min-version", if self.settings.tls13 { "VersionTLS13" } else { "VersionTLS12" })
    }

    /// Configuration files of the API server: path and text. The encryption configuration is a secret and comes apart.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        // Anonymous requests may ask for health and nothing else (KEP-4633).
        let paths = ["/livez", "/readyz", "/healthz"].map(|path| json!({"path": path}));
        let authentication = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "anonymous": {"enabled": true, "conditions": paths},
        });
        let authorization = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": [{"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"}],
        });
        vec![
            ("/etc/kubernetes/config/authentication.json", format!("{authentication:#}\n")),
            ("/etc/kubernetes/config/authorization.json", format!("{authorization:#}\n")),
            ("/etc/kubernetes/config/admission.json", format!("{:#}\n", self.admission())),
        ]
    }

    fn admission(&self) -> serde_json::Value {
        let limits = json!({
            "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1",
            "kind": "Configuration",
            "limits": [{"type": "Server", "qps": 100, "burst": 1000}, {"type": "Namespace", "qps": 50, "burst": 100, "cacheSize": 2000}],
        });
        let mut plugins = vec![json!({"name": "EventRateLimit", "configuration": limits})];
        if self.settings.pod_security {
            let version = "latest";
            plugins.push(json!({"name": "PodSecurity", "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {
                    "enforce": "baseline", "enforce-version": version,
                    "audit": "restricted", "audit-version": version,
                    "warn": "restricted", "warn-version": version,
                },
                "exemptions": {"usernames": [], "runtimeClasses": [], "namespaces": ["kube-system"]},
            }}));
        }
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})
    }
}

/// The names and addresses at which clients reach the API server of one host.
pub(super) fn api_names(settings: &ClusterSettings, api: &Endpoint, host: &Host) -> crate::Result<Vec<String>> {
    let service = settings.service_cidr.address(1);
    let service = service.ok_or_else(|| crate::Error::config("phase2.service_cidr is too small"))?;
    let mut names: Vec<String> =
        ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"].map(Into::into).into();
    names.push(format!("kubernetes.default.svc.{}", settings.cluster_domain));
    names.extend([host.name.clone(), host.address.to_string(), service.to_string(), "127.0.0.1".into()]);
    names.push(api.host.clone());
    names.extend(api.internal_host.iter().chain(&settings.extra_sans).cloned());
    names.sort();
    names.dedup();
    Ok(names)
}

/// What the API server writes down of every request, and how much of it is kept: 30 days, 10 files of 100 MB.
fn audited(flags: Flags) -> Flags {
    flags.set_all([
        ("audit-log-maxage", "30"),
        ("audit-log-maxbackup", "10"),
        ("audit-log-maxsize", "100"),
        ("audit-log-path", "/var/log/kubernetes/audit.log"),
        ("audit-policy-file", "/etc/kubernetes/config/audit-policy.json"),
    ])
}
