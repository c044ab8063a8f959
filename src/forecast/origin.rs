//! The values of a node config, each with the settings that decide it. Does not find out which: that
//! is `search`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::affected::{node_place, unfold};
use super::compare::{NAMES, Way, members};

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

/// What trials have shown of the values of one node.
pub struct Origins {
    /// Each setting with the ways to the values that change with it.
    pub(super) reached: BTreeMap<String, BTreeSet<Way>>,
    /// How many node configs were computed for it.
    pub trials: usize,
}

impl Origins {
    /// All values of the node config in `text`, each with the settings that change it.
    #[must_use]
    pub fn node_values(&self, text: &str) -> Vec<NodeValue> {
        let mut leaves = Vec::new();
        collect_leaves(&parse(text), &mut Way::new(), &mut leaves);
        let origin = |way: &Way| -> BTreeSet<String> {
            let touches = |changed: &Way| way.starts_with(changed) || changed.starts_with(way);
            let deciding = self.reached.iter().filter(|(_, reached)| reached.iter().any(touches));
            deciding.map(|(name, _)| name.clone()).collect()
        };
        leaves.into_iter().map(|(way, value)| NodeValue { place: label(&way), settings: origin(&way), value }).collect()
    }
}

/// What is in a node config.
pub(super) fn parse(text: &str) -> Value {
    serde_json::from_str(text).map(unfold).unwrap_or_default()
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
        way.push(name.into_owned());
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
