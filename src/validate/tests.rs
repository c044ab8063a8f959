//! Judgements over what real clusters said, and the probe pods as they are created.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::json;

use super::CheckResult;
use super::probes::{left_over, place, read_answer, render};
use super::state::{find_probed, judge};
use crate::addons::observed::Observed;
use crate::inventory::Inventory;

const HEALTHY: &str = include_str!("../../tests/fixtures/cluster/healthy.json");
const TEMPLATE: &str = include_str!("../../templates/validate/probes.yaml");
const FAILING: &str = include_str!("../../tests/fixtures/cluster/failing.json");

fn inventory(hosts: &[(&str, &str)]) -> Inventory {
    let host = |(index, (name, role)): (usize, &(&str, &str))| {
        json!({"name": name, "role": role, "address": format!("10.0.0.{}", 10 + index), "instance": "i",
            "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}})
    };
    let hosts: Vec<_> = hosts.iter().enumerate().map(host).collect();
    let api = json!({"host": "10.0.0.10", "port": 6443});
    let text = json!({"schema": "turnup.provision/1", "cluster": "c", "target": "local", "api": api, "hosts": hosts});
    Inventory::parse("f", &text.to_string()).unwrap()
}

fn failed(text: &str, hosts: &[(&str, &str)], network: bool) -> Vec<String> {
    let observed = Observed::parse(&serde_json::from_str(text).unwrap());
    let line = |check: CheckResult| {
        format!("{} {}: {} -> {}", check.check, check.subject, check.seen, check.next.unwrap_or_default())
    };
    judge(&inventory(hosts), network, 0, &observed).into_iter().filter(|check| !check.ok).map(line).collect()
}

const HOSTS: [(&str, &str); 2] = [("master", "control-plane"), ("worker", "worker")];

#[test]
fn a_healthy_cluster_passes_every_check() {
    assert_eq!(failed(HEALTHY, &HOSTS, true), [""; 0]);
}

#[test]
fn a_failing_cluster_says_what_fails_and_where_to_look() {
    insta::assert_snapshot!(failed(FAILING, &HOSTS, true).join("\n"));
}

#[test]
fn so_many_workers_may_be_not_ready_with_all_that_runs_on_them() {
    let observed = Observed::parse(&serde_json::from_str(HEALTHY).unwrap());
    let more = inventory(&[HOSTS[0], HOSTS[1], ("late", "worker")]);
    let judged = judge(&more, true, 1, &observed);
    assert!(judged.iter().all(|check| check.ok), "{judged:?}");
    let late = judged.iter().find(|check| check.subject == "late").unwrap();
    assert!(late.seen.ends_with("(tolerated: phase3.max_unready_nodes)"), "{late:?}");
    let two = inventory(&[HOSTS[0], HOSTS[1], ("late", "worker"), ("later", "worker")]);
    let failed = |tolerated: usize| judge(&two, true, tolerated, &observed).iter().filter(|check| !check.ok).count();
    assert_eq!((failed(1), failed(2)), (2, 0), "more than may be are all told");
    let lost = inventory(&[HOSTS[0], HOSTS[1], ("second", "control-plane")]);
    assert!(judge(&lost, true, 1, &observed).iter().any(|check| !check.ok), "the control plane is never spared");
    let mut nodes: serde_json::Value = serde_json::from_str(HEALTHY).unwrap();
    for item in nodes["items"].as_array_mut().unwrap() {
        let (is_node, is_pod) = (item["metadata"]["name"] == "worker", item["spec"]["nodeName"] == "worker");
        for condition in item["status"]["conditions"].as_array_mut().into_iter().flatten() {
            if (is_node || is_pod) && condition["type"] == "Ready" {
                condition["status"] = json!("False");
            }
        }
    }
    let down = Observed::parse(&nodes);
    let wrong =
        |tolerated: usize| judge(&inventory(&HOSTS), true, tolerated, &down).iter().filter(|check| !check.ok).count();
    assert!(wrong(0) > 1, "the node and its pods");
    assert_eq!(wrong(1), 0);
}

#[test]
fn what_ended_counts_only_where_nothing_runs_in_its_place() {
    let mut list: serde_json::Value = serde_json::from_str(HEALTHY).unwrap();
    let mut pods = list["items"].as_array().unwrap().iter();
    let is_critical = |pod: &&serde_json::Value| pod["spec"]["priorityClassName"] == "system-cluster-critical";
    let mut ended = pods.rfind(is_critical).unwrap().clone();
    ended["metadata"]["name"] = json!("coredns-ended");
    ended["metadata"]["annotations"] = json!({});
    ended["status"] =
        json!({"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]});
    list["items"].as_array_mut().unwrap().push(ended);
    let owner = json!([{"kind": "ReplicaSet", "name": "coredns-1", "controller": true}]);
    for (owners, wrong) in [(owner, 0), (json!([]), 1)] {
        list["items"].as_array_mut().unwrap().last_mut().unwrap()["metadata"]["ownerReferences"] = owners;
        assert_eq!(failed(&list.to_string(), &HOSTS, true).len(), wrong);
    }
}

#[test]
fn hosts_and_nodes_must_be_the_same() {
    let more = [HOSTS[0], HOSTS[1], ("late", "worker")];
    assert_eq!(
        failed(HEALTHY, &more, true),
        ["node late: is not registered: its kubelet has not reached the API server -> turnup bootstrap"]
    );
    assert_eq!(
        failed(HEALTHY, &HOSTS[..1], true),
        ["node worker: is registered, but no host of this cluster has this name -> kubectl delete node worker"]
    );
}

#[test]
fn a_node_that_came_by_its_groups_user_data_is_no_stranger_and_is_judged() {
    let mut nodes: serde_json::Value = serde_json::from_str(HEALTHY).unwrap();
    let items = nodes["items"].as_array_mut().unwrap();
    let worker = items.iter_mut().find(|item| item["metadata"]["name"] == "worker" && item["kind"] == "Node").unwrap();
    worker["metadata"]["labels"] = serde_json::json!({"turnup.dev/group": "pool"});
    assert!(failed(&nodes.to_string(), &HOSTS[..1], true).is_empty());
    let text = nodes
        .to_string()
        .replace("\"type\":\"DiskPressure\",\"status\":\"False\"", "\"type\":\"DiskPressure\",\"status\":\"True\"");
    let failed = failed(&text, &HOSTS[..1], true);
    assert!(failed.iter().any(|line| line.starts_with("node worker: Ready, but evicts pods")), "{failed:?}");
}

#[test]
fn every_node_that_is_there_gets_a_probe_those_of_groups_too() {
    let mut nodes: serde_json::Value = serde_json::from_str(HEALTHY).unwrap();
    let items = nodes["items"].as_array_mut().unwrap();
    let worker = items.iter_mut().find(|item| item["metadata"]["name"] == "worker" && item["kind"] == "Node").unwrap();
    let probed = |nodes: &serde_json::Value, hosts: &[(&str, &str)], tolerated: usize| {
        find_probed(&inventory(hosts), tolerated, &Observed::parse(nodes)).join(" ")
    };
    worker["metadata"]["labels"] = json!({"turnup.dev/group": "pool"});
    assert_eq!(probed(&nodes, &HOSTS[..1], 0), "master worker");
    assert_eq!(probed(&nodes, &HOSTS, 0), "master worker", "once");
    let late = [HOSTS[0], ("late", "worker")];
    assert_eq!(probed(&nodes, &late, 0), "master late worker");
    assert_eq!(probed(&nodes, &late, 1), "master worker", "none would start there");
    let strange = nodes.to_string().replace("turnup.dev/group", "example.com/group");
    assert_eq!(probed(&serde_json::from_str(&strange).unwrap(), &HOSTS[..1], 0), "master", "a stranger is told of");
}

#[test]
fn a_node_that_evicts_pods_is_not_good_although_it_is_ready() {
    let pressed = HEALTHY.replace(
        "\"type\": \"DiskPressure\",\n      \"status\": \"False\"",
        "\"type\": \"DiskPressure\",\n      \"status\": \"True\"",
    );
    let failed = failed(&pressed, &HOSTS, true);
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[0].contains("Ready, but evicts pods: DiskPressure"), "{failed:?}");
}

#[test]
fn without_a_network_of_ours_a_registered_node_is_enough() {
    let failed = failed(FAILING, &HOSTS, false);
    assert!(!failed.iter().any(|line| line.starts_with("node ")), "{failed:?}");
}

#[test]
fn every_node_gets_a_probe_that_asks_another_node() {
    let neighbours = |nodes: &[&str]| -> Vec<String> {
        let probes = place(nodes);
        probes
            .iter()
            .map(|probe| format!("{} {} -> {}", probe.name, probe.node, probes[probe.neighbour].name))
            .collect()
    };
    assert_eq!(neighbours(&["a", "b", "c"]), ["probe-0 a -> probe-1", "probe-1 b -> probe-2", "probe-2 c -> probe-0"]);
    assert_eq!(neighbours(&["a"]), ["probe-0 a -> probe-1", "probe-1 a -> probe-0"]);
}

#[test]
fn probe_pods_as_they_are_created() {
    let text = render(TEMPLATE, "turnup-validate-1", &place(&["master", "worker"]), "turnup.local/agnhost:v1").unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn answers_of_a_probe() {
    assert_eq!(read_answer(r#"{"responses":["probe-1"]}"#), Ok("probe-1".into()));
    assert_eq!(read_answer(r#"{"errors":["connection refused"]}"#), Err("connection refused".into()));
    assert!(read_answer("<html>").unwrap_err().contains("unexpected answer"));
}

#[test]
fn only_what_an_older_validation_left_is_removed() {
    let namespace = |name: &str, created: &str, going: bool| {
        let mut metadata = json!({"name": name, "creationTimestamp": created});
        if going {
            metadata["deletionTimestamp"] = json!(created);
        }
        json!({"metadata": metadata})
    };
    let list = json!({"items": [
        namespace("turnup-validate-old", "2026-01-01T00:00:00Z", false),
        namespace("turnup-validate-going", "2026-01-01T00:00:00Z", true),
        namespace("turnup-validate-now", "2026-01-01T00:59:00Z", false),
        namespace("mine", "2026-01-01T00:00:00Z", false),
    ]});
    assert_eq!(left_over(&list, "2026-01-01T01:00:00Z".parse().unwrap()), ["turnup-validate-old"]);
}
