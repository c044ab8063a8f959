//! Where something is found in bytes, and what stands there afterwards.

use std::ops::Range;

/// What stands in place of a secret.
pub(super) const REMOVED: &[u8] = b"[removed]";

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Where.
    pub range: Range<usize>,
    /// Which one, without a byte of it: the name of a known one, or what it looks like.
    pub what: String,
}

impl Match {
    pub(super) fn new(range: Range<usize>, what: impl Into<String>) -> Self {
        Self { range, what: what.into() }
    }
}

/// A pattern over bytes: classes mean ASCII.
#[expect(clippy::unwrap_used, reason = "patterns are constants of this module, and its tests use all of them")]
pub(super) fn pattern(text: &str) -> regex::bytes::Regex {
    regex::bytes::RegexBuilder::new(text).unicode(false).build().unwrap()
}
