//! `turnup node`: what `turnup bootstrap` and the unit of user data run on a host. Hidden; everything comes over standard input or lies on
//! the host, nothing is asked.

use std::io::Read as _;

use zeroize::Zeroizing;

use crate::bootstrap::keep_approving;
use crate::error::{Context as _, Result};
use crate::exec::signals;
use crate::node::{Complete, Facts, boot, diff, down, mounts, up};

use super::Printer;

/// What to do on this host.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Print what this host is, as JSON
    Facts,
    /// Read a complete configuration, print the digests of the artifacts that this host lacks
    Missing,
    /// Read a complete configuration, print what on this host differs from it, as JSON
    Diff,
    /// Undo what `up` and the pods made on this host, and nothing else
    Down,
    /// Approve what kubelets that came by themselves serve with, until somebody stops it: what a unit does on control-plane hosts
    Approve {
        /// A name, an address or a network that none of them may serve as; `.svc` stands for all names that end so; may be repeated
        #[arg(long, value_name = "NAME")]
        refuse: Vec<String>,
    },
    /// Mount the disks that `up` mounted last: what a unit does at every boot
    Mount,
    /// Read a delivery and make this host what it says
    Up {
        /// Take it from what user data left on this host, and fetch what is missing
        #[arg(long)]
        boot: bool,
    },
}

/// Does it.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    signals::install()?;
    match args.command {
        Command::Facts => printer.json(&serde_json::to_value(Facts::read()?).context("cannot write facts")?),
        Command::Missing => {
            let complete = Complete::parse("standard input", &read_input()?)?;
            let missing: Vec<&str> = complete.artifacts().filter(|sha256| !complete.has_blob(sha256)).collect();
            printer.json(&serde_json::to_value(missing).context("cannot write a list")?)
        }
        Command::Diff => {
            let complete = Complete::parse("standard input", &read_input()?)?;
            printer.json(&serde_json::to_value(diff::find_differences(&complete)?).context("cannot write a list")?)
        }
        Command::Approve { ref refuse } => keep_approving(refuse, &mut std::io::stdout().lock()),
        Command::Mount => mounts::run(&mut std::io::stdout().lock()),
        Command::Down => down::run(&mut std::io::stdout().lock()),
        Command::Up { boot: true } => boot::run(&mut std::io::stdout().lock()),
        Command::Up { boot: false } => {
            let delivery = serde_json::from_str(&read_input()?).context("standard input is not a delivery")?;
            up::run(delivery, &mut std::io::stdout().lock())
        }
    }
}

fn read_input() -> Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text)
}
