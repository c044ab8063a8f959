//! Where a setting goes in the configuration of a component, as its structured comment says:
//! `#: sets = kubelet maxPods`.
//!
//! A flag begins with dashes, all else is a field of the component's configuration file. A number
//! may have a factor (`--quota-backend-bytes * 1073741824`), a bool that is y may stand for another
//! value (`--metrics=extensive`), and `request.cpu` is what the component's static pod asks for.
//! What a setting then assigns is in `assignment`.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

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
    pub(super) factor: i64,
    /// The value in place of y; n then sets nothing.
    pub(super) value: Option<String>,
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
    use serde_json::json;

    use super::*;

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
