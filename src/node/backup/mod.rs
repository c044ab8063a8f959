//! `turnup node backup`: takes snapshots of this host's member of etcd, keeps as many as are to be
//! kept, lists and verifies them. The timer `turnup-backup.timer` runs it at the interval, and
//! turnup on the operator's machine on request and before changes.
//!
//! It deletes only what it has listed itself as a backup of this cluster and host, and only after
//! a newer one is whole on the disk. What it does not know stays, and is named.

mod archive;
mod blob;
mod encryption;
mod manifest;
mod retention;
mod s3;
mod signature;
mod store;
mod store_http;

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::atomic_file::PREFIX;
use crate::document::Document as _;
use crate::error::{Context as _, Error, Result};
use crate::exec::{Run, signals};
use crate::failpoint;
use crate::input;

use super::layout;
use super::node_config::{BACKUP_SERVICE, NodeConfig};
use super::systemd;

pub(crate) use archive::{
    ArchiveContent, LONGEST_DIRECTORY, append, extract, inspect, needs_identity, read_directory, write,
};
pub(crate) use blob::BlobContainer;
pub(crate) use encryption::{Identities, encrypt};
pub(crate) use manifest::{BackupManifest, EncryptedPart, EncryptedParts};
pub(crate) use retention::Retention;
pub(crate) use s3::S3Bucket;
pub(crate) use signature::{SignedManifest, TrustedSigner, fingerprint};
use store::HostFiles;
pub(crate) use store::{BackupStore, StoreOutcome, StoredList};

/// How long another backup of this host may take.
const ANOTHER: Duration = Duration::from_mins(10);
/// How long etcd may take to hand over all that it has.
const SNAPSHOT_TIMEOUT: &str = "--command-timeout=5m";
/// The form of the time in a name, in UTC.
const TIME: &str = "%Y%m%dT%H%M%SZ";
/// The end of a name.
const END: &str = ".tar";
/// The end of the name of an encrypted one.
const ENCRYPTED_END: &str = ".age.tar";
/// Bytes of a part that is handed over at once.
const PART: u64 = 4 << 20;

/// When a backup was taken, and the name of its file.
type NamedTime = (Timestamp, String);

/// Whose backups they are, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackupPlace {
    /// The directory.
    pub directory: PathBuf,
    /// The cluster's name.
    pub cluster: String,
    /// The Node's name.
    pub host: String,
    /// The version of Kubernetes that it runs.
    pub kubernetes_version: String,
    /// What turnup gives the host for its backups: the key that signs, the cluster's encrypted
    /// keys.
    pub given: PathBuf,
    /// Where what is not encrypted yet lies for a moment: on no disk that other machines share.
    pub private: PathBuf,
}

/// A file that is a backup of this host, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedBackup {
    /// The file's name without the directory.
    pub name: String,
    /// The host that has it.
    pub host: String,
    /// When it was taken.
    pub time: Timestamp,
    /// Bytes of the archive.
    pub bytes: u64,
    /// What it says of itself; none where it cannot be read.
    pub manifest: Option<BackupManifest>,
    /// Why not.
    pub damage: Option<String>,
}

/// What is in a directory of backups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupList {
    /// The backups of this host, the oldest first.
    pub backups: Vec<ListedBackup>,
    /// Names that are none: halves of a run that was killed, and files of others.
    pub others: Vec<String>,
    /// Whether the last one that the timer started failed.
    pub failed: bool,
    /// What is in the store; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredList>,
}

/// What taking one did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenBackup {
    /// The new one.
    pub backup: ListedBackup,
    /// Names of those that were superseded, and are deleted.
    pub deleted: Vec<String>,
    /// Names in the directory that are no backups of this host.
    pub others: Vec<String>,
    /// What became of its copy in the store; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoreOutcome>,
}

/// What a restore into a directory beside it has shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VerifiedBackup {
    /// Its name.
    pub name: String,
    /// The host that has it.
    pub host: String,
    /// What it says of itself, all of which was found true.
    pub manifest: BackupManifest,
    /// The same byte by byte with its signature, which the host itself does not judge.
    pub signed: SignedManifest,
}

/// The programs of etcd, and with whose certificate.
pub(crate) struct EtcdPrograms<'a> {
    etcdctl: &'a str,
    etcdutl: &'a str,
}

