//! The tables in `templates/components/`: one file per Kubernetes version.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::FieldType;
use crate::config::format::Format;
use crate::config::{TreeSource, parse_duration};
use crate::document::{self, Document, Fields};
use crate::error::{Class, Error, Result};

const DIR: &str = "templates/components";

/// What the components of one Kubernetes version accept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    schema: String,
    /// The Kubernetes version.
    pub kubernetes: String,
    /// By the name of the program: `kubelet`, `etcd`.
    pub components: BTreeMap<String, ComponentReference>,
}

/// What one component accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentReference {
    /// The component's own version.
    pub version: String,
    /// By the name without dashes in front: `max-pods`.
    pub flags: BTreeMap<String, Flag>,
    /// By kind: `KubeletConfiguration`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, ReferenceFile>,
    /// By name.
    pub feature_gates: BTreeMap<String, Gate>,
}

/// One flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// The type in the words of `--help`: `string`, `strings`, `int32`, `mapStringBool`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What `--help` shows in place of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The default; none where it is the zero value of the type: `false`, `0`, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What the component says of a flag that it will remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Whether the component takes it and `--help` does not show it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// All names of which a list is made, where `--help` tells them: of admission plugins, of
    /// controllers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// One kind of file that configures a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceFile {
    /// Its group and version: `kubelet.config.k8s.io/v1beta1`.
    pub api_version: String,
    /// By path: `authentication.webhook.enabled`. `a[].b` is a field of each element of a list,
    /// `a.*.b` of each value of a map.
    pub fields: BTreeMap<String, ReferenceField>,
}

/// One field of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceField {
    /// Its type.
    #[serde(rename = "type")]
    pub field_type: FieldType,
    /// What the component's own defaulting fills in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// One feature gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// How far the feature is.
    pub stage: Stage,
    /// Whether it is on by default.
    pub default: bool,
    /// Whether it can no longer be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
}

/// How far a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "Kubernetes' own words")]
pub enum Stage {
    Alpha,
    Beta,
    Ga,
    Deprecated,
}

impl Reference {
    /// Where the table of this Kubernetes version is in the tree.
    #[must_use]
    pub fn path(kubernetes: &str) -> String {
        format!("{DIR}/kubernetes-{kubernetes}.json")
    }

    /// The table of this Kubernetes version.
    pub fn load(source: &TreeSource, kubernetes: &str) -> Result<Arc<Self>> {
        let path = Self::path(kubernetes);
        if source.files(&path).is_empty() {
            return Err(Error::config(format!("there is no table of what Kubernetes {kubernetes} accepts: {path}"))
                .hint(format!("turnup artifacts reference --kubernetes {kubernetes} --write")));
        }
        source.parse(&path, |text| document::parse(&path, text))
    }

    /// A table of these components.
    #[must_use]
    pub fn new(kubernetes: &str, components: BTreeMap<String, ComponentReference>) -> Self {
        Self { schema: Self::SCHEMA.to_owned(), kubernetes: kubernetes.to_owned(), components }
    }

    /// A component by the name of its program.
    #[must_use]
    pub fn component(&self, name: &str) -> Option<&ComponentReference> {
        self.components.get(name)
    }

    /// The file's text: a line for each flag, field and gate.
    pub fn to_text(&self) -> Result<String> {
        let path = Self::path(&self.kubernetes);
        let value: Value = serde_json::from_str(&document::render(&path, self)?)
            .map_err(|error| Error::bug(format!("{path} cannot be written as JSON")).source(error))?;
        let mut text = String::new();
        write_value(&value, 0, &mut text);
        text.push('\n');
        Ok(text)
    }
}

impl Flag {
    /// Whether the component would take this text as the flag's value, by its type.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        let is_pair = |part: &str, is: fn(&str) -> bool| part.split_once('=').is_some_and(|(_, value)| is(value));
        let is_bool = |text: &str| matches!(text, "true" | "false");
        match self.type_name.as_str() {
            "bool" => is_bool(text),
            "int" => text.parse::<i64>().is_ok(),
            "int32" | "Level" => text.parse::<i32>().is_ok(),
            "uint" => text.parse::<u64>().is_ok(),
            "uint32" => text.parse::<u32>().is_ok(),
            "float" | "float32" => text.parse::<f64>().is_ok(),
            "duration" => parse_duration(text).is_some(),
            "quantity" => Format::Quantity.validate(text).is_ok(),
            "ip" => text.parse::<std::net::IpAddr>().is_ok(),
            "mapStringBool" => text.split(',').all(|part| is_pair(part, is_bool)),
            "mapStringString" | "stringToString" => text.split(',').all(|part| is_pair(part, |_| true)),
            _ => true,
        }
    }

    /// The first name of a list that the component does not know, where the table has all of them.
    /// As in `--controllers`, `*` stands for all, and a minus before a name for its absence.
    #[must_use]
    pub fn unknown_word<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_known = |word: &str| word == "*" || self.words.iter().any(|known| known == bare_of(word));
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.filter(|_| !self.words.is_empty()).find(|word| !is_known(word)).map(bare_of)
    }

    /// The name that was probably meant.
    #[must_use]
    pub fn suggest_word(&self, word: &str) -> Option<String> {
        kconfig::suggest(word, self.words.iter().map(String::as_str))
    }
}

