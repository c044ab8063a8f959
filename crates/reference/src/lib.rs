//! Linux's own Kconfig and its forks, to compare ours with: their trees from the distribution's
//! packages, by name, the C tools built from those trees, and the Python tools of others. For tests
//! and measurements alone.
//!
//! Nothing of Linux is copied into this repository: packages are fetched by the system's package
//! manager, which checks their signatures, and unpacked into the cache of this user. What is in the
//! cache is whole: it is made elsewhere and renamed.
//!
//! What cannot be had here (no network, no compiler) is [`Missing`]; a test then says why it is
//! skipped, and fails where `CI` is set. See [`or_skip`].
#![expect(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "a test fails by panicking")]

mod cache;
mod difference;
mod fork;
mod measure;
mod noshell;
mod npm;
mod packages;
mod python;
pub mod random;
mod series;
mod suite;
pub mod synthetic;
mod tool;
mod tree;

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

pub use difference::{difference, values};
pub use fork::{Fork, ForkTree};
pub use measure::{Counter, Sample, Stats, instructions, sample};
pub use npm::Azurite;
pub use python::Python;
pub use series::Series;
pub use suite::{Score, run_suite};
pub use tool::{Job, Outcome, Tool};
pub use tree::{Arch, Tree, Variant};

/// Why something that a test needs is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl Missing {
    /// Absent for this reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is here, or nothing and a word on standard error why the test is skipped. Where `CI` is
/// set, absence is failure.
pub fn or_skip<T>(what: Result<T, Missing>) -> Option<T> {
    match what {
        Ok(value) => Some(value),
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "skipped in CI: {why}");
            say(&format!("skipped: {why}"));
            None
        }
    }
}

/// A line on standard error that the test harness does not swallow: scores, and why something was
/// skipped.
pub fn say(text: &str) {
    // A closed standard error cannot be reported.
    let _closed = writeln!(std::io::stderr(), "{text}");
}

/// Installs packages from an index with this program, `by` name. `what` are the packages.
fn install(by: &str, program: &Path, args: &[&str], limit: Duration, what: &str) -> Result<(), Missing> {
    let run = duct::cmd(program, args).stdin_null().stdout_null().stderr_capture().unchecked();
    let handle = run.start().map_err(|error| Missing::new(error.to_string()))?;
    let Some(output) = handle.wait_timeout(limit).unwrap() else {
        handle.kill().unwrap();
        return Err(Missing::new(format!("{by} takes too long: is there a way to the package index?")));
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rfind(|line| line.starts_with("ERROR")).unwrap_or(said.trim());
    Err(Missing::new(format!("{by} cannot install {what}: {last}")))
}

/// The program's path, or who brings it.
fn program(name: &str) -> Result<std::path::PathBuf, Missing> {
    which::which(name)
        .map_err(|_| Missing::new(format!("`{name}` is not installed: turnup doctor --install --target development")))
}