impl EtcdPrograms<'_> {
    /// Those that turnup installed on this host.
    pub(crate) const HOST: EtcdPrograms<'static> = EtcdPrograms { etcdctl: layout::ETCDCTL, etcdutl: layout::ETCDUTL };

    #[cfg(test)]
    pub(super) const fn with_etcdutl(etcdutl: &str) -> EtcdPrograms<'_> {
        EtcdPrograms { etcdctl: "/bin/false", etcdutl }
    }

    fn ctl(&self, words: &[&str]) -> Result<String> {
        let run =
            Run::new(self.etcdctl).dir("/").args(["--endpoints", layout::ETCD_ENDPOINT]).args(layout::ETCD_CLIENT);
        Ok(run.args(words.iter().copied()).succeed()?.stdout)
    }

    pub(super) fn utl(&self, words: &[&str]) -> Result<String> {
        Ok(Run::new(self.etcdutl).dir("/").args(words.iter().copied()).succeed()?.stdout)
    }

    /// What is in a snapshot, or in the database of a member that does not run.
    pub(super) fn snapshot_content(&self, snapshot: &Path) -> Result<SnapshotContent> {
        let SnapshotStatus { hash, revision, keys } = self.snapshot_status(snapshot)?;
        Ok(SnapshotContent { revision, hash: format!("{hash:x}"), keys })
    }

    /// The revision of the last change that this host's member has applied, and whether it knows a
    /// leader; an error where it does not answer.
    pub(super) fn applied_revision(&self) -> Result<(i64, bool)> {
        let status = self.endpoint_status("5s")?;
        let revision = status["header"]["revision"].as_i64();
        let revision = revision.ok_or_else(|| Error::permanent("etcdctl does not tell the revision"))?;
        Ok((revision, status["leader"].as_u64().unwrap_or_default() != 0))
    }

    /// etcd's hash over a snapshot, its revision and number of keys.
    fn snapshot_status(&self, snapshot: &Path) -> Result<SnapshotStatus> {
        let text = self.utl(&["snapshot", "status", &snapshot.display().to_string(), "--write-out=json"])?;
        serde_json::from_str(&text).context("etcdutl does not answer with JSON")
    }

    /// The version of etcd, and the id that it gave its cluster.
    fn identity(&self) -> Result<(String, String)> {
        let status = self.endpoint_status("10s")?;
        let (version, id) = (status["version"].as_str(), status["header"]["cluster_id"].as_u64());
        let (version, id) = version.zip(id).ok_or_else(|| Error::permanent("etcdctl does not tell its cluster"))?;
        Ok((version.to_owned(), format!("{id:x}")))
    }

    /// What this host's member says of itself within this time.
    fn endpoint_status(&self, timeout: &str) -> Result<Value> {
        let timeout = format!("--command-timeout={timeout}");
        let text = self.ctl(&["endpoint", "status", "--write-out=json", &timeout])?;
        let mut answer: Value = serde_json::from_str(&text).context("etcdctl does not answer with JSON")?;
        Ok(answer.pointer_mut("/0/Status").map(Value::take).unwrap_or_default())
    }
}

/// What etcdutl reads in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotContent {
    /// The revision of the last change.
    pub revision: i64,
    /// etcd's hash over it, in hexadecimal digits.
    pub hash: String,
    /// How many keys it has, with those of former revisions.
    pub keys: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct SnapshotStatus {
    hash: u32,
    revision: i64,
    #[serde(rename = "totalKey")]
    keys: u64,
}

impl BackupPlace {
    /// That of this host, as far as it is a node.
    pub(crate) fn of_host(directory: PathBuf, cluster: String) -> Result<Self> {
        let Some(node_config) = NodeConfig::read_applied()? else {
            return Err(Error::precondition("this host is no node, so it has no etcd to back up").hint("turnup up"));
        };
        let NodeConfig { node: host, kubernetes_version, .. } = node_config;
        let (given, private) = (layout::BACKUP.into(), layout::STATE.into());
        Ok(Self { directory, cluster, host, kubernetes_version, given, private })
    }

    fn name(&self, time: Timestamp, end: &str) -> String {
        format!("{}-{}-{}{end}", self.cluster, time.strftime(TIME), self.host)
    }

    /// When a file of this name was taken; none where it is no backup of this cluster and host.
    fn time_of(&self, name: &str) -> Option<Timestamp> {
        let rest = name.strip_prefix(&self.cluster)?.strip_prefix('-')?;
        let (end, rest) = [ENCRYPTED_END, END].into_iter().find_map(|end| Some((end, rest.strip_suffix(end)?)))?;
        let time = rest.strip_suffix(&self.host)?.strip_suffix('-')?;
        let time = jiff::civil::DateTime::strptime(TIME, time).ok()?.in_tz("UTC").ok()?.timestamp();
        // Only as it is written here: the parser takes other forms as well.
        (self.name(time, end) == name).then_some(time)
    }

