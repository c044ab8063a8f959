//! The forms in which the same bytes can stand in a text, and the runs of a text that may be such a form. Pure.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose::STANDARD_NO_PAD};

/// Takes what others refuse: no padding, and bits behind the end.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// Shorter runs say nothing.
const SHORTEST_RUN: usize = 20;
/// Lines of wrapped base64 are at least this long, but for the last one.
const WRAPPED: usize = 60;

/// The base64 of these bytes as it looks inside of longer data, for each of the three places where they can begin in a group.
pub(super) fn base64_inside(bytes: &[u8]) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let mut padded = vec![0; before];
        padded.extend(bytes);
        let text = STANDARD_NO_PAD.encode(&padded);
        // What the neighbours have a part in is cut off: in front, and behind where a group is not whole.
        let start = [0, 2, 3][before];
        let end = text.len() - usize::from(padded.len() % 3 != 0);
        text.get(start..end).unwrap_or_default().to_owned()
    })
}

/// The base64 for addresses and file names.
pub(super) fn url_safe(text: &str) -> String {
    text.replace('+', "-").replace('/', "_")
}

/// With every byte that is no letter, digit or `-._~` as `%XX`.
pub(super) fn percent(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    bytes.iter().fold(String::new(), |text, byte| {
        if plain(*byte) { text + &char::from(*byte).to_string() } else { text + &format!("%{byte:02X}") }
    })
}

/// Inside of a JSON string.
pub(super) fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned()
}

/// A letter of base64 in either alphabet.
pub(super) const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// A letter of base64, or what ends it.
pub(super) const fn is_word(byte: u8) -> bool {
    is_letter(byte) || byte == b'='
}

/// The runs of letters that may be base64 or hexadecimal; lines of wrapped base64 are one run.
pub(super) fn runs(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_letter(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        let mut line = at;
        loop {
            while at < bytes.len() && is_letter(bytes[at]) {
                at += 1;
            }
            let end_of_line = if at - line >= WRAPPED { line_break(&bytes[at..]) } else { 0 };
            if end_of_line == 0 || !bytes.get(at + end_of_line).copied().is_some_and(is_letter) {
                break;
            }
            at += end_of_line;
            line = at;
        }
        while at < bytes.len() && bytes[at] == b'=' {
            at += 1;
        }
        if at - start >= SHORTEST_RUN {
            found.push(start..at);
        }
    }
    found
}

/// How long the end of a line is here, also one that JSON has escaped; 0 where there is none.
fn line_break(bytes: &[u8]) -> usize {
    let ends: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];
    ends.into_iter().find(|end| bytes.starts_with(end)).map_or(0, <[u8]>::len)
}

/// What a run may stand for: its base64 from each of the four letters of a group, and its hexadecimal from both digits of a pair.
pub(super) fn readings(run: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(run).replace("\\r", "").replace("\\n", "");
    let mut letters: Vec<u8> = text.bytes().filter(|byte| is_letter(*byte)).collect();
    let mut readings = Vec::new();
    if letters.iter().all(u8::is_ascii_hexdigit) {
        let even = |from: usize| letters.get(from..from + (letters.len() - from) / 2 * 2).unwrap_or_default();
        readings.extend([0, 1].into_iter().filter_map(|from| hex::decode(even(from)).ok()));
    }
    for letter in &mut letters {
        *letter = match *letter {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
    }
    for from in 0..4.min(letters.len()) {
        let rest = &letters[from..];
        // One letter alone behind the last group stands for nothing.
        let rest = if rest.len() % 4 == 1 { &rest[..rest.len() - 1] } else { rest };
        readings.extend(LENIENT.decode(rest).ok());
    }
    readings
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    proptest::proptest! {
        #[test]
        fn base64_inside_is_inside_wherever_it_begins(
            before in proptest::collection::vec(proptest::num::u8::ANY, 0..7),
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 6..40),
            after in proptest::collection::vec(proptest::num::u8::ANY, 0..7),
        ) {
            let all = [before.clone(), bytes.clone(), after].concat();
            let text = STANDARD_NO_PAD.encode(&all);
            let inside = &base64_inside(&bytes)[before.len() % 3];
            proptest::prop_assert!(text.contains(inside), "{text} {inside}");
            // And what is read of the whole run has the bytes in it.
            if text.len() >= SHORTEST_RUN {
                let found = runs(text.as_bytes());
                let read = readings(&text.as_bytes()[found[0].clone()]);
                proptest::prop_assert!(read.iter().any(|read| read.windows(bytes.len()).any(|part| part == bytes)));
            }
        }
    }

    #[test]
    fn wrapped_lines_are_one_run() {
        let text = format!("key: {}\n{}\nend of it", "A".repeat(76), "B".repeat(30));
        assert_eq!(runs(text.as_bytes()).first(), Some(&(5..5 + 76 + 1 + 30)));
        let escaped = format!("\"{}\\n{}==\\n\"", "A".repeat(64), "B".repeat(30));
        assert_eq!(runs(escaped.as_bytes()).first(), Some(&(1..1 + 64 + 2 + 30 + 2)));
    }

    #[test]
    fn hexadecimal_is_read() {
        assert!(readings(b"68756e7465723268756e74657232").contains(&b"hunter2hunter2".to_vec()));
        assert_eq!(percent(b"a/b c"), "a%2Fb%20c");
        assert_eq!(json("a\"\n"), "a\\\"\\n");
        assert!(LENIENT.decode("aGk").unwrap().starts_with(b"hi"));
    }
}
