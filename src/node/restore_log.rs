//! What turnup made on this host, and what was there before: the memory from which `turnup node
//! down` undoes it.
//!
//! Write-ahead: all that a node config may touch is looked at, kept aside and synced before the
//! first effect. The first look at a thing counts: what an earlier run of ours left is not taken
//! for what was there before. Nothing here undoes anything.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::sync_directory;
use crate::error::{Class, Context as _, Error, Result};
use crate::input::{self, mounts};
use crate::inventory::Disk;

use super::layout::{BOOTSTRAP_KUBECONFIG, KUBELET_KUBECONFIG, unit_file};
use super::network::FoundNetwork;
use super::node_config::{Content, HOST_FILE, NodeConfig};
use super::{own_place, systemd, task};

/// turnup's own directory on a host.
pub(super) const DIR: &str = "/var/lib/turnup";
/// One line of JSON an entry; the first names the version.
pub(super) const FILE: &str = "/var/lib/turnup/restore-log.jsonl";
/// Where files lie that were there before.
pub(super) const SAVED: &str = "/var/lib/turnup/saved";
/// The newest version that this turnup reads and writes.
const VERSION: u32 = 4;
/// The version of a host with packages and no directories of the user's own.
const WITH_PACKAGES: u32 = 3;
/// The version of a host with disks of the node's own and no packages.
const WITH_DISKS: u32 = 2;
/// The version of a host with neither: older ones of turnup read it as well.
const WITHOUT_DISKS: u32 = 1;
/// Directories that kubelet, containerd, etcd, pods and CNI plugins fill. What they had at the
/// first look stays.
pub(super) const SHARED_DIRS: [&str; 13] = [
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/etcd",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
    "/var/log/kubernetes",
    "/run/containerd",
    "/run/flannel",
    "/run/nri",
    "/opt/containerd",
    "/opt/nri",
    "/usr/libexec/kubernetes",
];
/// How long logind lets kubelet delay a shutdown (`phase2.kubelet.shutdown_grace_period`).
pub(super) const SHUTDOWN_DELAY: &str = "/etc/systemd/logind.conf.d/99-kubelet.conf";
/// Files that programs make beside what they are asked for: the locks and backups of users and of
/// iptables, flannel's part of CNI, kubelet's for logind, the kubeconfig that a worker's kubelet
/// writes when it has joined.
const BESIDE: [&str; 9] = [
    KUBELET_KUBECONFIG,
    SHUTDOWN_DELAY,
    "/etc/.pwd.lock",
    "/etc/passwd-",
    "/etc/group-",
    "/etc/shadow-",
    "/etc/gshadow-",
    "/run/xtables.lock",
    "/etc/cni/net.d/10-flannel.conflist",
];
/// Settings of the kernel that pods and plugins change.
const CHANGED_BY_PODS: [&str; 2] = ["net.ipv4.conf.all.route_localnet", "net.ipv4.conf.default.route_localnet"];

/// One thing that turnup makes or changes, as it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum RestoreEntry {
    /// The first line, and another one before the first entry that older versions do not know.
    Version { version: u32 },
    /// What the network looked like before anything was done.
    Network { before: FoundNetwork },
    /// Mount points that were there.
    Mounts { before: BTreeSet<String> },
    /// A file of ours, and what had its name.
    File { path: String, before: Option<SavedFile> },
    /// A directory of ours; its mode, user and group where it was there.
    Directory { path: String, before: FoundDirectory },
    /// A directory that the configuration names; its mode, user and group where it was there; since
    /// version 4. What goes with the node is a [`RestoreEntry::Directory`] besides.
    OwnDirectory { path: String, before: FoundDirectory },
    /// A directory that others fill on our behalf; the names in it where it was there.
    SharedDir { path: String, before: Option<BTreeSet<String>> },
    /// A user and group, and whether each was there.
    User { name: String, user: bool, group: bool },
    /// A unit by its file's name; whether one of this name was enabled and active.
    Unit { name: String, enabled: bool, active: bool },
    /// A kernel setting and its value.
    Sysctl { name: String, before: String },
    /// A kernel module that was not loaded.
    Module { name: String },
    /// Networks of pods in CIDR form.
    Pods { network: String },
    /// A disk of the node's own and where it is mounted; since version 2.
    Disk { path: String, disk: Disk },
    /// A package that was not installed: one that the configuration names, or one that such a one
    /// needs; since version 3.
    Package { name: String },
}

