//! What stands beside a snapshot of etcd in its archive: whose it is, when it was taken, and how
//! it is known to be whole.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::document::{Document, Fields};

/// The first file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupManifest {
    /// Always [`BackupManifest::SCHEMA`](Document::SCHEMA).
    pub schema: String,
    /// The cluster's name.
    pub cluster: String,
    /// The digest of the first authority of its etcd: what no other cluster has.
    pub cluster_id: String,
    /// The control-plane host that took it.
    pub host: String,
    /// When.
    pub time: Timestamp,
    /// Why: `interval`, `request` or `change`.
    pub reason: String,
    /// The version of Kubernetes, without `v`.
    pub kubernetes_version: String,
    /// The version of etcd.
    pub etcd_version: String,
    /// The id that etcd itself gave the cluster, in hexadecimal digits.
    pub etcd_cluster_id: String,
    /// The revision of the last write in the snapshot.
    pub revision: i64,
    /// etcd's hash over the snapshot, in hexadecimal digits.
    pub hash: String,
    /// How many keys it has, with those of former revisions.
    pub keys: u64,
    /// The sha256 of the snapshot.
    pub sha256: String,
    /// Its bytes.
    pub size: u64,
    /// How it lies in the archive when it is encrypted; none where it lies there as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<EncryptedParts>,
}

/// What of an archive is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncryptedParts {
    /// The public keys of those who can read it.
    pub recipients: Vec<String>,
    /// The snapshot.
    pub snapshot: EncryptedPart,
    /// What the operator's machine has of the cluster; none where the host was given nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<EncryptedPart>,
}

/// One file of an archive that is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncryptedPart {
    /// The sha256 of what lies in the archive.
    pub sha256: String,
    /// Its bytes.
    pub size: u64,
}

impl Document for BackupManifest {
    const SCHEMA: &'static str = "turnup.backup/1";
    const WHAT: &'static str = "the manifest of a backup of etcd";
    const REMEDY: &'static str = "take another backup: turnup backup list";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("cluster", "dns-label"),
            ("cluster_id", "word"),
            ("host", "dns-label"),
            ("time", "text"),
            ("reason", "enum(interval, request, change)"),
            ("kubernetes_version", "semver"),
            ("etcd_version", "word"),
            ("etcd_cluster_id", "word"),
            ("hash", "word"),
            ("sha256", "sha256"),
            ("encrypted.recipients[]", "word"),
            ("encrypted.snapshot.sha256", "sha256"),
            ("encrypted.directory.sha256", "sha256"),
        ])
    }
}

#[cfg(test)]
pub(super) fn sample() -> BackupManifest {
    BackupManifest {
        schema: BackupManifest::SCHEMA.into(),
        cluster: "kubernetes".into(),
        cluster_id: "0123456789abcdef".into(),
        host: "h0".into(),
        time: Timestamp::UNIX_EPOCH,
        reason: "interval".into(),
        kubernetes_version: "1.36.3".into(),
        etcd_version: "3.6.16".into(),
        etcd_cluster_id: "5b59e7e2f4c3a1d0".into(),
        revision: 4711,
        hash: "1a2b3c4d".into(),
        keys: 1200,
        sha256: "0".repeat(64),
        size: 0,
        encrypted: None,
    }
}
