//! metrics-server on real hosts: `kubectl top` answers for every node by verified certificates of
//! kubelets, and nothing of it is left once it is off.

use std::time::{Duration, Instant};

use crate::cluster_support::Site;

/// Only what hangs takes as long: two scrapes of ten seconds come before the first numbers.
const SOON: Duration = Duration::from_mins(5);

fn wait_for_numbers(site: &Site, what: &[&str], wanted: &[&str]) {
    let start = Instant::now();
    loop {
        let said = site.try_kubectl(&[&["top"], what].concat());
        if said.as_ref().is_ok_and(|said| wanted.iter().all(|name| said.contains(name))) {
            return;
        }
        assert!(start.elapsed() < SOON, "kubectl top {what:?}: {said:?}");
        std::thread::sleep(Duration::from_secs(2));
    }
}

#[test]
#[ignore = "builds one more program: make test-addons"]
fn cluster_metrics_are_there_while_metrics_server_is_on() {
    let Some(site) = Site::of_cluster("metrics", "10.125.12.0/24", 1) else { return };
    site.ok(&["up"]);
    // Switched on in a cluster that runs: its image comes to the nodes first.
    site.ok(&["config", "set", "phase3.metrics_server=y", "phase3.metrics_server_resolution=10s"]);
    site.ok(&["up"]);
    wait_for_numbers(&site, &["nodes"], &["it-control-plane-0", "it-worker-0"]);
    wait_for_numbers(&site, &["pods", "--namespace=kube-system"], &["kube-apiserver-it-control-plane-0", "coredns-"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    let said = site.fails(3, &["config", "set", "phase3.metrics_server_replicas=2"]);
    assert!(said.err.contains("2 pods need as many control-plane hosts"), "{said}");
    site.ok(&["config", "set", "phase3.metrics_server=n"]);
    site.ok(&["up"]);
    let left = site.kubectl(&["get", "apiservices", "v1beta1.metrics.k8s.io", "--ignore-not-found"]);
    assert_eq!(left, "", "the API is gone with what serves it");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    site.ok(&["down", "--yes"]);
}
