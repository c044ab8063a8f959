//! Backups of a real etcd: taken by the timer's unit and on request, verified, fetched, and the way
//! back to one just as docs/backup.md says it.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use age::secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::cluster_addons::agnhost;
use crate::cluster_support::{Site, say};

const HOST: &str = "it-control-plane-0";
/// Only what hangs takes as long.
const SOON: Duration = Duration::from_mins(5);

/// The names of all backups, the newest first.
fn names(site: &Site) -> Vec<String> {
    let list: Value = serde_json::from_str(&site.ok(&["backup", "list", "--output", "json"]).out).unwrap();
    assert_eq!(list["others"][0]["names"], json!([]), "{list}");
    let all = list["backups"].as_array().unwrap().iter();
    all.map(|backup| backup["name"].as_str().unwrap().to_owned()).collect()
}

/// The commands of the document for the host, in their order, with the names of this cluster.
fn documented_restore(site: &Site, name: &str) -> String {
    let text = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/backup.md")).unwrap();
    let restore = text.split_once("### By hand").unwrap().1;
    let blocks: Vec<&str> = restore.split("```").skip(1).step_by(2).collect();
    assert_eq!(blocks.len(), 2, "{restore}");
    let start = "systemctl start kubelet turnup-backup.timer turnup-agent";
    assert!(restore.contains(start));
    let address = site.hosts()[HOST]["address"].as_str().unwrap().to_owned();
    let script = format!("set -e\n. /etc/profile\n{}\n{start}", blocks.concat());
    script.replace("NAME", name).replace("HOST", HOST).replace("ADDRESS", &address).replace("CLUSTER", "it")
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn start_shop(site: &Site) {
    let labels = json!({"app": "shop"});
    let container = json!({"name": "shop", "image": agnhost(site), "imagePullPolicy": "Never",
        "args": ["netexec", "--http-port=8080"], "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}}});
    let shop = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}}});
    let file = site.dir.join("shop.json");
    fs_err::write(&file, shop.to_string()).unwrap();
    site.kubectl(&["apply", "--filename", &file.display().to_string()]);
    site.kubectl(&["rollout", "status", "deployment/shop", "--timeout=180s"]);
}

fn config_maps(site: &Site) -> Vec<String> {
    let names = site.get(&["configmaps"]).into_iter().map(|map| map["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

#[test]
#[ignore = "some minutes: make test-backup"]
fn cluster_backup_brings_back_what_was_deleted() {
    let Some(site) = Site::of_cluster("backup", "10.125.14.0/24", 1) else { return };
    site.ok(&["config", "set", "phase2.backup.store=host", "phase2.backup.keep_recent=3"]);
    site.up();
    site.in_host(HOST, "systemctl is-active --quiet turnup-backup.timer");
    site.in_host(HOST, "systemctl start turnup-backup.service");
    start_shop(&site);
    site.kubectl(&["create", "configmap", "before"]);
    site.ok(&["backup", "now"]);
    let all = names(&site);
    assert!(all.len() >= 2, "one of the unit, one on request: {all:?}");
    let name = all[0].as_str();
    let said = site.ok(&["backup", "verify"]).out;
    assert!(said.starts_with(&format!("{name} on {HOST} can be restored: revision ")), "{said}");
    site.ok(&["backup", "download", name, "--to", "copy.tar"]);
    let copy = fs_err::read(site.dir.join("copy.tar")).unwrap();
    assert!(copy.len() > 1 << 20 && copy.starts_with(b"manifest.json"), "{} bytes", copy.len());
    site.fails(2, &["backup", "download", name, "--to", "copy.tar"]);
    assert!(site.ok(&["status"]).out.contains(name));

    site.kubectl(&["delete", "configmap/before", "deployment/shop"]);
    site.kubectl(&["create", "configmap", "after"]);
    say("restores by hand");
    site.in_host(HOST, &documented_restore(&site, name));
    wait_for("the API server never answered", || site.try_kubectl(&["get", "--raw=/readyz"]).is_ok());
    assert_eq!(config_maps(&site), ["before"]);
    // Controllers and kubelets have seen that the world is another one.
    site.kubectl(&["rollout", "status", "deployment/shop", "--timeout=180s"]);
    site.kubectl(&["create", "configmap", "since"]);
    site.up();
    assert_eq!(site.ready_nodes().len(), 2);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");

    // Of more than three the oldest go, and the one of before is no longer whole.
    site.in_host(HOST, &format!("printf x | dd of=/var/lib/etcd-backup/{name} bs=1 seek=500000 conv=notrunc"));
    let said = site.fails(4, &["backup", "verify", name]);
    assert!(said.err.contains("is no whole backup"), "{said}");
    for _ in 0..3 {
        site.ok(&["backup", "now"]);
    }
    let left = names(&site);
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(!left.contains(&name.to_owned()), "{left:?}");
    site.ok(&["down", "--yes"]);
}

#[test]
#[ignore = "some minutes: make test-backup"]
fn cluster_backup_that_is_encrypted_opens_with_its_key_alone() {
    let Some(site) = Site::of_cluster("sealed", "10.125.17.0/24", 1) else { return };
    let key = age::x25519::Identity::generate();
    fs_err::write(site.dir.join("age.key"), key.to_string().expose_secret()).unwrap();
    let recipients = format!("phase2.backup.recipients={}", key.to_public());
    site.ok(&["config", "set", "phase2.backup.store=host", &recipients]);
    site.up();
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.kubectl(&["create", "configmap", "before"]);
    site.ok(&["backup", "now"]);
    let name = names(&site).remove(0);
    assert!(name.ends_with(".age.tar"), "{name}");
    let said = site.fails(2, &["backup", "verify", &name]);
    assert!(said.err.contains("is encrypted") && said.err.contains("--identity FILE"), "{said}");
    let said = site.ok(&["backup", "verify", &name, "--identity", "age.key"]).out;
    assert!(said.starts_with(&format!("{name} on ")) && said.contains("can be restored: revision "), "{said}");
    // Nothing plain is left.
    site.in_host(HOST, "! ls -A /var/lib/turnup /var/lib/etcd-backup | grep --extended-regexp 'verify-backup|^.part-'");
    site.ok(&["backup", "download", &name, "--to", "copy.tar"]);

    let new = ["--state-dir", "new/.turnup", "--config", "new/.config.json"];
    fs_err::create_dir(site.dir.join("new")).unwrap();
    let open = [&["backup", "open", "copy.tar", "--identity", "age.key"][..], &new].concat();
    site.ok(&open);
    let of = |dir: &str| fs_err::read(site.dir.join(dir).join("it/pki/encryption.key")).unwrap();
    assert_eq!(of("new/.turnup"), of(".turnup"));
    site.fails(4, &open);

    site.kubectl(&["delete", "configmap/before"]);
    let said = site.fails(2, &["restore", "--file", "copy.tar", "--yes"]);
    assert!(said.err.contains("is encrypted"), "{said}");
    site.ok(&["restore", "--file", "copy.tar", "--identity", "age.key", "--yes"]);
    assert_eq!(config_maps(&site), ["before"]);
    site.up();
    site.ok(&["down", "--yes"]);
}
