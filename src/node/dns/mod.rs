//! `turnup node dns`: keeps the names of the API server in a DNS zone as the live API servers are,
//! those of etcd's members, and on request the names that annotations ask for. kops'
//! dns-controller.
//!
//! One host writes, that of etcd's leader, and a change takes effect only while the server still
//! has what the writer saw: an address that is gone is never written again by a host that was late.
//! A name that another owner made is left alone. A TXT record at each name says whose it is.

mod cloud_zone;
mod config;
mod decide;
mod listed;
mod live;
mod name_list;
mod record;
mod source;
mod update_server;
mod writer;
mod zone;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::error::{Class, Context as _, Result};
use crate::exec::{UnitStatus, signals};

pub(crate) use config::{ApiName, DnsConfig, HostedZone, TsigKey, UpdateServer, ZoneAccess};
use listed::ListedNames;
pub(crate) use source::{EXTERNAL, INTERNAL};
use writer::{DnsWriter, remove_name};
use zone::NameZone;

/// Between two looks. The lease of a dead API server ends after 15 seconds.
const INTERVAL: Duration = Duration::from_secs(5);

/// Keeps the names of this file until a signal comes. What changes goes to `out`, a line each.
///
/// # Errors
/// That the file is wrong, or `out` cannot be written.
pub(crate) fn run(path: &Path, out: &mut dyn Write) -> Result<()> {
    let config = DnsConfig::read(path)?;
    let zone = NameZone::open(&config)?;
    let mut listed = ListedNames::new(&config);
    let mut writer = DnsWriter::new(&config, &zone, out);
    let mut status = UnitStatus::default();
    while !signals::interrupted() {
        let leads = writer.round()?;
        match (&mut listed, leads) {
            (Some(listed), Some(live)) => match listed.round(&live, &mut writer) {
                Err(error) if error.class() == Class::Interrupted => {}
                result => result?,
            },
            (Some(listed), None) => {
                listed.rest();
                writer.rest();
            }
            (None, _) => {}
        }
        status.set(writer.troubles());
        signals::sleep(INTERVAL).ok();
    }
    Ok(())
}

/// Removes the names that this cluster made. What is gone goes to `out`, a line each.
///
/// # Errors
/// That the server does not do it, or that a name is still there.
pub(crate) fn remove(config: &DnsConfig, out: &mut dyn Write) -> Result<()> {
    let zone = NameZone::open(config)?;
    let mut remove = |name: &str| {
        if remove_name(config, &zone, name)? {
            writeln!(out, "removed {name}").context("cannot write")?;
        }
        Ok(())
    };
    config.names.iter().try_for_each(|name| remove(&name.name))?;
    config.api.as_ref().map_or(Ok(()), |api| listed::remove_all(api, remove))
}

/// The same by the file of a host.
pub(crate) fn remove_by(path: &Path, out: &mut dyn Write) -> Result<()> {
    remove(&DnsConfig::read(path)?, out)
}
