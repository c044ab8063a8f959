//! Phase 2 from an external inventory, and the lock of an owner that died: what is said, and what
//! is refused.
#![expect(clippy::unwrap_used, clippy::format_push_string, reason = "tests")]

use std::time::Duration;

use turnup::cluster::Cluster;
use turnup::config::{Settings, TreeSource};
use turnup::phase::{Cx, Sink};
use turnup::provision;

use crate::cli_support::TestEnv;

const GOOD: &str = r#"{
    "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "elsewhere",
    "api": {"host": "192.0.2.10", "port": 6443},
    "hosts": [
        {"name": "rack-1", "role": "control-plane", "address": "192.0.2.10", "instance": "1",
         "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}
    ]}"#;
/// Ends a run before any host is contacted: that file is not a key.
const NO_KEY: &str = "phase1.ssh.private_key_file=.config.json";

/// The error at the end of what was said.
fn error_of(said: &str) -> &str {
    &said[said.find("error: ").unwrap()..]
}

fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "defaults"]);
    test_env.write("hosts.json", GOOD);
    test_env
}

/// What `turnup bootstrap --from` does before its first step; whether the cluster's key was made.
fn adopt(test_env: &TestEnv) -> bool {
    let source = TreeSource::embedded();
    let cluster = Cluster::open(&Settings::defaults(&source).unwrap(), source, &test_env.path(".turnup")).unwrap();
    let cx = Cx::detached("from", Sink::null(), test_env.path("log"), Duration::from_secs(20));
    provision::adopt(&cluster, &test_env.path("hosts.json"), &cx).unwrap().1
}

#[test]
fn a_mistake_in_an_inventory_has_its_place_and_nothing_is_started() {
    let test_env = test_env();
    let mistakes = [
        ("\"instance\"", "\"instanse\""),
        ("\"control-plane\"", "\"control-plan\""),
        ("turnup.provision/1", "turnup.provision/2"),
        ("turnup.provision/1", "turnup.provision/0"),
        ("\"schema\": \"turnup.provision/1\", ", ""),
        ("\"cluster\": \"kubernetes\"", "\"cluster\": \"shelf\""),
        ("6443", "443"),
        ("\"port\": 22", "\"port\": 70000"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAA"),
    ];
    let mut said = String::new();
    for (good, wrong) in mistakes {
        test_env.write("hosts.json", &GOOD.replacen(good, wrong, 1));
        let done = test_env.run(&["bootstrap", "--from", "hosts.json"]);
        said += &format!("# {good} -> {wrong}: exit {}\n{}\n", done.code, error_of(&done.err));
    }
    let done = test_env.run(&["bootstrap", "--from", "no.json"]);
    said += &format!("# no file: exit {}\n{}", done.code, error_of(&done.err));
    insta::assert_snapshot!(said);
    assert!(!test_env.path(".turnup/kubernetes/outputs").exists());
}

#[test]
fn hosts_that_were_handed_over_are_not_made_a_second_time() {
    let test_env = test_env();
    assert!(adopt(&test_env), "a key of its own");
    assert!(!adopt(&test_env), "and it stays");
    for command in ["up", "provision", "plan"] {
        let refused = test_env.ends(3, &[command]).err;
        let file = test_env.path("hosts.json").display().to_string();
        assert!(refused.contains(&format!("were handed over in {file}: turnup makes none")), "{refused}");
        assert!(refused.contains(&format!("next: turnup bootstrap --from {file}")), "{refused}");
    }
    assert!(test_env.ok(&["status", "--quick"]).out.contains("provision"), "to look is no reason to refuse");
    let bare = ["--set", "phase1.cloud_provider=baremetal"];
    let refused = test_env.ends(3, &["provision", bare[0], bare[1]]).err;
    assert!(refused.contains("were handed over"), "another file is not the same file: {refused}");
    let file = "phase1.baremetal.hosts_file=hosts.json";
    // It gets as far as the hosts, which do not accept this key.
    let tried = test_env.ends(4, &["provision", bare[0], bare[1], "--set", file, "--set", NO_KEY]).err;
    assert!(tried.contains("the private key") && !tried.contains("handed over"), "{tried}");
}

#[test]
fn provisioned_hosts_are_not_replaced_by_an_external_inventory() {
    let test_env = test_env();
    test_env.write(".turnup/kubernetes/provision/terraform.tfvars.json", "{}");
    let refused = test_env.ends(3, &["bootstrap", "--from", "hosts.json"]).err;
    assert!(refused.contains("has hosts of its own, made by `turnup provision`\nnext: turnup down"), "{refused}");
}

#[test]
fn a_takeover_of_the_lock_names_the_dead_owner() {
    let test_env = test_env();
    test_env.write("provision.json", GOOD);
    let owner = r#"{"pid": 4194300, "host": "another", "start": "2026-01-02T03:04:05Z", "command": "turnup up"}"#;
    test_env.write(".turnup/kubernetes/lock", owner);
    let bare = ["provision", "--set", "phase1.cloud_provider=baremetal", "--set", NO_KEY];
    let said = test_env.ends(4, &bare).err;
    let line =
        "`turnup up` (process 4194300 on another, since 2026-01-02 03:04:05Z) ended without letting go of this cluster";
    assert!(said.contains(line), "{said}");
    assert!(!test_env.ends(4, &bare).err.contains("taking over"), "only the next run says so");
    test_env.write(".turnup/kubernetes/lock", owner);
    let events = test_env.ends(4, &[&bare[..], &["--output", "json"]].concat()).out;
    assert!(events.contains(r#""kind":"note","message":"`turnup up` (process 4194300"#), "{events}");
}
