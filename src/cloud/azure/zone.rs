//! Azure DNS: record sets of a zone, public or private, with the token of the machine's managed
//! identity. A set is changed only while it is as it was found (`If-Match`). A name is several sets
//! and no change of Azure's is of more than one: the text that says whose the name is comes first
//! and goes last.

use serde_json::{Value, json};

use super::identity::ManagedIdentity;
use crate::cloud::Endpoints;
use crate::cloud::http::{self, HttpAnswer};
use crate::cloud::zone::{RecordKind, ZoneApi, ZoneName, ZoneRecords, quote, unquote};
use crate::error::{Error, Result};

/// The API's versions of both kinds of zones.
const PUBLIC: &str = "2018-05-01";
const PRIVATE: &str = "2020-06-01";

/// The API, asked for one zone.
pub(super) struct AzureDns {
    /// `/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/dnsZones/N`, or
    /// `privateDnsZones`.
    zone: String,
    identity: ManagedIdentity,
}

impl AzureDns {
    pub(super) fn new(zone: &str, endpoints: &Endpoints) -> Result<Self> {
        Ok(Self { zone: zone.to_owned(), identity: ManagedIdentity::open(endpoints)? })
    }

    fn is_private(&self) -> bool {
        self.zone.to_ascii_lowercase().contains("/privatednszones/")
    }

    fn call(
        &self,
        method: &str,
        name: &str,
        kind: RecordKind,
        condition: Option<(&str, &str)>,
        body: Option<&Value>,
    ) -> Result<HttpAnswer> {
        let zone = self.zone.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let relative = if name == zone { "@" } else { name.strip_suffix(&format!(".{zone}")).unwrap_or(name) };
        let version = if self.is_private() { PRIVATE } else { PUBLIC };
        let path = format!("{}/{kind}/{}?api-version={version}", self.zone, relative.replace('*', "%2A"));
        self.identity.ask(method, &path, condition, body)
    }

    fn explain(&self, status: u16, answer: &HttpAnswer) -> Error {
        let rights = "the identity of control-plane machines needs read, write and delete of A, AAAA and TXT record sets of the zone (docs/dns.md)";
        let hint = if http::is_refusal(status) { rights } else { "correct phase2.dns.zone_id" };
        Error::new(http::class_of(status), format!("Azure DNS answers {status} about {}", self.zone))
            .evidence(answer.said())
            .hint(hint)
    }

    /// False where the set is no longer as it was.
    fn put(&self, name: &str, old: Option<&ZoneRecords>, new: &ZoneRecords) -> Result<bool> {
        let condition = old.map_or(("If-None-Match", "*"), |old| ("If-Match", old.tag.as_str()));
        let answer = self.call("PUT", name, new.kind, Some(condition), Some(&properties(new)))?;
        self.is_done(&answer)
    }

    fn delete(&self, name: &str, old: &ZoneRecords) -> Result<bool> {
        let answer = self.call("DELETE", name, old.kind, Some(("If-Match", &old.tag)), None)?;
        self.is_done(&answer)
    }

    fn is_done(&self, answer: &HttpAnswer) -> Result<bool> {
        if [404, 409, 412].contains(&answer.status) && answer.json().is_ok_and(|said| !is_zone_missing(&said)) {
            return Ok(false);
        }
        answer.require(|status, _| self.explain(status, answer))?;
        Ok(true)
    }
}

fn is_zone_missing(said: &Value) -> bool {
    let code = said["error"]["code"].as_str().or_else(|| said["code"].as_str()).unwrap_or_default();
    ["ParentResourceNotFound", "ResourceGroupNotFound"].contains(&code)
}

impl ZoneApi for AzureDns {
    fn find(&self, name: &str) -> Result<ZoneName> {
        let mut found = ZoneName::default();
        for kind in RecordKind::ALL {
            let answer = self.call("GET", name, kind, None, None)?;
            if answer.status == 404 && answer.json().is_ok_and(|said| !is_zone_missing(&said)) {
                continue;
            }
            answer.require(|status, _| self.explain(status, &answer))?;
            found.records.extend(read_set(kind, &answer.json()?));
        }
        Ok(found)
    }

    fn replace(&self, name: &str, old: &[ZoneRecords], new: &[ZoneRecords]) -> Result<bool> {
        let old_of = |kind: RecordKind| old.iter().find(|set| set.kind == kind);
        let mut new: Vec<&ZoneRecords> = new.iter().collect();
        new.sort_by_key(|set| set.kind != RecordKind::Txt);
        for set in &new {
            if !self.put(name, old_of(set.kind), set)? {
                return Ok(false);
            }
        }
        let mut gone: Vec<&ZoneRecords> =
            old.iter().filter(|set| new.iter().all(|kept| kept.kind != set.kind)).collect();
        gone.sort_by_key(|set| set.kind == RecordKind::Txt);
        for set in gone {
            if !self.delete(name, set)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The name of a set's records, and of what is in one: both kinds of zones take any case.
const fn names(kind: RecordKind) -> (&'static str, &'static str) {
    match kind {
        RecordKind::A => ("aRecords", "ipv4Address"),
        RecordKind::Aaaa => ("aaaaRecords", "ipv6Address"),
        RecordKind::Txt => ("txtRecords", "value"),
    }
}

fn properties(set: &ZoneRecords) -> Value {
    let (records, field) = names(set.kind);
    let one = |value: &String| match set.kind {
        RecordKind::Txt => json!({field: [unquote(value)]}),
        _ => json!({field: value}),
    };
    json!({"properties": {"ttl": set.ttl, records: set.values.iter().map(one).collect::<Vec<_>>()}})
}

/// None where it has no records, such as one that leads to another resource.
fn read_set(kind: RecordKind, answer: &Value) -> Option<ZoneRecords> {
    let (records, field) = names(kind);
    let properties = answer["properties"].as_object()?;
    let find =
        |wanted: &str| properties.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value);
    let one = |record: &Value| match &record[field] {
        Value::Array(parts) => Some(quote(&parts.iter().filter_map(Value::as_str).collect::<String>())),
        value => value.as_str().map(str::to_owned),
    };
    let values = find(records)?.as_array()?.iter().filter_map(one).collect();
    let ttl = find("ttl").and_then(Value::as_u64).and_then(|ttl| u32::try_from(ttl).ok()).unwrap_or_default();
    Some(ZoneRecords { kind, ttl, values, tag: answer["etag"].as_str().unwrap_or_default().to_owned() })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_set_is_read_in_the_words_of_both_kinds_of_zones() {
        let public = json!({"etag": "e1", "properties": {"TTL": 30, "ARecords": [{"ipv4Address": "192.0.2.1"}]}});
        let private = json!({"etag": "e2", "properties": {"ttl": 60, "txtRecords": [{"value": ["a ", "b"]}]}});
        let found = read_set(RecordKind::A, &public).unwrap();
        assert_eq!((found.ttl, found.values.first().unwrap().as_str(), found.tag.as_str()), (30, "192.0.2.1", "e1"));
        let text = read_set(RecordKind::Txt, &private).unwrap();
        assert_eq!((text.ttl, text.values.first().unwrap().as_str()), (60, "\"a b\""));
        assert_eq!(properties(&text)["properties"]["txtRecords"][0]["value"][0], "a b");
        assert_eq!(read_set(RecordKind::Aaaa, &json!({})), None);
    }
}
