//! Disks of the node's own: attached, checked, formatted when blank, mounted before anything
//! starts, at every boot again, grown when their device has, and let go of with the node. What is
//! on them is never erased.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::atomic_file;
use crate::change::{Change, Verb};
use crate::document::{self, Fields};
use crate::error::{Context as _, Error, Result};
use crate::failpoint;
use crate::input;
use crate::inventory::Disk;

use super::disk::{Device, Judged, forget_formatting, mounted_at, names_in, refuse};
use super::event::{NodeEvent, Tell};
use super::node_config::{Directory, Mount};
use super::{layout, task, volume_attach};

/// What was mounted last, for the next boot; below turnup's own directory.
const FILE: &str = "/var/lib/turnup/mounts.json";
/// How long a disk that is named may take to appear.
const APPEARS: Duration = Duration::from_mins(1);
/// On the disk: whose data is on it.
const OWNER: &str = ".turnup-owner";
/// How the names begin that are in the root of a disk without data: what an ext4 has, and ours,
/// also half written.
const NO_DATA: [&str; 4] = ["lost+found", OWNER, layout::IDENTITY, atomic_file::PREFIX];

/// What happens to a blank disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blank {
    Format,
    /// A disk was mounted there before: the one with the data is another one.
    Refuse,
}

/// All mounts as they should be, now and at every boot.
pub(super) fn ensure(mounts: &[Mount], tell: Tell<'_>) -> Result<()> {
    let known = read()?;
    if let Some(gone) = known.iter().find(|known| !mounts.iter().any(|mount| mount.path == known.path)) {
        return Err(abandoned(gone));
    }
    for mount in mounts {
        let is_known = known.iter().any(|known| known.path == mount.path);
        ensure_mount(mount, if is_known { Blank::Refuse } else { Blank::Format }, tell)?;
        require_moved(mount)?;
    }
    if known == mounts {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(mounts).context("cannot write the mounts")?;
    task::write_atomic(Path::new(FILE), text.as_bytes(), 0o600, 0)
}

/// `turnup node mount`, which a unit runs at every boot: what was mounted last. Formats nothing;
/// one [`NodeEvent`] a line goes to `out`.
pub(crate) fn run(out: &mut dyn Write) -> Result<()> {
    let mut tell = |report: NodeEvent| report.write(out);
    read()?.iter().try_for_each(|mount| ensure_mount(mount, Blank::Refuse, &mut tell))
}

/// What was mounted last; nothing on a host without such disks.
fn read() -> Result<Vec<Mount>> {
    if !Path::new(FILE).exists() {
        return Ok(Vec::new());
    }
    let text = input::read_text(Path::new(FILE), input::DOCUMENT)?;
    document::require_formats(&Fields::default().with("[]", Mount::fields()), FILE, &text)?;
    let mounts = serde_json::from_str(&text);
    mounts.map_err(|error| Error::precondition(format!("{FILE} is damaged")).source(error).hint("turnup bootstrap"))
}

fn ensure_mount(mount: &Mount, blank: Blank, tell: Tell<'_>) -> Result<()> {
    let device = find_device(&mount.disk, tell)?;
    if let Some(number) = mounted_at(&mount.path)? {
        if number != device.number {
            return Err(occupied(mount, &number));
        }
        claim(mount)?;
        if device.has_grown()? {
            tell(match device.grow() {
                Ok(()) => NodeEvent::Changed(fills(mount)),
                Err(error) => NodeEvent::Waiting(format!(
                    "{} has grown; its file system will at the next boot: {}",
                    mount.disk,
                    error.message()
                )),
            })?;
        }
    } else {
        require_bare(mount)?;
        prepare(&device, mount, blank, tell)?;
        if device.check(false)? {
            tell(NodeEvent::Changed(format!("file system on {} mended by fsck", mount.disk)))?;
        }
        // Only root can write there while the disk is away.
        task::ensure_directory(&Directory { path: mount.path.clone(), mode: 0, owner: 0 })?;
        failpoint::around(format_args!("mount {}", mount.path), || attach_tree(&device.path, &mount.path))?;
        if let Err(error) = claim(mount) {
            unmount(mount.path.as_str(), UnmountFlags::DETACH).context(format!("cannot unmount {}", mount.path))?;
            return Err(error);
        }
        // Not before it is known whose it is.
        if device.has_grown()? {
            tell(if grow(&device, mount)? {
                NodeEvent::Changed(fills(mount))
            } else {
                NodeEvent::Waiting(format!("{} has grown, and its file system cannot: resize2fs says why", mount.disk))
            })?;
        }
        tell(NodeEvent::Changed(format!("mount {} of {}", mount.path, mount.disk)))?;
    }
    task::ensure_directory(&Directory { path: mount.path.clone(), mode: mount.mode, owner: mount.owner }).map(drop)
}

/// Grows a file system that was just mounted to the size of its device, which the operator may have
/// enlarged. Returns whether it did: a failure is not fatal.
fn grow(device: &Device, mount: &Mount) -> Result<bool> {
    if device.grow().is_ok() {
        return Ok(true);
    }
    unmount(mount.path.as_str(), UnmountFlags::empty()).context(format!("cannot unmount {}", mount.path))?;
    device.check(true)?;
    // Half of it done would be found by the next check, before anything is written there.
    let grown = device.grow();
    device.check(true)?;
    attach_tree(&device.path, &mount.path)?;
    Ok(grown.is_ok())
}

fn fills(mount: &Mount) -> String {
    format!("the file system fills {}, which has grown", mount.disk)
}

/// The data on the disk is this cluster's, and says so.
fn claim(mount: &Mount) -> Result<()> {
    let (path, wanted) = (Path::new(&mount.path).join(OWNER), format!("{}\n", mount.belongs_to));
    match input::read_text(&path, input::KEYS) {
        Ok(found) if found == wanted => Ok(()),
        Ok(found) if find_entry(Path::new(&mount.path)).is_some() => Err(inherited(mount, found.trim())),
        _ => task::write_atomic(&path, wanted.as_bytes(), 0o600, 0),
    }
}

/// The disk's device, attached when it is a volume, once it is there.
pub(super) fn find_device(disk: &Disk, tell: Tell<'_>) -> Result<Device> {
    let paths = match disk {
        Disk::Device(path) => vec![PathBuf::from(path)],
        Disk::Volume(volume) => volume_attach::attach(volume, tell)?,
    };
    if let Some(device) = Device::find(&paths)? {
        return Ok(device);
    }
    tell(NodeEvent::Waiting(format!("waiting up to {} s for {disk}", APPEARS.as_secs())))?;
    Device::wait_for(&paths, APPEARS)
}

/// A file system of this cluster's on the device, formatted when that is allowed and nothing is
/// lost by it.
fn prepare(device: &Device, mount: &Mount, blank: Blank, tell: Tell<'_>) -> Result<()> {
    let judged = match device.judge(&mount.label)? {
        Judged::Unknown(_) if blank == Blank::Format && device.is_half_formatted()? => Judged::Blank,
        judged => judged,
    };
    match judged {
        // A run that was killed right after it had formatted it.
        Judged::Ours(_) => forget_formatting(),
        Judged::Blank if blank == Blank::Format => {
            tell(NodeEvent::Waiting(format!("{} is blank: making an ext4 on it", mount.disk)))?;
            device.format(&mount.label)?;
            tell(NodeEvent::Changed(format!("ext4 with the label {} on {}", mount.label, mount.disk)))
        }
        Judged::Blank => Err(lost(mount)),
        other => Err(refuse(&device.path, &mount.label, &other.describe())),
    }
}

/// As strict as a database needs it: no programs, no devices, and nothing written any more once the
/// file system is found to be broken.
fn attach_tree(device: &Path, path: &str) -> Result<()> {
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    mount(device, path, "ext4", flags, Some(c"errors=remount-ro")).map_err(|error| {
        Error::precondition(format!("cannot mount {} at {path}", device.display()))
            .source(std::io::Error::from(error))
            .hint("dmesg | tail (on the host)")
    })
}

/// Files that lie where the disk is to be would be hidden by it.
fn require_bare(mount: &Mount) -> Result<()> {
    let Some(name) = find_entry(Path::new(&mount.path)) else { return Ok(()) };
    let path = &mount.path;
    Err(Error::precondition(format!("{} is to be mounted at {path}, and files lie there", mount.disk))
        .evidence(format!("{path}/{name}"))
        .hint(format!("on the host: mv {path} {path}.old")))
}

/// An empty disk beside a directory full of data is a disk that was added later: an etcd with an
/// empty directory would lose the cluster.
fn require_moved(mount: &Mount) -> Result<()> {
    let (path, old) = (&mount.path, &mount.instead_of);
    let Some(name) = find_entry(Path::new(old)).filter(|_| find_entry(Path::new(path)).is_none()) else {
        return Ok(());
    };
    Err(Error::precondition(format!("data lies in {old} already, and {}, mounted at {path}, is empty", mount.disk))
        .evidence(format!("{old}/{name}"))
        .hint(format!(
            "on the host: mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/, wait until `pgrep -x etcd` finds nothing, cp -a {old}/. {path}/; \
             then: turnup up; when all is well, on the host: rm -r {old}/{name} /etc/kubernetes/etcd.yaml"
        )))
}

fn find_entry(dir: &Path) -> Option<String> {
    names_in(dir).into_iter().find(|name| !is_no_data(name))
}

/// Whether a name in the root of a disk is that of what is there without data.
pub(super) fn is_no_data(name: &str) -> bool {
    NO_DATA.iter().any(|own| name.starts_with(own))
}

fn abandoned(gone: &Mount) -> Error {
    let Mount { disk, path, .. } = gone;
    Error::precondition(format!(
        "the data of this node is on {disk}, mounted at {path}, and its configuration has no such disk any more"
    ))
    .hint("give the host its etcd_device back; or recreate it with an empty etcd: turnup reset HOST && turnup up")
}

fn inherited(mount: &Mount, found: &str) -> Error {
    let disk = &mount.disk;
    Error::precondition(format!("the data on {disk} is that of another cluster, or of one of this name whose keys are gone"))
        .evidence(format!("on the disk: {found}"))
        .evidence(format!("this cluster: {}", mount.belongs_to))
        .hint(format!(
            "bring back that cluster's pki/ (below .turnup/CLUSTER/) and run turnup up; or give up the data, on the host: wipefs --all {disk} && \
             blkdiscard --zeroout {disk}"
        ))
}

fn occupied(mount: &Mount, number: &str) -> Error {
    let Mount { disk, path, .. } = mount;
    Error::precondition(format!(
        "{disk} is to be mounted at {path}, and another one is mounted there: {}",
        name_of(number)
    ))
    .hint(format!("the disk with the data is the right one; see on the host: findmnt {path}"))
}

fn lost(mount: &Mount) -> Error {
    let Mount { disk, path, label, .. } = mount;
    Error::precondition(format!("{disk} is blank, and the disk that was mounted at {path} before was not")).hint(format!(
        "find the one with the data on the host: lsblk --paths --output NAME,SIZE,FSTYPE,LABEL,SERIAL | grep {label}; \
             if it is lost: turnup reset HOST && turnup up"
    ))
}

/// `/dev/sdb` of `8:16`.
fn name_of(number: &str) -> String {
    let text = fs_err::read_to_string(format!("/sys/dev/block/{number}/uevent")).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map_or_else(|| format!("the device {number}"), |name| format!("/dev/{name}"))
}

/// Unmounts what is at this path, with what may lie on it, and says what stays on the disk. Nothing
/// of it is changed.
pub(super) fn release(path: &str, disk: &Disk, told: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
    while let Some(number) = mounted_at(path)? {
        if unmount(path, UnmountFlags::empty()).is_err() {
            // A process that has it open keeps it until it ends; new ones do not find it here.
            unmount(path, UnmountFlags::DETACH).context(format!("cannot unmount {path}"))?;
        }
        told(format!("unmounted {path}; its data stays on {disk} ({})", name_of(&number)))?;
    }
    forget_formatting()
}

/// What differs from these mounts on this host. Looks, and asks no cloud.
pub(super) fn find_differences(mounts: &[Mount]) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for mount in mounts {
        let device = match &mount.disk {
            Disk::Device(path) => Device::find(&[PathBuf::from(path)])?,
            Disk::Volume(volume) => Device::find(&volume_attach::find_local(volume))?,
        };
        let now = mounted_at(&mount.path)?;
        let is_right = |number: &String| device.as_ref().is_none_or(|device| device.number == *number);
        if now.as_ref().is_some_and(is_right) {
            continue;
        }
        let verb = if now.is_some() { Verb::Update } else { Verb::Create };
        let mut lines: Vec<String> = now.iter().map(|number| format!("- {}", name_of(number))).collect();
        lines.push(format!("+ {} (ext4, label {})", mount.disk, mount.label));
        lines.extend(simulate(device.as_ref(), mount)?);
        changes.push(Change::new(verb, "mount", &mount.path).with_lines(lines));
    }
    Ok(changes)
}

