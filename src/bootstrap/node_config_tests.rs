//! Every node config of small clusters, whole and by its parts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![expect(clippy::format_push_string, reason = "a test may be slow and plain")]
#![expect(clippy::case_sensitive_file_extension_comparisons, reason = "the endings are our own")]

use serde_json::json;

use super::super::component::Flags;
use super::super::usual_facts::usual_facts;
use super::*;
use crate::artifacts::{Lock, ResolvedArtifacts, Sources};
use crate::config::{Settings, TreeSource};
use crate::node::node_config::{
    ADDON_MANAGER_UNIT, AGENT_UNIT, CSR_APPROVER_UNIT, FIREWALL_UNIT, File, HEALTHCHECK_UNIT,
};

const INVENTORY: &str = r#"{
    "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "local",
    "api": {"host": "10.117.0.10", "port": 6443},
    "hosts": [
        {"name": "cp", "role": "control-plane", "address": "10.117.0.10", "instance": "a",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}, "blobs": "/var/cache/turnup/blobs"},
        {"name": "w0", "role": "worker", "address": "10.117.0.20", "instance": "b",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}
    ]}"#;

pub(in super::super) fn facts() -> Facts {
    Facts {
        os: "Debian GNU/Linux 12 (bookworm)".into(),
        kernel: "6.1.0".into(),
        arch: "x86_64".into(),
        memory_mib: 4096,
        cpus: 2,
        ..usual_facts()
    }
}

pub(in super::super) fn with_configs<T>(changes: &[(&str, &str)], act: impl FnOnce(&NodeConfigs<'_>) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(changes).unwrap();
    let cluster = Cluster::open(&settings, source, dir.path()).unwrap();
    let inventory = Inventory::parse("test", INVENTORY).unwrap();
    let artifacts = {
        let selection = cluster.select_from(&Lock::embedded().unwrap()).unwrap();
        ResolvedArtifacts::expected(&selection, &Sources::default(), None, None)
    };
    let configs = NodeConfigs { cluster: &cluster, inventory: &inventory, artifacts: &artifacts };
    let pki = Pki::new(&cluster.store);
    for authority in Authority::ALL {
        pki.ensure_authority(authority, "kubernetes").unwrap();
    }
    pki.ensure_service_account_key().unwrap();
    pki.ensure_encryption_key().unwrap();
    for leaf in configs.leaves().unwrap() {
        pki.ensure_leaf(&leaf).unwrap();
    }
    act(&configs)
}

fn text_of(node_config: &NodeConfig, path: &str) -> String {
    let file = node_config.files.iter().find(|file| file.path == path).unwrap();
    match &file.content {
        Content::Text(text) => text.clone(),
        Content::Yaml(value) => yaml::render(value),
        other => panic!("{path} is {other:?}"),
    }
}

/// A kubeconfig with another text in the place of the authority, which each run makes for itself.
fn without_authority(yaml: &str) -> String {
    const FIELD: &str = "certificate-authority-data: ";
    let line = |line: &str| match line.split_once(FIELD) {
        Some((indent, _)) => format!("{indent}{FIELD}(authority)\n"),
        None => format!("{line}\n"),
    };
    yaml.lines().map(line).collect()
}

/// A manifest without the digest of the files, which are others in each run.
fn without_digest(yaml: &str) -> String {
    let is_digest = |line: &str| {
        let value = line.trim().strip_prefix("value: ").unwrap_or_default().trim_matches('"');
        value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let line = |line: &str| if is_digest(line) { "      value: (digest)\n".to_owned() } else { format!("{line}\n") };
    yaml.lines().map(line).collect()
}

#[test]
fn every_file_of_the_control_plane() {
    with_configs(&[], |configs| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let mut text = String::new();
        for file in &node_config.files {
            let content = match &file.content {
                Content::Text(_) if file.path.ends_with(".crt") || file.path.ends_with(".pub") => "(certificate)\n",
                Content::Yaml(value) => &without_authority(&yaml::render(value)),
                Content::Text(text) => text,
                Content::Secret { name, .. } => &format!("(secret {name})\n"),
                Content::Symlink(target) => &format!("(a link to {target})\n"),
                other => panic!("{} is {other:?}", file.path),
            };
            text += &format!("--- {} {:o} {}\n{}", file.path, file.mode, file.owner, without_digest(content));
        }
        for unit in &node_config.units {
            text += &format!("--- unit {}\n{}", unit.name, unit.text);
        }
        insta::assert_snapshot!(text.replace(configs.cluster.version(), "(the sha256 of turnup)"));
    });
}

#[test]
fn a_timer_takes_backups_on_the_control_plane_alone() {
    use crate::node::node_config::{BACKUP_SERVICE, BACKUP_TIMER};
    let path = layout::unit_file(BACKUP_SERVICE);
    let changes = [
        ("phase2.backup.store", "host"),
        ("phase2.backup.interval", "1h30m"),
        ("phase2.backup.keep_recent", "5"),
        ("phase2.backup.keep_daily", "7"),
        ("phase2.backup.directory", "/srv/etcd"),
    ];
    let of = |configs: &NodeConfigs<'_>, host: usize| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[host], &facts()).unwrap();
        let timer = node_config.units.iter().find(|unit| unit.name == BACKUP_TIMER).map(|unit| unit.text.clone());
        let reads = node_config.binaries.iter().any(|binary| binary.path == layout::ETCDUTL);
        (timer, node_config.files.iter().any(|file| file.path == path), reads, node_config)
    };
    with_configs(&changes, |configs| {
        let (timer, service, reads, node_config) = of(configs, 0);
        assert!(service && reads);
        let first = configs.cluster.store.read("pki/etcd-ca.crt").unwrap().unwrap();
        let id = crate::unknown::digest(&String::from_utf8(first).unwrap());
        let text = text_of(&node_config, &path) + "---\n" + &timer.unwrap();
        insta::assert_snapshot!(text.replace(configs.cluster.version(), "(turnup)").replace(&id, "(etcd-ca)"));
        let (timer, service, reads, _) = of(configs, 1);
        assert!(timer.is_none() && !service && !reads, "a worker has no etcd");
    });
    with_configs(&[], |configs| {
        let (timer, service, reads, _) = of(configs, 0);
        assert!(timer.is_none() && !service && reads, "no backups are the default; a restore needs none");
    });
}

