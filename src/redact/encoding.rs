//! The forms in which the same bytes can stand in a text, and the runs of a text that may be such a
//! form. Pure.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose::STANDARD_NO_PAD};
use regex::bytes::Regex;

use super::matching::pattern;
use super::pem;

/// Takes what others refuse: no padding, and bits behind the end.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// Lines of wrapped base64 are at least 60 letters long, but for the last one; shorter runs than 20
/// letters say nothing.
static RUN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:[A-Za-z0-9+/_-]{60,}(?:\r\n|\n|\\r\\n|\\n))+[A-Za-z0-9+/_-]+=*|[A-Za-z0-9+/_-]{20,}=*")
});
/// The end of a line, also one that JSON has escaped.
static LINE_BREAK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\r|\n|\\r|\\n"));

/// The base64 of these bytes as it looks inside of longer data, for each of the three places where
/// they can begin in a group.
pub(super) fn base64_inside(bytes: &[u8]) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let mut padded = vec![0; before];
        padded.extend(bytes);
        let text = STANDARD_NO_PAD.encode(&padded);
        // What the neighbours have a part in is cut off: in front, and behind where a group is not
        // whole.
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
pub(super) fn runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    RUN.find_iter(bytes)
        .map(|found| without_next_word(bytes, found.range()))
        .filter(|run| may_be_encoded(&bytes[run.clone()]))
}

/// A run without its last line where that is the first word of something else.
fn without_next_word(bytes: &[u8], run: Range<usize>) -> Range<usize> {
    let Some(end) = LINE_BREAK.find_iter(&bytes[run.clone()]).last() else { return run };
    let line = &bytes[run.start + end.end()..run.end];
    let has = |kind: fn(&u8) -> bool| line.iter().any(kind);
    let is_encoded = line.ends_with(b"=") || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let ends_line = bytes.get(run.end).is_none_or(|next| b"\r\n\"'\\<".contains(next));
    if is_encoded || ends_line { run } else { run.start..run.start + end.start() }
}

/// Whether it has large and small letters, as base64 has, or is hexadecimal all through: paths and
/// names are neither.
fn may_be_encoded(run: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| run.iter().any(kind);
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) || run.iter().all(u8::is_ascii_hexdigit)
}

/// What many runs stand for, to be searched at once.
#[derive(Default)]
pub(super) struct Batch {
    text: Vec<u8>,
    /// Where each reading begins, and of which run it is.
    readings: Vec<(usize, Range<usize>)>,
}

impl Batch {
    /// Adds a run of this text: its base64 from each of the four letters of a group, and its
    /// hexadecimal from both digits of a pair. Whether it is itself a private key, which needs no
    /// further look.
    pub(super) fn add(&mut self, bytes: &[u8], run: &Range<usize>) -> bool {
        let mut letters = LINE_BREAK.replace_all(&bytes[run.clone()], b"".as_slice()).into_owned();
        letters.retain(|byte| is_letter(*byte));
        if letters.iter().all(u8::is_ascii_hexdigit) {
            for from in [0, 1] {
                let even = letters.get(from..from + (letters.len() - from) / 2 * 2).unwrap_or_default();
                let decoded = hex::decode(even).ok();
                if decoded.as_deref().is_some_and(pem::is_private_key) {
                    return true;
                }
                self.read(decoded, run);
            }
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
            let decoded = LENIENT.decode(rest).ok();
            if from == 0 && decoded.as_deref().is_some_and(pem::is_private_key) {
                return true;
            }
            self.read(decoded, run);
        }
        false
    }

    fn read(&mut self, reading: Option<Vec<u8>>, run: &Range<usize>) {
        let Some(reading) = reading else { return };
        self.readings.push((self.text.len(), run.clone()));
        self.text.extend_from_slice(&reading);
        // Nothing goes on from one to the next.
        self.text.extend_from_slice(&[0; 2]);
    }

    /// All readings, one after another.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The run behind a place of this text.
    pub(super) fn run_at(&self, place: usize) -> Range<usize> {
        let next = self.readings.partition_point(|(start, _)| *start <= place);
        next.checked_sub(1).map_or(0..0, |index| self.readings[index].1.clone())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    /// What all runs of a text stand for.
    fn read(text: &str) -> Vec<u8> {
        let mut batch = Batch::default();
        for run in RUN.find_iter(text.as_bytes()) {
            assert!(!batch.add(text.as_bytes(), &run.range()));
        }
        batch.text
    }

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
            if text.len() >= 20 && !pem::is_private_key(&all) {
                proptest::prop_assert!(read(&text).windows(bytes.len()).any(|part| part == bytes));
            }
        }
    }

    #[test]
    fn wrapped_lines_are_one_run() {
        let text = format!("key: {}\n{}\nend of it", "A".repeat(76), "B".repeat(30));
        let first = |text: &str| RUN.find(text.as_bytes()).map(|found| found.range());
        assert_eq!(first(&text), Some(5..5 + 76 + 1 + 30));
        let escaped = format!("\"{}\\n{}==\\n\"", "A".repeat(64), "B".repeat(30));
        assert_eq!(first(&escaped), Some(1..1 + 64 + 2 + 30 + 2));
    }

    #[test]
    fn names_and_paths_are_not_read() {
        let found = |text: &'static str| runs(text.as_bytes()).count();
        assert_eq!(found("/var/log/pods/kube-system_etcd-it-control-plane-0 and system_node-critical_priority"), 0);
        assert_eq!(found("c29tZSBzZWNyZXQgdGV4dA 9f86d081884c7d659a2feaa0c55ad015"), 2);
    }

    #[test]
    fn a_place_leads_back_to_its_run() {
        let text = "68756e7465723268756e7465 c29tZSBzZWNyZXQgdGV4dCBoZXJl";
        let mut batch = Batch::default();
        let all: Vec<_> = runs(text.as_bytes()).collect();
        for run in &all {
            assert!(!batch.add(text.as_bytes(), run));
        }
        let place = |word: &[u8]| batch.text().windows(word.len()).position(|part| part == word).unwrap();
        assert_eq!(batch.run_at(place(b"hunter2")), 0..24);
        assert_eq!(batch.run_at(place(b"some secret")), 25..text.len());
    }

    #[test]
    fn hexadecimal_is_read() {
        assert!(read("x 68756e7465723268756e74657232 y").starts_with(b"hunter2hunter2\0"));
        assert_eq!(percent(b"a/b c"), "a%2Fb%20c");
        assert_eq!(json("a\"\n"), "a\\\"\\n");
        assert!(LENIENT.decode("aGk").unwrap().starts_with(b"hi"));
    }
}
