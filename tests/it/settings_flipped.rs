//! Another value for each setting that shows in what runs, with the files that such values name:
//! what `cluster_settings` gives to a real cluster.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::json;
use turnup::artifacts::Digest;

use crate::cluster_support::Site;

/// The host for which one override is.
const CONTROL_PLANE: &str = "it-control-plane-0";
/// The image of a static pod of the user's own, which no registry has.
pub(crate) const OWN_IMAGE: &str = "registry.example.com/none";

/// Another value for each setting that a component has as it is.
pub(crate) const FLIPPED: &[(&str, &str)] = &[
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
pub(crate) const LEFT_OUT: &[&str] = &[
    // Without cgroup v2 there is no swap for pods.
    "phase2.kubelet.swap_behavior",
    // Local hosts cannot change the table of the machine.
    "phase3.kube_proxy_conntrack_per_core",
];
/// Settings that become more than one value, or another one than they say.
pub(crate) const FURTHER: &[(&str, &str)] = &[
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

pub(crate) fn write_files(site: &Site) {
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
        "roles": {"worker": {"kubelet": {"nodeStatusMaxImages": 41, "syncFrequency": "20s"}}},
        "groups": {"workers": {"kubelet": {"syncFrequency": "21s"}}},
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
