//! Finds secrets in texts: the known ones in every usual form, whole and in parts, and what looks like one whoever made it. Pure.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::encoding::{self, is_word};
use super::secrets::{Known, Secret};
use crate::error::{Context as _, Result};

/// What stands in place of a secret.
const REMOVED: &[u8] = b"[removed]";
/// A shorter secret is found in too many texts that have nothing to do with it.
const SHORTEST: usize = 6;
/// The parts of a key that are searched for: so many bytes, letters of base64, digits.
const PART: [usize; 3] = [12, 16, 24];
/// How deep base64 in base64 is read.
const DEPTH: usize = 2;
/// A PEM block is not longer.
const LONGEST_PEM: usize = 16 << 10;
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const PRIVATE: &[u8] = b"PRIVATE KEY-----";

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) range: Range<usize>,
    /// Which one, without a byte of it.
    pub(super) what: String,
}

/// Knows what must not be seen.
pub(super) struct Shield {
    automaton: AhoCorasick,
    /// For each pattern of the automaton: whose it is, and whether it is only a part.
    patterns: Vec<(String, bool)>,
    unsearchable: usize,
}

impl Shield {
    /// For these secrets; what is public as well is none.
    pub(super) fn new(known: &Known) -> Result<Self> {
        let public = Public::of(known);
        let mut seen = BTreeSet::new();
        let (mut needles, mut patterns, mut unsearchable) = (Vec::new(), Vec::new(), 0);
        for secret in &known.secrets {
            if secret.bytes.len() < SHORTEST {
                unsearchable += 1;
                continue;
            }
            for (needle, is_part) in forms(secret, &public) {
                if seen.insert(needle.clone()) {
                    needles.push(needle);
                    patterns.push((secret.name.clone(), is_part));
                }
            }
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&needles);
        Ok(Self { automaton: automaton.context("too many secrets to search for")?, patterns, unsearchable })
    }

    /// How many secrets are too short to be searched for.
    pub(super) const fn unsearchable(&self) -> usize {
        self.unsearchable
    }

    /// Every secret in a text, in order and without overlap.
    pub(super) fn find(&self, bytes: &[u8]) -> Vec<Hit> {
        let mut hits = self.look(bytes, DEPTH);
        hits.sort_by_key(|hit| (hit.range.start, hit.range.end));
        let mut merged: Vec<Hit> = Vec::new();
        for hit in hits {
            match merged.last_mut() {
                Some(last) if hit.range.start < last.range.end => last.range.end = last.range.end.max(hit.range.end),
                _ => merged.push(hit),
            }
        }
        merged
    }

    /// The text without its secrets, and how many there were.
    pub(super) fn clean(&self, mut bytes: Vec<u8>) -> (Vec<u8>, usize) {
        let mut removed = 0;
        // Once more: what moved together may be a secret again. Whatever is left after that stops the archive.
        for _ in 0..3 {
            let hits = self.find(&bytes);
            if hits.is_empty() {
                break;
            }
            removed += hits.len();
            let mut clean = Vec::with_capacity(bytes.len());
            let mut from = 0;
            for hit in hits {
                clean.extend_from_slice(&bytes[from..hit.range.start]);
                clean.extend_from_slice(REMOVED);
                from = hit.range.end;
            }
            clean.extend_from_slice(&bytes[from..]);
            bytes = clean;
        }
        (bytes, removed)
    }

    /// The same for a text.
    pub(super) fn clean_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.clean(text.as_bytes().to_vec()).0).into_owned()
    }

    fn look(&self, bytes: &[u8], depth: usize) -> Vec<Hit> {
        let mut hits = self.known(bytes);
        hits.extend(private_keys(bytes));
        hits.extend(tokens(bytes));
        if depth > 0 {
            for run in encoding::runs(bytes) {
                let readings = encoding::readings(&bytes[run.clone()]);
                let inner = readings.iter().find_map(|reading| self.look(reading, depth - 1).into_iter().next());
                hits.extend(inner.map(|inner| Hit { range: run, what: inner.what }));
            }
        }
        hits
    }

    fn known(&self, bytes: &[u8]) -> Vec<Hit> {
        let hit = |found: aho_corasick::Match| {
            let (name, is_part) = &self.patterns[found.pattern().as_usize()];
            let range = if *is_part { whole_word(bytes, found.range()) } else { found.range() };
            Hit { range, what: name.clone() }
        };
        self.automaton.find_iter(bytes).map(hit).collect()
    }
}

/// The word around a part of a key: the rest of it is the key as well.
fn whole_word(bytes: &[u8], part: Range<usize>) -> Range<usize> {
    let before = bytes[..part.start].iter().rev().take_while(|byte| is_word(**byte)).count();
    let after = bytes[part.end..].iter().take_while(|byte| is_word(**byte)).count();
    part.start - before..part.end + after
}

