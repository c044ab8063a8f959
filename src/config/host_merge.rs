//! Hosts that were read, put into the list that there is: what is new, what takes the place of
//! something, and which roles are assumed because nothing says them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::host_list::{HostList, ordered};
use crate::format::host_key_rank;

/// The whole list, and what is to be told of how it came about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedHosts {
    /// The hosts as the setting has them.
    pub hosts: Vec<Value>,
    /// The names of those that were not there.
    pub added: Vec<String>,
    /// Those that were there and are not the same any more, each with its fields.
    pub changed: Vec<String>,
    /// Whether something that was there is there no longer.
    pub replaces: bool,
    /// What was assumed.
    pub assumed: Vec<String>,
}

/// Puts hosts and keys into the list that there is: a host of the same name is replaced, but keeps
/// its role where the new one has none.
#[must_use]
pub fn merge_hosts(known: &[Value], list: &HostList) -> MergedHosts {
    let mut hosts = known.to_vec();
    for host in &list.hosts {
        match hosts.iter_mut().find(|other| other["name"] == host["name"]) {
            Some(other) => {
                let role = other.get("role").cloned();
                other.clone_from(host);
                if let (None, Some(role)) = (host.get("role"), role) {
                    other["role"] = role;
                }
            }
            None => hosts.push(host.clone()),
        }
    }
    for (address, key) in best_keys(&list.keys) {
        let at = |host: &&mut Value| host.get("address").and_then(Value::as_str) == Some(address);
        for host in hosts.iter_mut().filter(at).filter_map(Value::as_object_mut) {
            host.insert("host_key".into(), key.into());
        }
    }
    let assumed = assume_roles(&mut hosts);
    let hosts: Vec<Value> = hosts.iter().map(ordered).collect();
    let mut merged = MergedHosts { assumed, ..MergedHosts::default() };
    for host in &hosts {
        match known.iter().find(|other| other["name"] == host["name"]) {
            None => merged.added.push(name(host)),
            Some(before) => merged.note_change(before, host),
        }
    }
    MergedHosts { hosts, ..merged }
}

/// The best key of each address, by the rule of the user's own `known_hosts`; of two that are
/// equally good the last one.
fn best_keys(keys: &[(String, String)]) -> BTreeMap<&str, &str> {
    let rank = |key: &str| host_key_rank(key.split(' ').next().unwrap_or_default()).unwrap_or(usize::MAX);
    let mut best: BTreeMap<&str, &str> = BTreeMap::new();
    for (address, key) in keys {
        let slot = best.entry(address).or_insert(key);
        if rank(key) <= rank(slot) {
            *slot = key;
        }
    }
    best
}

fn name(host: &Value) -> String {
    host["name"].as_str().unwrap_or_default().to_owned()
}

/// Hosts without a role are workers; where that leaves no control plane, the first of them is it.
fn assume_roles(hosts: &mut [Value]) -> Vec<String> {
    let has_control_plane = hosts.iter().any(|host| host["role"] == "control-plane");
    let mut open = hosts.iter_mut().filter(|host| host.get("role").is_none());
    let mut assumed = Vec::new();
    if !has_control_plane && let Some(first) = open.next() {
        first["role"] = "control-plane".into();
        assumed.push(format!("no host has the role control-plane: {} gets it", name(first)));
    }
    let workers = open.map(|host| {
        host["role"] = "worker".into();
        name(host)
    });
    let workers: Vec<String> = workers.collect();
    if !workers.is_empty() {
        assumed.push(format!("without a role, so workers: {}", workers.join(", ")));
    }
    assumed
}

impl MergedHosts {
    fn note_change(&mut self, before: &Value, after: &Value) {
        let nothing = Map::new();
        let (before, fields) = (before.as_object().unwrap_or(&nothing), after.as_object().unwrap_or(&nothing));
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let mut lines = Vec::new();
        for (field, value) in fields {
            match before.get(field) {
                None => lines.push(format!("{field} {}", shown(value))),
                Some(old) if old != value => {
                    self.replaces = true;
                    lines.push(format!("{field} {} -> {}", shown(old), shown(value)));
                }
                Some(_) => {}
            }
        }
        for (field, old) in before.iter().filter(|(field, _)| !fields.contains_key(*field)) {
            self.replaces = true;
            lines.push(format!("no {field} any more (was {})", shown(old)));
        }
        if !lines.is_empty() {
            self.changed.push(format!("{}: {}", name(after), lines.join(", ")));
        }
    }

