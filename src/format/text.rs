//! What single words must look like, and what is said when they do not.
//!
//! Knows no lists, maps or JSON.

use std::time::Duration;

use jiff::SignedDuration;

use super::kind::{Format, HOST_KEYS, join_words};
use crate::network::{Network, Network6};
use crate::terminal;

/// What no line of text holds: what a terminal acts on, and a tab, which ends a column.
pub(super) fn is_control(letter: char) -> bool {
    letter == '\t' || terminal::is_control(letter)
}

pub(super) fn expect(holds: bool, text: &str, format: &Format) -> Result<(), String> {
    match (holds, text) {
        (true, _) => Ok(()),
        (false, "") => Err(format!("it is empty; expected {format}")),
        (false, text) => Err(format!("`{text}` is not valid; expected {format}")),
    }
}

pub(super) fn validate_label(text: &str) -> Result<(), String> {
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

pub(super) fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

pub(super) fn validate_name(text: &str) -> Result<(), String> {
    if text.len() > 253 {
        return Err(format!("it has {} characters; a DNS name has at most 253", text.len()));
    }
    if !text.is_empty() && text.split('.').any(str::is_empty) {
        return Err(format!("`{text}` has an empty label: no dot at the beginning or end, no two dots in a row"));
    }
    expect(text.split('.').all(is_label), text, &Format::DnsName)
}

pub(super) fn is_user_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
    first && text.len() <= 32 && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

pub(super) fn validate_network(text: &str, shortest: u8, longest: u8) -> Result<(), String> {
    if text.is_empty() {
        return expect(false, text, &Format::Cidr(shortest, longest));
    }
    let network: Network = text.parse()?;
    validate_length(text, network.prefix(), shortest, longest)
}

pub(super) fn validate_network6(text: &str, shortest: u8, longest: u8) -> Result<(), String> {
    if text.is_empty() {
        return expect(false, text, &Format::Cidr6(shortest, longest));
    }
    let network: Network6 = text.parse()?;
    validate_length(text, network.prefix(), shortest, longest)
}

fn validate_length(text: &str, prefix: u8, shortest: u8, longest: u8) -> Result<(), String> {
    if prefix < shortest {
        return Err(format!("{text} is too large; the prefix length must be at least /{shortest}"));
    }
    if prefix > longest {
        return Err(format!("{text} is too small; the prefix length must be at most /{longest}"));
    }
    Ok(())
}

pub(super) fn validate_host(text: &str) -> Result<(), String> {
    let looks_numeric = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if looks_numeric {
        return Format::Ipv4.validate(text);
    }
    expect(validate_name(text).is_ok(), text, &Format::Host)
}

pub(super) fn validate_version(text: &str) -> Result<(), String> {
    if let Some(rest) = text.strip_prefix('v')
        && semver::Version::parse(rest).is_ok()
    {
        return Err(format!("`{text}` begins with a v; write {rest}"));
    }
    expect(semver::Version::parse(text).is_ok(), text, &Format::Semver)
}

pub(super) fn validate_path(text: &str) -> Result<(), String> {
    if text.contains(is_control) {
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

pub(super) fn validate_url(text: &str) -> Result<(), String> {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return expect(false, text, &Format::Url);
    };
    if text.contains(|c: char| is_control(c) || c.is_whitespace()) {
        return Err("a URL has no blanks or control characters; write %20 for a blank".to_owned());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("a URL with a user name or password would be stored in plain text; leave them out".to_owned());
    }
    let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    validate_host(&host.to_ascii_lowercase()).map_err(|why| format!("its host is wrong: {why}"))?;
    match port {
        Some(port)
            if !(port.bytes().all(|byte| byte.is_ascii_digit())
                && port.parse::<u16>().is_ok_and(|number| number > 0)) =>
        {
            Err(format!("`{port}` is not a port"))
        }
        _ => Ok(()),
    }
}

/// A duration as Go writes it: `90s`, `1h30m`, `1.5h`. None for another text, and for one that no
/// clock can count.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    // jiff also takes signs, blanks, days and ISO 8601, which no component of Kubernetes does.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".numsh".contains(&byte));
    let parsed = is_plain.then(|| text.parse::<SignedDuration>().ok()).flatten()?;
    Duration::try_from(parsed).ok()
}

/// The name of a package, and the version behind `=` that it is pinned to.
#[must_use]
pub(crate) fn split_package(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, version)| (name, Some(version)))
}

pub(super) fn is_quantity(text: &str) -> bool {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, suffix) = text.split_at(digits);
    let known = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    is_decimal(number) && known.contains(&suffix)
}

/// Digits with at most one dot between them.
pub(super) fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    }
}

pub(super) fn validate_word(text: &str, words: &[String]) -> Result<(), String> {
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

pub(super) fn validate_any(text: &str, formats: &[Format]) -> Result<(), String> {
    if formats.iter().any(|format| format.validate(text).is_ok()) {
        return Ok(());
    }
    // The alternative that the text most looks like says best what is wrong with it.
    let near = formats.iter().find(|format| match format {
        Format::Url => text.contains("://"),
        Format::Cidr(..) => text.contains('/') && !text.contains(':'),
        Format::Cidr6(..) => text.contains("::") || text.matches(':').count() > 1,
        Format::Path => text.starts_with(['/', '.', '~']),
        Format::HostKey => text.split_whitespace().any(|word| HOST_KEYS.contains(&word)),
        _ => false,
    });
    match near {
        Some(format) => format.validate(text),
        None => expect(false, text, &Format::Any(formats.to_vec())),
    }
}

/// Letters and digits around letters, digits, dots, hyphens and underscores, as names of
/// Kubernetes' labels have them.
fn is_qualified(text: &str) -> bool {
    let outer = |byte: u8| byte.is_ascii_alphanumeric();
    let inner = |byte: u8| outer(byte) || matches!(byte, b'-' | b'_' | b'.');
    let ends = (text.bytes().next(), text.bytes().next_back());
    text.len() <= 63
        && text.bytes().all(inner)
        && matches!(ends, (Some(first), Some(last)) if outer(first) && outer(last))
}

pub(super) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => validate_name(prefix).is_ok() && is_qualified(name),
        None => is_qualified(text),
    }
}

pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified(text)
}

pub(super) fn is_plain(text: &str) -> bool {
    let special = |c: char| c.is_whitespace() || is_control(c) || matches!(c, ',' | '"' | '\'' | '`');
    !text.is_empty() && !text.contains(special)
}

pub(super) fn validate_number(text: &str, low: i64, high: i64) -> Result<(), String> {
    match text.parse::<i64>() {
        Ok(number) if (low..=high).contains(&number) => Ok(()),
        Ok(number) => Err(format!("{number} is out of range: {low} to {high}")),
        Err(_) => expect(false, text, &Format::Int(low, high)),
    }
}
