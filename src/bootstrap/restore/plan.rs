//! What a restore of etcd would do: a pure function of what the hosts have told, of the backups
//! that are known and of what the operator wants. Whatever speaks against it is said here, before
//! anything is stopped.

use std::path::PathBuf;

use jiff::Timestamp;
use semver::Version;

use crate::error::{Error, Result};
use crate::node::backup::{BackupManifest, ListedBackup};
use crate::node::etcd_restore::MemberState;

use super::super::backup::StoredBackup;

/// From what etcd is to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreSource {
    /// The member that is ahead of all, or else the newest backup.
    Best,
    /// A backup on a host or in the store, by its name.
    Backup(String),
    /// The newest backup on the hosts and in the store.
    NewestBackup,
    /// A backup that was downloaded.
    File(PathBuf),
    /// The member on this host.
    Member(String),
}

/// What the operator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreRequest {
    /// From what.
    pub source: RestoreSource,
    /// Hosts that do not answer and never come back with their data.
    pub without: Vec<String>,
    /// Also from a backup when there is something newer.
    pub older: bool,
    /// The file with the private key of age for an encrypted backup.
    pub identity: Option<PathBuf>,
    /// Also a backup that is not signed.
    pub unsigned: bool,
}

/// What is known of a control-plane host.
#[derive(Debug)]
pub(super) enum HostView {
    /// It has a member, or is a place for one.
    Member(MemberState),
    /// It is no node yet.
    NoNode,
    /// It does not answer.
    Silent(Error),
}

/// What everything is decided by.
#[derive(Debug)]
pub(super) struct Survey {
    /// The control-plane hosts, in the order of the inventory.
    pub(super) hosts: Vec<(String, HostView)>,
    /// Their backups, as far as they answer.
    pub(super) backups: Vec<ListedBackup>,
    /// Those that only the store has.
    pub(super) stored: Vec<StoredBackup>,
    /// Why the store does not tell what it has.
    pub(super) store_problem: Option<String>,
    /// The archive that the operator named, or that was fetched from the store, and what it says of
    /// itself.
    pub(super) file: Option<(PathBuf, BackupManifest)>,
    /// The cluster's name, and what tells it from others of its name.
    pub(super) cluster: (String, String),
    /// The version of Kubernetes that the settings say.
    pub(super) kubernetes_version: String,
    /// Since when Secrets are written with a key while an older one is trusted no longer.
    pub(super) only_key_since: Option<Timestamp>,
    /// The highest revision that former restores have led to.
    pub(super) revision: i64,
}

/// What the content is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlannedSource {
    /// Of the members on hosts that are to be restored, the one that is ahead of all once they are
    /// stopped; or the one on this host.
    Member(Option<String>),
    /// A backup on a host.
    Backup(Box<ListedBackup>),
    /// A file here.
    File(PathBuf, Box<BackupManifest>),
    /// A backup that only the store has, and the file here that was fetched.
    Stored(StoredBackup, PathBuf, Box<BackupManifest>),
}

/// What is going to be done.
#[derive(Debug)]
pub struct RestorePlan {
    pub(super) source: PlannedSource,
    /// The hosts of the new members, all of which are stopped and started.
    pub hosts: Vec<String>,
    /// The highest revision that is known to have been.
    pub(super) known: i64,
    /// What the operator has to know, a line each.
    pub lines: Vec<String>,
    /// Where the file lies that was fetched; removed with the plan.
    pub(super) _fetched: Option<tempfile::TempDir>,
}

impl PlannedSource {
    /// In words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Member(Some(host)) => format!("the member on {host}"),
            Self::Member(None) => "the member that is ahead of all".to_owned(),
            Self::Backup(backup) => format!("the backup {}", backup.name),
            Self::Stored(stored, ..) => format!("the backup {}", stored.name),
            Self::File(path, _) => format!("the backup {}", path.display()),
        }
    }

    fn manifest(&self) -> Option<&BackupManifest> {
        match self {
            Self::Member(_) => None,
            Self::Backup(backup) => backup.manifest.as_ref(),
            Self::File(_, manifest) | Self::Stored(_, _, manifest) => Some(manifest),
        }
    }
}

