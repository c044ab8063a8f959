//! Amazon Route 53: records of a hosted zone, with what the machine's role lends it. A change is
//! one batch, which deletes the very records that were found: it takes effect only while they are
//! there
//! (<https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html>).

use std::fmt::Write as _;

use jiff::Timestamp;
use roxmltree::Document;

use super::metadata::Metadata;
use super::sigv4::{SignedRequest, escape};
use super::xml::{self, child, is_named};
use crate::cloud::zone::{RecordKind, ZoneApi, ZoneName, ZoneRecords};
use crate::cloud::{Endpoints, LentKey, http};
use crate::error::{Class, Context as _, Error, Result};

/// The version of the API, with which each of its paths begins.
const VERSION: &str = "2013-04-01";
/// More types than a name has.
const MOST: usize = 30;

/// The API, asked for one zone.
pub(super) struct Route53 {
    zone: String,
    url: String,
    region: &'static str,
    key: LentKey,
}

/// Where each partition has the API, and the region that requests to it are signed for
/// (<https://docs.aws.amazon.com/general/latest/gr/r53.html>).
fn find_place(partition: &str) -> (&'static str, &'static str) {
    match partition {
        "aws-cn" => ("https://route53.amazonaws.com.cn", "cn-northwest-1"),
        "aws-us-gov" => ("https://route53.us-gov.amazonaws.com", "us-gov-west-1"),
        _ => ("https://route53.amazonaws.com", "us-east-1"),
    }
}

impl Route53 {
    pub(super) fn new(zone: &str, endpoints: &Endpoints) -> Result<Self> {
        let metadata = Metadata::open(&endpoints.metadata)?;
        let (url, region) = find_place(&metadata.partition()?);
        let url = endpoints.api.clone().unwrap_or_else(|| url.to_owned());
        Ok(Self { zone: zone.to_owned(), url, region, key: metadata.key()? })
    }

    /// The answer in XML; none where the zone is no longer as it was.
    fn call(&self, method: &str, query: &str, body: &str) -> Result<Option<String>> {
        let path = format!("/{VERSION}/hostedzone/{}/rrset", self.zone);
        let request = SignedRequest {
            method,
            endpoint: &self.url,
            path: &path,
            query,
            region: self.region,
            service: "route53",
            content_type: "application/xml",
            body,
            moment: Timestamp::now(),
        };
        let answer = request.send(&self.key)?;
        if (200..300).contains(&answer.status) {
            return Ok(Some(answer.text));
        }
        let (code, said) = read_error(&answer.text);
        if code == "InvalidChangeBatch" {
            return Ok(None);
        }
        let is_busy = ["Throttling", "ThrottlingException", "PriorRequestNotComplete"].contains(&code.as_str());
        let class = if is_busy { Class::Transient } else { http::class_of(answer.status) };
        let rights = format!(
            "the role of control-plane machines needs route53:ListResourceRecordSets and route53:ChangeResourceRecordSets on hostedzone/{} (docs/dns.md)",
            self.zone
        );
        let hint = if http::is_refusal(answer.status) { rights } else { "correct phase2.dns.zone_id".to_owned() };
        Err(Error::new(class, format!("Route 53 answers {code} about the zone {}", self.zone))
            .evidence(said)
            .hint(hint))
    }
}

impl ZoneApi for Route53 {
    fn find(&self, name: &str) -> Result<ZoneName> {
        // In the order of their names, from this one on.
        let query = format!("maxitems={MOST}&name={}", escape(&format!("{name}.")));
        let text = self.call("GET", &query, "")?.unwrap_or_default();
        read_name(&text, name)
    }

    fn replace(&self, name: &str, old: &[ZoneRecords], new: &[ZoneRecords]) -> Result<bool> {
        Ok(self.call("POST", "", &batch(name, old, new)?)?.is_some())
    }
}

/// Deletes exactly what was found, with its TTL, and creates what is to be there.
fn batch(name: &str, old: &[ZoneRecords], new: &[ZoneRecords]) -> Result<String> {
    let mut changes = String::new();
    for (action, records) in [("DELETE", old), ("CREATE", new)] {
        for set in records {
            changes.push_str(&change(action, name, set)?);
        }
    }
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ChangeResourceRecordSetsRequest \
         xmlns=\"https://route53.amazonaws.com/doc/{VERSION}/\"><ChangeBatch><Changes>{changes}</Changes>\
         </ChangeBatch></ChangeResourceRecordSetsRequest>"
    ))
}

fn change(action: &str, name: &str, set: &ZoneRecords) -> Result<String> {
    let mut text = format!(
        "<Change><Action>{action}</Action><ResourceRecordSet><Name>{}.</Name><Type>{}</Type><TTL>{}</TTL><ResourceRecords>",
        escape_text(name),
        set.kind,
        set.ttl
    );
    for value in &set.values {
        write!(text, "<ResourceRecord><Value>{}</Value></ResourceRecord>", escape_text(value)).context("no room")?;
    }
    text.push_str("</ResourceRecords></ResourceRecordSet></Change>");
    Ok(text)
}

fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn read_name(text: &str, name: &str) -> Result<ZoneName> {
    let document = Document::parse(text).context("Route 53 answered with no XML")?;
    let mut found = ZoneName::default();
    for set in document.descendants().filter(|node| is_named(*node, "ResourceRecordSet")) {
        // Route 53 writes an asterisk as a number.
        if child(set, "Name").replace("\\052", "*").trim_end_matches('.') != name {
            continue;
        }
        let kind = child(set, "Type");
        let values = set.descendants().filter(|node| is_named(*node, "Value"));
        let values = values.filter_map(|node| node.text().map(str::to_owned)).collect();
        // Aliases have no TTL; records of a routing policy have an identifier.
        let plain =
            RecordKind::of(kind).filter(|_| child(set, "SetIdentifier").is_empty()).zip(child(set, "TTL").parse().ok());
        match plain {
            Some((kind, ttl)) => found.records.push(ZoneRecords { kind, ttl, values, tag: String::new() }),
            None => found.others.push(kind.to_owned()),
        }
    }
    Ok(found)
}

/// Code and message, of an error or of a refused batch.
fn read_error(text: &str) -> (String, String) {
    const REFUSED: &str = "InvalidChangeBatch";
    if Document::parse(text).is_ok_and(|document| is_named(document.root_element(), REFUSED)) {
        return (REFUSED.to_owned(), http::shorten(text));
    }
    xml::read_error(text)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    const ANSWER: &str = r#"<?xml version="1.0"?>
<ListResourceRecordSetsResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><ResourceRecordSets>
<ResourceRecordSet><Name>\052.apps.example.com.</Name><Type>A</Type><TTL>30</TTL><ResourceRecords>
<ResourceRecord><Value>192.0.2.1</Value></ResourceRecord><ResourceRecord><Value>192.0.2.2</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>
<ResourceRecordSet><Name>\052.apps.example.com.</Name><Type>AAAA</Type><AliasTarget><DNSName>lb.</DNSName></AliasTarget></ResourceRecordSet>
<ResourceRecordSet><Name>b.example.com.</Name><Type>TXT</Type><TTL>30</TTL><ResourceRecords><ResourceRecord><Value>"x"</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>
</ResourceRecordSets></ListResourceRecordSetsResponse>"#;

    #[test]
    fn the_records_of_one_name_are_read_and_no_others() {
        let found = read_name(ANSWER, "*.apps.example.com").unwrap();
        assert_eq!(found.records.len(), 1);
        assert_eq!(
            (found.records[0].kind, found.records[0].ttl, found.records[0].values.len()),
            (RecordKind::A, 30, 2)
        );
        assert_eq!(found.others, ["AAAA"], "an alias");
        assert_eq!(read_name(ANSWER, "b.example.com").unwrap().records[0].values.first().unwrap(), "\"x\"");
        assert_eq!(read_name(ANSWER, "c.example.com").unwrap(), ZoneName::default());
        assert!(read_name("no XML", "c").is_err());
    }

    #[test]
    fn a_batch_deletes_the_very_records_that_were_found() {
        let set = |value: &str, ttl: u32| ZoneRecords {
            kind: RecordKind::A,
            ttl,
            values: [value.to_owned()].into(),
            tag: String::new(),
        };
        let text = batch("a.example.com", &[set("192.0.2.1", 300)], &[set("192.0.2.2", 30)]).unwrap();
        let one = |action: &str, ttl: u32, value: &str| {
            format!(
                "<Change><Action>{action}</Action><ResourceRecordSet><Name>a.example.com.</Name><Type>A</Type><TTL>{ttl}</TTL>\
                 <ResourceRecords><ResourceRecord><Value>{value}</Value></ResourceRecord></ResourceRecords></ResourceRecordSet></Change>"
            )
        };
        let both = one("DELETE", 300, "192.0.2.1") + &one("CREATE", 30, "192.0.2.2");
        assert!(text.contains(&format!("<Changes>{both}</Changes>")), "{text}");
    }

    #[test]
    fn a_refused_batch_is_told_from_other_errors() {
        let error = "<ErrorResponse><Error><Type>Sender</Type><Code>NoSuchHostedZone</Code><Message>none</Message></Error></ErrorResponse>";
        assert_eq!(read_error(error), ("NoSuchHostedZone".to_owned(), "none".to_owned()));
        let batch = "<InvalidChangeBatch><Messages><Message>it was not found</Message></Messages></InvalidChangeBatch>";
        assert_eq!(read_error(batch).0, "InvalidChangeBatch");
    }
}
