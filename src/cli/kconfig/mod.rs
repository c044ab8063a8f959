//! `turnup kconfig ...`: tools for any Kconfig tree, not only turnup's own.
//!
//! One file a tool. Nothing here knows clusters.

use std::process::ExitCode;

use clap::Subcommand;

use crate::Result;

mod conf;

/// Tools for Kconfig trees.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which tool
    #[command(subcommand)]
    tool: Tool,
}

/// The tools.
#[derive(Clone, Debug, Subcommand)]
enum Tool {
    /// Do what Linux's scripts/kconfig/conf does, with its options, questions, messages and exit codes
    Conf(conf::Args),
}

/// Runs it.
pub(super) fn run(args: Args) -> Result<ExitCode> {
    match args.tool {
        Tool::Conf(args) => conf::run(&args),
    }
}
