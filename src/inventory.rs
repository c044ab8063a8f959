//! What provision hands to bootstrap: the hosts and the API's endpoint, as
//! `outputs/provision.json`.
//!
//! The same file written by hand is the bare metal target. It is checked when written and when
//! read; nothing here makes a decision.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::config::MOST_CONTROL_PLANES;
use crate::document::{self, Document, Fields};
use crate::error::{Class, Error, Result};

pub mod system;
pub mod volume;

mod endpoint;
mod listed_host;
mod server_list;

pub use crate::format::Taint;
pub use endpoint::{BALANCER_HOST, Endpoint};
pub use listed_host::ListedHost;
pub use server_list::{ApiServer, ServerList};
pub use volume::Disk;

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "turnup.provision/1";
/// The instance of a host that a check imagines.
pub const IMAGINED: &str = "imagined";
/// Where a control-plane host tells by plain HTTP whether its API server is ready: `/readyz`, for
/// load balancers.
pub const HEALTH_PORT: u16 = 3990;
/// Where the inventory lies below the cluster's directory.
pub const FILE: &str = "outputs/provision.json";

/// The hosts of a cluster and how to reach its API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The cluster's name.
    pub cluster: String,
    /// The target that made the hosts: `local`, `baremetal`, …
    pub target: String,
    /// Where clients and nodes reach kube-apiserver.
    pub api: Endpoint,
    /// All hosts that are logged in to, control plane first.
    pub hosts: Vec<Host>,
    /// Groups of hosts that join by themselves, without a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<HostGroup>,
    /// The volumes that hold etcd's data and outlive their hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<EtcdVolume>,
}

/// Hosts that are made alike, and join by what they are told at their first boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostGroup {
    /// Its name.
    pub name: String,
    /// What its hosts are for.
    pub role: Role,
    /// How many there are, or the initial number where an autoscaler decides between two bounds.
    pub size: u32,
    /// The lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// The upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// A volume of an etcd member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdVolume {
    /// Its name.
    pub name: String,
    /// Its failure domain; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The etcd cluster: `main` or `events`.
    pub etcd: String,
    /// The member, a letter.
    pub member: String,
    /// As the cloud's API calls it.
    pub id: String,
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
    /// The one of `phase1.node_groups` that it belongs to; empty where it belongs to none. Its Node
    /// gets the group's labels and taints, its kubelet the group's limits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Changes when the host is recreated; everything that was done to the old one is then done
    /// again.
    pub instance: String,
    /// How to log in.
    pub ssh: SshAccess,
    /// A folder on the host in which artifacts already lie, named by their sha256; empty when there
    /// is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blobs: String,
    /// Where turnup reaches it, when that is not the address at which other hosts do: a cloud's
    /// public address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_address: Option<IpAddr>,
    /// Its failure domain, which becomes the Node's label `topology.kubernetes.io/zone`; empty when
    /// there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Further labels of the Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints of the Node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// A disk for etcd alone, as a path below `/dev` on the host; empty when etcd shares the
    /// host's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub etcd_device: String,
    /// The same as a volume that the host attaches by its cloud's API; never both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_volume: Option<volume::Volume>,
}

/// How to log in to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshAccess {
    /// The user: root, or one whose `sudo` asks nothing.
    pub user: String,
    /// The TCP port.
    pub port: u16,
    /// The host's public key as in `known_hosts`: `ssh-ed25519 AAAA…`. A host that shows another
    /// one is refused.
    pub host_key: String,
    /// A host that passes connections on, where there is no direct way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jump: Option<JumpHost>,
}

/// A host that only passes connections on. The same key logs in there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JumpHost {
    /// Its address or DNS name as turnup reaches it.
    pub host: String,
    /// The user there.
    pub user: String,
    /// The TCP port.
    pub port: u16,
    /// Its public key, as of a host.
    pub host_key: String,
}

impl Host {
    /// Whether it stands for hosts that only provision makes known.
    #[must_use]
    pub fn is_imagined(&self) -> bool {
        self.instance == IMAGINED
    }

    /// Where turnup connects to.
    #[must_use]
    pub fn ssh_address(&self) -> IpAddr {
        self.external_address.unwrap_or(self.address)
    }

