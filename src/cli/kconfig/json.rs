//! `turnup kconfig json`: a tree with its values for other programs.

use std::io::{BufWriter, ErrorKind};
use std::path::Path;

use super::tree::TreeArgs;
use crate::cli::Printer;
use crate::error::{Context as _, Result};

/// Below the options.
const NOTES: &str = "\
The values are those of --config FILE, else of $KCONFIG_CONFIG or .config where there is one, else defaults.

One object, schema kconfig.tree/1: mainmenu, modules, files, undefined, symbols, choices, nodes. Symbols have their definition
(type, depends, defaults, selects, implies, ranges, …) and their value (value, written, user, visible, assignable, range, origin);
nodes are the menus, each with the ids of its parent and children. Conditions are expressions as text, or null; places are
file:line:column. The documentation of the module kconfig::json has every key.";

/// Prints a tree.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// The top file of the tree
    #[arg(value_name = "PATH", default_value = "Kconfig")]
    path: String,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Runs the tool.
pub(super) fn run(args: &Args, config: Option<&Path>, printer: &Printer) -> Result<()> {
    let tree = args.tree.load(&args.path, printer)?;
    let (config, _) = args.tree.configure(&tree, config, printer)?;
    match kconfig::json::write(&config, &mut BufWriter::new(anstream::stdout().lock())) {
        // The reader has seen what it wanted.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}
