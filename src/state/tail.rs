//! A file of lines that another process may be writing: read whole lines, and later those that came
//! since. Reads only.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use super::errors;
use crate::Result;

/// The file, and how far it has been read.
#[derive(Clone, Debug)]
pub struct Tail {
    path: PathBuf,
    read: u64,
}

impl Tail {
    /// The file from its beginning.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read: 0 }
    }

    /// The whole lines that have not been read yet; a line that is still being written is none. Of
    /// a file that became shorter all lines.
    pub fn lines(&mut self) -> Result<Vec<String>> {
        let fresh = self.fresh().map_err(|error| errors::io(&self.path, error))?;
        let end = fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read += end as u64;
        Ok(String::from_utf8_lossy(&fresh[..end]).lines().map(str::to_owned).collect())
    }

    fn fresh(&mut self) -> std::io::Result<Vec<u8>> {
        let mut file = fs_err::File::open(&self.path)?;
        let length = file.metadata()?.len();
        if length < self.read {
            self.read = 0;
        }
        let mut fresh = Vec::new();
        if length > self.read {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut fresh)?;
        }
        Ok(fresh)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn only_whole_lines_and_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut tail = Tail::new(&path);
        assert!(tail.lines().is_err(), "there is no file yet");
        fs_err::write(&path, "one\ntw").unwrap();
        assert_eq!(tail.lines().unwrap(), ["one"]);
        assert!(tail.lines().unwrap().is_empty());
        fs_err::write(&path, "one\ntwo\n\nthree\n").unwrap();
        assert_eq!(tail.lines().unwrap(), ["two", "", "three"]);
        fs_err::write(&path, "again\n").unwrap();
        assert_eq!(tail.lines().unwrap(), ["again"]);
    }
}
