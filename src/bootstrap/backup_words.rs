//! The words behind `turnup node backup`: those of a host's own timer, and those by which the
//! operator's machine asks a host for a backup.

use crate::cluster::{BackupSettings, Cluster};
use crate::error::Result;
use crate::unknown;

use super::keyset::{self, KeysetName};
use super::pki::Pki;

/// Why a backup is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackupReason {
    /// Its time has come.
    Interval,
    /// The operator wants one.
    Request,
    /// etcd is about to be changed.
    Change,
}

impl BackupReason {
    const fn word(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Request => "request",
            Self::Change => "change",
        }
    }
}

/// The words behind `turnup node backup` that name the place.
pub(super) fn place(cluster: &Cluster, settings: &BackupSettings) -> Vec<String> {
    vec![format!("--directory={}", settings.directory), format!("--cluster={}", cluster.settings.name)]
}

/// All words behind `turnup node backup` to take one.
pub(super) fn take_words(cluster: &Cluster, settings: &BackupSettings, reason: BackupReason) -> Result<Vec<String>> {
    let mut words = place(cluster, settings);
    words.extend([
        "take".to_owned(),
        format!("--cluster-id={}", cluster_id(cluster)?),
        format!("--reason={}", reason.word()),
        format!("--keep-recent={}", settings.keep_recent),
        format!("--keep-daily={}", settings.keep_daily),
    ]);
    words.extend(settings.recipients.iter().map(|key| format!("--recipient={key}")));
    Ok(words)
}

/// What tells this cluster from any other, also from one of its name.
pub(super) fn cluster_id(cluster: &Cluster) -> Result<String> {
    // The first item for ever, also when others came after it.
    let authority = Pki::of(cluster).text(&KeysetName::EtcdCa.file(keyset::FIRST), "crt")?;
    Ok(unknown::digest(&authority))
}