    /// When a backup of this cluster was taken, on whichever host.
    fn time_of_any(&self, name: &str) -> Option<Timestamp> {
        let rest = name.strip_prefix(&self.cluster)?.strip_prefix('-')?;
        let rest = [ENCRYPTED_END, END].into_iter().find_map(|end| rest.strip_suffix(end))?;
        let (_, host) = rest.split_once('-')?;
        Self { host: host.to_owned(), ..self.clone() }.time_of(name)
    }

    /// How the names of this cluster's backups begin.
    fn begin(&self) -> String {
        format!("{}-", self.cluster)
    }

    /// The store that the host was told of.
    fn store(&self) -> Result<Option<BackupStore>> {
        let Some(bytes) = self.given(layout::BACKUP_STORE, input::KEYS)? else { return Ok(None) };
        // What is wrong in it is not shown: a secret stands there.
        let store = serde_json::from_slice(&bytes);
        store
            .map(Some)
            .map_err(|_| Error::precondition("what this host knows of its store is damaged").hint("turnup up"))
    }

    /// The path of one of its backups. Names come from outside: one of another form is refused.
    fn path_of(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        if self.time_of(name).is_some() && path.is_file() {
            return Ok(path);
        }
        Err(Error::usage(format!("{} has no backup {name} in {}", self.host, self.directory.display()))
            .hint("turnup backup list"))
    }

