//! How far a setting reaches: `where`, and the same seen from a node: `show NODE`. Found by trial
//! with other values.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::component_defaults;
use super::context::ConfigContext;
use super::view::find_store;
use crate::component::Reference;
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::forecast::{Affected, Forecast, NodeValue};
use crate::phase::StepId;

/// What differs when the setting has another value.
pub(super) fn find_dependents(context: &ConfigContext<'_>, name: &str) -> Result<()> {
    let settings = context.settings()?;
    let explanation = settings.explain(name)?;
    let variants = settings.variants(name)?;
    let changed: BTreeSet<String> =
        variants.iter().flat_map(|variant| settings.differences(variant)).map(|change| change.name).collect();
    let changed: Vec<&String> = changed.iter().filter(|changed| *changed != name).collect();
    let found = Reach::find(context, &settings, name, &variants);
    let unknown = found.as_ref().err().map(|why| why.message().to_owned());
    if let Some(why) = &unknown {
        context.printer.remark(&format!("files and steps are not known: {why}"));
    }
    let reach = found.ok();
    let defined: Vec<&str> = explanation.definitions.iter().map(|definition| definition.location.as_str()).collect();
    if context.printer.is_json() {
        return context.printer.json(&json!({
            "schema": "turnup.config.where/2", "name": name, "defined": defined, "named_by": explanation.used_by,
            "changes": changed, "unknown_because": unknown, "tried": reach.as_ref().map(|reach| &reach.tried),
            "places": reach.as_ref().map(|reach| &reach.places), "files": reach.as_ref().map(|reach| &reach.files),
            "steps": reach.as_ref().map(|reach| &reach.steps),
        }));
    }
    let mut lines: Vec<String> = defined.iter().map(|place| format!("defined at {place}")).collect();
    lines.extend(explanation.used_by.iter().map(|name| format!("named by {name}")));
    lines.extend(changed.iter().map(|name| format!("changes with it: {name}")));
    let reach = reach.unwrap_or_default();
    lines.extend(reach.places.iter().map(ToString::to_string));
    lines.extend(reach.steps.iter().map(|step| format!("step {step}")));
    lines.iter().try_for_each(|line| context.printer.line(line))
}

/// What any of some variants changes.
#[derive(Default)]
struct Reach {
    /// The other values that were tried; those of a secret are not shown.
    tried: Vec<String>,
    places: BTreeSet<Affected>,
    files: BTreeSet<String>,
    steps: Vec<StepId>,
}

impl Reach {
    fn find(context: &ConfigContext<'_>, settings: &Settings, name: &str, variants: &[Settings]) -> Result<Self> {
        let before = forecast(context, settings)?;
        let (mut reach, mut steps, mut refused) = (Self::default(), BTreeSet::new(), None);
        for variant in variants {
            // What cannot be turned up has nothing to compare with.
            let after = match before.with(variant) {
                Ok(after) => after,
                Err(why) => {
                    refused.get_or_insert(why);
                    continue;
                }
            };
            refused = None;
            let tried = variant.get(name).ok().filter(|value| !variant.is_secret(name) && !reach.tried.contains(value));
            reach.tried.extend(tried);
            reach.places.extend(before.places(&after));
            reach.files.extend(before.different_files(&after));
            steps.extend(before.different_steps(&after));
        }
        if let Some(why) = refused.filter(|_| reach.tried.is_empty() && steps.is_empty()) {
            return Err(why);
        }
        reach.steps = before.in_order(steps);
        if reach.files.is_empty() && reach.steps.is_empty() {
            before.require_hosts()?;
        }
        Ok(reach)
    }
}

fn forecast(context: &ConfigContext<'_>, settings: &Settings) -> Result<Forecast> {
    Forecast::of(settings, &context.source, &context.global.state_dir)
}

/// The node config, each value with the settings that decide it; secrets are in it by name only.
pub(super) fn show_node(context: &ConfigContext<'_>, node: &str, with_defaults: bool) -> Result<()> {
    let settings = context.settings()?;
    let forecast = forecast(context, &settings)?;
    let text = find_text(context, &forecast, node)?;
    let origins = forecast.origins(&settings, node)?;
    let mut values = origins.node_values(&text);
    let expected = forecast.files.get(&Forecast::node_file(node)).map_or("", String::as_str);
    let is_current = text == expected;
    let outdated = if is_current { 0 } else { drop_outdated_origins(&mut values, &origins.node_values(expected)) };
    if outdated > 0 {
        context
            .printer
            .remark(&format!("{outdated} values come from an earlier configuration; what would change: turnup plan"));
    }
    let defaults = if with_defaults {
        let reference = Reference::load(&context.source, &settings.get("phase2.kubernetes_version")?)?;
        component_defaults::find(&values, &reference)
    } else {
        Vec::new()
    };
    let origin = |name: &String| settings.origin(name, context.path()).unwrap_or_default();
    if context.printer.is_json() {
        let node_config: Value = serde_json::from_str(&text).map_err(|error| Error::bug(error.to_string()))?;
        let decided = values.iter().filter(|value| !value.settings.is_empty());
        let origins: Map<String, Value> = decided
            .map(|value| {
                let settings = value.settings.iter().map(|name| (name.clone(), json!(origin(name))));
                (value.place.clone(), Value::Object(settings.collect()))
            })
            .collect();
        let mut said = json!({
            "schema": "turnup.config.node/1", "node": node, "node_config": node_config, "origins": origins,
        });
        if with_defaults {
            let defaults = defaults.into_iter().map(|one| {
                let value = json!({"value": one.value, "component": one.component});
                (one.place, value)
            });
            said["component_defaults"] = Value::Object(defaults.collect());
        }
        return context.printer.json(&said);
    }
    for value in values {
        let names: Vec<String> = value.settings.iter().map(|name| format!("{name} ({})", origin(name))).collect();
        let origin = if names.is_empty() { String::new() } else { format!("  <- {}", names.join(", ")) };
        context.printer.line(&format!("{} = {}{origin}", value.place, value.value))?;
    }
    defaults.iter().try_for_each(|one| {
        context.printer.line(&format!("{} = {}  <- default of {}", one.place, one.value, one.component))
    })
}

/// A value that the present configuration would not give has its origin in another one. Returns how
/// many there are.
fn drop_outdated_origins(values: &mut [NodeValue], expected: &[NodeValue]) -> usize {
    let is_outdated = |value: &NodeValue| {
        !value.settings.is_empty() && !expected.iter().any(|now| now.place == value.place && now.value == value.value)
    };
    let outdated = values.iter_mut().filter(|value| is_outdated(value));
    outdated.map(|value| value.settings.clear()).count()
}

/// As bootstrap computed it, or would.
fn find_text(context: &ConfigContext<'_>, forecast: &Forecast, node: &str) -> Result<String> {
    let file = Forecast::node_file(node);
    let Some(expected) = forecast.files.get(&file) else {
        forecast.require_hosts()?;
        let nodes: Vec<&str> = forecast.hosts.keys().map(String::as_str).collect();
        return Err(
            Error::config(format!("the cluster has no node {node}")).hint(format!("nodes: {}", nodes.join(", ")))
        );
    };
    let computed = find_store(context)?.read(&file)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if computed.is_none() {
        context.printer.remark("bootstrap has not computed it yet: certificates and keys are named only");
    }
    Ok(computed.unwrap_or_else(|| expected.clone()))
}