/// The mode, user and group of a directory; none for one that was not there.
pub(super) type FoundDirectory = Option<(u32, u32, u32)>;

/// A file that was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedFile {
    /// The file's name below the directory of kept files; none for a symbolic link.
    pub(super) copy: Option<String>,
    /// Where a symbolic link leads.
    pub(super) link: Option<PathBuf>,
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
}

impl SavedFile {
    /// Where the copy lies.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.copy.as_ref().map(|name| Path::new(SAVED).join(name))
    }
}

/// The restore log of this host.
#[derive(Debug, Default)]
pub(super) struct RestoreLog {
    /// In the order in which they were written.
    pub(super) entries: Vec<RestoreEntry>,
    known: BTreeSet<String>,
}

impl RestoreLog {
    /// Reads it; none when nothing was ever made here. A host of a turnup without a restore log is
    /// assumed to have been empty.
    pub(super) fn read() -> Result<Option<Self>> {
        let Ok(file) = fs_err::File::open(FILE) else { return Self::from_host_file() };
        let mut restore_log = Self::default();
        for (number, line) in std::io::BufReader::new(file).lines().enumerate() {
            let line = line?;
            match serde_json::from_str(&line) {
                Ok(RestoreEntry::Version { version }) if version > VERSION => return Err(newer(version)),
                Ok(entry) => restore_log.push(entry),
                // Cut off by a crash: what it was about had not started.
                Err(error) if error.is_eof() => break,
                Err(error) => {
                    let message = format!("{FILE}:{}:{}: the restore log is damaged", number + 1, error.column());
                    return Err(Error::new(Class::Precondition, message)
                        .source(error)
                        .hint("correct this line, or remove it"));
                }
            }
        }
        Ok(Some(restore_log))
    }

    fn from_host_file() -> Result<Option<Self>> {
        let Ok(text) = input::read_text(Path::new(HOST_FILE), input::DOCUMENT) else { return Ok(None) };
        let node_config = NodeConfig::parse(HOST_FILE, &text)?;
        let mut restore_log = Self::default();
        restore_log.push(RestoreEntry::Version { version: WITHOUT_DISKS });
        let files = node_config.files.iter().map(|file| file.path.clone());
        let binaries = node_config.binaries.iter().map(|binary| binary.path.clone());
        for path in files.chain(binaries) {
            restore_log.push(RestoreEntry::File { path, before: None });
        }
        for unit in &node_config.units {
            restore_log.push(RestoreEntry::File { path: unit_file(&unit.name), before: None });
            restore_log.push(RestoreEntry::Unit { name: unit.name.clone(), enabled: false, active: false });
        }
        for path in SHARED_DIRS {
            restore_log.push(RestoreEntry::SharedDir { path: path.into(), before: Some(BTreeSet::new()) });
        }
        for user in node_config.users {
            restore_log.push(RestoreEntry::User { name: user.name, user: false, group: false });
        }
        Ok(Some(restore_log))
    }

