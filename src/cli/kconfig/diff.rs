//! `turnup kconfig diff`: what differs between two `.config` files, and with a tree, why.

use std::path::PathBuf;

use kconfig::diff::{Difference, diff};
use kconfig::{Config, Tree, dotconfig};
use serde_json::json;

use super::tree::{TreeArgs, default_config, read_text};
use crate::cli::Printer;
use crate::error::{Error, Result};

/// Below the options.
const NOTES: &str = "\
Without files: .config.old and .config, or what KCONFIG_CONFIG names in their place.
-NAME is only in the first file, +NAME only in the second; ` NAME old -> new` has changed.

With --output json each difference is one line: {\"schema\": \"turnup.kconfig.difference/1\", \"symbol\": …, \"before\": …, \"after\": …,
\"why\": …}.

Exit codes: 0 whether the files differ or not; 3 when a file cannot be read.";

/// Compares.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// The first file
    #[arg(value_name = "A", requires = "after")]
    before: Option<PathBuf>,
    /// The second file
    #[arg(value_name = "B")]
    after: Option<PathBuf>,
    /// Print the second file's values as lines of a .config, to be merged into another
    #[arg(short, long)]
    merge: bool,
    /// Explain each difference with this tree, by its top file
    #[arg(long = "tree", id = "tree_path", value_name = "PATH", conflicts_with = "merge")]
    tree_path: Option<String>,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Runs the tool.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    let (before, after) = match (&args.before, &args.after) {
        (Some(before), Some(after)) => (before.clone(), after.clone()),
        _ => (format!("{}.old", default_config().display()).into(), default_config()),
    };
    let read = |path: &PathBuf| {
        read_text(path).map_err(|error| match args.before {
            Some(_) => error,
            None => error.hint("name two files: turnup kconfig diff A B"),
        })
    };
    let (before, after) = (read(&before)?, read(&after)?);
    let prefix = &args.tree.prefix.prefix;
    let differences = diff(&before, &after, prefix);
    let tree = args.tree_path.as_deref().map(|path| args.tree.load(path, printer)).transpose()?;
    let configs = tree.as_ref().map(|tree| (configure(tree, &before, prefix), configure(tree, &after, prefix)));
    for difference in &differences {
        let why = configs.as_ref().and_then(|(before, after)| difference.explain(before, after));
        print(difference, why.as_deref(), args, printer)?;
    }
    Ok(())
}

fn configure<'t>(tree: &'t Tree, text: &str, prefix: &str) -> Config<'t> {
    let mut config = Config::new(tree);
    // What does not fit is a difference for the C tools too: its lines are compared as they are.
    dotconfig::read(&mut config, text, prefix);
    config
}

fn print(difference: &Difference, why: Option<&str>, args: &Args, printer: &Printer) -> Result<()> {
    if printer.is_json() {
        return printer.json(&json!({
            "schema": "turnup.kconfig.difference/1", "symbol": difference.name, "before": difference.before,
            "after": difference.after, "why": why,
        }));
    }
    if args.merge {
        return difference.to_request(&args.tree.prefix.prefix).map_or(Ok(()), |line| printer.line(&line));
    }
    printer.line(&difference.to_line())?;
    why.map_or(Ok::<(), Error>(()), |why| printer.line(&format!("    {why}")))
}
