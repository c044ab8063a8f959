//! What log shipping takes from files of the user's: the authority of its server, and headers with
//! credentials, which go into a Secret and nowhere else.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::bootstrap::{read_certificates, read_file};
use crate::cluster::{AddonSettings, Cluster};
use crate::config::{LogServer, parse_quantity};
use crate::error::{Error, Result};

const HEADERS_FILE: &str = "phase3.log_shipping_headers_file";
const CA_FILE: &str = "phase3.log_shipping_ca_file";
/// More are no headers, but a wrong file.
const MOST: usize = 100;

/// What is in the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogShippingFiles {
    /// Certificates in PEM.
    pub(super) ca: Option<String>,
    /// The collector's configuration of the headers, as a Secret has it.
    pub(super) headers: Option<String>,
}

impl LogShippingFiles {
    /// The files that settings in force name.
    pub(super) fn read(cluster: &Cluster) -> Result<Self> {
        let settings = &cluster.settings.addons;
        if !is_on(settings) {
            return Ok(Self::default());
        }
        let named = |setting: &str| Some(text(settings, setting)).filter(|file| !file.is_empty());
        let ca = named("log_shipping_ca_file").map(|file| read_certificates(cluster, CA_FILE, file)).transpose()?;
        let exporter = match text(settings, "log_shipping_output") {
            "otlp-http" | "otlp-http-json" => Some("otlp_http"),
            "otlp-grpc" => Some("otlp_grpc"),
            _ => None,
        };
        let headers = match (exporter, named("log_shipping_headers_file")) {
            (Some(exporter), Some(file)) => {
                let headers = parse_headers(&read_file(cluster, HEADERS_FILE, file)?).map_err(|why| {
                    Error::config(format!("{HEADERS_FILE}: {file}: {why}"))
                        .hint("one header a line, such as `Authorization: Bearer TOKEN`; then: turnup config check")
                })?;
                let configuration = json!({"exporters": {exporter: {"headers": headers}}});
                Some(STANDARD.encode(configuration.to_string()))
            }
            _ => None,
        };
        Ok(Self { ca, headers })
    }

    /// A digest of what is in them; nothing where there are none.
    pub(super) fn digest(&self) -> Option<String> {
        (*self != Self::default()).then(|| hex::encode(Sha256::digest(format!("{:?} {:?}", self.ca, self.headers))))
    }

    /// Values of the manifest that are no settings.
    pub(super) fn values(&self, settings: &AddonSettings) -> Result<BTreeMap<&'static str, Value>> {
        let mut values = BTreeMap::new();
        // A string of JSON is one of YAML.
        let quoted = |text: &Option<String>| text.as_ref().map(|text| Value::from(text.as_str()).to_string());
        values.insert("log_shipping_ca", json!(quoted(&self.ca).unwrap_or_default()));
        values.insert("log_shipping_headers", json!(self.headers.as_deref().unwrap_or_default()));
        if is_on(settings) {
            let (output, endpoint) = (text(settings, "log_shipping_output"), text(settings, "log_shipping_endpoint"));
            let server = LogServer::parse(output, endpoint)
                .map_err(|why| Error::config(format!("phase3.log_shipping_endpoint: {why}")))?;
            values.insert("log_shipping_tls", json!(server.tls));
            values.insert("log_shipping_host", json!(server.host));
            values.insert("log_shipping_port", json!(server.port));
            let queue = parse_quantity(text(settings, "log_shipping_queue")).unwrap_or_default() / 1000;
            values.insert("log_shipping_queue_bytes", json!(u64::try_from(queue).unwrap_or(u64::MAX)));
        }
        Ok(values)
    }
}

fn is_on(settings: &AddonSettings) -> bool {
    settings.log_shipping
}

fn text<'a>(settings: &'a AddonSettings, name: &str) -> &'a str {
    settings.others.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Headers by their names in small letters, as the collector reads them. What is wrong is not
/// shown: a secret may stand there.
fn parse_headers(text: &str) -> std::result::Result<BTreeMap<String, String>, String> {
    let mut headers = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| format!("line {number}: {why}");
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("it has no colon"))?;
        let (name, value) = (name.trim_end().to_ascii_lowercase(), value.trim());
        let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_of_a_name) {
            return Err(wrong("what stands before the colon is no name of a header"));
        }
        if ["host", "content-type", "content-length", "content-encoding"].contains(&name.as_str()) {
            return Err(wrong(&format!("the collector sets {name} itself")));
        }
        if value.is_empty() || !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(wrong("its value is empty or has other letters than those of ASCII"));
        }
        // The collector puts something else in the place of what stands behind one dollar sign.
        if headers.insert(name.clone(), value.replace('$', "$$")).is_some() {
            return Err(wrong(&format!("{name} is named twice")));
        }
    }
    match headers.len() {
        0 => Err("it has no header".to_owned()),
        1..=MOST => Ok(headers),
        _ => Err(format!("it has more than {MOST} headers")),
    }
}

#[cfg(test)]
#[path = "log_shipping_tests.rs"]
mod tests;
