//! The control plane's static pods and the files that they read. Every flag that turnup decides is
//! in this file; those that a setting assigns (`#: sets = …`) come after them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::{Cluster, ClusterSettings, DnsSettings, PodSecurity};
use crate::component::OverrideSubject;
use crate::config::ComponentName;
use crate::error::{Class, Context as _, Error, Result};
use crate::inventory::Host;
use crate::inventory::{Endpoint, HEALTH_PORT};
use crate::node::dns::{EXTERNAL, INTERNAL};
use crate::node::etcd_data::WAL;
use crate::node::layout;
use crate::node::node_config::{Content, Directory, File, User};

use super::authentication;
use super::component::{API_SERVER, COMPONENTS, CONTROLLER_MANAGER, Component, ETCD, Flags, SCHEDULER};
use super::configuration::{self, Configuration};
use super::etcd_members::Member;
use super::manifest::{PodProbe, StaticPod};

/// Where etcd has its data on the host's own disk.
pub(super) const ETCD_DIR: &str = "/var/lib/etcd";
/// Where etcd's own disk is mounted. Another place than without one, so that data there is not
/// hidden by the mount, nor taken for the disk's.
pub(super) const ETCD_DISK: &str = "/var/lib/etcd-disk";
/// Where the API server writes the audit log.
pub(super) const LOG_DIR: &str = "/var/log/kubernetes";
/// The kubeconfig of a component, in its directory.
pub(super) const KUBECONFIG: &str = "kubeconfig";
/// Whose tokens the API server takes, in its directory; only where there is something to say.
const AUTHENTICATION: &str = "authentication.yaml";
/// How it reaches the machine authenticator of its host, in its directory; only where there is one.
pub(super) const MACHINES: &str = "machine-authenticator.conf";
/// How long the API server remembers what that said. A kubelet asks several times with one token.
const MACHINES_REMEMBERED: &str = "30s";
/// The scheduler's configuration, in its directory.
pub(super) const SCHEDULER_CONFIG: &str = "scheduler.yaml";
/// The cluster's authority with those above it, in the directory of the controller manager: what
/// pods are told to trust. Only where there are some above it.
pub(super) const ROOT_BUNDLE: &str = "root-ca.crt";
/// All trusted items of the cluster's authority, in the same directory; only where there are others
/// than the one that signs, which `ca.crt` is: the signer takes a file with one certificate.
pub(super) const CA_BUNDLE: &str = "ca-bundle.crt";
/// How the names of the keys for tokens of service accounts begin: `sa.key` signs, and all that
/// end in `.pub` verify.
pub(super) const TOKEN_KEY: &str = "sa";
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
    let health = Directory { path: layout::HEALTHCHECK.into(), mode: 0o755, owner: 0 };
    own.into_iter().chain(data).chain([logs, health]).collect()
}

/// What the manifests are made from.
pub(super) struct ControlPlane<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) host: &'a Host,
    /// The host's member of etcd.
    pub(super) member: &'a Member,
    /// Image references by component.
    pub(super) image: &'a dyn Fn(&str) -> Result<String>,
}

