//! Which tool is needed for what, and whether it is here.

use super::{Finding, Level};
use crate::exec::tools;

/// A tool and what needs it.
struct Need {
    tool: &'static str,
    /// The target that needs it; all of them when empty.
    target: &'static str,
    /// How bad it is when it is not here.
    absent: Level,
    why: &'static str,
}

const fn need(tool: &'static str, target: &'static str, absent: Level, why: &'static str) -> Need {
    Need { tool, target, absent, why }
}

/// Not a target: what the project's own tests need, which turn up local clusters.
const DEVELOPMENT: &str = "development";

/// Linux's own Kconfig, which ours is compared with.
const KERNEL: &str = "the project's tests build the kernel's conf";

/// The root is made of what Debian has signed.
const SIGNATURE: &str = "the signature of the root of local hosts";
/// The project's tests build it each time.
const RUNC: &str = "the project's tests build runc from source";

const NEEDS: &[Need] = &[
    need("ssh", "", Level::Missing, "bootstrap: reaches the hosts"),
    need("ssh-keygen", "", Level::Missing, "provision: keys of this cluster"),
    need("setpriv", "", Level::Warning, "no child process outlives a killed turnup"),
    need("go", "", Level::Warning, "artifacts built from source (not with a bundle or a filled cache)"),
    need("age", "", Level::Warning, "optional: turnup kubeconfig --seal, a break-glass credential for the safe"),
    need("systemd-nspawn", "local", Level::Missing, "local hosts"),
    need("debootstrap", "local", Level::Missing, "the root of local hosts, once"),
    need("unshare", "local", Level::Missing, "the root of local hosts, once"),
    need("gpgv", "local", Level::Missing, SIGNATURE),
    need("/usr/share/keyrings/debian-archive-keyring.gpg", "local", Level::Missing, SIGNATURE),
    need("ip", "local", Level::Missing, "the network of local hosts"),
    need("nft", "local", Level::Missing, "the firewall between this machine and local hosts"),
    need("mount", "local", Level::Missing, "the file systems of local hosts"),
    need("age", DEVELOPMENT, Level::Missing, "the project's tests of sealed credentials"),
    need("sshd", DEVELOPMENT, Level::Missing, "the project's tests of ssh, on loopback"),
    need("make", DEVELOPMENT, Level::Missing, KERNEL),
    need("gcc", DEVELOPMENT, Level::Missing, KERNEL),
    need("pkg-config", DEVELOPMENT, Level::Missing, RUNC),
    need("libc.a", DEVELOPMENT, Level::Missing, RUNC),
    need("libseccomp.a", DEVELOPMENT, Level::Missing, RUNC),
    need("flex", DEVELOPMENT, Level::Missing, KERNEL),
    need("bison", DEVELOPMENT, Level::Missing, KERNEL),
    need("xz", DEVELOPMENT, Level::Missing, "unpacks Linux's trees for the project's tests"),
    need("pip3", DEVELOPMENT, Level::Missing, "pytest and kconfiglib for the project's tests"),
    need("tmux", DEVELOPMENT, Level::Missing, "the wizard in a terminal, for the project's tests"),
    need("valgrind", DEVELOPMENT, Level::Missing, "the project's benches count instructions"),
];

/// Whether hosts are made on this machine.
pub(super) fn is_local(target: &str) -> bool {
    matches!(target, "local" | DEVELOPMENT)
}

pub(super) fn inspect(target: &str) -> Vec<Finding> {
    let tools = needs(target).map(|need| look(need.tool, need.absent, need.why));
    std::iter::once(terraform(target)).chain(tools).collect()
}

fn needs(target: &str) -> impl Iterator<Item = &'static Need> {
    let local = is_local(target);
    NEEDS
        .iter()
        .filter(move |need| need.target.is_empty() || need.target == target || (local && need.target == "local"))
}

pub(super) fn look(tool: &str, absent: Level, why: &str) -> Finding {
    match tools::find(tool) {
        Err(error) => {
            let fix = error.next().unwrap_or("install it and see that it is on PATH").to_owned();
            Finding::new(tool, absent, "not installed", why).fix(fix)
        }
        Ok(path) => match tools::version(tool) {
            Ok(version) if version.is_empty() => Finding::new(tool, Level::Ok, path.display().to_string(), why),
            Ok(version) => Finding::new(tool, Level::Ok, version, why),
            Err(error) => {
                let found = format!("{}: {}", path.display(), error.message());
                Finding::new(tool, absent, found, why).fix(format!("look with: {tool} --version"))
            }
        },
    }
}

/// Terraform or `OpenTofu`: either does.
fn terraform(target: &str) -> Finding {
    let why = "provision";
    if target == "baremetal" {
        return Finding::new("terraform", Level::Ok, "not needed for this target", why);
    }
    let here = ["terraform", "tofu"].map(|tool| look(tool, Level::Warning, why));
    here.into_iter().find(|finding| finding.level == Level::Ok).unwrap_or_else(|| {
        let fix = "install terraform or tofu; without either, turnup builds OpenTofu itself, once, which needs go";
        Finding::new("terraform", Level::Warning, "neither terraform nor tofu is installed", why).fix(fix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_needed_tool_is_described() {
        for need in NEEDS {
            assert!(tools::describe(need.tool).is_some(), "{}", need.tool);
        }
    }

    #[test]
    fn only_the_local_target_needs_machines() {
        assert!(needs("local").any(|need| need.tool == "systemd-nspawn"));
        assert!(!needs("gce").any(|need| need.tool == "systemd-nspawn"));
    }
}
