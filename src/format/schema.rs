//! Formats as JSON Schema (2020-12). Patterns are regular expressions of ECMA 262, which that
//! standard prescribes.
//!
//! What a schema cannot say is said by `validate` alone: that the host bits of a network are zero,
//! that keys of records differ.

use serde_json::{Map, Value, json};

use super::kind::{Field, Format, HOST_KEYS};

const LABEL: &str = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const QUALIFIED: &str = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?";
/// No control characters: those of `terminal::is_control`, and no tab.
const CONTROLS: &str = "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069";

/// A step of a path that stays where it is.
const STEP: &str = "(?!\\.{1,2}(/|$))";
/// What a shell, a unit or a mount option acts on, as a class has it: `machine::NOT_PLAIN`.
const NOT_PLAIN: &str = "\"'`$\\\\;&|<>*?!{}\\[\\]%^";

impl Format {
    /// The schema of a value in this format.
    #[must_use]
    pub fn json_schema(&self) -> Value {
        match self {
            Self::Empty => json!({"type": "string", "maxLength": 0}),
            Self::Enum(words) => json!({"enum": words}),
            Self::Int(low, high) => json!({"type": "integer", "minimum": low, "maximum": high}),
            Self::Bool => json!({"type": "boolean"}),
            Self::List(element) => json!({"type": "array", "items": element.member_schema()}),
            Self::Map(key, value) => json!({
                "type": "object", "propertyNames": key.member_schema(), "additionalProperties": value.member_schema(),
            }),
            Self::Any(formats) => json!({"anyOf": formats.iter().map(Self::json_schema).collect::<Vec<_>>()}),
            Self::Records(fields) => json!({"type": "array", "items": record_schema(fields)}),
            Self::DnsName => json!({"type": "string", "pattern": self.pattern(), "maxLength": 253}),
            _ => json!({"type": "string", "pattern": self.pattern()}),
        }
    }

    /// The same for a member of a list or map, which in text ends at a comma.
    fn member_schema(&self) -> Value {
        json!({"allOf": [self.json_schema(), {"not": {"type": "string", "pattern": "[,=]|^\\s|\\s$"}}]})
    }

    fn pattern(&self) -> String {
        let ipv4 = || format!("{OCTET}(\\.{OCTET}){{3}}");
        let name = || format!("{LABEL}(\\.{LABEL})*");
        let host = || format!("({}|(?![0-9.]+(:|/|\\?|#|$)){})", ipv4(), name());
        let key = || format!("(({}/)?{QUALIFIED})", name());
        match self {
            Self::DnsLabel => format!("^{LABEL}$"),
            Self::DnsName => format!("^{}$", name()),
            Self::UserName => "^[a-z_][a-z0-9_-]{0,31}$".to_owned(),
            Self::LoginName => "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$".to_owned(),
            // That it names its algorithm and has nothing behind its end is left to `validate`.
            Self::HostKey => format!("^({}) [A-Za-z0-9+/]+={{0,2}}( [^{CONTROLS}]*)?$", HOST_KEYS.join("|")),
            Self::Id => "^[A-Za-z0-9._:/()][A-Za-z0-9._:/@+=()-]{0,511}$".to_owned(),
            Self::HostPath => format!("^(/{STEP}[^/{NOT_PLAIN}{CONTROLS}]+)+$"),
            Self::Device => format!("^/dev(/{STEP}([A-Za-z0-9#+.:=@_-]|\\\\x[A-Za-z0-9#+.:=@_-]{{2}})+)+$"),
            Self::Sha256 => "^[0-9a-f]{64}$".to_owned(),
            Self::Ip => format!("^({}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)$", ipv4()),
            Self::Ipv4 => format!("^{}$", ipv4()),
            Self::Cidr(low, high) => {
                let lengths: Vec<String> = (*low..=*high).map(|length| length.to_string()).collect();
                format!("^{}/({})$", ipv4(), lengths.join("|"))
            }
            // The many ways to shorten an address are left to `validate`.
            Self::Cidr6(low, high) => {
                let lengths: Vec<String> = (*low..=*high).map(|length| length.to_string()).collect();
                format!("^[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*/({})$", lengths.join("|"))
            }
            Self::Host => format!("^{}$", host()),
            Self::Semver => SEMVER.to_owned(),
            Self::Path | Self::File => format!("^(?!~)(?!.*://)[^{CONTROLS}]+$"),
            Self::Url => format!("^https?://{}{PORT}([/?#][^\\s{CONTROLS}]*)?$", host().replace("a-z", "A-Za-z")),
            Self::Duration => "^([0-9]+(\\.[0-9]+)?(ns|us|ms|h|m|s))+$".to_owned(),
            Self::Quantity => "^[0-9]+(\\.[0-9]+)?([numkMGTPE]|[KMGTPE]i)?$".to_owned(),
            Self::Word => format!("^[^\\s,\"'`{CONTROLS}]+$"),
            Self::LabelKey => format!("^{}$", key()),
            Self::LabelValue => format!("^({QUALIFIED})?$"),
            Self::Taint => format!("^{}(=({QUALIFIED})?)?:(NoSchedule|PreferNoSchedule|NoExecute)$", key()),
            Self::Content => String::new(),
            _ => format!("^[^{CONTROLS}]*$"),
        }
    }
}

const PORT: &str = "(:0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?";

/// Of the standard for versions, as it gives it.
const SEMVER: &str = "^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\
(-((0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?\
(\\+([0-9a-zA-Z-]+(\\.[0-9a-zA-Z-]+)*))?$";

fn record_schema(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.clone(), field.format.json_schema())).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
