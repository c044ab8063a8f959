//! What single settings of phase 2 change in what is rendered, line by line: those that no host
//! test flips, or that show only together with other answers.
//!
//! Each is given by its name, to one control-plane host and one worker, and a snapshot shows every
//! line that is there then and was not before.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::cli_support::TestEnv;

/// A setting, the answers that it needs, its value.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const OIDC: &[(&str, &str)] =
    &[("phase2.apiserver.oidc_issuer_url", "https://sso.example.com"), ("phase2.apiserver.oidc_client_id", "turnup")];
const BACKUP: &[(&str, &str)] = &[("phase2.backup.store", "host")];
const ENCRYPTED: &[(&str, &str)] = &[("phase2.security.encryption_provider", "kms")];
const PROXY: &[(&str, &str)] = &[("phase2.http_proxy", "http://proxy.example.com:3128")];

const AWS: &[(&str, &str)] =
    &[("phase1.cloud_provider", "aws"), ("phase1.user_data.artifacts_url", "https://example.com/a")];
const BAREMETAL: &[(&str, &str)] = &[("phase1.cloud_provider", "baremetal"), ("phase1.baremetal.hosts", HOSTS)];
const HOSTS: &str = r#"[
    {"name": "rack-1", "address": "192.0.2.10", "role": "control-plane",
     "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "rack-2", "address": "192.0.2.20", "role": "worker",
     "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAA"}]"#;

/// All of them.
pub(crate) const ROWS: &[Row] = &[
    ("phase2.apiserver.oidc_client_id", OIDC, "another"),
    ("phase2.apiserver.oidc_username_claim", OIDC, "email"),
    ("phase2.apiserver.oidc_username_prefix", OIDC, "sso:"),
    ("phase2.apiserver.oidc_groups_claim", OIDC, "teams"),
    ("phase2.apiserver.oidc_groups_prefix", OIDC, "team:"),
    ("phase2.apiserver.oidc_required_claims", OIDC, "hd=example.com"),
    ("phase2.apiserver.oidc_ca_file", OIDC, "ca.crt"),
    ("phase2.backup.interval", BACKUP, "2h"),
    ("phase2.backup.keep_recent", BACKUP, "5"),
    ("phase2.backup.keep_daily", BACKUP, "9"),
    ("phase2.backup.directory", BACKUP, "/srv/etcd"),
    ("phase2.backup.recipients", BACKUP, "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa"),
    ("phase2.cluster_domain", &[], "example.internal"),
    ("phase2.cni", &[], "none"),
    ("phase2.host.kernel_modules", BAREMETAL, "nvme_tcp"),
    ("phase2.host.ntp_servers", BAREMETAL, "ntp1.example.com,ntp2.example.com"),
    ("phase2.host.static_pods", &[], "pod.yaml"),
    ("phase2.https_proxy", &[], "http://proxy.example.com:3129"),
    ("phase2.network.cni_manifests", &[("phase2.cni", "none")], "plugin.yaml"),
    ("phase2.no_proxy", PROXY, "registry.example.com"),
    ("phase2.overrides", &[], "overrides.yaml"),
    ("phase2.proxy_ca_file", PROXY, "ca.crt"),
    ("phase2.runtime.cgroup_driver", &[], "cgroupfs"),
    ("phase2.runtime.config_file", &[], "containerd.toml"),
    ("phase2.runtime.registry_auth_file", &[], "registry.json"),
    ("phase2.scheduler.config_file", &[], "scheduler.yaml"),
    ("phase2.security.audit_policy_file", &[], "audit.yaml"),
    ("phase2.security.encryption_at_rest", &[], "n"),
    ("phase2.security.encryption_provider", &[], "kms"),
    ("phase2.security.encryption_kms_endpoint", ENCRYPTED, "/run/other/kms.sock"),
    ("phase2.update.max_surge", AWS, "2"),
    ("phase2.update.max_unavailable", AWS, "3"),
];

