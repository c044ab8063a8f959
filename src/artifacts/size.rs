//! How large a file may be, before its first byte is read.

use crate::{Error, Result};

/// How many bytes a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// This many, as a lock file says.
    Exactly(u64),
    /// Up to this many, where only a digest is known, or nothing at all.
    AtMost(u64),
}

impl Size {
    /// The most bytes that are read.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self {
            Self::Exactly(bytes) | Self::AtMost(bytes) => bytes,
        }
    }

    /// An error when a source announces a file that cannot be the right one.
    pub(super) fn require(self, place: &str, announced: u64) -> Result<()> {
        let message = match self {
            Self::Exactly(bytes) if announced != bytes => {
                format!("{place} has {announced} bytes and not the {bytes} that it must have; it was not read")
            }
            Self::AtMost(bytes) if announced > bytes => {
                format!("{place} has {announced} bytes, and at most {bytes} are taken; it was not read")
            }
            _ => return Ok(()),
        };
        Err(Error::permanent(message))
    }
}