#[test]
fn a_disk_of_etcds_own_is_mounted_before_kubelet_and_nothing_else_changes() {
    with_configs(&[("phase1.cluster_name", "a-long-name-of-a-cluster")], |configs| {
        let host = &configs.inventory.hosts[0];
        let (without, _) = configs.node_config(host, &facts()).unwrap();
        let with = Host { etcd_device: "/dev/disk/by-id/nvme-1".into(), ..host.clone() };
        let (with, _) = configs.node_config(&with, &facts()).unwrap();
        assert!(without.mounts.is_empty() && !serde_json::to_string(&without).unwrap().contains("\"mounts\""));
        let mut mounts = with.mounts.clone();
        let whose = mounts[0].belongs_to.split_off("a-long-name-of-a-cluster ".len());
        assert_eq!(whose.len(), 64, "the digest of etcd's authority: {whose}");
        let mut text = serde_json::to_string_pretty(&mounts).unwrap() + "\n";
        for unit in with.units.iter().filter(|unit| !without.units.contains(unit)) {
            text += &format!("--- unit {}\n{}", unit.name, unit.text);
        }
        for path in with.files.iter().filter(|file| !without.files.contains(file)).map(|file| &file.path) {
            let text_of = text_of(&with, path);
            let lines = text_of.lines().filter(|line| line.contains("etcd-disk"));
            text += &format!("--- file {path}\n{}\n", lines.collect::<Vec<_>>().join("\n"));
        }
        let gone = without.directories.iter().filter(|directory| !with.directories.contains(directory));
        text += &format!("without {gone:?}\n", gone = gone.map(|gone| &gone.path).collect::<Vec<_>>());
        insta::assert_snapshot!(text);
        let names: Vec<&str> = with.units.iter().map(|unit| unit.name.as_str()).collect();
        let pods = [HEALTHCHECK_UNIT, "kubelet.service", CSR_APPROVER_UNIT, AGENT_UNIT];
        assert_eq!(names, [&["containerd.service", FIREWALL_UNIT, "turnup-mounts.service"][..], &pods].concat());
    });
}

