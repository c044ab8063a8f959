//! Taints of Nodes, as settings and documents write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::kind::Format;
use super::text::{expect, is_label_key, is_label_value};

/// What keeps pods off a node that do not tolerate it; in JSON a text: `KEY=VALUE:EFFECT` or
/// `KEY:EFFECT`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Taint {
    /// A label's key.
    pub key: String,
    /// A label's value; may be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

impl FromStr for Taint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (taint, effect) = text.rsplit_once(':').unwrap_or((text, ""));
        let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
        let known = matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute");
        expect(is_label_key(key) && is_label_value(value) && known, text, &Format::Taint)?;
        Ok(Self { key: key.into(), value: value.into(), effect: effect.into() })
    }
}

impl TryFrom<String> for Taint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Taint> for String {
    fn from(taint: Taint) -> Self {
        taint.to_string()
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn what_the_format_refuses_is_no_taint_of_a_document_either() {
        for wrong in ["", "a", "a=b", "a:Never", ":NoSchedule", "a b:NoSchedule", "a=b c:NoExecute", "a=b=c:NoExecute"]
        {
            let said = Format::Taint.validate(wrong).unwrap_err();
            assert_eq!(serde_json::from_value::<Taint>(wrong.into()).unwrap_err().to_string(), said);
        }
        for right in ["one:NoSchedule", "example.com/two=2:NoExecute"] {
            assert_eq!(Format::Taint.validate(right), Ok(()));
            assert_eq!(right.parse::<Taint>().unwrap().to_string(), right);
        }
    }
}
