//! Three control-plane hosts of the target local behind its load balancer, and a node group: one
//! host lost without a word, a schedulable control plane, back to one host, and down again.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_reset::{ETCDCTL, on_host};
use crate::cluster_support::{Site, can_make_hosts, say};

const SUBNET: &str = "10.124.7.0/24";
const BALANCER: &str = "10.124.7.9";
const CONTROL_PLANES: [&str; 3] = ["it-control-plane-0", "it-control-plane-1", "it-control-plane-2"];
const POOL: &str = "it-pool-0";
/// How long the API may be away when a control-plane host is lost, on a machine with other work.
const OUTAGE: Duration = Duration::from_mins(1);

fn prepare() -> Option<Site> {
    can_make_hosts().then(|| {
        let site = Site::new("ha");
        let groups = json!([{"name": "pool", "role": "worker", "size": 1, "labels": {"pool": "a"},
            "taints": ["pool=a:PreferNoSchedule"], "max_pods": 33}]);
        let settings = [
            "phase1.cluster_name=it".to_owned(),
            format!("phase1.local.subnet={SUBNET}"),
            "phase1.control_plane.count=3".to_owned(),
            format!("phase1.node_groups={groups}"),
        ];
        let words: Vec<&str> = ["config", "set"].into_iter().chain(settings.iter().map(String::as_str)).collect();
        site.ok(&words);
        site.warm_cache();
        site
    })
}

/// The members of etcd that vote, asked on the first host.
fn voters(site: &Site) -> usize {
    let command = format!("{ETCDCTL} --write-out=json member list");
    let list: Value = serde_json::from_str(&on_host(site, CONTROL_PLANES[0], &command)).unwrap();
    list["members"].as_array().unwrap().iter().filter(|member| member["isLearner"] != true).count()
}

fn node(site: &Site, name: &str) -> Value {
    serde_json::from_str(&site.kubectl(&["get", "node", name, "--output=json"])).unwrap()
}

fn taints(site: &Site, name: &str) -> BTreeSet<String> {
    let node = node(site, name);
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
}

/// A host that loses its power: the API answers all the same, and takes writes.
fn one_is_lost(site: &Site, lost: &str) {
    let since = Instant::now();
    site.cut_power(lost);
    let ask = ["create", "configmap", "while-one-is-lost", "--request-timeout=2s"];
    while let Err(said) = site.try_kubectl(&ask) {
        assert!(since.elapsed() < OUTAGE, "the API is away for {:?}: {said}", since.elapsed());
        std::thread::sleep(Duration::from_millis(200));
    }
    say(&format!("{lost} lost: the API answers after {:.1} s", since.elapsed().as_secs_f64()));
    for _ in 0..10 {
        site.kubectl(&["get", "--raw=/readyz", "--request-timeout=5s"]);
    }
    site.kubectl(&["delete", "configmap", "while-one-is-lost"]);
}

#[test]
fn a_control_plane_of_three_on_this_machine() {
    let Some(site) = prepare() else { return };
    let before = site.look_around();
    let since = Instant::now();
    site.ok(&["up"]);
    say(&format!("three control-plane hosts and a group: {:.1} s", since.elapsed().as_secs_f64()));
    let nodes: Vec<&str> = CONTROL_PLANES.into_iter().chain([POOL]).collect();
    assert_eq!(site.ready_nodes(), nodes);
    assert_eq!(voters(&site), 3);
    assert_eq!(site.json("outputs/provision.json")["api"]["host"], BALANCER);
    assert!(site.ok(&["local", "list"]).out.contains("it-api"), "the load balancer is a host of its own");

    let pool = node(&site, POOL);
    assert_eq!(pool["metadata"]["labels"]["pool"], "a");
    assert_eq!(pool["metadata"]["labels"]["node-role.kubernetes.io/worker"], "");
    assert_eq!(pool["status"]["capacity"]["pods"], "33");
    assert_eq!(taints(&site, POOL), BTreeSet::from(["pool".to_owned()]));
    let of_role = BTreeSet::from(["node-role.kubernetes.io/control-plane".to_owned()]);
    assert_eq!(taints(&site, CONTROL_PLANES[1]), of_role);
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");

    for lost in &CONTROL_PLANES[..2] {
        one_is_lost(&site, lost);
        site.ok(&["up"]);
        assert_eq!((site.ready_nodes(), voters(&site)), (nodes.iter().map(|name| (*name).to_owned()).collect(), 3));
    }
    // The load balancer as well comes back with the next run.
    site.cut_power("it-api");
    site.ok(&["up"]);
    site.kubectl(&["get", "--raw=/readyz"]);

    site.ok(&["config", "set", "phase1.control_plane.runs_pods=y"]);
    site.ok(&["up"]);
    assert_eq!(taints(&site, CONTROL_PLANES[1]), BTreeSet::new());
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");

    site.ok(&["config", "set", "phase1.control_plane.count=1"]);
    site.ok(&["up"]);
    assert_eq!((site.ready_nodes(), voters(&site)), (vec![CONTROL_PLANES[0].to_owned(), POOL.to_owned()], 1));
    assert!(!site.ok(&["local", "list"]).out.contains("it-api"));
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");

    site.ok(&["down", "--yes"]);
    let after = site.look_around();
    let left: Vec<&String> = after.difference(&before).collect();
    assert!(left.is_empty(), "left behind or changed: {left:#?}");
}