#[test]
fn where_hosts_join_by_themselves_the_control_plane_approves_their_requests() {
    // Where hosts renew what their kubelets need it does so in any case.
    with_configs(&[("phase2.pki.renew_on_hosts", "n")], |configs| {
        let (without, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let (store, life) = (&configs.cluster.store, std::time::Duration::from_hours(1));
        super::super::group_tokens::ensure(store, ("pool", "pool-"), life, |_| Ok(())).unwrap();
        let pki = Pki::new(&configs.cluster.store);
        for leaf in configs.leaves().unwrap() {
            pki.ensure_leaf(&leaf).unwrap();
        }
        let (with, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let new: Vec<&str> =
            with.units.iter().filter(|unit| !without.units.contains(unit)).map(|unit| &*unit.name).collect();
        assert_eq!(new, [CSR_APPROVER_UNIT, AGENT_UNIT], "which starts after it");
        let last: Vec<&str> = with.units.iter().rev().take(3).map(|unit| unit.name.as_str()).collect();
        assert_eq!(last, [AGENT_UNIT, CSR_APPROVER_UNIT, "kubelet.service"], "the last one first");
        let version = configs.cluster.version();
        let approver = &with.units[with.units.len() - 2];
        insta::assert_snapshot!(approver.text.replace(version, "(the sha256 of turnup)"));
        let new: Vec<&File> = with.files.iter().filter(|file| !without.files.contains(file)).collect();
        let named = new.iter().map(|file| format!("{} {:o}", file.path, file.mode)).collect::<Vec<_>>().join(" ");
        let own = "/etc/kubernetes/csr-approver";
        assert_eq!(named, format!("{own}/client.crt 644 {own}/client.key 600 {own}.conf 600"));
        assert!(format!("{:?}", new[2].content).contains("https://127.0.0.1:6443"), "the API server beside it");
        let new: Vec<&str> =
            with.binaries.iter().filter(|one| !without.binaries.contains(one)).map(|one| &*one.path).collect();
        assert_eq!(new, [""; 0], "kubectl is there for people as well");
        let (worker, _) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
        assert!(!serde_json::to_string(&worker).unwrap().contains("csr-approver"));
    });
}

#[test]
fn the_control_plane_keeps_addons_where_the_setting_says_so() {
    with_configs(&[], |configs| {
        let (without, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        assert!(!without.units.iter().any(|unit| unit.name == ADDON_MANAGER_UNIT));
    });
    with_configs(&[("phase3.addon_manager", "y")], |configs| {
        let (with, secrets) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let unit = with.units.iter().find(|unit| unit.name == ADDON_MANAGER_UNIT).unwrap();
        insta::assert_snapshot!(unit.text.replace(configs.cluster.version(), "(the sha256 of turnup)"));
        let kubeconfig = with.files.iter().find(|file| file.path == "/etc/kubernetes/addon-manager.conf").unwrap();
        assert_eq!(kubeconfig.mode, 0o600);
        assert!(!secrets.keys().any(|name| name.contains("addon-manager")), "it has no key that stays");
        let (worker, _) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
        assert!(!serde_json::to_string(&worker).unwrap().contains("addon-manager"));
    });
}

#[test]
fn what_a_host_loses_is_put_right_from_its_boot_on_however_it_joined() {
    with_configs(&[], |configs| {
        for host in &configs.inventory.hosts {
            let (node_config, _) = configs.node_config(host, &facts()).unwrap();
            let text = &node_config.units.iter().find(|unit| unit.name == AGENT_UNIT).unwrap().text;
            assert!(
                text.contains("agent --renew-certificates\n") && text.contains("\nWantedBy=multi-user.target\n"),
                "{text}"
            );
            assert!(!text.contains("Condition"), "nothing keeps it from its start: {text}");
        }
    });
}

#[test]
fn each_component_runs_as_its_own_user_and_sees_its_own_directory() {
    with_configs(&[], |configs| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let users: Vec<(&str, u32)> = node_config.users.iter().map(|user| (&*user.name, user.id)).collect();
        let pods =
            [("etcd", 2379), ("kube-apiserver", 6443), ("kube-controller-manager", 10257), ("kube-scheduler", 10259)];
        let unit = ("apiserver-healthcheck", healthcheck::USER_ID);
        assert_eq!(users, pods.into_iter().chain([unit]).collect::<Vec<_>>());
        for (name, id) in pods {
            let context = container_of(&node_config, name)["securityContext"].clone();
            assert_eq!((&context["runAsUser"], &context["runAsGroup"]), (&id.into(), &id.into()), "{name}");
            assert_eq!(context["runAsNonRoot"], true);
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
            assert_eq!(context["readOnlyRootFilesystem"], true);
            let mounts = container_of(&node_config, name)["volumeMounts"].as_array().unwrap().clone();
            let is_read = |mount: &&Value| mount["readOnly"] == true && mount["mountPath"] != "/member";
            let read: Vec<&Value> = mounts.iter().filter(is_read).collect();
            let dir = layout::component_dir(name);
            assert_eq!((read.len(), &read[0]["mountPath"]), (1, &dir.as_str().into()), "{name}: {read:?}");
            let directory = node_config.directories.iter().find(|directory| directory.path == dir).unwrap();
            assert_eq!((directory.mode, directory.owner), (0o700, id), "{name}");
            // All that its flags name is there, and of what is there nothing is another one's.
            for flag in container_of(&node_config, name)["command"].as_array().unwrap() {
                let value = flag.as_str().unwrap().split_once('=').map_or("", |(_, value)| value);
                let is_file = value.starts_with("/etc/kubernetes");
                assert!(!is_file || node_config.files.iter().any(|file| file.path == value), "{name}: {value}");
                assert!(!is_file || value.starts_with(&dir), "{name}: {value}");
            }
            let own = node_config.files.iter().filter(|file| file.path.starts_with(&format!("{dir}/")));
            for file in own.filter(|file| file.mode != 0o644) {
                assert_eq!((file.mode, file.owner), (0o600, id), "{}", file.path);
            }
        }
        let holders = |secret: &str| -> Vec<&str> {
            let holds = |file: &&File| matches!(&file.content, Content::Secret { name, .. } if name == secret);
            node_config.files.iter().filter(holds).map(|file| &*file.path).collect()
        };
        assert_eq!(holders("ca.key"), ["/etc/kubernetes/kube-controller-manager/ca.key"]);
        assert_eq!(holders("apiserver-etcd-client.key"), ["/etc/kubernetes/kube-apiserver/etcd-client.key"]);
        let pki = node_config.files.iter().filter(|file| file.path.starts_with(layout::PKI));
        let roots: Vec<(&str, u32)> = pki.map(|file| (file.path.rsplit('/').next().unwrap(), file.owner)).collect();
        let own = ["ca.crt", "kubelet.crt", "kubelet.key", "host.crt", "host.key"].into_iter();
        let signing = ["etcd-ca.crt", "etcd-ca.key", "front-proxy-ca.crt", "front-proxy-ca.key"];
        assert_eq!(roots, own.chain(signing).map(|name| (name, 0)).collect::<Vec<_>>());
    });
}

fn container_of(node_config: &NodeConfig, pod: &str) -> Value {
    let file = node_config.files.iter().find(|file| file.path == layout::manifest(pod)).unwrap();
    let Content::Yaml(manifest) = &file.content else { panic!("{pod} is {:?}", file.content) };
    manifest["spec"]["containers"][0].clone()
}

#[test]
fn an_api_server_on_a_port_of_roots_is_root_with_that_one_right() {
    with_configs(&[("phase2.api_port", "443")], |configs| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let context = container_of(&node_config, "kube-apiserver")["securityContext"].clone();
        assert_eq!((&context["runAsUser"], &context["runAsNonRoot"]), (&0.into(), &false.into()));
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}));
        assert_eq!(node_config.users.len(), 4);
        let dirs = node_config.directories.iter();
        let dirs = dirs.filter(|dir| dir.path.ends_with("/kube-apiserver") || dir.path == control_plane::LOG_DIR);
        assert_eq!(dirs.map(|dir| dir.owner).collect::<Vec<_>>(), [0, 0]);
        assert!(node_config.files.iter().all(|file| file.owner != 6443));
        assert_eq!(container_of(&node_config, "kube-scheduler")["securityContext"]["runAsUser"], 10259);
    });
}

