//! `turnup node down`: undoes on this host what `turnup node up` and the pods made, from the
//! restore log, and nothing else.
//!
//! Every part looks what is left of it, so that it may be killed at any instant and run again. The
//! restore log goes last.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use rustix::mount::{UnmountFlags, unmount};

use crate::error::{Context as _, Error, Result};
use crate::exec::{OnDeath, Run};

use super::event::NodeEvent;
use super::layout::unit_file;
use super::node_config::CONTAINERD;
use super::restore;
use super::restore_log::{DIR, FILE, RestoreEntry, RestoreLog, SHUTDOWN_DELAY, mount_points};
use super::systemd::{self, systemctl_in_time};
use super::up::{LOCK, take_turn};
use super::{attributes, boot_config, hosts_file, identity, layout, mounts, packages, task, workload};

/// Undoes everything, writing one [`NodeEvent`] a line to `out`.
pub(crate) fn run(out: &mut dyn Write) -> Result<()> {
    let _alone = take_turn()?;
    let mut down = Down { out, count: 0 };
    if let Some(restore_log) = RestoreLog::read()? {
        down.stop(&restore_log)?;
        down.clear(&restore_log)?;
        down.put_back(&restore_log)?;
    }
    down.remove_boot_unit()?;
    down.forget()?;
    // The last of it, while it is still held.
    fs_err::remove_file(LOCK)?;
    NodeEvent::Done(down.count).write(down.out)
}

struct Down<'a> {
    out: &'a mut dyn Write,
    count: usize,
}

