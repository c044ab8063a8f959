//! `turnup restore`: etcd gets the content of a backup, or of the one member that is left. All
//! members that are there become one new cluster of etcd with a revision above any that was served,
//! all older ones compacted, so that whatever watched the old one lists again.
//!
//! [`plan`] refuses before anything is stopped. From then on the record says what is under way, and
//! every step may be carried out again; no data are deleted, neither here nor on a host.

mod plan;
mod record;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::artifacts::Digest;
use crate::cluster::Cluster;
use crate::document::Document as _;
use crate::error::{Class, Context as _, Error, Result};
use crate::inventory::{Host, Inventory};
use crate::node::backup::{
    BackupManifest, Identities, SnapshotContent, TrustedSigner, extract, inspect, needs_identity,
};
use crate::node::etcd_restore::{MemberState, RestoreOrder, aside_name, snapshot_name};
use crate::parallel;
use crate::phase::Cx;

use super::api::{Kubectl, kubectl};
use super::backup_keys::signer;
use super::delete_nodes::find_without_host;
use super::etcd_members::{Members, name_and_url, peer_url};
use super::etcdctl::Etcdctl;
use super::host_connection::HostConnection;
use super::keyset::{ItemState, KeysetName};
use super::pki::Pki;
use super::rolling_lock::write_members;
use super::steps::wait_until_ready;
use super::{backup, backup_words};

use plan::{HostView, PlannedSource, Survey, choose_member};
use record::{FILE, RestoreRecord, Snapshot};

pub use plan::{RestorePlan, RestoreRequest, RestoreSource};
pub use record::require_none;

/// How long a host may take for a look at it, with a copy of turnup.
const LOOK: Duration = Duration::from_mins(5);
/// How long the new members may take to come together.
const TOGETHER: Duration = Duration::from_mins(5);
/// How long the API servers may take to say that they are there, and the others to be forgotten.
const ENDPOINTS: Duration = Duration::from_mins(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Below the cluster's directory: what a restore that is under way needs.
const DIRECTORY: &str = "restore";
const SNAPSHOT: &str = "restore/snapshot.db";
const ARCHIVE: &str = "restore/backup.tar";
/// The form of the time in an id, in UTC.
const ID: &str = "%Y%m%dT%H%M%SZ";

/// What came of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Where the content came from.
    pub source: String,
    /// The hosts of the members.
    pub hosts: Vec<String>,
    /// The revision of the last change in it, and the one from which the cluster goes on.
    pub revisions: (i64, i64),
    /// The name of the former data on each host, in etcd's directory there.
    pub aside: String,
}

/// The source of the restore that is under way, if there is one, and where it takes place.
pub fn find_unfinished(cluster: &Cluster) -> Result<Option<(String, Vec<String>)>> {
    let record = RestoreRecord::find_unfinished(&cluster.store)?;
    Ok(record.map(|record| (record.source, record.hosts)))
}

/// What would be done. Looks at the hosts and changes nothing but turnup's own program there. What
/// only the store has is fetched to this machine. `tell` takes a line for the operator.
pub fn plan(cluster: &Cluster, request: &RestoreRequest, tell: &dyn Fn(String)) -> Result<RestorePlan> {
    let inventory = cluster.inventory()?;
    let hosts: Vec<&Host> = inventory.control_planes().collect();
    // Before any host is asked.
    let identities = request.identity.as_deref().map(Identities::read).transpose()?;
    let key = identities.as_ref();
    let views = parallel::map(&hosts, parallel::HOSTS, |host| view(cluster, host));
    let backups = match cluster.settings.backup {
        Some(_) => backup::list(cluster)?,
        None => Vec::new(),
    };
    let file = match &request.source {
        RestoreSource::File(path) => Some((path.clone(), read_file(path, &signer(cluster, request.unsigned)?, key)?)),
        _ => None,
    };
    let names = hosts.iter().map(|host| host.name.clone());
    let (stored, store_problem) = backup::find_only_stored(&backups);
    let mut survey = Survey {
        hosts: names.zip(views).map(|(name, view)| Ok((name, view?))).collect::<Result<_>>()?,
        backups: backups.into_iter().filter_map(|host| host.list.ok()).flat_map(|list| list.backups).collect(),
        stored,
        store_problem,
        file,
        cluster: (cluster.settings.name.clone(), backup_words::cluster_id(cluster)?),
        kubernetes_version: cluster.settings.kubernetes_version.clone(),
        only_key_since: only_key_since(cluster)?,
        revision: RestoreRecord::find(&cluster.store)?.map_or(0, |record| record.revision()),
    };
    survey.require_hosts(&request.without)?;
    let fetched = match survey.find_stored(&request.source) {
        Some(stored) => {
            tell(format!("fetching {} from {}", stored.name, stored.place));
            Some(fetch_stored(cluster, stored, request.unsigned, key)?)
        }
        None => None,
    };
    let fetched = fetched.map(|(dir, file)| {
        survey.file = Some(file);
        dir
    });
    let plan = RestorePlan { _fetched: fetched, ..plan::plan(&survey, request)? };
    if let (PlannedSource::Backup(backup), None) = (&plan.source, key)
        && let Some(encrypted) = backup.manifest.as_ref().and_then(|manifest| manifest.encrypted.as_ref())
    {
        return Err(needs_identity(Path::new(&backup.name), encrypted));
    }
    Ok(plan)
}

