//! What a host's system changes in its node config: nothing but the file of its name servers, and
//! what its kernel and its machine are.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;

use super::tests::{facts, with_configs};
use crate::node::Facts;

const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";

/// Each place at which two documents differ, and what stands there in the second one.
fn find_differences(one: &Value, other: &Value, place: &str, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(two)) if one.keys().eq(two.keys()) => {
            for (key, value) in one {
                find_differences(value, &two[key], &format!("{place}.{key}"), found);
            }
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            for (value, second) in one.iter().zip(two) {
                let name = ["path", "name"].iter().find_map(|key| value[key].as_str()).unwrap_or_default();
                find_differences(value, second, &format!("{place}[{name}]"), found);
            }
        }
        _ if one == other => {}
        (Value::String(one), Value::String(two)) if two.contains('\n') => {
            let lines = two.lines().filter(|line| !one.lines().any(|known| known == *line));
            found.extend(lines.map(|line| format!("{}: {line}", place.trim_start_matches('.'))));
        }
        _ => found.push(format!("{}: {other}", place.trim_start_matches('.'))),
    }
}

#[test]
fn the_node_config_of_each_family_of_systems() {
    let resolved = |os: &str| Facts { os: os.into(), resolv_conf: RESOLVED.into(), ..facts() };
    let systems = [
        Facts { os: "Rocky Linux 9.4 (Blue Onyx)".into(), ..facts() },
        resolved("Fedora Linux 42 (Server Edition)"),
        resolved("Flatcar Container Linux by Kinvolk 4152.2.3 (Oklo)"),
        Facts { cgroup: 1, ..resolved("Flatcar Container Linux by Kinvolk 3033.2.4 (Oklo)") },
    ];
    let changes = [("phase2.host.packages", "chrony,jq")];
    with_configs(&changes, |configs| {
        let mut shown = String::new();
        for host in &configs.inventory.hosts {
            let of = |facts: &Facts| serde_json::to_value(configs.node_config(host, facts).unwrap().0).unwrap();
            let usual = of(&facts());
            for system in &systems {
                let mut found = Vec::new();
                find_differences(&usual, &of(system), "", &mut found);
                shown.extend([&host.name, ", ", &system.os, ":\n"].map(ToString::to_string));
                shown.extend(found.iter().map(|line| format!("  {line}\n")));
            }
        }
        insta::assert_snapshot!(shown);
    });
}
