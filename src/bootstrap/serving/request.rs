//! Whether a request for a serving certificate may be signed: what belongs to whom, and what a kubelet's request looks like.
//!
//! Whoever signs reads the request by another parser than ours. So nothing passes that could be read in two ways: the request has to be,
//! byte for byte, the one that says what was judged here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension};

use super::super::comers::silent_since;
use super::super::pki;
use super::super::retire::GONE_AFTER;
use super::{Reserved, USER, name_of};

/// Nothing, or why not.
pub(super) type Verdict = Result<(), String>;

const GROUP: &str = "system:nodes";
/// A label that no node can give or take by itself (the admission plugin `NodeRestriction`).
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// What a kubelet asks to use the certificate for.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "server auth"];

/// What belongs to whom. The same authority signs for API servers and for kubelets, and a node says of itself what it is called and where
/// it is: what is reserved is no kubelet's.
pub(super) struct Owners<'a> {
    nodes: BTreeMap<String, Owner>,
    reserved: &'a Reserved,
}

struct Owner {
    addresses: BTreeSet<IpAddr>,
    is_control_plane: bool,
    /// Nobody has heard from it for so long that its address may be another machine's.
    is_gone: bool,
}

impl Owner {
    fn new(node: &Value, now: Timestamp) -> Self {
        let list = node["status"]["addresses"].as_array().into_iter().flatten();
        let addresses = list.filter_map(|address| address["address"].as_str()?.parse::<IpAddr>().ok());
        Self {
            addresses: addresses.map(|address| address.to_canonical()).collect(),
            is_control_plane: node["metadata"]["labels"][CONTROL_PLANE].is_string(),
            is_gone: silent_since(node).is_some_and(|since| now.duration_since(since) >= GONE_AFTER),
        }
    }
}

impl<'a> Owners<'a> {
    pub(super) fn new(nodes: &Value, reserved: &'a Reserved, now: Timestamp) -> Self {
        let nodes = nodes["items"].as_array().into_iter().flatten();
        let nodes = nodes.map(|node| (name_of(node).to_owned(), Owner::new(node, now))).collect();
        Self { nodes, reserved }
    }

    /// Whether a node asks for its own name and addresses, to serve with, and for nothing else. An address that two nodes claim is nobody's.
    pub(super) fn judge(&self, request: &Value) -> Verdict {
        let spec = &request["spec"];
        let texts = |field: &str| -> Vec<&str> {
            spec[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        // Almost anything may be called almost anything.
        if !is_plain(name_of(request)) {
            return Err("no kubelet gives a request such a name".into());
        }
        let user = spec["username"].as_str().unwrap_or_default();
        let Some(node) = user.strip_prefix(USER).filter(|_| texts("groups").contains(&GROUP)) else {
            return Err("only nodes may ask".into());
        };
        let owner = self.nodes.get(node).ok_or("there is no such Node")?;
        if owner.is_control_plane {
            return Err("turnup itself gives control-plane hosts what they serve with".into());
        }
        let usages = texts("usages");
        if let Some(other) = usages.iter().find(|usage| !USAGES.contains(usage)) {
            return Err(format!("it asks for the usage {other}"));
        }
        if !usages.contains(&"server auth") {
            return Err("it does not ask to serve".into());
        }
        self.judge_text(spec["request"].as_str().unwrap_or_default(), node)
    }

    /// `text` is PEM in base64.
    fn judge_text(&self, text: &str, node: &str) -> Verdict {
        let bytes = decode(text).ok_or("its request is not one block of PEM")?;
        let (rest, request) =
            X509CertificationRequest::from_der(&bytes).map_err(|_| "its request cannot be read".to_owned())?;
        let info = &request.certification_request_info;
        let extensions = request.requested_extensions().into_iter().flatten();
        let names = extensions.filter_map(|extension| match extension {
            ParsedExtension::SubjectAlternativeName(alternative) => Some(&alternative.general_names),
            _ => None,
        });
        let names: Vec<&GeneralName<'_>> = names.flatten().collect();
        if names.is_empty() {
            return Err("it asks for no name and no address".into());
        }
        names.iter().try_for_each(|name| self.judge_name(name, node))?;
        let is_expected = |tag: &u8| expected(*tag, node, info.subject_pki.raw, &names) == info.raw;
        if !rest.is_empty() || ![PRINTABLE, UTF8].iter().any(is_expected) {
            return Err(format!("it asks, as {}, for more than a kubelet does", info.subject));
        }
        Ok(())
    }

    fn judge_name(&self, asked: &GeneralName<'_>, node: &str) -> Verdict {
        match asked {
            GeneralName::DNSName(dns) if self.reserved.has_name(dns) => Err(reserved(dns)),
            GeneralName::DNSName(dns) if *dns == node => Ok(()),
            GeneralName::DNSName(dns) => Err(format!("it asks for {dns}, which is not its name")),
            GeneralName::IPAddress(bytes) => {
                let address = pki::address(bytes).ok_or("it asks for an address of a strange length")?;
                self.judge_address(address.to_canonical(), node)
            }
            other => Err(format!("it asks for {other}")),
        }
    }

    fn judge_address(&self, address: IpAddr, node: &str) -> Verdict {
        if self.reserved.has_address(address) {
            return Err(reserved(&address.to_string()));
        }
        let mut all = self.nodes.iter().filter(|(_, owner)| owner.addresses.contains(&address));
        if !all.clone().any(|(name, _)| name == node) {
            return Err(format!("it asks for {address}, which its Node does not have"));
        }
        all.find(|(name, owner)| *name != node && !owner.is_gone).map_or(Ok(()), |(other, _)| {
            let what = format!("it asks for {address}, which the Node {other} has too");
            Err(format!("{what}; if that machine is gone: kubectl delete node {other}"))
        })
    }
}

fn reserved(text: &str) -> String {
    format!("it asks for {text}, which is an API server's or a Service's")
}

/// A name that is nobody's option, line or command.
fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter))
}

