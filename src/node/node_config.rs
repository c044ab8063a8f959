//! The node config of one node: every artifact, file, unit and kernel setting, with nothing left to
//! decide.
//!
//! `bootstrap` computes it, `node-config/<node>.json` keeps it for the user to read, `turnup node
//! up` applies it. Secrets are named in it with their digest; their bytes travel apart from it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::document::{self, Document, Fields};
use crate::error::{Class, Result};
use crate::input;
use crate::inventory::volume::Volume;
use crate::inventory::{Disk, Role};

/// The schema that this version writes and reads.
pub(crate) const SCHEMA: &str = "turnup.node-config/1";
/// Where the host keeps the configuration that was applied last.
pub(crate) const HOST_FILE: &str = "/var/lib/turnup/node-config.json";
/// The unit that mounts [`NodeConfig::mounts`] at every boot.
pub(crate) const MOUNTS_UNIT: &str = "turnup-mounts.service";
/// The unit that keeps the host as its node config says.
pub(crate) const AGENT_UNIT: &str = "turnup-agent.service";
/// The unit with which one of several control-plane hosts reaches its own API server at the address
/// of all of them.
pub(crate) const API_UNIT: &str = "turnup-api.service";
/// The unit by which a node reaches all API servers.
pub(crate) const BALANCER_UNIT: &str = "turnup-balancer.service";
/// The unit that keeps the names of the API server in a DNS zone.
pub(crate) const DNS_UNIT: &str = "turnup-dns.service";
/// The unit with which a control-plane host approves requests of kubelets whose hosts join by
/// themselves.
pub(crate) const CSR_APPROVER_UNIT: &str = "turnup-csr-approver.service";
/// The unit with which a control-plane host keeps addons as they were applied.
pub(crate) const ADDON_MANAGER_UNIT: &str = "turnup-addon-manager.service";
/// The unit that tells the API server of its host which machine shows a token.
pub(crate) const MACHINE_AUTHENTICATOR_UNIT: &str = "turnup-machine-authenticator.service";
/// The unit that answers probes of the API server: kubelet's and those of load balancers.
pub(crate) const HEALTHCHECK_UNIT: &str = "turnup-healthcheck.service";
/// The unit that takes a backup of etcd; its timer starts it.
pub(crate) const BACKUP_SERVICE: &str = "turnup-backup.service";
/// When that is.
pub(crate) const BACKUP_TIMER: &str = "turnup-backup.timer";
/// The unit that loads the host's nftables rules.
pub(crate) const FIREWALL_UNIT: &str = "turnup-firewall.service";
/// The unit that makes the host trust the authority of the proxy.
pub(crate) const TRUST_UNIT: &str = "turnup-trust.service";
/// The certificate of that authority.
pub(crate) const PROXY_AUTHORITY: &str = "/etc/turnup/proxy-ca.crt";
/// The container runtime: the one unit of turnup's that needs nothing of the cluster.
pub(crate) const CONTAINERD: &str = "containerd.service";
/// Where artifacts lie on a host that has none of its own; each file is named by its sha256.
pub(crate) const HOST_BLOBS: &str = "/var/lib/turnup/blobs";

/// Everything about one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The Node's name.
    pub node: String,
    /// What it is for.
    pub role: Role,
    /// The version of Kubernetes, without `v`.
    pub kubernetes_version: String,
    /// The folders in which artifacts may lie, named by their sha256, in the order to look.
    pub blobs: Vec<String>,
    /// System users.
    pub users: Vec<User>,
    /// TCP ports that nothing else may listen on when the node is made.
    pub ports: Vec<u16>,
    /// Packages of the host's distribution, `NAME` or `NAME=VERSION`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Kernel modules that must be loaded or built in.
    pub modules: Vec<String>,
    /// Kernel settings by name.
    pub sysctls: BTreeMap<String, String>,
    /// Addresses by the names of turnup's lines in `/etc/hosts`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_hosts: BTreeMap<String, IpAddr>,
    /// Directories that programs fill and that go with the node, besides the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_directories: Vec<String>,
    /// The networks of pods, in CIDR form: whatever leads into them is removed with the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_networks: Vec<String>,
    /// Disks of the node's own and where they are mounted, before anything starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Directories with their modes.
    pub directories: Vec<Directory>,
    /// Binaries and where they go.
    pub binaries: Vec<Binary>,
    /// Files with their contents.
    pub files: Vec<File>,
    /// The way out of the hosts' network, where there is none without a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Where and how containerd keeps what it has.
    #[serde(default)]
    pub runtime: Runtime,
    /// Images that containerd must have before kubelet starts, and those that can follow.
    pub images: Vec<Image>,
    /// systemd units, in the order to start them.
    pub units: Vec<Unit>,
    /// URLs on the host itself that must answer 200 before the work is done, with the milestone
    /// that this is.
    pub health: Vec<Health>,
}

