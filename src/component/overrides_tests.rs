//! Overrides by whom they are for, their mistakes, and the places of settings against the tables.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
use serde_json::json;

use super::*;
use crate::component::{Stage, versions_with};
use crate::config::{Assignment, Settings};

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
        for &symbol in settings.schema().ordered() {
            for sets in &settings.schema().rule(symbol).sets {
                places += 1;
                if !has(sets.component, &sets.destination) {
                    let name = settings.schema().name(symbol);
                    mistakes.push(format!("{version}: {name}: {} has no {}", sets.component, sets.destination));
                }
            }
        }
        let tables = [Reference::clone(&reference)];
        mistakes.extend(settings.assignments().unwrap().iter().filter_map(|one| find_misfit(&tables, one)));
    }
    assert!(places > 100, "{places}");
    assert_eq!(mistakes, Vec::<String>::new());
}

/// Whether each version's component takes this value in its place; which one does not.
fn find_misfit(tables: &[Reference], assignment: &Assignment) -> Option<String> {
    let Assignment { component, destination, value, origin, .. } = assignment;
    let fits = |table: &&Reference| {
        let table = table.component(component.name()).unwrap();
        match destination {
            Destination::Flag(flag) => table.flag(flag).is_some_and(|flag| flag.accepts(&flag_text(value).unwrap())),
            Destination::Field(path) => {
                table.field(&path.join(".")).is_some_and(|field| field.field_type.accepts(value))
            }
            Destination::Request(_) => true,
        }
    };
    let misfit = tables.iter().find(|table| !fits(table))?;
    Some(format!("{}: {origin}: {component} {destination} does not take {value}", misfit.kubernetes))
}

/// Both ends of each range of the Kconfig tree, every word of its lists and the samples of its
/// formats: all are values of the type that each version's tables have for the place.
#[test]
fn every_value_that_a_setting_may_have_is_one_of_its_place_s_type() {
    let source = TreeSource::embedded();
    let (tables, defaults) = (all_tables(&source).unwrap(), Settings::defaults(&source).unwrap());
    let (mut misfits, mut tried) = (Vec::new(), 0);
    for &symbol in defaults.schema().ordered() {
        let name = defaults.schema().name(symbol);
        if defaults.schema().rule(symbol).sets.is_empty() {
            continue;
        }
        for value in defaults.other_values(name).unwrap() {
            let mut settings = defaults.clone();
            // What needs another answer as well is refused by itself.
            if settings.set(name, &value).is_err() {
                continue;
            }
            let own = settings.assignments().unwrap().into_iter().filter(|assignment| assignment.origin == name);
            for assignment in own {
                tried += 1;
                misfits.extend(find_misfit(&tables, &assignment));
            }
        }
    }
    assert!(tried > 150, "{tried}");
    assert_eq!(misfits, Vec::<String>::new(), "of {tried}");
}

/// Gates that the tree gives as examples are a choice in every version.
#[test]
fn gates_that_the_tree_names_are_gates_of_each_version() {
    let source = TreeSource::embedded();
    let settings = Settings::defaults(&source).unwrap();
    let rule = settings.schema().rule(settings.schema().find("phase2.feature_gates").unwrap());
    let example = rule.example.clone().unwrap();
    for table in all_tables(&source).unwrap() {
        let gates: Map<String, Value> = example
            .split(',')
            .map(|pair| pair.split_once('=').map(|(name, on)| (name.to_owned(), Value::Bool(on == "true"))).unwrap())
            .collect();
        let refused = assign_gates(&gates, &table).err().map(|error| error.render());
        assert_eq!(refused, None, "{}", table.kubernetes);
        let is_choice = |name: &String| {
            let mut found = table.components.values().filter_map(|component| component.gate(name));
            found.all(|gate| matches!(gate.stage, Stage::Alpha | Stage::Beta) && !gate.locked)
        };
        assert!(gates.keys().all(is_choice), "{}: {example}", table.kubernetes);
    }
}

/// One slip of a finger: two letters swapped, one left out, one twice, or the key beside it.
fn slip(name: &str, random: &mut impl FnMut(usize) -> usize) -> String {
    const ROWS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
    let mut letters: Vec<char> = name.chars().collect();
    let at = random(letters.len() - 1);
    match random(4) {
        0 => letters.swap(at, at + 1),
        1 => drop(letters.remove(at)),
        2 => letters.insert(at, letters[at]),
        _ => {
            let lower = letters[at].to_ascii_lowercase();
            let row = ROWS.iter().find(|row| row.contains(lower)).map_or("a-", |row| row);
            let key = row.find(lower).unwrap_or(0);
            letters[at] = row.chars().nth(if key == 0 { 1 } else { key - 1 }).unwrap();
        }
    }
    letters.into_iter().collect()
}

/// Names of a component that a file of overrides may have.
fn names_of(component: &str, reference: &Reference) -> Vec<String> {
    let (name, table) = (ComponentName::find(component).unwrap(), reference.component(component).unwrap());
    let flags = table.flags.iter().filter(|(_, flag)| takes_flag(name, flag)).map(|(name, _)| name.as_str());
    let all = table.fields().filter(|path| !path.contains(['[', '*'])).chain(flags);
    // Of fewer letters any other word is as near.
    all.filter(|name| name.len() > 5).map(str::to_owned).collect()
}

/// Whether the name was suggested, or as much of its path as has the slip.
fn is_meant(said: &str, name: &str, slipped: &str) -> bool {
    let near = said.split("did you mean `").nth(1).and_then(|rest| rest.split('`').next()).unwrap_or_default();
    near == name || (name.starts_with(&format!("{near}.")) && !slipped.starts_with(&format!("{near}.")))
}

#[test]
fn a_slip_of_the_finger_is_refused_with_the_name_that_was_meant() {
    let source = TreeSource::embedded();
    let reference = Reference::load(&source, "1.36.3").unwrap();
    let mut state = 1_u64;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % bound
    };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for component in ComponentName::ALL.map(ComponentName::name) {
        let table = reference.component(component).unwrap();
        let names = names_of(component, &reference);
        let gates: Vec<String> = table.feature_gates.keys().cloned().collect();
        let mut slips: Vec<(String, String, Value)> = Vec::new();
        for at in 0..10 {
            let has_gates = at % 3 == 0 && component != "etcd";
            let all = if has_gates { &gates } else { &names };
            let name = &all[random(all.len())];
            let slipped = slip(name, &mut random);
            if all.contains(&slipped) {
                continue;
            }
            let key = if table.field(GATES[0]).is_some() { GATES[0] } else { GATES[1] };
            let value = if has_gates { json!({key: {&slipped: true}}) } else { nest(&slipped, json!(1)) };
            slips.push((name.clone(), slipped, json!({ component: value })));
        }
        for (name, slipped, value) in slips {
            tried += 1;
            let said = read(&value).err().map(|error| error.render()).unwrap_or_default();
            if !is_meant(&said, &name, &slipped) {
                wrong.push(format!("{component}: {slipped} for {name}: {said}"));
            }
        }
    }
    for _ in 0..10 {
        let all: Vec<&String> = reference.components.values().flat_map(|table| table.feature_gates.keys()).collect();
        let name = all[random(all.len())];
        let slipped = slip(name, &mut random);
        if all.contains(&&slipped) {
            continue;
        }
        tried += 1;
        let said = assign_gates(json!({&slipped: true}).as_object().unwrap(), &reference).unwrap_err().render();
        if !said.ends_with(&format!("did you mean `{name}`?")) {
            wrong.push(format!("gate {slipped} for {name}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried >= 60, "{tried}");
}
