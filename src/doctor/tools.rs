//! Which tool is needed for what, and whether it is here.

use super::finding::{Finding, FindingLevel, Subject};
use super::goal::Goal;
use crate::artifacts::Distribution;
use crate::exec::tools;

/// A tool and what needs it.
struct Need {
    tool: &'static str,
    by: By,
    /// How bad it is when it is not here.
    absent: FindingLevel,
    why: &'static str,
}

/// What needs a tool.
#[derive(Clone, Copy)]
enum By {
    /// Every goal.
    All,
    /// Hosts on this machine.
    LocalHosts,
    /// Hosts on this machine with a release of it.
    HostsOf(Distribution),
    /// The project's own tests.
    Tests,
}

impl By {
    fn is_of(self, subject: &Subject<'_>) -> bool {
        match self {
            Self::All => true,
            Self::LocalHosts => subject.goal.makes_local_hosts(),
            Self::HostsOf(distribution) => subject.makes_hosts_of(distribution),
            Self::Tests => matches!(subject.goal, Goal::Development),
        }
    }
}

const fn need(tool: &'static str, by: By, absent: FindingLevel, why: &'static str) -> Need {
    Need { tool, by, absent, why }
}

/// Linux's own Kconfig, which ours is compared with.
const KERNEL: &str = "the project's tests build the kernel's conf";

/// The root is made of what Debian or Ubuntu has signed.
const SIGNATURE: &str = "the signature of the root of local hosts";
/// The project's tests build it each time.
const RUNC: &str = "the project's tests build runc from source";

const NEEDS: &[Need] = &[
    need("ssh", By::All, FindingLevel::Missing, "bootstrap: reaches the hosts"),
    need("ssh-keygen", By::All, FindingLevel::Missing, "provision: keys of this cluster"),
    need("setpriv", By::All, FindingLevel::Warning, "no child process outlives a killed turnup"),
    need("go", By::All, FindingLevel::Warning, "artifacts built from source (not with a bundle or a filled cache)"),
    need(
        "age",
        By::All,
        FindingLevel::Warning,
        "optional: turnup kubeconfig --seal, a break-glass credential for the safe",
    ),
    need("systemd-nspawn", By::LocalHosts, FindingLevel::Missing, "local hosts"),
    need("debootstrap", By::LocalHosts, FindingLevel::Missing, "the root of local hosts, once"),
    need("unshare", By::LocalHosts, FindingLevel::Missing, "the root of local hosts, once"),
    need("gpgv", By::LocalHosts, FindingLevel::Missing, SIGNATURE),
    need(Distribution::Debian.keyring(), By::HostsOf(Distribution::Debian), FindingLevel::Missing, SIGNATURE),
    need(Distribution::Ubuntu.keyring(), By::HostsOf(Distribution::Ubuntu), FindingLevel::Missing, SIGNATURE),
    need("ip", By::LocalHosts, FindingLevel::Missing, "the network of local hosts"),
    need("nft", By::LocalHosts, FindingLevel::Missing, "the firewall between this machine and local hosts"),
    need("mount", By::LocalHosts, FindingLevel::Missing, "the file systems of local hosts"),
    need("age", By::Tests, FindingLevel::Missing, "the project's tests of sealed credentials"),
    need("sshd", By::Tests, FindingLevel::Missing, "the project's tests of ssh, on loopback"),
    need("make", By::Tests, FindingLevel::Missing, KERNEL),
    need("gcc", By::Tests, FindingLevel::Missing, KERNEL),
    need("pkg-config", By::Tests, FindingLevel::Missing, RUNC),
    need("libc.a", By::Tests, FindingLevel::Missing, RUNC),
    need("libseccomp.a", By::Tests, FindingLevel::Missing, RUNC),
    need("flex", By::Tests, FindingLevel::Missing, KERNEL),
    need("bison", By::Tests, FindingLevel::Missing, KERNEL),
    need("xz", By::Tests, FindingLevel::Missing, "unpacks Linux's trees for the project's tests"),
    need("pip3", By::Tests, FindingLevel::Missing, "pytest and kconfiglib for the project's tests"),
    need("named", By::Tests, FindingLevel::Missing, "the project's tests of DNS updates"),
    need("knotd", By::Tests, FindingLevel::Missing, "the project's tests of DNS updates"),
    need("dig", By::Tests, FindingLevel::Missing, "the project's tests of DNS updates"),
    need("tmux", By::Tests, FindingLevel::Missing, "the wizard in a terminal, for the project's tests"),
    need("valgrind", By::Tests, FindingLevel::Missing, "the project's benches count instructions"),
];