/// What would become of the disk.
fn simulate(device: Option<&Device>, mount: &Mount) -> Result<Option<String>> {
    let Some(device) = device else { return Ok(Some("  the host has no such disk now".to_owned())) };
    Ok(match device.judge(&mount.label)? {
        Judged::Ours(_) => None,
        Judged::Blank => Some("  it is blank, and will be formatted".to_owned()),
        other => Some(format!("  it will be refused: on it is {}", other.describe())),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    /// A mount in this directory; what lies at its place was written by the test and not mounted.
    fn mount_in(dir: &Path) -> Mount {
        let path = |name: &str| dir.join(name).display().to_string();
        fs_err::create_dir_all(dir.join("disk/lost+found")).unwrap();
        fs_err::create_dir_all(dir.join("old")).unwrap();
        Mount {
            disk: Disk::Device("/dev/sdb".into()),
            path: path("disk"),
            mode: 0o700,
            owner: rustix::process::geteuid().as_raw(),
            label: "shelf".into(),
            belongs_to: "shelf abc".into(),
            instead_of: path("old"),
            keeps_identity: false,
        }
    }

    #[test]
    fn data_beside_an_empty_disk_is_not_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let mount = mount_in(dir.path());
        require_moved(&mount).unwrap();
        fs_err::create_dir(dir.path().join("old/data")).unwrap();
        fs_err::write(dir.path().join("disk/.turnup-owner"), "").unwrap();
        fs_err::write(dir.path().join("disk/.part-7-Ab12"), "").unwrap();
        let error = require_moved(&mount).unwrap_err();
        assert!(error.message().contains("and /dev/sdb, mounted at"), "{}", error.message());
        assert!(error.next().is_some_and(|next| next.contains("cp -a")));
        fs_err::create_dir(dir.path().join("disk/data")).unwrap();
        require_moved(&mount).unwrap();
    }

    #[test]
    fn a_disk_belongs_to_the_owner_of_its_data() {
        let dir = tempfile::tempdir().unwrap();
        let mount = mount_in(dir.path());
        let other = Mount { belongs_to: "shelf def".into(), ..mount.clone() };
        // Without data on it, it is the next one's.
        claim(&other).unwrap();
        claim(&mount).unwrap();
        fs_err::create_dir(dir.path().join("disk/data")).unwrap();
        claim(&mount).unwrap();
        let error = claim(&other).unwrap_err();
        assert_eq!(error.evidence_lines(), ["on the disk: shelf abc", "this cluster: shelf def"]);
        claim(&mount).unwrap();
    }

    #[test]
    fn nothing_is_hidden_by_a_mount() {
        let dir = tempfile::tempdir().unwrap();
        let mount = mount_in(dir.path());
        require_bare(&mount).unwrap();
        fs_err::write(dir.path().join("disk/file"), "").unwrap();
        assert!(require_bare(&mount).unwrap_err().message().ends_with("and files lie there"));
    }

    #[test]
    fn what_is_on_this_machine_is_found_by_its_number() {
        // Some file system is mounted at the root of every machine, and none at a file.
        assert!(mounted_at("/").unwrap().is_some_and(|number| number.contains(':')));
        assert_eq!(mounted_at("/etc/passwd/none").unwrap(), None);
    }
}
