//! Bare metal from a typed list, on real hosts: those of another directory, of which one is the way
//! to the other. Up to Ready and down again.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test looks at the cluster with the cluster's own tools")]

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::cluster_reset::{Look, assert_same, look, on_host, settle};
use crate::cluster_support::{Site, say};

const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";

/// Two hosts with these packages that accept the user's own key, and the list of them: the worker
/// is reached through the control plane, and its host key is in a file of known hosts, hashed.
pub(crate) fn prepare(name: &str, subnet: &str, packages: &str) -> Option<(Site, Vec<Value>)> {
    let site = Site::of_cluster(name, subnet, 1)?;
    site.ok(&["config", "set", &format!("phase1.local.packages={packages}")]);
    site.ok(&["provision"]);
    let shell = |script: &str| {
        let status = Command::new("sh").args(["-c", script]).current_dir(&site.dir).status().unwrap();
        assert!(status.success(), "{script}");
    };
    shell(
        "mkdir keys && ssh-keygen -q -t ed25519 -N '' -f keys/person && ssh-keygen -q -t ed25519 -N '' -f keys/stranger",
    );
    let key = fs_err::read_to_string(site.dir.join("keys/person.pub")).unwrap();
    let hosts = site.hosts();
    for host in hosts.keys() {
        on_host(&site, host, &format!("echo '{}' >>~/.ssh/authorized_keys", key.trim()));
    }
    let field = |host: &str, pointer: &str| hosts[host].pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let known = format!("{} {}\n", field(WORKER, "/address"), field(WORKER, "/ssh/host_key"));
    fs_err::write(site.dir.join("keys/known_hosts"), known).unwrap();
    shell("ssh-keygen -q -H -f keys/known_hosts 2>/dev/null && grep -q '^|1|' keys/known_hosts");
    let list = vec![
        json!({"name": "m1", "address": field(CONTROL_PLANE, "/address"), "role": "control-plane",
            "host_key": field(CONTROL_PLANE, "/ssh/host_key")}),
        json!({"name": "w1", "address": field(WORKER, "/address"), "role": "worker", "ssh_jump": "m1", "zone": "rack-1",
            "labels": {"example.com/pool": "fast"}, "taints": ["example.com/busy=a:PreferNoSchedule"]}),
    ];
    Some((site, list))
}

pub(crate) fn configure(site: &Site, list: &[Value], key: &str) {
    let hosts = format!("phase1.baremetal.hosts={}", json!(list));
    let mut set = vec!["config", "set", "phase1.cloud_provider=baremetal", "phase1.cluster_name=shelf", &hosts];
    let key = format!("phase1.ssh.private_key_file=keys/{key}");
    // The way between pods that clouds have; other clusters here have the other one.
    let tunnel = "phase2.network.flannel_backend=vxlan";
    set.extend([&key, "phase1.ssh.known_hosts_file=keys/known_hosts", tunnel]);
    site.lent(0, &set);
}

fn kubectl(site: &Site, args: &[&str]) -> Value {
    let output = site.lent_kubectl("shelf").args(["get", "--output=json"]).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Hosts that cannot be reached or used are reported by name before any host is changed.
fn what_is_wrong_is_said_first(site: &Site, list: &[Value]) {
    configure(site, list, "stranger");
    let refused = site.lent(4, &["up"]);
    for word in ["2 of 2 hosts cannot become nodes", "m1: cannot reach root@", "Permission denied", "ssh-copy-id"] {
        assert!(refused.err.contains(word), "{word}: {refused}");
    }
    let mut wrong = list.to_vec();
    let other = fs_err::read_to_string(site.dir.join("keys/stranger.pub")).unwrap();
    wrong[0]["host_key"] = json!(other.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
    configure(site, &wrong, "person");
    let refused = site.lent(4, &["up"]);
    for word in ["m1: cannot reach root@", "Host key verification failed", "look who answers at"] {
        assert!(refused.err.contains(word), "{word}: {refused}");
    }
    let machine_id = on_host(site, WORKER, "cat /etc/machine-id");
    let twin = on_host(site, CONTROL_PLANE, "cat /etc/machine-id");
    let put = |id: &str| site.in_host(WORKER, &format!("echo {} >/etc/machine-id", id.trim()));
    put(&twin);
    configure(site, list, "person");
    let refused = site.lent(4, &["up"]);
    put(&machine_id);
    assert!(refused.err.contains("w1: it has the machine-id of m1"), "{refused}");
    assert!(!site.dir.join("second/shelf/outputs/provision.json").exists(), "nothing was handed over");
}

#[test]
fn a_listed_host_behind_another_one_becomes_a_node_and_what_it_was() {
    let Some((site, mut list)) = prepare("bare", "10.123.16.0/24", "") else { return };
    settle(&site);
    let before: Vec<Look> = [CONTROL_PLANE, WORKER].iter().map(|host| look(&site, host)).collect();
    what_is_wrong_is_said_first(&site, &list);
    let start = Instant::now();
    site.lent(0, &["up"]);
    say(&format!("up from a list, one host behind the other: {:.1} s", start.elapsed().as_secs_f64()));
    let inventory: Value =
        serde_json::from_str(&fs_err::read_to_string(site.dir.join("second/shelf/outputs/provision.json")).unwrap())
            .unwrap();
    assert_eq!(inventory["hosts"][1]["ssh"]["jump"]["host"], list[0]["address"], "{inventory:#}");
    let node = kubectl(&site, &["node", "w1"]);
    assert_eq!(node["metadata"]["labels"]["topology.kubernetes.io/zone"], "rack-1", "{node:#}");
    assert_eq!(node["metadata"]["labels"]["example.com/pool"], "fast");
    let taints = node["spec"]["taints"].to_string();
    assert!(taints.contains("example.com/busy"), "{taints}");
    let again = site.lent(0, &["plan"]);
    assert_eq!(again.out.trim(), "nothing to do", "{again}");
    list[1]["labels"] = json!({"example.com/pool": "slow"});
    list[1]["taints"] = json!([]);
    list[1]["zone"] = json!("");
    configure(&site, &list, "person");
    site.lent(0, &["up"]);
    let node = kubectl(&site, &["node", "w1"]);
    let labels = &node["metadata"]["labels"];
    assert_eq!((&labels["example.com/pool"], &labels["topology.kubernetes.io/zone"]), (&json!("slow"), &Value::Null));
    assert!(!node["spec"]["taints"].to_string().contains("busy"), "{node:#}");
    site.lent(0, &["down", "--yes"]);
    assert!(!site.dir.join("second/shelf").exists());
    for (host, before) in [CONTROL_PLANE, WORKER].iter().zip(&before) {
        assert_same(before, &look(&site, host), &format!("{host} after down"));
    }
    site.ok(&["down", "--yes"]);
}
