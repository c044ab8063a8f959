//! etcd on a disk of its own, on a real host: a loop device of this machine. What is on it outlives
//! the node, and nothing but a blank disk is ever formatted.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test looks at disks with the system's own tools")]

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_reset::{Look, assert_same, look, on_host, settle};
use crate::cluster_support::{Site, say, sh};

const HOST: &str = "it-control-plane-0";
/// The disk as the host has it.
const DEVICE: &str = "/dev/etcd-disk";
const MOUNT: &str = "/var/lib/etcd-disk";

/// A file as a block device. Detached when dropped, or by the next run that finds it.
pub(crate) struct Disk {
    device: String,
    file: std::path::PathBuf,
}

impl Disk {
    /// The disk of this host.
    pub(crate) fn new(site: &Site, host: &str) -> Self {
        let file = site.dir.with_extension(format!("{host}.img"));
        sh(&format!(
            "losetup --noheadings --output NAME --associated '{}' | xargs -r losetup --detach",
            file.display()
        ));
        drop(fs_err::remove_file(&file));
        fs_err::File::create(&file).unwrap().set_len(512 << 20).unwrap();
        let device = tool("losetup", &["--find", "--show", file.to_str().unwrap()]);
        Self { device: device.trim().to_owned(), file }
    }

    fn plug_in(&self, site: &Site) {
        self.plug_in_as(site, HOST, DEVICE);
    }

    /// Creates its device node on the host, as the host's kernel would; a restart removes it.
    pub(crate) fn plug_in_as(&self, site: &Site, host: &str, device: &str) {
        let number = tool("lsblk", &["--noheadings", "--nodeps", "--output", "MAJ:MIN", &self.device]);
        let (major, minor) = number.trim().split_once(':').unwrap();
        site.in_host(host, &format!("mkdir -p $(dirname {device}) && mknod -m 600 {device} b {major} {minor}"));
    }

