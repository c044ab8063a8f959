//! The command line: one file a command, each an `Args` struct and a `run` function, nothing else.
//!
//! Commands return a result; only `main` here turns the last error into text and an exit code. Nothing asks a question unless a person
//! sits at a terminal.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::error::{Class, Result};

pub mod config;
pub mod doctor;
mod printer;
pub mod state;

pub use printer::Printer;

/// Below the options of `turnup --help`.
const EXIT_CODES: &str = "\
Exit codes:
    0  done, or nothing to do
    1  failed, and would fail the same way again
    2  the command line is wrong
    3  the configuration is wrong or missing
    4  a person must change something first: a missing tool, a port in use, a full disk
    5  may pass by itself: run the same command again
    6  another turnup works on this cluster
   70  a defect of turnup
  130  interrupted; the same command goes on where it stopped";

/// Turns up Kubernetes clusters: a Kconfig tree, a wizard, three restartable phases.
#[derive(Debug, Parser)]
#[command(name = "turnup", version, after_help = EXIT_CODES, help_expected = true, arg_required_else_help = true)]
#[command(subcommand_required = true, max_term_width = 100)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE", env = "TURNUP_CONFIG", default_value = ".config.json")]
    pub config: PathBuf,
    /// The directory of everything that turnup remembers
    #[arg(long, global = true, value_name = "DIR", env = "TURNUP_STATE_DIR", default_value = ".turnup")]
    pub state_dir: PathBuf,
    /// How results are written
    #[arg(long, global = true, value_name = "FORM", default_value = "text")]
    pub output: Output,
    /// Only results and errors, no remarks
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The form of results on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Lines for people
    Text,
    /// JSON, with the name and version of its schema
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer the configuration's questions, or read and change single answers
    Config(config::Args),
}

impl Command {
    fn run(self, global: &Global, printer: &Printer) -> Result<()> {
        match self {
            Self::Config(args) => config::run(args, global, printer),
        }
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe leaves nobody to tell.
            error.print().ok();
            return if error.use_stderr() { ExitCode::from(Class::Usage.exit_code()) } else { ExitCode::SUCCESS };
        }
    };
    let printer = Printer::new(cli.global.output, cli.global.quiet);
    match cli.command.run(&cli.global, &printer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            printer.error(&error);
            ExitCode::from(error.class().exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent_and_every_option_has_help() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_documents_the_exit_code_of_every_class() {
        use Class::{Bug, Config, Interrupted, Locked, Permanent, Person, Transient, Usage};
        for class in [Permanent, Usage, Config, Person, Transient, Locked, Bug, Interrupted] {
            let code = class.exit_code().to_string();
            let documented = EXIT_CODES.lines().any(|line| line.split_whitespace().next() == Some(&code));
            assert!(documented, "{class:?} has exit code {code}");
        }
    }
}
