//! A bucket that speaks S3, to which a host copies its backups: Amazon's, Google's with HMAC keys,
//! `MinIO`, Ceph. Objects are the files themselves, under a prefix.
//!
//! What is signed stands in the address, so no address is ever shown.

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use roxmltree::Document;
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use serde::{Deserialize, Serialize};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::cloud::{self, Cloud, Endpoints};
use crate::error::{Error, Result};

use super::retention::Retention;

/// How long a signed address is good: the clocks of both sides may differ by less than 15 minutes.
const GOOD: Duration = Duration::from_mins(15);
/// The longest list or error that is read.
const LONGEST: u64 = 8 << 20;

const WRONG_CERTIFICATE: &str = "its certificate has to be of a public authority or of phase2.backup.s3.ca_file, and for the name in phase2.backup.s3.endpoint";
const OUT_OF_REACH: &str = "is it reachable from control-plane hosts?";

/// One for each authority: it keeps its connections.
static AGENTS: LazyLock<Mutex<HashMap<String, ureq::Agent>>> = LazyLock::new(Mutex::default);

fn new_agent(roots: RootCerts) -> ureq::Agent {
    ureq::Agent::config_builder()
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_mins(5)))
        .accept_encoding("identity")
        .user_agent(concat!("turnup/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Where the bucket is, and with which key. A host has it as a file of root's.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupStore {
    /// `https://…` without the bucket.
    pub endpoint: String,
    /// Its name.
    pub bucket: String,
    /// The region that requests are signed for.
    pub region: String,
    /// What stands before each name; with its slash, or empty.
    pub prefix: String,
    /// Whether the bucket stands in the path, and not before the host's name.
    pub path_style: bool,
    /// The certificates of its authority in PEM; empty for one of the public authorities.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub authority: String,
    /// The cloud whose machines' own identity is the key; empty where that is the one below.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The public part of the key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub access_key: String,
    /// The secret one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret_key: String,
}

impl std::fmt::Debug for BackupStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackupStore({})", self.shown())
    }
}

/// An object of the bucket, by its name without the prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredObject {
    /// The name of the backup.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
}

/// The backups of the cluster in its store, of every host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredList {
    /// Where they are.
    pub place: String,
    /// With their times, the oldest first.
    pub backups: Vec<(Timestamp, StoredObject)>,
    /// Why it does not tell.
    pub problem: Option<String>,
}

/// What became of the copy in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreOutcome {
    /// Where it is.
    pub place: String,
    /// Names that were copied there: the new one, and those of before that were missing.
    pub copied: Vec<String>,
    /// Names that were superseded there, and are deleted.
    pub deleted: Vec<String>,
    /// Why it failed: the message, what is known of it, and the next command.
    pub problem: Option<(String, Vec<String>, Option<String>)>,
}

impl StoreOutcome {
    /// The failure as an error.
    pub(crate) fn error(&self) -> Option<Error> {
        let (message, evidence, next) = self.problem.as_ref()?;
        let error = Error::precondition(message.clone()).evidence_of(evidence);
        Some(
            error
                .evidence("the backup is on the host; only its copy is missing")
                .hint(next.clone().unwrap_or_else(|| "turnup backup now".to_owned())),
        )
    }
}

/// When a backup of this name was taken; none where it is of another party.
type TimeOf<'a> = &'a dyn Fn(&str) -> Option<Timestamp>;

/// The backups on the disk of a host.
pub(super) struct HostFiles<'a> {
    /// How the names of its cluster's backups begin.
    pub begin: &'a str,
    /// Where they are.
    pub directory: &'a Path,
    /// With their times.
    pub found: &'a [(Timestamp, String)],
    /// Which objects of the store are its own.
    pub time_of: TimeOf<'a>,
}

