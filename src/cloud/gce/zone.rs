//! Google Cloud DNS: records of a managed zone, with the token of the machine's service account. A
//! change names the very records that it deletes, and takes effect only while they are there
//! (<https://cloud.google.com/dns/docs/reference/rest/v1/changes/create>).

use serde_json::{Value, json};

use super::metadata;
use crate::cloud::Endpoints;
use crate::cloud::http::{self, Bearer, HttpAnswer};
use crate::cloud::zone::{RecordKind, ZoneApi, ZoneName, ZoneRecords};
use crate::error::{Error, Result};

/// The public API.
const API: &str = "https://dns.googleapis.com";

/// The API, asked for one zone.
pub(super) struct CloudDns {
    /// `projects/P/managedZones/Z`.
    zone: String,
    api: String,
    bearer: Bearer,
}

impl CloudDns {
    pub(super) fn new(zone: &str, endpoints: &Endpoints) -> Result<Self> {
        let api = endpoints.api.clone().unwrap_or_else(|| API.to_owned());
        Ok(Self { zone: zone.to_owned(), api, bearer: metadata::lend_token(endpoints)? })
    }

    fn url(&self, what: &str) -> String {
        format!("{}/dns/v1/{}/{what}", self.api, self.zone)
    }

    fn explain(&self, status: u16, answer: &HttpAnswer) -> Error {
        let rights = "the service account of control-plane machines needs dns.resourceRecordSets.list, create, update and delete, and dns.changes.create, on the zone (docs/dns.md)";
        let hint = if http::is_refusal(status) { rights } else { "correct phase2.dns.zone_id" };
        Error::new(http::class_of(status), format!("Cloud DNS answers {status} about {}", self.zone))
            .evidence(answer.said())
            .hint(hint)
    }
}

impl ZoneApi for CloudDns {
    fn find(&self, name: &str) -> Result<ZoneName> {
        let answer = self.bearer.ask("GET", &self.url(&format!("rrsets?name={}.", name.replace('*', "%2A"))), None)?;
        answer.require(|status, _| self.explain(status, &answer))?;
        Ok(read_name(&answer.json()?))
    }

    fn replace(&self, name: &str, old: &[ZoneRecords], new: &[ZoneRecords]) -> Result<bool> {
        let all = |sets: &[ZoneRecords]| sets.iter().map(|set| record_set(name, set)).collect::<Vec<_>>();
        let body = json!({"deletions": all(old), "additions": all(new)});
        let answer = self.bearer.ask("POST", &self.url("changes"), Some(&body))?;
        // What is to be deleted is another one or gone, or what is to be added is there.
        if [404, 409, 412].contains(&answer.status) && !is_zone_missing(&answer) {
            return Ok(false);
        }
        answer.require(|status, _| self.explain(status, &answer))?;
        Ok(true)
    }
}

fn is_zone_missing(answer: &HttpAnswer) -> bool {
    let message =
        answer.json().ok().and_then(|value| Some(value["error"]["message"].as_str()?.contains("managedZone")));
    answer.status == 404 && message == Some(true)
}

fn record_set(name: &str, set: &ZoneRecords) -> Value {
    json!({"name": format!("{name}."), "type": set.kind.name(), "ttl": set.ttl, "rrdatas": set.values})
}

fn read_name(answer: &Value) -> ZoneName {
    let mut found = ZoneName::default();
    for set in answer["rrsets"].as_array().into_iter().flatten() {
        let kind = set["type"].as_str().unwrap_or_default();
        // Records of a routing policy have no data of their own.
        let plain = RecordKind::of(kind).zip(set["rrdatas"].as_array().filter(|data| !data.is_empty()));
        match plain {
            Some((kind, data)) => found.records.push(ZoneRecords {
                kind,
                ttl: set["ttl"].as_u64().and_then(|ttl| u32::try_from(ttl).ok()).unwrap_or_default(),
                values: data.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
                tag: String::new(),
            }),
            None => found.others.push(kind.to_owned()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_from_what_a_policy_answers() {
        let found = read_name(&json!({"rrsets": [
            {"name": "a.example.com.", "type": "A", "ttl": 30, "rrdatas": ["192.0.2.1"]},
            {"name": "a.example.com.", "type": "AAAA", "ttl": 30, "routingPolicy": {}},
            {"name": "a.example.com.", "type": "MX", "ttl": 30, "rrdatas": ["10 m."]},
        ]}));
        assert_eq!((found.records.len(), found.others), (1, vec!["AAAA".to_owned(), "MX".to_owned()]));
        assert_eq!(read_name(&json!({})), ZoneName::default());
    }
}