#[test]
fn a_worker_gets_no_key_but_its_own() {
    with_configs(&[], |configs| {
        let (node_config, secrets) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
        assert_eq!(secrets.keys().collect::<Vec<_>>(), ["host-w0.key", "kubelet-w0.key"]);
        let paths: Vec<&str> = node_config.files.iter().map(|file| file.path.as_str()).collect();
        let kubeconfig = node_config.files.iter().find(|file| file.path == layout::KUBELET_KUBECONFIG).unwrap();
        assert_eq!(kubeconfig.only_with.as_deref(), Some(CLIENT_CERTIFICATE), "a host that has not joined asks first");
        assert!(format!("{kubeconfig:?}").contains("https://10.117.0.10:6443"), "{kubeconfig:?}");
        assert_eq!(
            paths,
            [
                "/etc/containerd/config.toml",
                "/etc/sysctl.d/90-turnup.conf",
                "/etc/crictl.yaml",
                "/etc/profile.d/turnup.sh",
                "/var/lib/cni/networks/turnup/lock",
                "/etc/kubernetes/pki/ca.crt",
                "/etc/kubernetes/pki/kubelet.crt",
                "/etc/kubernetes/pki/kubelet.key",
                layout::HOST_CERTIFICATE,
                layout::HOST_KEY,
                layout::KUBELET_CONFIG,
                layout::KUBELET_KUBECONFIG,
                "/etc/turnup/firewall.nft",
            ]
        );
        assert!(!text_of(&node_config, layout::KUBELET_CONFIG).contains("node-role"), "a worker has no taint");
    });
}

