//! Takes secrets out of texts: the known ones in every usual form, whole and in parts, and what
//! looks like one.
//!
//! `matching` is what is found. `known` searches for what is known, `patterns` and `pairs` for
//! what looks like a secret, `pem` for private keys; `encoding` reads base64 and hexadecimal, so
//! that all of them see what is inside. Pure, and in time linear in the text: it reads no file and
//! knows no cluster.

mod encoding;
mod known;
mod matching;
mod pairs;
mod patterns;
mod pem;

use std::borrow::Cow;

use crate::error::Result;

pub(crate) use known::Known;
pub(crate) use pairs::is_sensitive;

use known::Needles;
use matching::{Match, REMOVED};

/// How deep base64 in base64 is read.
const DEPTH: usize = 2;
/// What is read of runs of base64 is searched in pieces of about this size.
const BATCH: usize = 1 << 20;

/// Knows what must not be seen.
pub(crate) struct Redactor {
    needles: Needles,
}

impl Redactor {
    /// For these secrets; what is public as well is none.
    pub(crate) fn new(known: &Known) -> Result<Self> {
        Ok(Self { needles: Needles::new(known)? })
    }

    /// How many secrets are too short to be searched for.
    #[must_use]
    pub(crate) const fn unsearchable(&self) -> usize {
        self.needles.unsearchable
    }

    /// Every secret in a text, in order and without overlap.
    #[must_use]
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<Match> {
        let mut hits = self.look(bytes);
        hits.extend(self.look_inside(bytes, DEPTH));
        merge(bytes, hits)
    }

    /// The text without its secrets, and how many there were.
    #[must_use]
    pub(crate) fn clean(&self, mut bytes: Vec<u8>) -> (Vec<u8>, usize) {
        let mut removed = 0;
        // Again: what moved together may be a secret again.
        for _ in 0..5 {
            let hits = self.find(&bytes);
            if hits.is_empty() {
                break;
            }
            removed += hits.len();
            bytes = without(&bytes, &hits);
        }
        (bytes, removed)
    }

    /// The same for a text.
    #[must_use]
    pub(crate) fn clean_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.clean(text.as_bytes().to_vec()).0).into_owned()
    }

    fn look(&self, bytes: &[u8]) -> Vec<Match> {
        let mut hits = self.needles.find(bytes);
        hits.extend(look_like_secrets(bytes));
        hits
    }

    /// Runs of base64 or hexadecimal with a secret inside.
    fn look_inside(&self, bytes: &[u8], depth: usize) -> Vec<Match> {
        let mut hits = Vec::new();
        let mut batch = encoding::Batch::default();
        for run in encoding::runs(bytes) {
            if batch.add(bytes, &run) {
                hits.push(Match::new(run, "a private key"));
            }
            if batch.text().len() >= BATCH {
                hits.extend(self.look_at(&std::mem::take(&mut batch), depth));
            }
        }
        hits.extend(self.look_at(&batch, depth));
        hits
    }

    fn look_at(&self, batch: &encoding::Batch, depth: usize) -> Vec<Match> {
        if batch.text().is_empty() {
            return Vec::new();
        }
        let mut inner = self.look(batch.text());
        if depth > 1 {
            inner.extend(self.look_inside(batch.text(), depth - 1));
        }
        inner.into_iter().map(|hit| Match::new(batch.run_at(hit.range.start), hit.what)).collect()
    }
}

/// One line of a log without what looks like a secret. Nothing is known here, and base64 is not
/// read: this is for every line that a program says while it runs.
#[must_use]
pub(crate) fn clean_line(line: &str) -> Cow<'_, str> {
    let hits = merge(line.as_bytes(), look_like_secrets(line.as_bytes()));
    if hits.is_empty() {
        return Cow::Borrowed(line);
    }
    Cow::Owned(String::from_utf8_lossy(&without(line.as_bytes(), &hits)).into_owned())
}

fn look_like_secrets(bytes: &[u8]) -> Vec<Match> {
    [pem::find(bytes), patterns::find(bytes), pairs::find(bytes)].concat()
}

/// In order, without overlap, and without what stands in place of a secret already.
fn merge(bytes: &[u8], mut hits: Vec<Match>) -> Vec<Match> {
    hits.retain(|hit| &bytes[hit.range.clone()] != REMOVED);
    hits.sort_by_key(|hit| (hit.range.start, hit.range.end));
    let mut merged: Vec<Match> = Vec::new();
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.range.start < last.range.end => last.range.end = last.range.end.max(hit.range.end),
            _ => merged.push(hit),
        }
    }
    merged
}

fn without(bytes: &[u8], hits: &[Match]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for hit in hits {
        clean.extend_from_slice(&bytes[from..hit.range.start]);
        clean.extend_from_slice(REMOVED);
        from = hit.range.end;
    }
    clean.extend_from_slice(&bytes[from..]);
    clean
}

#[cfg(test)]
mod tests;
