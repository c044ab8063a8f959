//! `turnup restore` on three real hosts of the control plane and a worker: the majority lost, all
//! data lost, back to a backup on purpose, with a kill at each stage; and what is refused before
//! anything stops.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Instant;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster_agent::wait_for_nothing_to_do;
use crate::cluster_status::pull_cable;
use crate::cluster_support::{Site, TIMEOUT, can_make_hosts, say};

const HOSTS: [&str; 3] = ["it-control-plane-0", "it-control-plane-1", "it-control-plane-2"];
const WORKER: &str = "it-worker-0";
/// What a way back adds to the revision at least.
const AHEAD: u64 = 1_000_000_000;

/// The data of etcd are gone, as with a disk, and everything goes on trying.
const LOSE: &str = ". /etc/profile; systemctl stop turnup-agent kubelet; \
    for id in $(crictl ps --quiet --name '^etcd$'); do crictl stop --timeout 0 $id; done; \
    rm -rf /var/lib/etcd/data; systemctl start kubelet";
/// kubelet was told to start etcd, and does not.
const STAYS_AWAY: &str = ". /etc/profile; sleep 20; test -z \"$(crictl ps --quiet --name '^etcd$')\" && \
    ! test -e /var/lib/etcd/data";

fn prepare() -> Option<Site> {
    can_make_hosts().then(|| {
        let site = Site::new("restore");
        site.configure("10.125.15.0/24", 1);
        site.ok(&["config", "set", "phase1.control_plane.count=3", "phase2.backup.store=host"]);
        site.warm_cache();
        site
    })
}

fn lose_data(site: &Site, hosts: &[&str]) {
    for host in hosts {
        site.in_host(host, LOSE);
    }
    // Not before all have lost them: one alone is replaced by its agent (`cluster_heal`).
    for host in hosts {
        site.in_host(host, "systemctl start turnup-agent");
    }
}

/// With no data a member never starts by itself: most of them would be another cluster.
fn require_no_second_cluster(site: &Site, hosts: &[&str]) {
    for host in hosts {
        site.in_host(host, STAYS_AWAY);
    }
}