    /// The result of blkid, without its cache.
    pub(crate) fn look(&self, what: &str) -> String {
        let output = Command::new("blkid").args(["-p", "-s", what, "-o", "value", &self.device]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn digest(&self) -> String {
        tool("sh", &["-c", &format!("sha256sum <{}", self.device)])
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let device = fs_err::OpenOptions::new().write(true).open(&self.device).unwrap();
        device.file().write_all_at(bytes, at).unwrap();
        device.sync_all().unwrap();
    }

    fn grow(&self, bytes: u64) {
        fs_err::OpenOptions::new().write(true).open(&self.file).unwrap().set_len(bytes).unwrap();
        tool("losetup", &["--set-capacity", &self.device]);
    }

    fn wipe(&self) {
        tool("wipefs", &["--all", "--quiet", &self.device]);
        tool("blkdiscard", &["--zeroout", &self.device]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A file system that is still mounted goes with its last user.
        sh(&format!("losetup --detach {}", self.device));
        drop(fs_err::remove_file(&self.file));
    }
}

fn tool(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn is_refused(site: &Site, words: &[&str]) {
    let done = site.lent(4, &["up"]);
    for word in words {
        assert!(done.err.contains(word), "{word}: {done}");
    }
}

/// A host of the first directory, in the list of the second one; with or without its disk.
fn configure(site: &Site, device: Option<&str>) {
    let host = &site.hosts()[HOST];
    let mut listed =
        json!({"name": "m1", "address": host["address"], "role": "control-plane", "host_key": host["ssh"]["host_key"]});
    if let Some(device) = device {
        listed["etcd_device"] = json!(device);
    }
    let hosts = format!("phase1.baremetal.hosts={}", json!([listed]));
    let key = format!("phase1.ssh.private_key_file={}", site.path("ssh/id_ed25519").display());
    site.lent(0, &["config", "set", "phase1.cloud_provider=baremetal", "phase1.cluster_name=shelf", &hosts, &key]);
}

fn kubectl(site: &Site, args: &[&str]) -> Value {
    let program = site.ok(&["artifacts", "path", "kubectl"]).out;
    let kubeconfig = format!("--kubeconfig={}", site.dir.join("second/shelf/kubeconfig").display());
    let args = [&[kubeconfig.as_str(), "--output=json"], args].concat();
    serde_json::from_str(&tool(program.trim(), &args)).unwrap()
}

/// The uid of an object that was created once: a new etcd would not have it.
fn mark_of(site: &Site) -> String {
    kubectl(site, &["get", "configmap", "mark"])["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn what_is_not_blank_is_refused(site: &Site, disk: &Disk) {
    is_refused(site, &["m1: it has no disk /dev/etcd-disk for etcd", "ls -l /dev/disk/by-id"]);
    disk.plug_in(site);
    tool("mkfs.ext4", &["-q", "-L", "theirs", &disk.device]);
    let before = disk.digest();
    is_refused(
        site,
        &["ext4 with the label \"theirs\", as another cluster's", "nothing on this one was changed", "wipefs"],
    );
    assert_eq!(disk.digest(), before);
    disk.wipe();
    // A master boot record with one partition for Linux, from sector 2048 on.
    disk.write(446, &[0, 0x20, 0x21, 0, 0x83, 0x28, 0x20, 0x08, 0, 8, 0, 0, 0, 0, 4, 0]);
    disk.write(510, &[0x55, 0xaa]);
    is_refused(site, &["has on it partitions (dos)"]);
    disk.wipe();
    disk.write(5000, b"data");
    is_refused(site, &["data of no known kind (at byte 5000)"]);
    disk.wipe();
    a_disk_that_lost_its_beginning_is_refused(site, disk);
}

/// blkid sees nothing on it, and fsck would bring it back.
fn a_disk_that_lost_its_beginning_is_refused(site: &Site, disk: &Disk) {
    tool("mkfs.ext4", &["-q", "-b", "4096", &disk.device]);
    disk.write(0, &vec![0; 1 << 20]);
    let before = disk.digest();
    assert_eq!(disk.look("TYPE"), "");
    is_refused(site, &["data of no known kind (at byte "]);
    assert_eq!(disk.digest(), before);
    disk.wipe();
}

/// etcd has been on the host's own disk until now. Follows the advice of the refusal.
fn data_is_moved_by_hand(site: &Site) {
    let moving = [
        "data lies in /var/lib/etcd already",
        "mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/",
        "cp -a /var/lib/etcd/. /var/lib/etcd-disk/",
    ];
    let plan = site.lent(0, &["plan"]).out;
    for word in ["mount /var/lib/etcd-disk", "/dev/etcd-disk (ext4, label shelf)", "it is blank, and will be formatted"]
    {
        assert!(plan.contains(word), "{word}: {plan}");
    }
    is_refused(site, &moving);
    is_refused(site, &moving);
    on_host(
        site,
        HOST,
        "mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/ && while pgrep -x etcd; do sleep 0.5; done && \
         cp -a /var/lib/etcd/. /var/lib/etcd-disk/",
    );
    site.lent(0, &["up"]);
    on_host(site, HOST, "rm -r /var/lib/etcd/data /etc/kubernetes/etcd.yaml");
}

/// The host restarts without its disk, which comes later.
fn nothing_starts_on_the_bare_directory(site: &Site, disk: &Disk) {
    site.cut_power(HOST);
    site.ok(&["provision"]);
    let since = Instant::now();
    let state = "systemctl is-active turnup-mounts.service kubelet.service containerd.service; true";
    while !on_host(site, HOST, state).lines().eq(["activating", "inactive", "active"]) {
        assert!(
            since.elapsed() < Duration::from_mins(2),
            "{}",
            on_host(site, HOST, "systemctl status turnup-mounts kubelet")
        );
        std::thread::sleep(Duration::from_secs(1));
    }
    let refused = on_host(
        site,
        HOST,
        "systemctl start --no-block kubelet; sleep 3; systemctl is-active kubelet; pgrep -x etcd; true",
    );
    assert_eq!(refused.trim(), "inactive", "{refused}");
    assert_eq!(on_host(site, HOST, &format!("ls -A {MOUNT}; stat -c '%a %u' {MOUNT}")).trim(), "0 0");
    disk.grow(1 << 30);
    disk.plug_in(site);
    let since = Instant::now();
    while on_host(site, HOST, "systemctl is-active kubelet; true").trim() != "active" {
        assert!(since.elapsed() < Duration::from_mins(2), "kubelet does not start by itself");
        std::thread::sleep(Duration::from_secs(1));
    }
    let room = on_host(site, HOST, &format!("df --output=size -B1M {MOUNT} | tail -1"));
    assert!(room.trim().parse::<u64>().unwrap() > 900, "the file system fills what the disk has become: {room}");
    site.lent(0, &["bootstrap"]);
}

#[test]
#[ignore = "some minutes: make test-heal"]
fn etcd_has_a_disk_of_its_own_that_outlives_the_node() {
    let Some(site) = Site::of_cluster("disk", "10.123.32.0/24", 0) else { return };
    site.ok(&["provision"]);
    settle(&site);
    let before = quiet_look(&site);
    let disk = Disk::new(&site, HOST);
    configure(&site, None);
    site.lent(0, &["up"]);
    kubectl(&site, &["create", "configmap", "mark", "--from-literal=a=b"]);
    let mark = mark_of(&site);
    configure(&site, Some(DEVICE));
    what_is_not_blank_is_refused(&site, &disk);
    assert_eq!(mark_of(&site), mark, "etcd runs on where it was");
    data_is_moved_by_hand(&site);
    assert_eq!(disk.look("LABEL"), "shelf");
    let uuid = disk.look("UUID");
    assert_eq!(mark_of(&site), mark, "after the move");
    let there = "findmnt --noheadings --output FSTYPE,OPTIONS /var/lib/etcd-disk; ls /var/lib/etcd-disk/data; ls -A /var/lib/etcd";
    let there = on_host(&site, HOST, there);
    for word in ["ext4", "noexec", "member"] {
        assert!(there.contains(word), "{word}: {there}");
    }
    assert_eq!(site.lent(0, &["plan"]).out.trim(), "nothing to do");
    nothing_starts_on_the_bare_directory(&site, &disk);
    assert_eq!((mark_of(&site), disk.look("UUID")), (mark.clone(), uuid.clone()), "after a restart");
    configure(&site, None);
    is_refused(&site, &["the data of this node is on /dev/etcd-disk", "no such disk any more"]);
    configure(&site, Some(DEVICE));
    let reset = site.lent(0, &["reset", "m1", "--yes"]);
    assert!(reset.err.contains("unmounted /var/lib/etcd-disk; its data stays on /dev/etcd-disk"), "{reset}");
    site.lent(0, &["up"]);
    assert_eq!((mark_of(&site), disk.look("UUID")), (mark, uuid.clone()), "after a reset");
    site.lent(0, &["down", "--yes"]);
    on_host(&site, HOST, &format!("rm {DEVICE}"));
    assert_same(&before, &quiet_look(&site), "after down");
    assert_eq!(disk.look("UUID"), uuid, "nothing was erased");
    another_cluster_of_the_name(&site, &disk, &uuid);
    let device = disk.device.clone();
    site.ok(&["down", "--yes"]);
    drop(disk);
    assert!(!Path::new("/sys/block").join(device.trim_start_matches("/dev/")).join("loop/backing_file").exists());
}

/// The cluster's keys are new: the disk's data is not its own, but a blank disk is accepted.
fn another_cluster_of_the_name(site: &Site, disk: &Disk, uuid: &str) {
    disk.plug_in(site);
    is_refused(site, &["of one of this name whose keys are gone", "on the disk: shelf "]);
    assert_eq!(disk.look("UUID"), uuid, "nothing was formatted");
    disk.wipe();
    // As a run that was killed while it formatted this disk would have left it.
    disk.write(5000, b"half of a file system");
    let sectors = fs_err::metadata(&disk.file).unwrap().len() / 512;
    let started = on_host(site, HOST, &format!("lsblk --noheadings --nodeps --output MAJ:MIN {DEVICE}"));
    on_host(site, HOST, &format!("printf '%s' '{} {sectors}' >/run/turnup-format", started.trim()));
    let start = Instant::now();
    site.lent(0, &["up"]);
    say(&format!("up with a disk of etcd's own: {:.1} s", start.elapsed().as_secs_f64()));
    assert_ne!(disk.look("UUID"), uuid);
    site.lent(0, &["down", "--yes"]);
}

/// The host restarts in between, and sshd with it.
fn quiet_look(site: &Site) -> Look {
    let mut look = look(site, HOST);
    look.retain(|line, _| !line.ends_with("/run/sshd.pid"));
    look
}
