//! Backups of etcd, from the operator's machine: the step `backup` before changes of etcd, and what
//! `turnup backup` asks of the hosts, where `node::backup` does the work.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::atomic_file::{AtomicFile, FileMode};
use crate::cluster::{BackupSettings, Cluster};
use crate::error::{Class, Context as _, Error, Result};
use crate::inventory::{Host, Inventory};
use crate::node::backup::{
    ArchiveContent, BackupList, BackupManifest, Identities, ListedBackup, SignedManifest, TakenBackup, VerifiedBackup,
    extract, fingerprint, inspect, needs_identity, plain_name, read_directory, write,
};
use crate::parallel;
use crate::phase::{Action, Check, Cx, Inputs};
use crate::unknown;

use super::backup_keys::signer;
use super::backup_words::{BackupReason, place, take_words};
use super::etcd_members::{FoundingStage, MemberStart, Members};
use super::host_connection::HostConnection;
use super::node_context::NodeContext;
use super::step_ids::ARTIFACTS;

/// How long a host may take to verify a backup, or to hand over a part of one.
const LONGEST: Duration = Duration::from_mins(10);
/// Where a backup that was decrypted here lies on a host while it is verified.
const VERIFY: &str = "/var/lib/turnup/verify-backup";

fn require(cluster: &Cluster) -> Result<&BackupSettings> {
    let store = BackupSettings::STORE;
    cluster.settings.backup.as_ref().ok_or_else(|| {
        Error::config(format!("no backups are taken: {store} is none"))
            .hint(format!("turnup config set {store}=host; then: turnup up"))
    })
}

/// Takes a backup on the first of the control-plane hosts on which that succeeds.
pub(crate) fn take(cluster: &Cluster, cx: &Cx) -> Result<TakenBackup> {
    let settings = require(cluster)?;
    let inventory = cluster.inventory()?;
    take_on(cluster, settings, inventory.control_planes(), BackupReason::Request, cx)
}

fn take_on<'h>(
    cluster: &Cluster,
    settings: &BackupSettings,
    hosts: impl Iterator<Item = &'h Host>,
    reason: BackupReason,
    cx: &Cx,
) -> Result<TakenBackup> {
    let words = take_words(cluster, settings, reason)?;
    let mut failed: Vec<(&str, Error)> = Vec::new();
    for host in hosts {
        cx.check()?;
        let taken = HostConnection::new(cluster, host, cx).and_then(|connection| {
            connection.copy_turnup(cluster)?;
            connection.ask_backup(&words)
        });
        match taken {
            Ok(taken) => return Ok(taken),
            Err(error) => failed.push((&host.name, error)),
        }
    }
    Err(none_took_one(failed))
}

/// One error for all hosts; the class of the last, so that what may pass by itself is tried again.
fn none_took_one(failed: Vec<(&str, Error)>) -> Error {
    let class = failed.last().map_or(Class::Precondition, |(_, error)| error.class());
    let hint = failed.iter().rev().find_map(|(_, error)| error.next().map(str::to_owned));
    let mut all = Error::new(class, "no control-plane host could take a backup of etcd");
    for (host, error) in failed {
        all = all.evidence(format!("{host}: {}", error.message()));
        all = error.evidence_lines().iter().cloned().fold(all, Error::evidence);
    }
    all.hint(hint.unwrap_or_else(|| "turnup status".to_owned()))
}

/// Takes a backup before members come or go, or another version of etcd starts, where the settings
/// want one. An error means that nothing was changed yet.
pub(super) fn before_change(cluster: &Cluster, inventory: &Inventory, members: &Members, cx: &Cx) -> Result<()> {
    let Some(settings) = cluster.settings.backup.as_ref().filter(|settings| settings.before_change) else {
        return Ok(());
    };
    if members.stage != FoundingStage::Established {
        return Ok(());
    }
    let counts = |host: &&Host| members.get(&host.name).is_ok_and(|member| member.start != MemberStart::Joining);
    let hosts: Vec<&Host> = inventory.control_planes().filter(counts).collect();
    let taken =
        take_on(cluster, settings, hosts.into_iter(), BackupReason::Change, cx).map_err(|error| refuse(&error))?;
    cx.progress(format!("backup {} on {}", taken.backup.name, taken.backup.host));
    // The change is safe with the one on the host.
    if let Some(error) = taken.stored.and_then(|stored| stored.error()) {
        cx.progress(format!("not copied to the store: {}", error.message()));
    }
    Ok(())
}

