//! The small language of formats: names, arguments in parentheses, alternatives joined by `or`.

use std::str::FromStr;

use super::kind::Format;

impl FromStr for Format {
    type Err = String;

    /// Reads `NAME`, `NAME(ARGUMENTS)` and `FORMAT or FORMAT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut formats = split_outside(text, " or ")
            .into_iter()
            .map(|part| parse_one(part.trim()))
            .collect::<Result<Vec<_>, _>>()?;
        match formats.len() {
            1 => Ok(formats.remove(0)),
            _ => Ok(Self::Any(formats)),
        }
    }
}

fn parse_one(text: &str) -> Result<Format, String> {
    let (name, arguments) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')').ok_or_else(|| format!("`{text}` lacks its closing parenthesis"))?;
            (name.trim_end(), Some(split_outside(inner, ",")))
        }
    };
    let format = match (name, arguments.as_deref()) {
        ("empty", None) => Format::Empty,
        ("dns-label", None) => Format::DnsLabel,
        ("dns-name", None) => Format::DnsName,
        ("user-name", None) => Format::UserName,
        ("login-name", None) => Format::LoginName,
        ("host-key", None) => Format::HostKey,
        ("id", None) => Format::Id,
        ("host-path", None) => Format::HostPath,
        ("device", None) => Format::Device,
        ("sha256", None) => Format::Sha256,
        ("ip", None) => Format::Ip,
        ("ipv4", None) => Format::Ipv4,
        ("cidr", None) => Format::Cidr(0, 32),
        ("cidr", Some([bounds])) => parse_bounds(bounds.trim(), 32).map(|(low, high)| Format::Cidr(low, high))?,
        ("cidr6", None) => Format::Cidr6(0, 128),
        ("cidr6", Some([bounds])) => parse_bounds(bounds.trim(), 128).map(|(low, high)| Format::Cidr6(low, high))?,
        ("host", None) => Format::Host,
        ("host-list", None) => Format::List(Box::new(Format::Host)),
        ("semver", None) => Format::Semver,
        ("path", None) => Format::Path,
        ("url", None) => Format::Url,
        ("duration", None) => Format::Duration,
        ("quantity", None) => Format::Quantity,
        ("text", None) => Format::Text,
        ("content", None) => Format::Content,
        ("word", None) => Format::Word,
        ("label-key", None) => Format::LabelKey,
        ("label-value", None) => Format::LabelValue,
        ("taint", None) => Format::Taint,
        ("file", None) => Format::File,
        ("bool", None) => Format::Bool,
        ("int", None) => Format::Int(i64::MIN, i64::MAX),
        ("int", Some([bounds])) => parse_numbers(bounds.trim())?,
        ("records", None) => Format::Records(Vec::new()),
        ("enum", Some(words)) => Format::Enum(words.iter().map(|word| word.trim().to_owned()).collect()),
        ("list", Some([element])) => Format::List(Box::new(element.parse()?)),
        ("map", Some([key, value])) => Format::Map(Box::new(key.parse()?), Box::new(value.parse()?)),
        ("list" | "map" | "enum" | "cidr" | "cidr6" | "int", _) => {
            return Err(format!("`{text}` has the wrong number of arguments"));
        }
        (_, Some(_)) => return Err(format!("`{name}` takes no arguments, or is no format")),
        (_, None) => return Err(unknown_format(name)),
    };
    Ok(format)
}

fn unknown_format(name: &str) -> String {
    let known = [
        "empty",
        "dns-label",
        "dns-name",
        "user-name",
        "login-name",
        "host-key",
        "id",
        "host-path",
        "device",
        "sha256",
        "ip",
        "ipv4",
        "cidr",
        "cidr6",
        "host",
        "host-list",
        "semver",
        "path",
        "url",
        "duration",
        "quantity",
        "text",
        "content",
        "word",
        "label-key",
        "label-value",
        "taint",
        "file",
        "int",
        "bool",
        "records",
        "enum",
        "list",
        "map",
    ];
    match kconfig::suggest(name, known.into_iter()) {
        Some(near) => format!("`{name}` is no format; did you mean `{near}`?"),
        None => format!("`{name}` is no format; known are {}", known.join(", ")),
    }
}

fn parse_bounds(text: &str, longest: u8) -> Result<(u8, u8), String> {
    match parse_range(text) {
        Some((low, high)) if high <= longest => Ok((low, high)),
        _ => Err(format!("`{text}` are no prefix lengths; write cidr(8..24)")),
    }
}

fn parse_numbers(text: &str) -> Result<Format, String> {
    match parse_range(text) {
        Some((low, high)) => Ok(Format::Int(low, high)),
        None => Err(format!("`{text}` are no bounds of a number; write int(1..1000)")),
    }
}

/// `LOW..HIGH`, where LOW is not above HIGH.
fn parse_range<T: FromStr + PartialOrd>(text: &str) -> Option<(T, T)> {
    let (low, high) = text.split_once("..")?;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low <= high).then_some((low, high))
}

/// Splits where the separator stands outside parentheses.
fn split_outside<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= start && text[at..].starts_with(separator) => {
                parts.push(&text[start..at]);
                start = at + separator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