    /// Notes all that this configuration may touch and the restore log does not know yet. When it
    /// returns, that is on the disk.
    pub(super) fn record(node_config: &NodeConfig) -> Result<()> {
        let mut restore_log = Self::read()?.unwrap_or_default();
        let first = restore_log.entries.is_empty();
        let old = if fs_err::exists(FILE)? { restore_log.entries.len() } else { 0 };
        // A line that a crash cut off would swallow the next one.
        let whole = fs_err::read(FILE).map_or(true, |bytes| bytes.is_empty() || bytes.ends_with(b"\n"));
        fs_err::create_dir_all(SAVED)?;
        fs_err::set_permissions(DIR, std::fs::Permissions::from_mode(0o700))?;
        if first {
            restore_log.push(RestoreEntry::Version { version: WITHOUT_DISKS });
            restore_log.push(RestoreEntry::Network { before: FoundNetwork::look()? });
            restore_log.push(RestoreEntry::Mounts { before: mount_points()? });
        }
        restore_log.look_at(node_config)?;
        let lines = restore_log.entries[old..].iter().map(|entry| {
            serde_json::to_string(entry).map(|line| line + "\n").context("an entry of the restore log is no JSON")
        });
        let text: String = lines.collect::<Result<_>>()?;
        if text.is_empty() {
            return Ok(());
        }
        if !whole {
            return task::write_atomic(Path::new(FILE), restore_log.render()?.as_bytes(), 0o600, 0);
        }
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(FILE)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(sync_directory(Path::new(DIR))?)
    }

    fn render(&self) -> Result<String> {
        let lines = self.entries.iter().map(|entry| serde_json::to_string(entry).map(|line| line + "\n"));
        lines.collect::<std::result::Result<_, _>>().context("the restore log is no JSON")
    }

    fn look_at(&mut self, node_config: &NodeConfig) -> Result<()> {
        // First the paths below which all others lie.
        // containerd's and kubelet's root directories may be elsewhere.
        let root = node_config.runtime.root.as_str();
        let own_root = Some(root).filter(|root| !SHARED_DIRS.contains(root));
        let further = node_config.shared_directories.iter().map(String::as_str);
        for path in SHARED_DIRS.into_iter().chain(further).chain(own_root) {
            self.look_at_parents(Path::new(path))?;
            // At the first look only: what is there at a later one, the programs have made.
            // containerd sets the mode of its own.
            if !self.known.contains(&format!("grown {path}")) && Path::new(path).is_dir() {
                self.look_at_directory(Path::new(path))?;
            }
            self.note(&format!("grown {path}"), || {
                Ok(Some(RestoreEntry::SharedDir { path: path.into(), before: task::names_in(path)? }))
            })?;
        }
        for directory in &node_config.directories {
            self.look_at_parents(Path::new(&directory.path))?;
            self.look_at_directory(Path::new(&directory.path))?;
        }
        self.look_at_own_directories(node_config)?;
        for path in files_of(node_config) {
            self.look_at_file(&path)?;
        }
        self.look_at_parents(Path::new("/run/netns/any"))?;
        // `systemctl enable` makes it.
        self.look_at_parents(Path::new("/etc/systemd/system/multi-user.target.wants/any"))?;
        for unit in &node_config.units {
            self.note(&format!("unit {}", unit.name), || {
                let is = |question: &str| systemd::is(question, &unit.name);
                Ok(Some(RestoreEntry::Unit {
                    name: unit.name.clone(),
                    enabled: is("is-enabled"),
                    active: is("is-active"),
                }))
            })?;
        }
        self.look_at_disks(node_config)?;
        self.look_at_system(node_config)
    }

    fn look_at_own_directories(&mut self, node_config: &NodeConfig) -> Result<()> {
        for path in node_config.own_directories() {
            own_place::require_directory(Path::new(path))?;
            if !self.entries.iter().any(|entry| matches!(entry, RestoreEntry::OwnDirectory { .. })) {
                self.push(RestoreEntry::Version { version: VERSION });
            }
            let before = attributes_of(path);
            self.look_at_parents(&Path::new(path).join("any"))?;
            let entry = || RestoreEntry::OwnDirectory { path: path.to_owned(), before };
            self.note(&format!("own directory {path}"), || Ok(Some(entry())))?;
        }
        Ok(())
    }

