//! Values of settings by their names, for rules between settings. It judges nothing.

use kconfig::{Config, Tri};

use super::network::Network;
use super::schema::Schema;

/// Values by name, for trees that need not have the setting.
pub(super) struct Values<'a, 't> {
    pub(super) schema: &'a Schema,
    pub(super) config: &'a Config<'t>,
    /// Settings whose own format is wrong: saying more about those would only confuse.
    pub(super) malformed: Vec<String>,
}

impl Values<'_, '_> {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        if self.malformed.iter().any(|wrong| wrong == name) {
            return None;
        }
        let symbol = self.schema.tree().symbol(name)?;
        let in_force = self.config.is_written(symbol) || self.config.visible(symbol) != Tri::N;
        in_force.then(|| self.config.value(symbol))
    }

    /// The records of a setting; none where it does not count.
    pub(super) fn records(&self, name: &str) -> Vec<serde_json::Value> {
        self.text(name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    pub(super) fn network(&self, name: &str) -> Option<Network> {
        self.text(name)?.parse().ok()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }
}
