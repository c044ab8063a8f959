//! A host's files: an overlay over the shared read-only root, and real directories for what must
//! not lie on an overlay.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::atomic_file::{FileMode, replace};
use crate::error::{Context as _, Error, Result};
use crate::failpoint;
use crate::input::mounts;

use super::spec::HostSpec;

/// Directories of the host that are bound from the machine: containerd puts overlays into one, and
/// an overlay over an overlay is refused by the kernel; etcd wants a disk that can fsync.
const REAL: &[(&str, &str)] =
    &[("containerd", "/var/lib/containerd"), ("kubelet", "/var/lib/kubelet"), ("etcd", "/var/lib/etcd")];

/// Written last, once the host's files are whole.
const COMPLETE: &str = "created";

/// The name of the machine, where that is not the host's.
const NAME: &str = "name";

/// Gives the machine a name of its own, as the groups of clouds do, or finds it given.
pub(super) fn name_machine(host: &HostSpec) -> Result<()> {
    let file = host.dir.join(NAME);
    if file.exists() {
        return Ok(());
    }
    let mut random = [0; 2];
    getrandom::fill(&mut random).map_err(|error| Error::bug(format!("no random bytes: {error}")))?;
    let name = format!("{}-{}", host.name, hex::encode(random));
    failpoint::around(format_args!("name"), || replace(&file, name.as_bytes(), FileMode::Exact(0o600)))?;
    Ok(())
}

/// What the machine is called.
pub(super) fn machine_name(host: &HostSpec) -> Result<String> {
    if !host.is_of_group {
        return Ok(host.name.clone());
    }
    Ok(fs_err::read_to_string(host.dir.join(NAME))?)
}

/// The mounted root.
pub(super) fn root(host: &HostSpec) -> PathBuf {
    host.dir.join("root")
}

/// Whether the host's files are all there.
pub(super) fn is_complete(host: &HostSpec) -> bool {
    host.dir.join(COMPLETE).exists()
}

/// Marks the host's files as whole.
pub(super) fn mark_complete(host: &HostSpec) -> Result<()> {
    let open = || fs_err::OpenOptions::new().create(true).append(true).mode(0o600).open(host.dir.join(COMPLETE));
    failpoint::around(format_args!("mark complete"), open)?;
    Ok(())
}

/// `--bind=` arguments of nspawn for the real directories.
pub(super) fn binds(host: &HostSpec) -> Vec<String> {
    REAL.iter().map(|(dir, inside)| format!("--bind={}:{inside}", host.dir.join(dir).display())).collect()
}

/// Makes the directories and mounts the overlay, or finds it mounted.
pub(super) fn mount_root(host: &HostSpec) -> Result<()> {
    // Below it every file has the mode that it has on the host.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&host.dir)?;
    for dir in ["upper", "work", "root"].into_iter().chain(REAL.iter().map(|(dir, _)| *dir)) {
        failpoint::pass(format_args!("directory {dir}: before"));
        fs_err::create_dir_all(host.dir.join(dir))?;
    }
    let target = root(host);
    if is_mounted(&target)? {
        return Ok(());
    }
    let option = |path: &Path| path.display().to_string().replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,");
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        option(&host.root),
        option(&host.dir.join("upper")),
        option(&host.dir.join("work"))
    );
    let options = std::ffi::CString::new(options).context("a path has a NUL byte")?;
    let mounted = failpoint::around(format_args!("mount"), || {
        mount("overlay", &target, "overlay", MountFlags::empty(), Some(options.as_c_str()))
    });
    mounted.map_err(|error| {
        Error::precondition(format!("cannot mount the overlay of host {} at {}", host.name, target.display()))
            .source(std::io::Error::from(error))
            .hint("the state directory must lie on a file system that can carry an overlay (ext4, xfs, btrfs); see --state-dir")
    })
}

/// Unmounts the root and removes everything of the host.
pub(super) fn remove(host: &HostSpec) -> Result<()> {
    let target = root(host);
    while is_mounted(&target)? {
        failpoint::around(format_args!("unmount"), || unmount(&target, UnmountFlags::empty()))
            .context(format!("cannot unmount {}", target.display()))?;
    }
    if let Some(below) = mount_points()?.into_iter().find(|mount| mount.starts_with(&host.dir)) {
        return Err(Error::precondition(format!(
            "{} is still mounted, so {} stays",
            below.display(),
            host.dir.display()
        ))
        .hint(format!("umount {} && turnup down", below.display())));
    }
    if host.dir.exists() {
        // First the mark: what is half removed must not look whole.
        let mark = host.dir.join(COMPLETE);
        if mark.exists() {
            failpoint::around(format_args!("remove the mark"), || fs_err::remove_file(mark))?;
        }
        failpoint::around(format_args!("remove the files"), || fs_err::remove_dir_all(&host.dir))?;
    }
    Ok(())
}

fn is_mounted(path: &Path) -> Result<bool> {
    Ok(mount_points()?.iter().any(|mount| mount == path))
}

fn mount_points() -> Result<Vec<PathBuf>> {
    Ok(mounts()?.into_iter().map(|mount| PathBuf::from(mount.point)).collect())
}
