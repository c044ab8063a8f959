//! Zones of clouds against servers that answer as the clouds' documentation says they do; Route 53
//! also against moto.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::super::emulator::Emulator;
use super::super::config::DnsConfig;
use super::super::writer::DnsWriter;
use super::super::zone::NameZone;
use super::*;
use crate::http_server::{self, Request};

const OWNER: &str = "turnup cluster=it id=1";
const NAME: &str = "api.it.example.com";

/// What a zone of the fakes has, by name and type.
type Records = BTreeMap<(String, String), Value>;

#[derive(Default)]
struct FakeZone {
    records: Records,
    etag: u32,
}

type Answer = (u16, String);

fn serve(answer: impl Fn(&mut FakeZone, &Request) -> Answer + Send + Sync + 'static) -> (String, Arc<Mutex<FakeZone>>) {
    let zone = Arc::new(Mutex::new(FakeZone::default()));
    let shared = Arc::clone(&zone);
    let url = http_server::serve(http_server::LOOPBACK, move |request, stream| {
        let (status, text) = answer(&mut shared.lock().unwrap(), &request);
        http_server::send(stream, &format!("{status} x"), text.as_bytes())
    });
    (url, zone)
}

/// Google's: a change is refused unless each deletion is exactly what is there.
fn cloud_dns(zone: &mut FakeZone, request: &Request) -> Answer {
    if request.path.ends_with("/token") {
        return (200, json!({"access_token": "l3nt"}).to_string());
    }
    assert_eq!(request.headers["authorization"], "Bearer l3nt");
    let path = request.path.strip_prefix("/dns/v1/projects/p/managedZones/z/").unwrap();
    if let Some(name) = path.strip_prefix("rrsets?name=") {
        let name = name.replace("%2A", "*");
        let sets: Vec<&Value> = zone.records.iter().filter(|((of, _), _)| *of == name).map(|(_, set)| set).collect();
        return (200, json!({"rrsets": sets}).to_string());
    }
    assert_eq!((request.method.as_str(), path), ("POST", "changes"));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let key = |set: &Value| ["name", "type"].map(|field| set[field].as_str().unwrap().to_owned());
    let (deletions, additions) = (body["deletions"].as_array().unwrap(), body["additions"].as_array().unwrap());
    let mut records = zone.records.clone();
    for set in deletions {
        if records.remove(&key(set).into()) != Some(set.clone()) {
            return (
                412,
                json!({"error": {"message": "Precondition not met for 'entity.change.deletions[0]'"}}).to_string(),
            );
        }
    }
    for set in additions {
        if records.insert(key(set).into(), set.clone()).is_some() {
            return (409, json!({"error": {"message": "The resource already exists"}}).to_string());
        }
    }
    zone.records = records;
    (200, "{}".to_owned())
}

