//! The programs of other people that we run: where they are, which version, which package brings them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use super::Run;
use crate::{Error, Result};

/// A program that somebody else packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name on PATH.
    pub name: &'static str,
    /// The Debian package that brings it; empty where Debian has none.
    pub debian: &'static str,
    /// The Fedora package that brings it; empty where Fedora has none.
    pub fedora: &'static str,
    /// The arguments that make it print its version.
    pub version: &'static [&'static str],
}

/// All of them.
pub const TOOLS: &[Tool] = &[
    tool("terraform", "", "", &["version"]),
    tool("tofu", "", "", &["version"]),
    tool("ssh", "openssh-client", "openssh-clients", &["-V"]),
    tool("sshd", "openssh-server", "openssh-server", &[]),
    tool("ssh-keygen", "openssh-client", "openssh-clients", &[]),
    tool("systemd-nspawn", "systemd-container", "systemd-container", &["--version"]),
    tool("debootstrap", "debootstrap", "debootstrap", &["--version"]),
    // Distributions carry a Go that is too old for what we build.
    tool("go", "", "", &["version"]),
    tool("ip", "iproute2", "iproute", &["-V"]),
    tool("nft", "nftables", "nftables", &["--version"]),
    tool("iptables", "iptables", "iptables-nft", &["--version"]),
    tool("mount", "mount", "util-linux", &["--version"]),
    tool("losetup", "mount", "util-linux", &["--version"]),
    tool("blkid", "util-linux", "util-linux", &["--version"]),
    tool("fsck.ext4", "e2fsprogs", "e2fsprogs", &["-V"]),
    tool("mkfs.ext4", "e2fsprogs", "e2fsprogs", &["-V"]),
    tool("setpriv", "util-linux", "util-linux", &["--version"]),
    tool("unshare", "util-linux", "util-linux", &["--version"]),
    tool("nsenter", "util-linux", "util-linux", &["--version"]),
    tool("kubectl", "", "", &["version", "--client"]),
    tool("make", "make", "make", &["--version"]),
    tool("gcc", "gcc", "gcc", &["--version"]),
    tool("flex", "flex", "flex", &["--version"]),
    tool("bison", "bison", "bison", &["--version"]),
    tool("xz", "xz-utils", "xz", &["--version"]),
    tool("pip3", "python3-pip", "python3-pip", &["--version"]),
    tool("tmux", "tmux", "tmux", &["-V"]),
    tool("valgrind", "valgrind", "valgrind", &["--version"]),
];

const fn tool(
    name: &'static str,
    debian: &'static str,
    fedora: &'static str,
    version: &'static [&'static str],
) -> Tool {
    Tool { name, debian, fedora, version }
}

/// How software is installed on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageManager {
    /// Debian, Ubuntu and their like.
    Apt,
    /// Fedora, Red Hat and their like.
    Dnf,
}

impl PackageManager {
    /// The one that is here.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let here = |name: &str| locate(name).is_some();
        if here("apt-get") {
            Some(Self::Apt)
        } else if here("dnf") {
            Some(Self::Dnf)
        } else {
            None
        }
    }

    /// The package that brings this tool.
    #[must_use]
    pub fn package(self, tool: &Tool) -> Option<&'static str> {
        let name = match self {
            Self::Apt => tool.debian,
            Self::Dnf => tool.fedora,
        };
        (!name.is_empty()).then_some(name)
    }

    /// The command that installs packages without asking.
    #[must_use]
    pub fn install_command(self, packages: &[&str]) -> Vec<String> {
        let start: &[&str] = match self {
            Self::Apt => &["apt-get", "install", "--yes", "--no-install-recommends"],
            Self::Dnf => &["dnf", "install", "--assumeyes"],
        };
        start.iter().chain(packages).map(|word| (*word).to_owned()).collect()
    }
}

/// What is known about this tool.
#[must_use]
pub fn describe(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The program's path; the error names the command that installs it.
pub fn find(name: &str) -> Result<PathBuf> {
    locate(OsStr::new(name)).ok_or_else(|| {
        let error = Error::person(format!("`{name}` is not installed"));
        match install_hint(name) {
            Some(hint) => error.hint(hint),
            None => error.hint(format!(
                "install `{name}` and see that it is on PATH; `turnup doctor` lists all that is missing"
            )),
        }
    })
}

/// The command that installs this tool here.
#[must_use]
pub fn install_hint(name: &str) -> Option<String> {
    let manager = PackageManager::detect()?;
    let package = manager.package(describe(name)?)?;
    Some(shell_words::join(manager.install_command(&[package])))
}

/// The first line that the program prints about its version.
pub fn version(name: &str) -> Result<String> {
    let path = find(name)?;
    let arguments = describe(name).map_or(&["--version"][..], |tool| tool.version);
    if arguments.is_empty() {
        return Ok(String::new());
    }
    // Terraform asks its maker for news otherwise; a version must not need a network.
    let run = Run::new(path).args(arguments.iter().copied()).dir("/").env("CHECKPOINT_DISABLE", "1");
    let output = run.timeout(Duration::from_secs(20)).succeed()?;
    let said = if output.stdout.trim().is_empty() { output.stderr } else { output.stdout };
    Ok(said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned())
}

/// The program's path on PATH, or where administration programs lie: a user's PATH may lack those directories.
pub(super) fn locate(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let mut paths = std::env::var_os("PATH").unwrap_or_default();
    if !paths.is_empty() {
        paths.push(":");
    }
    paths.push("/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin");
    which::which_in(name.as_ref(), Some::<OsString>(paths), Path::new("/")).ok()
}

/// util-linux's setpriv, when it is there and knows `--pdeathsig` (busybox's does not).
pub(super) fn setpriv() -> Option<&'static Path> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let path = locate("setpriv")?;
        let probe = duct::cmd(&path, ["--pdeathsig", "KILL", "--", "true"]).unchecked();
        let status = probe.stdin_null().stdout_null().stderr_null().run().ok()?.status;
        status.success().then_some(path)
    });
    FOUND.as_deref()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_missing_tool_says_how_to_get_it() {
        let error = find("no-such-program-here").unwrap_err();
        assert_eq!(error.class(), crate::Class::Person);
        assert_eq!(error.message(), "`no-such-program-here` is not installed");
        assert!(error.next().unwrap().contains("turnup doctor"));
    }

    #[test]
    fn every_tool_names_its_package_or_none_for_both() {
        for tool in TOOLS {
            assert_eq!(tool.debian.is_empty(), tool.fedora.is_empty(), "{}", tool.name);
        }
    }

    #[test]
    fn install_commands_do_not_ask() {
        let command = PackageManager::Apt.install_command(&["debootstrap", "iproute2"]);
        assert_eq!(command.join(" "), "apt-get install --yes --no-install-recommends debootstrap iproute2");
    }
}