    fn look_at_disks(&mut self, node_config: &NodeConfig) -> Result<()> {
        for mount in &node_config.mounts {
            let knows = self.disks().any(|(path, _)| path == mount.path);
            if !knows && self.disks().next().is_none() {
                self.push(RestoreEntry::Version { version: WITH_DISKS });
            }
            self.look_at_parents(Path::new(&mount.path))?;
            self.look_at_directory(Path::new(&mount.path))?;
            let entry = || RestoreEntry::Disk { path: mount.path.clone(), disk: mount.disk.clone() };
            self.note(&format!("disk {}", mount.path), || Ok(Some(entry())))?;
        }
        Ok(())
    }

    fn look_at_system(&mut self, node_config: &NodeConfig) -> Result<()> {
        for user in &node_config.users {
            self.note(&format!("user {}", user.name), || {
                let (has_user, has_group) =
                    (task::has_id("/etc/passwd", user.id)?, task::has_id("/etc/group", user.id)?);
                Ok(Some(RestoreEntry::User { name: user.name.clone(), user: has_user, group: has_group }))
            })?;
        }
        for name in node_config.sysctls.keys().map(String::as_str).chain(CHANGED_BY_PODS) {
            self.note(&format!("sysctl {name}"), || {
                let before = task::read_sysctl(name).ok();
                Ok(before.map(|before| RestoreEntry::Sysctl { name: name.into(), before }))
            })?;
        }
        for name in &node_config.modules {
            let there = task::has_module(name)?;
            self.note(&format!("module {name}"), || Ok((!there).then(|| RestoreEntry::Module { name: name.clone() })))?;
        }
        for network in &node_config.pod_networks {
            self.note(&format!("pods {network}"), || Ok(Some(RestoreEntry::Pods { network: network.clone() })))?;
        }
        Ok(())
    }

    fn look_at_file(&mut self, path: &str) -> Result<()> {
        self.look_at_parents(Path::new(path))?;
        self.note(&format!("file {path}"), || Ok(Some(RestoreEntry::File { path: path.into(), before: keep(path)? })))
    }

    /// The parent directories that are missing and will be created with it. The others are not
    /// changed.
    fn look_at_parents(&mut self, path: &Path) -> Result<()> {
        let mut missing: Vec<&Path> = path.ancestors().skip(1).take_while(|path| !path.exists()).collect();
        missing.reverse();
        missing.into_iter().try_for_each(|path| self.look_at_directory(path))
    }

    fn look_at_directory(&mut self, path: &Path) -> Result<()> {
        let shown = path.display().to_string();
        self.note(&format!("directory {shown}"), || {
            Ok(Some(RestoreEntry::Directory { path: shown.clone(), before: attributes_of(path) }))
        })
    }

    /// Looks once.
    fn note(&mut self, key: &str, look: impl FnOnce() -> Result<Option<RestoreEntry>>) -> Result<()> {
        if !self.known.contains(key)
            && let Some(entry) = look()?
        {
            self.push(entry);
        }
        Ok(())
    }

    fn push(&mut self, entry: RestoreEntry) {
        self.known.insert(entry.key());
        self.entries.push(entry);
    }
}

fn attributes_of(path: impl AsRef<Path>) -> FoundDirectory {
    fs_err::metadata(path.as_ref()).ok().map(|data| (data.mode() & 0o7777, data.uid(), data.gid()))
}

/// The files that a node of this configuration has from us, and those that programs make beside
/// them.
fn files_of(node_config: &NodeConfig) -> impl Iterator<Item = String> {
    let units = node_config.units.iter().map(|unit| unit_file(&unit.name));
    let users = node_config.users.iter().map(|user| task::sysusers_file(&user.name));
    let files = node_config.files.iter().filter(|file| file.is_wanted() && file.content != Content::Directory {});
    let files = files.map(|file| file.path.clone());
    let binaries = node_config.binaries.iter().map(|binary| binary.path.clone());
    let beside = BESIDE.iter().map(|path| (*path).to_owned());
    files.chain(binaries).chain(units).chain(users).chain(beside).chain([BOOTSTRAP_KUBECONFIG.to_owned()])
}

