//! What makes a machine the control-plane host that it is, kept on the volume of its etcd: the node
//! config that was applied last, its secrets, the host's SSH keys, kubelet's certificate, and which
//! cluster of etcd the member belongs to. A machine that replaces another one finds the volume and
//! is the same host, without an operator.
//!
//! The volume is mounted for a look, read-only, and let go of; mounting it for good is
//! [`mounts`](super::mounts)'. Nothing here attaches a volume or starts a program of the node.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::document::{self, Document, Fields};
use crate::error::{Context as _, Error, Result};
use crate::failpoint;
use crate::input;

use super::disk::{Device, Judged, mounted_at, mounts_of, names_in};
use super::facts::CLIENT_CERTIFICATE;
use super::layout::{ETCD_RECORD, IDENTITY, KUBELET_PKI};
use super::node_config::{Content, Mount, NodeConfig};
use super::{own_place, static_pod, systemd, task};

/// Where the volume is mounted for a look.
const LOOK: &str = "/run/turnup-identity";
/// Where sshd has its keys, and how their names begin.
const SSH: (&str, &str) = ("/etc/ssh", "ssh_host_");
/// The units of sshd, by distribution.
const SSH_UNITS: [&str; 2] = ["ssh.service", "sshd.service"];

/// The content of [`IDENTITY`]. The user of etcd, who owns the root of the volume, can make no file
/// there that root owns.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostIdentity {
    /// Always [`HostIdentity::SCHEMA`](Document::SCHEMA).
    schema: String,
    /// What was applied to the end last.
    pub(super) node_config: NodeConfig,
    /// The secrets of that, by name, base64.
    pub(super) secrets: BTreeMap<String, Zeroizing<String>>,
    /// What the host itself has made or changed since.
    files: Vec<KeptFile>,
}

/// A file that no node config has.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptFile {
    path: String,
    /// Permission bits, decimal in JSON.
    mode: u32,
    content: KeptContent,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptContent {
    Base64(Zeroizing<String>),
    Symlink(String),
}

impl Document for HostIdentity {
    const SCHEMA: &'static str = "turnup.host-identity/1";
    const WHAT: &'static str = "what makes a machine the control-plane host that it is";
    const REMEDY: &'static str = "turnup up (delivers everything again)";

    fn fields() -> Fields {
        let own = Fields::new(&[
            ("schema", "text"),
            ("secrets.*", "content"),
            ("files[].path", "host-path"),
            ("files[].content.base64", "content"),
            ("files[].content.symlink", "host-path"),
        ]);
        own.with("node_config", NodeConfig::fields())
    }
}

/// Writes what this host is to its volume where that differs from what is there. Does nothing on a
/// host without such a volume, while that is not mounted, and while the host is not as this node
/// config says: what is there is good, then, and better.
pub(super) fn keep(node_config: &NodeConfig) -> Result<()> {
    let Some(mount) = find_mount(node_config).filter(|mount| mounted_at(&mount.path).is_ok_and(|at| at.is_some()))
    else {
        return Ok(());
    };
    let Some(identity) = HostIdentity::collect(node_config)? else { return Ok(()) };
    keep_at(&Path::new(&mount.path).join(IDENTITY), &identity)
}

fn keep_at(path: &Path, identity: &HostIdentity) -> Result<()> {
    let text = Zeroizing::new(document::render(IDENTITY, identity)?);
    let now = input::read_text(path, input::DOCUMENT).map(Zeroizing::new);
    if now.is_ok_and(|now| now == text) {
        return Ok(());
    }
    task::write_atomic(path, text.as_bytes(), 0o600, rustix::process::getuid().as_raw())
}

/// A host that is to be a node no more has no identity to come back with. `path` is where its
/// volume is mounted.
pub(super) fn forget(path: &str) -> Result<bool> {
    let file = Path::new(path).join(IDENTITY);
    if !file.exists() {
        return Ok(false);
    }
    failpoint::around(format_args!("remove {}", file.display()), || fs_err::remove_file(&file))?;
    Ok(true)
}

fn find_mount(node_config: &NodeConfig) -> Option<&Mount> {
    node_config.mounts.iter().find(|mount| mount.keeps_identity)
}