impl Down<'_> {
    fn removed(&mut self, what: impl std::fmt::Display) -> Result<()> {
        self.told(format!("removed {what}"))
    }

    fn told(&mut self, what: String) -> Result<()> {
        self.count += 1;
        NodeEvent::Changed(what).write(self.out)
    }

    /// Nothing of ours runs any more: kubelet first, so that it starts no pod again; containerd
    /// after the pods.
    fn stop(&mut self, restore_log: &RestoreLog) -> Result<()> {
        let units: Vec<&str> = restore_log
            .entries
            .iter()
            .rev()
            .filter_map(|entry| match entry {
                RestoreEntry::Unit { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let (last, first): (Vec<&str>, Vec<&str>) = units.into_iter().partition(|name| *name == CONTAINERD);
        for unit in first {
            restore::stop_unit(unit, restore_log, &mut |what| self.told(what))?;
        }
        let ended = workload::stop_containers()?;
        for unit in last {
            restore::stop_unit(unit, restore_log, &mut |what| self.told(what))?;
        }
        let ended = ended + workload::stop_programs()? + workload::stop_containers()?;
        if ended > 0 { self.removed(format_args!("{ended} processes")) } else { Ok(()) }
    }

    /// What pods, addons and plugins made since: mounts, network, cgroups, and the directories that
    /// they filled.
    fn clear(&mut self, restore_log: &RestoreLog) -> Result<()> {
        let before = restore_log.mounts();
        for (path, disk) in restore_log.disks().filter(|(path, _)| !before.contains(*path)) {
            if identity::forget(path)? {
                self.removed(format_args!("the identity of this host from {disk}"))?;
            }
            mounts::release(path, disk, &mut |what| self.told(what))?;
        }
        self.unmount(restore_log, &before)?;
        restore_log.network().restore(&restore_log.pod_networks(), &mut |what| self.removed(what))?;
        if !before.contains("/run/netns")
            && mount_points()?.contains("/run/netns")
            && task::names_in("/run/netns")?.is_some_and(|names| names.is_empty())
        {
            // `ip netns` and the plugins mount it on itself; it holds no namespace any more.
            unmount("/run/netns", UnmountFlags::DETACH).context("cannot unmount /run/netns")?;
        }
        if systemd::is("is-active", "kubepods.slice") {
            systemctl_in_time(&["stop", "kubepods.slice"])?;
        }
        if workload::remove_cgroups()? > 0 {
            self.removed("cgroups of pods")?;
        }
        for entry in &restore_log.entries {
            if let RestoreEntry::SharedDir { path, before } = entry {
                self.clear_directory(path, before.as_ref())?;
            }
        }
        Ok(())
    }

    /// Deepest first. A busy mount is detached now and freed with its last user: nothing may be
    /// deleted through a mount.
    fn unmount(&mut self, restore_log: &RestoreLog, before: &BTreeSet<String>) -> Result<()> {
        let is_ours = |point: &&String| {
            restore_log.shared_directories().any(|dir| Path::new(point).starts_with(dir))
                || point.starts_with("/run/netns/cni-")
        };
        // A mount may lie on another one at the same place.
        loop {
            let now = mount_points()?;
            let points: Vec<&String> = now.difference(before).filter(is_ours).collect();
            if points.is_empty() {
                return Ok(());
            }
            for point in points.into_iter().rev() {
                if unmount(point.as_str(), UnmountFlags::empty()).is_err() {
                    match unmount(point.as_str(), UnmountFlags::DETACH) {
                        // It went with one that it lay in.
                        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
                        Err(error) => {
                            let error = std::io::Error::from(error);
                            return Err(Error::precondition(format!("cannot unmount {point}")).source(error));
                        }
                    }
                }
                self.removed(format_args!("mount {point}"))?;
            }
        }
    }

    fn clear_directory(&mut self, path: &str, before: Option<&BTreeSet<String>>) -> Result<()> {
        let Some(before) = before else {
            return if Path::new(path).exists() {
                fs_err::remove_dir_all(path)?;
                self.removed(path)
            } else {
                Ok(())
            };
        };
        for entry in fs_err::read_dir(path).into_iter().flatten().flatten() {
            if !before.contains(entry.file_name().to_string_lossy().as_ref()) {
                remove_any(&entry.path())?;
                self.removed(entry.path().display())?;
            }
        }
        Ok(())
    }

    /// What `turnup node up` itself made goes, and what had its place comes back.
    fn put_back(&mut self, restore_log: &RestoreLog) -> Result<()> {
        for entry in restore_log.entries.iter().rev() {
            if let RestoreEntry::User { name, user, group } = entry {
                self.remove_user(name, *user, *group)?;
            }
        }
        let delays = Path::new(SHUTDOWN_DELAY).exists();
        for entry in restore_log.entries.iter().rev() {
            if let RestoreEntry::File { path, before } = entry {
                restore::put_file_back(path, before.as_ref(), &mut |what| self.told(what))?;
            }
        }
        if delays && !Path::new(SHUTDOWN_DELAY).exists() {
            // It reads its files again, as kubelet told it to when it wrote this one.
            systemd::hang_up("systemd-logind.service");
        }
        restore::revive_units(restore_log.entries.iter().rev().filter_map(RestoreEntry::as_unit))?;
        // What a killed run had not finished lies beside its place.
        task::remove_temporary(restore_log.files())?;
        self.put_directories_back(restore_log)?;
        for entry in restore_log.entries.iter().rev() {
            match entry {
                RestoreEntry::Sysctl { name, before } => {
                    restore::put_setting_back(name, before, &mut |what| self.told(what))?;
                }
                RestoreEntry::Module { name } => task::remove_module(name),
                _ => {}
            }
        }
        if hosts_file::ensure(&BTreeMap::new())? {
            self.told(format!("put back {}", layout::HOSTS_FILE))?;
        }
        // Last, for the files of a package may be among those that were put back.
        let installed = restore_log.packages();
        let kept = packages::remove(&installed)?;
        for name in &installed {
            let fate = if kept.contains(name) { "kept, because others need it," } else { "removed" };
            self.told(format!("{fate} package {name}"))?;
        }
        Ok(())
    }

    fn remove_user(&mut self, name: &str, user: bool, group: bool) -> Result<()> {
        let has = |file: &str| -> Result<bool> {
            Ok(fs_err::read_to_string(file)?.lines().any(|line| line.split(':').next() == Some(name)))
        };
        if !user && has("/etc/passwd")? {
            remove_account("userdel", name)?;
            self.removed(format_args!("user {name}"))?;
        }
        // Some systems remove it with the user.
        if !group && has("/etc/group")? {
            remove_account("groupdel", name)?;
            self.removed(format_args!("group {name}"))?;
        }
        Ok(())
    }

    /// The longest path first, so that each is empty when it is its turn; one with anything of
    /// others in it stays.
    fn put_directories_back(&mut self, restore_log: &RestoreLog) -> Result<()> {
        let mut directories: Vec<_> = restore_log
            .entries
            .iter()
            .filter_map(|entry| match entry {
                RestoreEntry::Directory { path, before } => Some((path.as_str(), *before, false)),
                RestoreEntry::OwnDirectory { path, before } => Some((path.as_str(), *before, true)),
                _ => None,
            })
            .collect();
        directories.sort_by_key(|(path, ..)| std::cmp::Reverse(path.len()));
        for (path, before, is_own) in directories {
            match before {
                None if path != DIR && fs_err::remove_dir(path).is_ok() => self.removed(path)?,
                Some(_) if is_own => drop(restore::put_attributes_back(path, before)?),
                Some((mode, user, group)) if Path::new(path).is_dir() => {
                    attributes::ensure(Path::new(path), mode, (user, group))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The unit of user data would make the node again at the next boot.
    fn remove_boot_unit(&mut self) -> Result<()> {
        let file = unit_file(boot_config::UNIT);
        if !Path::new(&file).exists() {
            return Ok(());
        }
        systemctl_in_time(&["disable", "--now", "--quiet", boot_config::UNIT])?;
        fs_err::remove_file(&file)?;
        systemctl_in_time(&["daemon-reload"])?;
        self.removed(file)
    }

    /// turnup itself. The restore log is the last of its directory: without it the remaining work
    /// would be unknown.
    fn forget(&mut self) -> Result<()> {
        for entry in fs_err::read_dir(DIR).into_iter().flatten().flatten() {
            if entry.path() != Path::new(FILE) {
                remove_any(&entry.path())?;
            }
        }
        if Path::new(DIR).exists() {
            fs_err::remove_dir_all(DIR)?;
            self.removed(DIR)?;
        }
        let bin = Path::new(layout::BIN);
        for entry in fs_err::read_dir(bin).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "turnup" || name.starts_with("turnup.part.") {
                fs_err::remove_file(entry.path())?;
                self.removed(entry.path().display())?;
            }
        }
        for dir in [Some(bin), bin.parent()].into_iter().flatten() {
            // It may hold files of other programs.
            drop(fs_err::remove_dir(dir));
        }
        Ok(())
    }
}

fn remove_any(path: &Path) -> Result<()> {
    let is_directory = path.is_dir() && !path.is_symlink();
    Ok(if is_directory { fs_err::remove_dir_all(path) } else { fs_err::remove_file(path) }?)
}

/// Killed with us, shadow's tools would leave their lock files in /etc for ever; they end by
/// themselves in no time.
fn remove_account(program: &str, name: &str) -> Result<()> {
    Run::new(program).arg(name).dir("/").on_death(OnDeath::Nothing).succeed().map(drop)
}
