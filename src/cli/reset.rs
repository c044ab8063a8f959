//! `turnup reset HOST…`: single hosts become what they were before turnup. The cluster stays, and
//! `turnup up` makes nodes of them again.

use std::time::Duration;

use crate::bootstrap::{reset, restore};
use crate::error::{Error, Result};
use crate::inventory::Host;

use super::down::{removed_from, reset_hosts, tell};
use super::run::{ClusterSession, RunArgs};
use super::{Global, Printer};

/// For the Node objects of all hosts.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Options of `turnup reset`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What every run takes
    #[command(flatten)]
    run: RunArgs,
    /// The hosts, by their names in the inventory
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Do not ask; required when stdin is not a terminal
    #[arg(long)]
    yes: bool,
}

/// Resets them.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let session = ClusterSession::start(global, "reset")?;
    let inventory = session.cluster.inventory()?;
    let hosts = args.hosts.iter().map(|name| inventory.find_named(name)).collect::<Result<Vec<&Host>>>()?;
    tell(&session, printer, &hosts.iter().map(|host| removed_from(host)).collect::<Vec<_>>());
    let without = format!("turnup reset {} --yes", args.hosts.join(" "));
    if !args.yes && !printer.confirm("Take these hosts out of the cluster, with all data on them?", &without)? {
        return Err(Error::usage("nothing was changed").hint(without));
    }
    session.finish(|session| {
        let _lock = session.lock()?;
        restore::require_none(&session.cluster.store)?;
        let cx = session.context("reset", TIMEOUT)?;
        // Before they are reset: pods go elsewhere, and a kubelet that still runs does not make its
        // Node again.
        reset::leave(&session.cluster, &hosts, &cx)?;
        reset_hosts(
            session,
            &hosts,
            args.run.parallel,
            Some("turnup down --skip-unreachable, or take it out of the inventory"),
        )
    })
}