impl HostIdentity {
    /// That of this host; none while a secret is not the one that the node config has.
    fn collect(node_config: &NodeConfig) -> Result<Option<Self>> {
        let mut secrets = BTreeMap::new();
        for file in &node_config.files {
            let Content::Secret { name, sha256 } = &file.content else { continue };
            let Ok(bytes) = input::read(Path::new(&file.path), input::DOCUMENT).map(Zeroizing::new) else {
                return Ok(None);
            };
            if hex::encode(Sha256::digest(&bytes)) != *sha256 {
                return Ok(None);
            }
            secrets.insert(name.clone(), encode(&bytes));
        }
        let files = find_files().iter().filter_map(|path| read_file(path).transpose()).collect::<Result<_>>()?;
        Ok(Some(Self { schema: Self::SCHEMA.into(), node_config: node_config.clone(), secrets, files }))
    }

    /// What the volume on this device has; why not, when it has none. An error where the next look
    /// may tell more.
    pub(super) fn find(device: &Device, label: &str) -> Result<std::result::Result<Self, String>> {
        let look = Path::new(LOOK);
        // One that was killed in the middle.
        if mounted_at(LOOK)?.is_some() {
            unmount(LOOK, UnmountFlags::empty()).context(format!("cannot unmount {LOOK}"))?;
        }
        match device.judge(label)? {
            Judged::Ours(_) => {}
            Judged::Used(what) => {
                let mounted = Self::find_mounted(&mounts_of(&device.number)?, label)?;
                return mounted.map(Ok).ok_or_else(|| used(device, &what));
            }
            other => return Ok(Err(format!("on it is {}", other.describe()))),
        }
        device.check(false)?;
        fs_err::create_dir_all(look)?;
        let flags = MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
        mount(&device.path, look, "ext4", flags, None)
            .context(format!("cannot mount {} at {LOOK}", device.path.display()))?;
        let found = read_at(&look.join(IDENTITY));
        unmount(LOOK, UnmountFlags::empty()).context(format!("cannot unmount {LOOK}"))?;
        fs_err::remove_dir(look)?;
        found
    }

    /// That on a volume which is mounted at one of these places already, as where turnup was killed
    /// before the machine was the host that it is.
    fn find_mounted(places: &[String], label: &str) -> Result<Option<Self>> {
        for place in places {
            let Ok(identity) = read_at(&Path::new(place).join(IDENTITY))? else { continue };
            if find_mount(&identity.node_config).is_some_and(|mount| mount.path == *place && mount.label == label) {
                return Ok(Some(identity));
            }
        }
        Ok(None)
    }

    /// An error unless this machine has the address at which the others know the member.
    pub(super) fn require_address(&self) -> Result<()> {
        let Some(address) = static_pod::find_peer_address(&self.node_config) else { return Ok(()) };
        let address = address.ip();
        if UdpSocket::bind((address, 0)).is_ok() {
            return Ok(());
        }
        let host = &self.node_config.node;
        Err(Error::transient(format!("the volume is that of {host}, whose address {address} this machine has not"))
            .hint(format!("ip address (on the machine); when its address is another one for good: turnup up ({host} is made a node again)")))
    }

    /// Puts the files where they were, before the rest is applied; sshd gets its keys at once.
    pub(super) fn put_back(&self) -> Result<()> {
        let mut has_new_keys = false;
        for file in &self.files {
            let path = Path::new(&file.path);
            match &file.content {
                KeptContent::Symlink(target) => drop(own_place::ensure_link(path, Path::new(target), false)?),
                KeptContent::Base64(text) => {
                    let bytes = Zeroizing::new(STANDARD.decode(text.as_bytes()).context("a file is not base64")?);
                    if input::read(path, input::DOCUMENT).is_ok_and(|now| now == *bytes) {
                        continue;
                    }
                    task::write_atomic(path, &bytes, file.mode, rustix::process::getuid().as_raw())?;
                    has_new_keys |= path.starts_with(SSH.0);
                }
            }
        }
        let mut units = SSH_UNITS.into_iter().filter(|unit| has_new_keys && systemd::is("is-active", unit));
        units.try_for_each(|unit| systemd::systemctl(&["try-reload-or-restart", unit]))
    }
}

/// A volume that was just attached is looked at by others, too; one that another machine has
/// mounted must not be this one's.
fn used(device: &Device, what: &str) -> Error {
    let shown = device.path.display();
    Error::transient(format!("the volume {shown} cannot be looked at: on it is {what}"))
        .hint("on the machine: lsblk; it looks again by itself (journalctl -u turnup-node)")
}