/// What the group of a host that is logged in to says counts as that of a group by user data does.
#[test]
fn a_host_of_a_group_has_its_limits_and_its_taints() {
    let groups = r#"[{"name": "pool", "role": "worker", "size": 1, "labels": {"a": "b"}, "taints": ["gpu=yes:NoSchedule"], "max_pods": 33, "kube_reserved": {"cpu": "100m"}}]"#;
    with_configs(&[("phase1.node_groups", groups)], |configs| {
        let mut inventory = configs.inventory.clone();
        inventory.hosts[1].group = "pool".into();
        let (cluster, artifacts) = (configs.cluster, configs.artifacts);
        let (node_config, _) = NodeConfigs { cluster, inventory: &inventory, artifacts }
            .node_config(&inventory.hosts[1], &facts())
            .unwrap();
        let text = text_of(&node_config, layout::KUBELET_CONFIG);
        for line in ["maxPods: 33", "key: gpu", "tlsCertFile: "] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("serverTLSBootstrap"), "its certificate is made here");
        inventory.hosts[1].group = "pol".into();
        let configs = NodeConfigs { cluster, inventory: &inventory, artifacts };
        let error = configs.node_config(&inventory.hosts[1], &facts()).unwrap_err();
        assert!(error.render().contains("no group of this name; did you mean `pool`?"), "{}", error.render());
    });
}