impl Survey {
    fn members(&self) -> impl Iterator<Item = (&str, &MemberState)> {
        self.hosts.iter().filter_map(|(name, view)| match view {
            HostView::Member(state) => Some((name.as_str(), state)),
            _ => None,
        })
    }

    fn with_data(&self) -> impl Iterator<Item = (&str, &MemberState)> {
        self.members().filter(|(_, state)| state.has_data)
    }

    fn has_majority(&self) -> bool {
        self.members().any(|(_, state)| state.has_leader)
    }

    /// The newest one that can be read.
    fn newest(&self) -> Option<&ListedBackup> {
        self.backups.iter().filter(|backup| backup.damage.is_none()).max_by_key(|backup| backup.time)
    }

    fn newest_stored(&self) -> Option<&StoredBackup> {
        self.stored.iter().max_by_key(|stored| stored.time)
    }

    /// The newest one on each side, with where it is.
    fn candidates(&self) -> impl Iterator<Item = (Timestamp, String)> {
        let on_host = self.newest().map(|one| (one.time, format!("{} of {} on {}", one.name, one.time, one.host)));
        let stored = self.newest_stored();
        let stored =
            stored.map(|one| (one.time, format!("{} of {} in the store alone, {}", one.name, one.time, one.place)));
        on_host.into_iter().chain(stored)
    }

    /// What of the store is meant, which has to be fetched before more can be said.
    pub(super) fn find_stored(&self, source: &RestoreSource) -> Option<&StoredBackup> {
        match source {
            RestoreSource::Backup(name) => self.stored.iter().find(|stored| stored.name == *name),
            RestoreSource::Best if self.has_majority() || self.with_data().next().is_some() => None,
            RestoreSource::Best | RestoreSource::NewestBackup => {
                let on_host = self.newest().map(|backup| backup.time);
                self.newest_stored().filter(|stored| on_host.is_none_or(|time| stored.time > time))
            }
            RestoreSource::File(_) | RestoreSource::Member(_) => None,
        }
    }

