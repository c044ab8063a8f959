//! The root of Debian or Ubuntu that local hosts boot from: made once by debootstrap, shared
//! read-only below an overlay a host.
//!
//! Its key is a digest of what it is made of, so another package list is another root. It is whole
//! or not there at all. Archive and security updates come from where the machine's own apt gets
//! them, or from a mirror that is named; the archive's signature is required. Security updates are
//! those of the day on which it was made: [`RootFs`] knows which one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::apt::{Archive, Distribution};
use super::cache::Cache;
use super::digest::Digest;
use super::keylock::KeyLock;
use super::platform::Platform;
use super::progress::Watch;
use crate::atomic_file::sync_directory;
use crate::exec::{Failure, OnDeath, Run, tools};
use crate::input::{MountPoint, mounts};
use crate::{Class, Context as _, Error, Result};

/// Raise it when what is done to the root after debootstrap changes.
const SCRIPT: &str = "2";
/// Where debootstrap has what it knows about releases.
const SCRIPTS: &str = "/usr/share/debootstrap/scripts";
/// In the root itself: when it was made, and from what.
const RECORD: &str = "etc/turnup-root.json";
/// Older than that, a root lacks security updates for sure: there are some every week.
const MAX_AGE_DAYS: i64 = 30;
const PACKAGES: [&str; 16] = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "iproute2",
    "iptables",
    "nftables",
    "conntrack",
    "ca-certificates",
    "kmod",
    "e2fsprogs",
    "socat",
    "procps",
    "iputils-ping",
    "util-linux",
    "ethtool",
];
/// Units that a host in a namespace cannot or must not run: they would touch what belongs to the
/// machine around it.
const MASKED: [&str; 12] = [
    "systemd-udevd.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-modules-load.service",
    "systemd-timesyncd.service",
    "systemd-resolved.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "getty.target",
];
const LIMIT: Duration = Duration::from_mins(30);

/// The digest of what a root is made of; it is part of the inputs of every step that makes a local
/// host.
#[must_use]
pub fn host_root_digest(suite: &str, further: &[String]) -> Digest {
    digest_with(suite, further)
}

fn digest_with(suite: &str, further: &[String]) -> Digest {
    let parts = [suite, SCRIPT, &Platform::host().arch, &packages(further), &MASKED.join(",")];
    Digest::of(parts.join("\n").as_bytes())
}

/// Every package by name, separated by commas.
fn packages(further: &[String]) -> String {
    let further: BTreeSet<&str> = further.iter().map(String::as_str).collect();
    PACKAGES.into_iter().chain(further).collect::<Vec<_>>().join(",")
}

/// What is known about a root that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootFs {
    /// When it was made.
    pub made: Timestamp,
    /// Where its security updates came from, up to that moment; none where this machine's apt has
    /// no such place.
    pub security: Option<String>,
}

impl RootFs {
    /// Days since it was made.
    #[must_use]
    pub fn age_days(&self) -> i64 {
        (Timestamp::now().as_second() - self.made.as_second()) / (24 * 60 * 60)
    }

    /// What is wrong with it, when something is.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let days = self.age_days();
        if self.security.is_none() {
            return Some("has no security updates: apt of this machine names no security suite of Debian".into());
        }
        (days > MAX_AGE_DAYS).then(|| format!("is {days} days old: security updates since then are missing"))
    }
}

impl Cache {
    /// Where the root of this release is or would be.
    #[must_use]
    pub fn host_root_path(&self, suite: &str) -> PathBuf {
        self.host_root_path_with(suite, &[])
    }

    /// The same with further packages.
    #[must_use]
    pub fn host_root_path_with(&self, suite: &str, further: &[String]) -> PathBuf {
        self.root().join("roots").join(digest_with(suite, further).to_string())
    }

    /// What is known about the root of this release with these further packages; none when there is
    /// none.
    #[must_use]
    pub fn find_host_root(&self, suite: &str, further: &[String]) -> Option<RootFs> {
        let root = self.host_root_path_with(suite, further);
        serde_json::from_slice(&fs_err::read(root.join(RECORD)).ok()?).ok()
    }

    /// The root directory for local hosts of this release with these further packages; made
    /// when it is not there, which takes some minutes. With `renew` it is made even where it is
    /// there, and takes the place of the old one.
    pub fn rootfs_with(&self, suite: &str, further: &[String], renew: bool, watch: &dyn Watch) -> Result<PathBuf> {
        self.rootfs_from(suite, further, "", renew, watch)
    }

