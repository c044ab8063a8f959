//! Names that come and go, of etcd's members and those that annotations ask for: what is made, kept
//! and removed of them, by the host whose member of etcd leads. What objects ask for is `source`'s
//! part; a name is written like the API server's own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use crate::error::{Class, Result};
use crate::failpoint;

use super::super::https_endpoint::HttpsEndpoint;
use super::config::DnsConfig;
use super::live::LiveServers;
use super::name_list::NameList;
use super::source::{NameSources, Rules, Wanted};
use super::writer::DnsWriter;

/// When a name is looked at again that is as it should be.
const LOOK_AGAIN: Duration = Duration::from_mins(5);
/// About the list in what is told.
const LIST: &str = "other names";

/// What this host knows of them while it writes.
pub(super) struct ListedNames<'a> {
    config: &'a DnsConfig,
    api: &'a HttpsEndpoint,
    sources: Option<NameSources>,
    list: Option<NameList>,
}

impl<'a> ListedNames<'a> {
    /// None in a configuration of an older turnup.
    pub(super) fn new(config: &'a DnsConfig) -> Option<Self> {
        let api = config.api.as_ref()?;
        Some(Self { config, api, sources: None, list: None })
    }

    /// Another host writes.
    pub(super) fn rest(&mut self) {
        (self.sources, self.list) = (None, None);
    }

    /// Brings the zone to what lives and what objects ask for now.
    pub(super) fn round(&mut self, live: &LiveServers, writer: &mut DnsWriter<'_>) -> Result<()> {
        let members = member_names(live, self.config);
        let Some(mut wanted) = self.find_wanted(&members, writer)? else { return Ok(()) };
        wanted.names.extend(members);
        match self.bring_about(&wanted, writer) {
            Ok(()) => writer.tell(LIST, "all are as they should be"),
            Err(error) if error.class() == Class::Interrupted => Err(error),
            Err(error) => {
                self.list = None;
                writer.tell_trouble(LIST, error.message())
            }
        }
    }

    /// None while it is not known.
    fn find_wanted(&mut self, members: &Names, writer: &mut DnsWriter<'_>) -> Result<Option<Wanted>> {
        if !self.config.annotations {
            // What was made before they were switched off goes.
            return Ok(Some(Wanted::default()));
        }
        let sources = self.sources.get_or_insert_with(|| NameSources::watch(self.api));
        let failures = sources.failures();
        for (kind, why) in &failures {
            writer.tell_trouble(kind, why)?;
        }
        writer.forget_troubles(|about| NameSources::kinds().any(|kind| kind == about) && !failures.contains_key(about));
        let own = self.config.names.iter().map(|name| &name.name).chain(members.keys());
        let reserved = own.map(String::as_str).collect();
        let look_up = |name: &str| sources.look_up(name);
        let wanted = sources.wanted(&Rules { zone: &self.config.zone, reserved: &reserved, look_up: &look_up });
        for (object, why) in wanted.iter().flat_map(|wanted| &wanted.refused) {
            writer.tell(object, why)?;
        }
        Ok(wanted)
    }

    fn bring_about(&mut self, wanted: &Wanted, writer: &mut DnsWriter<'_>) -> Result<()> {
        let list = match &mut self.list {
            Some(list) => list,
            None => self.list.insert(NameList::read(self.api)?),
        };
        let asked = wanted.names.keys().chain(&wanted.held);
        let all: BTreeSet<String> = list.names().iter().chain(asked).cloned().collect();
        replace(list, self.api, &all)?;
        for (name, addresses) in wanted.names.iter().filter(|(name, _)| !wanted.held.contains(*name)) {
            tolerate(writer.keep(name, addresses, true, LOOK_AGAIN), name, writer)?;
        }
        let mut left = list.names().clone();
        let is_asked = |name: &String| wanted.names.contains_key(name) || wanted.held.contains(name);
        for name in list.names().iter().filter(|name| !is_asked(name)) {
            if tolerate(writer.remove(name), name, writer)?.is_some() {
                writer.tell(name, "removed")?;
                left.remove(name);
            }
        }
        replace(list, self.api, &left)
    }
}

/// Where each name is to lead.
type Names = BTreeMap<String, BTreeSet<IpAddr>>;

fn member_names(live: &LiveServers, config: &DnsConfig) -> Names {
    let named = live.members.iter().filter(|(_, addresses)| !config.internal.is_empty() && !addresses.is_empty());
    named.map(|(member, addresses)| (config.member_name(member), addresses.clone())).collect()
}

/// What one name is refused for hinders no other one; a server that is away does.
fn tolerate<T>(result: Result<T>, name: &str, writer: &mut DnsWriter<'_>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if [Class::Interrupted, Class::Transient].contains(&error.class()) => Err(error),
        Err(error) => writer.tell_trouble(name, error.message()).map(|()| None),
    }
}

fn replace(list: &mut NameList, api: &HttpsEndpoint, names: &BTreeSet<String>) -> Result<()> {
    failpoint::around(format_args!("dns list"), || list.replace(api, names))
}

/// Removes all names of the list by `remove`, whatever asks for them.
pub(super) fn remove_all(api: &HttpsEndpoint, mut remove: impl FnMut(&str) -> Result<()>) -> Result<()> {
    NameList::read(api)?.names().iter().try_for_each(|name| remove(name))
}
