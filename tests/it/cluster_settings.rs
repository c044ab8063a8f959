//! Every setting of a component, with another value than its default, on a real cluster: what the
//! running components say of themselves is what the settings say. A setting without an effect that
//! shows fails here.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnup::artifacts::Digest;
use turnup::component::{find_flag, is_same};
use turnup::config::{Assignment, ComponentName, Destination, Settings, TreeSource, flag_text};
use turnup::exec::Run;

use crate::cluster_agent::without_agents;
use crate::cluster_reset::on_host;
use crate::cluster_support::Site;

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";
/// The image of a static pod of the user's own, which no registry has.
const OWN_IMAGE: &str = "registry.example.com/none";

/// Another value for each setting that a component has as it is.
const FLIPPED: &[(&str, &str)] = &[
    ("phase2.max_pods", "100"),
    ("phase2.network.node_cidr_bits", "25"),
    ("phase2.kubelet.system_reserved", "memory=128Mi"),
    ("phase2.kubelet.kube_reserved", "memory=128Mi"),
    ("phase2.kubelet.eviction_hard", "memory.available=120Mi,nodefs.available=512Mi"),
    ("phase2.kubelet.log_level", "2"),
    ("phase2.kubelet.eviction_soft", "memory.available=150Mi"),
    ("phase2.kubelet.eviction_soft_grace_period", "memory.available=2m"),
    ("phase2.kubelet.eviction_max_pod_grace_period", "30"),
    ("phase2.kubelet.eviction_minimum_reclaim", "nodefs.available=100Mi"),
    ("phase2.kubelet.image_gc_high_threshold", "99"),
    ("phase2.kubelet.image_gc_low_threshold", "98"),
    ("phase2.kubelet.image_maximum_gc_age", "240h"),
    ("phase2.kubelet.serialize_image_pulls", "n"),
    ("phase2.kubelet.max_parallel_image_pulls", "3"),
    ("phase2.kubelet.container_log_max_size", "5Mi"),
    ("phase2.kubelet.container_log_max_files", "3"),
    ("phase2.kubelet.cpu_manager_policy", "static"),
    ("phase2.kubelet.reserved_cpus", "0"),
    ("phase2.kubelet.topology_manager_policy", "best-effort"),
    ("phase2.kubelet.memory_manager_policy", "Static"),
    ("phase2.kubelet.protect_kernel_defaults", "n"),
    ("phase2.kubelet.seccomp_default", "n"),
    ("phase2.kubelet.pod_pids_limit", "2048"),
    ("phase2.kubelet.streaming_idle_timeout", "4m"),
    ("phase2.kubelet.event_record_qps", "6"),
    ("phase2.kubelet.allowed_unsafe_sysctls", "net.core.somaxconn"),
    ("phase2.kubelet.shutdown_grace_period", "20s"),
    ("phase2.kubelet.shutdown_grace_period_critical", "5s"),
    ("phase2.kubelet.node_status_update_frequency", "9s"),
    ("phase2.kubelet.cpu_cfs_quota", "n"),
    ("phase2.kubelet.credential_provider_config", "credentials.yaml"),
    ("phase2.kubelet.registry_pull_qps", "6"),
    ("phase2.apiserver.event_ttl", "2h"),
    ("phase2.apiserver.max_requests_inflight", "300"),
    ("phase2.apiserver.max_mutating_requests_inflight", "150"),
    ("phase2.apiserver.memory_request", "200Mi"),
    ("phase2.apiserver.log_level", "1"),
    ("phase2.apiserver.disable_admission_plugins", "DefaultIngressClass"),
    ("phase2.apiserver.authentication_webhook_file", "webhook.conf"),
    ("phase2.apiserver.authorization_webhook_file", "webhook.conf"),
    ("phase2.apiserver.audit_webhook_file", "webhook.conf"),
    ("phase2.apiserver.request_timeout", "50s"),
    ("phase2.apiserver.not_ready_toleration", "200"),
    ("phase2.apiserver.unreachable_toleration", "201"),
    ("phase2.apiserver.runtime_config", "api/beta=true"),
    ("phase2.apiserver.cpu_request", "200m"),
    ("phase2.controller_manager.node_monitor_grace_period", "60s"),
    ("phase2.controller_manager.terminated_pod_gc_threshold", "400"),
    ("phase2.controller_manager.hpa_sync_period", "20s"),
    ("phase2.controller_manager.hpa_downscale_stabilization", "4m"),
    ("phase2.controller_manager.signing_duration", "4380h"),
    ("phase2.controller_manager.log_level", "1"),
    ("phase2.controller_manager.node_monitor_period", "6s"),
    ("phase2.controller_manager.concurrent_syncs", "6"),
    ("phase2.controller_manager.kube_api_qps", "90"),
    ("phase2.controller_manager.kube_api_burst", "140"),
    ("phase2.controller_manager.controllers", "*,token-cleaner-controller,-ttl-after-finished-controller"),
    ("phase2.controller_manager.cpu_request", "150m"),
    ("phase2.scheduler.percentage_of_nodes", "50"),
    ("phase2.scheduler.log_level", "1"),
    ("phase2.scheduler.kube_api_qps", "40"),
    ("phase2.scheduler.kube_api_burst", "80"),
    ("phase2.scheduler.cpu_request", "90m"),
    ("phase2.etcd.quota_gb", "3"),
    ("phase2.etcd.log_level", "warn"),
    ("phase2.etcd.heartbeat_interval_ms", "150"),
    ("phase2.etcd.election_timeout_ms", "1500"),
    ("phase2.etcd.snapshot_count", "9000"),
    ("phase2.etcd.compaction_interval", "6m"),
    ("phase2.etcd.max_request_kb", "2048"),
    ("phase2.etcd.cpu_request", "90m"),
    ("phase2.etcd.extensive_metrics", "y"),
    ("phase2.proxy_mode", "iptables"),
    ("phase3.kube_proxy_node_port_addresses", "10.123.21.0/24"),
    ("phase3.kube_proxy_masquerade_all", "y"),
    ("phase3.kube_proxy_sync_period", "40s"),
    ("phase3.kube_proxy_log_level", "1"),
    ("phase2.security.audit_max_age", "20"),
    ("phase2.security.audit_max_backups", "5"),
    ("phase2.security.audit_max_size_mb", "50"),
    ("phase2.security.profiling", "y"),
    ("phase2.security.extend_tokens", "y"),
    ("phase2.security.tls_ciphers", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
];
/// Those that the test's machine cannot have, and why.
const LEFT_OUT: &[&str] = &[
    // Without cgroup v2 there is no swap for pods.
    "phase2.kubelet.swap_behavior",
    // Local hosts cannot change the table of the machine.
    "phase3.kube_proxy_conntrack_per_core",
];
/// Settings that become more than one value, or another one than they say.
const FURTHER: &[(&str, &str)] = &[
    ("phase2.kubelet.node_labels", "environment=staging"),
    ("phase2.etcd.defragment_interval", "1h"),
    ("phase2.apiserver.oidc_issuer_url", "https://sso.example.com"),
    ("phase2.apiserver.oidc_client_id", "turnup"),
    ("phase2.apiserver.oidc_username_claim", "email"),
    ("phase2.apiserver.oidc_username_prefix", "sso:"),
    ("phase2.apiserver.oidc_groups_claim", "teams"),
    ("phase2.apiserver.oidc_groups_prefix", "team:"),
    ("phase2.apiserver.oidc_required_claims", "hd=example.com"),
    ("phase2.apiserver.enable_admission_plugins", "PodNodeSelector"),
    ("phase2.apiserver.service_account_issuer", "https://oidc.example.com/it"),
    ("phase2.scheduler.strategy", "pack"),
    ("phase2.scheduler.config_file", "scheduler.yaml"),
    ("phase2.security.audit_policy_file", "audit.yaml"),
    ("phase2.security.encryption_resources", "secrets,configmaps"),
    ("phase2.security.pod_security_enforce", "privileged"),
    ("phase2.security.pod_security_warn", "baseline"),
    ("phase2.security.pod_security_exempt_namespaces", "kube-system,storage"),
    ("phase2.security.deny_external_ips", "n"),
    ("phase2.security.event_rate_limit", "n"),
    ("phase2.security.verify_image_credentials", "n"),
    ("phase2.security.tls13", "n"),
    ("phase2.network.node_port_first", "31000"),
    ("phase2.network.node_port_last", "31999"),
    ("phase2.pki.leaf_lifetime", "720h"),
    ("phase2.pki.key_algorithm", "ecdsa-p384"),
    ("phase2.pki.token_lifetime", "40m"),
    ("phase2.host_timeout", "25m"),
    ("phase2.feature_gates", "ContextualLogging=false"),
    ("phase2.overrides", "overrides.json"),
    ("phase2.host.sysctls", "net.core.somaxconn=4097,net.ipv4.ip_local_port_range=20000 60000"),
    ("phase2.host.extra_hosts", "registry.example.com=192.0.2.40,six.example.com=2001:db8::40"),
    ("phase2.host.open_files", "16384"),
    ("phase2.host.static_pods", "pod.yaml"),
    ("phase1.local.memory_limit", "8000Mi"),
    ("phase1.local.cpu_limit", "3500m"),
    (
        "phase2.runtime.registry_mirrors",
        r#"[{"registry": "docker.io", "mirrors": ["https://mirror.example.com"], "ca_file": "ca.crt"}]"#,
    ),
    ("phase2.runtime.registry_auth_file", "registry.json"),
    ("phase2.runtime.log_level", "warn"),
    ("phase2.runtime.max_concurrent_downloads", "5"),
    ("phase2.runtime.config_file", "containerd.toml"),
    ("phase2.artifacts.preload_images", "app.tar"),
    ("phase2.artifacts.image_registry", "registry.example.com:5000/k8s"),
    // No host has this address: what the cluster does inside must go round it.
    ("phase2.http_proxy", "http://192.0.2.1:3128"),
    ("phase2.no_proxy", ".example.com"),
    ("phase2.proxy_ca_file", "ca.crt"),
];

fn write_files(site: &Site) {
    let write = |name: &str, text: &str| fs_err::write(site.dir.join(name), text).unwrap();
    let provider = json!({"name": "pass", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "matchImages": ["registry.example.com"], "defaultCacheDuration": "1m"});
    let credentials =
        json!({"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [provider]});
    write("credentials.yaml", &credentials.to_string());
    write("pass.sh", "#!/bin/sh\nexit 1\n");
    let webhook = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    write("webhook.conf", &webhook.to_string());
    let container = json!({"name": "own", "image": OWN_IMAGE});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own", "namespace": "kube-system"},
        "spec": {"hostNetwork": true, "containers": [container]},
    });
    write("pod.yaml", &pod.to_string());
    write(
        "audit.yaml",
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, omitStages: [RequestReceived]}]\n",
    );
    write(
        "scheduler.yaml",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: 20\n",
    );
    let authority = rcgen::generate_simple_self_signed(["proxy.example.com".to_owned()]).unwrap();
    write("ca.crt", &authority.cert.pem());
    write("registry.json", &json!({"auths": {"registry.example.com": {"auth": "dXNlcjp3b3Jk"}}}).to_string());
    write(
        "containerd.toml",
        "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.other]\nruntime_type = 'io.containerd.runc.v2'\n",
    );
    write_image(&site.dir.join("app.tar"));
    let overrides = json!({
        "kubelet": {"nodeStatusMaxImages": 40, "containerLogMaxWorkers": 2},
        "roles": {"worker": {"kubelet": {"nodeStatusMaxImages": 41}}},
        "hosts": {CONTROL_PLANE: {"kubelet": {"containerLogMaxWorkers": 3}}},
        "kube-apiserver": {"goaway-chance": 0.001},
        "kube-controller-manager": {"concurrent-gc-syncs": 21},
        "etcd": {"max-txn-ops": 200},
        "kube-scheduler": {"podInitialBackoffSeconds": 2},
        "kube-proxy": {"configSyncPeriod": "10m"},
    });
    write("overrides.json", &overrides.to_string());
}

