//! `turnup kconfig menuconfig`: the wizard over any Kconfig tree.

use std::path::Path;

use super::tree::{TreeArgs, default_config, read_text};
use crate::cli::Printer;
use crate::cli::session::SessionArgs;
use crate::config::Schema;
use crate::error::Result;
use crate::wizard::Wizard;

/// Below the options.
const NOTES: &str = "\
Edits --config FILE, else what $KCONFIG_CONFIG names, else .config; saving keeps the old one as FILE.old.
Keys are those of the kernel's menuconfig, and vi's; ? shows all of them.

    srctree=. ARCH=x86 SRCARCH=x86 turnup kconfig menuconfig";

/// Opens the wizard.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// The top file of the tree
    #[arg(value_name = "PATH", default_value = "Kconfig")]
    path: String,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    session: SessionArgs,
}

/// Runs the tool.
pub(super) fn run(args: &Args, config: Option<&Path>, printer: &Printer) -> Result<()> {
    args.session.require_terminal(printer, "without one: turnup kconfig conf, merge and json")?;
    let schema = Schema::without_rules(args.tree.load(&args.path, printer)?);
    let path = config.map_or_else(default_config, Path::to_owned);
    let text = if path.exists() { Some(read_text(&path)?) } else { None };
    let wizard = Wizard::over_tree(&path, &schema, &args.tree.prefix.prefix, text);
    args.session.run(wizard, &path, printer)
}