/// A system user with a group of the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name of both.
    pub name: String,
    /// The number of both.
    pub id: u32,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Absolute.
    pub path: String,
    /// Permission bits, decimal in JSON.
    pub mode: u32,
    /// Numeric user and group.
    pub owner: u32,
}

/// The HTTP proxy of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// For `http://`; empty where that is reached directly.
    pub http: String,
    /// For `https://`; empty where that is reached directly.
    pub https: String,
    /// What is reached directly, as Go's programs read `NO_PROXY`.
    pub direct: Vec<String>,
}

/// What containerd and its containers rest on: a node on which one of it changes has to be made
/// again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// containerd's root directory, absolute.
    pub root: String,
    /// `overlayfs` or `native`.
    pub snapshotter: String,
    /// `systemd` or `cgroupfs`; empty where an older turnup did not write it.
    pub cgroup_driver: String,
    /// kubelet's root directory, absolute; empty where an older turnup did not write it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubelet_root: String,
}

impl Default for Runtime {
    /// What nodes of older versions of turnup have.
    fn default() -> Self {
        let unknown = String::new;
        let (root, snapshotter) = ("/var/lib/containerd".into(), "overlayfs".into());
        Self { root, snapshotter, cgroup_driver: unknown(), kubelet_root: unknown() }
    }
}

impl Runtime {
    /// The setting by which the other one differs, and the value of each.
    #[must_use]
    pub fn find_difference<'r>(&'r self, other: &'r Self) -> Option<(&'static str, &'r str, &'r str)> {
        let all = [
            ("phase2.runtime.data_dir", self.root.as_str(), other.root.as_str()),
            ("phase2.runtime.snapshotter", &self.snapshotter, &other.snapshotter),
            ("phase2.runtime.cgroup_driver", &self.cgroup_driver, &other.cgroup_driver),
            ("phase2.host.data_dir", &self.kubelet_root, &other.kubelet_root),
        ];
        all.into_iter().find(|(_, one, other)| one != other && !one.is_empty() && !other.is_empty())
    }
}

/// A disk and where its file system is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// What is mounted: ext4 with the label below. A blank one is formatted, one with anything else
    /// on it refused.
    pub disk: Disk,
    /// Absolute; nothing else lies there.
    pub path: String,
    /// Permission bits of its root, decimal in JSON.
    pub mode: u32,
    /// Numeric user and group of its root.
    pub owner: u32,
    /// The file system's label: another cluster's disk has another one. At most 16 bytes, as ext4
    /// has them.
    pub label: String,
    /// Whose data is on it, in one line: kept on the disk itself. Data of another owner is refused,
    /// for a cluster of the same name is another one once its keys are gone.
    pub belongs_to: String,
    /// The directory in which the same data lies on a node without the disk. While something is in
    /// it, an empty disk is refused.
    pub instead_of: String,
    /// Whether the disk keeps what makes a machine this host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_identity: bool,
}

impl Mount {
    /// The formats of its texts.
    pub(super) fn fields() -> Fields {
        let own = Fields::new(&[
            ("disk.device", "device"),
            ("path", "host-path"),
            ("label", "word"),
            ("belongs_to", "text"),
            ("instead_of", "host-path"),
        ]);
        own.with("disk.volume", Volume::fields())
    }
}