    /// The lines of `known_hosts` for this host and the one that it is reached through.
    #[must_use]
    pub fn known_hosts(&self) -> String {
        let line = |host: &str, port: u16, key: &str| match port {
            22 => format!("{host} {key}\n"),
            port => format!("[{host}]:{port} {key}\n"),
        };
        let own = line(&self.ssh_address().to_string(), self.ssh.port, &self.ssh.host_key);
        let jump = self.ssh.jump.as_ref().map(|jump| line(&jump.host, jump.port, &jump.host_key));
        jump.unwrap_or_default() + &own
    }

    /// The disk of etcd's own; none where etcd shares the host's.
    #[must_use]
    pub fn etcd_disk(&self) -> Option<Disk> {
        let device = (!self.etcd_device.is_empty()).then(|| Disk::Device(self.etcd_device.clone()));
        self.etcd_volume.clone().map(Disk::Volume).or(device)
    }

    /// All labels that the Node is to have of the inventory.
    #[must_use]
    pub fn node_labels(&self) -> BTreeMap<String, String> {
        let zone = (!self.zone.is_empty()).then(|| (ZONE_LABEL.to_owned(), self.zone.clone()));
        self.labels.clone().into_iter().chain(zone).collect()
    }
}

/// The roles as a format.
const ROLES: &str = "enum(control-plane, worker)";

/// The label that the scheduler spreads pods by.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

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

    /// What kubelet, and on the control plane etcd and Kubernetes' components, listen on.
    #[must_use]
    pub fn ports(self, api_port: u16) -> Vec<u16> {
        let node = [10248, 10250];
        let control_plane = [api_port, HEALTH_PORT, 2379, 2380, 2381, 10257, 10259];
        node.into_iter().chain(control_plane.into_iter().filter(|_| self == Self::ControlPlane)).collect()
    }
}

impl Inventory {
    /// One of these hosts, without groups and volumes, which only clouds have.
    #[must_use]
    pub fn of_hosts(cluster: &str, target: &dyn std::fmt::Display, api: Endpoint, hosts: Vec<Host>) -> Self {
        let (cluster, target) = (cluster.to_owned(), target.to_string());
        Self { schema: SCHEMA.into(), cluster, target, api, hosts, groups: Vec::new(), volumes: Vec::new() }
    }

    /// Parses and checks an inventory; `path` is only for the messages.
    pub fn parse(path: &str, text: &str) -> Result<Self> {
        document::parse(path, text).map(Self::sorted)
    }

    /// The same of a value that a program printed or a setting lists; `shown` is only for the
    /// messages.
    pub fn from_value(shown: &str, value: &serde_json::Value) -> Result<Self> {
        document::from_value(shown, value).map(Self::sorted)
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

    /// An error unless this is the inventory of the cluster with this name and this port of the API
    /// server.
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

    /// The first control-plane host.
    pub fn control_plane(&self) -> Result<&Host> {
        self.control_planes().next().ok_or_else(|| no_control_plane("the inventory"))
    }

    /// The control-plane hosts, in the order in which they were named.
    pub fn control_planes(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.role == Role::ControlPlane)
    }

    /// What the balancer of each node leads to, where nodes have one.
    #[must_use]
    pub fn node_balancer(&self) -> Option<ServerList> {
        let hosts = self.control_planes().map(|host| (host.name.clone(), host.address));
        self.api.node_balancer.then(|| ServerList::of_node(hosts, self.api.port))
    }