fn refuse(error: &Error) -> Error {
    let switch = BackupSettings::BEFORE_CHANGE;
    let next = error.next().map(|next| format!("{next}; or ")).unwrap_or_default();
    let refused = Error::new(error.class(), "etcd is not changed without a backup of it, and none could be taken");
    let refused = refused.evidence(error.message()).evidence_of(error.evidence_lines());
    refused.hint(format!("{next}without one: turnup config set {switch}=n"))
}

/// The step `backup`: before another version of etcd or of Kubernetes starts.
pub(super) struct BackupBeforeChange(pub(super) NodeContext);

impl Action for BackupBeforeChange {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let cluster = &self.0.cluster;
        let etcd = cluster.resolved().and_then(|resolved| resolved.reference("etcd"));
        Ok(cluster
            .inputs(&["phase2.kubernetes_version"])
            .with("etcd", etcd.unwrap_or_else(|_| unknown::after(&ARTIFACTS))))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(Check::Ok)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        match Members::find(&self.0.cluster.store)? {
            Some(members) => before_change(&self.0.cluster, &self.0.inventory, &members, cx),
            None => Ok(()),
        }
    }
}

/// The backups of one control-plane host, or why it does not tell.
#[derive(Debug)]
pub(crate) struct HostBackups {
    /// The host's name.
    pub host: String,
    /// What it said.
    pub list: Result<BackupList>,
}

/// What the control-plane hosts have, in the order of the inventory.
pub(crate) fn list(cluster: &Cluster) -> Result<Vec<HostBackups>> {
    let settings = require(cluster)?;
    let inventory = cluster.inventory()?;
    let mut words = place(cluster, settings);
    words.push("list".to_owned());
    let hosts: Vec<&Host> = inventory.control_planes().collect();
    Ok(parallel::map(&hosts, parallel::HOSTS, |host| {
        let list = HostConnection::for_proof(cluster, host).and_then(|connection| connection.ask_backup(&words));
        HostBackups { host: host.name.clone(), list }
    }))
}

/// A backup that the store has, and no host that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredBackup {
    /// Its name.
    pub(super) name: String,
    /// When it was taken.
    pub(super) time: Timestamp,
    /// The store.
    pub(super) place: String,
}

/// What only the store has, and why it does not tell. Every host tells of the same store.
pub(super) fn find_only_stored(hosts: &[HostBackups]) -> (Vec<StoredBackup>, Option<String>) {
    let answers = || hosts.iter().filter_map(|host| host.list.as_ref().ok());
    let is_on_host = |name: &str| answers().any(|list| list.backups.iter().any(|backup| backup.name == name));
    let (mut found, mut problem) = (BTreeMap::new(), None);
    for store in answers().filter_map(|list| list.stored.as_ref()) {
        problem = problem.or_else(|| store.problem.clone());
        for (time, object) in store.backups.iter().filter(|(_, object)| !is_on_host(&object.name)) {
            let (name, place) = (object.name.clone(), store.place.clone());
            found.insert(name.clone(), StoredBackup { name, time: *time, place });
        }
    }
    // Another host may have told all the same.
    let problem = problem.filter(|_| found.is_empty());
    (found.into_values().collect(), problem)
}

/// The backup of this name, or the newest of all that can be read.
fn find(cluster: &Cluster, name: Option<&str>) -> Result<ListedBackup> {
    let hosts = list(cluster)?;
    let all = hosts.iter().filter_map(|host| host.list.as_ref().ok()).flat_map(|list| &list.backups);
    let found = match name {
        Some(name) => all.into_iter().find(|backup| backup.name == name),
        None => all.into_iter().filter(|backup| backup.damage.is_none()).max_by_key(|backup| backup.time),
    };
    let stored = || name.and_then(|name| hosts.iter().find_map(|host| find_stored(host, name)));
    found.cloned().or_else(stored).ok_or_else(|| {
        let what =
            name.map_or_else(|| "there is no backup yet".to_owned(), |name| format!("there is no backup {name}"));
        let silent =
            hosts.iter().filter_map(|host| Some(format!("{}: {}", host.host, host.list.as_ref().err()?.message())));
        let hint = if name.is_some() { "turnup backup list" } else { "turnup backup now" };
        silent.fold(Error::precondition(what), Error::evidence).hint(hint)
    })
}

