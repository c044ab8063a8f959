//! Which cluster of etcd this host belongs to, and where its members are: written while this
//! host's member is well, outside of its data, and read when those are gone. It is the mark that
//! the cluster was made once, so that a host with it never takes part as if it were the first.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::document::{self, Document, Fields};
use crate::error::Result;
use crate::input;

use super::super::super::{layout, task};
use super::decide::KnownCluster;

/// Where it lies.
pub(super) const FILE: &str = layout::ETCD_RECORD;

/// The content of [`FILE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EtcdRecord {
    /// Always [`EtcdRecord::SCHEMA`](Document::SCHEMA).
    schema: String,
    /// etcd's id of the cluster, as it writes it itself.
    cluster: String,
    /// This host's member, likewise.
    member: String,
    /// Where the other members answer.
    others: Vec<RecordedMember>,
}

/// One of the other members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedMember {
    pub(super) name: String,
    pub(super) client_urls: Vec<String>,
}

impl Document for EtcdRecord {
    const SCHEMA: &'static str = "turnup.etcd-record/1";
    const WHAT: &'static str = "the cluster of etcd that this host belongs to";
    const REMEDY: &'static str = "remove the file; turnup-agent writes it while etcd is well";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("cluster", "id"),
            ("member", "id"),
            ("others[].name", "dns-name"),
            ("others[].client_urls[]", "url"),
        ])
    }
}

impl EtcdRecord {
    pub(super) fn new(cluster: u64, member: u64, others: Vec<RecordedMember>) -> Self {
        Self { schema: Self::SCHEMA.into(), cluster: format!("{cluster:x}"), member: format!("{member:x}"), others }
    }

    /// What this host remembers; nothing where there is none, or a damaged one, which is as good.
    pub(super) fn find(path: &Path) -> Option<Self> {
        let text = input::read_text(path, input::DOCUMENT).ok()?;
        document::parse(FILE, &text).ok()
    }

    /// Writes it where it is another one than before.
    pub(super) fn keep(&self, path: &Path) -> Result<()> {
        if Self::find(path).as_ref() == Some(self) {
            return Ok(());
        }
        let text = document::render(FILE, self)?;
        task::write_atomic(path, text.as_bytes(), 0o600, rustix::process::getuid().as_raw())
    }

    pub(super) fn known(&self) -> Option<KnownCluster> {
        let id = u64::from_str_radix(&self.cluster, 16).ok()?;
        Some(KnownCluster { id, size: self.others.len() + 1 })
    }

    /// Where all the others may be asked.
    pub(super) fn endpoints(&self) -> Vec<String> {
        self.others.iter().flat_map(|other| other.client_urls.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn sample() -> EtcdRecord {
        let other = RecordedMember { name: "m2".into(), client_urls: vec!["https://10.0.0.2:2379".into()] };
        EtcdRecord::new(u64::MAX, 10, vec![other])
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        document::hostile::try_every_text::<EtcdRecord>(&serde_json::to_value(sample()).unwrap());
    }

    #[test]
    fn what_is_kept_is_found_and_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etcd.json");
        assert_eq!(EtcdRecord::find(&path), None);
        sample().keep(&path).unwrap();
        let written = fs_err::metadata(&path).unwrap().modified().unwrap();
        sample().keep(&path).unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().modified().unwrap(), written);
        let found = EtcdRecord::find(&path).unwrap();
        assert_eq!(found, sample());
        assert_eq!(found.known(), Some(KnownCluster { id: u64::MAX, size: 2 }));
        assert_eq!(found.endpoints(), ["https://10.0.0.2:2379"]);
        fs_err::write(&path, "{").unwrap();
        assert_eq!(EtcdRecord::find(&path), None, "a damaged one");
    }
}
