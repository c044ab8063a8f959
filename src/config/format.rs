//! The formats that structured comments name (`#: format = cidr`): their small language and their validators.
//!
//! Pure: a format judges text alone. It must not read files, resolve names or look at other settings; `check` does the latter.

use std::fmt;
use std::str::FromStr;

use super::network::Network;

/// What the text of a string setting must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Nothing at all; makes sense as one side of `or`.
    Empty,
    /// One label of a DNS name (RFC 1123), lower case.
    DnsLabel,
    /// Labels joined by dots, lower case.
    DnsName,
    /// A login name of a Linux system.
    UserName,
    /// An IPv4 address.
    Ipv4,
    /// An IPv4 network whose prefix length lies between the two bounds.
    Cidr(u8, u8),
    /// An IPv4 address or a DNS name.
    Host,
    /// A version: MAJOR.MINOR.PATCH.
    Semver,
    /// A path of a file system.
    Path,
    /// An http or https URL without credentials.
    Url,
    /// A duration as Go writes it: 1h30m.
    Duration,
    /// A quantity as Kubernetes writes it: 500m, 2Gi.
    Quantity,
    /// One of these words.
    Enum(Vec<String>),
    /// Elements of one format, separated by commas.
    List(Box<Format>),
    /// KEY=VALUE pairs separated by commas.
    Map(Box<Format>, Box<Format>),
    /// Any of these.
    Any(Vec<Format>),
}

impl Format {
    /// Nothing, or one sentence about what is wrong and what is expected.
    pub fn validate(&self, text: &str) -> Result<(), String> {
        match self {
            Self::Empty => expect(text.is_empty(), text, self),
            Self::DnsLabel => validate_label(text),
            Self::DnsName => validate_name(text),
            Self::UserName => expect(is_user_name(text), text, self),
            Self::Ipv4 => expect(text.parse::<std::net::Ipv4Addr>().is_ok(), text, self),
            Self::Cidr(shortest, longest) => validate_network(text, *shortest, *longest),
            Self::Host => validate_host(text),
            Self::Semver => validate_version(text),
            Self::Path => validate_path(text),
            Self::Url => validate_url(text),
            Self::Duration => expect(is_duration(text), text, self),
            Self::Quantity => expect(is_quantity(text), text, self),
            Self::Enum(words) => validate_word(text, words),
            Self::List(element) => validate_list(text, element),
            Self::Map(key, value) => validate_map(text, key, value),
            Self::Any(formats) => validate_any(text, formats),
        }
    }

    /// The words to choose from, for an `enum`.
    #[must_use]
    pub fn words(&self) -> Option<&[String]> {
        match self {
            Self::Enum(words) => Some(words),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    /// What is expected, as it completes "expected …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing"),
            Self::DnsLabel => f.write_str("lower-case letters, digits and hyphens, at most 63"),
            Self::DnsName => f.write_str("a DNS name such as cluster.local"),
            Self::UserName => f.write_str("a user name: lower-case letters, digits, _ and -, at most 32"),
            Self::Ipv4 => f.write_str("an IPv4 address such as 10.0.0.1"),
            Self::Cidr(0, 32) => f.write_str("an IPv4 network such as 10.1.0.0/16"),
            Self::Cidr(shortest, longest) => {
                write!(
                    f,
                    "an IPv4 network from /{shortest} to /{longest}, such as 10.1.0.0/{}",
                    (*longest).min(16).max(*shortest)
                )
            }
            Self::Host => f.write_str("an IPv4 address or a DNS name"),
            Self::Semver => f.write_str("a version such as 1.2.3"),
            Self::Path => f.write_str("a path"),
            Self::Url => f.write_str("a URL that begins with http:// or https://"),
            Self::Duration => f.write_str("a duration such as 90s, 10m or 1h30m"),
            Self::Quantity => f.write_str("a quantity such as 500m, 2 or 4Gi"),
            Self::Enum(words) => f.write_str(&join_words(words)),
            Self::List(element) => write!(f, "a list separated by commas, each {element}"),
            Self::Map(key, value) => write!(f, "KEY=VALUE pairs separated by commas; key: {key}; value: {value}"),
            Self::Any(formats) => {
                let all: Vec<String> = formats.iter().map(ToString::to_string).collect();
                f.write_str(&join_words(&all))
            }
        }
    }
}