/// A backup that no host has any more, in the store of which this host tells.
fn find_stored(host: &HostBackups, name: &str) -> Option<ListedBackup> {
    let stored = host.list.as_ref().ok()?.stored.as_ref()?;
    let (time, object) = stored.backups.iter().find(|(_, object)| object.name == name)?;
    Some(ListedBackup {
        name: object.name.clone(),
        host: host.host.clone(),
        time: *time,
        bytes: object.bytes,
        manifest: None,
        damage: None,
    })
}

fn connect<'h>(cluster: &Cluster, inventory: &'h Inventory, backup: &ListedBackup) -> Result<HostConnection<'h>> {
    let host = inventory.control_planes().find(|host| host.name == backup.host);
    let host = host.ok_or_else(|| Error::bug(format!("{} is no host of the control plane", backup.host)))?;
    HostConnection::quiet(cluster, host, LONGEST)
}

/// Restores the backup of this name, or else the newest one, into a directory on its host that is
/// removed again, and compares what etcd reads there with the manifest.
pub(crate) fn verify(
    cluster: &Cluster,
    name: Option<&str>,
    identity: Option<&Path>,
    unsigned: bool,
) -> Result<VerifiedBackup> {
    let (settings, inventory) = (require(cluster)?, cluster.inventory()?);
    // Before anything is fetched.
    let identities = identity.map(Identities::read).transpose()?;
    let trust = signer(cluster, unsigned)?;
    let backup = find(cluster, name)?;
    let encrypted = backup.manifest.as_ref().and_then(|manifest| manifest.encrypted.as_ref());
    if let (Some(encrypted), None) = (encrypted, &identities) {
        return Err(needs_identity(Path::new(&backup.name), encrypted));
    }
    // What only the store has, no host can read by itself either.
    let is_stored = backup.manifest.is_none() && backup.damage.is_none();
    if encrypted.is_some() || is_stored {
        let dir = tempfile::tempdir().context("cannot make a directory for a backup")?;
        let archive = dir.path().join("encrypted.tar");
        let signed = download(cluster, &backup.name, &archive, unsigned)?;
        return verify_decrypted(cluster, &inventory, &backup, identities.as_ref(), (signed, &archive));
    }
    let mut words = place(cluster, settings);
    words.extend(["verify".to_owned(), backup.name.clone()]);
    let verified: VerifiedBackup = connect(cluster, &inventory, &backup)?.ask_backup(&words)?;
    require_told(&verified)?;
    trust.require(&verified.name, &verified.signed)?;
    Ok(verified)
}

/// The signature is one of the text, so the fields have to be those of the text.
fn require_told(verified: &VerifiedBackup) -> Result<()> {
    let told: Option<BackupManifest> = serde_json::from_str(&verified.signed.text).ok();
    if told.as_ref() == Some(&verified.manifest) && verified.signed.manifest == verified.manifest {
        return Ok(());
    }
    Err(Error::permanent(format!("{} tells two manifests of {}", verified.host, verified.name)))
}

