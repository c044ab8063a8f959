//! The user's own flags and fields of components: from the file of `phase2.overrides`, from the
//! command line, and the feature gates. Each is held against the table of the Kubernetes version.

use std::path::Path;

use serde_json::Value;

use super::ClusterSettings;
use crate::cloud::WORKERS;
use crate::component::{
    ComponentOverrides, OVERRIDES, OverrideScope, Reference, assign_gates, check_words, did_you_mean, listed_settings,
    nest,
};
use crate::config::{Settings, TreeSource};
use crate::error::{Error, Result};
use crate::input;

/// People read the file as well.
const LARGEST: u64 = 1 << 20;

impl ClusterSettings {
    /// Reads what goes past the settings; relative paths count from `dir`.
    pub(super) fn read_overrides(&mut self, settings: &Settings, source: &TreeSource, dir: &Path) -> Result<()> {
        let (file, gates) = (settings.get(OVERRIDES)?, settings.get_map("phase2.feature_gates")?);
        let mut lists = Vec::new();
        for name in listed_settings().filter(|name| settings.is_changed(name)) {
            lists.push((name, settings.get(name)?));
        }
        if file.is_empty() && gates.is_empty() && lists.is_empty() && settings.component_values().is_empty() {
            return Ok(());
        }
        let reference = Reference::load(source, &self.kubernetes_version)?;
        for (name, list) in lists {
            check_words(name, &list, &reference)?;
        }
        let gates = gates.into_iter().map(|(name, on)| (name, Value::Bool(on == "true"))).collect();
        self.assignments.extend(assign_gates(&gates, &reference)?);
        if !file.is_empty() {
            self.overrides = ComponentOverrides::read(&file, &read_file(&dir.join(&file))?, &reference, source)?;
        }
        for given in settings.component_values() {
            let value = serde_json::from_str(&given.value).unwrap_or_else(|_| Value::from(given.value.as_str()));
            let value = nest(&given.path, value);
            let one = ComponentOverrides::read(&given.place, &value, &reference, source)?;
            self.overrides = std::mem::take(&mut self.overrides).with(one);
        }
        self.require_known_groups()
    }

    /// An override for a group that the cluster does not have would do nothing. Hosts that people
    /// make with `turnup user-data GROUP` belong to whatever group they name.
    fn require_known_groups(&self) -> Result<()> {
        let mut known: Vec<&str> = self.user_data.groups.iter().map(|group| group.name.as_str()).collect();
        if known.is_empty() {
            known.push(WORKERS);
        }
        for (scope, _) in self.overrides.scopes() {
            let OverrideScope::Group(name) = scope else { continue };
            let near = kconfig::suggest(name, known.iter().copied());
            // Elsewhere only what nearly is a known name is certain to be misspelt.
            if known.contains(&name.as_str()) || (!self.user_data.pull && near.is_none()) {
                continue;
            }
            let near = did_you_mean(name, known.iter().copied());
            let message = format!("{OVERRIDES}: the cluster has no node group `{name}`{near}");
            return Err(
                Error::config(message).hint(format!("node groups: {}; the control plane is a role", known.join(", ")))
            );
        }
        Ok(())
    }
}

/// JSON, or the YAML of which it is a part.
fn read_file(path: &Path) -> Result<Value> {
    let shown = path.display();
    let text = input::read_text(path, LARGEST).map_err(|error| {
        Error::config(format!("{OVERRIDES}: {shown} cannot be read")).source(error).hint("turnup config check")
    })?;
    let value = serde_saphyr::from_str(&text);
    value.map_err(|error| Error::config(format!("{OVERRIDES}: {shown}: {}", error.without_snippet())))
}