impl ControlPlane<'_> {
    const fn configuration(&self, component: ComponentName) -> Configuration<'_> {
        let subject = OverrideSubject { host: self.host.name.as_str(), role: self.host.role.name(), group: "" };
        Configuration { settings: self.settings(), component, subject }
    }

    /// All static pods, etcd first; `files` are those of the host.
    pub(super) fn static_pods(&self, files: &[File]) -> Result<Vec<StaticPod>> {
        Ok(vec![self.etcd(files)?, self.apiserver(files)?, self.controller_manager(files)?, self.scheduler(files)?])
    }

    const fn settings(&self) -> &ClusterSettings {
        &self.cluster.settings
    }

    fn etcd(&self, files: &[File]) -> Result<StaticPod> {
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
            .set("initial-cluster-token", format!("turnup-{}", self.settings().name))
            .set_all([
                // Its data are there before it starts (`node::etcd_first_start`).
                ("initial-cluster-state", "existing"),
                ("listen-metrics-urls", "http://127.0.0.1:2381"),
                ("client-cert-auth", "true"),
                ("peer-client-cert-auth", "true"),
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
            .set_if(self.settings().tls13, "tls-min-version", "TLS1.3");
        let probe = ("HTTP", 2381, "/livez");
        let pod = self.static_pod(&ETCD, flags, files, &[dir], probe)?;
        Ok(StaticPod { required: Some(format!("{dir}/data/{WAL}")), ..pod })
    }

    fn apiserver(&self, files: &[File]) -> Result<StaticPod> {
        let settings = self.settings();
        let flags = self
            .issuers()
            .into_iter()
            .fold(Flags::new(), |flags, issuer| flags.add("service-account-issuer", issuer))
            .set("advertise-address", self.host.address.to_string())
            .set("authorization-mode", self.authorization_modes())
            .set("enable-admission-plugins", self.admission_plugins().join(","))
            .set("secure-port", settings.api_port.to_string())
            .set("service-cluster-ip-range", settings.service_cidr.to_string())
            .set("service-node-port-range", format!("{}-{}", settings.node_ports.0, settings.node_ports.1))
            .set_all([
                ("allow-privileged", "true"),
                // Probes without a certificate go to `turnup node healthcheck`.
                ("anonymous-auth", "false"),
                ("enable-bootstrap-token-auth", "true"),
                ("etcd-servers", "https://127.0.0.1:2379"),
                ("kubelet-preferred-address-types", "InternalIP,Hostname"),
                ("requestheader-allowed-names", "front-proxy-client"),
                ("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
                ("requestheader-group-headers", "X-Remote-Group"),
                ("requestheader-username-headers", "X-Remote-User"),
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
                    ("service-account-signing-key-file", "sa.key"),
                    ("tls-cert-file", "server.crt"),
                    ("tls-private-key-file", "server.key"),
                ],
            );
        let control_plane = &settings.control_plane;
        let own = API_SERVER.file(TOKEN_KEY);
        let is_key = |path: &&str| path.strip_suffix(".pub").is_some_and(|path| path.starts_with(&own));
        let keys = files.iter().map(|file| file.path.as_str()).filter(is_key);
        let flags = keys.fold(flags, |flags, key| flags.add("service-account-key-file", key));
        let mut flags = self
            .secure(flags)
            .set("encryption-provider-config", API_SERVER.file("encryption.yaml"))
            .set("encryption-provider-config-automatic-reload", "true");
        if files.iter().any(|file| file.path == API_SERVER.file(AUTHENTICATION)) {
            flags = flags.set("authentication-config", API_SERVER.file(AUTHENTICATION));
        }
        if !control_plane.authentication_webhook_file.is_empty() {
            flags = flags.set("authentication-token-webhook-version", "v1");
        }
        if files.iter().any(|file| file.path == API_SERVER.file(MACHINES)) {
            flags = flags
                .set("authentication-token-webhook-config-file", API_SERVER.file(MACHINES))
                .set("authentication-token-webhook-version", "v1")
                .set("authentication-token-webhook-cache-ttl", MACHINES_REMEMBERED);
        }
        if !control_plane.authorization_webhook_file.is_empty() {
            flags = flags.set("authorization-webhook-version", "v1");
        }
        let mut written = Vec::new();
        if control_plane.audit {
            flags = flags
                .set("audit-log-path", format!("{LOG_DIR}/audit.log"))
                .set("audit-policy-file", API_SERVER.file("audit-policy.yaml"));
            written.push(LOG_DIR);
        }
        // A socket can be connected to only where it may be written to.
        written.extend(control_plane.encryption_kms_directory());
        // Not the API server itself: it refuses anonymous requests.
        let pod = self.static_pod(&API_SERVER, flags, files, &written, ("HTTP", HEALTH_PORT, "/livez"))?;
        Ok(StaticPod { annotations: self.name_annotations(), ..pod })
    }

    /// In kops' words: other programs that keep names find there which ones lead to this pod.
    fn name_annotations(&self) -> BTreeMap<&'static str, String> {
        let names = self.settings().dns.as_ref().map(DnsSettings::api_names);
        names.into_iter().flat_map(|names| [EXTERNAL, INTERNAL].into_iter().zip(names)).collect()
    }

    /// The first one issues tokens; those of the Service's own name stay good beside it.
    fn issuers(&self) -> Vec<String> {
        let own = format!("https://kubernetes.default.svc.{}", self.settings().cluster_domain);
        let named = &self.settings().control_plane.service_account_issuer;
        let named = (!named.is_empty() && *named != own).then(|| named.clone());
        named.into_iter().chain([own]).collect()
    }

    fn authorization_modes(&self) -> &'static str {
        if self.settings().control_plane.authorization_webhook_file.is_empty() {
            "Node,RBAC"
        } else {
            "Node,RBAC,Webhook"
        }
    }

    /// Those beside the ones that Kubernetes has on.
    fn admission_plugins(&self) -> Vec<String> {
        let control_plane = &self.settings().control_plane;
        let switched = [
            (true, "NodeRestriction"),
            (control_plane.deny_external_ips, "DenyServiceExternalIPs"),
            (control_plane.event_rate_limit, "EventRateLimit"),
        ];
        let mut plugins: Vec<String> =
            switched.into_iter().filter(|(on, _)| *on).map(|(_, plugin)| plugin.to_owned()).collect();
        for plugin in &control_plane.enable_admission_plugins {
            if !plugins.contains(plugin) {
                plugins.push(plugin.clone());
            }
        }
        plugins
    }

    fn controller_manager(&self, files: &[File]) -> Result<StaticPod> {
        let settings = self.settings();
        let has = |name: &&str| files.iter().any(|file| file.path == CONTROLLER_MANAGER.file(name));
        let trusted = [CA_BUNDLE].into_iter().find(has).unwrap_or("ca.crt");
        let root = [ROOT_BUNDLE].into_iter().find(has).unwrap_or(trusted);
        let flags = Flags::new()
            .set("cluster-name", &settings.name)
            .set("cluster-cidr", settings.pod_cidr.to_string())
            .set("service-cluster-ip-range", settings.service_cidr.to_string())
            .set_all([
                ("allocate-node-cidrs", "true"),
                ("bind-address", "127.0.0.1"),
                ("leader-elect", "true"),
                ("leader-elect-retry-period", RETRY),
                ("use-service-account-credentials", "true"),
            ])
            .set_files(
                &CONTROLLER_MANAGER,
                [
                    ("authentication-kubeconfig", KUBECONFIG),
                    ("authorization-kubeconfig", KUBECONFIG),
                    ("client-ca-file", trusted),
                    ("cluster-signing-cert-file", "ca.crt"),
                    ("cluster-signing-key-file", "ca.key"),
                    ("kubeconfig", KUBECONFIG),
                    ("requestheader-client-ca-file", "front-proxy-ca.crt"),
                    ("root-ca-file", root),
                    ("service-account-private-key-file", "sa.key"),
                ],
            );
        let probe = ("HTTPS", 10257, "/healthz");
        self.static_pod(&CONTROLLER_MANAGER, self.secure(flags), files, &[], probe)
    }

    fn scheduler(&self, files: &[File]) -> Result<StaticPod> {
        let flags = Flags::new().set("bind-address", "127.0.0.1").set_files(
            &SCHEDULER,
            [
                ("authentication-kubeconfig", KUBECONFIG),
                ("authorization-kubeconfig", KUBECONFIG),
                ("config", SCHEDULER_CONFIG),
            ],
        );
        let probe = ("HTTPS", 10259, "/healthz");
        self.static_pod(&SCHEDULER, self.secure(flags), files, &[], probe)
    }

    /// `KubeSchedulerConfiguration`: the user's own file, or one profile that spreads or packs.
    pub(super) fn scheduler_config(&self) -> Result<Value> {
        let control_plane = &self.settings().control_plane;
        let mut config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        });
        if control_plane.scheduler_strategy == "pack" {
            config["profiles"] = json!([{"schedulerName": "default-scheduler", "pluginConfig": [packing()]}]);
        }
        let of = self.configuration(ComponentName::KubeScheduler);
        of.set_fields(&mut config, true);
        if !control_plane.scheduler_config_file.is_empty() {
            configuration::merge(&mut config, self.own_scheduler_config(&control_plane.scheduler_config_file)?);
        }
        of.set_fields(&mut config, false);
        let ours = json!({
            "clientConnection": {"kubeconfig": SCHEDULER.file(KUBECONFIG)},
            "leaderElection": {"leaderElect": true, "retryPeriod": RETRY},
        });
        of.set_own_fields(&mut config, &ours)?;
        configuration::merge(&mut config, ours);
        Ok(config)
    }

    fn own_scheduler_config(&self, file: &str) -> Result<Value> {
        const NAME: &str = "phase2.scheduler.config_file";
        let text = configuration::read(self.cluster, NAME, file)?;
        require_kind(NAME, file, &text, ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"))
    }

    /// The pod mounts the component's directory read-only, the directories that it writes, and
    /// nothing else of the host.
    fn static_pod(
        &self,
        component: &Component,
        flags: Flags,
        files: &[File],
        written: &[&str],
        probe: PodProbe,
    ) -> Result<StaticPod> {
        let (image, user) = ((self.image)(component.name)?, component.user(self.settings()));
        let written = written.iter().map(|dir| ((*dir).to_owned(), false));
        let mounts = written.chain([(component.dir(), true)]).collect();
        let configuration = self.configuration(component.program);
        let flags = configuration.with_flags(flags, |name| component.file(name))?;
        let requests = configuration.requests();
        let files = component.digest_files(files, &flags);
        let (required, annotations) = (None, BTreeMap::new());
        Ok(StaticPod {
            name: component.name,
            image,
            flags,
            mounts,
            required,
            probe,
            requests,
            files,
            user,
            annotations,
        })
    }

    fn secure(&self, flags: Flags) -> Flags {
        flags.set("tls-min-version", if self.settings().tls13 { "VersionTLS13" } else { "VersionTLS12" })
    }

    /// Configuration files in the directory of the API server. The encryption configuration is a
    /// secret and not among them.
    pub(super) fn api_server_files(&self) -> Result<Vec<(&'static str, Content)>> {
        let control_plane = &self.settings().control_plane;
        let mut files = vec![("admission.yaml", Content::Yaml(self.admission()))];
        if control_plane.audit {
            files.push(("audit-policy.yaml", Content::Text(self.audit_policy(&control_plane.audit_policy_file)?)));
        }
        files.extend(authentication::find(self.cluster)?.map(|file| (AUTHENTICATION, Content::Yaml(file))));
        Ok(files)
    }

    fn audit_policy(&self, file: &str) -> Result<String> {
        const NAME: &str = "phase2.security.audit_policy_file";
        if file.is_empty() {
            return self.cluster.source.read_text("templates/bootstrap/audit-policy.yaml");
        }
        let text = configuration::read(self.cluster, NAME, file)?;
        require_kind(NAME, file, &text, ("audit.k8s.io/v1", "Policy"))?;
        Ok(text)
    }

    fn admission(&self) -> Value {
        let control_plane = &self.settings().control_plane;
        let limits = control_plane.event_rate_limit.then(event_rate_limit);
        let pod_security = control_plane.pod_security.as_ref().map(pod_security);
        let plugins: Vec<Value> = limits.into_iter().chain(pod_security).collect();
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})
    }
}