    /// Which machines the control plane is: with others it is another cluster, or has to be checked
    /// again.
    #[must_use]
    pub fn control_plane_instances(&self) -> String {
        self.control_planes().map(|host| host.instance.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The host that a user has named.
    pub fn find_named(&self, name: &str) -> Result<&Host> {
        self.hosts.iter().find(|host| host.name == name).ok_or_else(|| {
            let names = || self.hosts.iter().map(|host| host.name.as_str());
            let error = Error::usage(format!("the cluster {} has no host {name}", self.cluster));
            match kconfig::suggest(name, names()) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error.hint(format!("hosts: {}", names().collect::<Vec<_>>().join(", "))),
            }
        })
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Result<&Host> {
        let missing = || Error::bug(format!("{FILE} has no host {name:?}"));
        self.hosts.iter().find(|host| host.name == name).ok_or_else(missing)
    }
}

impl Document for Inventory {
    const SCHEMA: &'static str = SCHEMA;
    const WHAT: &'static str = "the inventory of the provision phase";
    const REMEDY: &'static str = "turnup provision (a file of your own: docs/baremetal.md shows the form)";
    const CLASS: Class = Class::Config;

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("cluster", "dns-label"),
            ("target", "dns-label"),
            ("api.host", "host"),
            ("api.internal_host", "host"),
            ("hosts[].name", "dns-label"),
            ("hosts[].role", ROLES),
            ("hosts[].address", "ip"),
            ("hosts[].group", "empty or dns-label"),
            ("hosts[].instance", "id"),
            ("hosts[].ssh.user", "login-name"),
            // Empty where it is not learnt yet.
            ("hosts[].ssh.host_key", "empty or host-key"),
            ("hosts[].ssh.jump.host", "host or ip"),
            ("hosts[].ssh.jump.user", "login-name"),
            ("hosts[].ssh.jump.host_key", "empty or host-key"),
            ("hosts[].blobs", "empty or host-path"),
            ("hosts[].external_address", "ip"),
            ("hosts[].zone", "label-value"),
            ("hosts[].labels", "map(label-key, label-value)"),
            ("hosts[].taints", "list(taint)"),
            ("hosts[].etcd_device", "empty or device"),
            ("groups[].name", "dns-label"),
            ("groups[].role", ROLES),
            ("volumes[].name", "id"),
            ("volumes[].zone", "label-value"),
            ("volumes[].etcd", "dns-label"),
            ("volumes[].member", "dns-label"),
            ("volumes[].id", "id"),
        ])
        .with("hosts[].etcd_volume", volume::Volume::fields())
    }

    fn check(&self, path: &str) -> Result<()> {
        if self.api.port == 0 {
            return Err(Error::config(format!("{path}: api needs a port")).hint("\"port\": 6443"));
        }
        match self.control_planes().count() {
            0 => return Err(no_control_plane(path)),
            count if count > MOST_CONTROL_PLANES => {
                let message = format!("{path}: {count} hosts have the role control-plane");
                return Err(Error::config(message)
                    .hint(format!("give it to {MOST_CONTROL_PLANES} at most, and to an odd number")));
            }
            _ => {}
        }
        let mut seen = BTreeSet::new();
        for host in &self.hosts {
            if !seen.insert(host.name.clone()) || !seen.insert(host.address.to_string()) {
                return Err(Error::config(format!("{path}: host {} repeats a name or an address", host.name)));
            }
            if host.ssh.port == 0 {
                return Err(Error::config(format!("{path}: host {} needs ssh.port", host.name)).hint("\"port\": 22"));
            }
            host.check(path)?;
        }
        Ok(())
    }
}

impl Host {
    /// What is wrong with this host alone.
    fn check(&self, path: &str) -> Result<()> {
        let name = &self.name;
        if self.address.is_ipv6() {
            let message = format!("{path}: host {name} has the IPv6 address {}", self.address);
            return Err(Error::config(message)
                .evidence("pods, Services and the routes between hosts of this version are IPv4 alone")
                .hint(format!("give {name} an IPv4 address at which the other hosts reach it")));
        }
        let keys = [(self.ssh_address().to_string(), self.ssh.port, "ssh.host_key", &self.ssh.host_key)];
        let jump =
            self.ssh.jump.as_ref().map(|jump| (jump.host.clone(), jump.port, "ssh.jump.host_key", &jump.host_key));
        for (host, port, field, key) in keys.into_iter().chain(jump) {
            if key.is_empty() {
                let error = Error::config(format!("{path}: host {name} has no {field}"));
                return Err(error.hint(scan_command(&host, port)));
            }
        }
        if self.ssh.jump.as_ref().is_some_and(|jump| jump.port == 0) {
            return Err(Error::config(format!("{path}: host {name} needs ssh.jump.port")).hint("\"port\": 22"));
        }
        if let Some(label) = self.labels.keys().find(|label| is_reserved_label(label)) {
            return Err(Error::config(format!("{path}: host {name} has the label {label}, which is reserved")).hint(
                "zone is a field of its own; roles, names and platforms are labelled by turnup and the kubelet",
            ));
        }
        self.check_disk(path)
    }

    fn check_disk(&self, path: &str) -> Result<()> {
        if self.etcd_disk().is_none() {
            return Ok(());
        }
        let name = &self.name;
        let field = if self.etcd_volume.is_some() { "etcd_volume" } else { "etcd_device" };
        if self.role != Role::ControlPlane {
            return Err(Error::config(format!("{path}: host {name} has an {field}, but runs no etcd"))
                .hint(format!("leave {field} out")));
        }
        if self.etcd_volume.is_some() && !self.etcd_device.is_empty() {
            return Err(Error::config(format!("{path}: host {name} has an etcd_device and an etcd_volume"))
                .hint("leave etcd_device out: the device follows from the volume"));
        }
        Ok(())
    }
}