    /// Everything of it, a line each.
    #[must_use]
    pub fn tell(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.added.is_empty() {
            lines.push(format!("added {}: {}", self.added.len(), self.added.join(", ")));
        }
        lines.extend(self.changed.iter().map(|change| format!("changed {change}")));
        lines.extend(self.assumed.iter().cloned());
        lines
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::super::read_hosts;
    use super::*;

    fn known() -> Vec<Value> {
        vec![
            json!({"name": "m1", "address": "192.0.2.11", "role": "control-plane", "ssh_user": "ops"}),
            json!({"name": "w1", "address": "192.0.2.21", "role": "worker", "ssh_user": "ops", "ssh_port": 2222}),
        ]
    }

    fn merge(known: &[Value], text: &str) -> MergedHosts {
        merge_hosts(known, &read_hosts(text).unwrap())
    }

    fn roles(merged: &MergedHosts) -> Vec<&str> {
        merged.hosts.iter().map(|host| host["role"].as_str().unwrap()).collect()
    }

    #[test]
    fn roles_that_no_text_says_are_assumed_and_told() {
        let bare = merge(&[], "192.0.2.11\n192.0.2.12\n");
        assert_eq!(roles(&bare), ["control-plane", "worker"]);
        assert_eq!(
            bare.tell(),
            [
                "added 2: host-192-0-2-11, host-192-0-2-12",
                "no host has the role control-plane: host-192-0-2-11 gets it",
                "without a role, so workers: host-192-0-2-12",
            ]
        );
        let workers_named = merge(&[], "a 192.0.2.11\nb 192.0.2.12 worker\nc 192.0.2.13\n");
        assert_eq!(roles(&workers_named), ["control-plane", "worker", "worker"]);
        let control_plane_named = merge(&[], "a 192.0.2.11\nb 192.0.2.12 control-plane\n");
        assert_eq!(roles(&control_plane_named), ["worker", "control-plane"]);
        assert_eq!(control_plane_named.assumed, ["without a role, so workers: a"]);
        let all_named = merge(&[], "a 192.0.2.11 worker\nb 192.0.2.12 worker\n");
        assert_eq!((roles(&all_named), all_named.assumed.len()), (vec!["worker", "worker"], 0));
        let more = merge(&known(), "w2 192.0.2.22\n");
        assert_eq!(roles(&more), ["control-plane", "worker", "worker"], "there is a control plane already");
    }

    #[test]
    fn a_host_of_the_same_name_is_replaced_and_its_fields_are_told() {
        let merged = merge(&known(), "w1 192.0.2.99 user=ops zone=b\nw2 192.0.2.22 worker\n");
        let addresses: Vec<&Value> = merged.hosts.iter().map(|host| &host["address"]).collect();
        assert_eq!(addresses, ["192.0.2.11", "192.0.2.99", "192.0.2.22"]);
        assert_eq!(
            merged.tell(),
            ["added 1: w2", "changed w1: address 192.0.2.21 -> 192.0.2.99, zone b, no ssh_port any more (was 2222)",]
        );
        assert!(merged.replaces);
        let same = merge(&known(), "w1 192.0.2.21 user=ops port=2222\n");
        assert_eq!((same.hosts, same.changed.len(), same.replaces), (known(), 0, false), "it keeps its role");
    }

    #[test]
    fn keys_of_ssh_keyscan_find_their_hosts_the_best_one_first() {
        let keys = "# 192.0.2.11:22 SSH-2.0\n192.0.2.11 ssh-ed25519 AAAA\n192.0.2.11 ssh-rsa RRRR\n\
            192.0.2.11 ecdsa-sha2-nistp256 EEEE\n[192.0.2.21]:2222 ssh-ed25519 BBBB\n";
        let merged = merge(&known(), keys);
        let found = merged.hosts.iter().map(|host| host["host_key"].as_str().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), ["ssh-ed25519 AAAA", "ssh-ed25519 BBBB"]);
        assert!(!merged.replaces, "nothing was there before");
        let both = merge(&[], "m1 192.0.2.11\n192.0.2.11 ssh-ed25519 AAAA comment\n");
        assert_eq!(both.hosts[0]["host_key"], "ssh-ed25519 AAAA");
    }
}
