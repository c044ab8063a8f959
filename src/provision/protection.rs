//! What the clouds themselves refuse to delete (`phase1.deletion_protection`): found in Terraform's
//! state, and lifted before a destroy by an apply of just that. Whether the cluster may be taken
//! down at all is decided by the caller.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::change::{Change, Verb};
use crate::cloud::CLOUDS;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::phase::Cx;

use super::terraform::{Terraform, VARIABLES};
use super::tfstate::Resource;

/// Attributes that make clouds, or their providers, refuse, whatever the type.
const ATTRIBUTES: [&str; 2] = ["deletion_protection", "enable_deletion_protection"];

/// What else makes one of the clouds refuse: a type, and an attribute or none.
fn of_clouds() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    CLOUDS.iter().flat_map(|cloud| cloud.protections()).copied()
}

/// Lifts every protection that Terraform's state knows of, and changes nothing else. An error,
/// before anything is destroyed, when the module does not do that.
pub(super) fn lift(cluster: &Cluster, terraform: &Terraform, cx: &Cx) -> Result<()> {
    let found = protected(&terraform.list_state()?);
    if found.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = found.iter().map(String::as_str).collect();
    cx.progress(format!("lifting the protection of {}", named.join(", ")));
    switch_off(cluster)?;
    let count = terraform.plan_only(&found, cx.log_path())?.len();
    let planned = terraform.show_plan()?.changes;
    if let Some(more) = planned.iter().find(|change| !lifts(change, &found)) {
        let error =
            Error::precondition("the protection of what is to be deleted cannot be lifted alone; nothing was deleted");
        return Err(error.evidence(format!("it would also {more}")).hint("turnup provision, then turnup down"));
    }
    terraform.apply(count, cx)?;
    let left = protected(&terraform.list_state()?).into_iter().filter(|address| !is_lock(address));
    let left: Vec<String> = left.collect();
    if left.is_empty() {
        return Ok(());
    }
    let error = Error::precondition("the module keeps protecting what is to be deleted; nothing was deleted");
    let error = left.into_iter().fold(error, Error::evidence);
    Err(error
        .hint("switch that off in the module (var.cluster.deletion_protection), turnup provision, then turnup down"))
}

/// The module as it was applied, with this one variable as it is to be.
fn switch_off(cluster: &Cluster) -> Result<()> {
    let mut variables: Value = cluster.store.read_json(VARIABLES)?.unwrap_or_default();
    match variables.pointer_mut("/cluster/deletion_protection") {
        Some(protection) if *protection == true => *protection = false.into(),
        _ => return Ok(()),
    }
    cluster.store.write_json(VARIABLES, &variables, 0o600)
}

fn protected(resources: &[Resource]) -> BTreeSet<String> {
    let protects = |resource: &Resource| {
        let by_type = |(kind, attribute): (&str, Option<&str>)| {
            kind == resource.kind && attribute.is_none_or(|attribute| resource.is(attribute))
        };
        of_clouds().any(by_type) || ATTRIBUTES.iter().any(|attribute| resource.is(attribute))
    };
    resources.iter().filter(|resource| protects(resource)).map(|resource| resource.address.clone()).collect()
}

/// A resource of its own that protects others; it counts for a while after it has gone.
fn is_lock(address: &str) -> bool {
    let locks = of_clouds().filter(|(_, attribute)| attribute.is_none()).map(|(kind, _)| kind);
    locks.into_iter().any(|lock| address.starts_with(lock) || address.contains(&format!(".{lock}.")))
}

/// What is protected changes where it is, and locks go.
fn lifts(change: &Change, protected: &BTreeSet<String>) -> bool {
    let verb = if is_lock(&change.name) { Verb::Delete } else { Verb::Update };
    change.verb == verb && protected.contains(&change.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_cloud_would_refuse_to_delete_is_seen_in_the_state() {
        let one = |kind: &str, attributes: Value| json!({"mode": "managed", "type": kind, "name": "x", "instances": [{"attributes": attributes}]});
        let state = json!({"version": 4, "resources": [
            one("aws_lb", json!({"enable_deletion_protection": true})),
            one("aws_alb", json!({"enable_deletion_protection": false})),
            one("aws_instance", json!({"disable_api_termination": true})),
            one("aws_launch_template", json!({"disable_api_termination": true})),
            one("google_compute_instance", json!({"deletion_protection": true})),
            one("azurerm_management_lock", json!({"lock_level": "CanNotDelete"})),
        ]});
        let found = protected(&Resource::parse_all(state.to_string().as_bytes()));
        let shown: Vec<&String> = found.iter().collect();
        assert_eq!(shown, ["aws_instance.x", "aws_lb.x", "azurerm_management_lock.x", "google_compute_instance.x"]);
        let change = |verb, name| Change::new(verb, "resource", name);
        assert!(lifts(&change(Verb::Update, "aws_lb.x"), &found));
        assert!(lifts(&change(Verb::Delete, "azurerm_management_lock.x"), &found));
        for (verb, name) in [(Verb::Replace, "aws_lb.x"), (Verb::Delete, "aws_lb.x"), (Verb::Update, "aws_subnet.x")] {
            assert!(!lifts(&change(verb, name), &found), "{name}");
        }
    }
}
