//! `turnup bootstrap`: phase 2 alone, for the hosts that phase 1 made or that a file names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::SSH_KEY;
use crate::error::Result;
use crate::forecast::Purpose;
use crate::phase::What;
use crate::provision;

use super::phase_name::PhaseName;
use super::run::{ClusterSession, RunArgs};
use super::{Global, Printer, up};

/// For a key and some small files.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Options of `turnup bootstrap`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What every run takes
    #[command(flatten)]
    run: RunArgs,
    /// Take the hosts from this inventory; phase 1 is not needed, and refuses from then on to make
    /// others
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Hosts become nodes.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let Some(file) = &args.from else { return up::run_one(PhaseName::Bootstrap, &args.run, global, printer) };
    let session = ClusterSession::begin(global, "bootstrap", Purpose::Nodes)?.within(args.run.max_duration);
    let summary = session.finish(|session| {
        // The hosts are taken over under the lock of the run, before its first step.
        session.run_phases(&args.run, &[PhaseName::Bootstrap], |session| adopt(session, file).map(|()| None))
    })?;
    if summary.ran == 0 {
        printer.remark("bootstrap: nothing to do");
    }
    Ok(())
}

fn adopt(session: &ClusterSession, file: &Path) -> Result<()> {
    let cluster = &session.cluster;
    let (inventory, is_new) = provision::adopt(cluster, file, &session.context("from", TIMEOUT)?)?;
    if is_new {
        let hosts: Vec<String> =
            inventory.hosts.iter().map(|host| format!("{}@{}", host.ssh.user, host.address)).collect();
        let key = cluster.store.path(format!("{SSH_KEY}.pub"));
        let message = format!("each host must let in the key {}: {}", key.display(), hosts.join(", "));
        session.reporter.sink().emit(What::Note { message });
    }
    Ok(())
}
