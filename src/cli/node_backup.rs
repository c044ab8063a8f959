//! `turnup node backup`: what the timer of a control-plane host runs, and `turnup backup` on it.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Context as _, Result};
use crate::node::backup::{BackupPlace, BackupSubject, EtcdPrograms, Retention};

use super::Printer;

/// What to do with the backups of this host.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Where they are
    #[arg(long, value_name = "DIRECTORY")]
    directory: PathBuf,
    /// The cluster's name
    #[arg(long, value_name = "NAME")]
    cluster: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Take one, and delete those that it supersedes
    Take {
        /// What tells this cluster from others of its name
        #[arg(long, value_name = "DIGEST")]
        cluster_id: String,
        /// Why: interval, request or change
        #[arg(long, value_name = "WORD", value_parser = ["interval", "request", "change"])]
        reason: String,
        /// A public key of age for which it is encrypted; may be repeated
        #[arg(long = "recipient", value_name = "KEY")]
        recipients: Vec<String>,
        /// How many of the newest are kept
        #[arg(long, value_name = "COUNT")]
        keep_recent: usize,
        /// For how many days the last one of a day is kept
        #[arg(long, value_name = "COUNT")]
        keep_daily: usize,
    },
    /// Print what is there, as JSON
    List,
    /// Restore one into a directory beside it, and compare
    Verify {
        /// Its name
        name: String,
    },
    /// Print a part of one in base64
    Part {
        /// Its name
        name: String,
        /// From which byte on
        #[arg(long, value_name = "COUNT")]
        offset: u64,
    },
}

/// Does it.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    let place = BackupPlace::of_host(args.directory.clone(), args.cluster.clone())?;
    match args.command.clone() {
        Command::Take { cluster_id, reason, recipients, keep_recent, keep_daily } => {
            let subject = BackupSubject { cluster_id, reason, recipients };
            let retention = Retention { recent: keep_recent, daily: keep_daily };
            let taken = place.take(&EtcdPrograms::HOST, &subject, retention)?;
            json(printer, &taken)?;
            // Who asked reads it there; the timer's unit fails, and status tells.
            let is_alone = subject.reason == "interval";
            match taken.stored.and_then(|stored| stored.error()).filter(|_| is_alone) {
                Some(error) => Err(error),
                None => Ok(()),
            }
        }
        Command::List => json(printer, &place.list()?),
        Command::Verify { name } => json(printer, &place.verify(&EtcdPrograms::HOST, &name)?),
        Command::Part { name, offset } => printer.line(&place.part(&name, offset)?),
    }
}

pub(super) fn json(printer: &Printer, value: &impl Serialize) -> Result<()> {
    printer.json(&serde_json::to_value(value).context("cannot write JSON")?)
}
