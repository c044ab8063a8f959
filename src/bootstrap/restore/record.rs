//! The restore of etcd that is under way, or else the last one, as it is written down before
//! anything is stopped: after a kill the same restore goes on. Asks no host.

use serde::{Deserialize, Serialize};

use crate::cluster::find_document;
use crate::document::{Document, Fields, Found};
use crate::error::{Error, Result};
use crate::state::Store;

/// Where it lies below the cluster's directory.
pub(super) const FILE: &str = "outputs/restore.json";

/// By how much a restored revision is above all that are known: no cluster writes as often between
/// the last look at it and its end. `OpenShift`'s way back takes the same number.
const AHEAD: i64 = 1_000_000_000;

/// What comes into the members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snapshot {
    /// The revision of its last change.
    pub(super) revision: i64,
    /// Of the file.
    pub(super) sha256: String,
    /// Whether it ends with etcd's own hash.
    pub(super) has_hash: bool,
}

/// A restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreRecord {
    /// Always [`RestoreRecord::SCHEMA`](Document::SCHEMA).
    pub(super) schema: String,
    /// When it began, in UTC: part of the names of what it makes and puts aside.
    pub(super) id: String,
    /// Where the content comes from, in words.
    pub(super) source: String,
    /// The host whose member is taken; none is chosen before all are stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<String>,
    /// None as long as the members run whose data it is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) snapshot: Option<Snapshot>,
    /// The hosts of the new members.
    pub(super) hosts: Vec<String>,
    /// The highest revision that is known to have been.
    pub(super) known: i64,
    /// Whether it came to its end.
    pub(super) is_finished: bool,
}

impl Document for RestoreRecord {
    const SCHEMA: &'static str = "turnup.restore/1";
    const WHAT: &'static str = "the last restore of etcd";
    const REMEDY: &'static str = "put it back from a copy of the cluster's directory";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("id", "word"),
            ("source", "text"),
            ("member", "dns-label"),
            ("snapshot.sha256", "sha256"),
            ("hosts[]", "dns-label"),
        ])
    }
}

impl RestoreRecord {
    /// None before the first.
    pub(super) fn find(store: &Store) -> Result<Option<Self>> {
        match find_document(store, FILE)? {
            Found::There(record) => Ok(Some(record)),
            Found::Missing => Ok(None),
            Found::Older(schema) => {
                Err(Error::precondition(format!("{FILE} is of an older turnup ({schema})")).hint(Self::REMEDY))
            }
        }
    }

    /// The one that is under way.
    pub(super) fn find_unfinished(store: &Store) -> Result<Option<Self>> {
        Ok(Self::find(store)?.filter(|record| !record.is_finished))
    }

    /// By how much the revision of this snapshot is raised.
    pub(super) fn bump(&self, snapshot: &Snapshot) -> i64 {
        self.known.max(snapshot.revision) + AHEAD - snapshot.revision
    }

    /// The revision from which the cluster goes on.
    pub(super) fn revision(&self) -> i64 {
        self.snapshot.as_ref().map_or(self.known, |snapshot| snapshot.revision + self.bump(snapshot))
    }
}

/// An error while a restore is under way: part of the control plane is stopped, or of another time
/// than the rest.
pub fn require_none(store: &Store) -> Result<()> {
    match RestoreRecord::find_unfinished(store)? {
        Some(record) => Err(Error::precondition(format!("the restore of etcd from {} is under way", record.source))
            .evidence(format!("it takes place on: {}", record.hosts.join(", ")))
            .hint("turnup restore")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn sample(known: i64) -> RestoreRecord {
        RestoreRecord {
            schema: RestoreRecord::SCHEMA.into(),
            id: "20260301T120000Z".into(),
            source: "the backup kube-20260301T110000Z-h0.tar".into(),
            member: None,
            snapshot: Some(Snapshot { revision: 500, sha256: "0".repeat(64), has_hash: true }),
            hosts: vec!["h0".into(), "h1".into()],
            known,
            is_finished: false,
        }
    }

    #[test]
    fn the_revision_is_above_all_that_were_ever_served() {
        assert_eq!(sample(900).revision(), 900 + AHEAD);
        assert_eq!(sample(0).revision(), 500 + AHEAD);
        // The same backup once more: what the first restore served is known.
        let second = sample(sample(900).revision());
        assert!(second.revision() > sample(900).revision());
    }

    #[test]
    fn what_is_under_way_is_named_with_the_command_that_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        require_none(&store).unwrap();
        let write = |record: &RestoreRecord| {
            store.write_file(FILE, crate::document::render(FILE, record).unwrap().as_bytes(), 0o600).unwrap();
        };
        write(&sample(900));
        insta::assert_snapshot!(require_none(&store).unwrap_err().render());
        write(&RestoreRecord { is_finished: true, ..sample(900) });
        require_none(&store).unwrap();
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<RestoreRecord>(
            &serde_json::to_value(RestoreRecord { member: Some("h0".into()), ..sample(1) }).unwrap(),
        );
    }
}