/// The smallest image that there is, as `docker save` writes one.
fn write_image(path: &std::path::Path) {
    let layer = vec![0; 1024];
    let rootfs = json!({"type": "layers", "diff_ids": [format!("sha256:{}", Digest::of(&layer))]});
    let config = json!({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).to_string();
    let manifest = json!([{"Config": "config.json", "RepoTags": ["app:1"], "Layers": ["app-layer.tar"]}]).to_string();
    let mut archive = tar::Builder::new(fs_err::File::create(path).unwrap());
    let files = [("manifest.json", manifest.as_bytes()), ("config.json", config.as_bytes()), ("app-layer.tar", &layer)];
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).unwrap();
    }
    archive.into_inner().unwrap();
}

/// Settings of components that this test does not know: a new one is to be shown here as well.
fn find_forgotten(settings: &Settings) -> Vec<String> {
    let known: BTreeSet<&str> = FLIPPED.iter().map(|(name, _)| *name).chain(LEFT_OUT.iter().copied()).collect();
    let schema = settings.schema();
    let set = schema.ordered().iter().copied().filter(|symbol| !schema.rule(*symbol).sets.is_empty());
    set.map(|symbol| schema.name(symbol).to_owned()).filter(|name| !known.contains(name.as_str())).collect()
}

/// What runs, as the components say it.
struct Effective {
    kubelet: Value,
    flagz: String,
    scheduler: Value,
    kube_proxy: Value,
    commands: String,
    pods: Value,
}