/// The manifest of a backup in a file, which is whole, signed and can be read.
fn read_file(path: &Path, trust: &TrustedSigner, identities: Option<&Identities>) -> Result<BackupManifest> {
    let signed = inspect(path)?;
    trust.require(&path.display().to_string(), &signed)?;
    extract(path, identities, &mut std::io::sink()).map(|signed| signed.manifest)
}

/// Copies a backup here that only the store has, through a host that reads it there. It is whole,
/// signed, can be read, and is the one that its name says.
fn fetch_stored(
    cluster: &Cluster,
    stored: &backup::StoredBackup,
    unsigned: bool,
    identities: Option<&Identities>,
) -> Result<(tempfile::TempDir, (PathBuf, BackupManifest))> {
    let dir = tempfile::tempdir().context("cannot make a directory for a backup")?;
    let archive = dir.path().join("backup.tar");
    let signed = backup::download(cluster, &stored.name, &archive, unsigned)?;
    if let (Some(encrypted), None) = (&signed.manifest.encrypted, identities) {
        return Err(needs_identity(Path::new(&stored.name), encrypted));
    }
    // Who can write there could give an older one a newer name.
    if signed.manifest.time != stored.time {
        return Err(Error::precondition(format!("{} is another backup than its name says", stored.name))
            .evidence(format!("it was taken at {}", signed.manifest.time))
            .hint("use another one: turnup backup list"));
    }
    let signed = extract(&archive, identities, &mut std::io::sink())?;
    Ok((dir, (archive, signed.manifest)))
}

/// Since when Secrets are written with the present key, where a former one is trusted no longer.
fn only_key_since(cluster: &Cluster) -> Result<Option<Timestamp>> {
    let keyset = Pki::of(cluster).keyset(KeysetName::EncryptionKey)?;
    let is_gone = |id: u32, state: ItemState| state == ItemState::Distrusted && keyset.has_signed(id);
    Ok(keyset.items.iter().any(|item| is_gone(item.id, item.state)).then(|| keyset.promoted()).flatten())
}

fn view(cluster: &Cluster, host: &Host) -> Result<HostView> {
    let connection = HostConnection::quiet(cluster, host, LOOK)?;
    if let Err(error) = connection.greet() {
        return Ok(HostView::Silent(error));
    }
    connection.copy_turnup(cluster)?;
    let state: Option<MemberState> = connection.ask_etcd(&["look"])?;
    Ok(state.map_or(HostView::NoNode, HostView::Member))
}

