//! A zone of a cloud. Its API compares whole sets of records with their TTLs, so what is there is
//! read again for a change, and must be what the decision was made of.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::cloud::{self, Cloud, Endpoints, RecordKind, ZoneApi, ZoneName, ZoneRecords, quote, unquote};
use crate::error::{Error, Result};

use super::config::HostedZone;
use super::record::{Changed, FoundName, NewName, address_data, text_data};

/// How long what the machine is lent is used: it lives for some hours, of which the metadata
/// service may have let some pass.
const LENT: Duration = Duration::from_mins(4);

/// The zone, with what its cloud lends this machine.
pub(super) struct CloudZone<'c> {
    zone: &'c HostedZone,
    owner: &'c str,
    cloud: &'static dyn Cloud,
    endpoints: Endpoints,
    api: RefCell<Option<(Instant, Box<dyn ZoneApi>)>>,
}

impl<'c> CloudZone<'c> {
    /// Asks nothing yet.
    pub(super) fn new(zone: &'c HostedZone, owner: &'c str) -> Result<Self> {
        Self::at(zone, owner, Endpoints::default())
    }

    fn at(zone: &'c HostedZone, owner: &'c str, endpoints: Endpoints) -> Result<Self> {
        let unknown = || Error::precondition(format!("{:?} is no cloud that has zones", zone.cloud)).hint("turnup up");
        let cloud = cloud::find(&zone.cloud).ok_or_else(unknown)?;
        Ok(Self { zone, owner, cloud, endpoints, api: RefCell::default() })
    }

    /// After an error the machine is lent something else.
    fn ask<T>(&self, question: impl FnOnce(&dyn ZoneApi) -> Result<T>) -> Result<T> {
        let mut kept = self.api.borrow_mut();
        let (since, api) = match kept.take().filter(|(since, _)| since.elapsed() < LENT) {
            Some(kept) => kept,
            None => (Instant::now(), self.cloud.zone_api(&self.zone.id, &self.endpoints)?),
        };
        let answer = question(&*api)?;
        *kept = Some((since, api));
        Ok(answer)
    }

    pub(super) fn look(&self, name: &str) -> Result<FoundName> {
        self.ask(|api| api.find(name)).map(|found| read(&found))
    }

    pub(super) fn change(&self, name: &str, found: &FoundName, new: Option<&NewName>) -> Result<Changed> {
        let there = self.ask(|api| api.find(name))?;
        let is_ours = found.belongs_to(self.owner);
        if read(&there) != *found || (!is_ours && there != ZoneName::default()) {
            return Ok(Changed::Raced);
        }
        let (old, new) = plan(&there, self.owner, new);
        let is_done = self.ask(|api| api.replace(name, &old, &new))?;
        Ok(if is_done { Changed::Done } else { Changed::Raced })
    }
}

fn read(there: &ZoneName) -> FoundName {
    let mut found = FoundName::default();
    for set in &there.records {
        let data = |value: &String| match set.kind {
            RecordKind::Txt => Some(text_data(&unquote(value))),
            _ => value.parse().ok().map(address_data),
        };
        let at = match set.kind {
            RecordKind::A => 0,
            RecordKind::Aaaa => 1,
            RecordKind::Txt => 2,
        };
        found.sets[at] = set.values.iter().filter_map(data).collect();
        found.ttl = if set.kind == RecordKind::Txt { found.ttl } else { Some(set.ttl) };
    }
    found
}

/// What is taken away and what is put there. Our text stays as it is until the name goes.
fn plan(there: &ZoneName, owner: &str, new: Option<&NewName>) -> (Vec<ZoneRecords>, Vec<ZoneRecords>) {
    let is_text = |set: &&ZoneRecords| set.kind == RecordKind::Txt;
    let Some(new) = new else { return (there.records.clone(), Vec::new()) };
    let old: Vec<ZoneRecords> = there.records.iter().filter(|set| !is_text(set)).cloned().collect();
    let set =
        |kind: RecordKind, values: BTreeSet<String>| ZoneRecords { kind, ttl: new.ttl, values, tag: String::new() };
    let of = |is_v4: bool| -> BTreeSet<String> {
        new.addresses.iter().filter(|address| address.is_ipv4() == is_v4).map(ToString::to_string).collect()
    };
    let mut all = vec![set(RecordKind::A, of(true)), set(RecordKind::Aaaa, of(false))];
    if !there.records.iter().any(|set| is_text(&set)) {
        all.push(set(RecordKind::Txt, BTreeSet::from([quote(owner)])));
    }
    all.retain(|set| !set.values.is_empty());
    (old, all)
}

#[cfg(test)]
#[path = "cloud_zone_tests.rs"]
mod tests;