/// Azure's: each set is changed by itself, while its tag is the one that is named.
fn azure_dns(zone: &mut FakeZone, request: &Request) -> Answer {
    if request.path.starts_with("/metadata/instance/compute") {
        return (200, json!({"azEnvironment": "AzurePublicCloud", "resourceId": "/m"}).to_string());
    }
    if request.path.starts_with("/metadata/identity") {
        return (200, json!({"access_token": "l3nt"}).to_string());
    }
    let path = request.path.split('?').next().unwrap();
    let rest = path.strip_prefix("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.com/");
    let (kind, name) = rest.unwrap().split_once('/').unwrap();
    let key = (name.to_owned(), kind.to_owned());
    let there = zone.records.get(&key).cloned();
    let missing = || (404, json!({"error": {"code": "NotFound", "message": "no such set"}}).to_string());
    if request.method == "GET" {
        return there.map_or_else(missing, |set| (200, set.to_string()));
    }
    let tag = there.as_ref().map(|set| set["etag"].as_str().unwrap().to_owned());
    let fits = match (request.headers.get("if-match"), request.headers.get("if-none-match")) {
        (Some(wanted), None) => tag.as_ref() == Some(wanted),
        (None, Some(any)) => any == "*" && tag.is_none(),
        _ => false,
    };
    if !fits {
        return (
            412,
            json!({"error": {"code": "PreconditionFailed", "message": "the etag is another one"}}).to_string(),
        );
    }
    if request.method == "DELETE" {
        zone.records.remove(&key);
        return (200, String::new());
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    zone.etag += 1;
    zone.records.insert(key, json!({"etag": format!("e{}", zone.etag), "properties": body["properties"]}));
    (201, "{}".to_owned())
}

fn name(addresses: &[&str], ttl: u32) -> NewName {
    NewName { addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(), ttl }
}

fn addresses(zone: &CloudZone<'_>) -> Vec<String> {
    zone.look(NAME).unwrap().addresses().iter().map(ToString::to_string).collect()
}

/// A name from its first address to its end. moto, unlike Amazon, deletes records of other values.
fn lead_a_name(zone: &CloudZone<'_>, compares: bool) {
    let nothing = zone.look(NAME).unwrap();
    assert_eq!(nothing, FoundName::default());
    let both = name(&["10.0.0.1", "2001:db8::1"], 30);
    assert_eq!(zone.change(NAME, &nothing, Some(&both)).unwrap(), Changed::Done);
    assert_eq!(zone.change(NAME, &nothing, Some(&both)).unwrap(), Changed::Raced, "it is there by now");
    let first = zone.look(NAME).unwrap();
    assert!(first.belongs_to(OWNER) && first.ttl == Some(30), "{first:?}");
    assert_eq!(addresses(zone), ["10.0.0.1", "2001:db8::1"]);

    let one = name(&["10.0.0.2"], 60);
    assert_eq!(zone.change(NAME, &first, Some(&one)).unwrap(), Changed::Done);
    assert_eq!(addresses(zone), ["10.0.0.2"]);
    assert_eq!(zone.change(NAME, &first, Some(&both)).unwrap(), Changed::Raced, "what was seen is no longer there");
    assert_eq!(addresses(zone), ["10.0.0.2"]);
    let second = zone.look(NAME).unwrap();
    assert!(second.belongs_to(OWNER) && second.ttl == Some(60), "{second:?}");

    // A change between the last look and the change is for the API to find.
    let seen = zone.ask(|api| api.find(NAME)).unwrap();
    let (old, new) = plan(&seen, OWNER, Some(&name(&["10.0.0.9"], 60)));
    let both = name(&["10.0.0.3", "10.0.0.4"], 60);
    assert_eq!(zone.change(NAME, &second, Some(&both)).unwrap(), Changed::Done);
    if compares {
        assert!(!zone.ask(|api| api.replace(NAME, &old, &new)).unwrap(), "the API took an old state for the new one");
        assert_eq!(addresses(zone), ["10.0.0.3", "10.0.0.4"]);
    }

    let last = zone.look(NAME).unwrap();
    assert_eq!(zone.change(NAME, &last, None).unwrap(), Changed::Done);
    assert_eq!(zone.look(NAME).unwrap(), FoundName::default());
}

fn hosted(cloud: &str, id: &str) -> HostedZone {
    HostedZone { cloud: cloud.into(), id: id.into() }
}

#[test]
fn names_of_cloud_dns_are_changed_while_they_are_as_they_were() {
    let (url, fake) = serve(cloud_dns);
    let hosted = hosted("gce", "projects/p/managedZones/z");
    let zone = CloudZone::at(&hosted, OWNER, Endpoints { metadata: url.clone(), api: Some(url) }).unwrap();
    lead_a_name(&zone, true);
    let taken = json!({"name": "api.it.example.com.", "type": "CNAME", "ttl": 30, "rrdatas": ["else."]});
    fake.lock().unwrap().records.insert(("api.it.example.com.".into(), "CNAME".into()), taken);
    assert_eq!(zone.change(NAME, &FoundName::default(), Some(&name(&["10.0.0.1"], 30))).unwrap(), Changed::Raced);
}

#[test]
fn names_of_azure_dns_are_changed_while_they_are_as_they_were() {
    let (url, fake) = serve(azure_dns);
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.com";
    let hosted = hosted("azure", id);
    let zone = CloudZone::at(&hosted, OWNER, Endpoints { metadata: url.clone(), api: Some(url) }).unwrap();
    lead_a_name(&zone, true);
    // The text came, and the writer was killed: the next one goes on.
    let text = json!({"etag": "e", "properties": {"ttl": 30, "txtRecords": [{"value": [OWNER]}]}});
    fake.lock().unwrap().records.insert(("api.it".into(), "TXT".into()), text);
    let found = zone.look(NAME).unwrap();
    assert!(found.belongs_to(OWNER) && found.addresses().is_empty());
    assert_eq!(zone.change(NAME, &found, Some(&name(&["10.0.0.1"], 30))).unwrap(), Changed::Done);
    assert_eq!(addresses(&zone), ["10.0.0.1"]);
}

#[test]
fn a_refusal_says_which_right_is_missing() {
    for (cloud, id, right) in [
        ("gce", "projects/p/managedZones/z", "dns.changes.create"),
        (
            "azure",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/z",
            "record sets of the zone",
        ),
        ("aws", "Z0123456789", "route53:ChangeResourceRecordSets on hostedzone/Z0123456789"),
    ] {
        let url = http_server::serve(http_server::LOOPBACK, |request, stream| {
            let is_metadata =
                ["/computeMetadata", "/metadata", "/latest"].iter().any(|path| request.path.starts_with(path));
            let lent = json!({"access_token": "t", "AccessKeyId": "k", "SecretAccessKey": "s3cret", "Token": "l3nt"});
            let (status, text) =
                if is_metadata { ("200 OK", lent) } else { ("403 Forbidden", json!({"error": {"message": "no"}})) };
            http_server::send(stream, status, text.to_string().as_bytes())
        });
        let hosted = hosted(cloud, id);
        let zone = CloudZone::at(&hosted, OWNER, Endpoints { metadata: url.clone(), api: Some(url) }).unwrap();
        let said = zone.look(NAME).unwrap_err().render();
        assert!(said.contains(right) && !said.contains("s3cret") && !said.contains("l3nt"), "{said}");
    }
}

/// An account has few requests for all its zones.
#[test]
fn a_name_that_is_right_or_refused_is_not_asked_for_in_each_round() {
    for is_allowed in [true, false] {
        let asked = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&asked);
        let (url, _) = serve(move |zone, request| {
            if request.path.starts_with("/computeMetadata") {
                return cloud_dns(zone, request);
            }
            *counted.lock().unwrap() += 1;
            if is_allowed { cloud_dns(zone, request) } else { (403, "{}".to_owned()) }
        });
        let hosted = hosted("gce", "projects/p/managedZones/z");
        let endpoint = json!({"endpoint": "http://127.0.0.1:1", "authority": "", "certificate": "", "key": ""});
        let config: DnsConfig = serde_json::from_value(json!({
            "schema": "turnup.dns/2", "zone": "example.com", "access": {"cloud": hosted}, "ttl": 30, "owner": OWNER,
            "names": [], "external": {}, "etcd": endpoint,
        }))
        .unwrap();
        let endpoints = Endpoints { metadata: url.clone(), api: Some(url) };
        let zone = NameZone::Cloud(CloudZone::at(&hosted, OWNER, endpoints).unwrap());
        let mut out = Vec::new();
        let mut writer = DnsWriter::new(&config, &zone, &mut out);
        let wanted = BTreeSet::from([IpAddr::from([10, 0, 0, 1])]);
        let first = writer.keep(NAME, &wanted, true, zone.interval());
        assert_eq!(first.is_ok(), is_allowed);
        let of_first = *asked.lock().unwrap();
        assert!(of_first > 0);
        assert_eq!(writer.keep(NAME, &wanted, true, zone.interval()).ok(), Some(is_allowed));
        assert_eq!(*asked.lock().unwrap(), of_first, "it was asked for again");
        if is_allowed {
            let other = BTreeSet::from([IpAddr::from([10, 0, 0, 2])]);
            assert_eq!(writer.keep(NAME, &other, true, zone.interval()).ok(), Some(true));
            assert!(*asked.lock().unwrap() > of_first, "what lives is another");
        }
    }
}

