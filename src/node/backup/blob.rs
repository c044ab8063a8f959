//! A container of Azure Blob Storage, by its REST API: with the account's key (Shared Key), with a
//! shared access signature (SAS), or by the identity of the machine (a bearer token).
//!
//! A SAS stands in the address, so no address is ever shown.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::cloud::{self, Cloud, Endpoints};
use crate::error::{Error, Result};

use super::store_http::{Answered, ListNames, StoreConnection, StoreWords, StoredObject, text_of};

/// The version of the API: from 2019-12-12 on one request takes 5,000 MiB.
const VERSION: &str = "2021-12-02";
/// How long a token is shown again: the metadata service refuses to be asked for each part of an
/// object, and lends none that ends as soon.
const GOOD: Duration = Duration::from_mins(5);
/// The token of this machine's identity, and when it was lent.
static LENT: Mutex<Option<(Zeroizing<String>, Instant)>> = Mutex::new(None);
/// What objects are.
const TYPE: &str = "application/octet-stream";

const WORDS: StoreWords = StoreWords {
    endpoint: "phase2.backup.azure.account and phase2.backup.azure.endpoint",
    wrong_certificate: "its certificate has to be of a public authority or of phase2.backup.azure.ca_file, and for the name in phase2.backup.azure.endpoint",
    no_certificate: "phase2.backup.azure.ca_file has no certificate in PEM",
    advise,
};

/// Where the container is, and with which key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlobContainer {
    /// `https://…` without the container.
    pub endpoint: String,
    /// The storage account.
    pub account: String,
    /// The container's name.
    pub container: String,
    /// What stands before each name; with its slash, or empty.
    pub prefix: String,
    /// The certificates of its authority in PEM; empty for one of the public authorities.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub authority: String,
    /// The cloud whose machines' own identity is the key; empty where that is one of those below.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The account's key in base64; empty where there is a SAS.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account_key: String,
    /// The SAS: a query without its question mark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sas_token: String,
}

/// A request before it is signed.
struct BlobRequest<'a> {
    method: &'static str,
    /// Below the endpoint, escaped.
    path: &'a str,
    /// By their names, as they are, in the order of the names.
    query: &'a [(&'static str, &'a str)],
    /// Those whose names begin with `x-ms-`, in the order of the names, but for date and version.
    headers: &'a [(&'static str, String)],
    /// Of the body; none where there is no body.
    length: Option<u64>,
}

impl BlobContainer {
    /// The container in words, without a secret.
    pub(super) fn shown(&self) -> String {
        format!("{}/{} at {}", self.container, self.prefix, self.endpoint)
    }

