//! The Debian root that local hosts boot from: made once by debootstrap, shared read-only below an overlay a host.
//!
//! Its key is a digest of what it is made of, so another package list is another root. It is whole or not there at all. The
//! mirror is the machine's own, read from its apt configuration; this file names none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cache::{Cache, sync_dir};
use super::digest::Digest;
use super::keylock::KeyLock;
use super::selection::Platform;
use super::watch::Watch;
use crate::exec::{OnDeath, Run, tools};
use crate::{Error, Result};

/// Raise it when what is done to the root after debootstrap changes.
const SCRIPT: &str = "1";
const PACKAGES: [&str; 17] = [
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
    "runc",
    "socat",
    "procps",
    "iputils-ping",
    "util-linux",
    "ethtool",
];
/// Units that a host in a namespace cannot or must not run: they would touch what belongs to the machine around it.
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

/// The digest of what a root is made of; it is part of the inputs of every step that makes a local host.
#[must_use]
pub fn host_root_digest(suite: &str) -> Digest {
    digest_with(suite, &[])
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

impl Cache {
    /// Where the root of this Debian release is or would be.
    #[must_use]
    pub fn host_root_path(&self, suite: &str) -> PathBuf {
        self.path_with(suite, &[])
    }

    fn path_with(&self, suite: &str, further: &[String]) -> PathBuf {
        self.root().join("roots").join(digest_with(suite, further).to_string())
    }

    /// The root directory for local hosts of this Debian release; made when it is not there, which takes some minutes.
    pub fn host_root(&self, suite: &str, watch: &dyn Watch) -> Result<PathBuf> {
        self.host_root_with(suite, &[], watch)
    }

    /// The same with further packages: a root of its own, beside the one of local clusters.
    pub fn host_root_with(&self, suite: &str, further: &[String], watch: &dyn Watch) -> Result<PathBuf> {
        let roots = self.root().join("roots");
        let root = self.path_with(suite, further);
        if root.is_dir() {
            return Ok(root);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Error::person("the root file system of local hosts can only be made by root")
                .hint("run the same command as root, for instance with sudo"));
        }
        fs_err::create_dir_all(&roots)?;
        let lock = KeyLock::acquire(self.root(), "host-root", "the Debian root of local hosts", watch)?;
        if root.is_dir() {
            return Ok(root);
        }
        let made = lock.work().join("root");
        self.make_root(suite, &packages(further), &made, watch)?;
        finish_root(&made)?;
        fs_err::rename(&made, &root)?;
        sync_dir(&roots)?;
        Ok(root)
    }

    fn make_root(&self, suite: &str, packages: &str, made: &Path, watch: &dyn Watch) -> Result<()> {
        let (unshare, debootstrap) = (tools::find("unshare")?, tools::find("debootstrap")?);
        let mirror = find_mirror(Path::new("/etc/apt"), suite)?;
        watch.progress("making the Debian root of local hosts; this is done once");
        // What debootstrap mounts goes with it, also when it is killed; the next one could not remove a directory with the kernel's files in it.
        let run = Run::new(unshare)
            .arg("--mount")
            .arg(debootstrap)
            .args(["--variant=minbase", "--merged-usr"])
            .arg(format!("--include={packages}"))
            .arg(suite)
            .arg(made)
            .arg(&mirror)
            .dir(self.root())
            .log(self.log_path("host-root"))
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
        ended.map(drop).map_err(|failure| {
            let unreachable = ["Couldn't download", "Failed getting release", "Unable to connect"];
            let network = |text: &str| unreachable.iter().any(|mark| text.contains(mark));
            let transient = network(&failure.ended().stdout) || network(&failure.ended().stderr);
            let error = Error::from(failure);
            if !transient {
                return error;
            }
            let lines = error.evidence_lines().iter();
            lines.fold(Error::transient(format!("debootstrap could not download from {mirror}")), Error::evidence)
        })
    }
}

/// Takes out of the root what every host must have of its own, and what only takes space.
fn finish_root(root: &Path) -> Result<()> {
    for dir in ["var/cache/apt/archives", "var/lib/apt/lists", "var/log"] {
        empty_dir(&root.join(dir))?;
    }
    // An empty machine-id is made anew at the first boot; D-Bus follows it by a link.
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

/// The mirror of Debian that apt of this machine uses.
fn find_mirror(apt: &Path, suite: &str) -> Result<String> {
    let mut files = vec![apt.join("sources.list")];
    if let Ok(entries) = fs_err::read_dir(apt.join("sources.list.d")) {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        // apt reads only these two kinds of file, and an unreadable one cannot be asked.
        let Ok(text) = fs_err::read_to_string(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => found.extend(text.lines().filter_map(parse_line)),
            Some("sources") => found.extend(text.split("\n\n").flat_map(parse_stanza)),
            _ => {}
        }
    }
    let exact = found.iter().find(|(_, suites)| suites.iter().any(|found| found == suite));
    // Every mirror of Debian has every supported suite, whichever one this machine runs.
    let debian = || found.iter().find(|(uri, _)| uri.trim_end_matches('/').ends_with("/debian"));
    exact.or_else(debian).map(|(uri, _)| uri.clone()).ok_or_else(|| {
        Error::person("the apt configuration of this machine names no mirror of Debian")
            .hint("add a Debian source to /etc/apt/sources.list.d, or choose another target than local")
    })
}

type AptSource = (String, Vec<String>);

/// `deb [options] URI suite component…`
fn parse_line(line: &str) -> Option<AptSource> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let rest = rest.strip_prefix('[').map_or(rest, |options| options.split_once(']').map_or("", |(_, rest)| rest));
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    words.any(|component| component == "main").then(|| (uri.to_owned(), vec![suite.to_owned()]))
}

/// One stanza of a `.sources` file.
fn parse_stanza(stanza: &str) -> Vec<AptSource> {
    let field = |name: &str| -> Vec<String> {
        let lines = stanza.lines().filter(|line| !line.starts_with('#'));
        let value =
            lines.filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        value.map(|(_, value)| value.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
    };
    let is = |name: &str, wanted: &str| field(name).iter().any(|value| value == wanted);
    if !is("Types", "deb") || !is("Components", "main") || is("Enabled", "no") {
        return Vec::new();
    }
    field("URIs").into_iter().map(|uri| (uri, field("Suites"))).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn apt(files: &[(&str, &str)]) -> Result<String> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("sources.list.d")).unwrap();
        for (name, text) in files {
            fs_err::write(dir.path().join(name), text).unwrap();
        }
        find_mirror(dir.path(), "bookworm")
    }

    #[test]
    fn takes_the_mirror_of_apt() {
        let stanzas = "Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n\
                       Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\nComponents: main\n";
        assert_eq!(apt(&[("sources.list.d/debian.sources", stanzas)]).unwrap(), "http://mirror.example/debian");
        let line = "# deb http://old.example/debian bookworm main\ndeb [signed-by=/k arch=amd64] http://line.example/debian bookworm main\n";
        assert_eq!(apt(&[("sources.list", line)]).unwrap(), "http://line.example/debian");
        let other = "deb http://else.example/debian/ trixie main\n";
        assert_eq!(apt(&[("sources.list", other)]).unwrap(), "http://else.example/debian/");
    }

    #[test]
    fn says_so_when_there_is_none() {
        let error = apt(&[
            ("sources.list", "deb http://mirror.example/ubuntu noble main\n"),
            (
                "sources.list.d/off.sources",
                "Types: deb\nEnabled: no\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n",
            ),
        ]);
        insta::assert_snapshot!(error.unwrap_err().render());
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