/// The forms of what is public, to tell parts of keys from them: a private key has the public one inside.
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
    if secret.is_key {
        forms.extend(parts(bytes, &inside, public).into_iter().map(|part| (part, true)));
    }
    forms
}

fn parts(bytes: &[u8], inside: &[String; 3], public: &Public) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    for part in bytes.chunks_exact(PART[0]).filter(|part| is_random(part) && !public.has(part)) {
        parts.push(part.to_vec());
        parts.push(hex::encode(part).into_bytes());
        parts.push(hex::encode_upper(part).into_bytes());
    }
    for text in inside {
        for part in text.as_bytes().chunks_exact(PART[1]) {
            let known = str::from_utf8(part).is_ok_and(|part| public.base64.contains(part));
            if is_random(part) && !known {
                parts.push(part.to_vec());
                parts.push(encoding::url_safe(&String::from_utf8_lossy(part)).into_bytes());
            }
        }
    }
    debug_assert!(parts.iter().all(|part| PART.contains(&part.len())));
    parts
}

/// Whether a part has enough in it to be known again: not all zeros, not all `A`.
fn is_random(part: &[u8]) -> bool {
    part.iter().collect::<BTreeSet<_>>().len() >= 7
}

/// Private keys in PEM, whoever's they are; also without their beginning or their end.
fn private_keys(bytes: &[u8]) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut from = 0;
    while let Some(at) = position(&bytes[from..], PRIVATE) {
        let (at, after) = (from + at, from + at + PRIVATE.len());
        let near = at.saturating_sub(40);
        let head = &bytes[near..at];
        let begin = last_position(head, BEGIN).map(|begin| near + begin);
        let end = last_position(head, END).map(|end| near + end);
        let range = match (begin, end) {
            // Its beginning is not here, so it is in front of this end.
            (begin, Some(end)) if begin.is_none_or(|begin| begin < end) => end.saturating_sub(LONGEST_PEM / 8)..after,
            (Some(begin), _) => begin..end_of_pem(bytes, after),
            (None, _) => at..after,
        };
        from = range.end.max(after);
        hits.push(Hit { range, what: "a private key in PEM".to_owned() });
    }
    hits
}

fn end_of_pem(bytes: &[u8], from: usize) -> usize {
    let limit = bytes.len().min(from + LONGEST_PEM);
    let end = position(&bytes[from..limit], END).and_then(|at| {
        let behind = from + at + END.len();
        position(&bytes[behind..bytes.len().min(behind + 60)], b"-----").map(|at| behind + at + 5)
    });
    end.unwrap_or_else(|| limit.min(from + LONGEST_PEM / 4))
}

/// Tokens by their form: JSON web tokens, bootstrap tokens, and what stands behind `Bearer`.
fn tokens(bytes: &[u8]) -> Vec<Hit> {
    let in_token = |byte: &u8| is_word(*byte) || matches!(byte, b'.' | b'~');
    let mut hits = Vec::new();
    let mut at = 0;
    let mut bearer = false;
    while at < bytes.len() {
        if !in_token(&bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        at += bytes[at..].iter().take_while(|byte| in_token(byte)).count();
        let word = &bytes[start..at];
        let behind_bearer = std::mem::replace(&mut bearer, word.eq_ignore_ascii_case(b"bearer"));
        if behind_bearer && word.len() >= 12 {
            hits.push(Hit { range: start..at, what: "a bearer token".to_owned() });
        } else if let Some((range, what)) = token_in(word) {
            hits.push(Hit { range: start + range.start..start + range.end, what: what.to_owned() });
        }
    }
    hits
}

fn token_in(word: &[u8]) -> Option<(Range<usize>, &'static str)> {
    if let Some(at) = position(word, b"eyJ") {
        let parts: Vec<&[u8]> = word[at..].split(|byte| *byte == b'.').collect();
        if parts.len() >= 3 && parts[..3].iter().all(|part| part.len() >= 8) {
            return Some((at..word.len(), "a JSON web token"));
        }
    }
    // `id=token`, `token=…`: the form stands alone between anything that is no letter of it.
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut from = 0;
    while let Some(dot) = word[from..].iter().position(|byte| *byte == b'.').map(|dot| from + dot) {
        let id = word[..dot].iter().rev().take_while(|byte| letter(**byte)).count();
        let secret = word[dot + 1..].iter().take_while(|byte| letter(**byte)).count();
        if id == 6 && secret == 16 {
            return Some((dot - id..dot + 1 + secret, "a bootstrap token"));
        }
        from = dot + 1;
    }
    None
}

fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn last_position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).rposition(|window| window == needle)
}
