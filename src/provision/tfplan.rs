//! Terraform's plan as `terraform show -json` tells it, in the words of [`Change`]. It runs
//! nothing.
//!
//! The format is Terraform's documented "JSON Output Format", 1.x: `resource_changes` with
//! `actions`, `before`, `after`, `after_unknown` and `before_sensitive`, `after_sensitive`;
//! `resource_drift` of the same form; `output_changes`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::volume_guard::DataLoss;
use crate::change::{self, Change, Verb};
use crate::unknown;

/// What a plan of Terraform would change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TerraformChanges {
    /// The resources, each with the attributes that differ.
    pub changes: Vec<Change>,
    /// Changes made outside of turnup since the last apply.
    pub drift: Vec<Change>,
    /// The volumes of etcd whose data it takes.
    pub(super) losses: Vec<DataLoss>,
    outputs_change: bool,
}

impl TerraformChanges {
    pub(super) fn parse(plan: &Value) -> Self {
        let list = |name: &str| plan[name].as_array().into_iter().flatten().filter_map(parse_resource).collect();
        let outputs = plan["output_changes"].as_object().into_iter().flatten();
        let resources = plan["resource_changes"].as_array().into_iter().flatten();
        Self {
            losses: resources.filter_map(find_loss).collect(),
            changes: list("resource_changes"),
            drift: list("resource_drift"),
            outputs_change: outputs.map(|(_, change)| verb(&change["actions"])).any(|verb| verb.is_some()),
        }
    }

    /// Whether applying it would leave resources and outputs as they are.
    pub(super) fn changes_nothing(&self) -> bool {
        self.changes.is_empty() && !self.outputs_change
    }

    /// The addresses of the resources that change.
    pub(super) fn changed_addresses(&self) -> BTreeSet<String> {
        self.changes.iter().map(|change| change.name.clone()).collect()
    }
}

fn parse_resource(resource: &Value) -> Option<Change> {
    let change = &resource["change"];
    let verb = verb(&change["actions"])?;
    let address = resource["address"].as_str().unwrap_or_default();
    let mark = DataLoss::find(resource, verb).map(|loss| loss.mark());
    let lines = mark.into_iter().chain(attribute_lines(verb, change)).collect();
    Some(Change::new(verb, "resource", address).with_lines(lines))
}

fn find_loss(resource: &Value) -> Option<DataLoss> {
    DataLoss::find(resource, verb(&resource["change"]["actions"])?)
}

/// None for what stays, is only read, or is only forgotten.
fn verb(actions: &Value) -> Option<Verb> {
    let actions: Vec<&str> = actions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match actions[..] {
        ["create"] => Some(Verb::Create),
        ["update"] => Some(Verb::Update),
        ["delete"] => Some(Verb::Delete),
        // The old one may also be left where it is and forgotten: the new one is empty all the
        // same.
        ["delete" | "forget", "create"] | ["create", "delete" | "forget"] => Some(Verb::Replace),
        _ => None,
    }
}

fn attribute_lines(verb: Verb, planned: &Value) -> Vec<String> {
    if verb == Verb::Delete {
        return Vec::new();
    }
    let before = leaves(&planned["before"], &planned["before_sensitive"]);
    let mut after = leaves(&planned["after"], &planned["after_sensitive"]);
    for (path, text) in leaves(&planned["after_unknown"], &Value::Null) {
        if text == "true" {
            after.insert(path, unknown::after_apply());
        }
    }
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let (before, after) = (before.get(name), after.get(name));
        if before == after {
            continue;
        }
        lines.extend(before.map(|value| format!("- {name} = {value}")));
        lines.extend(after.map(|value| format!("+ {name} = {value}")));
    }
    change::shorten(lines)
}

/// The attributes that have a value, by their paths; those that the provider calls sensitive
/// without it.
fn leaves(value: &Value, sensitive: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(value, sensitive, &mut String::new(), &mut found);
    found
}

fn collect(value: &Value, sensitive: &Value, path: &mut String, found: &mut BTreeMap<String, String>) {
    if *sensitive == Value::Bool(true) {
        found.insert(path.clone(), "(sensitive)".into());
        return;
    }
    let length = path.len();
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (name, value) in object {
                path.push_str(if length == 0 { "" } else { "." });
                path.push_str(name);
                collect(value, &sensitive[name.as_str()], path, found);
                path.truncate(length);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
                collect(value, &sensitive[index], path, found);
                path.truncate(length);
            }
        }
        plain => drop(found.insert(path.clone(), plain.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_by_what_happens_to_them() {
        let plan = json!({
            "resource_changes": [
                {"address": "a.same", "change": {"actions": ["no-op"], "before": {"x": 1}, "after": {"x": 1}}},
                {"address": "a.read", "change": {"actions": ["read"]}},
                {"address": "a.new", "change": {"actions": ["create"], "before": null, "after": {"name": "n", "tags": ["t"]},
                    "after_unknown": {"id": true, "name": false}}},
                {"address": "a.other", "change": {"actions": ["update"], "before": {"size": 1, "key": "old", "gone": "g"},
                    "after": {"size": 2, "key": "new"}, "before_sensitive": {"key": true}, "after_sensitive": {"key": true}}},
                {"address": "a.again", "change": {"actions": ["delete", "create"], "before": {"zone": "a"}, "after": {"zone": "b"}}},
                {"address": "a.gone", "change": {"actions": ["delete"], "before": {"x": 1}, "after": null}},
            ],
            "resource_drift": [
                {"address": "a.other", "change": {"actions": ["update"], "before": {"size": 1}, "after": {"size": 3}}},
                {"address": "a.lost", "change": {"actions": ["delete"], "before": {"x": 1}, "after": null}},
            ],
            "output_changes": {"inventory": {"actions": ["no-op"]}},
        });
        let planned = TerraformChanges::parse(&plan);
        let shown: Vec<String> =
            planned.changes.iter().map(|change| format!("{change}: {}", change.lines.join(", "))).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        create resource a.new: + id = (known after apply), + name = "n", + tags[0] = "t"
        change resource a.other: - gone = "g", - size = 1, + size = 2
        replace resource a.again: - zone = "a", + zone = "b"
        delete resource a.gone: 
        "#);
        let drift: Vec<String> =
            planned.drift.iter().map(|change| format!("{change}: {}", change.lines.join(", "))).collect();
        assert_eq!(drift, ["change resource a.other: - size = 1, + size = 3", "delete resource a.lost: "]);
        assert!(!planned.changes_nothing());
        assert!(TerraformChanges::parse(&json!({"output_changes": {"o": {"actions": ["no-op"]}}})).changes_nothing());
        assert!(!TerraformChanges::parse(&json!({"output_changes": {"o": {"actions": ["create"]}}})).changes_nothing());
    }
}
