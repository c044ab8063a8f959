//! The addon-manager on a real host: what is deleted or changed comes back with no run of turnup,
//! in turn with others, at little cost, and what is switched off stays away.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_addons::field;
use crate::cluster_support::{Site, say};

const HOST: &str = "it-control-plane-0";
const SYSTEM: &str = "--namespace=kube-system";
/// Two rounds, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_mins(5);

#[test]
#[ignore = "minutes of waiting: make test-addons"]
fn cluster_addon_manager_keeps_addons_as_they_were_applied() {
    let Some(site) = Site::of_cluster("manager", "10.125.29.0/24", 0) else { return };
    let shop = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices", "namespace": "shop"}, "data": {"tea": "3"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "till", "namespace": "shop"}, "stringData": {"pin": "4711"}},
    ]});
    fs_err::write(site.dir.join("shop.json"), shop.to_string()).unwrap();
    site.ok(&["config", "set", "phase3.addon_manager=y", "phase3.limit_range=y", "phase3.manifests=shop.json"]);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    wait_until(&site, "its first round", |site| lease(site)["spec"]["leaseTransitions"].as_u64() > Some(1));

    what_is_lost_comes_back(&site);
    it_costs_little(&site);
    it_takes_turns(&site);
    what_is_switched_off_stays_away(&site);
    without_it_nothing_of_it_is_left(&site);
    site.ok(&["down", "--yes"]);
}

fn lease(site: &Site) -> Value {
    let said = site.kubectl(&["get", "lease", "turnup-addons", SYSTEM, "--output=json"]);
    serde_json::from_str(&said).unwrap()
}

fn wait_until(site: &Site, what: &str, holds: impl Fn(&Site) -> bool) -> Duration {
    let start = Instant::now();
    while !holds(site) {
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
    start.elapsed()
}

fn exists(site: &Site, what: &[&str]) -> bool {
    !site.kubectl(&[&["get", "--ignore-not-found", "--output=name"], what].concat()).is_empty()
}

fn what_is_lost_comes_back(site: &Site) {
    let (dns, prices) = (["deployment/coredns", SYSTEM], ["configmap/prices", "--namespace=shop"]);
    site.kubectl(&["annotate", dns[0], dns[1], "example.com/mine=yes"]);
    site.kubectl(&["scale", dns[0], dns[1], "--replicas=0"]);
    site.kubectl(&["delete", "daemonset/kube-proxy", "clusterrole/turnup:coredns", SYSTEM]);
    site.kubectl(&["delete", "namespace/shop"]);
    let took = wait_until(site, "all of it", |site| {
        field(site, &dns, ".spec.replicas") == "1"
            && exists(site, &["daemonset/kube-proxy", SYSTEM])
            && exists(site, &["clusterrole/turnup:coredns"])
            && field(site, &prices, ".data.tea") == "3"
    });
    say(&format!("deleted and changed objects: back after {:.1} s", took.as_secs_f64()));
    assert_eq!(field(site, &dns, ".metadata.annotations.example\\.com/mine"), "yes", "others' fields stay");
    assert_eq!(field(site, &["secret/till", "--namespace=shop"], ".data.pin"), "NDcxMQ==");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n", "they are what turnup would apply");
    for said in [
        "put right DaemonSet kube-system/kube-proxy, which was gone",
        "put right Deployment kube-system/coredns, which was changed",
        "put right ConfigMap shop/prices, which was gone",
    ] {
        // It tells after its round.
        let look = format!("until journalctl -u turnup-addon-manager | grep -qF \"{said}\"; do sleep 1; done");
        site.in_host(HOST, &format!("timeout 60 sh -c '{look}'"));
    }
    site.in_host(HOST, "! journalctl -u turnup-addon-manager | grep -E 'NDcxMQ|4711'");
}

/// In the processor time of kubelet beside it, that of ended children included; in ticks of 10 ms.
fn it_costs_little(site: &Site) {
    let used = || {
        ["turnup-addon-manager", "kubelet"].map(|unit| {
            let process = format!("/proc/$(systemctl show --property=MainPID --value {unit})/stat");
            let sum = "awk '{print $14+$15+$16+$17}'";
            site.in_host(HOST, &format!("{sum} {process} > /var/tmp/used"));
            let file = site.path(&format!("hosts/{HOST}/root")).join("var/tmp/used");
            fs_err::read_to_string(file).unwrap().trim().parse::<u64>().unwrap()
        })
    };
    let before = used();
    std::thread::sleep(Duration::from_mins(2));
    let after = used();
    let [own, kubelet] = [0, 1].map(|which| 10 * (after[which] - before[which]));
    say(&format!("two minutes of nothing to do: {own} ms of processor time, kubelet {kubelet} ms"));
    assert!(own < kubelet, "{own} ms, kubelet {kubelet} ms");
}

/// Another one that holds the Lease is left alone, until it has let it be for as long as it said.
fn it_takes_turns(site: &Site) {
    let mut held = lease(site);
    held["spec"]["holderIdentity"] = "turnup@elsewhere".into();
    held["spec"]["leaseDurationSeconds"] = 90.into();
    fs_err::write(site.dir.join("lease.json"), held.to_string()).unwrap();
    site.kubectl(&["replace", &format!("--filename={}", site.dir.join("lease.json").display())]);
    let prices = ["configmap/prices", "--namespace=shop"];
    site.kubectl(&[&["delete"], &prices[..]].concat());
    let took = wait_until(site, "a dead holder's turn", |site| exists(site, &prices));
    say(&format!("a holder that died: its lease of 90 s was another one's after {:.1} s", took.as_secs_f64()));
    assert!(took > Duration::from_secs(90), "{took:?}");
    // A run that died is followed by the next one at once.
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut held = lease(site);
    held["spec"]["holderIdentity"] = format!("turnup@{machine}").into();
    held["spec"]["leaseDurationSeconds"] = 3600.into();
    fs_err::write(site.dir.join("lease.json"), held.to_string()).unwrap();
    site.kubectl(&["replace", &format!("--filename={}", site.dir.join("lease.json").display())]);
    site.ok(&["config", "set", "phase3.dns_replicas=2"]);
    site.ok(&["up"]);
    assert_eq!(lease(site)["spec"]["holderIdentity"], Value::Null);
}

fn what_is_switched_off_stays_away(site: &Site) {
    assert!(exists(site, &["limitrange/limit-range"]));
    site.ok(&["config", "set", "phase3.limit_range=n", "phase3.manifests="]);
    site.ok(&["up"]);
    let before = lease(site);
    // A repair of something else shows that a round has passed.
    site.kubectl(&["delete", "daemonset/kube-proxy", SYSTEM]);
    wait_until(site, "kube-proxy", |site| exists(site, &["daemonset/kube-proxy", SYSTEM]));
    assert_ne!(lease(site)["spec"]["leaseTransitions"], before["spec"]["leaseTransitions"]);
    assert!(!exists(site, &["limitrange/limit-range"]) && !exists(site, &["namespace/shop"]));
}

fn without_it_nothing_of_it_is_left(site: &Site) {
    site.ok(&["config", "set", "phase3.addon_manager=n"]);
    site.ok(&["up"]);
    let left = ["secrets,leases.coordination.k8s.io", SYSTEM, "--selector=turnup.dev/addon-manager"];
    assert!(!exists(site, &left));
    site.in_host(HOST, "! systemctl cat turnup-addon-manager.service && ! ls /etc/kubernetes/addon-manager.conf");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}
