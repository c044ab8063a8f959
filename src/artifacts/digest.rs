//! A sha256 as a value: parsed strictly, printed as lower-case hex, computed while bytes pass by.
//!
//! It knows nothing of caches and sources; whether a digest is the right one is decided by its
//! callers.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::Result;

/// The sha256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of everything that a reader gives.
    pub fn of_reader(reader: &mut dyn Read) -> io::Result<Self> {
        let mut hasher = Hasher::new(io::sink());
        let mut buffer = vec![0; 1 << 20];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finish().1),
                Ok(count) => hasher.write_all(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The digest of a file's bytes.
    pub fn of_file(path: &Path) -> Result<Self> {
        Ok(Self::of_reader(&mut fs_err::File::open(path)?)?)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}

/// A text that is not a sha256.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sha256: 64 lower-case hexadecimal digits")]
pub struct NotADigest(String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let mut bytes = [0; 32];
        // The file name in the cache is this text, so one digest must have one spelling.
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) if lower => Ok(Self(bytes)),
            _ => Err(NotADigest(text.to_owned())),
        }
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A writer that hashes and counts what passes through it.
pub(super) struct Hasher<W> {
    inner: W,
    hash: Sha256,
    count: u64,
}

impl<W: Write> Hasher<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new(), count: 0 }
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Hashes and counts bytes that were written earlier.
    pub(super) fn take_in(&mut self, earlier: &mut dyn Read) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 18];
        loop {
            match earlier.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    self.hash.update(&buffer[..count]);
                    self.count += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn finish(self) -> (W, Digest) {
        (self.inner, Digest(self.hash.finalize().into()))
    }
}

impl<W: Write> Write for Hasher<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn has_one_spelling() {
        assert_eq!(EMPTY.parse::<Digest>().unwrap().to_string(), EMPTY);
        for wrong in [EMPTY.to_uppercase(), EMPTY[1..].to_owned(), String::new(), "g".repeat(64)] {
            assert_eq!(wrong.parse::<Digest>(), Err(NotADigest(wrong)));
        }
    }

    #[test]
    fn is_the_same_whichever_way_the_bytes_come() {
        let bytes = vec![7; 3 << 20];
        let mut hasher = Hasher::new(Vec::new());
        hasher.write_all(&bytes).unwrap();
        assert_eq!(hasher.count(), bytes.len() as u64);
        let (written, digest) = hasher.finish();
        assert_eq!(written, bytes);
        assert_eq!(digest, Digest::of(&bytes));
        assert_eq!(digest, Digest::of_reader(&mut &bytes[..]).unwrap());
    }
}
