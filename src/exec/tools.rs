//! The programs of other projects that we run, and the static libraries that builds need: where
//! they are, which version, which package brings them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Run, program};
use crate::{Error, Result};

/// A program that a distribution packages, or a static library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name on PATH, or the path of a file; a name that ends in `.a` is a static library, and
    /// gcc knows where it is.
    pub name: &'static str,
    /// The Debian package that brings it; empty where Debian has none.
    pub debian: &'static str,
    /// The Fedora package that brings it; empty where Fedora has none.
    pub fedora: &'static str,
    /// The arguments that make it print its version; empty where nothing does.
    pub version: &'static [&'static str],
}

/// The one tool that a release of Debian has in its backports alone.
const UBUNTU_KEYRING: &str = "/usr/share/keyrings/ubuntu-archive-keyring.gpg";

/// All of them.
pub const TOOLS: &[Tool] = &[
    tool("terraform", "", "", &["version"]),
    tool("tofu", "", "", &["version"]),
    tool("ssh", "openssh-client", "openssh-clients", &["-V"]),
    tool("sshd", "openssh-server", "openssh-server", &[]),
    tool("ssh-keygen", "openssh-client", "openssh-clients", &[]),
    tool("systemd-nspawn", "systemd-container", "systemd-container", &["--version"]),
    tool("debootstrap", "debootstrap", "debootstrap", &["--version"]),
    tool("gpgv", "gpgv", "gnupg2", &["--version"]),
    tool("/usr/share/keyrings/debian-archive-keyring.gpg", "debian-archive-keyring", "debian-keyring", &[]),
    tool(UBUNTU_KEYRING, "ubuntu-keyring", "ubu-keyring", &[]),
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
    tool("chroot", "coreutils", "coreutils", &["--version"]),
    tool("unshare", "util-linux", "util-linux", &["--version"]),
    tool("nsenter", "util-linux", "util-linux", &["--version"]),
    tool("kubectl", "", "", &["version", "--client"]),
    tool("age", "age", "age", &["--version"]),
    tool("make", "make", "make", &["--version"]),
    tool("gcc", "gcc", "gcc", &["--version"]),
    tool("pkg-config", "pkg-config", "pkgconf-pkg-config", &["--version"]),
    tool("libc.a", "libc6-dev", "glibc-static", &[]),
    tool("libseccomp.a", "libseccomp-dev", "libseccomp-static", &[]),
    tool("flex", "flex", "flex", &["--version"]),
    tool("bison", "bison", "bison", &["--version"]),
    tool("xz", "xz-utils", "xz", &["--version"]),
    tool("pip3", "python3-pip", "python3-pip", &["--version"]),
    tool("named", "bind9", "bind", &["-v"]),
    tool("knotd", "knot", "knot", &["--version"]),
    tool("dig", "bind9-dnsutils", "bind-utils", &["-v"]),
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
        let error = Error::precondition(format!("`{name}` is not installed"));
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
    let command = install_command(&[name])?;
    if name != UBUNTU_KEYRING || PackageManager::detect() != Some(PackageManager::Apt) {
        return Some(command);
    }
    Some(format!("{command}   (Debian 12 has it in bookworm-backports: add that suite to apt first)"))
}

/// The command that installs all of these tools here; none when no package is known for one of
/// them.
#[must_use]
pub fn install_command(names: &[&str]) -> Option<String> {
    let manager = PackageManager::detect()?;
    let packages = names.iter().map(|name| manager.package(describe(name)?)).collect::<Option<Vec<_>>>()?;
    Some(shell_words::join(manager.install_command(&packages)))
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

/// The path of a program, of a file that counts as a tool, or of a static library.
fn locate(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let file = Path::new(name.as_ref());
    if file.is_absolute() && TOOLS.iter().any(|tool| Path::new(tool.name) == file) {
        return file.exists().then(|| file.to_owned());
    }
    if let Some(library) = name.as_ref().to_str().filter(|name| is_library(name)) {
        // gcc answers with the bare name when it does not find the file.
        return ask_gcc(&format!("-print-file-name={library}")).filter(|path| path.is_absolute());
    }
    program::locate(name.as_ref())
}

fn is_library(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "a")
}

fn ask_gcc(question: &str) -> Option<PathBuf> {
    let gcc = locate("gcc")?;
    let answer = Run::new(gcc).arg(question).dir("/").timeout(Duration::from_secs(20)).output().ok()?;
    Some(answer.stdout.trim().into())
}

/// Everything of C that has a say in the bytes of a static build with these libraries
/// (`libseccomp`), by package and version: `cpp-12 12.2.0-14+deb12u1, binutils-x86-64-linux-gnu
/// 2.40-2, libc6-dev 2.36-9+deb12u14, libseccomp-dev 2.5.4-1+deb12u1`.
#[must_use]
pub fn describe_c_toolchain(libraries: &[String]) -> String {
    let program = |name: &str| {
        let path = ask_gcc(&format!("-print-prog-name={name}")).filter(|path| path.is_absolute());
        path.or_else(|| locate(name))
    };
    let files = [program("cc1"), program("ld"), locate("libc.a")];
    let libraries = libraries.iter().map(|library| locate(format!("{library}.a")));
    let packages = files.into_iter().chain(libraries).map(|file| match file {
        Some(file) => find_package(&file).unwrap_or_else(|| format!("{} of no package", file.display())),
        None => "something that is missing".to_owned(),
    });
    packages.collect::<Vec<_>>().join(", ")
}

/// The package that brings this file, and its version.
fn find_package(file: &Path) -> Option<String> {
    let file = fs_err::canonicalize(file).ok()?;
    let ask = |program: &str, args: &[&str]| {
        let run = Run::new(locate(program)?).args(args.iter().copied()).dir("/").timeout(Duration::from_secs(20));
        Some(run.output().ok()?.stdout.lines().next()?.trim().to_owned())
    };
    let path = file.to_str()?;
    let debian = || {
        let owner = ask("dpkg-query", &["--search", path])?;
        let package = owner.split_once(": ")?.0.to_owned();
        ask("dpkg-query", &["--show", "--showformat=${Package} ${Version}\n", &package])
    };
    debian().or_else(|| ask("rpm", &["--query", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\n", "--file", path]))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_missing_tool_says_how_to_get_it() {
        let error = find("no-such-program-here").unwrap_err();
        assert_eq!(error.class(), crate::Class::Precondition);
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
