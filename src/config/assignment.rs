//! What the settings in force assign to components, each value with its place.
//!
//! It decides nothing about a node; `bootstrap` writes what is assigned here.

use kconfig::SymbolType;
use serde_json::Value;

use super::destination::{ComponentName, Destination, Sets};
use super::format::Format;
use super::setting::Setting;
use super::settings::Settings;
use crate::error::Result;

/// A value for one place of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Whose.
    pub component: ComponentName,
    /// Where.
    pub destination: Destination,
    /// What: as the component's configuration file would have it.
    pub value: Value,
    /// The setting that says so.
    pub origin: String,
    /// Whether the value is the setting's default.
    pub is_default: bool,
    /// Whether the value is the path of a file of this machine, which the component is to have.
    pub is_file: bool,
}

impl Settings {
    /// Everything that settings in force assign to components, in the order of the menus.
    pub fn assignments(&self) -> Result<Vec<Assignment>> {
        let mut all = Vec::new();
        for setting in self.list().iter().filter(|setting| setting.written) {
            let rule = self.schema().rule(self.schema().find(&setting.name)?);
            for sets in &rule.sets {
                let Some(value) = sets.value_of(setting, rule.format.as_ref()) else { continue };
                all.push(Assignment {
                    component: sets.component,
                    destination: sets.destination.clone(),
                    value,
                    origin: setting.name.clone(),
                    is_default: !setting.from_user,
                    is_file: rule.format.as_ref().is_some_and(Format::is_of_a_file),
                });
            }
        }
        Ok(all)
    }
}

impl Sets {
    /// The value for the place; none where the setting says nothing there.
    fn value_of(&self, setting: &Setting, format: Option<&Format>) -> Option<Value> {
        if let Some(value) = &self.value {
            return (setting.value == "y").then(|| Value::from(value.as_str()));
        }
        if setting.kind == SymbolType::Bool {
            return Some(Value::Bool(setting.value == "y"));
        }
        if setting.value.is_empty() {
            return None;
        }
        if setting.kind.is_numeric() {
            let number = setting.kind.parse_number(&setting.value)?;
            return Some(Value::from(number.saturating_mul(self.factor)));
        }
        Some(format.map_or_else(|| Value::from(setting.value.as_str()), |format| format.to_json(&setting.value)))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use kconfig::{Env, MemoryFiles, Tree};

    use super::*;
    use crate::config::Schema;

    #[test]
    fn settings_become_what_their_comments_say() {
        let text = "#: sets = etcd --quota-backend-bytes * 1073741824\nconfig a.quota\n\tint \"Q\"\n\tdefault 2\n\
            #: sets = etcd --metrics=extensive\nconfig a.metrics\n\tbool \"M\"\n\
            #: sets = kubelet serializeImagePulls\nconfig a.serialize\n\tbool \"S\"\n\
            #: format = map(word, quantity)\n#: sets = kubelet kubeReserved\nconfig a.reserved\n\tstring \"R\"\n\tdefault \"cpu=1,memory=2Gi\"\n\
            #: format = list(word)\n#: sets = kubelet allowedUnsafeSysctls\n#: sets = kube-apiserver request.cpu\nconfig a.list\n\tstring \"L\"\n\
            #: sets = kubelet logging.verbosity\nconfig a.level\n\tint \"V\"\n\tdefault 0\n";
        let files = MemoryFiles::new([("Kconfig", text)]);
        let schema = Schema::new(Tree::load("Kconfig", &files, &Env::empty()).unwrap()).unwrap();
        let mut settings = Settings::from_defaults(schema);
        settings.set("a.metrics", "y").unwrap();
        let shown: Vec<String> = settings
            .assignments()
            .unwrap()
            .iter()
            .map(|one| {
                format!(
                    "{} {} = {} ({}{})",
                    one.component,
                    one.destination,
                    one.value,
                    one.origin,
                    if one.is_default { ", default" } else { "" }
                )
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        etcd --quota-backend-bytes = 2147483648 (a.quota, default)
        etcd --metrics = "extensive" (a.metrics)
        kubelet serializeImagePulls = false (a.serialize, default)
        kubelet kubeReserved = {"cpu":"1","memory":"2Gi"} (a.reserved, default)
        kubelet logging.verbosity = 0 (a.level, default)
        "#);
    }
}