/// A binary from the artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binary {
    /// The artifact's name, for messages.
    pub name: String,
    /// The sha256 of its bytes.
    pub sha256: String,
    /// How many bytes it has, when that is known: no mirror may send more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Absolute.
    pub path: String,
}

/// A file, or what the user wants in the place of one: a link, a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Absolute.
    pub path: String,
    /// Permission bits, decimal in JSON.
    pub mode: u32,
    /// Numeric user and group.
    pub owner: u32,
    /// A user of the host by name, in place of that number, with its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A group of the host by name, in place of that of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What is in it.
    pub content: Content,
    /// Written only when it is missing, or no symbolic link where one is wanted: from then on the
    /// host itself changes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub initial: bool,
    /// Units of other programs that are restarted when it changes, if they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<String>,
    /// Written only on a host that has this file: by it a program is known that may not be there,
    /// or a host that has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_with: Option<String>,
}

impl File {
    /// One that turnup writes and keeps as it is.
    #[must_use]
    pub fn new(path: &str, mode: u32, owner: u32, content: Content) -> Self {
        let (path, restarts) = (path.to_owned(), Vec::new());
        Self { path, mode, owner, user: None, group: None, content, initial: false, restarts, only_with: None }
    }

    /// Whether it is for this host as it is now.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.only_with.as_ref().is_none_or(|program| Path::new(program).exists())
    }
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// This text.
    Text(String),
    /// This value as YAML ([`yaml::render`](super::yaml::render)).
    Yaml(serde_json::Value),
    /// These bytes, which are no text, in base64.
    Base64(String),
    /// What the host itself fetches.
    Url {
        /// `http://` or `https://`.
        url: String,
        /// The sha256 that it must have.
        sha256: String,
    },
    /// A symbolic link to this path, which is absolute.
    Symlink(String),
    /// Files of others: this is a directory.
    Directory {},
    /// A secret that is sent apart.
    Secret {
        /// Its name among the secrets.
        name: String,
        /// The sha256 of its bytes.
        sha256: String,
    },
}

/// An image for containerd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The reference that pods use.
    pub reference: String,
    /// The sha256 of the archive.
    pub sha256: String,
    /// How many bytes it has, when that is known: no mirror may send more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whether kubelet has to wait for it.
    pub first: bool,
    /// Its name in the archive, where nodes are to know it by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<String>,
    /// Further references of the same archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<String>,
}

impl Image {
    /// All references that nodes know it by.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.reference).chain(&self.further).map(String::as_str)
    }
}

/// A systemd unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// The file name.
    pub name: String,
    /// The file's text.
    pub text: String,
    /// Permission bits of the file, decimal in JSON.
    pub mode: u32,
    /// Files and binaries whose change restarts it.
    pub restart_on: Vec<String>,
    /// Whether it takes such a change, and one of its own text, with a reload: it never stops for
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reloads: bool,
}

impl Unit {
    /// The mode of unit files (CIS 4.1.1).
    pub const MODE: u32 = 0o600;
}

/// A health check on the host itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// What answers.
    pub name: String,
    /// `http://127.0.0.1:PORT/PATH`.
    pub url: String,
    /// Where its log lies when it does not answer: a folder below `/var/log/pods` begins with this.
    pub pod: String,
}

impl Unit {
    /// Whether it has to restart after these changes. The plan and `turnup node up` share this one
    /// answer.
    pub fn depends_on_any(&self, is_changed: impl Fn(&str) -> bool) -> bool {
        self.restart_on.iter().any(|file| is_changed(file))
    }
}

/// How many of these units need nothing of the cluster: containerd, and what it waits for.
#[must_use]
pub(crate) fn count_early(units: &[Unit]) -> usize {
    units.iter().position(|unit| unit.name == CONTAINERD).map_or(0, |at| at + 1)
}

