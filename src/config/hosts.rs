//! Can a cluster be made of this list of hosts at all? What no single field tells: twins, roles,
//! ways that lead nowhere.
//!
//! Pure: it judges the text of `phase1.baremetal.hosts`, whose single values are right already.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::format::Taint;

/// What is to be said where clients know one of several control-plane hosts.
const ONE_API_HOST: &str = "several hosts have the role control-plane, and clients outside know the first one alone; name the address or DNS \
                            name of a load balancer before them in phase1.api.host (nodes need none)";
const ZONE: &str = "topology.kubernetes.io/zone";
/// Labels that turnup or the kubelet decide.
const RESERVED: [&str; 5] = [ZONE, "node-role.kubernetes.io/", "turnup.dev/", "kubernetes.io/", "beta.kubernetes.io/"];

/// What the answers around the list say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostChecks {
    /// Whether there is a file of known hosts.
    pub(super) known_hosts: bool,
    /// Whether all hosts are behind a bastion.
    pub(super) bastion: bool,
}

/// Everything that is wrong with the list, each in one sentence.
pub(super) fn find_mistakes(text: &str, around: HostChecks) -> Vec<String> {
    let hosts: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    if hosts.is_empty() {
        return Vec::new();
    }
    let mut mistakes = Vec::new();
    for what in ["address", "host_key"] {
        mistakes.extend(find_twins(&hosts, what));
    }
    mistakes.extend(judge_roles(&hosts));
    for host in &hosts {
        let name = field(host, "name");
        let judged = [
            judge_key(host, around),
            judge_jump(host, &hosts, around),
            judge_label(host),
            judge_taints(host),
            judge_disk(host),
        ];
        mistakes.extend(judged.into_iter().flatten().map(|why| format!("{name}: {why}")));
    }
    mistakes
}

fn field<'v>(host: &'v Value, name: &str) -> &'v str {
    host.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Two hosts with one address, or one key, are one host, or a clone of it.
fn find_twins(hosts: &[Value], what: &str) -> Vec<String> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut twins = Vec::new();
    for host in hosts {
        let (name, value) = (field(host, "name"), field(host, what));
        match owners.insert(value, name) {
            Some(first) if !value.is_empty() => {
                twins.push(format!("{first} and {name} have the same {what}, {value}"));
            }
            _ => {}
        }
    }
    twins
}

fn judge_roles(hosts: &[Value]) -> Option<String> {
    match count_control_planes(hosts) {
        0 => Some("no host has the role control-plane; give it to one".to_owned()),
        count => (count > MOST_CONTROL_PLANES).then(|| {
            format!("{count} hosts have the role control-plane; etcd is made for {MOST_CONTROL_PLANES} at most")
        }),
    }
}

/// More members of etcd only make it slower (etcd's FAQ, "What is maximum cluster size?").
pub const MOST_CONTROL_PLANES: usize = 7;

/// What is to be said of a list that is right: an even number of control-plane hosts is what is
/// left when one of them has died. `has_api_host` where the API server has an address of its own.
pub(super) fn find_doubts(text: &str, has_api_host: bool) -> Vec<String> {
    let hosts: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let count = count_control_planes(&hosts);
    let fewer = count.checked_sub(1).filter(|_| count.is_multiple_of(2));
    let even = fewer.map(|fewer| {
        format!("{count} hosts with the role control-plane survive no more losses than {fewer}: etcd needs a majority")
    });
    let one = (count > 1 && !has_api_host).then(|| ONE_API_HOST.to_owned());
    even.into_iter().chain(one).collect()
}

fn count_control_planes(hosts: &[Value]) -> usize {
    hosts.iter().filter(|host| field(host, "role") == "control-plane").count()
}

fn judge_key(host: &Value, around: HostChecks) -> Option<String> {
    let key = field(host, "host_key");
    if !key.is_empty() {
        return None;
    }
    let address = field(host, "address");
    let port = host.get("ssh_port").and_then(Value::as_u64).map(|port| format!(" -p {port}")).unwrap_or_default();
    let why = format!(
        "it has no host_key, and phase1.ssh.known_hosts_file names no file; look with: ssh-keyscan -t ed25519{port} {address}"
    );
    (!around.known_hosts).then_some(why)
}

fn judge_jump(host: &Value, hosts: &[Value], around: HostChecks) -> Option<String> {
    let jump = field(host, "ssh_jump");
    if jump.is_empty() || jump == "none" {
        return None;
    }
    if jump == field(host, "name") {
        return Some("ssh_jump names the host itself".to_owned());
    }
    let Some(other) = hosts.iter().find(|other| field(other, "name") == jump) else {
        let known = around.known_hosts;
        return (!known).then(|| {
            format!("the host key of {jump} (ssh_jump) is unknown: it is no host of this list, and phase1.ssh.known_hosts_file names no file")
        });
    };
    let behind = match field(other, "ssh_jump") {
        "" => around.bastion,
        "none" => false,
        _ => true,
    };
    behind.then(|| {
        format!("ssh_jump {jump} is itself behind another host; give {jump} \"ssh_jump\": \"none\" or name another one")
    })
}

