//! `turnup reset HOST…`: single hosts become what they were before turnup. The cluster stays, and `turnup up` makes nodes of them again.

use std::time::Duration;

use crate::bootstrap::reset;
use crate::error::{Error, Result};
use crate::provision::{Handoff, Host};

use super::down::{removed_from, reset_hosts, tell};
use super::run::{RunArgs, Session};
use super::{Global, Printer};

/// For the Node objects of all hosts.
const BUDGET: Duration = Duration::from_mins(5);

/// Options of `turnup reset`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What every run takes
    #[command(flatten)]
    run: RunArgs,
    /// The hosts, by their names in the hand-off
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Do not ask; required where nobody sits at a terminal
    #[arg(long)]
    yes: bool,
}

/// Resets them.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let session = Session::start(global, "reset")?;
    let handoff = session.cluster.handoff()?;
    let hosts = args.hosts.iter().map(|name| find(&handoff, name)).collect::<Result<Vec<&Host>>>()?;
    tell(&session, printer, &hosts.iter().map(|host| removed_from(host)).collect::<Vec<_>>());
    let without = format!("turnup reset {} --yes", args.hosts.join(" "));
    if !args.yes && !printer.confirm("Take these hosts out of the cluster, with all data on them?", &without)? {
        return Err(Error::usage("nothing was changed").hint(without));
    }
    session.finish(|session| {
        let _lock = session.lock()?;
        let cx = session.context("reset", BUDGET)?;
        // Before they are reset: pods go elsewhere, and a kubelet that still runs does not make its Node again.
        reset::leave(&session.cluster, &hosts, &cx)?;
        reset_hosts(
            session,
            &hosts,
            args.run.parallel,
            Some("turnup down --forget-unreachable, or take it out of the hand-off"),
        )
    })
}

fn find<'h>(handoff: &'h Handoff, name: &str) -> Result<&'h Host> {
    handoff.hosts.iter().find(|host| host.name == name).ok_or_else(|| {
        let names = || handoff.hosts.iter().map(|host| host.name.as_str());
        let error = Error::usage(format!("the cluster {} has no host {name}", handoff.cluster));
        match kconfig::suggest(name, names()) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error.hint(format!("hosts: {}", names().collect::<Vec<_>>().join(", "))),
        }
    })
}
