//! What people get wrong in `.config.json`, and what they bring along from kubernetes-anywhere: our
//! own tree answers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use crate::cli_support::TestEnv;

#[test]
fn typical_mistakes_are_named_with_place_and_way_out() {
    let host = |name: &str, address: &str| format!(r#"{{"name": "{name}", "address": "{address}", "role": "worker"}}"#);
    let hosts = format!("[{}, {}]", host("w1", "192.0.2.1"), host("w1", "192.0.2.2"));
    let mistakes = [
        ("host bits in a network", r#"{"phase2": {"pod_cidr": "10.244.0.1/16"}}"#.to_owned()),
        ("networks that overlap", r#"{"phase2": {"service_cidr": "10.244.0.0/20"}}"#.to_owned()),
        ("a typo in a key", r#"{"phase1": {"cluster_nam": "x"}}"#.to_owned()),
        ("a string for a number", r#"{"phase1": {"num_nodes": "3"}}"#.to_owned()),
        ("a number out of range", r#"{"phase1": {"num_nodes": 1001}}"#.to_owned()),
        (
            "a zone that is none",
            r#"{"phase1": {"cloud_provider": "gce", "gce": {"zone": "US_Central1/b"}}}"#.to_owned(),
        ),
        (
            "a zone of another region",
            r#"{"phase1": {"cloud_provider": "gce", "gce": {"zone": "europe-west3-a"}}}"#.to_owned(),
        ),
        ("a dependency that is not met", r#"{"phase1": {"gce": {"zone": "us-central1-a"}}}"#.to_owned()),
        (
            "a host twice",
            format!(r#"{{"phase1": {{"cloud_provider": "baremetal", "baremetal": {{"hosts": {hosts}}}}}}}"#),
        ),
        ("YAML", "phase1:\n  num_nodes: 3\n".to_owned()),
        ("dots instead of nesting", r#"{"phase1.num_nodes": 3}"#.to_owned()),
        ("a comma too many", "{\"phase1\": {\"num_nodes\": 3,}}".to_owned()),
        ("a word for a switch", r#"{"phase3": {"dns": "yes"}}"#.to_owned()),
        (
            "a firewall that locks turnup out, and one that seems to admit pods",
            r#"{"phase2": {"host": {"firewall_kubelet_networks": ["10.0.0.0/8"], "firewall_ssh_networks": ["192.0.2.0/24"]}}}"#.to_owned(),
        ),
        (
            "a zone of a cloud without its id",
            r#"{"phase1": {"cloud_provider": "aws"}, "phase2": {"dns": {"provider": "route53", "zone": "example.com"}}}"#.to_owned(),
        ),
        (
            "a zone of another cloud",
            r#"{"phase2": {"dns": {"provider": "route53", "zone": "example.com", "zone_id": "Z0123456789"}}}"#.to_owned(),
        ),
        (
            "a name that Terraform writes as well",
            r#"{"phase1": {"cloud_provider": "aws", "cluster_name": "prod", "dns": {"provider": "route53", "domain": "example.com"}}, "phase2": {"dns": {"provider": "route53", "zone": "example.com", "zone_id": "Z0123456789"}}}"#.to_owned(),
        ),
        (
            "machines that are known by a project that is not named",
            r#"{"phase1": {"cloud_provider": "gce", "user_data": {"identity": "cloud", "artifacts_url": "https://example.com/a"}}}"#.to_owned(),
        ),
        (
            "machines that are known by an account that is not named",
            r#"{"phase1": {"cloud_provider": "gce", "gce": {"project": "p-123456", "node_service_account": "default"}, "user_data": {"identity": "cloud", "artifacts_url": "https://example.com/a"}}}"#.to_owned(),
        ),
        (
            "one issuer of users and machines",
            r#"{"phase1": {"cloud_provider": "gce", "gce": {"project": "p-123456"}, "user_data": {"identity": "cloud", "artifacts_url": "https://example.com/a"}}, "phase2": {"apiserver": {"oidc_issuer_url": "https://accounts.google.com", "oidc_client_id": "k8s"}}}"#.to_owned(),
        ),
        (
            "machines of a cloud that does not tell one from another",
            r#"{"phase1": {"cloud_provider": "azure", "user_data": {"identity": "cloud", "artifacts_url": "https://example.com/a"}}}"#.to_owned(),
        ),
        (
            "machines that are known by a role, and a profile that does not tell it",
            r#"{"phase1": {"cloud_provider": "aws", "aws": {"node_instance_profile": "nodes"}, "user_data": {"identity": "cloud", "artifacts_url": "https://example.com/a"}}}"#.to_owned(),
        ),
        (
            "two services that are asked whose token it is",
            r#"{"phase1": {"cloud_provider": "aws", "user_data": {"identity": "cloud", "artifacts_url": "https://example.com/a"}}, "phase2": {"apiserver": {"authentication_webhook_file": "webhook.yaml"}}}"#.to_owned(),
        ),
        ("a list as text", r#"{"phase1": {"ssh": {"allowed_cidrs": "10.0.0.0/8"}}}"#.to_owned()),
    ];
    let test_env = TestEnv::new("config");
    test_env.write("webhook.yaml", "clusters: [{name: a, cluster: {server: 'https://192.0.2.1'}}]\n");
    let mut said = String::new();
    for (what, file) in &mistakes {
        test_env.write(".config.json", file);
        let outcome = test_env.run(&["check"]);
        let new = |line: &&str| !line.contains(" is new: its default ");
        let found: Vec<&str> = outcome.out.lines().filter(new).collect();
        write!(said, "{what} ({})\n{file}\n{}\n{}\n", outcome.code, found.join("\n"), outcome.err).unwrap();
    }
    insta::assert_snapshot!(said);
}

#[test]
fn every_profile_is_right_and_as_short_as_can_be() {
    let test_env = TestEnv::new("config");
    let profiles = test_env.run(&["profile"]).out;
    let names: Vec<&str> = profiles.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["aws-ha", "azure-ha", "baremetal-ha", "gce-ha", "hardened", "local-ha", "local-minimal"]);
    assert!(profiles.lines().all(|line| line.split_whitespace().count() > 4), "each says what it is for: {profiles}");
    for name in names {
        let written = test_env.run(&["profile", name, "--force"]);
        assert_eq!(written.code, 0, "{name}: {}", written.err);
        let check = test_env.run(&["check"]);
        // Where hosts fetch from, which hosts there are, and whose networks, no profile knows.
        let open = ["phase1.user_data.artifacts_url: it is empty", "phase1.baremetal.hosts_file: failed to open file"];
        let is_open = |line: &str| line.contains("allowed_cidrs: ") || open.iter().any(|words| line.contains(words));
        assert!(check.out.lines().all(is_open), "{name}: {}", check.out);
        assert_eq!(check.code, if check.out.is_empty() { 0 } else { 3 }, "{name}: {}", check.out);
        let text =
            fs_err::read_to_string(format!("{}/phases/profiles/{name}.defconfig", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let lines =
            text.lines().filter(|line| !line.is_empty() && (!line.starts_with('#') || line.ends_with(" is not set")));
        let changed = test_env.run(&["list", "--changed"]).out;
        assert_eq!(lines.count(), changed.lines().count(), "{name} says only what is not so by default:\n{changed}");
    }
}

#[test]
fn configurations_of_kubernetes_anywhere_are_reported_value_by_value() {
    let mut said = String::new();
    for name in ["gce", "openstack", "vsphere", "azure"] {
        // There an empty user means the user that runs turnup, which may not be root on Azure.
        let test_env = TestEnv::new("config").with_env("USER", "ada");
        let file = format!("{}/tests/fixtures/anywhere/{name}.config", env!("CARGO_MANIFEST_DIR"));
        fs_err::copy(&file, test_env.path("old.config")).unwrap();
        let outcome = test_env.run(&["import", "old.config"]);
        assert_eq!(outcome.code, 0, "{name}: {}", outcome.err);
        let given = fs_err::read_to_string(&file).unwrap();
        let values = given.lines().filter(|line| line.starts_with('.') || line.ends_with(" is not set")).count();
        assert_eq!(outcome.out.lines().count(), values, "a line for each value");
        assert!(!outcome.out.contains("hunter2") && !outcome.out.contains("c$d"), "{}", outcome.out);
        assert!(!outcome.out.contains("nor turnup has such a setting"), "{}", outcome.out);
        // What is said to be kept is in the file. A later value of the same setting counts.
        let kept: BTreeMap<&str, &str> =
            outcome.out.lines().filter_map(|line| line.split_once(": kept: ")?.1.split_once('=')).collect();
        for (setting, value) in kept {
            let found = test_env.ok(&["get", setting]).out;
            assert_eq!(found.trim(), value.trim_matches('"'), "{name}: {setting}");
        }
        for line in outcome.out.lines().filter(|line| line.contains(&format!("the target {name} is gone"))) {
            assert!(line.contains("with the target custom a module of your own"), "{line}");
        }
        test_env.run(&["set", "phase1.user_data.artifacts_url=https://artifacts.example.com/turnup"]);
        let check = test_env.run(&["check"]);
        // The machines that it chose in 2016 take no disk of the kind that etcd gets by default,
        // and Azure would say so an hour later.
        let old_size = check.out.contains("machines of the size Standard_D1_v2 take no Premium_LRS");
        assert_eq!(check.code, if old_size { 3 } else { 0 }, "{name}: {}", check.out);
        assert_eq!(old_size, name == "azure");
        let mode = fs_err::metadata(test_env.path(".config.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0o044, "nothing secret is in it");
        write!(said, "{name}\n{}{}\n", outcome.out, outcome.err).unwrap();
    }
    insta::assert_snapshot!(said);
}

/// A value as a document has it.
fn in_words(value: &str) -> String {
    if value.is_empty() { "empty".to_owned() } else { format!("`{value}`") }
}

#[test]
fn each_default_that_differs_from_the_ancestors_is_told_with_its_reason() {
    let root = env!("CARGO_MANIFEST_DIR");
    let document = fs_err::read_to_string(format!("{root}/docs/ancestors.md")).unwrap();
    let (_, section) = document.split_once("## Defaults that differ").unwrap();
    let mut told: BTreeMap<&str, [&str; 2]> = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `phase")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, there, here, why] = cells[..] else { panic!("name, there, here, why: {line}") };
        assert!(!why.is_empty(), "{line}");
        told.insert(name.trim_matches('`'), [there, here]);
    }
    let mut differing = BTreeMap::new();
    let fresh = TestEnv::new("config");
    fresh.ok(&["defaults"]);
    differing.insert(
        "phase1.cloud_provider".to_owned(),
        vec![("gce".to_owned(), fresh.ok(&["get", "phase1.cloud_provider"]).out)],
    );
    for target in ["gce", "azure"] {
        let test_env = TestEnv::new("config");
        test_env.ok(&["set", &format!("phase1.cloud_provider={target}")]);
        let file = fs_err::read_to_string(format!("{root}/tests/fixtures/anywhere/{target}.config")).unwrap();
        for (name, there) in file.lines().filter_map(|line| line.strip_prefix('.')?.split_once('=')) {
            let (here, there) = (test_env.run(&["get", name]), there.trim_matches('"'));
            if here.code == 0 && here.out.trim() != there {
                let values = (there.to_owned(), here.out.trim().to_owned());
                differing.entry(name.to_owned()).or_insert_with(Vec::new).push(values);
            }
        }
    }
    let names: Vec<&str> = differing.keys().map(String::as_str).collect();
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), names, "the table in docs/ancestors.md");
    for (name, values) in differing {
        let [there, here] = told[name.as_str()];
        for (old, new) in values {
            assert!(there.starts_with(&in_words(&old)), "{name}: {old}, not {there}");
            assert!(here.starts_with(&in_words(new.trim())), "{name}: {new}, not {here}");
        }
    }
}
