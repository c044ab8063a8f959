//! Values with names that say that they are secrets: `password=…`, `"token": "…"`, `--secret …`,
//! `<password>…`, a variable of a container. Pure.
//!
//! What decides is the name, the value, and how sure it is that the one is the value of the other:
//! in a sentence (`bad token: unexpected end`) only what looks random is taken.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::matching::{Match, REMOVED, pattern};
use super::patterns::{is_pair_in_base64, looks_random};

/// A value is not longer.
const LONGEST: usize = 4096;
/// A name is not longer.
const LONGEST_NAME: usize = 64;

/// The end of a name, and what makes of it what.
static NAME_END: LazyLock<Regex> = LazyLock::new(|| {
    let keys = r"(?:access|account|api|encryption|private|shared|signing|storage)[_.-]?key";
    let secrets = r"secret(?:[_.-]?access)?(?:[_.-]?key)?";
    pattern(&format!(r"(?i)(?:pass(?:word|wd|phrase)|pwd|{secrets}|token|credentials?|auth|{keys})"))
});
/// What may stand between the name and the value of a variable in a list of them.
static VALUE_OF_VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\\*["']?\s*,?(?:\s|\\n){0,40}\\*["']?value\\*["']?\s*:"#));

/// What the name says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Chosen by people: anything.
    Password,
    /// The same, or the name of an object of Kubernetes.
    Secret,
    /// Made by machines.
    Token,
    /// `user:password` in base64.
    Pair,
}

/// How sure it is that a value belongs to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bond {
    /// `name=value`, `"name": "value"`, `<name>value`.
    Sure,
    /// `name: value` at the beginning of a line, as YAML has it.
    Line,
    /// `--name value`.
    Flag,
    /// `name: value` in the middle of a sentence.
    Sentence,
}

/// Whether values of this name are secrets.
#[must_use]
pub(crate) fn is_sensitive(name: &str) -> bool {
    let bytes = name.as_bytes();
    NAME_END.find_iter(bytes).any(|end| end.end() == bytes.len() && kind_of(bytes, &end.range()).is_some())
}

/// Every value with a name that says that it is a secret.
pub(super) fn find(bytes: &[u8]) -> Vec<Match> {
    let mut hits = Vec::new();
    for end in NAME_END.find_iter(bytes) {
        let name = name_around(bytes, &end.range());
        if name.end != end.end() {
            continue;
        }
        let Some(kind) = kind_of(&bytes[name.clone()], &(end.start() - name.start..name.len())) else { continue };
        let Some((value, bond)) = value_after(bytes, &name, kind) else { continue };
        if is_secret(kind, bond, &bytes[value.clone()]) {
            let what = String::from_utf8_lossy(&bytes[end.range()]).to_lowercase();
            hits.push(Match::new(value, format!("a value named {what}")));
        }
    }
    hits
}

/// The whole name that has this in it.
fn name_around(bytes: &[u8], part: &Range<usize>) -> Range<usize> {
    let letter = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let before = bytes[..part.start].iter().rev().take(LONGEST_NAME).take_while(letter).count();
    let after = bytes[part.end..].iter().take(LONGEST_NAME).take_while(letter).count();
    part.start - before..part.end + after
}

fn kind_of(name: &[u8], end: &Range<usize>) -> Option<Kind> {
    let plain = |text: &[u8]| -> String {
        text.iter()
            .filter(|byte| byte.is_ascii_alphanumeric())
            .map(|byte| char::from(byte.to_ascii_lowercase()))
            .collect()
    };
    // The word begins where it begins in the name: not the `auth` of `oauth`, but that of `_auth`.
    let begins = end.start == 0 || !name[end.start - 1].is_ascii_alphabetic() || name[end.start].is_ascii_uppercase();
    match (plain(&name[end.clone()]).as_str(), plain(name).as_str()) {
        // A name that all members of a cluster know.
        (_, "initialclustertoken") => None,
        ("password" | "passwd" | "passphrase" | "secretkey" | "secretaccesskey", _) => Some(Kind::Password),
        ("pwd", _) => begins.then_some(Kind::Password),
        ("secret", _) => Some(Kind::Secret),
        ("auth", _) => begins.then_some(Kind::Pair),
        _ => Some(Kind::Token),
    }
}