    /// The same from this mirror; from that of this machine's own packages where it is empty.
    pub fn rootfs_from(
        &self,
        suite: &str,
        further: &[String],
        mirror: &str,
        renew: bool,
        watch: &dyn Watch,
    ) -> Result<PathBuf> {
        let roots = self.root().join("roots");
        let root = self.host_root_path_with(suite, further);
        if root.is_dir() && !renew {
            return Ok(root);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Error::precondition("the root file system of local hosts can only be made by root")
                .hint("run the same command as root, for instance with sudo"));
        }
        fs_err::create_dir_all(&roots)?;
        let lock = KeyLock::acquire(self.root(), "rootfs", "the root of local hosts", watch)?;
        if root.is_dir() && !renew {
            return Ok(root);
        }
        if root.is_dir() {
            require_unused(&root, &mounts()?)?;
        }
        let made = lock.work().join("root");
        let record = self.make_root(suite, &packages(further), mirror, &made, watch)?;
        finish_root(&made)?;
        let record = serde_json::to_vec(&record).context("the record of a root is no JSON")?;
        fs_err::write(made.join(RECORD), record)?;
        if root.is_dir() {
            // Whole or not there at all, also here: what is killed between the two is made again.
            fs_err::rename(&root, lock.work().join("old"))?;
        }
        fs_err::rename(&made, &root)?;
        sync_directory(&roots)?;
        Ok(root)
    }

    fn make_root(&self, suite: &str, packages: &str, mirror: &str, made: &Path, watch: &dyn Watch) -> Result<RootFs> {
        // Found before anything is downloaded.
        let (unshare, debootstrap) = (tools::find("unshare")?, tools::find("debootstrap")?);
        let distribution = Distribution::of(suite);
        let keyring = tools::find(distribution.keyring())?;
        tools::find("gpgv")?;
        let archive = Archive::find(Path::new("/etc/apt"), suite, mirror)?;
        if archive.security.is_none() {
            watch.progress(
                "warning: local hosts get no security updates: apt of this machine names no security suite of Debian; add one to \
                 /etc/apt/sources.list.d, then: turnup artifacts rootfs --renew",
            );
        }
        let name = distribution.name();
        watch.progress(&format!("making the root of local hosts with {name}; this is done once"));
        // What debootstrap mounts goes with it, also when it is killed; the next one could not
        // remove a directory with the kernel's files in it.
        let run = Run::new(unshare)
            .arg("--mount")
            .arg(debootstrap)
            .args(["--variant=minbase", "--merged-usr", "--force-check-gpg"])
            .arg(format!("--keyring={}", keyring.display()))
            .arg(format!("--components={}", distribution.components().join(",")))
            .arg(format!("--include={packages}"))
            .arg(suite)
            .arg(made)
            .arg(&archive.mirror)
            .args(older_script(Path::new(SCRIPTS), suite))
            .dir(self.root())
            .log(self.log_path("rootfs"))
            .label("debootstrap")
            .timeout(LIMIT)
            .on_death(OnDeath::Kill);
        let total = 2 * (packages.split(',').count() as u64);
        let mut steps = 0;
        let ended = run.stream(|_, line| {
            if let Some(step) = line.strip_prefix("I: ") {
                steps += 1;
                watch.progress(&format!("debootstrap: {}", step.to_lowercase()));
                watch.count(steps, total.max(steps + 1));
            }
        });
        ended.map_err(|failure| explain_network(failure, "debootstrap", &archive.mirror))?;
        self.upgrade_root(suite, &archive, made, watch)?;
        Ok(RootFs { made: Timestamp::now(), security: archive.security })
    }

    /// What has been fixed since the release was put together. debootstrap takes one suite alone.
    fn upgrade_root(&self, suite: &str, archive: &Archive, made: &Path, watch: &dyn Watch) -> Result<()> {
        fs_err::write(made.join("etc/apt/sources.list"), archive.sources_list(suite))?;
        let Some(security) = &archive.security else { return Ok(()) };
        // Packages that are upgraded must not start services: there is no systemd in the root.
        let policy = made.join("usr/sbin/policy-rc.d");
        fs_err::write(&policy, "#!/bin/sh\nexit 101\n")?;
        fs_err::set_permissions(&policy, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        for words in [&["update"][..], &["--yes", "--no-install-recommends", "dist-upgrade"]] {
            watch.progress(&format!("security updates of the root: apt-get {}", words.last().unwrap_or(&"")));
            let run = Run::new(tools::find("unshare")?)
                .args(["--mount", "--pid", "--fork", "--kill-child"])
                .arg(format!("--mount-proc={}", made.join("proc").display()))
                .arg(tools::find("chroot")?)
                .arg(made)
                .arg("apt-get")
                // A suite that cannot be read is an error and no warning.
                .args(["--option=APT::Update::Error-Mode=any", "--option=Acquire::Retries=3"])
                .args(words.iter().copied())
                .dir(self.root())
                .env("DEBIAN_FRONTEND", "noninteractive")
                // The operator's own directories are not in the root.
                .env("TMPDIR", "/tmp")
                .env("HOME", "/root")
                .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
                .log(self.log_path("rootfs-updates"))
                .label("apt-get in the root of local hosts")
                .timeout(LIMIT)
                .on_death(OnDeath::Kill);
            run.output().map_err(|failure| {
                let error = explain_network(failure, "apt-get", security);
                if error.class() != Class::Transient {
                    return error;
                }
                error.hint(
                    "try again when it can be reached; for good without it: take the security suite out of this machine's apt \
                     configuration",
                )
            })?;
        }
        Ok(fs_err::remove_file(policy)?)
    }
}

