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

const AZURE: &[(&str, &str)] =
    &[("phase1.cloud_provider", "azure"), ("phase1.user_data.artifacts_url", "https://example.com/a")];
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
    ("phase2.update.max_surge", AZURE, "2"),
    ("phase2.update.max_unavailable", AZURE, "3"),
];

/// The others that `reference` finds in nothing rendered, and the test that gives each by its name
/// and sees its effect.
pub(crate) const OTHERWISE: &[(&str, &[&str])] = &[
    ("tests/it/backup_cli.rs", &["phase2.backup.before_change"]),
    (
        "src/bootstrap/setting_tests.rs",
        &[
            "phase2.backup.before_change",
            "phase2.backup.azure.account",
            "phase2.backup.azure.container",
            "phase2.backup.azure.prefix",
            "phase2.backup.azure.endpoint",
            "phase2.backup.azure.ca_file",
            "phase2.backup.azure.credentials_file",
            "phase2.backup.s3.endpoint",
            "phase2.backup.s3.bucket",
            "phase2.backup.s3.region",
            "phase2.backup.s3.prefix",
            "phase2.backup.s3.path_style",
            "phase2.backup.s3.ca_file",
            "phase2.backup.s3.credentials_file",
            "phase2.dns.provider",
            "phase2.dns.server",
            "phase2.dns.port",
            "phase2.dns.zone",
            "phase2.dns.zone_id",
            "phase2.dns.domain",
            "phase2.dns.key_file",
            "phase2.dns.ttl",
            "phase2.dns.annotations",
            "phase2.pki.ca_cert_file",
            "phase2.pki.ca_key_file",
            "phase2.pki.token_lifetime",
            "phase2.timeout",
        ],
    ),
    ("src/bootstrap/certificate_tests.rs", &["phase2.pki.ca_lifetime", "phase2.pki.leaf_lifetime"]),
    ("tests/it/kubeconfig_cli.rs", &["phase2.kubeconfig.lifetime", "phase2.kubeconfig.max_lifetime"]),
    ("tests/it/settings_flipped.rs", &["phase2.artifacts.preload_images"]),
];

/// Whether a setting of phase 2 has its effect shown by one of these tests.
pub(crate) fn is_shown(name: &str) -> bool {
    ROWS.iter().any(|row| row.0 == name) || OTHERWISE.iter().any(|(_, names)| names.contains(&name))
}

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
fn render(test_env: &TestEnv, changes: &[(&str, &str)]) -> Result<BTreeSet<String>, String> {
    let to = tempfile::tempdir_in(test_env.dir.path()).unwrap();
    let changes: Vec<String> = changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let set = changes.iter().flat_map(|change| ["--set", change.as_str()]);
    let words: Vec<&str> = ["render", "--to", to.path().to_str().unwrap()].into_iter().chain(set).collect();
    let done = test_env.run(&words);
    if done.code != 0 {
        return Err(format!("{changes:?}: {}", done.err));
    }
    let mut files = BTreeMap::new();
    read_all(to.path(), to.path(), &mut files);
    let mut lines = BTreeSet::new();
    for (name, text) in files {
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if name.starts_with("node-config/") => flatten(&value, &short(&name), &mut lines),
            Ok(value) => flatten(&value, &name, &mut lines),
            Err(_) => lines.extend(lines_of(&text).map(|line| format!("{name}: {line}"))),
        }
    }
    Ok(lines)
}

/// The role in place of a host's name.
fn short(name: &str) -> String {
    let is_worker = name.contains("rack-2") || name.contains("worker");
    if is_worker { "worker".to_owned() } else { "control plane".to_owned() }
}

fn flatten(value: &Value, place: &str, lines: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            // By these the place is named already.
            for (key, member) in members.iter().filter(|(key, _)| !["path", "name"].contains(&key.as_str())) {
                flatten(member, &format!("{place} {key}"), lines);
            }
        }
        Value::Array(items) => {
            for item in items {
                let name = ["path", "name", "reference"].iter().find_map(|key| item[key].as_str());
                flatten(item, &name.map_or_else(|| place.to_owned(), |name| format!("{place} {name}")), lines);
            }
        }
        Value::String(text) => lines.extend(lines_of(text).map(|line| format!("{place}: {line}"))),
        other => drop(lines.insert(format!("{place}: {other}"))),
    }
}

/// The lines of a text; of a certificate, which is another one in each run, the first.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.lines().map(str::trim).filter(move |line| {
        let is_first = line.starts_with("-----BEGIN ");
        let is_hidden = is_inside && !is_first;
        is_inside = is_first || (is_inside && !line.starts_with("-----END "));
        !is_hidden
    })
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

/// The same text for what another change of the files would make another one: digests.
fn steady(line: &str) -> String {
    let is_hex = |part: &str| part.len() >= 12 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bare = |word: &str| word.trim_matches(['"', ',', ':', ')']).to_owned();
    let words = line.split(' ').map(|word| match bare(word) {
        digest if is_hex(&digest) => word.replace(&digest, "DIGEST"),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_of_these_settings_is_seen_where_it_acts() {
    let test_env = test_env();
    let mut known: BTreeMap<&[(&str, &str)], BTreeSet<String>> = BTreeMap::new();
    let (mut shown, mut wrong) = (String::new(), Vec::new());
    for (name, base, value) in ROWS {
        let others: Vec<(&str, &str)> = base.iter().copied().filter(|(other, _)| other != name).collect();
        let both = [others, vec![(*name, *value)]].concat();
        if !known.contains_key(base) {
            known.insert(base, render(&test_env, base).unwrap());
        }
        let before = &known[base];
        let after = match render(&test_env, &both) {
            Ok(after) => after,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>, sign: &str| -> BTreeSet<String> {
            one.difference(other).map(|line| format!("  {sign} {}\n", steady(line))).collect()
        };
        let (new, old) = (only(&after, before, "+"), only(before, &after, "-"));
        if new.is_empty() && old.is_empty() {
            wrong.push(format!("{name}={value} changes nothing that is rendered"));
        }
        let most = 14;
        writeln!(shown, "{name}={value}").unwrap();
        for lines in [old, new] {
            shown.extend(lines.iter().take(most).cloned());
            if lines.len() > most {
                writeln!(shown, "    and {} lines more", lines.len() - most).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    insta::assert_snapshot!(shown);
}

#[test]
fn each_test_that_is_said_to_show_a_setting_names_it() {
    for (file, names) in OTHERWISE {
        let text = fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        for name in *names {
            assert!(text.contains(&format!("{name}\"")) || text.contains(&format!("{name}=")), "{file}: {name}");
        }
    }
}