fn kubelet(site: &Site, node: &str) -> Value {
    let text = site.kubectl(&["get", "--raw", &format!("/api/v1/nodes/{node}/proxy/configz")]);
    serde_json::from_str::<Value>(&text).unwrap()["kubeletconfig"].clone()
}

/// What kube-proxy reads, and has read: `up` waits for pods of this configuration.
fn kube_proxy(site: &Site) -> Value {
    let args = ["get", "configmap", "kube-proxy", "--namespace=kube-system", "--output=json"];
    let map: Value = serde_json::from_str(&site.kubectl(&args)).unwrap();
    serde_saphyr::from_str(map["data"]["config.yaml"].as_str().unwrap()).unwrap()
}

impl Effective {
    fn of(site: &Site) -> Self {
        let file = on_host(site, CONTROL_PLANE, "cat /etc/kubernetes/kube-scheduler/scheduler.yaml");
        let every = "for cmdline in /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$cmdline 2>/dev/null; done";
        let pods = site.kubectl(&["get", "pods", "--namespace=kube-system", "--output=json"]);
        Self {
            kubelet: kubelet(site, WORKER),
            flagz: site.kubectl(&["get", "--raw", "/flagz"]),
            scheduler: serde_saphyr::from_str(&file).unwrap(),
            commands: on_host(site, CONTROL_PLANE, every),
            kube_proxy: kube_proxy(site),
            pods: serde_json::from_str(&pods).unwrap(),
        }
    }

