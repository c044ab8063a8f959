//! `turnup kubeconfig`: makes sure that the administrator's certificate has its day before it, and says where the file is.

use crate::bootstrap::{KUBECONFIG, write_kubeconfig};
use crate::error::Result;

use super::run::open_cluster;
use super::{Global, Printer};

/// No options of its own.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

/// Renews the certificate when less than a third of its life is left; prints the path alone.
pub(super) fn run(_args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let cluster = open_cluster(global)?;
    let handoff = cluster.handoff()?;
    let lock = cluster.store.lock("turnup kubeconfig")?;
    lock.takeover().inspect(|message| printer.remark(message));
    write_kubeconfig(&cluster, &handoff)?;
    drop(lock);
    printer.line(&cluster.store.path(KUBECONFIG).display().to_string())
}