/// Writes the restore down, with the snapshot of a backup beside it. Nothing is stopped yet; from
/// here on [`carry_out`] goes on with it.
pub fn begin(cluster: &Cluster, request: &RestoreRequest, plan: &RestorePlan, cx: &Cx) -> Result<()> {
    require_none(&cluster.store)?;
    let identities = request.identity.as_deref().map(Identities::read).transpose()?;
    let identities = identities.as_ref();
    let id = Timestamp::now().strftime(ID).to_string();
    let source = plan.source.describe();
    let (member, manifest) = match &plan.source {
        PlannedSource::Member(host) => (host.clone(), None),
        PlannedSource::Backup(listed) => {
            cx.progress(format!("fetching {} from {}", listed.name, listed.host));
            cluster.store.remove(ARCHIVE)?;
            let archive = cluster.store.path(ARCHIVE);
            cluster.store.create_dir(DIRECTORY)?;
            backup::download(cluster, &listed.name, &archive, request.unsigned)?;
            let manifest = unpack(cluster, &archive, identities)?;
            cluster.store.remove(ARCHIVE)?;
            (None, Some(manifest))
        }
        PlannedSource::File(archive, _) | PlannedSource::Stored(_, archive, _) => {
            (None, Some(unpack(cluster, archive, identities)?))
        }
    };
    let record = RestoreRecord {
        schema: RestoreRecord::SCHEMA.into(),
        id,
        source,
        member,
        snapshot: manifest,
        hosts: plan.hosts.clone(),
        known: plan.known,
        is_finished: false,
    };
    write(cluster, &record)
}

fn unpack(cluster: &Cluster, archive: &Path, identities: Option<&Identities>) -> Result<Snapshot> {
    let path = snapshot_path(cluster)?;
    let mut file = backup::create(&path)?;
    let manifest = extract(archive, identities, &mut file)?.manifest;
    file.commit().map_err(|error| backup::cannot_write(&path, error))?;
    Ok(Snapshot { revision: manifest.revision, sha256: manifest.sha256, has_hash: true })
}

/// The snapshot on this machine as long as the restore is under way.
fn snapshot_path(cluster: &Cluster) -> Result<PathBuf> {
    cluster.store.create_dir(DIRECTORY)?;
    Ok(cluster.store.path(SNAPSHOT))
}

fn write(cluster: &Cluster, record: &RestoreRecord) -> Result<()> {
    cluster.write_document(FILE, record, 0o600)
}

/// Takes these hosts, which do not answer any more, out of the restore that is under way. The
/// others exchange their data once more, for a cluster of etcd that was never told of them.
pub fn give_up(cluster: &Cluster, without: &[String]) -> Result<()> {
    let Some(record) = RestoreRecord::find(&cluster.store)?.filter(|_| !without.is_empty()) else { return Ok(()) };
    let inventory = cluster.inventory()?;
    for name in without {
        if !record.hosts.contains(name) {
            return Err(Error::usage(format!("--without {name}: the restore does not take place there"))
                .hint(format!("its hosts: {}", record.hosts.join(", "))));
        }
        if HostConnection::for_proof(cluster, inventory.host(name)?)?.greet().is_ok() {
            return Err(Error::usage(format!("--without {name}: it answers, and is not lost")).hint("turnup restore"));
        }
    }
    let id = Timestamp::now().strftime(ID).to_string();
    let hosts: Vec<String> = record.hosts.iter().filter(|host| !without.contains(host)).cloned().collect();
    if hosts.is_empty() {
        return Err(Error::usage("--without: no host of the restore is left").hint("turnup restore"));
    }
    write(cluster, &RestoreRecord { id, hosts, known: record.revision(), ..record })
}

/// Goes on with the restore that is written down, to its end.
///
/// # Errors
/// Those of the hosts; the same call goes on. A bug where no restore is under way.
pub fn carry_out(cluster: &Cluster, cx: &Cx) -> Result<Restored> {
    let record = RestoreRecord::find_unfinished(&cluster.store)?;
    let record = record.ok_or_else(|| Error::bug("no restore is under way"))?;
    let inventory = cluster.inventory()?;
    let hosts = record.hosts.iter().map(|name| inventory.host(name)).collect::<Result<Vec<&Host>>>()?;
    let members = Site { cluster, inventory: &inventory, hosts, cx };
    let (record, snapshot) = members.bring_snapshot(record)?;
    members.exchange(&record, &snapshot)?;
    members.tell_members()?;
    members.start(&record)?;
    members.settle()?;
    // In this order: as long as it is not finished, the same call needs the snapshot.
    write(cluster, &RestoreRecord { is_finished: true, ..record.clone() })?;
    cluster.store.remove(SNAPSHOT)?;
    Ok(Restored {
        revisions: (snapshot.revision, record.revision()),
        aside: aside_name(&record.id),
        source: record.source,
        hosts: record.hosts,
    })
}