    /// Names that are backups with their times, the oldest first, and all other names. A directory
    /// that is not there has none.
    fn names(&self) -> Result<(Vec<NamedTime>, Vec<String>)> {
        let (mut found, mut others) = (Vec::new(), Vec::new());
        if !self.directory.is_dir() {
            return Ok((found, others));
        }
        for entry in fs_err::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            match self.time_of(&name).filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file())) {
                Some(time) => found.push((time, name)),
                None if name == LOCK => {}
                None => others.push(name),
            }
        }
        found.sort();
        others.sort();
        Ok((found, others))
    }

    fn listed(&self, time: Timestamp, name: String) -> Result<ListedBackup> {
        let path = self.directory.join(&name);
        let bytes = fs_err::metadata(&path)?.len();
        let (manifest, damage) = match archive::read_manifest(&path) {
            Ok(manifest) => (Some(manifest), None),
            Err(error) => (None, Some(error.message().to_owned())),
        };
        Ok(ListedBackup { name, host: self.host.clone(), time, bytes, manifest, damage })
    }

    /// What is in the directory.
    pub(crate) fn list(&self) -> Result<BackupList> {
        let (found, others) = self.names()?;
        let backups = found.into_iter().map(|(time, name)| self.listed(time, name)).collect::<Result<_>>()?;
        let stored = self.store()?.map(|store| store.tell(&self.begin(), &|name| self.time_of_any(name)));
        Ok(BackupList { backups, others, failed: systemd::is("is-failed", BACKUP_SERVICE), stored })
    }

    /// Takes one now, and then deletes those that it supersedes.
    pub(crate) fn take(
        &self,
        programs: &EtcdPrograms<'_>,
        subject: &BackupSubject,
        retention: Retention,
    ) -> Result<TakenBackup> {
        self.make_directory()?;
        let _alone = self.lock()?;
        let is_encrypted = !subject.recipients.is_empty();
        let scratch = Self::scratch(if is_encrypted { &self.private } else { &self.directory })?;
        let snapshot = scratch.path().join(archive::SNAPSHOT);
        let words = ["snapshot", "save", &snapshot.display().to_string(), SNAPSHOT_TIMEOUT];
        programs.ctl(&words).map_err(|error| explain(&self.directory, error))?;
        let (time, name) = self.free_name(if is_encrypted { ENCRYPTED_END } else { END })?;
        let mut manifest = self.describe(programs, subject, time, &snapshot)?;
        let key = self.given(layout::BACKUP_KEY, input::KEYS)?.map(Zeroizing::new);
        let key = key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
        let directory = self.given(layout::BACKUP_CLUSTER, LONGEST_DIRECTORY)?.filter(|_| is_encrypted);
        let directory = directory.as_deref();
        let sealed = is_encrypted.then(|| Self::scratch(&self.directory)).transpose()?;
        let mut content = snapshot.clone();
        if let Some(sealed) = &sealed {
            content = sealed.path().join(archive::SNAPSHOT);
            manifest.encrypted = Some(self.encrypt(&subject.recipients, &snapshot, &content, directory)?);
        }
        let content = ArchiveContent { manifest: &manifest, snapshot: &content, directory, key };
        write(&self.directory.join(&name), &content)?;
        drop((scratch, sealed));
        let (found, others) = self.names()?;
        let deleted = self.delete_superseded(&found, retention)?;
        let found: Vec<NamedTime> = found.into_iter().filter(|(_, name)| !deleted.contains(name)).collect();
        let stored = self.store()?.map(|store| {
            let (begin, time_of) = (self.begin(), |name: &str| self.time_of(name));
            let host = HostFiles { begin: &begin, directory: &self.directory, found: &found, time_of: &time_of };
            store.copy_missing(&host, retention)
        });
        Ok(TakenBackup { backup: self.listed(time, name)?, deleted, others, stored })
    }

    /// What the host was given for its backups under this name; none where it was not.
    fn given(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let path = self.given.join(name);
        if !path.exists() {
            return Ok(None);
        }
        input::read(&path, most).map(Some).context(format!("cannot read {}", path.display()))
    }

    /// Encrypts a snapshot to another file.
    fn encrypt(
        &self,
        recipients: &[String],
        snapshot: &Path,
        to: &Path,
        directory: Option<&[u8]>,
    ) -> Result<EncryptedParts> {
        let out = fs_err::File::create(to).map_err(|error| archive::write_error(to, error))?;
        encrypt(recipients, fs_err::File::open(snapshot)?, std::io::BufWriter::new(out))
            .and_then(|mut out| Ok(out.flush()?))
            .map_err(|error| explain(&self.directory, error))?;
        let part = |(sha256, size): (String, u64)| EncryptedPart { sha256, size };
        let directory = directory.map(archive::digest).transpose()?.map(part);
        let snapshot = part(archive::digest(fs_err::File::open(to)?)?);
        Ok(EncryptedParts { recipients: recipients.to_vec(), snapshot, directory })
    }

    fn describe(
        &self,
        programs: &EtcdPrograms<'_>,
        subject: &BackupSubject,
        time: Timestamp,
        snapshot: &Path,
    ) -> Result<BackupManifest> {
        let SnapshotStatus { hash, revision, keys } = programs.snapshot_status(snapshot)?;
        let (etcd_version, etcd_cluster_id) = programs.identity()?;
        let (sha256, size) = archive::digest(fs_err::File::open(snapshot)?)?;
        Ok(BackupManifest {
            schema: BackupManifest::SCHEMA.into(),
            cluster: self.cluster.clone(),
            cluster_id: subject.cluster_id.clone(),
            host: self.host.clone(),
            time,
            reason: subject.reason.clone(),
            kubernetes_version: self.kubernetes_version.clone(),
            etcd_version,
            etcd_cluster_id,
            revision,
            hash: format!("{hash:x}"),
            keys,
            sha256,
            size,
            encrypted: None,
        })
    }

    /// This second, or the first one after it that has no backup yet.
    fn free_name(&self, end: &str) -> Result<(Timestamp, String)> {
        loop {
            let now = Timestamp::now();
            let time = Timestamp::from_second(now.as_second()).unwrap_or(now);
            let is_taken = [END, ENCRYPTED_END].iter().any(|end| self.directory.join(self.name(time, end)).exists());
            if !is_taken {
                return Ok((time, self.name(time, end)));
            }
            signals::sleep(Duration::from_millis(100))?;
        }
    }

    fn delete_superseded(&self, found: &[NamedTime], retention: Retention) -> Result<Vec<String>> {
        let times: Vec<Timestamp> = found.iter().map(|(time, _)| *time).collect();
        let gone = retention.superseded(&times);
        let names: Vec<String> =
            found.iter().filter(|(time, _)| gone.contains(time)).map(|(_, name)| name.clone()).collect();
        for name in &names {
            let path = self.directory.join(name);
            failpoint::around(format_args!("delete {}", path.display()), || fs_err::remove_file(&path))?;
        }
        Ok(names)
    }

    /// Root's alone, as what etcd has.
    fn make_directory(&self) -> Result<()> {
        if self.directory.is_dir() {
            // The one who made it has said who may look into it; the files are root's alone.
            return Ok(());
        }
        let made = fs_err::create_dir_all(&self.directory)
            .and_then(|()| fs_err::set_permissions(&self.directory, Permissions::from_mode(0o700)));
        made.map_err(|error| archive::write_error(&self.directory, error))
    }

    fn lock(&self) -> Result<fs_err::File> {
        let path = self.directory.join(LOCK);
        let file = fs_err::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| archive::write_error(&path, error))?;
        if signals::lock(&file, ANOTHER)? {
            return Ok(file);
        }
        Err(Error::transient(format!("another backup of {} does not end", self.host)))
    }

    /// For what is not whole yet, of root alone; gone when it is dropped.
    fn scratch(beside: &Path) -> Result<tempfile::TempDir> {
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(beside);
        made.map_err(|error| archive::write_error(beside, error))
    }

    /// Restores one into a directory beside it, and compares what etcd says with the manifest.
    pub(crate) fn verify(&self, programs: &EtcdPrograms<'_>, name: &str) -> Result<VerifiedBackup> {
        let path = self.path_of(name)?;
        let scratch = Self::scratch(&self.directory)?;
        let snapshot = scratch.path().join(archive::SNAPSHOT);
        let mut out = fs_err::File::create(&snapshot)?;
        // A host has no key to what is encrypted: the operator's machine decrypts it first.
        let signed = extract(&path, None, &mut out)?;
        let manifest = &signed.manifest;
        out.flush()?;
        let data = scratch.path().join("data");
        let (from, to) = (snapshot.display().to_string(), format!("--data-dir={}", data.display()));
        let restored = programs.utl(&["snapshot", "restore", &from, &to]);
        restored.map_err(|error| explain(&self.directory, error))?;
        let expected = (manifest.hash.clone(), manifest.revision, manifest.keys);
        let status = programs.snapshot_status(&snapshot)?;
        same(&path, &expected, &(format!("{:x}", status.hash), status.revision, status.keys))?;
        // Members are written into the restored one, so its hash is another.
        let restored = programs.snapshot_status(&data.join("member/snap/db"))?;
        same(&path, &expected, &(manifest.hash.clone(), restored.revision, manifest.keys))?;
        Ok(VerifiedBackup { name: name.to_owned(), host: self.host.clone(), manifest: manifest.clone(), signed })
    }

    /// A part of an archive from this byte on, in base64; empty behind its end. One that is not
    /// here is read in the store.
    pub(crate) fn part(&self, name: &str, offset: u64) -> Result<String> {
        if self.time_of_any(name).is_some()
            && !self.directory.join(name).is_file()
            && let Some(store) = self.store()?
        {
            return Ok(base64::engine::general_purpose::STANDARD.encode(store.read_part(name, offset, PART)?));
        }
        read_part(&self.path_of(name)?, offset)
    }
}

