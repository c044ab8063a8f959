//! What a host is: the facts on which its node config depends. Read only, changes nothing.

use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use x509_parser::pem::Pem;
use x509_parser::time::ASN1Time;

use crate::document::{Document, Fields};
use crate::error::{Context as _, Error, Result};
use crate::inventory::system::{SystemFamily, release_value};

use super::firewall;
use super::node_config::HOST_FILE;

/// What `turnup node facts` prints as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Always [`Facts::SCHEMA`](Document::SCHEMA).
    pub schema: String,
    /// `PRETTY_NAME` of os-release.
    pub os: String,
    /// The kernel's release.
    pub kernel: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// 1 or 2.
    pub cgroup: u8,
    /// Whether the host is a container, whose kernel settings belong to the machine around it.
    pub container: bool,
    /// Whether processes may lower their `oom_score_adj` (`CAP_SYS_RESOURCE`); runc fails
    /// otherwise.
    pub lowers_oom_score: bool,
    /// Whether the kubelet has a client certificate that has not ended.
    pub joined: bool,
    /// The file of name servers for pods; another one than `/etc/resolv.conf` where that names
    /// systemd-resolved on a loopback address, which a pod cannot reach and at which `CoreDNS`
    /// would ask itself.
    pub resolv_conf: String,
    /// The address from which turnup is logged in over ssh, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// Total memory in MiB.
    pub memory_mib: u64,
    /// Processors.
    pub cpus: usize,
}

impl Document for Facts {
    const SCHEMA: &'static str = "turnup.facts/1";
    const WHAT: &'static str = "the facts of a host";
    const REMEDY: &'static str = "remove the file; turnup bootstrap recreates it";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("os", "text"),
            ("kernel", "text"),
            ("arch", "word"),
            ("resolv_conf", "empty or host-path"),
            ("client", "ip"),
        ])
    }
}

/// `CAP_SYS_RESOURCE` of capabilities(7).
const CAP_SYS_RESOURCE: u64 = 24;
/// Where systemd-resolved keeps the real name servers.
const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";
/// Where kubelet keeps its current client certificate.
pub(crate) const CLIENT_CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";

impl Facts {
    /// Reads this host's facts.
    pub fn read() -> Result<Self> {
        let os = fs_err::read_to_string("/etc/os-release").unwrap_or_default();
        require_known(&os, Path::new(HOST_FILE).exists())?;
        let pretty = Some(release_value(&os, "PRETTY_NAME")).filter(|name| !name.is_empty());
        let status = fs_err::read_to_string("/proc/self/status")?;
        let memory = fs_err::read_to_string("/proc/meminfo")?;
        let uname = rustix::system::uname();
        Ok(Self {
            schema: Self::SCHEMA.into(),
            os: pretty.unwrap_or_else(|| "unknown".to_owned()),
            kernel: uname.release().to_string_lossy().into_owned(),
            arch: uname.machine().to_string_lossy().into_owned(),
            cgroup: cgroup_version(),
            container: Path::new("/run/systemd/container").exists(),
            lowers_oom_score: has_capability(&status, CAP_SYS_RESOURCE)?,
            resolv_conf: [RESOLVED, "/etc/resolv.conf"]
                .into_iter()
                .find(|path| Path::new(path).exists())
                .unwrap_or_default()
                .into(),
            client: firewall::find_client(),
            joined: is_valid_certificate(Path::new(CLIENT_CERTIFICATE)),
            memory_mib: number_after(&memory, "MemTotal:") / 1024,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// The same of a container that this machine is going to make: its kernel is the machine's.
    pub(crate) fn in_container(self) -> Result<Self> {
        let status = fs_err::read_to_string("/proc/self/status")?;
        let lowers_oom_score = has_capability(&status, CAP_SYS_RESOURCE)?;
        Ok(Self { cgroup: cgroup_version(), container: true, lowers_oom_score, ..self })
    }

    /// The facts that decide what the node config says; those that change by themselves are left
    /// out.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!(
            "{} {} {} {} {} {}",
            self.os, self.arch, self.cgroup, self.container, self.lowers_oom_score, self.resolv_conf
        )
    }
}

/// An error on a host whose system is of no family that turnup knows; one that is a node already
/// has shown what it can.
fn require_known(os_release: &str, is_node: bool) -> Result<()> {
    SystemFamily::of_release(os_release).map(drop).or_else(|why| {
        let error = Error::precondition(format!("this host cannot be a node: {why}"));
        let hint = "choose an image of one of them; docs/baremetal.md says what was tried";
        if is_node { Ok(()) } else { Err(error.hint(hint)) }
    })
}

/// Whether this file begins with a certificate that has not ended.
pub(super) fn is_valid_certificate(path: &Path) -> bool {
    let pem = fs_err::read(path).unwrap_or_default();
    let pem = Pem::iter_from_buffer(&pem).flatten().find(|pem| pem.label == "CERTIFICATE");
    pem.is_some_and(|pem| pem.parse_x509().is_ok_and(|certificate| certificate.validity().not_after > ASN1Time::now()))
}

fn cgroup_version() -> u8 {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() { 2 } else { 1 }
}

fn has_capability(status: &str, capability: u64) -> Result<bool> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapBnd:")).unwrap_or("0");
    let set = u64::from_str_radix(line.trim(), 16).context("/proc/self/status has no CapBnd")?;
    Ok(set >> capability & 1 == 1)
}

fn number_after(text: &str, key: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    rest.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::system::RELEASES;

    #[test]
    fn a_system_of_no_known_family_is_refused_and_a_node_stays_one() {
        let told = RELEASES.map(|(_, release)| require_known(release, false).err().map(|error| error.render()));
        let told: Vec<String> = told.into_iter().flatten().collect();
        assert_eq!(told.len(), 3);
        insta::assert_snapshot!(told[0], @r"
        error: this host cannot be a node: it runs openSUSE Leap 15.6, which is of no family that turnup knows: Debian, Ubuntu and their like; Fedora, Rocky and their like; Flatcar and Fedora CoreOS
        next: choose an image of one of them; docs/baremetal.md says what was tried
        ");
        assert!(RELEASES.iter().all(|(_, release)| require_known(release, true).is_ok()));
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<Facts>(&serde_json::json!({
            "schema": Facts::SCHEMA, "os": "Debian", "kernel": "6.1", "arch": "x86_64", "cgroup": 2, "container": false,
            "lowers_oom_score": true, "joined": false, "resolv_conf": "/etc/resolv.conf",
            "client": "192.0.2.1", "memory_mib": 1, "cpus": 1,
        }));
    }
}