impl Document for NodeConfig {
    const SCHEMA: &'static str = SCHEMA;
    const WHAT: &'static str = "the node config";
    const REMEDY: &'static str = "turnup bootstrap (recreates it)";
    const CLASS: Class = Class::Permanent;

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("node", "dns-label"),
            ("role", "word"),
            ("kubernetes_version", "semver"),
            ("blobs[]", "host-path"),
            ("users[].name", "user-name"),
            ("packages[]", "word"),
            ("modules[]", "word"),
            ("sysctls.*", "text"),
            ("extra_hosts.*", "ip"),
            ("shared_directories[]", "host-path"),
            ("pod_networks[]", "cidr"),
            ("directories[].path", "host-path"),
            ("binaries[].name", "word"),
            ("binaries[].sha256", "text"),
            ("binaries[].path", "host-path"),
            ("files[].path", "host-path"),
            ("files[].user", "login-name"),
            ("files[].group", "login-name"),
            ("files[].content.text", "content"),
            ("files[].content.yaml", "content"),
            ("files[].content.base64", "content"),
            ("files[].content.symlink", "host-path"),
            ("files[].content.url.url", "url"),
            ("files[].content.url.sha256", "sha256"),
            ("files[].content.secret.name", "word"),
            ("files[].content.secret.sha256", "text"),
            ("files[].restarts[]", "word"),
            ("files[].only_with", "host-path"),
            ("runtime.kubelet_root", "host-path"),
            ("proxy.http", "empty or url"),
            ("proxy.https", "empty or url"),
            ("proxy.direct[]", "word"),
            ("runtime.root", "host-path"),
            ("runtime.snapshotter", "enum(overlayfs, native)"),
            ("runtime.cgroup_driver", "empty or enum(systemd, cgroupfs)"),
            ("images[].reference", "text"),
            ("images[].sha256", "text"),
            ("images[].archived", "text"),
            ("images[].further[]", "text"),
            ("units[].name", "word"),
            ("units[].text", "content"),
            ("units[].restart_on[]", "host-path"),
            ("health[].name", "text"),
            ("health[].url", "url"),
            ("health[].pod", "word"),
        ])
        .with("mounts[]", Mount::fields())
    }
}

impl NodeConfig {
    /// Parses and checks one; `path` is only for the message.
    pub fn parse(path: &str, text: &str) -> Result<Self> {
        document::parse(path, text)
    }

    /// What was applied to this host to the end last; nothing before that.
    pub(super) fn read_applied() -> Result<Option<Self>> {
        let applied = input::read_text(Path::new(HOST_FILE), input::DOCUMENT).ok();
        applied.map(|text| Self::parse(HOST_FILE, &text)).transpose()
    }

    /// The directories of the user's own.
    pub(super) fn own_directories(&self) -> impl Iterator<Item = &str> {
        let directories = self.files.iter().filter(|file| file.content == Content::Directory {});
        directories.map(|file| file.path.as_str())
    }

    /// The paths of files and binaries that are not the same in both configurations, or only in one
    /// of them.
    #[must_use]
    pub fn find_changed<'c>(&'c self, other: &'c Self) -> BTreeSet<&'c str> {
        let one_way = |from: &'c Self, to: &'c Self| {
            let files = from.files.iter().filter(|file| !to.files.contains(file)).map(|file| file.path.as_str());
            let binaries = from.binaries.iter().filter(|binary| !to.binaries.contains(binary));
            files.chain(binaries.map(|binary| binary.path.as_str())).collect::<Vec<_>>()
        };
        one_way(self, other).into_iter().chain(one_way(other, self)).collect()
    }

    /// Those units that are not turnup's own and have to restart after these changes.
    pub fn find_restarts(&self, is_changed: impl Fn(&str) -> bool) -> BTreeSet<&str> {
        let changed = self.files.iter().filter(|file| is_changed(&file.path));
        changed.flat_map(|file| &file.restarts).map(String::as_str).collect()
    }

    /// Whether an artifact lies on this host.
    #[must_use]
    pub fn has_blob(&self, sha256: &str) -> bool {
        self.blobs.iter().any(|dir| Path::new(dir).join(sha256).is_file())
    }