/// Decrypts a backup here and lets its host, which had all of this in its etcd, restore it into a
/// directory. No key leaves this machine; what is decrypted is gone from both when this returns.
fn verify_decrypted(
    cluster: &Cluster,
    inventory: &Inventory,
    backup: &ListedBackup,
    identities: Option<&Identities>,
    (signed, archive): (SignedManifest, &Path),
) -> Result<VerifiedBackup> {
    let encrypted = signed.manifest.encrypted.as_ref();
    if let (Some(_), Some(identities)) = (encrypted.and_then(|encrypted| encrypted.directory.as_ref()), identities) {
        read_directory(archive, identities)?;
    }
    let (snapshot, plain) = (archive.with_file_name("snapshot.db"), archive.with_file_name("plain.tar"));
    let mut out = create(&snapshot)?;
    extract(archive, identities, &mut out)?;
    out.commit().map_err(|error| cannot_write(&snapshot, error))?;
    let manifest = &BackupManifest { encrypted: None, ..signed.manifest.clone() };
    write(&plain, &ArchiveContent { manifest, snapshot: &snapshot, directory: None, key: None })?;
    let connection = connect(cluster, inventory, backup)?;
    let name = plain_name(&cluster.settings.name, signed.manifest.time, &backup.host);
    connection.run(&["rm", "--recursive", "--force", VERIFY])?;
    connection.run(&["mkdir", "--mode=0700", VERIFY])?;
    let verified = connection.copy(&plain, &format!("{VERIFY}/{name}"), 0o600).and_then(|()| {
        let cluster = format!("--cluster={}", cluster.settings.name);
        connection.ask_backup(&[format!("--directory={VERIFY}"), cluster, "verify".to_owned(), name])
    });
    connection.run(&["rm", "--recursive", "--force", VERIFY])?;
    let verified: VerifiedBackup = verified?;
    Ok(VerifiedBackup { name: backup.name.clone(), manifest: signed.manifest.clone(), signed, ..verified })
}

/// The short name of the key that signs this cluster's backups; none where it has none yet.
pub(crate) fn signer_name(cluster: &Cluster) -> Result<Option<String>> {
    Ok(signer(cluster, false)?.public_key.as_deref().map(fingerprint))
}

/// Copies a backup to this file, which must not exist, part by part; it gets its name only when it
/// is whole.
pub(crate) fn download(cluster: &Cluster, name: &str, to: &Path, unsigned: bool) -> Result<SignedManifest> {
    let (settings, inventory) = (require(cluster)?, cluster.inventory()?);
    let trust = signer(cluster, unsigned)?;
    if to.exists() {
        return Err(Error::usage(format!("{} exists already", to.display())).hint("name another file with --to"));
    }
    let backup = find(cluster, Some(name))?;
    let connection = connect(cluster, &inventory, &backup)?;
    let mut file = create(to)?;
    fetch_parts(&backup.host, &mut file, |offset| {
        let mut words = place(cluster, settings);
        words.extend(["part".to_owned(), backup.name.clone(), format!("--offset={offset}")]);
        connection.ask_backup_text(&words)
    })
    .map_err(|error| cannot_write(to, error))??;
    let signed = inspect(file.temporary())?;
    trust.require(&backup.name, &signed)?;
    file.commit().map_err(|error| cannot_write(to, error))?;
    Ok(signed)
}

/// A file for what only its owner may read; it gets its name when it is whole.
pub(super) fn create(path: &Path) -> Result<AtomicFile> {
    AtomicFile::create(path, FileMode::Exact(0o600)).map_err(|error| cannot_write(path, error))
}

pub(super) fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::precondition(format!("cannot write {}", path.display())).source(error)
}

/// Copies a file of a host, which it hands over in parts from an offset on, each in base64; the
/// outer error is one of writing.
pub(super) fn fetch_parts(
    host: &str,
    out: &mut impl std::io::Write,
    mut part: impl FnMut(usize) -> Result<String>,
) -> std::io::Result<Result<()>> {
    let mut offset = 0;
    loop {
        let decoded = part(offset).and_then(|part| {
            let no_part = || Error::permanent(format!("{host} does not answer with a part of a file"));
            STANDARD.decode(part.trim()).map_err(|error| no_part().source(error))
        });
        match decoded {
            Ok(bytes) if bytes.is_empty() => return Ok(Ok(())),
            Ok(bytes) => {
                out.write_all(&bytes)?;
                offset += bytes.len();
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_without_a_backup_is_refused_with_the_switch_that_allows_it() {
        let full = Error::precondition("no space left on the disk of /backup").hint("make room there");
        let failed = vec![("h0", Error::transient("cannot reach h0 over ssh")), ("h1", full)];
        insta::assert_snapshot!(refuse(&none_took_one(failed)).render());
    }
}