    fn flagz(&self, flag: &str) -> Option<&str> {
        find_flag(&self.flagz, flag)
    }

    fn request(&self, component: ComponentName, resource: &str) -> Option<&Value> {
        let pods = self.pods["items"].as_array()?;
        let pod = pods.iter().find(|pod| pod["metadata"]["labels"]["component"] == component.name())?;
        pod["spec"]["containers"][0]["resources"]["requests"].get(resource)
    }

    fn has(&self, assignment: &Assignment) -> bool {
        let component = assignment.component;
        match &assignment.destination {
            Destination::Field(path) => {
                let config = match component {
                    ComponentName::Kubelet => &self.kubelet,
                    ComponentName::KubeProxy => &self.kube_proxy,
                    _ => &self.scheduler,
                };
                // kubelet leaves out what is false.
                let found = path.iter().try_fold(config, |value, part| value.get(part));
                contains(found.unwrap_or(&Value::Bool(false)), &assignment.value)
            }
            Destination::Flag(_) if component == ComponentName::Kubelet => self
                .commands
                .contains("--image-credential-provider-config=/etc/kubernetes/kubelet/image-credential-provider"),
            Destination::Flag(flag) => {
                let wanted = flag_text(&assignment.value).unwrap();
                let is_wanted = |found: &str| assignment.is_file || is_same(found, &wanted);
                if component == ComponentName::KubeApiserver && flag != "runtime-config" {
                    return self.flagz(flag).is_some_and(is_wanted);
                }
                let begin = format!("--{flag}=");
                self.commands.lines().any(|line| line.strip_prefix(&begin).is_some_and(is_wanted))
            }
            Destination::Request(resource) => self.request(component, resource) == Some(&assignment.value),
        }
    }
}

fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| contains(found, value)))
        }
        (Value::String(found), Value::String(wanted)) => is_same(found, wanted),
        _ => found == wanted,
    }
}

#[test]
#[ignore = "some minutes: make test-settings"]
fn every_setting_of_a_component_shows_in_what_runs() {
    let Some(site) = Site::of_cluster("settings", "10.123.21.0/24", 1) else { return };
    write_files(&site);
    let files = json!([{"name": "pass", "path": "/usr/libexec/kubernetes/credential-providers/pass", "file": "pass.sh", "mode": "0755"}]);
    let pairs = FLIPPED.iter().chain(FURTHER).map(|(name, value)| format!("{name}={value}"));
    let pairs: Vec<String> = pairs.chain([format!("phase2.host.file_assets={files}")]).collect();
    let mut words = vec!["config", "set"];
    words.extend(pairs.iter().map(String::as_str));
    site.ok(&words);
    for name in ["webhook.conf", "registry.json"] {
        fs_err::set_permissions(site.dir.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let settings = Settings::load(&site.dir.join(".config.json"), &TreeSource::embedded()).unwrap();
    assert_eq!(find_forgotten(&settings), Vec::<String>::new(), "settings of components that are not flipped here");
    assert_eq!(site.ok(&["config", "check"]).code, Some(0));
    site.ok(&["up"]);

    let effective = Effective::of(&site);
    let assignments = settings.assignments().unwrap();
    let flipped = assignments.iter().filter(|assignment| !assignment.is_default);
    let (mut seen, mut missing) = (0, Vec::new());
    for assignment in flipped {
        if effective.has(assignment) {
            seen += 1;
        } else {
            let Assignment { component, destination, value, origin, .. } = assignment;
            missing.push(format!("{origin}: {component} {destination} is not {value}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "of {} that show {seen}", assignments.len());
    assert!(seen > FLIPPED.len(), "{seen}");
    further_settings_show(&site, &effective);
    the_container_runtime_is_what_the_settings_say(&site);
    overrides_show(&site, &effective);
    settings_of_hosts_show(&site);
    a_component_that_does_not_run_as_declared_is_named(&site);
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    what_is_read_again_restarts_nothing_and_the_rest_restarts_its_reader(&site);
    settings_of_hosts_go(&site);
    site.ok(&["down", "--yes"]);
}

/// Values in effect that differ from the node configs, as `turnup status` names them.
fn find_drifts(site: &Site) -> Vec<Value> {
    // A kubelet that restarts does not answer, which is no success.
    let status: Value = serde_json::from_str(&site.run(&["status", "--output", "json"]).out).unwrap();
    status["drifts"].as_array().cloned().unwrap_or_default()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed().as_secs() < 180, "{what} did not come");
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

fn a_component_that_does_not_run_as_declared_is_named(site: &Site) {
    assert_eq!(find_drifts(site), Vec::<Value>::new(), "all that is declared is in effect");
    let drifts = without_agents(site, &[WORKER], || {
        on_host(site, WORKER, "sed --in-place 's/^podPidsLimit: .*/podPidsLimit: 4000/' /var/lib/kubelet/config.yaml");
        on_host(site, WORKER, "systemctl restart kubelet");
        wait_until("the edited value", || find_drifts(site).iter().any(|drift| drift["effective"] == "4000"));
        find_drifts(site)
    });
    assert_eq!(drifts.len(), 1, "{drifts:?}");
    assert_eq!([&drifts[0]["node"], &drifts[0]["component"], &drifts[0]["entry"]], [WORKER, "kubelet", "podPidsLimit"]);
    // The host's agent mends the file and restarts kubelet.
    let configz = format!("/api/v1/nodes/{WORKER}/proxy/configz");
    wait_until("the declared value", || {
        site.try_kubectl(&["get", "--raw", &configz]).is_ok_and(|said| said.contains("\"podPidsLimit\":2048"))
    });
    assert_eq!(find_drifts(site), Vec::<Value>::new());
}

fn further_settings_show(site: &Site, effective: &Effective) {
    let ran = |script: &str| on_host(site, CONTROL_PLANE, script);
    let told = || ran("journalctl --unit=turnup-agent --output=cat");
    wait_until("a defragmentation", || told().contains("defragmented the etcd member"));
    for (flag, wanted) in [
        ("authorization-mode", "Node,RBAC,Webhook"),
        ("enable-admission-plugins", "NodeRestriction,PodNodeSelector"),
        ("service-account-issuer", "https://oidc.example.com/it,https://kubernetes.default.svc.cluster.local"),
        ("feature-gates", "ContextualLogging=false"),
        ("service-node-port-range", "31000-31999"),
    ] {
        let listed = effective.commands.lines().filter_map(|line| line.strip_prefix(&format!("--{flag}=")));
        let listed = listed.collect::<Vec<_>>().join(",");
        let found = effective.flagz(flag);
        assert!(
            found.is_some_and(|found| is_same(found, wanted)) || listed.contains(wanted),
            "{flag}: {found:?} {listed}"
        );
    }
    assert_eq!(effective.kubelet["featureGates"]["ContextualLogging"], false);
    assert_eq!(effective.kubelet["imagePullCredentialsVerificationPolicy"], "NeverVerify");
    assert_eq!(effective.kubelet["tlsMinVersion"], "VersionTLS12");
    assert_eq!(effective.scheduler["podMaxBackoffSeconds"], 20);
    let node = site.kubectl(&["get", "node", WORKER, "--output=jsonpath={.metadata.labels.environment}"]);
    assert_eq!(node, "staging");
    let certificate = ran("cat /etc/kubernetes/kube-apiserver/server.crt");
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).unwrap();
    let certificate = pem.parse_x509().unwrap();
    let left = certificate.validity().not_after.timestamp() - jiff::Timestamp::now().as_second();
    assert!((719 * 3600..=720 * 3600).contains(&left), "{left}");
    assert!(certificate.public_key().raw.len() > 100, "a key of P-384 is longer than one of P-256");
    assert_eq!(effective.kubelet["reservedMemory"][0]["numaNode"], 0);
    let authentication = ran("cat /etc/kubernetes/kube-apiserver/authentication.yaml");
    insta::assert_snapshot!("settings_authentication", authentication);
    let admission = ran("cat /etc/kubernetes/kube-apiserver/admission.yaml");
    insta::assert_snapshot!("settings_admission", admission);
    site.kubectl(&["create", "configmap", "kept", "--from-literal=word=hidden-at-rest"]);
    let stored = ran("ETCDCTL_API=3 /opt/turnup/bin/etcdctl --endpoints=https://127.0.0.1:2379 \
        --cacert=/etc/kubernetes/etcd/ca.crt --cert=/etc/kubernetes/etcd/server.crt --key=/etc/kubernetes/etcd/server.key \
        get /registry/configmaps/default/kept | grep --count --text hidden-at-rest || true");
    assert_eq!(stored.trim(), "0", "a ConfigMap is encrypted in etcd");
    let audited = ran("tail -n 50 /var/log/kubernetes/audit.log");
    assert!(audited.contains("\"level\":\"Metadata\"") && !audited.contains("RequestReceived"), "the own policy");
}

/// What is in force on a host of the settings of hosts.
fn host_state(site: &Site, node: &str) -> String {
    on_host(
        site,
        node,
        "cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range | tr '\\t' ' '
         grep -h -E 'somaxconn|port_range' /etc/sysctl.d/90-turnup.conf
         getent hosts registry.example.com six.example.com
         grep 'open files' /proc/$(pidof -s containerd)/limits | tr -s ' '
         ls /etc/kubernetes/manifests/own.yaml 2>/dev/null || true",
    )
}

/// All values in files of this name in the cgroups of local hosts on this machine.
fn limits(file: &str) -> String {
    let find = format!("find /sys/fs/cgroup -maxdepth 4 -path '*/turnup-*' -name {file} -exec cat {{}} +");
    Run::new("sh").args(["-c", &find]).dir("/").output().map(|output| output.stdout).unwrap_or_default()
}

fn settings_of_hosts_show(site: &Site) {
    let common = "4097\n20000 60000\nnet.core.somaxconn = 4097\nnet.ipv4.ip_local_port_range = 20000 60000\n\
                  192.0.2.40 registry.example.com\n2001:db8::40 six.example.com\nMax open files 16384 16384 files";
    let plain = |text: String| {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(plain(host_state(site, WORKER)), common);
    assert_eq!(plain(host_state(site, CONTROL_PLANE)), format!("{common}\n/etc/kubernetes/manifests/own.yaml"));
    let mode = on_host(site, CONTROL_PLANE, "stat --format=%a:%U /etc/kubernetes/manifests/own.yaml");
    assert_eq!(mode.trim(), "600:root");
    site.kubectl(&["get", "pod", "--namespace=kube-system", &format!("own-{CONTROL_PLANE}")]);
    let (memory, cpu) = (limits("memory.max") + &limits("memory.limit_in_bytes"), limits("cpu.max"));
    assert!(memory.contains("8388608000"), "{memory}");
    let quota = cpu + &limits("cpu.cfs_quota_us");
    assert!(quota.contains("350000"), "{quota}");
}

/// What was there before comes back, and a host that runs takes other limits.
fn settings_of_hosts_go(site: &Site) {
    site.ok(&["config", "set", "phase1.local.memory_limit=7000Mi", "phase1.local.cpu_limit="]);
    let names = ["sysctls", "extra_hosts", "open_files", "static_pods"].map(|name| format!("phase2.host.{name}"));
    let mut words = vec!["config", "unset"];
    words.extend(names.iter().map(String::as_str));
    site.ok(&words);
    site.ok(&["up"]);
    for node in [WORKER, CONTROL_PLANE] {
        let state = host_state(site, node);
        for gone in ["4097", "60000", "registry.example.com", "16384", "own.yaml"] {
            assert!(!state.contains(gone), "{node}: {gone}: {state}");
        }
        assert!(!on_host(site, node, "cat /etc/hosts").contains("turnup:"), "{node}");
    }
    let pods = site.kubectl(&["get", "pods", "--namespace=kube-system", "--output=name"]);
    assert!(!pods.contains("pod/own-"), "{pods}");
    let memory = limits("memory.max") + &limits("memory.limit_in_bytes");
    assert!(memory.contains("7340032000") && !memory.contains("8388608000"), "{memory}");
    let quota = limits("cpu.max") + &limits("cpu.cfs_quota_us");
    assert!(!quota.contains("350000"), "{quota}");
}

/// What containerd and kubelet of a worker say of themselves, and the files that they read at each
/// pull.
fn the_container_runtime_is_what_the_settings_say(site: &Site) {
    let ran = |script: &str| on_host(site, WORKER, script);
    let dump = ran("/opt/turnup/bin/containerd --config /etc/containerd/config.toml config dump 2>/dev/null");
    let config: toml::Value = toml::from_str(&dump).unwrap();
    assert_eq!(config["debug"]["level"].as_str(), Some("warn"), "{dump}");
    let plugins = &config["plugins"];
    assert_eq!(plugins["io.containerd.transfer.v1.local"]["max_concurrent_downloads"].as_integer(), Some(5));
    let images = &plugins["io.containerd.cri.v1.images"];
    assert_eq!(images["max_concurrent_downloads"].as_integer(), Some(3), "with another one it pulls in its old way");
    assert_eq!(images["registry"]["config_path"].as_str(), Some("/etc/containerd/certs.d"));
    let runtimes = &plugins["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"];
    assert_eq!(runtimes["other"]["runtime_type"].as_str(), Some("io.containerd.runc.v2"), "{runtimes}");
    assert_eq!(runtimes["runc"]["options"]["BinaryName"].as_str(), Some("/opt/turnup/bin/runc"), "{runtimes}");
    let mirrors = ran("cat /etc/containerd/certs.d/docker.io/hosts.toml");
    assert!(mirrors.contains("https://mirror.example.com"), "{mirrors}");
    assert_eq!(ran("stat --format='%a %u' /var/lib/kubelet/config.json").trim(), "600 0");
    let names = ran("/opt/turnup/bin/ctr --namespace k8s.io images list --quiet");
    for name in ["docker.io/library/app:1", "registry.example.com:5000/k8s/coredns:"] {
        assert!(names.lines().any(|line| line.starts_with(name)), "{name}: {names}");
    }
    assert!(!names.contains("turnup.local/"), "{names}");
    let used =
        site.kubectl(&["get", "pods", "--all-namespaces", "--output=jsonpath={.items[*].spec.containers[*].image}"]);
    // The static pod of the user's own has an image of its own.
    let is_known = |image: &str| image == OWN_IMAGE || image.starts_with("registry.example.com:5000/k8s/");
    assert!(used.split(' ').all(is_known), "{used}");
    for program in ["containerd", "kubelet"] {
        let environment = ran(&format!("tr '\\0' '\\n' </proc/$(pidof -s {program})/environ"));
        for line in ["HTTP_PROXY=http://192.0.2.1:3128", "HTTPS_PROXY=http://192.0.2.1:3128"] {
            assert!(environment.lines().any(|found| found == line), "{program}: {environment}");
        }
        let direct = environment.lines().find_map(|line| line.strip_prefix("NO_PROXY=")).unwrap();
        for part in ["10.123.21.0/24", ".svc", ".cluster.local", ".example.com", "169.254.0.0/16"] {
            assert!(direct.split(',').any(|entry| entry == part), "{program}: {direct}");
        }
    }
    assert!(ran("cat /etc/apt/apt.conf.d/90turnup-proxy").contains("http://192.0.2.1:3128"));
    let authority = ran("cat /etc/turnup/proxy-ca.crt");
    let bundle = ran("cat /etc/ssl/certs/ca-certificates.crt");
    assert!(bundle.contains(authority.lines().nth(1).unwrap()), "every program of the host trusts the proxy's CA");
}

fn overrides_show(site: &Site, effective: &Effective) {
    assert_eq!(
        (&effective.kubelet["nodeStatusMaxImages"], &effective.kubelet["containerLogMaxWorkers"]),
        (&41.into(), &2.into())
    );
    let master = kubelet(site, CONTROL_PLANE);
    assert_eq!((&master["nodeStatusMaxImages"], &master["containerLogMaxWorkers"]), (&40.into(), &3.into()));
    assert_eq!(effective.flagz("goaway-chance"), Some("0.001"));
    for flag in ["--concurrent-gc-syncs=21", "--max-txn-ops=200"] {
        assert!(effective.commands.lines().any(|line| line == flag), "{flag}");
    }
    assert_eq!(effective.scheduler["podInitialBackoffSeconds"], 2);
    assert_eq!(effective.kube_proxy["configSyncPeriod"], "10m");
    let mode = on_host(site, WORKER, "iptables-save --table=nat | grep --count KUBE-SVC");
    assert_ne!(mode.trim(), "0", "kube-proxy works by iptables");
    let planned = site.ok(&["plan", "--set", "phase2.overrides.kubelet.maxPods=90"]);
    assert!(planned.out.contains("maxPods"), "{planned}");
    let refused = site.fails(3, &["plan", "--set", "phase2.overrides.kubelet.maxPod=90"]);
    assert!(refused.err.contains("did you mean `maxPods`?"), "{refused}");
    let refused = site.fails(3, &["plan", "--set", "phase2.overrides.kube-apiserver.secure-port=90"]);
    assert!(refused.err.contains("turnup config explain phase2.api_port"), "{refused}");
}

fn what_is_read_again_restarts_nothing_and_the_rest_restarts_its_reader(site: &Site) {
    let process =
        || on_host(site, CONTROL_PLANE, "grep --files-with-matches --line-regexp kube-apiserver /proc/[0-9]*/comm");
    let before = process();
    site.ok(&["config", "set", "phase2.apiserver.oidc_client_id=another"]);
    site.ok(&["up"]);
    assert_eq!(process(), before, "the API server watches its authentication configuration");
    // A kind that is no longer encrypted stays readable, also after a start.
    site.ok(&["config", "set", "phase2.security.encryption_resources=secrets"]);
    site.ok(&["config", "set", "phase2.security.pod_security_enforce=restricted"]);
    site.ok(&["up"]);
    let kept = site.kubectl(&["get", "configmap", "kept", "--output=jsonpath={.data.word}"]);
    assert_eq!(kept, "hidden-at-rest");
    assert_ne!(process(), before, "only a start reads the admission configuration");
    let image = OWN_IMAGE;
    let refused = site.try_kubectl(&["run", "free", "--image", image]).unwrap_err();
    assert!(refused.contains("violates PodSecurity \"restricted:latest\""), "{refused}");
}
