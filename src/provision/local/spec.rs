//! What a local host and its network consist of, as the files that Terraform hands back to `turnup
//! local …`.
//!
//! Every name of an interface, namespace, machine and cgroup comes from here, so that cleaning up
//! looks for exactly what was made.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::document::{self, Fields};
use crate::error::{Context as _, Error, Result};
use crate::exec::signals;
use crate::input;

/// The bridge of one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// The interface, at most 15 bytes.
    pub bridge: String,
    /// This machine's address on it; also the hosts' gateway.
    pub gateway: Ipv4Addr,
    /// The length of the prefix.
    pub prefix: u8,
    /// TCP ports of this machine that the hosts may reach.
    pub open_ports: Vec<u16>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// The host's name inside.
    pub name: String,
    /// The unique name of its machine, network namespace and cgroup on this machine.
    pub machine: String,
    /// The end of its veth pair that lies on the bridge, at most 15 bytes.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The network it is on.
    pub network: NetworkSpec,
    /// The folder that holds everything that is this host's own.
    pub dir: PathBuf,
    /// The read-only root that its own files lie over.
    pub root: PathBuf,
    /// The public key that may log in as root.
    pub authorized_keys: PathBuf,
    /// The host's own private key; its public half lies beside it.
    pub host_key: PathBuf,
    /// The artifact cache's blobs, seen on the host at [`BLOBS`].
    pub blobs: PathBuf,
    /// Of the load balancer of the API servers alone: the folder with its list of servers, seen on
    /// the host at [`BALANCER`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<PathBuf>,
    /// With which user data it boots, in Ignition's form: the host that is made in the place of
    /// this one takes what the file has by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<PathBuf>,
    /// Whether each machine has a name of its own, which begins with the host's: the host is one of
    /// a group, and its Node is another one every time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_group: bool,
    /// The volume that outlives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeSpec>,
    /// The most memory that it may use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The most CPU time that it may use, in thousandths of a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// Unique among those of its cluster.
    pub name: String,
    /// `cluster`, `etcd`, `member`.
    pub tags: BTreeMap<String, String>,
    /// Where its content lies on this machine.
    pub file: PathBuf,
}

/// Where a local host sees the artifact cache, read-only.
pub const BLOBS: &str = "/var/cache/turnup/blobs";

/// Where the load balancer sees its list of servers, read-only: a folder, so that a file that
/// replaces the list is seen as well.
pub const BALANCER: &str = "/etc/turnup/balancer";
/// The file in it.
pub const SERVERS: &str = "servers.json";

/// How long another process that works on the same host may take to end: its start, or an orderly
/// power-off.
const ANOTHER_CALL: Duration = Duration::from_mins(2);

impl HostSpec {
    /// Reads a spec.
    pub fn read(path: &Path) -> Result<Self> {
        read(path, &fields())
    }

    /// Its limits as one text, by which Terraform sees that they changed; empty without any.
    #[must_use]
    pub fn describe_limits(&self) -> String {
        let memory = self.memory.map(|bytes| format!("memory={bytes}"));
        let cpu = self.cpu_millis.map(|millis| format!("cpu={millis}m"));
        memory.into_iter().chain(cpu).collect::<Vec<_>>().join(" ")
    }

    /// Waits until no other process works on this host, and keeps others waiting until the file is
    /// dropped: a Terraform that was killed leaves its calls of turnup running, and the next
    /// Terraform makes them again.
    pub fn take_turn(path: &Path) -> Result<fs_err::File> {
        let file = fs_err::File::open(path)?;
        if signals::lock(&file, ANOTHER_CALL)? {
            return Ok(file);
        }
        let message = format!("another turnup works on the host of {} and does not end", path.display());
        Err(Error::transient(message).hint("look with: pgrep --full --list-full 'turnup local'"))
    }
}

impl NetworkSpec {
    /// Reads a spec.
    pub fn read(path: &Path) -> Result<Self> {
        read(path, &fields())
    }
}

/// Any of the local target's descriptions, whose texts have these formats.
pub(super) fn read<T: serde::de::DeserializeOwned>(path: &Path, fields: &Fields) -> Result<T> {
    let text = input::read_text(path, input::DOCUMENT)?;
    document::require_formats(fields, &path.display().to_string(), &text)?;
    serde_json::from_str(&text).context(format!("{} is not what `turnup provision` writes", path.display()))
}

/// The formats of a host's texts and of a network's: all of them reach programs that root runs on
/// this machine.
fn fields() -> Fields {
    let network = Fields::new(&[("bridge", "dns-label"), ("gateway", "ipv4")]);
    let host = Fields::new(&[
        ("name", "dns-label"),
        ("machine", "dns-label"),
        ("interface", "dns-label"),
        ("address", "ipv4"),
        ("dir", "path"),
        ("root", "path"),
        ("authorized_keys", "path"),
        ("host_key", "path"),
        ("blobs", "path"),
        ("balancer", "path"),
        ("user_data", "path"),
        ("volume.name", "dns-label"),
        ("volume.tags.*", "dns-label"),
        ("volume.file", "path"),
    ]);
    host.with("network", network.clone()).and(network)
}

/// Six hexadecimal digits that tell this cluster's interfaces and machines from those of a cluster
/// in another directory.
#[must_use]
pub fn cluster_id(cluster_dir: &Path) -> String {
    let digest = Sha256::digest(cluster_dir.as_os_str().as_encoded_bytes());
    hex::encode(&digest[..3])
}
