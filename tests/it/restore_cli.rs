//! `turnup restore` where hosts do not answer, and what every other command says while a restore is
//! under way. The restores themselves are `cluster_restore`'s part.

use serde_json::json;

use crate::cli_support::TestEnv;

/// A control-plane host on which no service listens.
fn test_env() -> TestEnv {
    let test_env = TestEnv::new("");
    test_env.ok(&["config", "set", "phase1.cluster_name=demo", "phase1.local.subnet=10.124.9.0/24"]);
    let host = json!({"name": "demo-control-plane-0", "role": "control-plane", "address": "127.0.0.1", "instance": "1",
        "ssh": {"user": "root", "port": 1,
            "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}});
    let inventory = json!({"schema": "turnup.provision/1", "cluster": "demo", "target": "local",
        "api": {"host": "127.0.0.1", "port": 1}, "hosts": [host]});
    test_env.write(".turnup/demo/outputs/provision.json", &inventory.to_string());
    test_env
}

fn begin(test_env: &TestEnv, is_finished: bool) {
    let record = json!({"schema": "turnup.restore/1", "id": "20260301T120000Z", "source": "the backup monday.tar",
        "hosts": ["demo-control-plane-0"], "known": 4711, "is_finished": is_finished,
        "snapshot": {"revision": 4711, "sha256": "0".repeat(64), "has_hash": true}});
    test_env.write(".turnup/demo/outputs/restore.json", &record.to_string());
}

#[test]
fn no_other_run_begins_until_a_restore_has_come_to_its_end() {
    let test_env = test_env();
    begin(&test_env, false);
    let said = "the restore of etcd from the backup monday.tar is under way";
    for args in [
        &["up"][..],
        &["bootstrap"],
        &["addons"],
        &["plan"],
        &["reset", "demo-control-plane-0", "--yes"],
        &["status", "--quick"],
        &["restore", "--newest-backup", "--yes"],
    ] {
        let done = test_env.ends(4, args);
        let all = done.out + &done.err;
        assert!(all.contains(said) && all.contains("next: turnup restore"), "{args:?}: {all}");
    }
    begin(&test_env, true);
    assert!(!test_env.run(&["status", "--quick"]).out.contains("under way"));
    test_env.ok(&["config", "check"]);
}

#[test]
fn a_restore_asks_before_it_stops_anything() {
    let test_env = test_env();
    begin(&test_env, false);
    let done = test_env.ends(2, &["restore"]);
    assert!(done.err.contains("goes on, on: demo-control-plane-0"), "{}", done.err);
    assert!(done.err.contains("next: turnup restore --yes"), "{}", done.err);
    // The snapshot that was fetched is not there: it is never replaced by another one.
    let done = test_env.run(&["restore", "--yes"]);
    assert_ne!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("snapshot.db"), "{}", done.err);
}

#[test]
fn a_host_that_does_not_answer_is_named_with_both_ways() {
    let test_env = test_env();
    test_env.write(".turnup/demo/pki/etcd-ca.crt", "-----BEGIN CERTIFICATE-----\n");
    let done = test_env.ends(4, &["restore", "--yes"]);
    assert!(done.err.contains("demo-control-plane-0 does not answer, so its etcd cannot be stopped"), "{}", done.err);
    assert!(done.err.contains("turnup restore --without demo-control-plane-0"), "{}", done.err);
    let alone = test_env.ends(4, &["restore", "--yes", "--without", "demo-control-plane-0"]).err;
    assert!(alone.contains("no host of the control plane is a node"), "{alone}");
    assert!(!test_env.path(".turnup/demo/outputs/restore.json").exists());
}
