//! `turnup ssh HOST`: a shell on a host, with the cluster's key and its pinned host keys.

use std::io::IsTerminal as _;

use crate::error::{Error, Result};

use super::run::open_cluster;
use super::{Global, Printer};

/// Where, and what.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The host, by its name in the inventory
    #[arg(value_name = "HOST")]
    host: String,
    /// A command in place of a login shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// This process becomes ssh.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    if printer.is_json() {
        return Err(
            Error::usage("--output json: a shell prints no JSON").hint("turnup exec HOST --output json -- COMMAND")
        );
    }
    let cluster = open_cluster(global)?;
    let inventory = cluster.inventory()?;
    let host = inventory.find_named(&args.host)?;
    Err(cluster.ssh(host)?.take_over(&args.command, std::io::stdin().is_terminal()))
}