pub(super) fn inspect(subject: &Subject<'_>) -> Vec<Finding> {
    let tools = needs(subject).map(|need| look(need.tool, need.absent, need.why));
    std::iter::once(terraform(subject.goal)).chain(tools).collect()
}

fn needs(subject: &Subject<'_>) -> impl Iterator<Item = &'static Need> {
    NEEDS.iter().filter(move |need| need.by.is_of(subject))
}

pub(super) fn look(tool: &str, absent: FindingLevel, why: &str) -> Finding {
    match tools::find(tool) {
        Err(error) => {
            let fix = error.next().unwrap_or("install it and see that it is on PATH").to_owned();
            Finding::new(tool, absent, "not installed", why).fix(fix)
        }
        Ok(path) => match tools::version(tool) {
            Ok(version) if version.is_empty() => Finding::new(tool, FindingLevel::Ok, path.display().to_string(), why),
            Ok(version) => Finding::new(tool, FindingLevel::Ok, version, why),
            Err(error) => {
                let found = format!("{}: {}", path.display(), error.message());
                Finding::new(tool, absent, found, why).fix(format!("look with: {tool} --version"))
            }
        },
    }
}

/// Terraform or `OpenTofu`: either does.
fn terraform(goal: Goal) -> Finding {
    let why = "provision";
    if !goal.uses_terraform() {
        return Finding::new("terraform", FindingLevel::Ok, "not needed for this target", why);
    }
    let here = ["terraform", "tofu"].map(|tool| look(tool, FindingLevel::Warning, why));
    here.into_iter().find(|finding| finding.level == FindingLevel::Ok).unwrap_or_else(|| {
        let fix = "install terraform or tofu; without either, turnup builds OpenTofu itself, once, which needs go";
        Finding::new("terraform", FindingLevel::Warning, "neither terraform nor tofu is installed", why).fix(fix)
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn every_needed_tool_is_described() {
        for need in NEEDS {
            assert!(tools::describe(need.tool).is_some(), "{}", need.tool);
        }
    }

    #[test]
    fn each_archive_needs_its_own_keyring() {
        let keyrings = |releases: &[&str]| {
            let releases = releases.iter().map(|name| (*name).to_owned()).collect();
            let subject = Subject { releases, ..Subject::of(Goal::LOCAL) };
            let found: Vec<&str> =
                needs(&subject).map(|need| need.tool).filter(|tool| tool.contains("keyring")).collect();
            found
        };
        let (debian, ubuntu) = (Distribution::Debian.keyring(), Distribution::Ubuntu.keyring());
        assert_eq!(keyrings(&["bookworm", "trixie"]), [debian]);
        assert_eq!(keyrings(&["noble"]), [ubuntu]);
        assert_eq!(keyrings(&["trixie", "noble"]), [debian, ubuntu]);
    }

    #[test]
    fn only_the_local_target_needs_machines() {
        let needs_nspawn = |goal: &str| {
            let subject = Subject::of(Goal::of(goal).unwrap());
            needs(&subject).any(|need| need.tool == "systemd-nspawn")
        };
        assert!(needs_nspawn("local") && needs_nspawn("development"));
        assert!(!needs_nspawn("gce") && !needs_nspawn("baremetal"));
    }
}
