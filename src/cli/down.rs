//! `turnup down`: removes what provision made, and then what turnup remembers of the cluster. The artifact cache stays.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::provision;

use super::run::Session;
use super::{Global, Printer};

/// How long a cloud may take to delete everything.
const BUDGET: Duration = Duration::from_hours(1);

/// Options of `turnup down`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Do not ask; required where nobody sits at a terminal
    #[arg(long)]
    yes: bool,
}

/// Takes the cluster down.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let session = Session::start(global, "down")?;
    let name = session.cluster.settings.name.clone();
    if !args.yes && !printer.confirm(&format!("Delete the cluster {name} with all its data?"), "turnup down --yes")? {
        return Err(Error::usage("nothing was deleted").hint("turnup down --yes"));
    }
    session.finish(|session| {
        let cluster = &session.cluster;
        let lock = session.lock()?;
        provision::destroy(cluster, &session.context("down", BUDGET)?)?;
        // Only after everything is gone: the state is the only record of what has to be deleted.
        cluster.store.delete(lock)
    })?;
    printer.remark(&format!("the cluster {name} is gone"));
    Ok(())
}