#[test]
fn a_control_plane_host_runs_pods_where_it_is_wanted_or_alone() {
    let tainted = |changes: &[(&str, &str)]| {
        with_configs(changes, |configs| {
            let (node_config, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
            text_of(&node_config, layout::KUBELET_CONFIG).contains("node-role.kubernetes.io/control-plane")
        })
    };
    assert!(tainted(&[]));
    assert!(!tainted(&[("phase1.control_plane.runs_pods", "y")]));
}

#[test]
fn no_secret_is_in_the_readable_file() {
    with_configs(&[], |configs| {
        let (node_config, secrets) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let text = serde_json::to_string(&node_config).unwrap();
        assert!(!text.contains("PRIVATE KEY"));
        assert!(secrets.len() > 8);
        for (name, secret) in &secrets {
            assert!(!text.contains(secret.trim()), "{name}");
        }
    });
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    with_configs(&[], |configs| {
        let host = &configs.inventory.hosts[0];
        let once = serde_json::to_string(&configs.node_config(host, &facts()).unwrap().0).unwrap();
        let twice = serde_json::to_string(&configs.node_config(host, &facts()).unwrap().0).unwrap();
        assert_eq!(once, twice);
    });
}

#[test]
fn a_loosened_control_reaches_the_flags() {
    let changes = [
        ("phase2.security.audit", "n"),
        ("phase2.security.encryption_at_rest", "n"),
        ("phase2.security.tls13", "n"),
        ("phase2.security.pod_security", "n"),
    ];
    with_configs(&changes, |configs| {
        let (node_config, secrets) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let apiserver = text_of(&node_config, "/etc/kubernetes/manifests/kube-apiserver.yaml");
        for gone in ["--audit-", "VersionTLS13"] {
            assert!(!apiserver.contains(gone), "{gone}");
        }
        assert!(!text_of(&node_config, "/etc/kubernetes/kube-apiserver/admission.yaml").contains("PodSecurity"));
        // What was encrypted before stays readable: nothing is written so any more.
        let encryption: Value = serde_saphyr::from_str(&secrets["encryption.yaml"]).unwrap();
        let kinds = encryption["resources"].as_array().unwrap();
        assert_eq!((kinds.len(), &kinds[0]["resources"]), (1, &json!(["*.*"])));
        assert!(kinds[0]["providers"][0]["identity"].is_object() && kinds[0]["providers"][1]["secretbox"].is_object());
    });
}

/// systemd would take the second half of such a path for another word.
#[test]
fn a_blank_in_a_directory_of_hosts_stays_in_its_word() {
    let changes = [("phase1.cloud_provider", "baremetal"), ("phase2.host.data_dir", "/srv/k 8s")];
    with_configs(&changes, |configs| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
        let kubelet = &node_config.units.iter().find(|unit| unit.name == "kubelet.service").unwrap().text;
        for part in ["  \"--root-dir=/srv/k 8s\"", "\nRequiresMountsFor=\"/srv/k 8s\"\n", "cd \"/srv/k 8s\" || exit"] {
            assert!(kubelet.contains(part), "{part}: {kubelet}");
        }
    });
}

