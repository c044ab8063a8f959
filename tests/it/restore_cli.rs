//! `turnup restore` where hosts do not answer, and what every other command says while a restore is
//! under way; and what is taken from the store alone. The restores themselves are
//! `cluster_restore`'s part.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cli_support::TestEnv;
use crate::simulation::{NAME, Simulation};

/// What the store has of a host that is gone.
const STORED: &str = "sim-20260301T120000Z-h9.tar";
const SNAPSHOT: &[u8] = b"all that etcd has";

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

/// A cluster whose etcd has lost everything, with a store that its host tells of.
fn without_data() -> Simulation {
    let simulation = Simulation::new(1);
    simulation.ok(&["config", "set", "phase2.backup.store=host"]);
    simulation.ok(&["up"]);
    simulation.ok(&["backup", "now"]);
    let member = json!({"directory": "/var/lib/etcd", "has_data": false, "is_running": false, "has_leader": false,
        "revision": null});
    fs_err::write(simulation.world("hosts/10.125.0.1/etcd.json"), member.to_string()).unwrap();
    simulation
}

/// Puts a backup into the store that the cluster has signed, taken at this time, in the name's
/// place.
fn store(simulation: &Simulation, name: &str, time: &str, change: impl Fn(&mut Value)) {
    let authority = fs_err::read(simulation.state("pki/etcd-ca.crt")).unwrap();
    let mut manifest = json!({
        "schema": "turnup.backup/1", "cluster": NAME, "cluster_id": hex::encode(Sha256::digest(authority)), "host": "h9",
        "time": time, "reason": "interval", "kubernetes_version": "1.36.3", "etcd_version": "3.6.16",
        "etcd_cluster_id": "1", "revision": 2000, "hash": "1a2b", "keys": 7,
        "sha256": hex::encode(Sha256::digest(SNAPSHOT)), "size": SNAPSHOT.len(),
    });
    change(&mut manifest);
    let text = format!("{manifest:#}\n");
    let pem = fs_err::read(simulation.state("pki/backup.key")).unwrap();
    let key = x509_parser::pem::parse_x509_pem(&pem).unwrap().1.contents;
    let signature = STANDARD.encode(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key).unwrap().sign(text.as_bytes()));
    let mut tar = tar::Builder::new(Vec::new());
    for (file, bytes) in
        [("manifest.json", text.as_bytes()), ("snapshot.db", SNAPSHOT), ("manifest.sig", signature.as_bytes())]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_entry_type(tar::EntryType::Regular);
        tar.append_data(&mut header, file, bytes).unwrap();
    }
    let bytes = tar.into_inner().unwrap();
    fs_err::create_dir_all(simulation.world("store")).unwrap();
    fs_err::write(simulation.world("store").join(name), &bytes).unwrap();
    let object = json!({"name": name, "bytes": bytes.len()});
    let list = json!({"place": "safe/etcd/ at https://s3.example.com", "backups": [["2026-03-01T12:00:00Z", object]],
        "problem": null});
    fs_err::write(simulation.world("store.json"), list.to_string()).unwrap();
}

#[test]
fn what_only_the_store_has_is_found_checked_and_taken() {
    let simulation = without_data();
    let here = "sim-20260101T000000Z-h0.tar";
    store(&simulation, STORED, "2026-03-01T12:00:00Z", |_| {});
    let refused = simulation.run(&["restore", "--backup", here]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err.contains(&format!("newer: {STORED} of ")) && refused.err.contains("--older"), "{refused}");
    // The newest of all by itself; asked for, nothing is changed yet.
    let asked = simulation.run(&["restore"]);
    assert_eq!(asked.code, 2, "{asked}");
    for said in [
        &format!("fetching {STORED} from safe/etcd/ at https://s3.example.com"),
        &format!("etcd is restored from the backup {STORED}, on: h0"),
        &format!("backup {here} of 2026-01-01T00:00:00Z on h0"),
        &format!("backup {STORED} of 2026-03-01T12:00:00Z in the store alone, safe/etcd/ at https://s3.example.com"),
    ] {
        assert!(asked.err.contains(said), "{said}: {asked}");
    }
    assert!(!simulation.state("outputs/restore.json").exists());
    assert_eq!(fs_err::read_dir(simulation.path("tmp")).unwrap().count(), 0, "what was fetched is gone");
    // The hosts of this test restore nothing: what was taken is there for the same command.
    let by_name = simulation.run(&["restore", "--backup", STORED, "--yes"]);
    assert!(by_name.code != 0 && by_name.err.contains("copying the snapshot to the hosts"), "{by_name}");
    assert_eq!(fs_err::read(simulation.state("restore/snapshot.db")).unwrap(), SNAPSHOT);
    let record = fs_err::read_to_string(simulation.state("outputs/restore.json")).unwrap();
    assert!(record.contains(STORED) && record.contains("2000"), "{record}");
}

#[test]
fn what_the_store_has_is_refused_before_anything_stops() {
    let simulation = without_data();
    let refused = |said: &str| {
        let ended = simulation.run(&["restore", "--backup", STORED, "--yes"]);
        assert!(ended.code == 4 && ended.err.contains(said), "{said}: {ended}");
        assert!(!simulation.state("outputs/restore.json").exists(), "{said}");
    };
    let time = "2026-03-01T12:00:00Z";
    refused(&format!("there is no backup {STORED}"));
    store(&simulation, STORED, time, |manifest| manifest["cluster_id"] = json!("0".repeat(64)));
    refused("is of another cluster");
    store(&simulation, STORED, time, |manifest| manifest["sha256"] = json!("0".repeat(64)));
    refused("sha256");
    store(&simulation, STORED, "2026-01-01T12:00:00Z", |_| {});
    refused("is another backup than its name says");
    store(&simulation, STORED, time, |_| {});
    let stored = simulation.world("store").join(STORED);
    let signed = fs_err::read(&stored).unwrap();
    let at = signed.windows(4).position(|four| four == b"2000").unwrap();
    let mut forged = signed.clone();
    forged[at] = b'9';
    fs_err::write(&stored, forged).unwrap();
    refused("is not signed by this cluster");
    fs_err::write(&stored, &signed[..signed.len() / 2]).unwrap();
    let cut = simulation.run(&["restore", "--backup", STORED, "--yes"]);
    assert!(cut.code == 4 && !simulation.state("outputs/restore.json").exists(), "{cut}");
}
