//! One name after another, kept as it should be: what is there is looked at, decided about, and
//! changed where it is this host's turn. What changes is told once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::error::{Class, Context as _, Error, Result};
use crate::failpoint;

use super::config::{ApiName, DnsConfig};
use super::decide::{NameAction, decide, is_turn};
use super::live::LiveServers;
use super::record::{Changed, FoundName, NewName};
use super::zone::NameZone;

/// Between two looks of a host whose turn it is not.
const LONG_INTERVAL: Duration = Duration::from_secs(30);
/// How often a name is tried to be removed that changes meanwhile.
const TRIES: usize = 5;

/// What a host knows while it keeps names.
pub(super) struct DnsWriter<'a> {
    config: &'a DnsConfig,
    zone: &'a NameZone<'a>,
    /// The names whose TTL is known to be what it should be, as far as the server lets it.
    has_written: BTreeSet<String>,
    /// Where a name was to lead when it was as it should be, and when that was.
    seen: BTreeMap<String, (BTreeSet<IpAddr>, Instant)>,
    /// When a name could not be looked at or changed last.
    failed: BTreeMap<String, Instant>,
    /// Since when a name is wrong that another host should have put right.
    wrong_since: Option<Instant>,
    /// What was told last, by what it is about.
    told: BTreeMap<String, String>,
    /// What is not as it should be, by what it is about.
    troubles: BTreeMap<String, String>,
    /// Not before this a host asks the server that does not write.
    next: Option<Instant>,
    out: &'a mut dyn Write,
}

impl<'a> DnsWriter<'a> {
    /// What changes goes to `out`, a line each.
    pub(super) fn new(config: &'a DnsConfig, zone: &'a NameZone<'a>, out: &'a mut dyn Write) -> Self {
        let (has_written, seen, failed) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let (told, troubles) = (BTreeMap::new(), BTreeMap::new());
        Self { config, zone, has_written, seen, failed, wrong_since: None, told, troubles, next: None, out }
    }

    /// Keeps the names of the API server. What lives, where this host's etcd leads: it writes all
    /// other names.
    pub(super) fn round(&mut self) -> Result<Option<LiveServers>> {
        let is_due = self.next.is_none_or(|next| Instant::now() >= next);
        let live = match LiveServers::read(&self.config.etcd, is_due) {
            Ok(None) => return Ok(None),
            Ok(Some(live)) => {
                self.tell("etcd", "etcd answers")?;
                live
            }
            Err(error) => {
                self.tell_trouble("etcd", error.message())?;
                if !is_due {
                    return Ok(None);
                }
                LiveServers::default()
            }
        };
        let mut all_right = true;
        let config = self.config;
        for ApiName { name, is_external } in &config.names {
            let wanted = self.addresses(&live, *is_external);
            match self.keep(name, &wanted, live.is_leader, self.zone.interval()) {
                Ok(is_right) => all_right &= is_right,
                Err(error) if error.class() == Class::Interrupted => return Ok(None),
                Err(error) => self.tell_trouble(name, error.message())?,
            }
        }
        self.wrong_since = if all_right { None } else { self.wrong_since.or_else(|| Some(Instant::now())) };
        self.next = Some(Instant::now() + LONG_INTERVAL);
        Ok(Some(live).filter(|live| live.is_leader))
    }

    fn addresses(&self, live: &LiveServers, is_external: bool) -> BTreeSet<IpAddr> {
        let outside = |address: &IpAddr| *self.config.external.get(address).filter(|_| is_external).unwrap_or(address);
        live.addresses.iter().map(outside).collect()
    }

    /// Whether the name is as it should be in the end. One that was is not looked at for so long.
    pub(super) fn keep(
        &mut self,
        name: &str,
        wanted: &BTreeSet<IpAddr>,
        is_leader: bool,
        interval: Duration,
    ) -> Result<bool> {
        let is_new = |(there, at): &(BTreeSet<IpAddr>, Instant)| there == wanted && at.elapsed() < interval;
        if self.seen.get(name).is_some_and(is_new) {
            return Ok(true);
        }
        if self.failed.get(name).is_some_and(|at| at.elapsed() < self.zone.retry_interval()) {
            return Ok(false);
        }
        let is_right = self.bring_about(name, wanted, is_leader).inspect_err(|_| {
            self.failed.insert(name.to_owned(), Instant::now());
        })?;
        self.failed.remove(name);
        if is_right {
            self.seen.insert(name.to_owned(), (wanted.clone(), Instant::now()));
        } else {
            self.seen.remove(name);
        }
        Ok(is_right)
    }

