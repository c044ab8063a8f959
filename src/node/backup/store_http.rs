//! What all kinds of stores have in common: HTTP with an authority of their own, answers that are
//! XML, and errors that say what to do. Secrets may stand in addresses, so no address is shown.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use roxmltree::{Document, Node};
use serde::{Deserialize, Serialize};
use ureq::tls::{RootCerts, TlsConfig};

use crate::error::{Error, Result};

use super::super::tls;

/// The longest list or error that is read.
const LONGEST: u64 = 8 << 20;
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

/// An object of a store, by its name without the prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredObject {
    /// The name of the backup.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
}

/// The names of settings in what a kind of store says, and its advice.
pub(super) struct StoreWords {
    pub endpoint: &'static str,
    pub wrong_certificate: &'static str,
    pub no_certificate: &'static str,
    /// What to do about an error, by its code and the status of HTTP.
    pub advise: fn(&str, u16) -> &'static str,
}

/// What a list is read by.
pub(super) struct ListNames<'a> {
    /// The elements of objects.
    pub entry: &'static str,
    /// The element with what the next part begins with.
    pub next: &'static str,
    /// What stands before all names, and is no part of them.
    pub prefix: &'a str,
    /// How the names begin that are wanted.
    pub begin: &'a str,
}

/// A store that is spoken to.
pub(super) struct StoreConnection<'a> {
    /// The store in words, without a secret.
    pub place: String,
    /// The certificates of its authority in PEM; empty for one of the public authorities.
    pub authority: &'a str,
    pub words: &'static StoreWords,
}

/// What the library answers a request.
pub(super) type Answered = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

impl StoreConnection<'_> {
    pub(super) fn agent(&self) -> Result<ureq::Agent> {
        let mut agents = AGENTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agents.get(self.authority) {
            return Ok(agent.clone());
        }
        let roots = if self.authority.is_empty() { RootCerts::WebPki } else { self.parse_authority()? };
        Ok(agents.entry(self.authority.to_owned()).or_insert(new_agent(roots)).clone())
    }

    fn parse_authority(&self) -> Result<RootCerts> {
        let certificates = tls::certificates(self.authority.as_bytes());
        if certificates.is_empty() {
            return Err(Error::config(self.words.no_certificate).hint("turnup config check"));
        }
        Ok(RootCerts::Specific(Arc::new(certificates)))
    }

    /// The text of an answer; an error where it is a refusal.
    pub(super) fn answer(&self, what: &str, response: Answered) -> Result<String> {
        let mut response = response.map_err(|error| self.unreachable(what, error))?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(LONGEST).read_to_string();
        let text = text.map_err(|error| self.unreachable(what, error))?;
        if (200..300).contains(&status) { Ok(text) } else { Err(self.refusal(what, status, &text)) }
    }

    /// The bytes of an answer to the question for a part of an object; none behind its end.
    pub(super) fn part(&self, what: &str, response: Answered, most: u64) -> Result<Vec<u8>> {
        let mut response = response.map_err(|error| self.unreachable(what, error))?;
        match response.status().as_u16() {
            206 => {}
            416 => return Ok(Vec::new()),
            // It knows no ranges, and would send all of it for each part.
            200 => return Err(Error::permanent(format!("{what}: {} sends no parts of objects", self.place))),
            _ => return self.answer(what, Ok(response)).map(|_| Vec::new()),
        }
        let mut bytes = Vec::new();
        let read = response.body_mut().as_reader().take(most).read_to_end(&mut bytes);
        read.map_err(|error| Error::transient(format!("{what}: {} breaks off", self.place)).source(error))?;
        Ok(bytes)
    }

    /// Reads a list of objects: the elements of this name, each with its name and size by `read`,
    /// and what the next part of the list begins with, which stands in `next`. A server may list
    /// more than it was asked for: what begins otherwise is left out.
    pub(super) fn read_list(
        &self,
        what: &str,
        text: &str,
        names: &ListNames<'_>,
        read: impl Fn(Node<'_, '_>) -> Option<(String, u64)>,
    ) -> Result<(Vec<StoredObject>, Option<String>)> {
        let unreadable = || Error::permanent(format!("{what}: {} does not answer with a list", self.place));
        let document = Document::parse(text.trim_start_matches('\u{feff}'));
        let document = document.map_err(|error| unreadable().source(error))?;
        let root = document.root_element();
        let mut found = Vec::new();
        for node in root.descendants().filter(|node| node.tag_name().name() == names.entry) {
            let (name, bytes) = read(node).ok_or_else(unreadable)?;
            if let Some(name) = name.strip_prefix(names.prefix).filter(|name| name.starts_with(names.begin)) {
                found.push(StoredObject { name: name.to_owned(), bytes });
            }
        }
        Ok((found, text_of(root, names.next).filter(|next| !next.is_empty())))
    }

    /// Errors of the library may have the address, which may have a secret.
    pub(super) fn unreachable(&self, what: &str, error: ureq::Error) -> Error {
        let is_tls = |text: &str| {
            let text = text.to_lowercase();
            ["certificate", "tls", "handshake"].iter().any(|word| text.contains(word))
        };
        let wrong_certificate = || self.words.wrong_certificate.to_owned();
        let (why, hint) = match error {
            ureq::Error::HostNotFound => {
                ("its name is not known to DNS".to_owned(), format!("correct {}", self.words.endpoint))
            }
            ureq::Error::Rustls(why) => (format!("TLS: {why}"), wrong_certificate()),
            ureq::Error::Timeout(_) => ("it does not answer in time".to_owned(), OUT_OF_REACH.to_owned()),
            ureq::Error::Io(why) if is_tls(&why.to_string()) => (why.to_string(), wrong_certificate()),
            ureq::Error::Io(why) => (why.to_string(), OUT_OF_REACH.to_owned()),
            _ => ("the connection fails".to_owned(), OUT_OF_REACH.to_owned()),
        };
        Error::transient(format!("{what}: {} cannot be reached", self.place)).evidence(why).hint(hint)
    }

    pub(super) fn refusal(&self, what: &str, status: u16, text: &str) -> Error {
        let document = Document::parse(text.trim_start_matches('\u{feff}')).ok();
        let of = |name: &str| {
            let node = document.as_ref()?.descendants().find(|node| node.tag_name().name() == name)?;
            // More lines name the request alone.
            node.text()?.lines().next().map(str::to_owned)
        };
        let (code, said) = (of("Code").unwrap_or_default(), of("Message").unwrap_or_default());
        let hint = (self.words.advise)(&code, status);
        let message = format!("{what}: {} refuses it", self.place);
        let error =
            if status >= 500 && status != 507 { Error::transient(message) } else { Error::precondition(message) };
        error.evidence(format!("HTTP {status} {code} {said}").trim_end().to_owned()).hint(hint)
    }
}

/// The text of a child of this name.
pub(super) fn text_of(node: Node<'_, '_>, name: &str) -> Option<String> {
    node.children().find(|child| child.tag_name().name() == name)?.text().map(str::to_owned)
}