/// "a", "a or b", "a, b or c".
fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn expect(holds: bool, text: &str, format: &Format) -> Result<(), String> {
    match (holds, text) {
        (true, _) => Ok(()),
        (false, "") => Err(format!("it is empty; expected {format}")),
        (false, text) => Err(format!("`{text}` is not valid; expected {format}")),
    }
}

fn validate_label(text: &str) -> Result<(), String> {
    if is_label(text) {
        return Ok(());
    }
    let lower = text.to_ascii_lowercase();
    if is_label(&lower) {
        return Err(format!("`{text}` has capital letters; `{lower}` would do"));
    }
    if text.len() > 63 {
        return Err(format!("it has {} characters; at most 63 are allowed", text.len()));
    }
    if text.starts_with('-') || text.ends_with('-') {
        return Err(format!("`{text}` must begin and end with a letter or digit"));
    }
    expect(false, text, &Format::DnsLabel)
}

fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

fn validate_name(text: &str) -> Result<(), String> {
    if text.len() > 253 {
        return Err(format!("it has {} characters; a DNS name has at most 253", text.len()));
    }
    if !text.is_empty() && text.split('.').any(str::is_empty) {
        return Err(format!("`{text}` has an empty label: no dot at the beginning or end, no two dots in a row"));
    }
    expect(text.split('.').all(is_label), text, &Format::DnsName)
}

fn is_user_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
    first && text.len() <= 32 && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn validate_network(text: &str, shortest: u8, longest: u8) -> Result<(), String> {
    if text.is_empty() {
        return expect(false, text, &Format::Cidr(shortest, longest));
    }
    let network: Network = text.parse()?;
    if network.prefix() < shortest {
        return Err(format!("{text} is too large; the prefix length must be at least /{shortest}"));
    }
    if network.prefix() > longest {
        return Err(format!("{text} is too small; the prefix length must be at most /{longest}"));
    }
    Ok(())
}

fn validate_host(text: &str) -> Result<(), String> {
    let looks_numeric = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if looks_numeric {
        return Format::Ipv4.validate(text);
    }
    expect(validate_name(text).is_ok(), text, &Format::Host)
}

fn validate_version(text: &str) -> Result<(), String> {
    if let Some(rest) = text.strip_prefix('v')
        && semver::Version::parse(rest).is_ok()
    {
        return Err(format!("`{text}` begins with a v; write {rest}"));
    }
    expect(semver::Version::parse(text).is_ok(), text, &Format::Semver)
}

fn validate_path(text: &str) -> Result<(), String> {
    if text.chars().any(char::is_control) {
        return Err("it holds a control character".to_owned());
    }
    if text.starts_with('~') {
        return Err(format!("`~` is not expanded; write the whole path instead of `{text}`"));
    }
    if text.contains("://") {
        return Err(format!("`{text}` is a URL, not a path"));
    }
    expect(!text.is_empty(), text, &Format::Path)
}

fn validate_url(text: &str) -> Result<(), String> {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return expect(false, text, &Format::Url);
    };
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("a URL has no blanks or control characters; write %20 for a blank".to_owned());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("a URL with a user name or password would be stored in plain text; leave them out".to_owned());
    }
    let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    validate_host(&host.to_ascii_lowercase()).map_err(|why| format!("its host is wrong: {why}"))?;
    match port {
        Some(port) if !port.parse::<u16>().is_ok_and(|number| number > 0) => Err(format!("`{port}` is not a port")),
        _ => Ok(()),
    }
}

fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, tail) = rest.split_at(digits);
        let Some(unit) = ["ns", "us", "ms", "h", "m", "s"].iter().find(|unit| tail.starts_with(**unit)) else {
            return false;
        };
        if !is_decimal(number) {
            return false;
        }
        rest = &tail[unit.len()..];
    }
    !text.is_empty()
}