/// What the settings name.
fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    let authority = rcgen::generate_simple_self_signed(vec!["ca.example.com".to_owned()]).unwrap();
    test_env.write("ca.crt", &authority.cert.pem());
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: vip}\nspec: {containers: [{name: vip, image: vip}]}\n";
    test_env.write("pod.yaml", pod);
    let plugin = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plugin, namespace: kube-system}\n";
    test_env.write("plugin.yaml", plugin);
    test_env.write("overrides.yaml", "kubelet:\n  maxPods: 57\n");
    test_env.write(
        "containerd.toml",
        "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nmax_container_log_line_size = 7\n",
    );
    test_env.write("registry.json", r#"{"auths": {"registry.example.com": {"auth": "YTpi"}}}"#);
    let scheduler =
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: 7\n";
    test_env.write("scheduler.yaml", scheduler);
    test_env.write("audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request}]\n");
    let owner_alone: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs_err::set_permissions(test_env.path("registry.json"), owner_alone).unwrap();
    test_env
}

/// Each line that is rendered, behind its place: the file, and within a node config the path on the
/// host or the unit.
fn render(test_env: &TestEnv, changes: &[(&str, &str)]) -> BTreeSet<String> {
    let to = tempfile::tempdir_in(test_env.dir.path()).unwrap();
    let changes: Vec<String> = changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let set = changes.iter().flat_map(|change| ["--set", change.as_str()]);
    let words: Vec<&str> = ["render", "--to", to.path().to_str().unwrap()].into_iter().chain(set).collect();
    test_env.ok(&words);
    let mut files = BTreeMap::new();
    read_all(to.path(), to.path(), &mut files);
    let mut lines = BTreeSet::new();
    for (name, text) in files {
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if name.starts_with("node-config/") => flatten(&value, &short(&name), &mut lines),
            Ok(value) => flatten(&value, &name, &mut lines),
            Err(_) => lines.extend(text.lines().map(|line| format!("{name}: {}", line.trim()))),
        }
    }
    lines
}

/// The role in place of a host's name.
fn short(name: &str) -> String {
    let is_worker = name.contains("rack-2") || name.contains("worker");
    if is_worker { "worker".to_owned() } else { "control plane".to_owned() }
}

fn flatten(value: &Value, place: &str, lines: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                flatten(member, &format!("{place} {key}"), lines);
            }
        }
        Value::Array(items) => {
            for item in items {
                let name = ["path", "name", "reference"].iter().find_map(|key| item[key].as_str());
                flatten(item, &name.map_or_else(|| place.to_owned(), |name| format!("{place} {name}")), lines);
            }
        }
        Value::String(text) => lines.extend(text.lines().map(|line| format!("{place}: {}", line.trim()))),
        other => drop(lines.insert(format!("{place}: {other}"))),
    }
}

fn read_all(root: &Path, dir: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs_err::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.insert(name, fs_err::read_to_string(&path).unwrap());
        }
    }
}

/// What is another one in each run, or with each version of turnup, and long texts.
fn steady(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split(' ') {
        let is_digest = |part: &str| {
            part.len() >= 40 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        };
        let bare = word.trim_matches(['"', ',', ':']);
        words.push(if is_digest(bare) { word.replace(bare, "(digest)") } else { word.to_owned() });
    }
    words.join(" ")
}

#[test]
fn each_of_these_settings_is_seen_where_it_acts() {
    let test_env = test_env();
    let mut known: BTreeMap<&[(&str, &str)], BTreeSet<String>> = BTreeMap::new();
    let mut shown = String::new();
    for (name, base, value) in ROWS {
        let before = known.entry(base).or_insert_with(|| render(&test_env, base));
        let after = render(&test_env, &[*base, &[(*name, *value)]].concat());
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>, sign: &str| -> BTreeSet<String> {
            one.difference(other).map(|line| format!("  {sign} {}\n", steady(line))).collect()
        };
        let (new, old) = (only(&after, before, "+"), only(before, &after, "-"));
        assert!(!new.is_empty() || !old.is_empty(), "{name}={value} changes nothing that is rendered");
        let most = 14;
        writeln!(shown, "{name}={value}").unwrap();
        for lines in [old, new] {
            shown.extend(lines.iter().take(most).cloned());
            if lines.len() > most {
                writeln!(shown, "    and {} lines more", lines.len() - most).unwrap();
            }
        }
    }
    insta::assert_snapshot!(shown);
}