/// The value of the name that ends here, and how sure that is; none where nothing follows it as a
/// value.
fn value_after(bytes: &[u8], name: &Range<usize>, kind: Kind) -> Option<(Range<usize>, Bond)> {
    let rest = &bytes[name.end..bytes.len().min(name.end + LONGEST)];
    let quote = closing_quote(rest);
    let blanks = count_blanks(&rest[quote..]);
    let is_flag = bytes[name.clone()].starts_with(b"--");
    let (at, bond) = match &rest[quote + blanks..] {
        [b'>', ..] if bytes[..name.start].ends_with(b"<") => (1, Bond::Sure),
        [b':', b':', ..] => return None,
        // Where they are no programs, such arrows stand in sentences.
        [b':', b'=', ..] | [b'=', b'>', ..] => (2, Bond::Sentence),
        [b'=', b'=', ..] => (2, Bond::Sure),
        [b'=', ..] => (1, Bond::Sure),
        [b':', ..] if quote > 0 => (1, Bond::Sure),
        [b':', next, ..] => (1, bond_of_colon(bytes, name.start, *next)),
        [b',', ..] if is_flag && quote > 0 => (1, Bond::Flag),
        _ if is_flag && quote == 0 && blanks > 0 => (0, Bond::Flag),
        _ => return value_of_variable(rest).map(|range| (name.end + range.start..name.end + range.end, Bond::Sure)),
    };
    let at = quote + blanks + at;
    let (range, bond) = measure(&rest[at..], bond, kind)?;
    Some((name.end + at + range.start..name.end + at + range.end, bond))
}

/// What a colon behind a bare name means.
fn bond_of_colon(bytes: &[u8], name: usize, next: u8) -> Bond {
    if !matches!(next, b' ' | b'\t' | b'\r' | b'\n') {
        return Bond::Sure;
    }
    let line = bytes[name.saturating_sub(LONGEST_NAME)..name].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let last = line.iter().rev().find(|byte| !matches!(byte, b' ' | b'\t' | b'-'));
    match last {
        // A log puts a line behind a bar.
        None | Some(b'|') => Bond::Line,
        Some(b'{' | b'[' | b'(' | b',' | b';' | b'&' | b'?') => Bond::Sure,
        _ => Bond::Sentence,
    }
}

/// The value of a variable of a container: what looked like a name is the value of `name`, and
/// `value` follows.
fn value_of_variable(rest: &[u8]) -> Option<Range<usize>> {
    let at = VALUE_OF_VARIABLE.find(rest)?.end();
    let (range, _) = measure(&rest[at..], Bond::Sure, Kind::Password)?;
    Some(at + range.start..at + range.end)
}

/// How long the quote behind a name is, with its backslashes.
fn closing_quote(rest: &[u8]) -> usize {
    let escapes = rest.iter().take_while(|byte| **byte == b'\\').count();
    if matches!(rest.get(escapes), Some(b'"' | b'\'')) { escapes + 1 } else { 0 }
}

fn count_blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Whether a block of YAML follows: `|` or `>`, perhaps with `-` or `+`, and nothing else on the
/// line.
fn is_block(rest: &[u8]) -> bool {
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    matches!(line.trim_ascii(), [b'|' | b'>'] | [b'|' | b'>', b'-' | b'+' | b'0'..=b'9'])
}

/// The lines of the block: those that are indented as deep as its first.
fn block(rest: &[u8]) -> Option<Range<usize>> {
    let start = rest.iter().position(|byte| *byte == b'\n')? + 1;
    let depth = count_blanks(&rest[start..]);
    let mut end = start;
    for line in rest[start..].split_inclusive(|byte| *byte == b'\n') {
        if depth == 0 || count_blanks(line) < depth && !line.trim_ascii().is_empty() {
            break;
        }
        end += line.len();
    }
    let text = rest[start + depth..end.max(start + depth)].trim_ascii_end();
    (!text.is_empty()).then(|| start + depth..start + depth + text.len())
}

/// Where the value lies behind its mark, without its quotes.
fn measure(rest: &[u8], bond: Bond, kind: Kind) -> Option<(Range<usize>, Bond)> {
    if bond == Bond::Line && is_block(rest) {
        return block(rest).map(|range| (range, Bond::Sure));
    }
    let start = count_blanks(rest);
    let escapes = rest[start..].iter().take_while(|byte| **byte == b'\\').count();
    if let Some(quote @ (b'"' | b'\'')) = rest.get(start + escapes) {
        let start = start + escapes + 1;
        let end = start + end_of_quoted(&rest[start..], *quote, escapes);
        return Some((start..end, if bond == Bond::Flag { Bond::Flag } else { Bond::Sure }));
    }
    let is_any_text = bond == Bond::Line && matches!(kind, Kind::Password | Kind::Secret);
    let text = &rest[start..];
    let length = if is_any_text { end_of_plain(text) } else { end_of_word(text, kind) };
    (length > 0).then_some((start..start + length, bond))
}

