//! Where a host copies its backups: a bucket that speaks S3, or a container of Azure Blob Storage.
//! Objects are the files themselves, under a prefix.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

use super::blob::BlobContainer;
use super::retention::Retention;
use super::s3::S3Bucket;
use super::store_http::StoredObject;

/// Where the store is, and with which key. A host has it as a file of root's.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum BackupStore {
    /// A bucket.
    S3(S3Bucket),
    /// A container.
    Blob(BlobContainer),
}

impl std::fmt::Debug for BackupStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackupStore({})", self.shown())
    }
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

    /// The store in words, without a secret.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::S3(bucket) => bucket.shown(),
            Self::Blob(container) => container.shown(),
        }
    }

    /// Copies this file there.
    pub(crate) fn put(&self, name: &str, path: &Path) -> Result<()> {
        match self {
            Self::S3(bucket) => bucket.put(name, path),
            Self::Blob(container) => container.put(name, path),
        }
    }

    /// The objects whose names begin so.
    pub(crate) fn list(&self, begin: &str) -> Result<Vec<StoredObject>> {
        match self {
            Self::S3(bucket) => bucket.list(begin),
            Self::Blob(container) => container.list(begin),
        }
    }

    /// A part of an object from this byte on; empty behind its end.
    pub(crate) fn read_part(&self, name: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        match self {
            Self::S3(bucket) => bucket.read_part(name, offset, most),
            Self::Blob(container) => container.read_part(name, offset, most),
        }
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, name: &str) -> Result<()> {
        match self {
            Self::S3(bucket) => bucket.delete(name),
            Self::Blob(container) => container.delete(name),
        }
    }
}
