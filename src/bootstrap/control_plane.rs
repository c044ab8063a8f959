//! The control plane's static pods and the files that they read. Every flag that turnup sets is in
//! this file.

use serde_json::{Value, json};

use crate::cluster::ClusterSettings;
use crate::inventory::Host;
use crate::inventory::{Endpoint, HEALTH_PORT};
use crate::node::node_config::{Directory, User};

use super::component::{API_SERVER, COMPONENTS, CONTROLLER_MANAGER, Component, ETCD, Flags, SCHEDULER};
use super::etcd_members::Member;
use super::healthcheck;
use super::manifest::{Probe, StaticPod};

/// Where etcd has its data on the host's own disk.
pub(super) const ETCD_DIR: &str = "/var/lib/etcd";
/// Where etcd's own disk is mounted. Another place than without one, so that data there is not
/// hidden by the mount, nor taken for the disk's.
pub(super) const ETCD_DISK: &str = "/var/lib/etcd-disk";
/// Where the API server writes the audit log.
pub(super) const LOG_DIR: &str = "/var/log/kubernetes";
/// The kubeconfig of a component, in its directory.
pub(super) const KUBECONFIG: &str = "kubeconfig";
/// How often the leader renews its lease and the others, or the first one before its rights are
/// there, try to get it.
const RETRY: &str = "1s";

/// The system users that the host needs for the components.
pub(super) fn users(settings: &ClusterSettings) -> Vec<User> {
    let users = COMPONENTS.map(|component| User { name: component.name.into(), id: component.user(settings) });
    users.into_iter().filter(|user| user.id != 0).collect()
}

