//! The command line: one file a command, each an `Args` struct and a `run` function, nothing else.

pub mod doctor;
pub mod state;

use std::process::ExitCode;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