impl BackupStore {
    /// What begins so and is a backup, the oldest first.
    fn find(&self, begin: &str, time_of: TimeOf<'_>) -> Result<Vec<(Timestamp, StoredObject)>> {
        let all = self.list(begin)?.into_iter();
        let mut found: Vec<_> = all.filter_map(|object| Some((time_of(&object.name)?, object))).collect();
        found.sort_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)));
        Ok(found)
    }

    /// The same, with what stands in the way of it.
    pub(super) fn tell(&self, begin: &str, time_of: TimeOf<'_>) -> StoredList {
        let (backups, problem) = match self.find(begin, time_of) {
            Ok(backups) => (backups, None),
            Err(error) => (Vec::new(), Some(format!("{}: {}", error.message(), error.evidence_lines().join("; ")))),
        };
        StoredList { place: self.shown(), backups, problem }
    }

    /// Copies what of a host is missing here, and then deletes what is superseded here.
    pub(super) fn copy_missing(&self, host: &HostFiles<'_>, retention: Retention) -> StoreOutcome {
        let mut outcome = StoreOutcome { place: self.shown(), copied: Vec::new(), deleted: Vec::new(), problem: None };
        if let Err(error) = self.try_copy(host, retention, &mut outcome) {
            let next = error.next().map(str::to_owned);
            outcome.problem = Some((error.message().to_owned(), error.evidence_lines().to_vec(), next));
        }
        outcome
    }

    fn try_copy(&self, host: &HostFiles<'_>, retention: Retention, outcome: &mut StoreOutcome) -> Result<()> {
        let there = self.find(host.begin, host.time_of)?;
        let is_there = |name: &str, path: &Path| {
            let bytes = fs_err::metadata(path).map(|metadata| metadata.len()).ok();
            there.iter().any(|(_, object)| object.name == name && Some(object.bytes) == bytes)
        };
        // The newest first: the one that counts, should the connection break.
        for (_, name) in host.found.iter().rev() {
            let path = host.directory.join(name);
            if !is_there(name, &path) {
                self.put(name, &path)?;
                outcome.copied.push(name.clone());
            }
        }
        // All that the host has is there now.
        let there = there.iter().map(|(time, object)| (*time, &*object.name));
        let all: BTreeSet<(Timestamp, &str)> =
            there.chain(host.found.iter().map(|(time, name)| (*time, &**name))).collect();
        let gone = retention.superseded(&all.iter().map(|(time, _)| *time).collect::<Vec<_>>());
        for (_, name) in all.iter().filter(|(time, _)| gone.contains(time)) {
            self.delete(name)?;
            outcome.deleted.push((*name).to_owned());
        }
        Ok(())
    }

    /// The bucket in words, without a secret.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{} at {}", self.bucket, self.prefix, self.endpoint)
    }

    fn bucket(&self) -> Result<Bucket> {
        let style = if self.path_style { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let wrong = |why: &dyn std::fmt::Display| {
            Error::config(format!("phase2.backup.s3.endpoint: {} is no address: {why}", self.endpoint))
                .hint("turnup config set phase2.backup.s3.endpoint=https://…")
        };
        let endpoint = self.endpoint.parse().map_err(|why| wrong(&why))?;
        Bucket::new(endpoint, style, self.bucket.clone(), self.region.clone()).map_err(|why| wrong(&why))
    }

    pub(super) fn agent(&self) -> Result<ureq::Agent> {
        let mut agents = AGENTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agents.get(&self.authority) {
            return Ok(agent.clone());
        }
        let roots = if self.authority.is_empty() { RootCerts::WebPki } else { parse_authority(&self.authority)? };
        Ok(agents.entry(self.authority.clone()).or_insert(new_agent(roots)).clone())
    }

    fn key(&self) -> Result<Credentials> {
        self.key_of(&Endpoints::default())
    }

    pub(super) fn key_of(&self, endpoints: &Endpoints) -> Result<Credentials> {
        if self.machine.is_empty() {
            return Ok(Credentials::new(self.access_key.clone(), self.secret_key.clone()));
        }
        let ask = cloud::find(&self.machine).and_then(Cloud::bucket_key).ok_or_else(|| {
            Error::config(format!("machines of {} have no key for {}", self.machine, self.shown())).hint("turnup up")
        })?;
        let lent = ask(endpoints)?;
        Ok(Credentials::new_with_token(lent.id, lent.secret.to_string(), lent.session.to_string()))
    }

    fn object(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Copies this file there.
    pub(crate) fn put(&self, name: &str, path: &Path) -> Result<()> {
        let (bucket, key, object) = (self.bucket()?, self.key()?, self.object(name));
        let file = fs_err::File::open(path)?;
        let length = file.metadata()?.len();
        let url = bucket.put_object(Some(&key), &object).sign(GOOD);
        let request = self.agent()?.put(url.as_str()).header("content-length", length.to_string());
        self.answer(&format!("copying {name}"), request.send(ureq::SendBody::from_owned_reader(file))).map(drop)
    }

    /// The objects whose names begin so.
    pub(crate) fn list(&self, begin: &str) -> Result<Vec<StoredObject>> {
        let (bucket, key, what) = (self.bucket()?, self.key()?, "listing backups");
        let (mut found, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut list = bucket.list_objects_v2(Some(&key));
            list.with_prefix(self.object(begin));
            if let Some(token) = token.take() {
                list.with_continuation_token(token);
            }
            let text = self.answer(what, self.agent()?.get(list.sign(GOOD).as_str()).call())?;
            let unreadable = || Error::permanent(format!("{what}: {} does not answer with a list", self.shown()));
            let document = Document::parse(&text).map_err(|error| unreadable().source(error))?;
            let text_of = |node: roxmltree::Node<'_, '_>, name: &str| {
                node.children().find(|child| child.tag_name().name() == name)?.text().map(str::to_owned)
            };
            for entry in document.root_element().children().filter(|node| node.tag_name().name() == "Contents") {
                let (name, bytes) = (text_of(entry, "Key"), text_of(entry, "Size").and_then(|size| size.parse().ok()));
                let (name, bytes) = name.zip(bytes).ok_or_else(unreadable)?;
                // A server may list more than it was asked for.
                let Some(name) = name.strip_prefix(&self.prefix).filter(|name| name.starts_with(begin)) else {
                    continue;
                };
                found.push(StoredObject { name: name.to_owned(), bytes });
            }
            match text_of(document.root_element(), "NextContinuationToken").filter(|next| !next.is_empty()) {
                Some(next) => token = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// A part of an object from this byte on; empty behind its end.
    pub(crate) fn read_part(&self, name: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        let (bucket, key, object) = (self.bucket()?, self.key()?, self.object(name));
        let range = format!("bytes={offset}-{}", offset + most - 1);
        let url = bucket.get_object(Some(&key), &object).sign(GOOD);
        let what = format!("reading {name}");
        let response = self.agent()?.get(url.as_str()).header("range", range).call();
        let mut response = response.map_err(|error| self.unreachable(&what, error))?;
        match response.status().as_u16() {
            206 => {}
            416 => return Ok(Vec::new()),
            // It knows no ranges, and would send all of it for each part.
            200 => return Err(Error::permanent(format!("{what}: {} sends no parts of objects", self.shown()))),
            _ => return self.answer(&what, Ok(response)).map(|_| Vec::new()),
        }
        let mut bytes = Vec::new();
        let read = response.body_mut().as_reader().take(most).read_to_end(&mut bytes);
        read.map_err(|error| Error::transient(format!("{what}: {} breaks off", self.shown())).source(error))?;
        Ok(bytes)
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, name: &str) -> Result<()> {
        let (bucket, key, object) = (self.bucket()?, self.key()?, self.object(name));
        let url = bucket.delete_object(Some(&key), &object).sign(GOOD);
        self.answer(&format!("deleting {name}"), self.agent()?.delete(url.as_str()).call()).map(drop)
    }

    fn answer(&self, what: &str, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<String> {
        let mut response = response.map_err(|error| self.unreachable(what, error))?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(LONGEST).read_to_string();
        let text = text.map_err(|error| self.unreachable(what, error))?;
        if (200..300).contains(&status) { Ok(text) } else { Err(self.refusal(what, status, &text)) }
    }

    /// Errors of the library may have the address, which is signed.
    fn unreachable(&self, what: &str, error: ureq::Error) -> Error {
        let is_tls = |text: &str| {
            let text = text.to_lowercase();
            ["certificate", "tls", "handshake"].iter().any(|word| text.contains(word))
        };
        let (why, hint) = match error {
            ureq::Error::HostNotFound => {
                ("its name is not known to DNS".to_owned(), "correct phase2.backup.s3.endpoint")
            }
            ureq::Error::Rustls(why) => (format!("TLS: {why}"), WRONG_CERTIFICATE),
            ureq::Error::Timeout(_) => ("it does not answer in time".to_owned(), OUT_OF_REACH),
            ureq::Error::Io(why) if is_tls(&why.to_string()) => (why.to_string(), WRONG_CERTIFICATE),
            ureq::Error::Io(why) => (why.to_string(), OUT_OF_REACH),
            _ => ("the connection fails".to_owned(), OUT_OF_REACH),
        };
        Error::transient(format!("{what}: {} cannot be reached", self.shown())).evidence(why).hint(hint)
    }

    pub(super) fn refusal(&self, what: &str, status: u16, text: &str) -> Error {
        let of = |name: &str| {
            let document = Document::parse(text).ok()?;
            document.descendants().find(|node| node.tag_name().name() == name)?.text().map(str::to_owned)
        };
        let (code, said) = (of("Code").unwrap_or_default(), of("Message").unwrap_or_default());
        let hint = match (code.as_str(), status) {
            ("RequestTimeTooSkewed" | "RequestExpired", _) => {
                "set the clock of this host (timedatectl): it is minutes off"
            }
            ("NoSuchBucket", _) => "make the bucket, or correct phase2.backup.s3.bucket; then: turnup up",
            ("NoSuchKey", _) => "turnup backup list",
            ("InvalidAccessKeyId" | "SignatureDoesNotMatch", _) => {
                "correct the keys in phase2.backup.s3.credentials_file; then: turnup up"
            }
            ("AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException", _)
            | (_, 301 | 307) => {
                "correct phase2.backup.s3.region and phase2.backup.s3.endpoint: the bucket is elsewhere; then: turnup up"
            }
            ("QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage", _) | (_, 507) => {
                "make room in the store, or lower phase2.backup.keep_recent; then: turnup up"
            }
            (_, 401 | 403) => "allow this key to list, read, write and delete below the prefix (docs/backup.md)",
            (_, 404) => "correct phase2.backup.s3.endpoint, bucket and path_style; then: turnup up",
            _ => "turnup backup now (tries again)",
        };
        let message = format!("{what}: {} refuses it", self.shown());
        let error =
            if status >= 500 && status != 507 { Error::transient(message) } else { Error::precondition(message) };
        error.evidence(format!("HTTP {status} {code} {said}").trim_end().to_owned()).hint(hint)
    }
}

fn parse_authority(pem: &str) -> Result<RootCerts> {
    let certificates: Vec<_> = parse_pem(pem.as_bytes())
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(Error::config("phase2.backup.s3.ca_file has no certificate in PEM").hint("turnup config check"));
    }
    Ok(RootCerts::Specific(Arc::new(certificates)))
}