/// The identity in this file; why not, when it has none.
fn read_at(path: &Path) -> Result<std::result::Result<HostIdentity, String>> {
    let Ok(data) = fs_err::symlink_metadata(path) else {
        return Ok(Err("it has data, and no identity of a host".into()));
    };
    let owner = rustix::process::getuid().as_raw();
    if !data.is_file() || data.uid() != owner || data.permissions().mode() & 0o077 != 0 {
        return Ok(Err(format!("its {IDENTITY} is not root's alone")));
    }
    let text = Zeroizing::new(input::read_text(path, input::DOCUMENT)?);
    Ok(match document::parse::<HostIdentity>(IDENTITY, &text) {
        Err(error) => Err(format!("its {IDENTITY} cannot be used: {}", error.message())),
        Ok(identity) => match identity.files.iter().find(|file| !is_kept(Path::new(&file.path))) {
            Some(file) => Err(format!("its {IDENTITY} has a file that belongs to none: {}", file.path)),
            None => Ok(identity),
        },
    })
}

/// The files of this host that its identity has.
fn find_files() -> Vec<PathBuf> {
    let mut names = names_in(Path::new(SSH.0));
    names.sort_unstable();
    let keys = names.iter().map(|name| Path::new(SSH.0).join(name));
    let current = Path::new(CLIENT_CERTIFICATE);
    // What kubelet has renewed, and the link that makes it count.
    let renewed = fs_err::read_link(current).ok().map(|target| Path::new(KUBELET_PKI).join(target));
    let all = keys.chain(renewed).chain([current.into(), ETCD_RECORD.into()]);
    all.filter(|path| is_kept(path)).collect()
}

fn is_kept(path: &Path) -> bool {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return false;
    };
    path == Path::new(ETCD_RECORD)
        || dir == Path::new(SSH.0) && name.starts_with(SSH.1)
        || dir == Path::new(KUBELET_PKI) && name.starts_with("kubelet-client-")
}

fn read_file(path: &Path) -> Result<Option<KeptFile>> {
    let Ok(data) = fs_err::symlink_metadata(path) else { return Ok(None) };
    let content = if data.is_symlink() {
        KeptContent::Symlink(Path::new(KUBELET_PKI).join(fs_err::read_link(path)?).display().to_string())
    } else {
        KeptContent::Base64(encode(&Zeroizing::new(input::read(path, input::KEYS)?)))
    };
    Ok(Some(KeptFile { path: path.display().to_string(), mode: data.permissions().mode() & 0o777, content }))
}

