//! Known secrets, in every usual form, whole, in halves, and across the ends of lines.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::bytes::Regex;
use zeroize::Zeroizing;

use super::encoding::{self, is_word};
use super::matching::{Match, pattern};
use crate::error::{Context as _, Result};

/// A shorter secret is found in too many texts that have nothing to do with it.
const SHORTEST: usize = 6;
/// A shorter one may come to be where two lines meet.
const SHORTEST_OVER_LINES: usize = 12;
/// Parts of a secret that are searched for are as long as half of it, in bytes, within these
/// bounds.
const PART: [usize; 2] = [8, 12];
/// The same in letters of base64.
const LETTERS: usize = 16;

/// The end of a line, also one that JSON has escaped, and what a log or an indentation puts in
/// front of the next one.
static LINE_END: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:\r\n|\n|\\r\\n|\\n)(?:\d\d:\d\d:\d\d\.\d{3} [|!] )?[ \t]*"));

/// One secret.
pub(crate) struct Secret {
    /// Where it is from: a file or a setting.
    pub name: String,
    /// The secret.
    pub bytes: Zeroizing<Vec<u8>>,
    /// Whether a part of it is a secret as well: keys are random all through.
    pub is_key: bool,
}

/// All secrets, and all that is public.
#[derive(Default)]
pub(crate) struct Known {
    /// What must not be seen.
    pub secrets: Vec<Secret>,
    /// What may: certificates, public keys.
    pub public: Vec<Vec<u8>>,
}

impl Known {
    /// One more secret, unless it is known already. Of a bootstrap token the second half is one by
    /// itself.
    pub(crate) fn add(&mut self, name: &str, bytes: Vec<u8>, is_key: bool) {
        let bytes = Zeroizing::new(bytes);
        if bytes.is_empty() || self.secrets.iter().any(|known| known.bytes == bytes) {
            return;
        }
        let half = second_half(&bytes).map(<[u8]>::to_vec);
        self.secrets.push(Secret { name: name.to_owned(), bytes, is_key });
        if let Some(half) = half {
            self.add(name, half, false);
        }
    }
}

/// The secret half of a bootstrap token: `[a-z0-9]{6}.[a-z0-9]{16}`.
fn second_half(token: &[u8]) -> Option<&[u8]> {
    let letters = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let (id, secret) = (token.get(..6)?, token.get(7..)?);
    (token[6] == b'.' && secret.len() == 16 && letters(id) && letters(secret)).then_some(secret)
}

/// What is searched for.
pub(super) struct Needles {
    automaton: AhoCorasick,
    /// For each needle the name of its secret, and whether it is only a part.
    names: Vec<(String, bool)>,
    pub(super) unsearchable: usize,
}

impl Needles {
    pub(super) fn new(known: &Known) -> Result<Self> {
        let public = Public::of(known);
        let mut seen = BTreeSet::new();
        let (mut needles, mut names, mut unsearchable) = (Vec::new(), Vec::new(), 0);
        for secret in &known.secrets {
            if secret.bytes.len() < SHORTEST {
                unsearchable += 1;
                continue;
            }
            for (needle, is_part) in forms(secret, &public) {
                if seen.insert(needle.clone()) {
                    needles.push(needle);
                    names.push((secret.name.clone(), is_part));
                }
            }
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&needles);
        Ok(Self { automaton: automaton.context("too many secrets to search for")?, names, unsearchable })
    }

    /// What of them is in a text.
    pub(super) fn find(&self, bytes: &[u8]) -> Vec<Match> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let mut hits: Vec<Match> = Vec::new();
        for found in self.automaton.find_iter(bytes) {
            let (name, is_part) = &self.names[found.pattern().as_usize()];
            // Many parts may be in one word, and one look at its ends is enough.
            if hits.last().is_some_and(|last| found.end() <= last.range.end) {
                continue;
            }
            let range = if *is_part { whole_word(bytes, found.range()) } else { found.range() };
            hits.push(Match::new(range, name.as_str()));
        }
        hits.extend(self.find_over_lines(bytes));
        hits
    }

    /// What only shows when lines are put together.
    fn find_over_lines(&self, bytes: &[u8]) -> Vec<Match> {
        let joined = Joined::of(bytes);
        if joined.seams.is_empty() {
            return Vec::new();
        }
        let found = self.automaton.find_iter(&joined.text).filter(|found| found.len() >= SHORTEST_OVER_LINES);
        let hit = |found: aho_corasick::Match| {
            let range = joined.original(found.range())?;
            Some(Match::new(range, self.names[found.pattern().as_usize()].0.as_str()))
        };
        found.filter_map(hit).collect()
    }
}

/// A text without the ends of its lines.
struct Joined {
    text: Vec<u8>,
    /// Where something was left out: the place in this text, and how much was left out up to there.
    seams: Vec<(usize, usize)>,
}

impl Joined {
    fn of(bytes: &[u8]) -> Self {
        let (mut text, mut seams) = (Vec::with_capacity(bytes.len()), Vec::new());
        let mut from = 0;
        for end in LINE_END.find_iter(bytes) {
            text.extend_from_slice(&bytes[from..end.start()]);
            from = end.end();
            seams.push((text.len(), from - text.len()));
        }
        text.extend_from_slice(&bytes[from..]);
        Self { text, seams }
    }