impl RestoreEntry {
    /// A unit's name, and whether one of that name was enabled and active before.
    pub(super) fn as_unit(&self) -> Option<(&str, bool, bool)> {
        match self {
            Self::Unit { name, enabled, active } => Some((name, *enabled, *active)),
            _ => None,
        }
    }

    /// A directory of the user's own, and what it was before.
    pub(super) fn as_own_directory(&self) -> Option<(&str, FoundDirectory)> {
        match self {
            Self::OwnDirectory { path, before } => Some((path, *before)),
            _ => None,
        }
    }

    fn key(&self) -> String {
        match self {
            Self::Version { .. } => "version".into(),
            Self::Network { .. } => "network".into(),
            Self::Mounts { .. } => "mounts".into(),
            Self::File { path, .. } => format!("file {path}"),
            Self::Directory { path, .. } => format!("directory {path}"),
            Self::OwnDirectory { path, .. } => format!("own directory {path}"),
            Self::SharedDir { path, .. } => format!("grown {path}"),
            Self::User { name, .. } => format!("user {name}"),
            Self::Unit { name, .. } => format!("unit {name}"),
            Self::Sysctl { name, .. } => format!("sysctl {name}"),
            Self::Module { name } => format!("module {name}"),
            Self::Pods { network } => format!("pods {network}"),
            Self::Disk { path, .. } => format!("disk {path}"),
            Self::Package { name } => format!("package {name}"),
        }
    }
}

/// The mount points of this process.
pub(super) fn mount_points() -> Result<BTreeSet<String>> {
    Ok(mounts()?.into_iter().map(|mount| mount.point).collect())
}

/// Keeps what has this name, synced, before anything may take its place.
fn keep(path: &str) -> Result<Option<SavedFile>> {
    let Ok(data) = fs_err::symlink_metadata(path) else { return Ok(None) };
    let (mode, user, group) = (data.mode() & 0o7777, data.uid(), data.gid());
    if data.is_symlink() {
        return Ok(Some(SavedFile { copy: None, link: Some(fs_err::read_link(path)?), mode, user, group }));
    }
    if !data.is_file() {
        return Err(Error::precondition(format!(
            "{path} is neither a file nor a link, and turnup has to write a file there"
        ))
        .hint("move it away on the host"));
    }
    let copy = path.trim_start_matches('/').replace('%', "%25").replace('/', "%2F");
    // Secrets included, so only root can read it; the directory is root's alone as well.
    task::write_atomic(&Path::new(SAVED).join(&copy), &input::read(Path::new(path), input::STATE)?, 0o600, 0)?;
    Ok(Some(SavedFile { copy: Some(copy), link: None, mode, user, group }))
}

fn newer(version: u32) -> Error {
    let message = format!("{FILE} has version {version}, and this turnup knows versions up to {VERSION}");
    Error::precondition(message).hint("use the turnup that wrote it, or a newer one; nothing was touched")
}

impl RestoreLog {
    /// The files, directories, units, kernel settings and modules that an earlier configuration
    /// made here, and that this one does not name.
    pub(super) fn find_superseded(&self, node_config: &NodeConfig) -> Vec<&RestoreEntry> {
        let files: BTreeSet<String> = files_of(node_config).collect();
        let is_superseded = |entry: &&RestoreEntry| match entry {
            RestoreEntry::File { path, .. } => !files.contains(path),
            RestoreEntry::OwnDirectory { path, .. } => !node_config.own_directories().any(|own| own == path),
            RestoreEntry::Unit { name, .. } => !node_config.units.iter().any(|unit| unit.name == *name),
            RestoreEntry::Sysctl { name, .. } => {
                !node_config.sysctls.contains_key(name) && !CHANGED_BY_PODS.contains(&name.as_str())
            }
            RestoreEntry::Module { name } => !node_config.modules.contains(name),
            _ => false,
        };
        self.entries.iter().filter(is_superseded).collect()
    }

