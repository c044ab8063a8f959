//! What provision hands to bootstrap: the hosts and the API's endpoint, as `outputs/provision.json`.
//!
//! The same file written by hand is the bare metal target. It is checked when written and when read; nothing here makes a decision.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::document::{self, Document};
use crate::error::{Class, Error, Result};

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "turnup.provision/1";
/// Where the hand-off lies below the cluster's directory.
pub const FILE: &str = "outputs/provision.json";

/// The hosts of a cluster and how to reach its API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The cluster's name.
    pub cluster: String,
    /// The target that made the hosts: `local`, `baremetal`, …
    pub target: String,
    /// Where clients and nodes reach kube-apiserver.
    pub api: Endpoint,
    /// All hosts, control plane first.
    pub hosts: Vec<Host>,
}

/// An address and a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// A DNS name or an IP address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name, which becomes the Node's name: an RFC 1123 label.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The address at which other hosts and turnup reach it.
    pub address: IpAddr,
    /// Changes when the host is made anew; everything that was done to the old one is then done again.
    pub instance: String,
    /// How to log in.
    pub ssh: SshAccess,
    /// A folder on the host in which artifacts already lie, named by their sha256; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blobs: String,
}

/// How to log in to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshAccess {
    /// The user: root, or one whose `sudo` asks nothing.
    pub user: String,
    /// The TCP port.
    pub port: u16,
    /// The host's public key as in `known_hosts`: `ssh-ed25519 AAAA…`. A host that shows another one is refused.
    pub host_key: String,
}

/// What a host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
    ControlPlane,
    /// Runs pods.
    Worker,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::ControlPlane, Self::Worker];

    /// The name in files and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "control-plane",
            Self::Worker => "worker",
        }
    }
}

impl Handoff {
    /// Parses and checks a hand-off; `path` is only for the messages.
    pub fn parse(path: &str, text: &str) -> Result<Self> {
        document::parse(path, text).map(Self::sorted)
    }

    /// Control plane first, as every reader expects.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.hosts.sort_by_key(|host| host.role);
        self
    }

    /// The file's text; refused when it could not be read again.
    pub fn render(&self) -> Result<String> {
        document::render(FILE, self)
    }

    /// An error unless this is the hand-off of the cluster with this name and this port of the API server.
    pub fn require_cluster(&self, path: &str, name: &str, api_port: u16) -> Result<()> {
        if self.cluster != name {
            let message =
                format!("{path}: the hosts are those of the cluster {:?}, this one is {name:?}", self.cluster);
            return Err(Error::config(message).hint(format!("turnup config set phase1.cluster_name={}", self.cluster)));
        }
        if self.api.port != api_port {
            let message = format!("{path}: api.port is {}, and phase2.api_port is {api_port}", self.api.port);
            return Err(Error::config(message).hint(format!("turnup config set phase2.api_port={}", self.api.port)));
        }
        Ok(())
    }

    /// The one control-plane host.
    pub fn control_plane(&self) -> Result<&Host> {
        self.hosts.iter().find(|host| host.role == Role::ControlPlane).ok_or_else(|| no_control_plane("the hand-off"))
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Result<&Host> {
        let missing = || Error::bug(format!("{FILE} has no host {name:?}"));
        self.hosts.iter().find(|host| host.name == name).ok_or_else(missing)
    }
}

impl Document for Handoff {
    const SCHEMA: &'static str = SCHEMA;
    const WHAT: &'static str = "the hand-off of the provision phase";
    const REMEDY: &'static str = "turnup provision (a file of your own: README.md shows the form)";
    const CLASS: Class = Class::Config;

    fn check(&self, path: &str) -> Result<()> {
        if self.api.host.is_empty() || self.api.port == 0 {
            return Err(Error::config(format!("{path}: api needs a host and a port"))
                .hint("\"api\": {\"host\": \"<address of the control plane>\", \"port\": 6443}"));
        }
        match self.hosts.iter().filter(|host| host.role == Role::ControlPlane).count() {
            0 => return Err(no_control_plane(path)),
            1 => {}
            count => {
                return Err(Error::config(format!("{path}: {count} hosts have the role control-plane"))
                    .hint("give exactly one host this role: several control-plane hosts are not supported yet"));
            }
        }
        let mut seen = BTreeSet::new();
        for host in &self.hosts {
            if !is_label(&host.name) {
                return Err(Error::config(format!("{path}: host name {:?} is not an RFC 1123 label", host.name)).hint(
                    "use lower-case letters, digits and '-', at most 63, beginning and ending with a letter or digit",
                ));
            }
            if !seen.insert(host.name.clone()) || !seen.insert(host.address.to_string()) {
                return Err(Error::config(format!("{path}: host {} repeats a name or an address", host.name)));
            }
            if host.ssh.user.is_empty() || host.ssh.port == 0 {
                return Err(Error::config(format!("{path}: host {} needs ssh.user and ssh.port", host.name))
                    .hint("\"user\": \"root\", \"port\": 22"));
            }
            if host.ssh.host_key.split_whitespace().count() < 2 {
                return Err(Error::config(format!("{path}: host {} has no ssh.host_key", host.name))
                    .hint(format!("ssh-keyscan -t ed25519 {}", host.address)));
            }
        }
        Ok(())
    }
}

fn no_control_plane(path: &str) -> Error {
    Error::config(format!("{path}: no host has the role control-plane"))
        .hint("give one host \"role\": \"control-plane\"")
}

/// Whether this can be a host's name: an RFC 1123 label.
#[must_use]
pub fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn text(hosts: &str) -> String {
        format!(
            r#"{{"schema":"{SCHEMA}","cluster":"c","target":"local","api":{{"host":"10.0.0.10","port":6443}},"hosts":[{hosts}]}}"#
        )
    }

    fn host(name: &str, role: &str, address: &str) -> String {
        format!(
            r#"{{"name":"{name}","role":"{role}","address":"{address}","instance":"i","ssh":{{"user":"root","port":22,"host_key":"ssh-ed25519 AAAA"}}}}"#
        )
    }

    #[test]
    fn control_plane_comes_first_and_text_survives() {
        let hosts = [host("w", "worker", "10.0.0.20"), host("m", "control-plane", "10.0.0.10")].join(",");
        let handoff = Handoff::parse("f", &text(&hosts)).unwrap();
        assert_eq!(handoff.hosts[0].name, "m");
        assert_eq!(Handoff::parse("f", &handoff.render().unwrap()).unwrap(), handoff);
    }

    #[test]
    fn refuses_what_bootstrap_could_not_use() {
        let master = host("m", "control-plane", "10.0.0.10");
        for (hosts, expected) in [
            (host("w", "worker", "10.0.0.20"), "no host has the role control-plane"),
            (format!("{master},{}", host("n", "control-plane", "10.0.0.11")), "2 hosts have the role"),
            (format!("{master},{}", host("w", "worker", "10.0.0.10")), "repeats a name or an address"),
            (format!("{master},{}", host("W", "worker", "10.0.0.20")), "not an RFC 1123 label"),
            (master.replace("ssh-ed25519 AAAA", ""), "has no ssh.host_key"),
            (master.replace("\"instance\"", "\"instanec\""), "unknown field `instanec`"),
        ] {
            let error = Handoff::parse("f.json", &text(&hosts)).unwrap_err();
            assert!(error.message().contains(expected), "{} / {expected}", error.message());
        }
    }
}