    /// The place in the whole text; none where no end of a line is inside.
    fn original(&self, range: Range<usize>) -> Option<Range<usize>> {
        let seams_before = |place: usize| self.seams.partition_point(|(seam, _)| *seam <= place);
        let left_out = |count: usize| count.checked_sub(1).map_or(0, |last| self.seams[last].1);
        let (first, last) = (seams_before(range.start), seams_before(range.end - 1));
        (first < last).then(|| range.start + left_out(first)..range.end + left_out(last))
    }
}

/// The word around a part of a key: the rest of it is the key as well.
fn whole_word(bytes: &[u8], part: Range<usize>) -> Range<usize> {
    let before = bytes[..part.start].iter().rev().take_while(|byte| is_word(**byte)).count();
    let after = bytes[part.end..].iter().take_while(|byte| is_word(**byte)).count();
    part.start - before..part.end + after
}

/// The forms of what is public, to tell parts of keys from them: a private key has the public one
/// inside.
struct Public {
    bytes: Vec<Vec<u8>>,
    base64: String,
}

impl Public {
    fn of(known: &Known) -> Self {
        let base64 =
            known.public.iter().flat_map(|bytes| encoding::base64_inside(bytes)).collect::<Vec<_>>().join("\n");
        Self { bytes: known.public.clone(), base64 }
    }

    fn has(&self, part: &[u8]) -> bool {
        self.bytes.iter().any(|bytes| bytes.windows(part.len()).any(|window| window == part))
    }
}

/// Every form of a secret that is searched for, and whether it is only a part of it.
fn forms(secret: &Secret, public: &Public) -> Vec<(Vec<u8>, bool)> {
    let bytes = secret.bytes.as_slice();
    let mut forms = vec![(bytes.to_vec(), false)];
    let mut whole = |text: String| forms.push((text.into_bytes(), false));
    whole(hex::encode(bytes));
    whole(hex::encode_upper(bytes));
    let inside = encoding::base64_inside(bytes);
    for text in &inside {
        whole(text.clone());
        whole(encoding::url_safe(text));
    }
    if let Ok(text) = str::from_utf8(bytes) {
        whole(encoding::percent(bytes));
        whole(encoding::json(text));
    }
    // A short text in base64 that is cut on both sides would be found everywhere.
    forms.retain(|(form, _)| form.len() >= SHORTEST);
    if secret.is_key || is_machine_made(bytes) {
        forms.extend(parts(bytes, &inside, public).into_iter().map(|part| (part, true)));
    }
    forms
}

/// Whether a machine made it: a part of a chosen password may be a word of any text.
fn is_machine_made(bytes: &[u8]) -> bool {
    let count = |kind: fn(&u8) -> bool| bytes.iter().filter(|byte| kind(byte)).count();
    let digits = count(u8::is_ascii_digit);
    bytes.len() >= 2 * PART[0]
        && bytes.iter().all(u8::is_ascii_graphic)
        && digits * 16 >= bytes.len()
        && count(u8::is_ascii_alphabetic) > 0
        && bytes.iter().collect::<BTreeSet<_>>().len() >= 10
}

/// Parts of which each half of the secret has one, from both ends; those that say something and are
/// not public.
fn parts(bytes: &[u8], inside: &[String; 3], public: &Public) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let size = (bytes.len() / 2).clamp(PART[0], PART[1]);
    for part in bytes.chunks_exact(size).chain(bytes.rchunks_exact(size)) {
        if is_random(part) && !public.has(part) {
            parts.push(part.to_vec());
            parts.push(hex::encode(part).into_bytes());
            parts.push(hex::encode_upper(part).into_bytes());
        }
    }
    for text in inside {
        for part in text.as_bytes().chunks_exact(LETTERS) {
            let known = str::from_utf8(part).is_ok_and(|part| public.base64.contains(part));
            if is_random(part) && !known {
                parts.push(part.to_vec());
                parts.push(encoding::url_safe(&String::from_utf8_lossy(part)).into_bytes());
            }
        }
    }
    parts
}

/// Whether a part has enough in it to be known again: not all zeros, not all `A`.
fn is_random(part: &[u8]) -> bool {
    part.iter().collect::<BTreeSet<_>>().len() >= 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_joined_lines_are_those_in_the_text() {
        let text = b"ab\ncd\r\n  ef\\n12:00:00.000 | gh";
        let joined = Joined::of(text);
        assert_eq!(joined.text, b"abcdefgh");
        let at = |from, to| joined.original(from..to).map(|range| String::from_utf8_lossy(&text[range]).into_owned());
        assert_eq!(at(0, 2), None);
        assert_eq!(at(2, 4), None);
        assert_eq!(at(1, 3).as_deref(), Some("b\nc"));
        assert_eq!(at(3, 7).as_deref(), Some("d\r\n  ef\\n12:00:00.000 | g"));
        assert_eq!(at(6, 8), None);
    }
}
