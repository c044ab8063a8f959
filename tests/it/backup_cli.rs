//! `turnup backup`, and backups before changes, over a cluster whose hosts are made up.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::simulation::Simulation;

/// The reasons of all backups, the newest first.
fn reasons(simulation: &Simulation) -> Vec<String> {
    let list: Value = serde_json::from_str(&simulation.ok(&["backup", "list", "--output", "json"]).out).unwrap();
    let all = list["backups"].as_array().unwrap().iter();
    all.map(|backup| backup["manifest"]["reason"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_backup_is_taken_on_request_and_before_another_version_starts() {
    let simulation = Simulation::new(2);
    let refused = simulation.run(&["backup", "now"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.err.contains("turnup config set phase2.backup.store=host"), "{refused}");
    simulation.ok(&["up"]);
    simulation.ok(&["config", "set", "phase2.backup.store=host"]);
    simulation.ok(&["up"]);
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
    assert_eq!(reasons(&simulation), ["change"], "the run that begins with them takes the first one");
    simulation.ok(&["backup", "now"]);
    insta::assert_snapshot!(simulation.ok(&["backup", "list"]).out, @r"
    BACKUP                       HOST  REVISION  KUBERNETES  REASON   SIZE
    sim-20260102T000000Z-h0.tar  h0        1002  1.36.3      request  2 MB
    sim-20260101T000000Z-h0.tar  h0        1001  1.36.3      change   2 MB
    ");
    // Made-up components do not tell with what they run.
    let status = simulation.run(&["status"]).out;
    assert!(status.contains("sim-20260102T000000Z-h0.tar on h0"), "{status}");
    assert!(status.contains("older than two intervals: turnup backup now"), "{status}");

    let told = || fs_err::read_to_string(simulation.world("hosts/10.125.0.1/node-config.json")).unwrap();
    let before = told();
    let full = "error: no space left on the disk of /var/lib/etcd-backup\nnext: make room there\n";
    simulation.script(&[json!({"tool": "ssh", "when": ["node backup", "take"], "exit": 4, "stderr": full})]);
    simulation.ok(&["config", "set", "phase2.kubernetes_version=1.37.2"]);
    let failed = simulation.run(&["up"]);
    assert_eq!((failed.code, told()), (4, before), "{failed}");
    assert!(failed.err.contains("without one: turnup config set phase2.backup.before_change=n"), "{failed}");
    simulation.script(&[]);
    simulation.ok(&["up"]);
    assert_eq!(reasons(&simulation), ["change", "request", "change"]);
    assert!(told().contains("1.37.2"));
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");

    simulation.script(&[json!({"tool": "ssh", "when": ["node backup", "take"], "exit": 4, "stderr": full})]);
    simulation.ok(&["config", "set", "phase2.kubernetes_version=1.36.3", "phase2.backup.before_change=n"]);
    let plan = simulation.run(&["plan"]);
    assert!(!plan.out.contains("bootstrap/backup"), "{plan}");
}

#[test]
fn with_recipients_control_plane_hosts_get_the_clusters_keys_that_they_cannot_read() {
    const KEY: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
    let simulation = Simulation::new(2);
    simulation.ok(&["config", "set", "phase2.backup.store=host"]);
    simulation.ok(&["up"]);
    let given = |host: &str| -> Value {
        let text = fs_err::read_to_string(simulation.world(&format!("hosts/{host}/node-config.json"))).unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        let files = told["files"].as_array().unwrap().iter();
        files.filter(|file| file["path"].as_str().unwrap().starts_with("/etc/kubernetes/backup/")).cloned().collect()
    };
    let before = given("10.125.0.1");
    assert_eq!(before.as_array().unwrap().len(), 1, "the key that signs alone: {before}");
    let wrong = simulation.run(&["config", "set", "phase2.backup.recipients=age1wrong"]);
    assert!(wrong.err.contains("age1wrong is no public key of age"), "{wrong}");
    simulation.ok(&["config", "set", &format!("phase2.backup.recipients={KEY}")]);
    let plan = simulation.run(&["plan"]);
    assert!(
        plan.out.contains("/etc/kubernetes/backup/directory.tar.age") || plan.out.contains("backup-keys"),
        "{plan}"
    );
    simulation.ok(&["up"]);
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
    let after = given("10.125.0.1");
    assert_eq!(after.as_array().unwrap().len(), 2, "{after}");
    assert!(after.to_string().contains("BEGIN AGE ENCRYPTED FILE"), "{after}");
    // A key that is rotated is in the next backup.
    simulation.ok(&["config", "set", "phase2.max_pods=99"]);
    simulation.ok(&["up"]);
    assert_ne!(given("10.125.0.1"), after);
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
    for host in ["10.125.0.3", "10.125.0.4"] {
        if simulation.world(&format!("hosts/{host}/node-config.json")).exists() {
            assert_eq!(given(host), json!([]), "a worker gets nothing");
        }
    }
}

/// The files below a directory that have this text.
fn holders(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holders(&path, text));
        } else if String::from_utf8_lossy(&fs_err::read(&path).unwrap()).contains(text) {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_key_of_a_store_comes_to_control_plane_hosts_apart_from_all_else() {
    const KEY: &str = "c2VjcmV0LWtleS1vZi1hbi1hY2NvdW50";
    let simulation = Simulation::new(2);
    let write = |mode: u32, text: String| {
        let path = simulation.path("work/azure.credentials");
        fs_err::write(&path, text).unwrap();
        fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    write(0o644, format!("account_key = {KEY}\n"));
    let set =
        ["store=azure", "azure.account=mybackups", "azure.container=etcd", "azure.credentials_file=azure.credentials"];
    let set = set.map(|one| format!("phase2.backup.{one}"));
    simulation.ok(&[&["config", "set"][..], &set.each_ref().map(String::as_str)].concat());
    let open = simulation.run(&["up"]);
    assert!(open.code == 3 && open.err.contains("chmod 600 azure.credentials"), "{open}");
    write(0o600, format!("account_key = {KEY}\nsas_token = sv=1\n"));
    let both = simulation.run(&["up"]);
    assert!(both.code == 3 && both.err.contains("azure.credentials has neither a key nor a SAS, or both"), "{both}");
    write(0o600, format!("account_key = {KEY}\n"));
    simulation.ok(&["up"]);
    assert_eq!(simulation.ok(&["plan"]).out, "nothing to do\n");
    let told = |host: &str| -> Vec<Value> {
        let text = fs_err::read_to_string(simulation.world(&format!("hosts/{host}/node-config.json"))).unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        let files = told["files"].as_array().unwrap().iter();
        files.filter(|file| file["path"] == "/etc/kubernetes/backup/store.json").cloned().collect()
    };
    let [file] = told("10.125.0.1").try_into().unwrap();
    assert!(file["mode"] == 0o600 && file["content"]["secret"]["sha256"].is_string(), "{file}");
    assert!(told("10.125.0.2").is_empty(), "workers take no backups");
    for dir in ["work/.turnup", "home/fakes", "run", "tmp"] {
        assert_eq!(holders(&simulation.path(dir), KEY), Vec::<PathBuf>::new());
    }
    // Another key is a change of the file.
    write(0o600, format!("sas_token = ?sv=1&sp=rwdl&sig={KEY}\n"));
    assert!(simulation.ok(&["plan"]).out.contains("bootstrap/"), "another key is delivered");
}
