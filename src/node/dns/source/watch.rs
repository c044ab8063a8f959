//! All objects of one kind, and what becomes of them: a list and a watch, as Kubernetes' own
//! clients do it (<https://kubernetes.io/docs/reference/using-api/api-concepts/>).

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::exec::signals;

use super::super::super::https_endpoint::{HttpsEndpoint, reason};
use super::known::{KnownObjects, Listed, lock};
use super::object::{SourceKind, SourceObject};

/// Objects of a page.
const PAGE: usize = 500;
/// How long the API server goes on with a watch, in seconds, and how long it is waited for.
const WATCH_SECONDS: u64 = 240;
const PATIENCE: Duration = Duration::from_secs(WATCH_SECONDS + 30);
/// Between two watches: one that is ended at once is not asked for without a pause.
const PAUSE: Duration = Duration::from_secs(1);
/// After a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Bytes of a page of objects, and of one event. etcd takes objects of 1.5 MiB.
const LONGEST_PAGE: u64 = 256 << 20;
const LONGEST_EVENT: u64 = 8 << 20;

/// One kind, watched.
pub(super) struct SourceWatch {
    pub(super) api: HttpsEndpoint,
    pub(super) kind: SourceKind,
    pub(super) known: Arc<Mutex<KnownObjects>>,
    pub(super) is_over: Arc<AtomicBool>,
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    #[serde(default)]
    items: Option<Vec<SourceObject>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: serde_json::Value,
}

impl SourceWatch {
    /// Until the value that began it is gone, or a signal comes.
    pub(super) fn run(&self) {
        let mut from = None;
        while !self.ends() {
            match self.go_on(from.take()) {
                Ok(reached) => {
                    lock(&self.known).failures.remove(&self.kind);
                    from = reached;
                    signals::sleep(PAUSE).ok();
                }
                Err(error) => {
                    lock(&self.known).failures.insert(self.kind, error.message().to_owned());
                    signals::sleep(RETRY_INTERVAL).ok();
                }
            }
        }
    }

    fn ends(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || signals::interrupted()
    }

    /// Watches from this version on, else from a new list; up to which version it came. None where
    /// the next watch needs a new list.
    fn go_on(&self, from: Option<String>) -> Result<Option<String>> {
        let mut version = match from {
            Some(version) => version,
            None => self.list()?,
        };
        lock(&self.known).failures.remove(&self.kind);
        let query =
            format!("watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}");
        let mut response = self.ask(&query)?;
        let mut lines = BufReader::new(response.body_mut().as_reader());
        let mut line = Vec::new();
        while !self.ends() {
            line.clear();
            let read = (&mut lines).take(LONGEST_EVENT).read_until(b'\n', &mut line);
            if read.map_err(|error| self.away(&error))? == 0 {
                break;
            }
            let event: Event = self.parse(&line)?;
            if event.r#type == "ERROR" {
                // 410: what happened since that version is no longer known.
                return Ok(None);
            }
            let object: SourceObject = serde_json::from_value(event.object).map_err(|error| self.away(&error))?;
            version.clone_from(&object.metadata.resource_version);
            self.take_in(&event.r#type, object);
        }
        Ok(Some(version))
    }

    fn take_in(&self, what: &str, object: SourceObject) {
        let mut known = lock(&self.known);
        let objects = known.objects.entry(self.kind).or_default();
        match what {
            "ADDED" | "MODIFIED" if object.counts(self.kind) => {
                objects.insert(object.key(), object);
            }
            "ADDED" | "MODIFIED" | "DELETED" => {
                objects.remove(&object.key());
            }
            _ => {}
        }
    }

    /// Reads all objects; their version.
    fn list(&self) -> Result<String> {
        let (mut all, mut next) = (Listed::new(), String::new());
        loop {
            let query = format!("limit={PAGE}&continue={next}");
            let mut response = self.ask(&query)?;
            let text = response.body_mut().with_config().limit(LONGEST_PAGE).read_to_vec();
            let page: Page = self.parse(&text.map_err(|error| self.away(&error))?)?;
            let counted = page.items.unwrap_or_default().into_iter().filter(|object| object.counts(self.kind));
            all.extend(counted.map(|object| (object.key(), object)));
            next = page.metadata.next;
            if next.is_empty() {
                lock(&self.known).objects.insert(self.kind, all);
                return Ok(page.metadata.resource_version);
            }
        }
    }

    fn ask(&self, query: &str) -> Result<ureq::http::Response<ureq::Body>> {
        let client = self.api.client(PATIENCE)?;
        let url = format!("{}{}?{query}", self.api.endpoint, self.kind.path());
        let mut response = client.get(&url).call().map_err(|error| self.away(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let text = response.body_mut().with_config().limit(1 << 16).read_to_string().unwrap_or_default();
        Err(self.away(&reason(&text, response.status())))
    }

    fn parse<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T> {
        serde_json::from_slice(text).map_err(|error| self.away(&error))
    }

    fn away(&self, why: &dyn std::fmt::Display) -> Error {
        Error::transient(format!("the API server does not list {}: {why}", self.kind.plural()))
    }
}
