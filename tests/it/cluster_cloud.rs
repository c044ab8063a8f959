//! A cluster in a cloud that is only played: the module for Google with a provider that makes nothing and says that every address is the one
//! of a host on this machine. From there on everything is real: ssh learns the host's key, the host becomes a node, the cluster works.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Duration;

use serde_json::{Value, json};

use crate::cloud_support::mirror;
use crate::cluster_disk::Disk;
use crate::cluster_support::{Site, can_make_hosts, sh};

const ADDRESS: &str = "10.123.19.10";
/// The volume of etcd, as Google's machine has it once it is attached.
const VOLUME: &str = "/dev/disk/by-id/google-far-etcd-main-a";

/// The configuration of the cloud's cluster, beside that of the cluster whose host plays the machine.
fn configure(site: &Site) {
    let key = site.path("ssh/id_ed25519");
    let config = json!({"phase1": {
        "cluster_name": "far", "cloud_provider": "gce", "num_nodes": 0, "gce": {"project": "a-project"},
        "ssh_user": "root", "ssh": {"private_key_file": key}, "terraform": {"provider_mirror": "mirror"},
        "user_data": {"artifacts_url": "https://mirror.example.com"},
    }});
    fs_err::write(site.dir.join("far.json"), config.to_string()).unwrap();
    mirror(&site.dir.join("mirror"), "gce", Some(ADDRESS));
}

fn far(site: &Site, file: &str) -> Value {
    site.json_of(&format!(".turnup/far/{file}"))
}

/// A Node that somebody writes stands for the host that joins by itself: no cloud makes one here.
fn a_group_is_waited_for(site: &Site) {
    site.ok(&["config", "set", "phase1.num_nodes=1"]);
    site.ok(&["provision"]);
    let mut waiting = site.start(&["bootstrap"]);
    waiting.wait_for("workers: 0 of 1 hosts have joined");
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "far-workers-x1y2", "labels": {"turnup.dev/group": "workers"}}});
    fs_err::write(site.dir.join("node.json"), node.to_string()).unwrap();
    site.kubectl(&["create", "--filename", &site.dir.join("node.json").display().to_string()]);
    let done = waiting.wait(Duration::from_mins(3));
    assert_eq!(done.code, Some(0), "{done}");
    assert!(site.ok(&["bootstrap"]).err.contains("0 ran"));
}

/// What a group of one does for a machine that died: another one at the same address, blank, with a host key of its own. The volume comes to it.
fn a_machine_made_anew_goes_on_with_the_data(site: &mut Site, disk: &Disk) {
    const HOST: &str = "it-control-plane-0";
    site.kubectl(&["create", "configmap", "mark"]);
    let uid = ["get", "configmap", "mark", "--output=jsonpath={.metadata.uid}"];
    let mark = site.kubectl(&uid);
    let far = site.env.remove("TURNUP_CONFIG").unwrap();
    site.ok(&["local", "host", "delete", "--spec", &format!(".turnup/it/provision/hosts/{HOST}.json")]);
    sh(&format!("rm '{0}/{HOST}' '{0}/{HOST}.pub'", site.path("ssh/hosts").display()));
    site.ok(&["provision"]);
    site.env.insert("TURNUP_CONFIG".into(), far);
    disk.plug_in_as(site, VOLUME);
    let refused = site.fails(4, &["up"]);
    assert!(refused.err.contains("turnup provision --forget-host-key far-control-plane-0"), "{refused}");
    site.ok(&["provision", "--forget-host-key", "far-control-plane-0"]);
    site.ok(&["up"]);
    site.ok(&["validate"]);
    assert_eq!(site.kubectl(&uid), mark, "another etcd");
    assert!(site.ok(&["up"]).err.contains("0 ran"));
}

#[test]
fn a_machine_of_a_cloud_becomes_a_cluster_that_works() {
    if !can_make_hosts() {
        return;
    }
    let mut site = Site::new("cloud");
    site.configure("10.123.19.0/24", 0);
    site.warm_cache();
    site.ok(&["provision"]);
    let disk = Disk::new(&site);
    disk.plug_in_as(&site, VOLUME);
    configure(&site);
    site.env.insert("TURNUP_CONFIG".into(), "far.json".into());

    let up = site.ok(&["up"]);
    assert!(up.err.contains("far-control-plane-0 has the host key ssh-ed25519 "), "{up}");
    let handoff = far(&site, "outputs/provision.json");
    assert_eq!(handoff["api"], json!({"host": ADDRESS, "port": 6443, "internal_host": ADDRESS}));
    let key = fs_err::read_to_string(site.path("ssh/hosts/it-control-plane-0.pub")).unwrap();
    let key = key.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    assert_eq!(handoff["hosts"][0]["ssh"]["host_key"], key, "the real one, learnt by the real ssh");
    site.ok(&["validate"]);
    assert_eq!(handoff["hosts"][0]["etcd_volume"]["name"], "far-etcd-main-a");
    assert_eq!(disk.look("LABEL"), "far");

    let again = site.ok(&["up"]);
    assert!(again.err.contains("0 ran") && !again.err.contains(" begins"), "{again}");
    assert!(site.ok(&["plan"]).out.contains("nothing to do"));
    // A door more is a change of the firewall alone, and of no host.
    site.ok(&["config", "set", "phase1.api.allowed_cidrs=203.0.113.0/24,198.51.100.0/24"]);
    let plan = site.ok(&["plan"]).out;
    let changed: Vec<&str> = plan.lines().filter(|line| line.contains("  resource ")).map(str::trim).collect();
    assert_eq!(changed, ["~   resource google_compute_firewall.api[0]"], "{plan}");
    site.ok(&["up"]);
    site.ok(&["validate"]);
    fs_err::copy(site.dir.join(".turnup/far/kubeconfig"), site.path("kubeconfig")).unwrap();
    a_machine_made_anew_goes_on_with_the_data(&mut site, &disk);
    a_group_is_waited_for(&site);
    let refused = site.fails(4, &["down", "--yes"]);
    assert!(refused.err.contains("google_compute_disk.etcd"), "the data is not lost by one word: {refused}");
    site.ok(&["down", "--destroy-volumes", "--yes"]);
    assert!(!site.dir.join(".turnup/far").exists());
}
