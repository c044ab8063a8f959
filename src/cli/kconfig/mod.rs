//! `turnup kconfig`: tools for any Kconfig tree. Each is a thin call of the crate `kconfig`;
//! nothing here knows a cluster.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use super::{Global, Printer};
use crate::error::Result;

mod check;
mod conf;
mod dialect;
mod diff;
mod explain;
mod fmt;
mod json;
mod menuconfig;
mod merge;
mod output;
mod place;
mod tree;

pub(super) use explain::to_json as explanation_json;

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
    /// Answer the questions of a tree on the screen: menus, search, what would unlock an entry,
    /// undo
    Menuconfig(menuconfig::Args),
    /// Look for mistakes in a tree: unreachable entries, selects of what may not be on, defaults
    /// out of range, …
    Check(check::Args),
    /// Tell whose rules a tree is read by, Linux's or a fork's, in which version, and why
    Dialect(dialect::Args),
    /// Merge fragments of a .config, and say which requests were lost and why
    Merge(merge::Args),
    /// Show what differs between two .config files
    Diff(diff::Args),
    /// Tell all about one symbol: definitions, value, why it is so, and what would have to change
    Explain(explain::Args),
    /// Bring Kconfig files into the canonical form
    Fmt(fmt::Args),
    /// Print a tree and its values as JSON
    Json(json::Args),
}

/// The words of a command line that are the C tool's to read: those behind `kconfig conf`.
///
/// A kernel's build calls it by the dozen. To describe turnup's other commands to clap first would
/// touch a fifth of the memory that the C tool needs for all of Linux.
pub(super) fn words_of_conf(mut words: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    (words.next()? == "kconfig" && words.next()? == "conf").then(|| words.collect())
}

/// Runs `conf` with these words.
pub(super) fn run_conf(words: Vec<OsString>) -> ExitCode {
    conf::run(conf::Args::new(words))
}

/// Runs the tool.
pub(super) fn run(args: Args, global: &Global, printer: &Printer) -> Result<ExitCode> {
    match args.command {
        Command::Conf(args) => return Ok(conf::run(args)),
        Command::Menuconfig(args) => menuconfig::run(&args, named(global), printer),
        Command::Check(args) => check::run(&args, printer),
        Command::Dialect(args) => dialect::run(&args, printer),
        Command::Merge(args) => merge::run(&args, printer),
        Command::Diff(args) => diff::run(&args, printer),
        Command::Explain(args) => explain::run(&args, named(global), printer),
        Command::Fmt(args) => fmt::run(&args, printer),
        Command::Json(args) => json::run(&args, named(global), printer),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The .config that `--config` names; the default of that option is for clusters.
fn named(global: &Global) -> Option<&Path> {
    global.config_is_named.then_some(global.config.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(line: &str) -> Option<Vec<OsString>> {
        words_of_conf(line.split(' ').map(OsString::from))
    }

    #[test]
    fn what_follows_kconfig_conf_is_left_to_it() {
        assert_eq!(
            taken("kconfig conf -s --output Kconfig"),
            Some(["-s", "--output", "Kconfig"].map(Into::into).into())
        );
        assert_eq!(taken("kconfig conf"), Some(Vec::new()));
        assert_eq!(taken("kconfig check"), None);
        assert_eq!(taken("--quiet kconfig conf"), None, "an option of turnup's is clap's to read");
    }
}