/// The directories of the components, readable by their users only.
pub(super) fn directories(host: &Host, settings: &ClusterSettings) -> Vec<Directory> {
    let directory = |path: String, owner| Directory { path, mode: 0o700, owner };
    let own = COMPONENTS.map(|component| directory(component.dir(), component.user(settings)));
    // The root of a disk is made what it should be when it is mounted.
    let data = host.etcd_disk().is_none().then(|| directory(ETCD_DIR.into(), ETCD.user(settings)));
    let logs = directory(LOG_DIR.into(), API_SERVER.user(settings));
    let health = healthcheck::DIRECTORIES.map(|path| Directory { path: path.into(), mode: 0o755, owner: 0 });
    own.into_iter().chain(data).chain([logs]).chain(health).collect()
}

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
                ("snapshot-count", "10000"),
            ])
            .set_files(
                &ETCD,
                [
                    ("cert-file", "server.crt"),
                    ("key-file", "server.key"),
                    ("trusted-ca-file", "ca.crt"),
                    ("peer-cert-file", "peer.crt"),
                    ("peer-key-file", "peer.key"),
                    ("peer-trusted-ca-file", "ca.crt"),
                ],
            )
            .set_if(self.settings.tls13, "tls-min-version", "TLS1.3");
        let probe = ("HTTP", 2381, "/livez");
        self.static_pod(&ETCD, flags, &[dir], probe, "100m")
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
                ("allow-privileged", "true"),
                // Probes without a certificate go to `turnup node healthcheck`.
                ("anonymous-auth", "false"),
                ("authorization-mode", "Node,RBAC"),
                ("enable-admission-plugins", "NodeRestriction,DenyServiceExternalIPs,EventRateLimit"),
                ("enable-bootstrap-token-auth", "true"),
                ("etcd-servers", "https://127.0.0.1:2379"),
                ("kubelet-preferred-address-types", "InternalIP,Hostname"),
                ("profiling", "false"),
                ("request-timeout", "60s"),
                ("requestheader-allowed-names", "front-proxy-client"),
                ("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
                ("requestheader-group-headers", "X-Remote-Group"),
                ("requestheader-username-headers", "X-Remote-User"),
                ("service-account-extend-token-expiration", "false"),
                ("service-account-lookup", "true"),
            ])
            .set_files(
                &API_SERVER,
                [
                    ("admission-control-config-file", "admission.yaml"),
                    ("client-ca-file", "ca.crt"),
                    ("etcd-cafile", "etcd-ca.crt"),
                    ("etcd-certfile", "etcd-client.crt"),
                    ("etcd-keyfile", "etcd-client.key"),
                    ("kubelet-certificate-authority", "ca.crt"),
                    ("kubelet-client-certificate", "kubelet-client.crt"),
                    ("kubelet-client-key", "kubelet-client.key"),
                    ("proxy-client-cert-file", "front-proxy-client.crt"),
                    ("proxy-client-key-file", "front-proxy-client.key"),
                    ("requestheader-client-ca-file", "front-proxy-ca.crt"),
                    ("service-account-key-file", "sa.pub"),
                    ("service-account-signing-key-file", "sa.key"),
                    ("tls-cert-file", "server.crt"),
                    ("tls-private-key-file", "server.key"),
                ],
            );
        let encryption = API_SERVER.file("encryption.yaml");
        let flags = self.secure(flags).set_if(settings.encryption_at_rest, "encryption-provider-config", encryption);
        let (flags, logs) = if settings.audit { (audited(flags), &[LOG_DIR][..]) } else { (flags, &[][..]) };
        // Not the API server itself: it refuses anonymous requests.
        self.static_pod(&API_SERVER, flags, logs, ("HTTP", HEALTH_PORT, "/livez"), "250m")
    }

    fn controller_manager(&self) -> crate::Result<StaticPod> {
        let settings = self.settings;
        let flags = Flags::new()
            .set("cluster-name", &settings.name)
            .set("cluster-cidr", settings.pod_cidr.to_string())
            .set("service-cluster-ip-range", settings.service_cidr.to_string())
            .set_all([
                ("allocate-node-cidrs", "true"),
                ("bind-address", "127.0.0.1"),
                // One year, as our own leaves; kubelets renew theirs by themselves.
                ("cluster-signing-duration", "8760h"),
                ("controllers", "*,token-cleaner-controller"),
                // Its own limit of 20 requests a second holds up the start of its controllers, each
                // of which gets an account and a token first, for four seconds. The API server
                // guards itself (priority and fairness).
                ("kube-api-burst", "150"),
                ("kube-api-qps", "100"),
                ("leader-elect", "true"),
                ("leader-elect-retry-period", RETRY),
                ("node-cidr-mask-size", "24"),
                ("profiling", "false"),
                ("terminated-pod-gc-threshold", "500"),
                ("use-service-account-credentials", "true"),
            ])
            .set_files(
                &CONTROLLER_MANAGER,
                [
                    ("authentication-kubeconfig", KUBECONFIG),
                    ("authorization-kubeconfig", KUBECONFIG),
                    ("client-ca-file", "ca.crt"),
                    ("cluster-signing-cert-file", "ca.crt"),
                    ("cluster-signing-key-file", "ca.key"),
                    ("kubeconfig", KUBECONFIG),
                    ("requestheader-client-ca-file", "front-proxy-ca.crt"),
                    ("root-ca-file", "ca.crt"),
                    ("service-account-private-key-file", "sa.key"),
                ],
            );
        let probe = ("HTTPS", 10257, "/healthz");
        self.static_pod(&CONTROLLER_MANAGER, self.secure(flags), &[], probe, "200m")
    }

    fn scheduler(&self) -> crate::Result<StaticPod> {
        let flags = Flags::new()
            .set_all([
                ("bind-address", "127.0.0.1"),
                ("leader-elect", "true"),
                ("leader-elect-retry-period", RETRY),
                ("profiling", "false"),
            ])
            .set_files(
                &SCHEDULER,
                [
                    ("authentication-kubeconfig", KUBECONFIG),
                    ("authorization-kubeconfig", KUBECONFIG),
                    ("kubeconfig", KUBECONFIG),
                ],
            );
        let probe = ("HTTPS", 10259, "/healthz");
        self.static_pod(&SCHEDULER, self.secure(flags), &[], probe, "100m")
    }

    /// The pod mounts the component's directory read-only, the directories that it writes, and
    /// nothing else of the host.
    fn static_pod(
        &self,
        component: &Component,
        flags: Flags,
        written: &[&str],
        probe: Probe,
        cpu: &'static str,
    ) -> crate::Result<StaticPod> {
        let (image, user) = ((self.image)(component.name)?, component.user(self.settings));
        let written = written.iter().map(|dir| ((*dir).to_owned(), false));
        let mounts = written.chain([(component.dir(), true)]).collect();
        Ok(StaticPod { name: component.name, image, flags, mounts, probe, cpu, user })
    }

    fn secure(&self, flags: Flags) -> Flags {
        flags.set("tls-min-version", if self.settings.tls13 { "VersionTLS13" } else { "VersionTLS12" })
    }

    /// Configuration files in the directory of the API server: name and value. The encryption
    /// configuration is a secret and not among them.
    pub(super) fn files(&self) -> Vec<(&'static str, Value)> {
        vec![("admission.yaml", self.admission())]
    }

    fn admission(&self) -> Value {
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

/// What the API server writes down of every request, and how much of it is kept: 30 days, 10 files
/// of 100 MB.
fn audited(flags: Flags) -> Flags {
    flags.set_all([
        ("audit-log-maxage", "30"),
        ("audit-log-maxbackup", "10"),
        ("audit-log-maxsize", "100"),
        ("audit-log-path", &format!("{LOG_DIR}/audit.log")),
        ("audit-policy-file", &API_SERVER.file("audit-policy.yaml")),
    ])
}