/// The end of a plain value of YAML: that of the line, or a comment.
fn end_of_plain(text: &[u8]) -> usize {
    let line = text.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(text.len());
    let comment = text[..line].windows(2).position(|pair| pair == b" #").unwrap_or(line);
    text[..comment].trim_ascii_end().len()
}

/// The end of a word, without what belongs to the text around it. Only people put commas into
/// secrets.
fn end_of_word(text: &[u8], kind: Kind) -> usize {
    let is_made = matches!(kind, Kind::Token | Kind::Pair);
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'&' | b'<' | b'\\')
            || is_made && matches!(byte, b',' | b';')
    };
    let word = &text[..text.iter().position(ends).unwrap_or(text.len())];
    let word = &word[..before_next_pair(word)];
    word.iter().rposition(|byte| !b",;)]}".contains(byte)).map_or(0, |last| last + 1)
}

/// Where the quote ends that began with so many backslashes in front; at the end of the line where
/// it does not.
fn end_of_quoted(text: &[u8], quote: u8, escapes: usize) -> usize {
    let mut backslashes = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\\' => backslashes += 1,
            byte if *byte == quote && backslashes <= escapes => return at - backslashes,
            b'\n' => return at,
            _ => backslashes = 0,
        }
    }
    text.len()
}

/// The part of a word in front of the next name: `a,user=b` is two values, and `a,b` is one.
fn before_next_pair(word: &[u8]) -> usize {
    let next = |at: usize| {
        let name =
            word[at + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte)).count();
        name > 0 && matches!(word.get(at + 1 + name), Some(b'=' | b':'))
    };
    let marks = word.iter().enumerate().filter(|(_, byte)| matches!(byte, b',' | b';')).take(16);
    marks.map(|(at, _)| at).find(|at| next(*at)).unwrap_or(word.len())
}

fn is_secret(kind: Kind, bond: Bond, value: &[u8]) -> bool {
    if is_placeholder(value) || is_path(value) {
        return false;
    }
    match (kind, bond) {
        (Kind::Pair, _) => value.len() >= 8 && is_pair_in_base64(value),
        (Kind::Token, _) => is_token(value),
        (_, Bond::Sentence) => value.len() >= 5 && looks_random(value),
        // What a manual has behind a flag: `--password FILE`, `--password is`.
        (_, Bond::Flag) => {
            let of_one_case = |lower: bool| {
                value
                    .iter()
                    .all(|byte| *byte == b'_' || byte.is_ascii_alphabetic() && byte.is_ascii_lowercase() == lower)
            };
            value[0] != b'-' && !of_one_case(true) && !of_one_case(false)
        }
        (Kind::Secret, _) => !is_object(value),
        (Kind::Password, _) => true,
    }
}

/// What a machine makes: long, with letters and digits, and no path.
fn is_token(value: &[u8]) -> bool {
    let plain = value.iter().all(u8::is_ascii_graphic);
    value.len() >= 8 && plain && looks_random(value) && !is_path(value) && !is_object(value)
}

/// The name of an object of Kubernetes with its namespace.
fn is_object(value: &[u8]) -> bool {
    let label = |part: &[u8]| {
        let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        !part.is_empty() && part.iter().all(inner)
    };
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'/').collect();
    matches!(parts.as_slice(), [namespace, name] if label(namespace) && label(name))
}

fn is_path(value: &[u8]) -> bool {
    value.starts_with(b"/") || value.starts_with(b"./") || value.starts_with(b"../") || value.starts_with(b"~/")
}

/// What stands where a secret would be.
fn is_placeholder(value: &[u8]) -> bool {
    const WORDS: [&str; 20] = [
        "null",
        "nil",
        "none",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "empty",
        "unset",
        "unknown",
        "undefined",
        "redacted",
        "required",
        "optional",
        "string",
        "not",
        "(sensitive",
        "(known",
    ];
    let value = value.trim_ascii();
    let is_within = |start: &[u8], end: &[u8]| value.starts_with(start) && value.ends_with(end);
    let is_variable = || matches!(value, [b'$', b'{' | b'(' | b'A'..=b'Z' | b'_', ..] | [b'%', b'(', ..] | [b'%', _]);
    !value.iter().any(u8::is_ascii_alphanumeric)
        // The bracket at its end may be taken for one of the text around it.
        || value.starts_with(&REMOVED[..REMOVED.len() - 1])
        || value.starts_with(b"\\u003c")
        || value.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'-'))
        || is_variable()
        || is_within(b"{{", b"}}")
        || is_within(b"<", b">")
        || is_within(b"(", b")")
        || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}