fn encode(bytes: &[u8]) -> Zeroizing<String> {
    STANDARD.encode(bytes).into()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;
    use crate::node::node_config::{File, sample};

    /// An identity with a secret that lies in this directory.
    fn config_in(dir: &Path, secret: &[u8]) -> NodeConfig {
        let mut node_config: NodeConfig = serde_json::from_value(sample()).unwrap();
        let path = dir.join("ca.key");
        fs_err::write(&path, secret).unwrap();
        let content = Content::Secret { name: "ca.key".into(), sha256: hex::encode(Sha256::digest("key")) };
        node_config.files = vec![File::new(path.to_str().unwrap(), 0o600, 0, content)];
        node_config
    }

    fn kept(path: &str) -> KeptFile {
        KeptFile { path: path.into(), mode: 0o600, content: KeptContent::Base64(encode(b"bytes")) }
    }

    #[test]
    fn what_is_kept_is_found_and_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(IDENTITY);
        let missing = read_at(&path).unwrap().err().unwrap();
        assert_eq!(missing, "it has data, and no identity of a host");
        let node_config = config_in(dir.path(), b"key");
        let identity = HostIdentity::collect(&node_config).unwrap().unwrap();
        assert_eq!(*identity.secrets["ca.key"], STANDARD.encode("key"));
        keep_at(&path, &identity).unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let written = fs_err::metadata(&path).unwrap().modified().unwrap();
        keep_at(&path, &identity).unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().modified().unwrap(), written, "nothing has changed");
        assert!(read_at(&path).unwrap().ok().unwrap() == identity);
        assert!(forget(dir.path().to_str().unwrap()).unwrap());
        assert!(!forget(dir.path().to_str().unwrap()).unwrap() && !path.exists());
    }

    #[test]
    fn a_volume_that_is_mounted_is_believed_at_its_own_place_alone() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display().to_string();
        let mut node_config = config_in(dir.path(), b"key");
        let mount = json!({"disk": {"device": "/dev/sdb"}, "path": place, "mode": 448, "owner": 0, "label": "shelf",
            "belongs_to": "shelf abc", "instead_of": "/var/lib/etcd", "keeps_identity": true});
        node_config.mounts = vec![serde_json::from_value(mount).unwrap()];
        let identity = HostIdentity::collect(&node_config).unwrap().unwrap();
        keep_at(&dir.path().join(IDENTITY), &identity).unwrap();
        let find = |places: &[&str], label| {
            let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
            HostIdentity::find_mounted(&places, label).unwrap()
        };
        assert!(find(&["/run/elsewhere", &place], "shelf").is_some_and(|found| found == identity));
        assert!(find(&[&place], "other").is_none(), "another cluster's");
        assert!(find(&[], "shelf").is_none());
        let elsewhere = dir.path().join("elsewhere");
        fs_err::create_dir(&elsewhere).unwrap();
        fs_err::rename(dir.path().join(IDENTITY), elsewhere.join(IDENTITY)).unwrap();
        assert!(find(&[&place, elsewhere.to_str().unwrap()], "shelf").is_none(), "mounted by someone else");
    }

    #[test]
    fn a_host_that_is_not_as_declared_leaves_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        assert!(HostIdentity::collect(&config_in(dir.path(), b"another key")).unwrap().is_none());
        let node_config = config_in(dir.path(), b"key");
        fs_err::remove_file(dir.path().join("ca.key")).unwrap();
        assert!(HostIdentity::collect(&node_config).unwrap().is_none());
    }

    #[test]
    fn only_what_is_root_s_alone_and_its_own_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(IDENTITY);
        let node_config = config_in(dir.path(), b"key");
        let with = |files| HostIdentity { files, ..HostIdentity::collect(&node_config).unwrap().unwrap() };
        keep_at(&path, &with(vec![kept("/etc/ssh/ssh_host_rsa_key")])).unwrap();
        assert!(read_at(&path).unwrap().is_ok());
        for mode in [0o640, 0o602, 0o604] {
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_at(&path).unwrap().err().unwrap(), "its .turnup-identity is not root's alone");
        }
        let link = dir.path().join("link");
        fs_err::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert_eq!(read_at(&link).unwrap().err().unwrap(), "its .turnup-identity is not root's alone");
        for other in ["/etc/shadow", "/etc/ssh/sshd_config", "/var/lib/kubelet/config.yaml"] {
            keep_at(&path, &with(vec![kept(other)])).unwrap();
            let why = read_at(&path).unwrap().err();
            assert_eq!(why, Some(format!("its .turnup-identity has a file that belongs to none: {other}")), "{other}");
        }
        let climbs = serde_json::to_string(&with(vec![kept("/etc/ssh/../ssh_host_key")])).unwrap();
        for broken in ["{", &climbs] {
            fs_err::write(&path, broken).unwrap();
            assert!(
                read_at(&path).unwrap().err().unwrap().starts_with("its .turnup-identity cannot be used: "),
                "{broken}"
            );
        }
    }

    #[test]
    fn the_files_that_a_host_keeps_are_few() {
        for path in [
            ETCD_RECORD,
            CLIENT_CERTIFICATE,
            "/var/lib/kubelet/pki/kubelet-client-2026-11-27-10-00-00.pem",
            "/etc/ssh/ssh_host_ed25519_key.pub",
        ] {
            assert!(is_kept(Path::new(path)), "{path}");
        }
        for path in ["/", "/etc/ssh/authorized_keys", "/var/lib/kubelet/pki/kubelet.key", "/etc/ssh/ssh_host_/x"] {
            assert!(!is_kept(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn the_address_is_that_of_the_member() {
        let mut node_config: NodeConfig = serde_json::from_value(sample()).unwrap();
        assert_eq!(static_pod::find_peer_address(&node_config), None, "no member");
        let command = ["etcd", "--initial-advertise-peer-urls=https://192.0.2.7:2380"];
        let pod = serde_json::json!({"spec": {"containers": [{"command": command}]}});
        node_config.files = vec![File::new(&crate::node::layout::manifest("etcd"), 0o600, 0, Content::Yaml(pod))];
        assert_eq!(static_pod::find_peer_address(&node_config), Some("192.0.2.7:2380".parse().unwrap()));
        let identity = HostIdentity { schema: String::new(), node_config, secrets: BTreeMap::new(), files: Vec::new() };
        insta::assert_snapshot!(identity.require_address().unwrap_err().render(), @r"
        error: the volume is that of w, whose address 192.0.2.7 this machine has not
        next: ip address (on the machine); when its address is another one for good: turnup up (w is made a node again)
        ");
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        let file = serde_json::json!({"path": "/etc/ssh/ssh_host_rsa_key", "mode": 384, "content": {"base64": "AA=="}});
        let link = serde_json::json!({"path": CLIENT_CERTIFICATE, "mode": 511, "content": {"symlink": "/var/lib/kubelet/pki/a.pem"}});
        document::hostile::try_every_text::<HostIdentity>(&serde_json::json!({
            "schema": HostIdentity::SCHEMA, "node_config": sample(), "secrets": {"ca.key": "AA=="}, "files": [file, link],
        }));
    }
}
