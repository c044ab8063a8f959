//! What a configuration says of one setting. Data alone.

use kconfig::SymbolType;
use serde_json::Value;

use super::object::json_value;
use super::schema::Schema;

/// One setting with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that are independent of each other")]
pub struct Setting {
    /// Its name, a path with dots.
    pub name: String,
    /// Its prompt; none for what is never asked.
    pub prompt: Option<String>,
    /// Its type.
    pub kind: SymbolType,
    /// `y`, `n`, `m` of bools, text of others, empty for none.
    pub value: String,
    /// Its value if it were not set.
    pub default: String,
    /// Whether the user set it, rather than a default or another setting.
    pub from_user: bool,
    /// Whether it can be set now.
    pub visible: bool,
    /// Whether the file has a place for it.
    pub written: bool,
    /// Never to be shown.
    pub secret: bool,
}

impl Setting {
    /// Its value as the file would have it: a list is a list. Null for a secret, and for a number
    /// that does not count.
    pub(crate) fn json(&self, schema: &Schema) -> Value {
        if self.secret && !self.value.is_empty() {
            return Value::Null;
        }
        let symbol = schema.tree().symbol(&self.name);
        let value = symbol.and_then(|symbol| json_value(schema, symbol, &self.value));
        value.unwrap_or_else(|| if self.kind.is_logical() { Value::Bool(false) } else { Value::Null })
    }
}

/// A value that became another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// The setting.
    pub name: String,
    /// Its value before, as people see it; none when it did not count.
    pub before: Option<String>,
    /// Its value after; none when it no longer applies.
    pub after: Option<String>,
    /// Both as JSON; null for none and for a secret.
    pub values: [Value; 2],
}

/// A flag or field of a component that was given for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentValue {
    /// Its path: `kubelet.maxPods`, `groups.gpu.kubelet.maxPods`.
    pub path: String,
    /// Its value: JSON, or else a text.
    pub value: String,
    /// Where it was given, for people.
    pub place: String,
}