    pub(super) fn connection(&self) -> StoreConnection<'_> {
        StoreConnection { place: self.shown(), authority: &self.authority, words: &WORDS }
    }

    /// The path of an object below the endpoint.
    fn path_of(&self, name: &str) -> String {
        format!("/{}/{}", self.container, escape(&format!("{}{name}", self.prefix), b"/"))
    }

    /// The address, and the headers that it needs, the last of which may be the signature.
    fn sign(&self, request: &BlobRequest<'_>, now: Timestamp) -> Result<(Zeroizing<String>, Vec<SignedHeader>)> {
        let date = now.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let mut headers: Vec<(&'static str, String)> = request.headers.to_vec();
        headers.extend([("x-ms-date", date), ("x-ms-version", VERSION.to_owned())]);
        headers.sort_unstable();
        let pairs = request.query.iter().map(|(name, value)| format!("{name}={}", escape(value, b"")));
        let sas = Some(self.sas_token.clone()).filter(|sas| !sas.is_empty());
        let query = Zeroizing::new(pairs.chain(sas).collect::<Vec<_>>().join("&"));
        let mut url = Zeroizing::new(format!("{}{}", self.endpoint.trim_end_matches('/'), request.path));
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query);
        }
        let signature = if !self.machine.is_empty() {
            Some(Zeroizing::new(format!("Bearer {}", self.token_of(&Endpoints::default())?.as_str())))
        } else if self.account_key.is_empty() {
            None
        } else {
            let text = self.text_to_sign(request, &headers);
            Some(Zeroizing::new(format!("SharedKey {}:{}", self.account, sign_text(&self.account_key, &text)?)))
        };
        let mut all: Vec<SignedHeader> =
            headers.into_iter().map(|(name, value)| (name, Zeroizing::new(value))).collect();
        if request.length.is_some() {
            all.push(("content-type", Zeroizing::new(TYPE.to_owned())));
        }
        all.extend(signature.map(|signature| ("authorization", signature)));
        Ok((url, all))
    }

    /// What the metadata service lent this machine, for a while the same.
    fn token_of(&self, endpoints: &Endpoints) -> Result<Zeroizing<String>> {
        let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((token, _)) = lent.as_ref().filter(|(_, at)| at.elapsed() < GOOD) {
            return Ok(token.clone());
        }
        let ask = cloud::find(&self.machine).and_then(Cloud::blob_token).ok_or_else(|| {
            Error::config(format!("machines of {} have no identity for {}", self.machine, self.shown()))
                .hint("turnup up")
        })?;
        let token = ask(endpoints)?;
        *lent = Some((token.clone(), Instant::now()));
        Ok(token)
    }

    /// As "Authorize with Shared Key" has it, from version 2015-02-21 on.
    fn text_to_sign(&self, request: &BlobRequest<'_>, headers: &[(&'static str, String)]) -> String {
        let length = request.length.filter(|length| *length > 0).map_or_else(String::new, |length| length.to_string());
        let content_type = if request.length.is_some() { TYPE } else { "" };
        // Method, encoding, language, length, MD5, type, date, four conditions and the range; the
        // date and the range have headers of their own.
        let mut text = format!("{}\n\n\n{length}\n\n{content_type}\n\n\n\n\n\n\n", request.method);
        for (name, value) in headers {
            text.extend([name, ":", value, "\n"]);
        }
        // An emulator has the account in its path, too.
        let base = self.endpoint.trim_end_matches('/').split_once("://").map_or("", |(_, rest)| rest);
        let base = base.split_once('/').map_or_else(String::new, |(_, path)| format!("/{path}"));
        text.extend(["/", &self.account, &base, request.path]);
        for (name, value) in request.query {
            text.extend(["\n", name, ":", value]);
        }
        text
    }

    fn send(&self, what: &str, request: &BlobRequest<'_>) -> Result<String> {
        let http = self.connection();
        let response = self.call(request)?;
        http.answer(what, response)
    }

    /// Sends a request without a body.
    fn call(&self, request: &BlobRequest<'_>) -> Result<Answered> {
        let (url, headers) = self.sign(request, Timestamp::now())?;
        let agent = self.connection().agent()?;
        let builder = if request.method == "DELETE" { agent.delete(url.as_str()) } else { agent.get(url.as_str()) };
        Ok(with_headers(builder, &headers).call())
    }

    /// Copies this file there.
    pub(super) fn put(&self, name: &str, path: &Path) -> Result<()> {
        let file = fs_err::File::open(path)?;
        let length = file.metadata()?.len();
        let object = self.path_of(name);
        let headers = [("x-ms-blob-type", "BlockBlob".to_owned())];
        let request = BlobRequest { method: "PUT", path: &object, query: &[], headers: &headers, length: Some(length) };
        let (url, headers) = self.sign(&request, Timestamp::now())?;
        let http = self.connection();
        let builder = http.agent()?.put(url.as_str()).header("content-length", length.to_string());
        let builder = with_headers(builder, &headers);
        http.answer(&format!("copying {name}"), builder.send(ureq::SendBody::from_owned_reader(file))).map(drop)
    }

    /// The objects whose names begin so.
    pub(super) fn list(&self, begin: &str) -> Result<Vec<StoredObject>> {
        let (path, prefix, what) =
            (format!("/{}", self.container), format!("{}{begin}", self.prefix), "listing backups");
        let names = ListNames { entry: "Blob", next: "NextMarker", prefix: &self.prefix, begin };
        let (mut found, mut marker) = (Vec::new(), String::new());
        loop {
            let mut query = vec![("comp", "list"), ("prefix", prefix.as_str()), ("restype", "container")];
            if !marker.is_empty() {
                query.insert(1, ("marker", marker.as_str()));
            }
            let request = BlobRequest { method: "GET", path: &path, query: &query, headers: &[], length: None };
            let text = self.send(what, &request)?;
            let (objects, next) = self.connection().read_list(what, &text, &names, |node| {
                let properties = node.children().find(|child| child.tag_name().name() == "Properties")?;
                text_of(node, "Name").zip(text_of(properties, "Content-Length")?.parse().ok())
            })?;
            found.extend(objects);
            match next {
                Some(next) => marker = next,
                None => return Ok(found),
            }
        }
    }

    /// A part of an object from this byte on; empty behind its end.
    pub(super) fn read_part(&self, name: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        let (path, range) = (self.path_of(name), format!("bytes={offset}-{}", offset + most - 1));
        let headers = [("x-ms-range", range)];
        let request = BlobRequest { method: "GET", path: &path, query: &[], headers: &headers, length: None };
        self.connection().part(&format!("reading {name}"), self.call(&request)?, most)
    }

    /// Deletes an object.
    pub(super) fn delete(&self, name: &str) -> Result<()> {
        let path = self.path_of(name);
        let request = BlobRequest { method: "DELETE", path: &path, query: &[], headers: &[], length: None };
        self.send(&format!("deleting {name}"), &request).map(drop)
    }
}

