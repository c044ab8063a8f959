//! `turnup status` and `turnup support-bundle` where there is no cluster, half a cluster, or hosts
//! that do not answer.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use serde_json::Value;
use turnup::state::{JournalEntry, Outcome, Store};

use crate::cli_support::{Outcome as Ended, TestEnv};

/// Two hosts on which no service listens.
const INVENTORY: &str = r#"{"schema": "turnup.provision/1", "cluster": "demo", "target": "local",
    "api": {"host": "127.0.0.1", "port": 1}, "hosts": [
    {"name": "demo-control-plane-0", "role": "control-plane", "address": "127.0.0.1", "instance": "1",
        "ssh": {"user": "root", "port": 1, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
    {"name": "demo-worker-0", "role": "worker", "address": "127.0.0.2", "instance": "1",
        "ssh": {"user": "root", "port": 1, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}]}"#;

fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cluster_name=demo", "phase1.local.subnet=10.124.9.0/24"]);
    test_env
}

/// The cluster's directory with steps that ended well, failed, and were interrupted.
fn half_a_cluster(test_env: &TestEnv) -> Store {
    let store = Store::open(test_env.path(".turnup/demo")).unwrap();
    store.write_file("outputs/provision.json", INVENTORY.as_bytes(), 0o600).unwrap();
    let lock = store.lock("turnup up").unwrap();
    let entry = |step: &str, outcome: Option<Outcome>| {
        store.record(&lock, JournalEntry::Intent { step: step.into(), digest: "d".into() }).unwrap();
        if let Some(outcome) = outcome {
            store.record(&lock, JournalEntry::Outcome { step: step.into(), outcome }).unwrap();
        }
    };
    let done = |input: &str| {
        let inputs = BTreeMap::from([(input.to_owned(), "before".to_owned())]);
        Some(Outcome::Done { digest: "d".into(), inputs, elapsed_ms: 61_000 })
    };
    entry("provision/inventory", done("phase1.zone"));
    entry("provision/apply", Some(Outcome::Failed { message: "the quota is used up".into() }));
    entry("bootstrap/artifacts", None);
    store.flush(&lock).unwrap();
    drop(lock);
    store
}

fn plain(test_env: &TestEnv, text: &str) -> String {
    let text = text.replace(&test_env.dir.path().display().to_string(), "DIR");
    let times = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let shown = words.iter().map(|word| match word.as_bytes() {
            [b'2', b'0', _, _, b'-', ..] if word.len() == 10 => "YYYY-MM-DD",
            [.., b'Z'] if word.contains(':') => "HH:MM:SSZ",
            _ => word,
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(times).collect::<Vec<_>>().join("\n")
}

fn fits(outcome: &Ended) {
    for line in outcome.out.lines().filter(|line| !line.contains('/') || line.starts_with(' ')) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn without_a_cluster_it_says_so_and_makes_nothing() {
    let empty = TestEnv::new("");
    let outcome = empty.ends(3, &["status"]);
    assert!(outcome.out.is_empty() && outcome.err.contains("turnup config"), "{}{}", outcome.out, outcome.err);
    empty.ends(3, &["support-bundle"]);
    let test_env = test_env();
    let outcome = test_env.ok(&["status"]);
    insta::assert_snapshot!("nothing_yet", plain(&test_env, &outcome.out));
    assert!(!test_env.path(".turnup").exists(), "a look made a directory");
}

#[test]
fn half_a_cluster_is_shown_with_what_stopped_it() {
    let test_env = test_env();
    drop(half_a_cluster(&test_env));
    let outcome = test_env.ok(&["status", "--quick"]);
    fits(&outcome);
    insta::assert_snapshot!("half_a_cluster", plain(&test_env, &outcome.out));
    // Not quick, it asks the hosts, says that they do not answer, and still shows the rest.
    let outcome = test_env.ends(5, &["status"]);
    assert!(outcome.out.contains("demo-worker-0: cannot reach root@127.0.0.2 over ssh"), "{}", outcome.out);
    assert!(outcome.out.contains("provision  failed"), "{}", outcome.out);
    assert!(outcome.err.starts_with("error: cannot reach root@127.0.0.1 over ssh"), "{}", outcome.err);
    let value: Value = serde_json::from_str(&test_env.ok(&["status", "--quick", "--output", "json"]).out).unwrap();
    assert_eq!(value["schema"], "turnup.status/1");
    assert_eq!(value["phases"][0]["state"], "failed");
    assert_eq!(value["phases"][1]["steps"][0]["condition"]["is"], "interrupted");
    assert_eq!(value["nodes"], Value::Null);
}

#[test]
fn without_a_configuration_the_journal_speaks() {
    let test_env = test_env();
    drop(half_a_cluster(&test_env));
    test_env.write(".config.json", "{");
    let outcome = test_env.ends(3, &["status"]);
    insta::assert_snapshot!("journal_alone", plain(&test_env, &outcome.out));
    assert!(outcome.err.starts_with("error: "), "{}", outcome.err);
}

#[test]
fn the_lock_owner_is_named_alive_or_dead() {
    let test_env = test_env();
    let store = half_a_cluster(&test_env);
    let lock = store.lock("turnup bootstrap").unwrap();
    let text = test_env.read(".turnup/demo/lock");
    let us = format!("`turnup bootstrap` (process {}", std::process::id());
    // How the line is broken depends on the machine's name.
    let shown = || test_env.ok(&["status", "--quick"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let out = shown();
    assert!(out.contains(&us) && out.contains("works on it since"), "{out}");
    assert!(out.contains("bootstrap running"), "{out}");
    drop(lock);
    assert!(!shown().contains("turnup bootstrap"));
    test_env.write(".turnup/demo/lock", &text);
    let out = shown();
    assert!(out.contains(&us) && out.contains("exited without releasing the lock (started 20"), "{out}");
    assert!(store.lock("turnup up").is_ok(), "a look took the lock");
}

#[test]
fn a_bundle_of_half_a_cluster_names_what_is_missing() {
    let test_env = test_env();
    let store = half_a_cluster(&test_env);
    store.write_file("logs/provision-apply.log", b"12:00:00 | the quota is used up\n", 0o600).unwrap();
    let outcome = test_env.ok(&["support-bundle", "--to", "bundle.tar.gz"]);
    assert_eq!(outcome.out, "bundle.tar.gz\n");
    assert!(outcome.err.contains("not in it: demo-worker-0: cannot reach"), "{}", outcome.err);
    assert!(outcome.err.contains("not in it: the API: bootstrap has not come so far"), "{}", outcome.err);
    let outcome = test_env.ok(&["support-bundle", "--to", "again.tar.gz", "--output", "json"]);
    let value: Value = serde_json::from_str(&outcome.out).unwrap();
    let files = value["manifest"]["files"].as_array().unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    for path in [
        "configuration/config.json",
        "cluster/state.json",
        "cluster/journal.jsonl",
        "cluster/outputs/provision.json",
        "cluster/logs/provision-apply.log",
        "doctor.json",
        "status.json",
        "status.txt",
    ] {
        assert!(paths.contains(&path), "{path} is not in {paths:?}");
    }
    // A broken configuration is when help is needed most.
    test_env.write(".config.json", "{");
    let outcome = test_env.ok(&["support-bundle", "--to", "broken.tar.gz"]);
    assert!(outcome.err.contains("not in it: the configuration"), "{}", outcome.err);
    assert!(!test_env.path("broken.tar.gz.part").exists() && test_env.path("broken.tar.gz").is_file());
}
