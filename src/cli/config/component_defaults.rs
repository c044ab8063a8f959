//! What no setting and no override says: the values that the components of a node have by
//! themselves, from the table of its Kubernetes version.

use serde_json::Value;

use crate::component::{ComponentReference, Reference};
use crate::forecast::NodeValue;
use crate::node::layout;

/// The file of a component's fields, in the words of `config show NODE`.
const FILES: [(&str, &str); 2] = [("kubelet", layout::KUBELET_CONFIG), ("kube-scheduler", layout::SCHEDULER_CONFIG)];

/// A value that a component has by itself.
pub(super) struct ComponentDefault {
    /// `flag etcd --max-txn-ops`, `file /var/lib/kubelet/config.yaml: maxOpenFiles`
    pub(super) place: String,
    pub(super) value: String,
    /// `etcd 3.6.16`
    pub(super) component: String,
}

/// Those of all components that run on the node with these values. A flag that is deprecated, or
/// that the component's file replaces, is none; of fields those that the component fills in.
pub(super) fn find(values: &[NodeValue], reference: &Reference) -> Vec<ComponentDefault> {
    reference.components.iter().flat_map(|(name, table)| find_of(values, name, table)).collect()
}

fn find_of(values: &[NodeValue], name: &str, table: &ComponentReference) -> Vec<ComponentDefault> {
    let is_at = |place: &str| values.iter().any(|value| value.place == place);
    let is_below = |place: &str| values.iter().any(|value| value.place.starts_with(place));
    let component = format!("{name} {}", table.version);
    let mut found = Vec::new();
    if !is_below(&format!("flag {name} ")) {
        return found;
    }
    let file = FILES.iter().find(|(known, _)| *known == name);
    for (flag, of) in &table.flags {
        let place = format!("flag {name} --{flag}");
        // With a file these flags say nothing.
        let is_in_file = file.is_some() && flag.starts_with("leader-elect");
        if of.deprecated.is_none() && !of.hidden && !is_in_file && !is_at(&place) {
            let value = of.default.clone().unwrap_or_else(|| zero(&of.type_name).to_owned());
            found.push(ComponentDefault { place, value, component: component.clone() });
        }
    }
    let Some((_, path)) = file else { return found };
    for field in table.fields() {
        let place = format!("file {path}: {field}");
        let is_set = is_at(&place) || is_below(&format!("{place}.")) || is_below(&format!("{place}["));
        let default = table.field(field).and_then(|field| field.default.as_ref());
        if let (false, Some(default)) = (is_set, default) {
            let value = default.as_str().map_or_else(|| Value::to_string(default), str::to_owned);
            found.push(ComponentDefault { place, value, component: component.clone() });
        }
    }
    found
}

/// What a flag is of which the table names no default.
fn zero(type_name: &str) -> &'static str {
    match type_name {
        "bool" => "false",
        "int" | "int32" | "uint" | "uint32" | "float" | "float32" | "Level" => "0",
        "duration" => "0s",
        _ => "",
    }
}