/// The script to name where debootstrap has none for this release: releases that came after it are
/// made as those before.
fn older_script(scripts: &Path, suite: &str) -> Option<PathBuf> {
    let older = scripts.join(Distribution::of(suite).script());
    (!scripts.join(suite).exists() && older.exists()).then_some(older)
}

/// What could not be downloaded may be there the next time.
fn explain_network(failure: Failure, program: &str, place: &str) -> Error {
    let unreachable = ["Couldn't download", "Failed getting release", "Unable to connect", "Failed to fetch"];
    let network = |text: &str| unreachable.iter().any(|mark| text.contains(mark));
    let transient = network(&failure.ended().stdout) || network(&failure.ended().stderr);
    let error = Error::from(failure);
    if !transient {
        return error;
    }
    let lines = error.evidence_lines().iter();
    lines.fold(Error::transient(format!("{program} could not download from {place}")), Error::evidence)
}

/// An error when hosts stand on this root: what lies below a mounted overlay must not change.
fn require_unused(root: &Path, mounts: &[MountPoint]) -> Result<()> {
    let below = format!("lowerdir={}", root.display());
    let stands = |mount: &&MountPoint| mount.options.contains(&below);
    let hosts: Vec<&str> = mounts.iter().filter(stands).map(|mount| mount.point.as_str()).collect();
    if hosts.is_empty() {
        return Ok(());
    }
    let error =
        Error::precondition(format!("{} hosts of this machine stand on the root that is to be renewed", hosts.len()));
    Err(error.evidence_of(hosts).hint("turnup down for their clusters, then the same command again"))
}

/// Takes out of the root what every host must have of its own, and what only takes space.
fn finish_root(root: &Path) -> Result<()> {
    for dir in ["var/cache/apt/archives", "var/lib/apt/lists", "var/log"] {
        empty_dir(&root.join(dir))?;
    }
    // systemd fills an empty machine-id at the first boot; D-Bus follows it by a link.
    fs_err::write(root.join("etc/machine-id"), "")?;
    remove_if_there(&root.join("var/lib/dbus/machine-id"))?;
    std::os::unix::fs::symlink("/etc/machine-id", root.join("var/lib/dbus/machine-id"))?;
    for entry in fs_err::read_dir(root.join("etc/ssh"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("ssh_host_") {
            fs_err::remove_file(entry.path())?;
        }
    }
    for file in ["etc/hostname", "etc/resolv.conf", "etc/fstab"] {
        remove_if_there(&root.join(file))?;
    }
    for unit in MASKED {
        let link = root.join("etc/systemd/system").join(unit);
        remove_if_there(&link)?;
        std::os::unix::fs::symlink("/dev/null", link)?;
    }
    Ok(())
}

fn empty_dir(dir: &Path) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            empty_dir(&entry.path())?;
        } else {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn a_release_that_is_newer_than_debootstrap_is_made_as_those_before() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(older_script(dir.path(), "noble"), None, "debootstrap says what it lacks");
        for script in ["gutsy", "sid", "trixie"] {
            fs_err::write(dir.path().join(script), "").unwrap();
        }
        assert_eq!(older_script(dir.path(), "noble"), Some(dir.path().join("gutsy")));
        assert_eq!(older_script(dir.path(), "trixie"), None);
        fs_err::write(dir.path().join("noble"), "").unwrap();
        assert_eq!(older_script(dir.path(), "noble"), None);
    }

    #[test]
    fn empties_a_root_of_what_is_not_to_be_shared() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in
            ["etc/ssh", "etc/systemd/system", "var/lib/dbus", "var/lib/apt/lists/partial", "var/cache/apt/archives"]
        {
            fs_err::create_dir_all(root.join(path)).unwrap();
        }
        for path in [
            "etc/machine-id",
            "etc/ssh/ssh_host_rsa_key",
            "etc/ssh/sshd_config",
            "var/lib/apt/lists/partial/x",
            "etc/hostname",
        ] {
            fs_err::write(root.join(path), "x").unwrap();
        }
        finish_root(root).unwrap();
        assert_eq!(fs_err::read(root.join("etc/machine-id")).unwrap(), b"");
        let has = |path: &str| root.join(path).symlink_metadata().is_ok();
        assert!(
            has("etc/ssh/sshd_config") && has("var/lib/apt/lists/partial") && has("etc/systemd/system/getty.target")
        );
        assert!(!has("etc/ssh/ssh_host_rsa_key") && !has("var/lib/apt/lists/partial/x") && !has("etc/hostname"));
    }
}