/// The one block of PEM, without headers, and nothing before or behind it.
fn decode(text: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    let body = text.strip_prefix("-----BEGIN CERTIFICATE REQUEST-----\n")?;
    let body = body.trim_end().strip_suffix("\n-----END CERTIFICATE REQUEST-----")?;
    STANDARD.decode(body.replace(['\n', '\r'], "")).ok()
}

const PRINTABLE: u8 = 0x13;
const UTF8: u8 = 0x0c;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// What a kubelet of this name signs when it asks for these names with this key: RFC 2986 4.1, in DER. `tag` is the type of its texts.
fn expected(tag: u8, node: &str, key: &[u8], names: &[&GeneralName<'_>]) -> Vec<u8> {
    let part = |kind: u8, text: &str| {
        let pair = der(SEQUENCE, &[&[0x06, 0x03, 0x55, 0x04, kind], &der(tag, &[text.as_bytes()])]);
        der(SET, &[&pair])
    };
    // organizationName and commonName.
    let subject = der(SEQUENCE, &[&part(0x0a, GROUP), &part(0x03, &format!("{USER}{node}"))]);
    let name = |name: &&GeneralName<'_>| match name {
        GeneralName::DNSName(dns) => der(0x82, &[dns.as_bytes()]),
        GeneralName::IPAddress(bytes) => der(0x87, &[bytes]),
        // Nobody gets here with another one; nothing is equal to this.
        _ => Vec::new(),
    };
    let names: Vec<u8> = names.iter().flat_map(name).collect();
    // subjectAltName, as the only extension in the only attribute: extensionRequest.
    let value = der(0x04, &[&der(SEQUENCE, &[&names])]);
    let extensions = der(SEQUENCE, &[&der(SEQUENCE, &[&[0x06, 0x03, 0x55, 0x1d, 0x11], &value])]);
    let kind = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
    let attributes = der(0xa0, &[&der(SEQUENCE, &[&kind, &der(SET, &[&extensions])])]);
    der(SEQUENCE, &[&[0x02, 0x01, 0x00], &subject, key, &attributes])
}

/// One element: tag, length in its shortest form, content.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut all = vec![tag];
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count().min(length.len() - 1)..];
    if content.len() >= 0x80 {
        all.extend(u8::try_from(length.len()).map(|count| 0x80 | count));
    }
    all.extend(length);
    all.extend(content);
    all
}