#[test]
fn settings_of_hosts_reach_what_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let logins = dir.path().join("logins.json");
    fs_err::write(&logins, r#"{"auths": {"registry.example.com": {"auth": "YTpi"}}}"#).unwrap();
    let changes = [
        ("phase1.cloud_provider", "baremetal"),
        ("phase2.host.data_dir", "/data/kubelet"),
        ("phase2.runtime.data_dir", "/mnt/fast/containerd"),
        ("phase2.runtime.registry_auth_file", logins.to_str().unwrap()),
        ("phase2.host.open_files", "65536"),
        ("phase2.host.sysctls", "vm.max_map_count=262144,net.ipv4.tcp_rmem=4096 87380 6291456"),
        ("phase2.host.kernel_modules", "wireguard,overlay"),
        ("phase2.host.packages", "nfs-common,jq=1.6-2.1"),
        ("phase2.host.ntp_servers", "192.0.2.1"),
        ("phase2.host.extra_hosts", "a.example=192.0.2.40,b.example=2001:db8::1"),
        ("phase3.log_shipping", "y"),
        ("phase3.log_shipping_endpoint", "https://logs.example.com"),
    ];
    with_configs(&changes, |configs| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
        let unit = |name: &str| node_config.units.iter().find(|unit| unit.name == name).unwrap().text.clone();
        let kubelet = unit("kubelet.service");
        assert!(kubelet.contains("--root-dir=/data/kubelet"), "{kubelet}");
        assert!(kubelet.contains("RequiresMountsFor=/data/kubelet\n"), "{kubelet}");
        assert!(kubelet.contains("cd /data/kubelet || exit"), "{kubelet}");
        let logs = "/var/lib/turnup-log-shipping";
        assert_eq!(node_config.shared_directories, ["/data/kubelet", logs]);
        assert!(node_config.directories.iter().any(|dir| dir.path == logs && dir.mode == 0o700));
        let credentials = node_config.files.iter().find(|file| file.path.ends_with("/config.json")).unwrap();
        assert_eq!(credentials.path, "/data/kubelet/config.json", "where kubelet looks for it");
        let unit_of = node_config.units.iter().find(|unit| unit.name == "kubelet.service").unwrap();
        assert!(unit_of.restart_on.contains(&credentials.path));
        assert!(unit("containerd.service").contains("RequiresMountsFor=/mnt/fast/containerd\n"));
        assert!(unit("containerd.service").contains("\nLimitNOFILE=65536\n"));
        assert_eq!(node_config.sysctls["net.ipv4.tcp_rmem"], "4096 87380 6291456");
        let sysctls = text_of(&node_config, "/etc/sysctl.d/90-turnup.conf");
        assert!(sysctls.contains("vm.max_map_count = 262144\n") && sysctls.contains("net.ipv4.ip_forward = 1\n"));
        assert_eq!(node_config.modules, ["overlay", "nf_tables", "wireguard"]);
        assert_eq!(text_of(&node_config, "/etc/modules-load.d/90-turnup.conf"), "wireguard\noverlay\n");
        assert_eq!(node_config.packages, ["nfs-common", "jq=1.6-2.1"]);
        assert!(text_of(&node_config, "/etc/chrony/chrony.conf").starts_with("server 192.0.2.1 iburst\n"));
        assert_eq!(node_config.extra_hosts["b.example"].to_string(), "2001:db8::1");

        let container = Facts { container: true, ..facts() };
        let error = configs.node_config(&configs.inventory.hosts[1], &container).unwrap_err();
        assert!(error.message().contains("vm.max_map_count belongs to this machine"), "{}", error.message());
    });
    with_configs(&[], |configs| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
        assert!(node_config.units.iter().all(|unit| !unit.text.contains("root-dir")));
        assert!(node_config.shared_directories.is_empty() && node_config.packages.is_empty());
    });
}

#[test]
fn a_container_on_cgroup_v1_is_treated_as_what_it_is() {
    let facts = Facts { cgroup: 1, container: true, lowers_oom_score: false, ..facts() };
    with_configs(&[], |configs| {
        let (node_config, _) = configs.node_config(&configs.inventory.hosts[1], &facts).unwrap();
        assert!(node_config.modules.is_empty());
        assert!(text_of(&node_config, layout::KUBELET_CONFIG).contains("cgroupDriver: cgroupfs"));
        let containerd = text_of(&node_config, "/etc/containerd/config.toml");
        assert!(containerd.contains("restrict_oom_score_adj = true"), "{containerd}");
        assert!(containerd.contains("SystemdCgroup = false"), "{containerd}");
    });
}