/// Labels that turnup, the kubelet or the zone's own field decide.
#[must_use]
pub fn is_reserved_label(key: &str) -> bool {
    let prefixes = ["node-role.kubernetes.io/", "turnup.dev/", "kubernetes.io/", "beta.kubernetes.io/"];
    key == ZONE_LABEL || prefixes.iter().any(|prefix| key.starts_with(prefix))
}

/// The command that shows a host's public key.
#[must_use]
pub fn scan_command(host: &str, port: u16) -> String {
    let port = if port == 22 { String::new() } else { format!(" -p {port}") };
    format!("ssh-keyscan -t ed25519{port} {host}")
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
            r#"{{"name":"{name}","role":"{role}","address":"{address}","instance":"i","ssh":{{"user":"root","port":22,"host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}}}"#
        )
    }

    fn with(host: &str, field: &str) -> String {
        host.replacen('{', &format!("{{{field},"), 1)
    }

    #[test]
    fn a_disk_of_etcds_own_survives_the_way() {
        let master = host("m", "control-plane", "10.0.0.10");
        let disk = |host: &str| Inventory::parse("f", &text(host)).unwrap().hosts[0].etcd_disk();
        assert_eq!(disk(&master), None);
        assert_eq!(disk(&with(&master, r#""etcd_device":"/dev/sdb""#)), Some(Disk::Device("/dev/sdb".into())));
        let inventory =
            text(&with(&master, r#""etcd_volume":{"cloud":"gce","id":"projects/p/zones/z/disks/d","name":"d"}"#));
        let inventory = Inventory::parse("f", &inventory).unwrap();
        assert_eq!(Inventory::parse("f", &inventory.render().unwrap()).unwrap(), inventory);
        assert_eq!(inventory.hosts[0].etcd_disk().unwrap().to_string(), "the volume d (projects/p/zones/z/disks/d)");
    }

    #[test]
    fn control_plane_comes_first_and_text_survives() {
        let hosts = [host("w", "worker", "10.0.0.20"), host("m", "control-plane", "10.0.0.10")].join(",");
        let inventory = Inventory::parse("f", &text(&hosts)).unwrap();
        assert_eq!(inventory.hosts[0].name, "m");
        assert_eq!(Inventory::parse("f", &inventory.render().unwrap()).unwrap(), inventory);
    }

    #[test]
    fn refuses_what_bootstrap_could_not_use() {
        let master = host("m", "control-plane", "10.0.0.10");
        for (hosts, expected) in [
            (host("w", "worker", "10.0.0.20"), "no host has the role control-plane"),
            (
                (1..=8)
                    .map(|at| host(&format!("m{at}"), "control-plane", &format!("10.0.0.{at}")))
                    .collect::<Vec<_>>()
                    .join(","),
                "8 hosts have the role control-plane",
            ),
            (format!("{master},{}", host("w", "worker", "10.0.0.10")), "repeats a name or an address"),
            (format!("{master},{}", host("W", "worker", "10.0.0.20")), "hosts[1].name: `W` has capital letters"),
            (
                master.replace("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ""),
                "has no ssh.host_key",
            ),
            (master.replace("\"instance\"", "\"instanec\""), "unknown field `instanec`"),
            (with(&master, r#""etcd_device":"sdb""#), "hosts[0].etcd_device of m: `sdb` is not valid"),
            (
                with(&master, r#""etcd_volume":{"cloud":"aws","id":"x y","name":"n"}"#),
                "hosts[0].etcd_volume.id of n: `x y` is not valid; expected an id",
            ),
            (
                with(&master, r#""etcd_device":"/dev/sdb","etcd_volume":{"cloud":"aws","id":"vol-1","name":"n"}"#),
                "has an etcd_device and an etcd_volume",
            ),
            (
                format!("{master},{}", with(&host("w", "worker", "10.0.0.20"), r#""etcd_device":"/dev/sdb""#)),
                "host w has an etcd_device, but runs no etcd",
            ),
        ] {
            let error = Inventory::parse("f.json", &text(&hosts)).unwrap_err();
            assert!(error.message().contains(expected), "{} / {expected}", error.message());
        }
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        let whole = include_str!("../tests/fixtures/inventory/whole.json");
        document::hostile::try_every_text::<Inventory>(&serde_json::from_str(whole).unwrap());
    }
}
