//! `turnup node dns`: keeps the names of the API server in a DNS zone as the live API servers are,
//! by dynamic updates. kops' dns-controller for the control plane.
//!
//! One host writes, that of etcd's leader, and a change takes effect only while the server still
//! has what the writer saw: an address that is gone is never written again by a host that was late.
//! A name that another owner made is left alone. A TXT record at each name says whose it is.

mod config;
mod decide;
mod live;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Class, Context as _, Error, Result};
use crate::exec::signals;
use crate::failpoint;

pub(crate) use config::{ApiName, DnsConfig, EtcdAccess, TsigKey};
use decide::{NameAction, decide, is_turn};
use live::LiveServers;
use server::{Changed, DnsServer, FoundName, NewName};

/// Between two looks. The lease of a dead API server ends after 15 seconds.
const INTERVAL: Duration = Duration::from_secs(5);
/// The same where another host is to write.
const LONG_INTERVAL: Duration = Duration::from_secs(30);
/// How often a name is tried to be removed that changes meanwhile.
const TRIES: usize = 5;

/// Keeps the names of this file until a signal comes. What changes goes to `out`, a line each.
///
/// # Errors
/// That the file is wrong, or `out` cannot be written.
pub(crate) fn run(path: &Path, out: &mut dyn Write) -> Result<()> {
    let config = DnsConfig::read(path)?;
    let server = DnsServer::new(&config)?;
    let mut writer = DnsWriter {
        config: &config,
        server: &server,
        has_written: BTreeSet::new(),
        wrong_since: None,
        told: BTreeMap::new(),
        next: None,
        out,
    };
    while !signals::interrupted() {
        writer.round()?;
        signals::sleep(INTERVAL).ok();
    }
    Ok(())
}

/// Removes the names that this cluster made. What is gone goes to `out`, a line each.
///
/// # Errors
/// That the server does not do it, or that a name is still there.
pub(crate) fn remove(config: &DnsConfig, out: &mut dyn Write) -> Result<()> {
    let server = DnsServer::new(config)?;
    for ApiName { name, .. } in &config.names {
        if remove_name(config, &server, name)? {
            writeln!(out, "removed {name}").context("cannot write")?;
        }
    }
    Ok(())
}

/// The same by the file of a host.
pub(crate) fn remove_by(path: &Path, out: &mut dyn Write) -> Result<()> {
    remove(&DnsConfig::read(path)?, out)
}

fn remove_name(config: &DnsConfig, server: &DnsServer<'_>, name: &str) -> Result<bool> {
    for _ in 0..TRIES {
        let found = server.look(name)?;
        if !found.belongs_to(&config.owner) {
            return Ok(false);
        }
        if change(server, name, &found, None)? == Changed::Done {
            return Ok(true);
        }
    }
    Err(Error::transient(format!("{name} changes again and again, and is still there")))
}

fn change(server: &DnsServer<'_>, name: &str, found: &FoundName, new: Option<&NewName>) -> Result<Changed> {
    failpoint::around(format_args!("dns update {name}"), || server.change(name, found, new))
}

struct DnsWriter<'a> {
    config: &'a DnsConfig,
    server: &'a DnsServer<'a>,
    /// The names whose TTL is known to be what it should be, as far as the server lets it.
    has_written: BTreeSet<&'a str>,
    /// Since when a name is wrong that another host should have put right.
    wrong_since: Option<Instant>,
    /// What was told last, by what it is about.
    told: BTreeMap<&'a str, String>,
    /// Not before this a host asks the server that does not write.
    next: Option<Instant>,
    out: &'a mut dyn Write,
}

impl<'a> DnsWriter<'a> {
    fn round(&mut self) -> Result<()> {
        let is_due = self.next.is_none_or(|next| Instant::now() >= next);
        let live = match LiveServers::read(&self.config.etcd, is_due) {
            Ok(None) => return Ok(()),
            Ok(Some(live)) => {
                self.tell("etcd", "etcd answers")?;
                live
            }
            Err(error) => {
                self.tell("etcd", error.message())?;
                if !is_due {
                    return Ok(());
                }
                LiveServers::default()
            }
        };
        let mut all_right = true;
        for ApiName { name, is_external } in &self.config.names {
            let wanted = self.addresses(&live, *is_external);
            match self.keep(name, &wanted, live.is_leader) {
                Ok(is_right) => all_right &= is_right,
                Err(error) if error.class() == Class::Interrupted => return Ok(()),
                Err(error) => self.tell(name, error.message())?,
            }
        }
        self.wrong_since = if all_right { None } else { self.wrong_since.or_else(|| Some(Instant::now())) };
        self.next = Some(Instant::now() + LONG_INTERVAL);
        Ok(())
    }

    fn addresses(&self, live: &LiveServers, is_external: bool) -> BTreeSet<IpAddr> {
        let outside = |address: &IpAddr| *self.config.external.get(address).filter(|_| is_external).unwrap_or(address);
        live.addresses.iter().map(outside).collect()
    }

    /// Whether the name is as it should be in the end.
    fn keep(&mut self, name: &'a str, wanted: &BTreeSet<IpAddr>, is_leader: bool) -> Result<bool> {
        let found = self.server.look(name)?;
        let mind_ttl = !self.has_written.contains(name);
        let wrong_for = self.wrong_since.map_or(Duration::ZERO, |since| since.elapsed());
        let (new, may) = match decide(wanted, &found, &self.config.owner, self.config.ttl, mind_ttl) {
            NameAction::Keep => {
                self.has_written.extend((!wanted.is_empty()).then_some(name));
                self.tell(name, &list(&found.addresses()))?;
                return Ok(true);
            }
            NameAction::Leave(what) => {
                let why = format!(
                    "another owner has it ({what}), and it is left alone: remove it, or choose another phase2.dns.domain"
                );
                self.tell(name, &why)?;
                return Ok(true);
            }
            NameAction::Create(new) => (new, true),
            NameAction::Replace(new) => (new, is_turn(is_leader, wrong_for)),
        };
        if !may {
            return Ok(false);
        }
        if change(self.server, name, &found, Some(&new))? == Changed::Raced {
            self.tell(name, "something else was written to it at the same time, or is there already")?;
            return Ok(false);
        }
        self.has_written.extend((!wanted.is_empty()).then_some(name));
        self.tell(name, &list(&new.addresses))?;
        Ok(true)
    }

    /// A line, where it is another one than the last about this.
    fn tell(&mut self, about: &'a str, line: &str) -> Result<()> {
        if self.told.get(about).is_some_and(|told| told == line) {
            return Ok(());
        }
        self.told.insert(about, line.to_owned());
        writeln!(self.out, "{about}: {}", line.replace(char::is_control, "?")).context("cannot write")?;
        self.out.flush().context("cannot write")
    }
}

fn list(addresses: &BTreeSet<IpAddr>) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