fn judge_label(host: &Value) -> Option<String> {
    let labels = host.get("labels").and_then(Value::as_object)?;
    let key = labels.keys().find(|key| RESERVED.iter().any(|own| key.starts_with(own)))?;
    Some(if key == ZONE {
        format!("the label {key} is the field `zone`")
    } else {
        format!("the label {key} is reserved: turnup and the kubelet set labels of roles, names and platforms")
    })
}

/// Kubernetes knows a taint by its key and effect.
fn judge_taints(host: &Value) -> Option<String> {
    let mut seen = BTreeSet::new();
    for taint in host.get("taints").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let Taint { key, effect, .. } = taint.parse().ok()?;
        if !seen.insert((key.clone(), effect.clone())) {
            return Some(format!("two taints have the key {key} and the effect {effect}"));
        }
    }
    None
}

/// Only where etcd runs.
fn judge_disk(host: &Value) -> Option<String> {
    let is_idle = !field(host, "etcd_device").is_empty() && field(host, "role") != "control-plane";
    is_idle.then(|| "it has an etcd_device, but a worker runs no etcd; leave it out".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mistakes(change: impl FnOnce(&mut Value), around: HostChecks) -> Vec<String> {
        let mut hosts = json!([
            {"name": "m1", "address": "192.0.2.11", "role": "control-plane", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
            {"name": "w1", "address": "192.0.2.21", "role": "worker", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIABBBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
            {"name": "w2", "address": "192.0.2.22", "role": "worker", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIACCCCAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
        ]);
        change(&mut hosts);
        find_mistakes(&hosts.to_string(), around)
    }

    #[test]
    fn a_good_list_has_no_mistakes() {
        let none: Vec<String> = Vec::new();
        assert_eq!(mistakes(|_| {}, HostChecks::default()), none);
        let known = HostChecks { known_hosts: true, bastion: true };
        let rich = |hosts: &mut Value| {
            hosts[0]["ssh_jump"] = json!("none");
            hosts[0]["etcd_device"] = json!("/dev/disk/by-id/nvme-eui.01");
            hosts[1]["ssh_jump"] = json!("m1");
            hosts[1]["labels"] = json!({"example.com/pool": "a"});
            hosts[1]["taints"] = json!(["a=b:NoSchedule", "a=b:NoExecute"]);
            hosts[2]["host_key"] = Value::Null;
        };
        assert_eq!(mistakes(rich, known), none);
        assert_eq!(find_mistakes("[]", HostChecks::default()), none);
    }

    #[test]
    fn everything_that_is_wrong_is_said() {
        type SettingChange = fn(&mut Value);
        let cases: [(SettingChange, &str); 11] = [
            (|hosts| hosts[2]["address"] = json!("192.0.2.11"), "m1 and w2 have the same address, 192.0.2.11"),
            (
                |hosts| {
                    hosts[2]["host_key"] =
                        json!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIABBBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
                },
                "w1 and w2 have the same host_key",
            ),
            (|hosts| hosts[0]["role"] = json!("worker"), "no host has the role control-plane"),
            (|hosts| hosts[1]["host_key"] = Value::Null, "w1: it has no host_key, and phase1.ssh.known_hosts_file"),
            (|hosts| hosts[1]["ssh_jump"] = json!("w1"), "w1: ssh_jump names the host itself"),
            (|hosts| hosts[1]["ssh_jump"] = json!("door"), "the host key of door (ssh_jump) is unknown"),
            (
                |hosts| {
                    hosts[1]["ssh_jump"] = json!("w2");
                    hosts[2]["ssh_jump"] = json!("m1");
                },
                "w1: ssh_jump w2 is itself behind another host",
            ),
            (|hosts| hosts[1]["labels"] = json!({ZONE: "a"}), "is the field `zone`"),
            (|hosts| hosts[1]["labels"] = json!({"kubernetes.io/os": "a"}), "is reserved"),
            (
                |hosts| hosts[1]["etcd_device"] = json!("/dev/sdb"),
                "w1: it has an etcd_device, but a worker runs no etcd",
            ),
            (|hosts| hosts[1]["taints"] = json!(["a=b:NoSchedule", "a=c:NoSchedule"]), "two taints have the key a"),
        ];
        for (change, expected) in cases {
            let found = mistakes(change, HostChecks::default());
            assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
        }
        let behind =
            mistakes(|hosts| hosts[1]["ssh_jump"] = json!("m1"), HostChecks { bastion: true, ..HostChecks::default() });
        assert!(behind[0].contains("m1 is itself behind another host"), "{behind:?}");
    }

    #[test]
    fn control_planes_that_are_even_or_known_by_one_address_are_doubted() {
        let list = |count: usize| json!(vec![json!({"role": "control-plane"}); count]).to_string();
        for (count, has_api_host, expected) in
            [(1, false, ""), (3, true, ""), (3, false, "clients"), (2, true, "2 hosts"), (2, false, "2 hosts clients")]
        {
            let doubts = find_doubts(&list(count), has_api_host);
            let words: Vec<&str> = expected.split_whitespace().filter(|word| *word != "hosts").collect();
            assert_eq!(doubts.len(), words.len(), "{count}, {has_api_host}: {doubts:?}");
            assert!(words.iter().all(|word| doubts.iter().any(|doubt| doubt.contains(word))), "{doubts:?}");
        }
    }
}
