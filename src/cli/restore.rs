//! `turnup restore`: etcd gets the content of the member that is left, or of a backup.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::bootstrap::restore::{self, RestoreRequest, RestoreSource, Restored};
use crate::error::{Error, Result};

use super::run::ClusterSession;
use super::{Global, Printer};

/// The name and version of the JSON.
const SCHEMA: &str = "turnup.restore-command/1";
/// For a large etcd on slow hosts.
const TIMEOUT: Duration = Duration::from_hours(2);

/// Below the options.
const NOTES: &str = "\
Killed or failed, the same command goes on. As long as it has not come to its end, turnup up and the
like are refused. docs/backup.md says more.";

/// From what, and what may be lost.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    /// Restore this backup of a control-plane host or of the store [default: the member that is
    /// ahead of all, where any has data left; else the newest backup]
    #[arg(long, value_name = "NAME", group = "source")]
    backup: Option<String>,
    /// Restore the newest backup of all control-plane hosts and of the store
    #[arg(long, group = "source")]
    newest_backup: bool,
    /// Restore a backup that was downloaded
    #[arg(long, value_name = "FILE", group = "source")]
    file: Option<PathBuf>,
    /// Restore what the member on this host has
    #[arg(long, value_name = "HOST", group = "source")]
    member: Option<String>,
    /// Restore without this host, which does not answer and never comes back with its data; may be
    /// repeated
    #[arg(long, value_name = "HOST")]
    without: Vec<String>,
    /// Restore a backup although there is something newer, which is lost
    #[arg(long)]
    older: bool,
    /// The file with the private key of age, as age-keygen writes it, for an encrypted backup; it
    /// does not leave this machine
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Restore a backup that the cluster has not signed, as those of before it signed any
    #[arg(long)]
    unsigned: bool,
    /// Do not ask; required when stdin is not a terminal
    #[arg(long)]
    yes: bool,
}

impl Args {
    fn source(&self) -> Option<RestoreSource> {
        let backup = self.backup.clone().map(RestoreSource::Backup);
        let file = self.file.clone().map(RestoreSource::File);
        let member = self.member.clone().map(RestoreSource::Member);
        backup.or(file).or(member).or_else(|| self.newest_backup.then_some(RestoreSource::NewestBackup))
    }
}

/// The same command without a question.
fn without_question() -> String {
    let given: Vec<String> = std::env::args().skip(1).collect();
    format!("turnup {} --yes", shell_words::join(given))
}

/// Restores it.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let session = ClusterSession::start(global, "restore")?;
    let restored = session.finish(|session| {
        let cluster = &session.cluster;
        let request = RestoreRequest {
            source: args.source().unwrap_or(RestoreSource::Best),
            without: args.without.clone(),
            older: args.older,
            identity: args.identity.clone(),
            unsigned: args.unsigned,
        };
        let (plan, lines) = match (restore::find_unfinished(cluster)?, args.source()) {
            (None, _) => {
                let plan = restore::plan(cluster, &request, &|line| session.tell(printer, line))?;
                let lines = plan.lines.clone();
                (Some(plan), lines)
            }
            (Some((source, hosts)), None) => {
                (None, vec![format!("the restore of etcd from {source} goes on, on: {}", hosts.join(", "))])
            }
            (Some((source, _)), Some(_)) => {
                return Err(Error::precondition(format!("the restore of etcd from {source} is under way"))
                    .evidence("no other one can begin before it has come to its end")
                    .hint("turnup restore"));
            }
        };
        for line in lines {
            session.tell(printer, line);
        }
        let without = without_question();
        if !args.yes && !printer.confirm("Stop the control plane and exchange the data of etcd?", &without)? {
            return Err(Error::usage("nothing was changed").hint(without));
        }
        let _lock = session.lock()?;
        let cx = session.context("restore", TIMEOUT)?;
        match plan {
            Some(plan) => restore::begin(cluster, &request, &plan, &cx)?,
            None => restore::give_up(cluster, &args.without)?,
        }
        restore::carry_out(cluster, &cx)
    })?;
    show(&restored, printer)
}

fn show(restored: &Restored, printer: &Printer) -> Result<()> {
    let Restored { source, hosts, revisions: (from, to), aside } = restored;
    if printer.is_json() {
        return printer.json(&json!({
            "schema": SCHEMA, "source": source, "hosts": hosts, "aside": aside, "revision": from, "new_revision": to,
        }));
    }
    printer.line(&format!("etcd is restored from {source}: revision {from} goes on as {to}"))?;
    printer.remark(&format!(
        "the former data are in {aside} of etcd's directory on each host; remove them when all is well"
    ));
    printer.remark("next: turnup up");
    Ok(())
}
