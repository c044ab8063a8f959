//! The impact: what each changed setting causes, before it does. Found by comparing forecasts; no
//! host is contacted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::duration::Estimate;
use crate::change::Verb;
use crate::cluster::Cluster;
use crate::config::{Settings, TreeSource};
use crate::error::Result;
use crate::forecast::Forecast;
use crate::node::NodeConfig;
use crate::node::diff::simulate_restarts;
use crate::phase::{Decision, PlannedStep, StepId};

/// What one setting's change does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Impact {
    /// The setting.
    pub name: String,
    /// Its value when `turnup up` last came to its end; none when it did not count.
    pub before: Option<String>,
    /// Its value now; none when it no longer applies.
    pub after: Option<String>,
    /// The ids of the steps that will run because of it.
    pub steps: Vec<StepId>,
    /// The hosts on which something is done.
    pub hosts: BTreeSet<String>,
    /// The services and static pods that stop and start, by host.
    pub restarts: BTreeMap<String, Vec<String>>,
    /// The hosts that are made, recreated, or removed.
    pub recreates: BTreeMap<String, Verb>,
    /// How long it takes by itself.
    pub estimate: Estimate,
}

/// The impact of every setting that differs from what was applied last; nothing before the first
/// complete run.
pub(super) fn find(
    settings: &Settings,
    source: &TreeSource,
    state_dir: &Path,
    cluster: &Cluster,
    steps: &[PlannedStep],
) -> Result<Vec<Impact>> {
    let path = cluster.store.path(Settings::APPLIED);
    // An applied configuration that this version cannot read any more is no reason to show no plan.
    let Some(applied) = Settings::open(&path, settings.schema().clone()).ok().flatten() else { return Ok(Vec::new()) };
    let changes = applied.differences(settings);
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let Ok(before) = Forecast::of(&applied, source, state_dir) else { return Ok(Vec::new()) };
    let together = before.with(settings)?;
    let mut found = Vec::new();
    for change in changes {
        let alone = vary(&applied, settings, &change.name).and_then(|variant| before.with(&variant).ok());
        // A change that is only possible with others shares their impact.
        let after = alone.as_ref().unwrap_or(&together);
        found.push(Impact::measure(change, &before, after, steps));
    }
    Ok(found)
}

/// The applied settings with this one as it is now.
fn vary(applied: &Settings, now: &Settings, name: &str) -> Option<Settings> {
    let mut variant = applied.clone();
    let value = now.get(name).ok()?;
    variant.set(name, &value).ok()?;
    Some(variant)
}

impl Impact {
    fn measure(
        change: crate::config::SettingChange,
        before: &Forecast,
        after: &Forecast,
        steps: &[PlannedStep],
    ) -> Self {
        let tasks = before.different_tasks(after);
        let moved = |step: &&PlannedStep| is_moving(step) && tasks.contains(&step.id);
        let names: Vec<StepId> = steps.iter().filter(moved).map(|step| step.id.clone()).collect();
        let estimate = Estimate::of(steps, |step| moved(&step));
        let hosts = steps.iter().filter(moved).filter_map(|step| step.host.clone()).collect();
        Self {
            name: change.name,
            before: change.before,
            after: change.after,
            steps: names,
            hosts,
            restarts: find_restarts(before, after),
            recreates: find_recreated(before, after),
            estimate,
        }
    }

    /// Whether nothing runs because of it.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

fn find_restarts(before: &Forecast, after: &Forecast) -> BTreeMap<String, Vec<String>> {
    let node_config = |forecast: &Forecast, host: &str| {
        let text = forecast.files.get(&Forecast::node_file(host))?;
        NodeConfig::parse(host, text).ok()
    };
    let hosts = before.hosts.keys().filter(|host| before.instances.get(*host) == after.instances.get(*host));
    let restarts = hosts.filter_map(|host| {
        let restarts = simulate_restarts(&node_config(before, host)?, &node_config(after, host)?);
        (!restarts.is_empty()).then(|| (host.clone(), restarts))
    });
    restarts.collect()
}

fn find_recreated(before: &Forecast, after: &Forecast) -> BTreeMap<String, Verb> {
    let hosts = before.instances.keys().chain(after.instances.keys());
    let verb = |host: &String| match (before.instances.get(host), after.instances.get(host)) {
        (None, _) => Some(Verb::Create),
        (_, None) => Some(Verb::Delete),
        (before, after) => (before != after).then_some(Verb::Replace),
    };
    hosts.filter_map(|host| Some((host.clone(), verb(host)?))).collect()
}

/// Whether a step will or may run.
pub(super) fn is_moving(step: &PlannedStep) -> bool {
    matches!(step.decision, Decision::Run | Decision::Unknown)
}
