//! What is in the cluster with an addon's label, but in no manifest: addons that were switched off,
//! and objects of older versions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bootstrap::Kubectl;
use crate::error::Result;

use super::definitions::is_served;
use super::object::{ADDON, HOMES, Object, SYSTEM};
use super::observed::Observed;
use super::prunable::{DEFINED_KINDS, KINDS, MANAGED_BY, kinds};

/// All objects of addons that the cluster has.
pub(super) fn find_objects(kubectl: &Kubectl) -> Result<Observed> {
    Ok(Observed::parse(&list_objects(kubectl)?))
}

/// The same as the API says it.
pub(super) fn list_objects(kubectl: &Kubectl) -> Result<Value> {
    let selector = format!("--selector={}={},{ADDON}", MANAGED_BY.0, MANAGED_BY.1);
    let mut list = kubectl.get(&[KINDS, "--all-namespaces", &selector])?;
    let served = find_served(&list);
    if !served.is_empty() {
        let more = kubectl.get(&[served.join(",").as_str(), "--all-namespaces", &selector])?;
        if let (Some(items), Value::Array(more)) = (list["items"].as_array_mut(), &more["items"]) {
            items.extend_from_slice(more);
        }
    }
    Ok(list)
}

/// The kinds besides that the cluster serves: asked for one that it does not, kubectl lists none.
fn find_served(list: &Value) -> Vec<&'static str> {
    let items = || list["items"].as_array().into_iter().flatten();
    let is_there = |kind: &&str| items().any(|item| item["metadata"]["name"] == **kind && is_served(item));
    DEFINED_KINDS.into_iter().filter(is_there).collect()
}

/// What is there and should not be.
pub(super) fn superfluous<'o>(
    there: &BTreeMap<Object, String>,
    wanted: impl IntoIterator<Item = &'o Object>,
) -> Vec<Object> {
    let wanted: BTreeSet<&Object> = wanted.into_iter().collect();
    let mut found: Vec<Object> = there.keys().filter(|object| !wanted.contains(object)).cloned().collect();
    let position = |object: &Object| kinds().position(|kind| kind == object.plural()).unwrap_or(usize::MAX);
    found.sort_by_key(position);
    found
}

/// Removes these objects and waits until they are gone.
pub(super) fn remove(kubectl: &Kubectl, objects: &[Object]) -> Result<()> {
    HOMES.into_iter().try_for_each(|namespace| {
        let in_it = |object: &&Object| object.home().unwrap_or(SYSTEM) == namespace;
        let mut found = objects.iter().filter(in_it).map(Object::argument).peekable();
        if found.peek().is_none() {
            return Ok(());
        }
        let options = ["delete".to_owned(), format!("--namespace={namespace}"), "--ignore-not-found".into()];
        let args: Vec<String> = options.into_iter().chain(found).collect();
        kubectl.run(&args).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_defined_kind_is_listed_once_it_is_served_and_its_objects_go_first() {
        let definition = |name: &str, status: &str| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
                "status": {"conditions": [{"type": "Established", "status": status}]}})
        };
        let served = |items: &[Value]| find_served(&json!({"items": items}));
        let name = DEFINED_KINDS[0];
        assert_eq!(served(&[definition("other.example.com", "True"), definition(name, "False")]), [""; 0]);
        assert_eq!(served(&[json!({"kind": "ConfigMap", "metadata": {"name": name}})]), [""; 0]);
        assert_eq!(served(&[definition(name, "True")]), [name]);

        let class =
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "a"}});
        let objects =
            [definition(name, "True"), class].iter().map(|it| (Object::from_json(it), String::new())).collect();
        let order: Vec<String> = superfluous(&objects, []).into_iter().map(|object| object.kind).collect();
        assert_eq!(order, ["GatewayClass", "CustomResourceDefinition"]);
    }
}
