//! A piece of a text that is held once: names and prompts are pieces of the files that they were
//! read from.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A piece of a shared text; reads as a `str`, and costs no memory of its own.
#[derive(Clone)]
pub struct Excerpt {
    whole: Arc<String>,
    start: u32,
    end: u32,
}

impl Excerpt {
    /// The piece at these bytes; what lies behind 4 GiB is held as a text of its own.
    pub(crate) fn new(whole: &Arc<String>, piece: Range<usize>) -> Self {
        match (u32::try_from(piece.start), u32::try_from(piece.end)) {
            (Ok(start), Ok(end)) => Self { whole: Arc::clone(whole), start, end },
            _ => whole.get(piece).unwrap_or_default().into(),
        }
    }

    /// The text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        self.whole.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The same as bytes, which need no look at where characters start.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.whole.as_bytes().get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl From<String> for Excerpt {
    fn from(text: String) -> Self {
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        Self { whole: Arc::new(text), start: 0, end }
    }
}

impl From<&str> for Excerpt {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Deref for Excerpt {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Excerpt {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Excerpt {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Excerpt {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Excerpt {}

impl Hash for Excerpt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_reads_as_what_it_says_and_outlives_the_file() {
        let whole = Arc::new("config NAME\n".to_owned());
        let name = Excerpt::new(&whole, 7..11);
        drop(whole);
        assert_eq!((&*name, name.as_bytes()), ("NAME", &b"NAME"[..]));
        assert_eq!(name, Excerpt::from("NAME"));
        assert_eq!(format!("{name} {name:?}"), "NAME \"NAME\"");
    }
}
