//! The type of a field of a configuration file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{format::Format, parse_duration};

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FieldType {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A text.
    String,
    /// A duration as Go writes it: `1h30m`.
    Duration,
    /// A quantity: `500m`, `2Gi`.
    Quantity,
    /// A time of RFC 3339.
    Time,
    /// A number or a text such as `25%`.
    IntOrString,
    /// An object; its fields have entries of their own, but where it is of any form.
    Object,
    /// A list.
    List(Box<FieldType>),
    /// An object whose keys are free.
    Map(Box<FieldType>, Box<FieldType>),
}

const WORDS: [(&str, FieldType); 9] = [
    ("bool", FieldType::Bool),
    ("int", FieldType::Int),
    ("float", FieldType::Float),
    ("string", FieldType::String),
    ("duration", FieldType::Duration),
    ("quantity", FieldType::Quantity),
    ("time", FieldType::Time),
    ("int-or-string", FieldType::IntOrString),
    ("object", FieldType::Object),
];

impl FieldType {
    /// Whether its fields have entries of their own.
    #[must_use]
    pub fn has_fields(&self) -> bool {
        *self == Self::Object
    }

    /// Whether a value may stand in such a field.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::Bool => value.is_boolean(),
            Self::Int => value.is_i64() || value.is_u64(),
            Self::Float => value.is_number(),
            Self::String | Self::Time => value.is_string(),
            Self::Duration => value.as_str().is_some_and(|text| parse_duration(text).is_some()),
            Self::Quantity => {
                value.is_number() || value.as_str().is_some_and(|text| Format::Quantity.validate(text).is_ok())
            }
            Self::IntOrString => value.is_i64() || value.is_string(),
            Self::Object => value.is_object(),
            Self::List(item) => value.as_array().is_some_and(|items| items.iter().all(|one| item.accepts(one))),
            Self::Map(_, item) => {
                value.as_object().is_some_and(|members| members.values().all(|one| item.accepts(one)))
            }
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(item) => write!(f, "list<{item}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            word => f.write_str(WORDS.iter().find(|(_, known)| known == word).map_or("", |(name, _)| name)),
        }
    }
}

impl FromStr for FieldType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, word)) = WORDS.into_iter().find(|(name, _)| *name == text) {
            return Ok(word);
        }
        let inside = |name: &str| text.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>');
        if let Some(item) = inside("list") {
            return Ok(Self::List(Box::new(item.parse()?)));
        }
        // The key of a map is a word, so the first comma ends it.
        let Some((key, value)) = inside("map").and_then(|inside| inside.split_once(", ")) else {
            return Err(format!("`{text}` is not a type of a field"));
        };
        Ok(Self::Map(Box::new(key.parse()?), Box::new(value.parse()?)))
    }
}

impl TryFrom<String> for FieldType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<FieldType> for String {
    fn from(of: FieldType) -> Self {
        of.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::FieldType;

    #[test]
    fn a_type_is_what_its_text_says() {
        for text in ["bool", "int-or-string", "list<object>", "map<string, list<map<string, quantity>>>"] {
            assert_eq!(text.parse::<FieldType>().unwrap().to_string(), text);
        }
        for text in ["", "text", "list<>", "list<int", "map<string>", "map<list<int>, >"] {
            assert!(text.parse::<FieldType>().is_err(), "{text}");
        }
    }
}