    /// What people call the artifact with this sha256.
    #[must_use]
    pub fn name_of(&self, sha256: &str) -> &str {
        let binary = self.binaries.iter().find(|binary| binary.sha256 == sha256).map(|binary| binary.name.as_str());
        let image = || self.images.iter().find(|image| image.sha256 == sha256).map(|image| image.reference.as_str());
        binary.or_else(image).unwrap_or_default()
    }

    /// How many bytes the artifact with this sha256 has, when that is known.
    #[must_use]
    pub fn size_of(&self, sha256: &str) -> Option<u64> {
        let binary = self.binaries.iter().find(|binary| binary.sha256 == sha256).map(|binary| binary.size);
        let image = || self.images.iter().find(|image| image.sha256 == sha256).map(|image| image.size);
        binary.or_else(image).flatten()
    }

    /// The artifacts that the node needs, by sha256.
    pub fn artifacts(&self) -> impl Iterator<Item = &str> {
        let binaries = self.binaries.iter().map(|binary| binary.sha256.as_str());
        binaries.chain(self.images.iter().map(|image| image.sha256.as_str()))
    }
}

/// One with every text that there is.
#[cfg(test)]
pub(crate) fn sample() -> serde_json::Value {
    serde_json::json!({
        "schema": SCHEMA, "node": "w", "role": "worker", "kubernetes_version": "1.36.3", "blobs": ["/var/blobs"],
        "users": [{"name": "etcd", "id": 1}], "ports": [1], "packages": ["jq=1"], "modules": ["overlay"], "sysctls": {"a.b": "1"},
        "extra_hosts": {"a.example": "192.0.2.1"}, "shared_directories": ["/data/kubelet"],
        "pod_networks": ["10.0.0.0/16"],
        "mounts": [
            {"disk": {"device": "/dev/sdb"}, "path": "/var/lib/etcd", "mode": 448, "owner": 1, "label": "c", "belongs_to": "c x", "instead_of": "/var/old"},
            {"disk": {"volume": {"cloud": "any", "id": "vol-1", "name": "v"}}, "path": "/v", "mode": 448, "owner": 1, "label": "c", "belongs_to": "c x", "instead_of": "/w"},
        ],
        "directories": [{"path": "/etc/a", "mode": 448, "owner": 0}],
        "binaries": [{"name": "kubelet", "sha256": "0", "path": "/opt/kubelet"}],
        "files": [
            {"path": "/etc/b", "mode": 384, "owner": 0, "user": "root", "group": "adm", "content": {"text": "a\n"}, "restarts": ["a.service"], "only_with": "/usr/bin/a"},
            {"path": "/etc/c", "mode": 384, "owner": 0, "content": {"base64": "YQ=="}},
            {"path": "/etc/d", "mode": 384, "owner": 0, "content": {"url": {"url": "https://a.example/b", "sha256": "0".repeat(64)}}},
            {"path": "/etc/g", "mode": 384, "owner": 0, "content": {"symlink": "/etc/f"}},
            {"path": "/etc/h", "mode": 493, "owner": 0, "content": {"directory": {}}},
            {"path": "/etc/f", "mode": 384, "owner": 0, "content": {"yaml": "a: b"}},
            {"path": "/etc/e", "mode": 384, "owner": 0, "content": {"secret": {"name": "s", "sha256": "0"}}},
        ],
        "proxy": {"http": "http://192.0.2.1:3128", "https": "http://192.0.2.1:3128", "direct": ["10.0.0.0/8"]},
        "runtime": {"root": "/var/lib/containerd", "snapshotter": "overlayfs", "cgroup_driver": "systemd", "kubelet_root": "/var/lib/kubelet"},
        "images": [{"reference": "a", "sha256": "0", "first": true, "archived": "b", "further": ["c"]}],
        "units": [{"name": "a.service", "text": "[Unit]\n", "mode": 420, "restart_on": ["/etc/b"]}],
        "health": [{"name": "etcd", "url": "http://127.0.0.1:2381/health", "pod": "etcd"}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        document::hostile::try_every_text::<NodeConfig>(&sample());
    }
}