fn bare_of(word: &str) -> &str {
    word.strip_prefix('-').unwrap_or(word)
}

impl ComponentReference {
    /// A flag by its name without dashes in front.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.get(name)
    }

    /// A kind of file.
    #[must_use]
    pub fn file(&self, kind: &str) -> Option<&ReferenceFile> {
        self.files.get(kind)
    }

    /// A field of the file that configures the component, where there is only one kind of it.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<&ReferenceField> {
        let mut files = self.files.values();
        files.next().filter(|_| files.next().is_none())?.field(path)
    }

    /// A feature gate.
    #[must_use]
    pub fn gate(&self, name: &str) -> Option<&Gate> {
        self.feature_gates.get(name)
    }

    /// The paths of all fields of the file that configures the component, where there is only one
    /// kind of it.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let file = self.files.values().next().filter(|_| self.files.len() == 1);
        file.into_iter().flat_map(|file| file.fields.keys().map(String::as_str))
    }

    /// The feature gate that was probably meant.
    #[must_use]
    pub fn suggest_gate(&self, name: &str) -> Option<String> {
        kconfig::suggest(name, self.feature_gates.keys().map(String::as_str))
    }
}

impl ReferenceFile {
    /// A field by its path.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<&ReferenceField> {
        self.fields.get(path)
    }
}

impl Document for Reference {
    const SCHEMA: &'static str = "turnup.components/1";
    const WHAT: &'static str = "the table of what Kubernetes' components accept";
    const REMEDY: &'static str = "turnup artifacts reference --write";
    const CLASS: Class = Class::Config;

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("kubernetes", "semver"),
            ("components.*.version", "semver"),
            ("components.*.flags.*.type", "text"),
            ("components.*.flags.*.placeholder", "text"),
            ("components.*.flags.*.default", "text"),
            ("components.*.flags.*.deprecated", "text"),
            ("components.*.flags.*.words[]", "word"),
            ("components.*.files.*.api_version", "text"),
            ("components.*.files.*.fields.*.type", "text"),
            ("components.*.files.*.fields.*.default", "content"),
            ("components.*.feature_gates.*.stage", "word"),
        ])
    }
}

/// The tables of all Kubernetes versions, in their order.
pub fn all_tables(source: &TreeSource) -> Result<Vec<Reference>> {
    let paths = source.files(DIR).into_iter();
    let tables: Result<Vec<Reference>> = paths.map(|path| document::parse(&path, &source.read_text(&path)?)).collect();
    let mut tables = tables?;
    tables.sort_by_key(|table| semver::Version::parse(&table.kubernetes).ok());
    Ok(tables)
}

/// The Kubernetes versions whose table is so, in their order.
pub fn versions_with(source: &TreeSource, is: impl Fn(&Reference) -> bool) -> Result<Vec<String>> {
    Ok(all_tables(source)?.into_iter().filter(is).map(|table| table.kubernetes).collect())
}

/// Pretty, but with each entry of a table in one line.
fn write_value(value: &Value, depth: usize, text: &mut String) {
    let is_entry = |members: &serde_json::Map<String, Value>| {
        ["type", "stage"].iter().any(|key| members.get(*key).is_some_and(Value::is_string))
    };
    match value {
        Value::Object(members) if !members.is_empty() && !is_entry(members) => {
            text.push('{');
            for (at, (key, member)) in members.iter().enumerate() {
                text.push_str(if at == 0 { "\n" } else { ",\n" });
                text.push_str(&"  ".repeat(depth + 1));
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push_str(": ");
                write_value(member, depth + 1, text);
            }
            text.push('\n');
            text.push_str(&"  ".repeat(depth));
            text.push('}');
        }
        Value::Object(members) if !members.is_empty() => {
            let entry = members.iter().map(|(key, member)| format!("{}: {member}", Value::from(key.as_str())));
            text.extend(["{ ", &entry.collect::<Vec<_>>().join(", "), " }"]);
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests;