/// The name that an unencrypted backup of this time has on a host.
pub(crate) fn plain_name(cluster: &str, time: Timestamp, host: &str) -> String {
    format!("{cluster}-{}-{host}{END}", time.strftime(TIME))
}

/// A part of a file from this byte on, in base64; empty behind its end.
pub(super) fn read_part(path: &Path, offset: u64) -> Result<String> {
    Ok(base64::engine::general_purpose::STANDARD.encode(archive::read_part(path, offset, PART)?))
}

/// The file in a directory of backups that is locked while one is taken there.
const LOCK: &str = ".lock";

/// What a backup is of, besides its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackupSubject {
    /// The digest of the cluster's first authority of etcd.
    pub cluster_id: String,
    /// `interval`, `request` or `change`.
    pub reason: String,
    /// The public keys of those who may read it; it is not encrypted where there are none.
    pub recipients: Vec<String>,
}

/// etcd's programs name a full disk in their own words.
fn explain(directory: &Path, error: Error) -> Error {
    let is_full = |text: &str| text.contains("no space left on device") || text.contains("disk quota exceeded");
    let told = is_full(error.message()) || error.evidence_lines().iter().any(|line| is_full(line));
    if told { archive::disk_full(directory) } else { error }
}

fn same(path: &Path, expected: &(String, i64, u64), found: &(String, i64, u64)) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let show = |(hash, revision, keys): &(String, i64, u64)| format!("hash {hash}, revision {revision}, {keys} keys");
    Err(Error::precondition(format!("{} is not what its manifest says", path.display()))
        .evidence(format!("manifest: {}", show(expected)))
        .evidence(format!("etcdutl: {}", show(found)))
        .hint("use another one: turnup backup list"))
}

#[cfg(test)]
#[path = "emulator_tests.rs"]
mod emulator;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod tests;
