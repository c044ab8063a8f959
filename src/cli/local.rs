//! `turnup local`: which local hosts this machine has, and the end of those that no cluster's
//! directory knows any more. Its hidden part is what Terraform calls to make and remove local
//! hosts.

use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use serde_json::json;

use crate::config::TreeSource;
use crate::error::{Context as _, Error, Result};
use crate::exec::signals;
use crate::provision::local::{self, HostSpec, LocalHost, MachineIdentity, NetworkSpec};
use crate::report::Table;

use super::Printer;

/// A thing and what to do with it.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    thing: Thing,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Thing {
    /// List all local hosts of this machine, of whichever cluster
    List,
    /// Remove the local hosts whose cluster's directory is gone, with their data and bridges
    Cleanup {
        /// Do not ask; required when stdin is not a terminal
        #[arg(long)]
        yes: bool,
    },
    /// The bridge of a cluster
    #[command(hide = true)]
    Network {
        /// What to do
        #[arg(value_enum)]
        verb: NetworkVerb,
        /// The network's description
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
    /// The volume of a host
    #[command(hide = true)]
    Volume {
        /// What to do
        #[arg(value_enum)]
        verb: VolumeVerb,
        /// The host's description
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
    /// The process that attaches volumes and replaces hosts that died
    #[command(hide = true)]
    Service {
        /// What to do
        #[arg(value_enum)]
        verb: ServiceVerb,
        /// Its description
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
    /// Be that process
    #[command(hide = true)]
    Serve {
        /// Its description
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
    /// A host
    #[command(hide = true)]
    Host {
        /// What to do
        #[arg(value_enum)]
        verb: HostVerb,
        /// The host's description
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum NetworkVerb {
    /// Make it
    Create,
    /// Remove it
    Delete,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum VolumeVerb {
    /// Make it
    Create,
    /// Remove it with its data
    Delete,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ServiceVerb {
    /// Start it, in the place of one that runs
    Start,
    /// End it
    Stop,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum HostVerb {
    /// Make and start it
    Create,
    /// Start it again, with its data
    Start,
    /// Say whether it runs
    Status,
    /// Give it the limits of its description, if it runs
    Limit,
    /// Make another machine in the place of one that died
    Replace,
    /// Remove it with its data
    Delete,
}

/// Does it.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    signals::install()?;
    // The files of a machine are read by all its users, and Terraform's umask lets in none of them.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    match &args.thing {
        Thing::List => show(&local::list_hosts()?, printer),
        Thing::Cleanup { yes } => clean_up(*yes, printer),
        Thing::Network { verb, spec } => {
            let spec = NetworkSpec::read(spec)?;
            match verb {
                NetworkVerb::Create => local::create_network(&spec),
                NetworkVerb::Delete => local::delete_network(&spec),
            }
        }
        Thing::Volume { verb, spec } => {
            let Some(volume) = HostSpec::read(spec)?.volume else { return Ok(()) };
            match verb {
                VolumeVerb::Create => local::create_volume(&volume),
                VolumeVerb::Delete => local::delete_volume(&volume),
            }
        }
        Thing::Service { verb, spec } => match verb {
            ServiceVerb::Start => local::start_service(spec),
            ServiceVerb::Stop => local::stop_service(spec),
        },
        Thing::Serve { spec } => local::serve(spec, |line| local::write_line(&line)),
        Thing::Host { verb, spec } => act_on_host(*verb, spec, printer),
    }
}

fn act_on_host(verb: HostVerb, spec: &Path, printer: &Printer) -> Result<()> {
    let host = HostSpec::read(spec)?;
    // Only reading the status needs no lock.
    let _turn = if matches!(verb, HostVerb::Status) { None } else { Some(HostSpec::take_turn(spec)?) };
    match verb {
        HostVerb::Create => local::create_host(&host, &read_identity()?),
        HostVerb::Replace => local::replace_host(&host, &read_identity()?),
        HostVerb::Start => local::start_host(&host),
        HostVerb::Limit => local::limit_host(&host),
        HostVerb::Status => printer.line(&format!("{:?}", local::status_of(&host)?).to_lowercase()),
        // The description stays: a host that is replaced is deleted and made again from the same
        // file.
        HostVerb::Delete => local::delete_host(&host),
    }
}

/// What every host has of turnup's own.
fn read_identity() -> Result<MachineIdentity> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let template =
        |name: &str| -> Result<Vec<u8>> { Ok(source.read(&format!("templates/provision/local/{name}"))?.into_owned()) };
    Ok(MachineIdentity {
        unit: template("turnup-local.service")?,
        sshd: template("sshd.conf")?,
        balancer: template("turnup-balancer.service")?,
        program: std::env::current_exe().context("cannot find turnup's own binary")?,
    })
}

/// Name and version of the JSON form.
const SCHEMA: &str = "turnup.local-hosts/1";

fn show(hosts: &[LocalHost], printer: &Printer) -> Result<()> {
    if printer.is_json() {
        let hosts = hosts.iter().map(|host| {
            Ok(json!({
                "name": host.spec.name,
                "address": host.spec.address,
                "status": state_of(host)?,
                "orphan": host.is_orphan(),
                "cluster_dir": host.cluster_dir,
            }))
        });
        return printer.json(&json!({"schema": SCHEMA, "hosts": hosts.collect::<Result<Vec<_>>>()?}));
    }
    if hosts.is_empty() {
        printer.remark("this machine has no local hosts");
        return Ok(());
    }
    let mut table = Table::new(&["HOST", "ADDRESS", "STATUS", "DIRECTORY OF THE CLUSTER"]);
    for host in hosts {
        let orphan = if host.is_orphan() { " (gone)" } else { "" };
        let dir = format!("{}{orphan}", host.cluster_dir.display());
        table.row([host.spec.name.clone(), host.spec.address.to_string(), state_of(host)?.to_owned(), dir]);
    }
    printer.line(table.render().trim_end())?;
    if hosts.iter().any(LocalHost::is_orphan) {
        printer.remark("next: turnup local cleanup removes the hosts whose directory is gone");
    }
    Ok(())
}

fn state_of(host: &LocalHost) -> Result<&'static str> {
    Ok(if local::is_running(&host.spec)? { "running" } else { "stopped" })
}

fn clean_up(yes: bool, printer: &Printer) -> Result<()> {
    let orphans: Vec<LocalHost> = local::list_hosts()?.into_iter().filter(LocalHost::is_orphan).collect();
    for orphan in &orphans {
        printer.remark(&format!("to be removed: host {} of {}", orphan.spec.name, orphan.cluster_dir.display()));
    }
    if orphans.is_empty() {
        printer.remark("no local host is without its cluster's directory: nothing to do");
        return tell_removed(&orphans, printer);
    }
    let question = format!("Remove {} with all data?", count_hosts(orphans.len()));
    if !yes && !printer.confirm(&question, "turnup local cleanup --yes")? {
        return Err(Error::usage("nothing was removed").hint("turnup local cleanup --yes"));
    }
    local::delete_orphans(&orphans)?;
    printer.remark(&format!("{} removed", count_hosts(orphans.len())));
    tell_removed(&orphans, printer)
}

fn tell_removed(hosts: &[LocalHost], printer: &Printer) -> Result<()> {
    if !printer.is_json() {
        return Ok(());
    }
    let removed = hosts.iter().map(|host| json!({"name": host.spec.name, "cluster_dir": host.cluster_dir}));
    printer.json(&json!({"schema": "turnup.local.cleanup/1", "removed": removed.collect::<Vec<_>>()}))
}

fn count_hosts(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}