    /// Knows nothing any more of what was put back: whatever has its name from now on is not ours.
    pub(super) fn forget_superseded(&mut self, node_config: &NodeConfig) -> Result<()> {
        let mut gone = BTreeSet::new();
        for entry in self.find_superseded(node_config) {
            gone.insert(entry.key());
            if let RestoreEntry::OwnDirectory { path, .. } = entry
                && !Path::new(path).exists()
            {
                gone.insert(format!("directory {path}"));
            }
        }
        self.entries.retain(|entry| !gone.contains(&entry.key()));
        self.known.retain(|key| !gone.contains(key));
        task::write_atomic(Path::new(FILE), self.render()?.as_bytes(), 0o600, 0)
    }

    /// Notes packages before they are installed: those that the configuration names, and those that
    /// they need. When it returns, that is on the disk.
    pub(super) fn record_packages(new: &[String]) -> Result<()> {
        let mut restore_log = Self::read()?.unwrap_or_default();
        if !restore_log.entries.iter().any(|entry| matches!(entry, RestoreEntry::Package { .. })) {
            restore_log.push(RestoreEntry::Version { version: WITH_PACKAGES });
        }
        for name in new {
            restore_log.note(&format!("package {name}"), || Ok(Some(RestoreEntry::Package { name: name.clone() })))?;
        }
        task::write_atomic(Path::new(FILE), restore_log.render()?.as_bytes(), 0o600, 0)
    }

    /// The packages that turnup installed.
    pub(super) fn packages(&self) -> Vec<String> {
        let packages = self.entries.iter().filter_map(|entry| match entry {
            RestoreEntry::Package { name } => Some(name.clone()),
            _ => None,
        });
        packages.collect()
    }

    /// The directories that programs fill on our behalf.
    pub(super) fn shared_directories(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match entry {
            RestoreEntry::SharedDir { path, .. } => Some(path.as_str()),
            _ => None,
        })
    }

    /// Whether turnup made this directory.
    pub(super) fn has_made(&self, wanted: &str) -> bool {
        let is_made = |entry: &RestoreEntry| matches!(entry, RestoreEntry::Directory { path, before: None } if path.as_str() == wanted);
        self.entries.iter().any(is_made)
    }

    /// Networks of pods in CIDR form.
    pub(super) fn pod_networks(&self) -> Vec<&str> {
        let networks = self.entries.iter().filter_map(|entry| match entry {
            RestoreEntry::Pods { network } => Some(network.as_str()),
            _ => None,
        });
        networks.collect()
    }

    /// What the network looked like before anything was done.
    pub(super) fn network(&self) -> FoundNetwork {
        let found = self.entries.iter().find_map(|entry| match entry {
            RestoreEntry::Network { before } => Some(before.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// Mount points that were there.
    pub(super) fn mounts(&self) -> BTreeSet<String> {
        let found = self.entries.iter().find_map(|entry| match entry {
            RestoreEntry::Mounts { before } => Some(before.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// Disks of the node's own, with their mount points.
    pub(super) fn disks(&self) -> impl Iterator<Item = (&str, &Disk)> {
        self.entries.iter().filter_map(|entry| match entry {
            RestoreEntry::Disk { path, disk } => Some((path.as_str(), disk)),
            _ => None,
        })
    }

    /// The files that may be ours.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().filter_map(|entry| match entry {
            RestoreEntry::File { path, .. } => Some(Path::new(path)),
            _ => None,
        })
    }

    /// What had the name of this file.
    pub(super) fn kept(&self, wanted: &str) -> Option<&SavedFile> {
        self.entries.iter().find_map(|entry| match entry {
            RestoreEntry::File { path, before } if path == wanted => before.as_ref(),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "restore_log_tests.rs"]
mod tests;
