//! The command line: one file a command, each an `Args` struct and a `run` function, nothing else.

pub mod artifacts;
pub mod doctor;
pub mod state;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::Result;

/// Turns up Kubernetes clusters.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Artifacts(artifacts::Args),
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "{}", error.render()));
            ExitCode::from(error.class().exit_code())
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    crate::exec::signals::install()?;
    match &cli.command {
        Command::Artifacts(args) => artifacts::run(args, &mut std::io::stdout().lock(), &Lines),
    }
}

/// Progress as plain lines on standard error.
struct Lines;

impl crate::artifacts::Watch for Lines {
    fn progress(&self, message: &str) {
        drop(writeln!(std::io::stderr(), "{message}"));
    }

    fn count(&self, _done: u64, _total: u64) {}

    fn check(&self) -> Result<()> {
        crate::exec::signals::check()
    }
}
