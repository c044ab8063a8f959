//! `turnup local`: what Terraform calls to make and remove local hosts. Hidden; the operator may
//! use it to start, inspect or delete a host.

use std::path::PathBuf;

use rustix::fs::Mode;

use crate::config::TreeSource;
use crate::error::{Context as _, Result};
use crate::exec::signals;
use crate::provision::local::{self, HostSpec, Identity, NetworkSpec};

use super::Printer;

/// A thing and what to do with it.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    thing: Thing,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Thing {
    /// The bridge of a cluster
    Network {
        /// What to do
        #[arg(value_enum)]
        verb: NetworkVerb,
        /// The network's description
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
    /// A host
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
enum HostVerb {
    /// Make and start it
    Create,
    /// Start it again, with its data
    Start,
    /// Say whether it runs
    Status,
    /// Remove it with its data
    Delete,
}

/// Does it.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    signals::install()?;
    // The files of a machine are read by all its users, and Terraform's umask lets in none of them.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    match &args.thing {
        Thing::Network { verb, spec } => {
            let spec = NetworkSpec::read(spec)?;
            match verb {
                NetworkVerb::Create => local::create_network(&spec),
                NetworkVerb::Delete => local::delete_network(&spec),
            }
        }
        Thing::Host { verb, spec } => {
            let host = HostSpec::read(spec)?;
            // Only reading the status needs no lock.
            let _turn = if matches!(verb, HostVerb::Status) { None } else { Some(HostSpec::take_turn(spec)?) };
            match verb {
                HostVerb::Create => {
                    let work_dir = std::env::current_dir().context("the working directory is gone")?;
                    let source = TreeSource::find(&work_dir);
                    let template = |name: &str| -> Result<Vec<u8>> {
                        Ok(source.read(&format!("templates/provision/local/{name}"))?.into_owned())
                    };
                    let identity = Identity { unit: template("turnup-local.service")?, sshd: template("sshd.conf")? };
                    local::create_host(&host, &identity)
                }
                HostVerb::Start => local::start_host(&host),
                HostVerb::Status => printer.line(&format!("{:?}", local::status_of(&host)?).to_lowercase()),
                // The description stays: a host that is replaced is deleted and made again from the same file.
                HostVerb::Delete => local::delete_host(&host),
            }
        }
    }
}
