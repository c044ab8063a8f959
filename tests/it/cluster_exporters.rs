//! kube-state-metrics and node-exporter on real hosts: metrics of every node through the API
//! server's proxy, from what their settings leave, and nothing of them once they are off.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::cluster_support::Site;

const NODES: [&str; 2] = ["it-control-plane-0", "it-worker-0"];
/// Only what hangs takes as long: the addons are Ready before.
const SOON: Duration = Duration::from_mins(2);
/// Collectors that have something to tell on every host.
const COLLECTORS: [&str; 12] = [
    "cpu",
    "diskstats",
    "filesystem",
    "loadavg",
    "meminfo",
    "netclass",
    "netdev",
    "os",
    "processes",
    "stat",
    "timex",
    "uname",
];

#[test]
#[ignore = "builds two more programs: make test-addons"]
fn cluster_exporters_tell_of_every_node_while_they_are_on() {
    let Some(site) = Site::of_cluster("exporters", "10.125.18.0/24", 1) else { return };
    site.ok(&["up"]);
    // Switched on in a cluster that runs: their images come to the nodes first.
    site.ok(&[
        "config",
        "set",
        "phase3.kube_state_metrics=y",
        "phase3.kube_state_metrics_skip_resources=configmaps,leases",
        "phase3.kube_state_metrics_extra_resources=serviceaccounts",
        "phase3.kube_state_metrics_labels=kubernetes.io/hostname",
        "phase3.node_exporter=y",
        "phase3.node_exporter_extra_collectors=processes",
        "phase3.node_exporter_skip_collectors=entropy",
    ]);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    objects_are_told_of(&site);
    hosts_are_told_of(&site);
    // Another port, on hosts where the old pods have the old one.
    site.ok(&["config", "set", "phase3.node_exporter_port=9101"]);
    site.ok(&["up"]);
    hosts_are_told_of(&site);
    what_is_switched_off_is_gone(&site);
    site.ok(&["down", "--yes"]);
}

/// What the API server's proxy gets from a port of a Service.
fn scrape(site: &Site, service: &str) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/kube-system/services/{service}/proxy/metrics");
    site.try_kubectl(&["get", "--raw", &path])
}

fn objects_are_told_of(site: &Site) {
    let wanted: Vec<String> = NODES
        .iter()
        .flat_map(|node| {
            let label = format!("kube_node_labels{{node=\"{node}\",label_kubernetes_io_hostname=\"{node}\"}}");
            [format!("kube_node_info{{node=\"{node}\""), label]
        })
        .chain(["kube_daemonset_", "kube_pod_info", "kube_serviceaccount_info"].map(str::to_owned))
        .collect();
    let start = Instant::now();
    let said = loop {
        let said = scrape(site, "kube-state-metrics:http-metrics");
        match said {
            Ok(said) if wanted.iter().all(|line| said.contains(line)) => break said,
            said => assert!(start.elapsed() < SOON, "not all of {wanted:?}: {said:?}"),
        }
        std::thread::sleep(Duration::from_secs(2));
    };
    for left_out in ["kube_configmap_info{", "kube_lease_owner{", "kube_secret_info{"] {
        assert!(!said.contains(left_out), "{left_out}");
    }
    let log = site.kubectl(&["logs", "deployment/kube-state-metrics", "--namespace=kube-system"]);
    assert!(!log.contains("forbidden") && !log.contains("could not find"), "{log}");
    let itself = "--as=system:serviceaccount:kube-system:kube-state-metrics";
    for resource in ["secrets", "configmaps"] {
        let may = site.try_kubectl(&["auth", "can-i", "list", resource, "--all-namespaces", itself]);
        assert!(may.is_err(), "{resource}: {may:?}");
    }
}

/// The proxy takes any of the endpoints: it is asked until each has answered.
fn hosts_are_told_of(site: &Site) {
    let (start, mut seen) = (Instant::now(), BTreeSet::new());
    while seen.len() < NODES.len() {
        let said = scrape(site, "node-exporter:metrics");
        if let Ok(said) = &said
            && let Some(node) = NODES.into_iter().find(|node| said.contains(&format!("nodename=\"{node}\"")))
        {
            judge_host(node, said);
            seen.insert(node);
        }
        assert!(start.elapsed() < SOON, "only {seen:?}: {said:?}");
    }
}

fn judge_host(node: &str, said: &str) {
    assert!(said.contains("node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"}"), "{node}: {said}");
    for collector in COLLECTORS {
        let success = format!("node_scrape_collector_success{{collector=\"{collector}\"}} 1");
        assert!(said.contains(&success), "{node}, {collector}: {said}");
    }
    assert!(!said.contains("collector=\"entropy\""), "{node}: {said}");
    // All processes of the host, and its own interfaces without those of pods.
    let processes = said.lines().find_map(|line| line.strip_prefix("node_processes_pids "));
    assert!(processes.and_then(|count| count.parse::<f64>().ok()).is_some_and(|count| count > 10.0), "{said}");
    let has_veth = said.lines().any(|line| line.contains("device=\"veth"));
    assert!(said.contains("device=\"host0\"") && !has_veth, "{node}: {said}");
    let errors = said.lines().filter(|line| line.starts_with("node_filesystem_device_error") && line.ends_with(" 1"));
    assert_eq!(errors.collect::<Vec<_>>(), [""; 0], "{node}");
}

fn what_is_switched_off_is_gone(site: &Site) {
    site.ok(&["config", "set", "phase3.kube_state_metrics=n", "phase3.node_exporter=n"]);
    site.ok(&["up"]);
    let kinds = "deployments,daemonsets,services,endpointslices,serviceaccounts,clusterroles,clusterrolebindings";
    for addon in ["kube-state-metrics", "node-exporter"] {
        let selector = format!("--selector=turnup.dev/addon={addon}");
        assert_eq!(site.kubectl(&["get", kinds, "--all-namespaces", &selector, "--output=name"]), "");
        let selector = format!("--selector=app.kubernetes.io/name={addon}");
        site.kubectl(&["wait", "--for=delete", "pod", "--namespace=kube-system", &selector, "--timeout=2m"]);
    }
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}
