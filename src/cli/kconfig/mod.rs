//! `turnup kconfig`: tools for any Kconfig tree. Each is a thin call of the crate `kconfig`; nothing here knows a cluster.

use std::process::ExitCode;

use clap::Subcommand;

mod conf;

/// Which tool.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    /// What to do with the tree
    #[command(subcommand)]
    command: Command,
}

/// The tools.
#[derive(Debug, Subcommand)]
enum Command {
    /// Do what Linux's scripts/kconfig/conf does: same options, questions, messages and exit codes
    #[command(disable_help_flag = true)]
    Conf(conf::Args),
}

/// Runs the tool.
pub(super) fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Conf(args) => conf::run(&args),
    }
}
