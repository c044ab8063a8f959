//! `turnup state`: looks at and repairs the state of a cluster.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::input;
use crate::state::Store;
use crate::{Error, Result};

use super::{Global, Printer};

/// Looks at and repairs the state of a cluster.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Rebuild state.json and journal.jsonl from whatever of both can be read; keep copies of
    /// damaged files.
    Rebuild {
        /// The cluster's directory below `.turnup`; needed only when there are several.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

/// Runs it.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let Command::Rebuild { dir } = &args.command;
    let dir = dir.clone().map_or_else(|| only_cluster(&global.state_dir), Ok)?;
    if !dir.is_dir() {
        return Err(Error::usage(format!("no such directory: {}", dir.display())));
    }
    input::require_own_dir(&dir)?;
    let store = Store::at(dir);
    let lock = store.lock("turnup state rebuild")?;
    lock.takeover().inspect(|message| printer.remark(message));
    let report = store.rebuild(&lock)?;
    if printer.is_json() {
        return printer.json(&json!({"schema": "turnup.state.rebuild/1", "report": report}));
    }
    report.iter().try_for_each(|line| printer.line(line))
}

/// The one directory below `.turnup`.
pub(super) fn only_cluster(state_dir: &Path) -> Result<PathBuf> {
    let entries = fs_err::read_dir(state_dir).map_err(|error| {
        Error::usage("there is no cluster in this directory")
            .source(error)
            .hint("change to the directory that has `.turnup`")
    })?;
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    match (dirs.pop(), dirs.is_empty()) {
        (Some(dir), true) => Ok(dir),
        (None, _) => Err(Error::usage("there is no cluster in this directory")),
        (Some(_), false) => {
            Err(Error::usage("there are several clusters in this directory").hint("add --dir .turnup/<cluster>"))
        }
    }
}