    /// Each that does not answer has to be given up in words, because its etcd cannot be stopped.
    pub(super) fn require_hosts(&self, without: &[String]) -> Result<()> {
        if let Some(unknown) = without.iter().find(|name| self.hosts.iter().all(|(host, _)| host != *name)) {
            let names: Vec<&str> = self.hosts.iter().map(|(host, _)| host.as_str()).collect();
            return Err(Error::usage(format!("--without {unknown}: no host of the control plane has this name"))
                .hint(format!("control-plane hosts: {}", names.join(", "))));
        }
        for (host, view) in &self.hosts {
            match (view, without.contains(host)) {
                (HostView::Silent(why), false) => {
                    return Err(Error::precondition(format!("{host} does not answer, so its etcd cannot be stopped"))
                        .evidence(why.message())
                        .evidence_of(why.evidence_lines())
                        .hint(format!(
                            "start {host}; or, when it never comes back with its data: turnup restore --without {host}"
                        )));
                }
                (HostView::Member(_) | HostView::NoNode, true) => {
                    return Err(Error::usage(format!("--without {host}: it answers, and is not lost"))
                        .hint("leave it away; a host that is not to be a member any more: turnup reset"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn choose(&self, source: &RestoreSource) -> Result<PlannedSource> {
        let not_read = || Error::bug("the archive was not read");
        if let Some(stored) = self.find_stored(source) {
            let (path, manifest) = self.file.clone().ok_or_else(not_read)?;
            return Ok(PlannedSource::Stored(stored.clone(), path, Box::new(manifest)));
        }
        match source {
            RestoreSource::Best if self.has_majority() => Err(no_loss()),
            RestoreSource::Best if self.with_data().next().is_some() => Ok(PlannedSource::Member(None)),
            RestoreSource::Best | RestoreSource::NewestBackup => {
                let newest = self.newest().cloned().map(|backup| PlannedSource::Backup(Box::new(backup)));
                newest.ok_or_else(|| {
                    Error::precondition("no host of the control plane has a backup of etcd that can be read")
                        .evidence_of(self.silent_store())
                        .hint("with one that was downloaded: turnup restore --file FILE")
                })
            }
            RestoreSource::Member(host) => {
                if self.with_data().all(|(name, _)| name != host) {
                    let names: Vec<&str> = self.with_data().map(|(name, _)| name).collect();
                    let have = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    return Err(Error::usage(format!("{host} has no data of etcd"))
                        .hint(format!("hosts that have some: {have}")));
                }
                // One that a majority has left behind may be the only one with the data.
                if self.members().any(|(name, state)| name == host && state.has_leader) {
                    return Err(no_loss());
                }
                Ok(PlannedSource::Member(Some(host.clone())))
            }
            RestoreSource::Backup(name) => {
                let found = self.backups.iter().find(|backup| backup.name == *name).ok_or_else(|| {
                    let error = Error::precondition(format!("there is no backup {name}"));
                    error.evidence_of(self.silent_store()).hint("turnup backup list")
                })?;
                Ok(PlannedSource::Backup(Box::new(found.clone())))
            }
            RestoreSource::File(_) => {
                let file = self.file.clone().map(|(path, manifest)| PlannedSource::File(path, Box::new(manifest)));
                file.ok_or_else(not_read)
            }
        }
    }

    /// Whose it is, and whether what it has can be read by what runs.
    fn require_readable(&self, source: &PlannedSource) -> Result<()> {
        if let PlannedSource::Backup(backup) = source
            && let Some(damage) = &backup.damage
        {
            return Err(Error::precondition(format!("{} is no whole backup", backup.name))
                .evidence(damage)
                .hint("use another one: turnup backup list"));
        }
        let Some(manifest) = source.manifest() else { return Ok(()) };
        let what = source.describe();
        let (name, id) = &self.cluster;
        if manifest.cluster_id != *id {
            return Err(Error::precondition(format!("{what} is of another cluster"))
                .evidence(format!("it is of {} with the authority {:.12}", manifest.cluster, manifest.cluster_id))
                .evidence(format!("this is {name} with the authority {id:.12}"))
                .hint("turnup backup list"));
        }
        let minor = |text: &str| Version::parse(text).ok().map(|version| (version.major, version.minor));
        if minor(&manifest.kubernetes_version) > minor(&self.kubernetes_version) {
            let version = &manifest.kubernetes_version;
            return Err(Error::precondition(format!("{what} is of Kubernetes {version}"))
                .evidence(format!("{} may not read all of its objects", self.kubernetes_version))
                .hint(format!("turnup config set phase2.kubernetes_version={version} && turnup up; then again")));
        }
        if let Some(since) = self.only_key_since.filter(|since| manifest.time < *since) {
            return Err(Error::precondition(format!("Secrets in {what} are encrypted with a key that is distrusted"))
                .evidence(format!("it is of {}; another key is in use since {since}", manifest.time))
                .hint("set the former item of encryption-key to trusted in pki/keysets.json; turnup up; then again"));
        }
        Ok(())
    }

    /// Nothing newer may be lost unless the operator says so.
    fn require_newest(&self, source: &PlannedSource) -> Result<()> {
        let Some(manifest) = source.manifest() else { return Ok(()) };
        let what = source.describe();
        let refuse = |newer: String, instead: String| {
            let error = Error::precondition(format!("{what} is not the newest that there is"));
            Err(error.evidence(newer).hint(format!("{instead}; or, to lose what came later: --older")))
        };
        if let Some((_, newest)) = self.candidates().max().filter(|(time, _)| *time > manifest.time) {
            return refuse(format!("newer: {newest}"), "turnup restore --newest-backup".to_owned());
        }
        // With a majority there always is something newer, and to go back is what is wanted.
        let ahead = self.with_data().find(|(_, state)| state.revision.is_none_or(|of| of > manifest.revision));
        match ahead.filter(|_| !self.has_majority()) {
            Some((host, state)) => {
                let of = state.revision.map_or_else(|| "unknown".to_owned(), |of| of.to_string());
                let newer = format!("{host} still has data of revision {of}, the backup is of {}", manifest.revision);
                refuse(newer, "turnup restore".to_owned())
            }
            None => Ok(()),
        }
    }

    fn known_revision(&self) -> i64 {
        let members = self.members().filter_map(|(_, state)| state.revision);
        let backups = self.backups.iter().filter_map(|backup| Some(backup.manifest.as_ref()?.revision));
        let file = self.file.as_ref().map(|(_, manifest)| manifest.revision);
        members.chain(backups).chain(file).fold(self.revision, i64::max)
    }

    fn silent_store(&self) -> Option<String> {
        self.store_problem.as_ref().map(|why| format!("the store does not tell what it has: {why}"))
    }

    fn describe(&self, source: &PlannedSource, hosts: &[String], without: &[String]) -> Vec<String> {
        let mut lines = vec![format!("etcd is restored from {}, on: {}", source.describe(), hosts.join(", "))];
        for (host, state) in self.members() {
            let data = match (state.has_data, state.revision) {
                (false, _) => "no data".to_owned(),
                (true, Some(revision)) => format!("data of revision {revision}"),
                (true, None) => "data; the revision is known when its etcd is stopped".to_owned(),
            };
            lines.push(format!("{host}: {data}"));
        }
        if matches!(source, PlannedSource::Backup(_) | PlannedSource::Stored(..)) {
            lines.extend(self.candidates().map(|(_, told)| format!("backup {told}")));
            lines.extend(self.silent_store());
        }
        if let Some(manifest) = source.manifest() {
            lines.push(format!("everything written after {} is lost (revision {})", manifest.time, manifest.revision));
        }
        for (host, _) in self.hosts.iter().filter(|(_, view)| matches!(view, HostView::NoNode)) {
            lines.push(format!("{host} is no node yet: turnup up makes it a member afterwards"));
        }
        for host in without {
            lines.push(format!("{host} is given up: with its old data it must never run again"));
        }
        lines.push("the API is away meanwhile; pods run on; the data of now are put aside on each host".to_owned());
        lines
    }
}

fn no_loss() -> Error {
    Error::precondition("etcd has its majority and all of its data: no member has to be restored")
        .hint("turnup status; or, to go back to a backup: turnup restore --newest-backup")
}

/// What is going to be done, or why not.
pub(super) fn plan(survey: &Survey, request: &RestoreRequest) -> Result<RestorePlan> {
    survey.require_hosts(&request.without)?;
    let hosts: Vec<String> = survey.members().map(|(name, _)| name.to_owned()).collect();
    if hosts.is_empty() {
        return Err(Error::precondition("no host of the control plane is a node, so there is no etcd to restore")
            .hint("turnup up; then: turnup restore --file FILE"));
    }
    let source = survey.choose(&request.source)?;
    survey.require_readable(&source)?;
    if !request.older {
        survey.require_newest(&source)?;
    }
    let lines = survey.describe(&source, &hosts, &request.without);
    Ok(RestorePlan { source, hosts, known: survey.known_revision(), lines, _fetched: None })
}

/// Of members that are stopped, the one to take: that of this host, or the one that is ahead of all
/// others; of equals the first.
pub(super) fn choose_member(stopped: &[(String, MemberState)], wanted: Option<&str>) -> Result<(String, i64)> {
    let with_data = stopped.iter().filter(|(_, state)| state.has_data);
    let known = with_data.filter_map(|(host, state)| Some((host, state.revision?)));
    let wanted = known.filter(|(host, _)| wanted.is_none_or(|wanted| wanted == *host));
    let best = wanted.reduce(|best, one| if one.1 > best.1 { one } else { best });
    best.map(|(host, revision)| (host.clone(), revision)).ok_or_else(|| {
        Error::precondition("no stopped member has data that can be read").hint("turnup restore --newest-backup")
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