/// What a pod reads when it starts is in its manifest; what it reads again by itself is not.
#[test]
fn a_pod_restarts_for_the_files_that_it_reads_once() {
    let pods = |changes: &[(&str, &str)]| {
        with_configs(changes, |configs| {
            let own = |name: &str, text: &str| File::new(name, 0o600, 0, Content::Text(text.into()));
            let digest =
                |name: &str, text: &str| API_SERVER.digest_files(&[own(&API_SERVER.file(name), text)], &Flags::new());
            assert_ne!(digest("admission.yaml", "a"), digest("admission.yaml", "b"));
            assert_eq!(digest("server.crt", "a"), digest("server.crt", "b"));
            let other =
                |text: &str, flags: &Flags| API_SERVER.digest_files(&[own("/etc/own/eviction.yaml", text)], flags);
            assert_eq!(other("a", &Flags::new()), API_SERVER.digest_files(&[], &Flags::new()));
            let named = Flags::new().set("own-file", "/etc/own/eviction.yaml");
            assert_ne!(other("a", &named), other("b", &named));
            let (node_config, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
            text_of(&node_config, &API_SERVER.file("admission.yaml"))
        })
    };
    assert_ne!(pods(&[]), pods(&[("phase2.security.pod_security", "n")]));
}

#[test]
fn a_key_service_encrypts_and_what_was_written_before_stays_readable() {
    let kinds = ["secrets".to_owned()];
    let keys = [("key1".to_owned(), Zeroizing::new("a2V5".to_owned()))];
    let text = encryption_configuration(&kinds, &keys, Some("/run/kms/kms.sock"));
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let providers = config["resources"][0]["providers"].as_array().unwrap();
    let plugin =
        json!({"apiVersion": "v2", "name": "turnup", "endpoint": "unix:///run/kms/kms.sock", "timeout": "10s"});
    assert_eq!(providers[0]["kms"], plugin);
    assert!(providers[1].get("secretbox").is_some() && providers[2].get("identity").is_some());
    assert!(!encryption_configuration(&kinds, &keys, None).contains("kms"));
}

/// kubelet refuses to start with the state of other reservations.
#[test]
fn state_of_kubelets_managers_goes_where_what_it_rests_on_changes() {
    let lines = |changes: &[(&str, &str)]| {
        with_configs(changes, |configs| {
            let (node_config, _) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
            let unit = node_config.units.iter().find(|unit| unit.name == "kubelet.service").unwrap();
            let lines = unit.text.lines().filter(|line| line.starts_with("ExecStartPre="));
            lines.map(str::to_owned).collect::<Vec<_>>()
        })
    };
    let policy = ("phase2.kubelet.cpu_manager_policy", "static");
    let usual = lines(&[policy, ("phase2.kubelet.reserved_cpus", "0")]);
    let other = lines(&[policy, ("phase2.kubelet.reserved_cpus", "0-1")]);
    assert!(usual[0] != other[0] && usual[1] == other[1], "{other:?}");
    assert!(lines(&[("phase2.kubelet.cpu_manager_policy", "none")])[0] != usual[0]);
    let reserved = ("phase2.kubelet.system_reserved", "memory=512Mi");
    let memory = lines(&[reserved, ("phase2.kubelet.memory_manager_policy", "Static")]);
    assert!(memory[1] != lines(&[reserved])[1], "{memory:?}");
}

/// A host that comes changes no other one's way past the proxy.
#[test]
fn exceptions_of_the_proxy_name_no_other_host() {
    let proxy = ("phase2.http_proxy", "http://proxy.example.com:3128");
    with_configs(&[("phase1.cloud_provider", "baremetal"), proxy], |configs| {
        let direct = |inventory: &Inventory| {
            let configs = NodeConfigs { inventory, ..*configs };
            configs.machine(&inventory.hosts[0], &facts()).unwrap().proxy.unwrap().direct
        };
        let mut more = configs.inventory.clone();
        let last = Host { name: "worker-9".into(), ..more.hosts[1].clone() };
        more.hosts.push(Host { address: Ipv4Addr::new(192, 0, 2, 99).into(), ..last });
        assert_eq!(direct(configs.inventory), direct(&more));
    });
}

#[test]
fn overrides_name_hosts_that_there_are_once_these_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("o.json");
    fs_err::write(&file, r#"{"hosts": {"w1": {"kubelet": {"maxPods": 50}}}}"#).unwrap();
    with_configs(&[("phase2.overrides", file.to_str().unwrap())], |configs| {
        let known = |inventory: &Inventory| {
            let configs = NodeConfigs { inventory, ..*configs };
            configs.machine(&inventory.hosts[0], &facts())
        };
        let error = known(configs.inventory).unwrap_err().render();
        assert!(error.contains("the cluster has no host `w1`"), "{error}");
        assert!(error.contains("its hosts: cp, w0"), "{error}");
        let mut imagined = configs.inventory.clone();
        imagined.hosts.iter_mut().for_each(|host| host.instance = crate::inventory::IMAGINED.into());
        known(&imagined).unwrap();
    });
}
