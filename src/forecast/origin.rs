//! Which settings decide the values of a node config, found by trial.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Forecast;
use super::affected::{node_place, unfold};
use super::compare::{NAMES, Way, differences, members};

/// One value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeValue {
    /// What and where: `flag kubelet --node-ip`.
    pub place: String,
    /// The value; of a text of several lines, how many.
    pub value: String,
    /// The settings with which it changes.
    pub settings: BTreeSet<String>,
}

impl Forecast {
    /// The file of a node config.
    #[must_use]
    pub fn node_file(node: &str) -> String {
        crate::bootstrap::node_config::file_of(node)
    }

    /// All values of the node config in `text` of a node, each with those settings among the
    /// trials, forecasts for another value of the named setting, that change it.
    #[must_use]
    pub fn node_values(&self, node: &str, text: &str, trials: &[(String, Self)]) -> Vec<NodeValue> {
        let parse = |text: &str| serde_json::from_str(text).map(unfold).unwrap_or_default();
        let own: Value = self.files.get(&Self::node_file(node)).map(|text| parse(text)).unwrap_or_default();
        let mut reached: Vec<(&String, Way)> = Vec::new();
        for (setting, trial) in trials {
            // A node that would not be there at all says nothing about its values.
            let Some(other) = self.counterpart(node, trial).and_then(|node| trial.files.get(&Self::node_file(node)))
            else {
                continue;
            };
            reached.extend(differences(&own, &parse(other)).into_iter().map(|way| (setting, way)));
        }
        let mut leaves = Vec::new();
        collect_leaves(&parse(text), &mut Way::new(), &mut leaves);
        let origin = |way: &Way| -> BTreeSet<String> {
            reached
                .iter()
                .filter(|(_, changed)| way.starts_with(changed) || changed.starts_with(way))
                .map(|(name, _)| (*name).clone())
                .collect()
        };
        leaves.into_iter().map(|(way, value)| NodeValue { place: label(&way), settings: origin(&way), value }).collect()
    }
}

impl Forecast {
    /// The same node in another forecast, which may have given it another name.
    fn counterpart<'a>(&self, node: &'a str, other: &'a Self) -> Option<&'a str> {
        if other.hosts.contains_key(node) || other.hosts.len() != self.hosts.len() {
            return Some(node);
        }
        let at = self.hosts.keys().position(|name| name == node)?;
        other.hosts.keys().nth(at).map(String::as_str)
    }
}

/// The place, and which of its values it is where it has several.
fn label(way: &[String]) -> String {
    let (kind, name) = node_place(way);
    match way {
        [_, _, content, secret, field] if content == "content" && secret == "secret" => {
            format!("{kind} {name} secret {field}")
        }
        [list, _, field, ..] if ["content", "text"].contains(&field.as_str()) || list == "sysctls" => {
            format!("{kind} {name}")
        }
        [_, _, field, ..] => format!("{kind} {name} {field}"),
        _ => format!("{kind} {name}"),
    }
}

fn collect_leaves(value: &Value, way: &mut Way, leaves: &mut Vec<(Way, String)>) {
    let Some(members) = members(value).filter(|members| !members.is_empty()) else {
        let is_name = way.last().is_some_and(|last| NAMES.contains(&last.as_str())) && way.len() > 2;
        if !(is_name && value.as_str() == way.get(way.len() - 2).map(String::as_str)) {
            leaves.push((way.clone(), shown(way, value)));
        }
        return;
    };
    for (name, value) in members {
        way.push(name);
        collect_leaves(&value, way, leaves);
        way.pop();
    }
}

fn shown(way: &[String], value: &Value) -> String {
    match (value.as_str(), way) {
        (Some(text), [.., list, _]) if ["flags", "command"].contains(&list.as_str()) => {
            text.split_once('=').map_or(text, |(_, value)| value).to_owned()
        }
        (Some(text), _) if text.trim_end().contains('\n') => format!("({} lines)", text.lines().count()),
        (Some(text), _) => text.trim_end().to_owned(),
        (None, [.., field]) if field == "mode" => value.as_u64().map_or_else(String::new, |mode| format!("{mode:04o}")),
        (None, _) => value.to_string(),
    }
}