fn config_maps(site: &Site) -> Vec<String> {
    let names = site.get(&["configmaps"]).into_iter().map(|map| map["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

fn create(site: &Site, name: &str) {
    site.kubectl(&["create", "configmap", name]);
}

/// The result of a restore, which says everything by itself.
fn restore(site: &Site, words: &[&str]) -> Value {
    let since = Instant::now();
    let done = site.ok(&[&["restore", "--yes", "--output", "json"], words].concat());
    say(&format!("turnup restore {}: {:.1} s", words.join(" "), since.elapsed().as_secs_f64()));
    let last = done.out.lines().last().unwrap();
    let result: Value = serde_json::from_str(last).unwrap();
    assert_eq!(result["schema"], "turnup.restore-command/1", "{result}");
    result
}

/// A token of a pod's service account from before is good afterwards, and what watches sees what
/// is there: the whole cluster is.
fn require_well(site: &Site, token: &str, expected: &[&str]) {
    assert_eq!(config_maps(site), expected);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let file = site.dir.join("review.json");
    fs_err::write(&file, review.to_string()).unwrap();
    let reviewed = site.kubectl(&[
        "create",
        "--filename",
        &file.display().to_string(),
        "--output=jsonpath={.status.authenticated}",
    ]);
    assert_eq!(reviewed, "true");
    site.up();
    let nodes: Vec<&str> = HOSTS.into_iter().chain([WORKER]).collect();
    assert_eq!(site.ready_nodes(), nodes);
    wait_for_nothing_to_do(site);
    // A controller that watched the world of before goes on with this one.
    site.kubectl(&["rollout", "restart", "deployment/coredns", "--namespace=kube-system"]);
    site.kubectl(&["rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=300s"]);
    assert_eq!(members(site), HOSTS);
}

/// The names of etcd's members, all of which are full ones.
fn members(site: &Site) -> Vec<String> {
    let known = site.json("outputs/etcd.json");
    let all = known["members"].as_array().unwrap().iter();
    all.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

/// What kubelet started etcd as, on each host: it is the same as long as nothing was stopped.
fn starts(site: &Site) -> Vec<String> {
    let ask = |host: &&str| {
        let path = "--output=jsonpath={.status.containerStatuses[0].containerID}";
        site.kubectl(&["get", "pod", &format!("etcd-{host}"), "--namespace=kube-system", path])
    };
    HOSTS.iter().map(ask).collect()
}

/// Starts a restore, and kills it once it says this.
fn kill_restore(site: &Site, words: &[&str], at: &str) {
    let mut running = site.start(&[&["restore", "--yes"], words].concat());
    running.wait_for(at);
    kill_process(running.pid(), Signal::KILL).unwrap();
    running.wait(TIMEOUT);
    let refused = site.fails(4, &["up"]);
    assert!(refused.err.contains("is under way") && refused.err.contains("turnup restore"), "{refused}");
}

#[test]
#[ignore = "some minutes: make test-restore"]
fn cluster_restore_brings_every_loss_back() {
    let Some(site) = prepare() else { return };
    site.up();
    let token = site.kubectl(&["create", "token", "default", "--duration=2h"]);
    create(&site, "first");
    site.ok(&["backup", "now"]);
    create(&site, "second");

    say("refused: nothing is lost");
    let before = starts(&site);
    let said = site.fails(4, &["restore", "--yes"]);
    assert!(said.err.contains("etcd has its majority"), "{said}");
    let list: Value = serde_json::from_str(&site.ok(&["backup", "list", "--output", "json"]).out).unwrap();
    let name = list["backups"][0]["name"].as_str().unwrap().to_owned();
    site.ok(&["backup", "download", &name, "--to", "copy.tar"]);
    let mut damaged = fs_err::read(site.dir.join("copy.tar")).unwrap();
    damaged[500_000] ^= 1;
    fs_err::write(site.dir.join("damaged.tar"), damaged).unwrap();
    let said = site.fails(4, &["restore", "--yes", "--file", "damaged.tar"]);
    assert!(said.err.contains("is no whole backup"), "{said}");
    assert_eq!(starts(&site), before, "nothing was stopped");

    say("1 of 3");
    create(&site, "third");
    lose_data(&site, &HOSTS[1..]);
    require_no_second_cluster(&site, &HOSTS[1..]);
    let result = restore(&site, &[]);
    assert_eq!(result["source"], format!("the member on {}", HOSTS[0]));
    let first = result["new_revision"].as_u64().unwrap();
    assert!(first >= result["revision"].as_u64().unwrap() + AHEAD);
    require_well(&site, &token, &["first", "second", "third"]);

    say("2 of 3: a member without its data is no member until it is reset, or its agent replaces it");
    site.in_host(HOSTS[2], LOSE);
    require_no_second_cluster(&site, &HOSTS[2..]);
    site.ok(&["config", "set", "phase2.etcd.snapshot_count=20000"]);
    let said = site.fails(4, &["up"]);
    assert!(said.err.contains(&format!("{} has lost the data of its member of etcd", HOSTS[2])), "{said}");
    site.ok(&["reset", HOSTS[2], "--yes"]);
    require_well(&site, &token, &["first", "second", "third"]);

    say("0 of 3, killed when all was stopped, and after the exchange");
    lose_data(&site, &HOSTS);
    require_no_second_cluster(&site, &HOSTS);
    kill_restore(&site, &[], "control plane stopped");
    kill_restore(&site, &[], "data restored");
    let result = restore(&site, &[]);
    let list: Value = serde_json::from_str(&site.ok(&["backup", "list", "--output", "json"]).out).unwrap();
    // One was taken before the member was removed; those of the interval come when they are due.
    let reasons = list["backups"].as_array().unwrap().iter().map(|backup| &backup["manifest"]["reason"]);
    assert!(reasons.into_iter().any(|reason| reason == "change"), "{list}");
    assert_eq!(result["source"], format!("the backup {}", list["backups"][0]["name"].as_str().unwrap()));
    let second = result["new_revision"].as_u64().unwrap();
    assert!(second > first + AHEAD / 2, "above all that was ever served: {first}, then {second}");
    require_well(&site, &token, &["first", "second", "third"]);

    say("back on purpose, from a file");
    create(&site, "fourth");
    let said = site.fails(4, &["restore", "--yes", "--file", "copy.tar"]);
    assert!(said.err.contains("is not the newest"), "{said}");
    let result = restore(&site, &["--file", "copy.tar", "--older"]);
    assert!(result["new_revision"].as_u64().unwrap() > second + AHEAD / 2, "{result}");
    require_well(&site, &token, &["first"]);

    say("a backup, while another one is newer");
    site.ok(&["backup", "now"]);
    let said = site.fails(4, &["restore", "--yes", "--backup", &name]);
    assert!(said.err.contains("is not the newest"), "{said}");

    site.ok(&["down", "--yes"]);
}

#[test]
#[ignore = "some minutes: make test-restore"]
fn cluster_restore_goes_on_with_one_host_of_three() {
    let Some(site) = prepare() else { return };
    site.up();
    create(&site, "first");
    for host in &HOSTS[1..] {
        pull_cable(&site, host);
    }
    let said = site.fails(4, &["restore", "--yes"]);
    assert!(said.err.contains("does not answer, so its etcd cannot be stopped"), "{said}");
    let without: Vec<&str> = HOSTS[1..].iter().flat_map(|host| ["--without", host]).collect();
    let result = restore(&site, &without);
    assert_eq!(result["hosts"], json!([HOSTS[0]]), "{result}");
    assert_eq!(config_maps(&site), ["first"]);
    assert_eq!(members(&site), HOSTS[..1]);
    create(&site, "second");
}