    /// Removes a name that this cluster made.
    pub(super) fn remove(&mut self, name: &str) -> Result<()> {
        self.seen.remove(name);
        remove_name(self.config, self.zone, name).map(drop)
    }

    /// Another host writes: what this one saw may change.
    pub(super) fn rest(&mut self) {
        self.seen.clear();
        let config = self.config;
        self.forget_troubles(|about| about != "etcd" && !config.names.iter().any(|name| name.name == about));
    }

    /// What these are about is as it should be, or is not looked at any more.
    pub(super) fn forget_troubles(&mut self, is_over: impl Fn(&str) -> bool) {
        self.troubles.retain(|about, _| !is_over(about));
    }

    /// What is not as it should be, in words.
    pub(super) fn troubles(&self) -> impl Iterator<Item = String> {
        self.troubles.iter().map(|(about, why)| format!("{about}: {why}"))
    }

    fn bring_about(&mut self, name: &str, wanted: &BTreeSet<IpAddr>, is_leader: bool) -> Result<bool> {
        let found = self.zone.look(name)?;
        let mind_ttl = !self.has_written.contains(name);
        let wrong_for = self.wrong_since.map_or(Duration::ZERO, |since| since.elapsed());
        let (new, may) = match decide(wanted, &found, &self.config.owner, self.config.ttl, mind_ttl) {
            NameAction::Keep => {
                self.has_written.extend((!wanted.is_empty()).then(|| name.to_owned()));
                self.tell(name, &list(&found.addresses()))?;
                return Ok(true);
            }
            NameAction::Leave(what) => {
                let why = format!(
                    "another owner has it ({what}), and it is left alone: remove it, or choose another phase2.dns.domain"
                );
                self.tell_trouble(name, &why)?;
                return Ok(true);
            }
            NameAction::Create(new) => (new, true),
            NameAction::Replace(new) => (new, is_turn(is_leader, wrong_for)),
        };
        if !may {
            return Ok(false);
        }
        if change(self.zone, name, &found, Some(&new))? == Changed::Raced {
            self.tell(name, "something else was written to it at the same time, or is there already")?;
            return Ok(false);
        }
        self.has_written.extend((!wanted.is_empty()).then(|| name.to_owned()));
        self.tell(name, &list(&new.addresses))?;
        Ok(true)
    }

    /// The same, where it is not as it should be.
    pub(super) fn tell_trouble(&mut self, about: &str, line: &str) -> Result<()> {
        self.tell(about, line)?;
        self.troubles.insert(about.to_owned(), line.to_owned());
        Ok(())
    }

    /// A line, where it is another one than the last about this.
    pub(super) fn tell(&mut self, about: &str, line: &str) -> Result<()> {
        self.troubles.remove(about);
        if self.told.get(about).is_some_and(|told| told == line) {
            return Ok(());
        }
        self.told.insert(about.to_owned(), line.to_owned());
        writeln!(self.out, "{about}: {}", line.replace(char::is_control, "?")).context("cannot write")?;
        self.out.flush().context("cannot write")
    }
}

fn list(addresses: &BTreeSet<IpAddr>) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Removes a name that this cluster made; whether there was one.
pub(super) fn remove_name(config: &DnsConfig, zone: &NameZone<'_>, name: &str) -> Result<bool> {
    for _ in 0..TRIES {
        let found = zone.look(name)?;
        if !found.belongs_to(&config.owner) {
            return Ok(false);
        }
        if change(zone, name, &found, None)? == Changed::Done {
            return Ok(true);
        }
    }
    Err(Error::transient(format!("{name} changes again and again, and is still there")))
}

fn change(zone: &NameZone<'_>, name: &str, found: &FoundName, new: Option<&NewName>) -> Result<Changed> {
    failpoint::around(format_args!("dns update {name}"), || zone.change(name, found, new))
}