/// A header that may be a secret.
type SignedHeader = (&'static str, Zeroizing<String>);

fn with_headers<B>(builder: ureq::RequestBuilder<B>, headers: &[SignedHeader]) -> ureq::RequestBuilder<B> {
    headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, value.as_str()))
}

/// The HMAC-SHA256 of a text with a key in base64, in base64.
fn sign_text(key: &str, text: &str) -> Result<String> {
    let wrong = || {
        Error::precondition("the account key in phase2.backup.azure.credentials_file is no base64")
            .hint("correct it; then: turnup up")
    };
    let key = Zeroizing::new(STANDARD.decode(key).map_err(|_| wrong())?);
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| wrong())?;
    mac.update(text.as_bytes());
    Ok(STANDARD.encode(mac.finalize().into_bytes()))
}

/// Escapes all but letters, digits, `-._~` and what else is to stay.
fn escape(text: &str, stays: &[u8]) -> String {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || stays.contains(&byte);
    let escape = |byte: u8| if stays(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

fn advise(code: &str, status: u16) -> &'static str {
    match (code, status) {
        ("ContainerNotFound" | "ContainerBeingDeleted", _) => {
            "make the container, or correct phase2.backup.azure.container; then: turnup up"
        }
        ("BlobNotFound", _) => "turnup backup list",
        ("AuthenticationFailed" | "InvalidAuthenticationInfo", _) => {
            "correct the key or SAS in phase2.backup.azure.credentials_file, and the clock of this host (timedatectl); then: turnup up"
        }
        ("AccountIsDisabled" | "ResourceNotFound" | "InvalidResourceName", _) => {
            "correct phase2.backup.azure.account, container and endpoint; then: turnup up"
        }
        ("AuthorizationFailure" | "IpAuthorizationError" | "AuthorizationSourceIPMismatch", _) => {
            "allow the addresses of control-plane hosts in the account's firewall, or correct phase2.backup.azure.credentials_file; then: turnup up"
        }
        ("KeyBasedAuthenticationNotPermitted", _) => {
            "allow keys in the account's configuration, or write a SAS of a user (sas_token) into the credentials file"
        }
        ("SnapshotsPresent" | "BlobImmutableDueToPolicy", _) => {
            "the store keeps what turnup would delete: raise phase2.backup.keep_recent and keep_daily to its policy"
        }
        ("AccountBeingCreated" | "ServerBusy" | "OperationTimedOut" | "InternalError", _) => {
            "turnup backup now (tries again)"
        }
        (_, 401 | 403) => {
            "allow this key, SAS or identity to list, read, write and delete in the container (docs/backup.md)"
        }
        (_, 404) => "correct phase2.backup.azure.account, container and endpoint; then: turnup up",
        (_, 413) => "one request takes 5,000 MiB at most: etcd's data are too large for this store",
        _ => "turnup backup now (tries again)",
    }
}

#[cfg(test)]
#[path = "blob_tests.rs"]
mod tests;
