//! Where a setting goes in the configuration of a component, as its structured comment says:
//! `#: sets = kubelet maxPods`.
//!
//! A flag begins with dashes, all else is a field of the component's configuration file. A number
//! may have a factor (`--quota-backend-bytes * 1073741824`), a bool that is y may stand for another
//! value (`--metrics=extensive`), and `request.cpu` is what the component's static pod asks for.
//! It decides nothing about a node; `bootstrap` writes what is assigned here.

use std::fmt;
use std::str::FromStr;

use kconfig::SymbolType;
use serde_json::Value;

use super::format::Format;
use super::setting::Setting;
use super::settings::Settings;
use crate::error::{Error, Result};

/// A program of the cluster that has a configuration of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the program of the same name")]
pub enum ComponentName {
    Etcd,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    Kubelet,
    KubeProxy,
}

impl ComponentName {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubelet,
        Self::KubeProxy,
    ];

    /// The name of the program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
        }
    }

    /// The component of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }
}

impl fmt::Display for ComponentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place in the configuration of a component.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// A flag, without its dashes.
    Flag(String),
    /// A field of the configuration file: JSON names from the root on.
    Field(Vec<String>),
    /// What the static pod requests of a resource.
    Request(String),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "--{name}"),
            Self::Field(path) => f.write_str(&path.join(".")),
            Self::Request(resource) => write!(f, "request.{resource}"),
        }
    }
}

/// What a setting does to one place: the value of a `sets` comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sets {
    /// Whose place it is.
    pub component: ComponentName,
    /// The place.
    pub destination: Destination,
    /// By what a number is multiplied.
    factor: i64,
    /// The value in place of y; n then sets nothing.
    value: Option<String>,
}

impl FromStr for Sets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, factor) = match text.split_once(" * ") {
            Some((place, factor)) => (place, factor.parse().map_err(|_| format!("`{factor}` is no factor"))?),
            None => (text, 1),
        };
        let (component, place) =
            place.trim().split_once(' ').ok_or("`sets` wants COMPONENT --FLAG or COMPONENT FIELD")?;
        let component = ComponentName::find(component).ok_or_else(|| format!("`{component}` is no component"))?;
        let (place, value) = match place.split_once('=') {
            Some((place, value)) => (place, Some(value.to_owned())),
            None => (place, None),
        };
        let destination = if let Some(flag) = place.strip_prefix("--") {
            Destination::Flag(flag.to_owned())
        } else if let Some(resource) = place.strip_prefix("request.") {
            Destination::Request(resource.to_owned())
        } else {
            Destination::Field(place.split('.').map(str::to_owned).collect())
        };
        Ok(Self { component, destination, factor, value })
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

    /// Where a setting goes: `kubelet maxPods`; empty for one that no component has as it is.
    pub fn destinations(&self, name: &str) -> Result<Vec<String>> {
        let rule = self.schema().rule(self.schema().find(name)?);
        Ok(rule.sets.iter().map(|sets| format!("{} {}", sets.component, sets.destination)).collect())
    }
}

/// The value as a flag has it: lists and maps with commas, in the order of the value.
pub fn flag_text(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Array(items) => items.iter().map(flag_text).collect::<Result<Vec<_>>>()?.join(","),
        Value::Object(members) => {
            let pair = |(key, value): (&String, &Value)| Ok(format!("{key}={}", flag_text(value)?));
            members.iter().map(pair).collect::<Result<Vec<_>>>()?.join(",")
        }
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null => return Err(Error::bug("a flag without a value")),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use kconfig::{Env, MemoryFiles, Tree};
    use serde_json::json;

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
        assert_eq!(
            settings.destinations("a.list").unwrap(),
            ["kubelet allowedUnsafeSysctls", "kube-apiserver request.cpu"]
        );
    }

    #[test]
    fn a_comment_that_names_no_place_is_refused() {
        for (text, why) in [
            ("kubelet", "`sets` wants COMPONENT --FLAG or COMPONENT FIELD"),
            ("kublet maxPods", "`kublet` is no component"),
            ("etcd --a * b", "`b` is no factor"),
        ] {
            assert_eq!(text.parse::<Sets>().unwrap_err(), why);
        }
    }

    #[test]
    fn flags_have_lists_and_maps_with_commas() {
        for (value, text) in [(json!(["a", "b"]), "a,b"), (json!({"a": true, "b": 2}), "a=true,b=2"), (json!("x"), "x")]
        {
            assert_eq!(flag_text(&value).unwrap(), text);
        }
    }
}
