//! Overrides by whom they are for, their mistakes, and the places of settings against the tables.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
use serde_json::json;

use super::*;
use crate::config::Settings;

fn read(value: &Value) -> Result<ComponentOverrides> {
    let source = TreeSource::embedded();
    ComponentOverrides::read("o.json", value, &Reference::load(&source, "1.36.3").unwrap(), &source)
}

fn refusal(value: &Value) -> String {
    read(value).unwrap_err().render()
}

#[test]
fn the_most_exact_value_comes_last() {
    let overrides = read(&json!({
        "hosts": {"w1": {"kubelet": {"maxPods": 1}}},
        "groups": {"gpu": {"kubelet": {"maxPods": 2}}},
        "roles": {"worker": {"kubelet": {"maxPods": 3}}},
        "kubelet": {"maxPods": 4, "v": 4, "authentication": {"webhook": {"cacheTTL": "1m"}}},
        "kube-apiserver": {"event-ttl": "2h"},
    }))
    .unwrap();
    let of = |host, role, group| {
        let chosen = overrides.of(ComponentName::Kubelet, OverrideSubject { host, role, group });
        chosen.map(|one| format!("{} = {}", one.destination, one.value)).collect::<Vec<_>>()
    };
    let all = ["authentication.webhook.cacheTTL = \"1m\"", "--v = 4", "maxPods = 4"];
    let sorted = |mut list: Vec<String>| {
        list[..3].sort_by_key(|line| if line.contains("maxPods") { 2 } else { usize::from(line.starts_with("--")) });
        list
    };
    assert_eq!(sorted(of("m1", "control-plane", "")), all);
    assert_eq!(sorted(of("w2", "worker", ""))[3..], ["maxPods = 3"]);
    assert_eq!(sorted(of("w2", "worker", "gpu"))[3..], ["maxPods = 3", "maxPods = 2"]);
    assert_eq!(sorted(of("w1", "worker", "gpu"))[3..], ["maxPods = 3", "maxPods = 2", "maxPods = 1"]);
}

#[test]
fn every_mistake_is_told_with_its_way_and_what_was_meant() {
    insta::assert_snapshot!(refusal(&json!({
        "kublet": {},
        "kubelet": {"maxPod": 50, "maxPods": "50", "syncFrequency": "often", "featureGates": {"InPlacePodVerticalScal": true}},
        "kube-apiserver": {"event-tll": "1h", "profiling": "maybe"},
        "hosts": {"w1": {"etcd": {"heartbeat-interval": "fast"}}},
        "groups": {"gpu": {"kube-apiserver": {"event-ttl": "1h"}, "kubelet": {"anonymous-auth": true}}},
        "kube-scheduler": {"kube-api-qps": 50},
        "kube-proxy": {"proxy-mode": "nftables", "iptables": {"syncPeriod": 5}},
        "roles": {"workers": {}, "worker": {"kube-proxy": {"mode": "nftables"}}},
    })));
    insta::assert_snapshot!(refusal(&json!([])), @r#"error: phase2.overrides: o.json: it is no object: {"kubelet": {"maxPods": 50}}"#);
}

#[test]
fn a_gate_goes_to_every_component_that_knows_it() {
    let source = TreeSource::embedded();
    let reference = Reference::load(&source, "1.36.3").unwrap();
    let assign = |gates: Value| assign_gates(gates.as_object().unwrap(), &reference);
    let assigned = assign(json!({"AllAlpha": false})).unwrap();
    let shown: Vec<String> = assigned.iter().map(|one| format!("{} {}", one.component, one.destination)).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    kube-apiserver --feature-gates
    kube-controller-manager --feature-gates
    kube-scheduler --feature-gates
    kubelet featureGates
    kube-proxy featureGates
    ");
    insta::assert_snapshot!(assign(json!({"AllAlfa": true})).unwrap_err().render(), @"error: phase2.feature_gates: `AllAlfa` is no feature gate of Kubernetes 1.36.3; did you mean `AllAlpha`?");
}

#[test]
fn a_path_of_the_command_line_is_the_file_s() {
    let of_map = read(&nest("kubelet.evictionHard.memory.available", json!("1Gi"))).unwrap();
    let mut assigned = of_map.of(ComponentName::Kubelet, OverrideSubject { host: "", role: "worker", group: "" });
    assert_eq!(assigned.next().unwrap().value, json!({"memory.available": "1Gi"}));
    assert_eq!(nest("hosts.w1.kubelet.maxPods", json!(5)), json!({"hosts": {"w1": {"kubelet": {"maxPods": 5}}}}));
}

/// `#: sets` of the Kconfig tree names flags and fields that every pinned version has, with values
/// of their types.
#[test]
fn every_setting_goes_to_a_place_that_each_version_has() {
    let source = TreeSource::embedded();
    let settings = Settings::defaults(&source).unwrap();
    let versions = versions_with(&source, |_| true).unwrap();
    assert!(versions.len() >= 2, "{versions:?}");
    let (mut mistakes, mut places) = (Vec::new(), 0);
    for version in &versions {
        let reference = Reference::load(&source, version).unwrap();
        let has = |component: ComponentName, destination: &Destination| {
            let table = reference.component(component.name()).unwrap();
            match destination {
                Destination::Flag(name) => table.flag(name).is_some(),
                Destination::Field(path) => table.field(&path.join(".")).is_some(),
                Destination::Request(resource) => ["cpu", "memory"].contains(&resource.as_str()),
            }
        };
        for symbol in settings.schema().ordered() {
            for sets in &settings.schema().rule(symbol).sets {
                places += 1;
                if !has(sets.component, &sets.destination) {
                    let name = settings.schema().name(symbol);
                    mistakes.push(format!("{version}: {name}: {} has no {}", sets.component, sets.destination));
                }
            }
        }
        for assignment in settings.assignments().unwrap() {
            let table = reference.component(assignment.component.name()).unwrap();
            let (value, name) = (&assignment.value, &assignment.origin);
            let fits = match &assignment.destination {
                Destination::Flag(flag) => table.flag(flag).is_none_or(|flag| flag.accepts(&flag_text(value).unwrap())),
                Destination::Field(path) => {
                    table.field(&path.join(".")).is_none_or(|field| field.field_type.accepts(value))
                }
                Destination::Request(_) => true,
            };
            if !fits {
                mistakes.push(format!("{version}: {name}: {} does not take {value}", assignment.destination));
            }
        }
    }
    assert!(places > 100, "{places}");
    assert_eq!(mistakes, Vec::<String>::new());
}
