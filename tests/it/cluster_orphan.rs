//! Local hosts whose cluster's directory was deleted by hand: they are listed, and `turnup down` or
//! `turnup local cleanup` removes them whole.
#![expect(clippy::disallowed_methods, reason = "the test looks at this machine")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::process::Command;

use serde_json::Value;

use crate::cluster_support::{Site, sh};

#[test]
fn hosts_without_their_directory_are_listed_and_removed() {
    let Some(site) = Site::of_cluster("orphan", "10.124.11.0/24", 1) else { return };
    site.ok(&["provision"]);
    assert_eq!(listed(&site), ["it-control-plane-0 running false", "it-worker-0 running false"]);
    assert!(site.ok(&["local", "cleanup"]).err.contains("nothing to do"), "a cluster that is there is left alone");

    delete_directory(&site);
    assert_eq!(listed(&site), ["it-control-plane-0 running true", "it-worker-0 running true"]);
    let refused = site.fails(2, &["local", "cleanup"]);
    assert!(refused.err.contains("turnup local cleanup --yes"), "{refused}");
    assert!(site.ok(&["local", "cleanup", "--yes"]).err.contains("2 hosts removed"));
    assert_eq!(listed(&site), [""; 0]);
    assert_eq!(left_on_machine(&site), "");

    site.ok(&["provision"]);
    delete_directory(&site);
    let down = site.ok(&["down", "--yes"]);
    assert!(down.err.contains("to be removed: local host it-worker-0"), "{down}");
    assert_eq!(left_on_machine(&site), "");
    assert!(!site.state().exists());
}

/// As `rm -rf .turnup` does it: what is mounted stays.
fn delete_directory(site: &Site) {
    sh(&format!("rm -rf --one-file-system '{}' 2>/dev/null; true", site.state().display()));
    assert!(!site.path("journal.jsonl").exists());
}

/// The hosts of this site: others may run on this machine.
fn listed(site: &Site) -> Vec<String> {
    let list: Value = serde_json::from_str(&site.ok(&["local", "list", "--output", "json"]).out).unwrap();
    let hosts = list["hosts"].as_array().unwrap().iter();
    let own = hosts.filter(|host| host["cluster_dir"] == site.state().display().to_string());
    let line = |host: &Value| {
        let text = |key: &str| host[key].as_str().unwrap().to_owned();
        format!("{} {} {}", text("name"), text("status"), host["orphan"])
    };
    own.map(line).collect()
}

/// Interfaces, namespaces, cgroups and processes with the cluster's id in their names.
fn left_on_machine(site: &Site) -> String {
    let id = site.id();
    let script = format!("ip -o link | grep {id}; ls /run/netns | grep {id}; pgrep -fl '[s]ystemd-nspawn.*{id}'");
    String::from_utf8(Command::new("sh").args(["-c", &script]).output().unwrap().stdout).unwrap()
}