#[test]
#[ignore = "needs moto: make test-clouds"]
fn names_of_route_53_are_changed_while_they_are_as_they_were() {
    let python = reference::Python::with_moto().unwrap();
    let moto = Emulator::start("moto", |port| {
        duct::cmd(python.program(), ["-m", "moto.server", "-H", "127.0.0.1", "-p", port])
            .env("PYTHONPATH", python.packages())
    });
    let api = format!("http://127.0.0.1:{}", moto.port);
    let made = ureq::post(format!("{api}/2013-04-01/hostedzone"))
        .header(
            "Authorization",
            "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/route53/aws4_request, SignedHeaders=host, Signature=x",
        )
        .send(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><Name>example.com</Name>\
             <CallerReference>it</CallerReference></CreateHostedZoneRequest>"
                .as_bytes(),
        )
        .unwrap();
    let place = made.headers()["location"].to_str().unwrap().to_owned();
    let metadata = http_server::serve(http_server::LOOPBACK, |request, stream| {
        let text = match request.path.as_str() {
            "/latest/api/token" => "session",
            "/latest/meta-data/services/partition" => "aws",
            "/latest/meta-data/iam/security-credentials/" => "a-role",
            _ => r#"{"Code": "Success", "AccessKeyId": "AKIA", "SecretAccessKey": "s3cret", "Token": "l3nt"}"#,
        };
        http_server::send(stream, "200 OK", text.as_bytes())
    });
    let hosted = hosted("aws", place.rsplit('/').next().unwrap());
    let zone = CloudZone::at(&hosted, OWNER, Endpoints { metadata, api: Some(api) }).unwrap();
    lead_a_name(&zone, false);
    let wildcard = "*.apps.example.com";
    assert_eq!(zone.change(wildcard, &FoundName::default(), Some(&name(&["10.0.0.1"], 30))).unwrap(), Changed::Done);
    assert!(zone.look(wildcard).unwrap().belongs_to(OWNER));
}