/// The value of a file of the user's, of this version and kind: with another one the component
/// would not start.
fn require_kind(setting: &str, file: &str, text: &str, (version, kind): (&str, &str)) -> Result<Value> {
    let what = format!("{setting}: {file} is no YAML");
    let value: Value = serde_saphyr::from_str(text).context_class(Class::Config, what)?;
    if value["kind"] == kind && value["apiVersion"] == version {
        return Ok(value);
    }
    Err(Error::config(format!("{setting}: {file} is not of the kind {kind} in {version}")))
}

fn event_rate_limit() -> Value {
    let limits = json!([
        {"type": "Server", "qps": 100, "burst": 1000},
        {"type": "Namespace", "qps": 50, "burst": 100, "cacheSize": 2000},
    ]);
    json!({"name": "EventRateLimit", "configuration": {
        "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": limits,
    }})
}

fn pod_security(levels: &PodSecurity) -> Value {
    let version = "latest";
    json!({"name": "PodSecurity", "configuration": {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": {
            "enforce": levels.enforce, "enforce-version": version,
            "audit": levels.warn, "audit-version": version,
            "warn": levels.warn, "warn-version": version,
        },
        "exemptions": {"usernames": [], "runtimeClasses": [], "namespaces": levels.exempt_namespaces},
    }})
}

/// Pods go where least room is left.
fn packing() -> Value {
    let resources = json!([{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]);
    json!({"name": "NodeResourcesFit", "args": {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeResourcesFitArgs",
        "scoringStrategy": {"type": "MostAllocated", "resources": resources},
    }})
}

/// The names and addresses at which clients reach the API server of one host.
pub(super) fn api_names(settings: &ClusterSettings, api: &Endpoint, host: &Host) -> Result<Vec<String>> {
    let service = settings.service_cidr.address(1);
    let service = service.ok_or_else(|| Error::config("phase2.service_cidr is too small"))?;
    let mut names: Vec<String> =
        ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"].map(Into::into).into();
    names.push(format!("kubernetes.default.svc.{}", settings.cluster_domain));
    names.extend([host.name.clone(), host.address.to_string(), service.to_string(), "127.0.0.1".into()]);
    names.push(api.host.clone());
    names.extend(api.internal_host.iter().chain(&settings.extra_sans).cloned());
    names.extend(settings.dns.iter().flat_map(DnsSettings::api_names));
    names.sort();
    names.dedup();
    Ok(names)
}