/// The hosts on which a restore takes place.
struct Site<'a> {
    cluster: &'a Cluster,
    inventory: &'a Inventory,
    hosts: Vec<&'a Host>,
    cx: &'a Cx,
}

impl Site<'_> {
    fn each<T: Send>(&self, act: impl Fn(&HostConnection<'_>) -> Result<T> + Sync) -> Result<Vec<(String, T)>> {
        let results = parallel::map(&self.hosts, parallel::HOSTS, |host| {
            self.cx.check()?;
            let connection = HostConnection::new(self.cluster, host, self.cx)?;
            act(&connection).map(|value| (host.name.clone(), value))
        });
        results.into_iter().collect()
    }

    /// Until every host is stopped and has the snapshot. A backup comes before the stop, which is
    /// the shorter for it; a member is read after.
    fn bring_snapshot(&self, record: RestoreRecord) -> Result<(RestoreRecord, Snapshot)> {
        if let Some(snapshot) = record.snapshot.clone() {
            self.distribute(&record.id, &snapshot)?;
            self.stop()?;
            return Ok((record, snapshot));
        }
        self.stop()?;
        let stopped: Vec<(String, MemberState)> = self.each(|connection| connection.ask_etcd(&["look"]))?;
        let (host, revision) = choose_member(&stopped, record.member.as_deref())?;
        self.cx.progress(format!("taking the member on {host}, revision {revision}"));
        let sha256 = self.fetch_member(&host)?;
        let known = stopped.iter().filter_map(|(_, state)| state.revision).fold(record.known, i64::max);
        let snapshot = Snapshot { revision, sha256, has_hash: false };
        let source = format!("the member on {host}");
        let record = RestoreRecord { source, snapshot: Some(snapshot.clone()), known, ..record };
        write(self.cluster, &record)?;
        self.distribute(&record.id, &snapshot)?;
        Ok((record, snapshot))
    }

    fn stop(&self) -> Result<()> {
        self.cx.progress(format!("stopping the control plane of {} hosts", self.hosts.len()));
        self.each(|connection| connection.restore_etcd(&["stop"], ""))?;
        self.cx.milestone("control plane stopped");
        Ok(())
    }

    /// Copies the database of a stopped member here; its digest.
    fn fetch_member(&self, host: &str) -> Result<String> {
        let path = snapshot_path(self.cluster)?;
        let connection = HostConnection::new(self.cluster, self.inventory.host(host)?, self.cx)?;
        let mut file = backup::create(&path)?;
        backup::fetch_parts(host, &mut file, |offset| {
            connection.restore_etcd(&["part", &format!("--offset={offset}")], "")
        })
        .map_err(|error| backup::cannot_write(&path, error))??;
        file.commit().map_err(|error| backup::cannot_write(&path, error))?;
        Ok(Digest::of_file(&path)?.to_string())
    }

    /// Every host gets the snapshot, and reads the revision in it that is expected.
    fn distribute(&self, id: &str, snapshot: &Snapshot) -> Result<()> {
        let path = snapshot_path(self.cluster)?;
        if Digest::of_file(&path)?.to_string() != snapshot.sha256 {
            return Err(Error::precondition(format!("{} is not the snapshot that was fetched", path.display()))
                .hint(format!("remove {FILE} in {}; then: turnup restore", self.cluster.store.dir().display())));
        }
        self.cx.progress("copying the snapshot to the hosts");
        self.each(|connection| {
            let state: MemberState = connection.ask_etcd(&["look"])?;
            let place = state.directory.join(snapshot_name(id));
            connection.copy(&path, &place.display().to_string(), 0o600)?;
            let content: SnapshotContent = connection.ask_etcd(&["check", id])?;
            if content.revision == snapshot.revision {
                return Ok(());
            }
            Err(Error::precondition(format!("{}: the snapshot is of another revision", connection.host().name))
                .evidence(format!("expected {}, found {}", snapshot.revision, content.revision)))
        })?;
        Ok(())
    }

    fn exchange(&self, record: &RestoreRecord, snapshot: &Snapshot) -> Result<()> {
        let initial_cluster = self.hosts.iter().map(|host| name_and_url(host)).collect::<Vec<_>>().join(",");
        self.cx.progress(format!("restoring revision {} as {}", snapshot.revision, record.revision()));
        self.each(|connection| {
            let host = connection.host();
            let order = RestoreOrder {
                id: record.id.clone(),
                name: host.name.clone(),
                peer_url: peer_url(host.address),
                initial_cluster: initial_cluster.clone(),
                // A member of before the restore that comes back never speaks to one of after it.
                token: format!("turnup-{}-{}", self.cluster.settings.name, record.id),
                bump: record.bump(snapshot),
                has_hash: snapshot.has_hash,
            };
            let text = serde_json::to_string(&order).context("cannot write the order")?;
            connection.restore_etcd(&["restore"], &text)
        })?;
        self.cx.milestone("data restored");
        Ok(())
    }

    /// The members are those of these hosts, and no others: any other host joins as one more.
    fn tell_members(&self) -> Result<()> {
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        let known = Members::find(&self.cluster.store)?;
        let mut members = known.unwrap_or_else(|| Members::recover(self.inventory, &names));
        members.all.retain(|member| names.contains(&member.name.as_str()));
        for name in &names {
            members.settle(name);
        }
        write_members(self.cluster, &members)
    }

    fn start(&self, record: &RestoreRecord) -> Result<()> {
        self.cx.progress("starting the control plane");
        self.each(|connection| connection.restore_etcd(&["start", &record.id], "")).map(drop)
    }

    /// Until etcd and the API answer, and know nothing that is gone.
    fn settle(&self) -> Result<()> {
        self.find_etcd()?.forget_api_servers()?;
        self.cx.milestone("etcd healthy");
        let kubectl = kubectl(self.cluster)?.within(self.cx);
        wait_until_ready(&kubectl, self.cx)?;
        self.cx.milestone("API server ready");
        for name in find_without_host(&kubectl, self.inventory)? {
            self.cx.progress(format!("deleting the node {name}: its host is gone"));
            kubectl.run(&["delete", "node", &name, "--ignore-not-found", "--wait=false"])?;
        }
        self.wait_for_endpoints(&kubectl)
    }

    fn find_etcd(&self) -> Result<Etcdctl<'_>> {
        let members = Members::read(self.cluster, self.inventory)?;
        let since = Instant::now();
        loop {
            match Etcdctl::find(self.cluster, self.inventory, &members, self.cx) {
                Err(error) if error.class() == Class::Transient && since.elapsed() < TOGETHER => {}
                found => return found,
            }
            self.cx.sleep(PAUSE)?;
        }
    }

    /// The Service `kubernetes` leads to no API server that is gone.
    fn wait_for_endpoints(&self, kubectl: &Kubectl) -> Result<()> {
        let since = Instant::now();
        loop {
            let slices = kubectl.get(&[
                "endpointslices",
                "--namespace=default",
                "--selector=kubernetes.io/service-name=kubernetes",
            ])?;
            let gone = find_gone(&slices, &self.hosts);
            if gone.is_empty() {
                return Ok(());
            }
            if since.elapsed() > ENDPOINTS {
                return Err(Error::transient("the Service kubernetes still leads to API servers that are gone")
                    .evidence(gone.join(", "))
                    .hint("turnup restore (goes on waiting)"));
            }
            self.cx.sleep(PAUSE)?;
        }
    }
}

/// Addresses in endpoint slices that are those of none of these hosts.
fn find_gone(slices: &Value, hosts: &[&Host]) -> Vec<String> {
    let items = slices["items"].as_array().into_iter().flatten();
    let endpoints = items.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let addresses = endpoints.flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten());
    let is_there = |address: &&str| hosts.iter().any(|host| host.address.to_string() == *address);
    addresses.filter_map(Value::as_str).filter(|address| !is_there(address)).map(str::to_owned).collect()
}
