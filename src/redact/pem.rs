//! Private keys: in PEM of every kind, also without their beginning or their end, and without any
//! armour. Pure.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::matching::{Match, pattern};

/// A block is not longer.
const LONGEST: usize = 16 << 10;
const WHAT: &str = "a private key";

/// What begins or ends a block; SSH2 has four dashes and blanks, forms on the web have `+` or `%20`
/// for a blank.
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    let blank = "(?:[ +]|%20)";
    let name = format!("(?:[A-Z0-9]+{blank}){{0,4}}PRIVATE{blank}KEY[A-Z +]{{0,8}}");
    pattern(&format!("-{{4,5}} ?(BEGIN|END){blank}{name}-{{4,5}}"))
});
/// What stands between a mark and a line, or two lines.
const BETWEEN: &str = r"(?:[\s|!>,]|\x22|\\+[nrt\x22]|\d\d:\d\d:\d\d\.\d{3} )";
/// The lines of a block from here on.
static BODY: LazyLock<Regex> = LazyLock::new(|| {
    let headers = format!(r"(?:{BETWEEN}*(?:Proc-Type|DEK-Info|Comment|Version): [^\r\n\\]*)*");
    let lines = format!("(?:{BETWEEN}*[A-Za-z0-9+/=]{{16,80}})*");
    let last = format!("(?:{BETWEEN}*[A-Za-z0-9+/]{{1,79}}={{1,2}})?");
    pattern(&format!("^{headers}{lines}{last}"))
});
/// The lines of a block up to here.
static BODY_BEFORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?:[A-Za-z0-9+/=]{{16,80}}{BETWEEN}+)*[A-Za-z0-9+/=]{{1,80}}{BETWEEN}*$")));
/// The private part of `PuTTY`'s own form.
static PUTTY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(Private-Lines: \d{1,4}(?:(?:\r?\n|\\n)[A-Za-z0-9+/=]{1,76})+)(?:\r?\n|\\n|$)"));

/// Every private key in a text.
pub(super) fn find(bytes: &[u8]) -> Vec<Match> {
    let mut hits: Vec<Match> =
        PUTTY.captures_iter(bytes).filter_map(|found| Some(Match::new(found.get(1)?.range(), WHAT))).collect();
    let mut marks = MARK.captures_iter(bytes).filter_map(|mark| {
        let begins = mark.get(1)?.as_bytes() == b"BEGIN";
        Some((mark.get(0)?.range(), begins))
    });
    let mut next = marks.next();
    let mut from = 0;
    while let Some((mark, begins)) = next {
        next = marks.next();
        let range = match &next {
            Some((end, false)) if begins && end.start - mark.end <= LONGEST => {
                let range = mark.start..end.end;
                next = marks.next();
                range
            }
            // Its end is not here: as far as it looks like a key.
            following if begins => {
                let limit = following.as_ref().map_or(bytes.len(), |(mark, _)| mark.start).min(mark.end + LONGEST);
                let body = BODY.find(&bytes[mark.end..limit]).map_or(0, |body| body.end());
                mark.start..mark.end + body
            }
            // Its beginning is not here.
            _ => {
                let window = from.max(mark.start.saturating_sub(LONGEST));
                let body =
                    BODY_BEFORE.find(&bytes[window..mark.start]).map_or(mark.start, |body| window + body.start());
                body..mark.end
            }
        };
        from = range.end;
        hits.push(Match::new(range, WHAT));
    }
    hits
}

/// Whether these bytes are a private key in DER or in OpenSSH's own form. In DER it begins with a
/// version; then comes in PKCS#8 the algorithm with its identifier, in PKCS#1 the modulus, a number
/// of 65 bytes and more, and in SEC 1 the key, a string of 28 to 66 bytes.
pub(super) fn is_private_key(bytes: &[u8]) -> bool {
    let is_one = |inner: &[u8]| {
        matches!(inner, [2, 1, 0 | 1, 0x30, _, 6, ..] | [2, 1, 0, 2, 0x81 | 0x82, ..] | [2, 1, 1, 4, 28..=66, ..])
    };
    bytes.starts_with(b"openssh-key-v1\0") || inside_of_sequence(bytes).is_some_and(is_one)
}

/// What a sequence in DER consists of.
fn inside_of_sequence(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [0x30, 0..=0x7f, inner @ ..] | [0x30, 0x81, _, inner @ ..] | [0x30, 0x82, _, _, inner @ ..] => Some(inner),
        _ => None,
    }
}