fn is_quantity(text: &str) -> bool {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, suffix) = text.split_at(digits);
    let known = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    is_decimal(number) && known.contains(&suffix)
}

/// Digits with at most one dot between them.
fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    }
}

fn validate_word(text: &str, words: &[String]) -> Result<(), String> {
    if words.iter().any(|word| word == text) {
        return Ok(());
    }
    let expected = join_words(words);
    if text.is_empty() {
        return Err(format!("it is empty; expected {expected}"));
    }
    match kconfig::suggest(text, words.iter().map(String::as_str)) {
        Some(near) => Err(format!("`{text}` is none of {expected}; did you mean `{near}`?")),
        None => Err(format!("`{text}` is none of {expected}")),
    }
}

fn validate_list(text: &str, element: &Format) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    for (index, part) in text.split(',').enumerate() {
        element.validate(part.trim()).map_err(|why| format!("element {}: {why}", index + 1))?;
    }
    Ok(())
}

fn validate_map(text: &str, key: &Format, value: &Format) -> Result<(), String> {
    let mut seen = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let Some((name, content)) = part.trim().split_once('=') else {
            return Err(format!("`{part}` is not KEY=VALUE"));
        };
        if seen.contains(&name) {
            return Err(format!("key `{name}` occurs twice"));
        }
        key.validate(name).map_err(|why| format!("key `{name}`: {why}"))?;
        value.validate(content).map_err(|why| format!("value of `{name}`: {why}"))?;
        seen.push(name);
    }
    Ok(())
}

fn validate_any(text: &str, formats: &[Format]) -> Result<(), String> {
    if formats.iter().any(|format| format.validate(text).is_ok()) {
        return Ok(());
    }
    // The alternative that the text most looks like says best what is wrong with it.
    let near = formats.iter().find(|format| match format {
        Format::Url => text.contains("://"),
        Format::Cidr(..) => text.contains('/') && !text.contains("://"),
        Format::Path => text.starts_with(['/', '.', '~']),
        _ => false,
    });
    match near {
        Some(format) => format.validate(text),
        None => expect(false, text, &Format::Any(formats.to_vec())),
    }
}

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
        ("ipv4", None) => Format::Ipv4,
        ("cidr", None) => Format::Cidr(0, 32),
        ("cidr", Some([bounds])) => parse_bounds(bounds.trim())?,
        ("host", None) => Format::Host,
        ("host-list", None) => Format::List(Box::new(Format::Host)),
        ("semver", None) => Format::Semver,
        ("path", None) => Format::Path,
        ("url", None) => Format::Url,
        ("duration", None) => Format::Duration,
        ("quantity", None) => Format::Quantity,
        ("enum", Some(words)) => Format::Enum(words.iter().map(|word| word.trim().to_owned()).collect()),
        ("list", Some([element])) => Format::List(Box::new(element.parse()?)),
        ("map", Some([key, value])) => Format::Map(Box::new(key.parse()?), Box::new(value.parse()?)),
        ("list" | "map" | "enum" | "cidr", _) => return Err(format!("`{text}` has the wrong number of arguments")),
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
        "ipv4",
        "cidr",
        "host",
        "host-list",
        "semver",
        "path",
        "url",
        "duration",
        "quantity",
        "enum",
        "list",
        "map",
    ];
    match kconfig::suggest(name, known.into_iter()) {
        Some(near) => format!("`{name}` is no format; did you mean `{near}`?"),
        None => format!("`{name}` is no format; known are {}", known.join(", ")),
    }
}

fn parse_bounds(text: &str) -> Result<Format, String> {
    let parsed = text.split_once("..").and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match parsed {
        Some((low, high)) if low <= high && high <= 32 => Ok(Format::Cidr(low, high)),
        _ => Err(format!("`{text}` are no prefix lengths; write cidr(8..24)")),
    }
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

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
