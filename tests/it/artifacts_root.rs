//! The root of local hosts, with a debootstrap and an apt-get that are made up: signature, security
//! updates, age, and a kill in the middle.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "a test starts the product from outside")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::artifacts_support::{Scratch, stderr, wait_until};
use crate::cluster_support::{can_make_hosts, unmount_below};

/// Creates what turnup reads of a real root. Its last arguments are the directory and the mirror.
const DEBOOTSTRAP: &str = r#"#!/bin/sh -e
bin=$(dirname "$0")
echo "$*" >"$bin/debootstrap.args"
for arg; do root=$last; last=$arg; done
for dir in proc var/lib/dbus etc/ssh etc/systemd/system etc/apt usr/sbin; do mkdir -p "$root/$dir"; done
"#;
/// Mounts what the real one mounts, and goes on only once there is a file `go`.
const SLOW: &str = r#"mount -t proc proc "$root/proc"
touch "$bin/mounted"
until [ -e "$bin/go" ]; do sleep 0.1; done
umount "$root/proc"
"#;
/// Records what would run in the root; fails for what the file `fails` names.
const CHROOT: &str = r#"#!/bin/sh
bin=$(dirname "$0")
echo "TMPDIR=$TMPDIR HOME=$HOME $*" >>"$bin/chroot.args"
if [ -e "$bin/fails" ]; then
    echo "E: Failed to fetch http://mirror.example/debian-security/dists/bookworm-security/InRelease" >&2
    exit 100
fi
test -e "$1/usr/sbin/policy-rc.d"
"#;
const ARCHIVE: &str = "deb http://mirror.example/debian bookworm main\n";
const SECURITY: &str = "deb http://mirror.example/debian-security bookworm-security main\n";

/// The program on a machine whose apt has these sources, and whose mounts are changed by this
/// script.
fn rootfs(scratch: &Scratch, sources: &str, script: &str, args: &[&str]) -> Output {
    let apt = scratch.dir.path().join("apt");
    fs_err::create_dir_all(&apt).unwrap();
    fs_err::write(apt.join("sources.list"), sources).unwrap();
    let path = scratch.fake("debootstrap", DEBOOTSTRAP);
    scratch.fake("chroot", CHROOT);
    let script = format!("mount --bind '{}' /etc/apt; {script}\nexec \"$@\"", apt.display());
    let inner = scratch.turnup(&[&["rootfs"], args].concat());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(scratch.dir.path()).env("PATH", path).env("TURNUP_CACHE", scratch.cache.root());
    command.env("TMPDIR", scratch.dir.path());
    command.output().unwrap()
}

fn said(scratch: &Scratch, file: &str) -> String {
    fs_err::read_to_string(scratch.dir.path().join("bin").join(file)).unwrap_or_default()
}

#[test]
fn the_root_is_signed_and_has_the_security_updates_of_its_day() {
    if !can_make_hosts() {
        return;
    }
    let scratch = Scratch::new();
    let made = rootfs(&scratch, &format!("{ARCHIVE}{SECURITY}"), "", &[]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(!stderr(&made).contains("warning"), "{}", stderr(&made));
    let arguments = said(&scratch, "debootstrap.args");
    assert!(
        arguments.contains("--force-check-gpg --keyring=/usr/share/keyrings/debian-archive-keyring."),
        "{arguments}"
    );
    assert!(!arguments.contains("runc"), "nodes bring their own: {arguments}");
    let inside = said(&scratch, "chroot.args");
    let commands: Vec<&str> = inside.lines().filter_map(|line| line.split(' ').next_back()).collect();
    assert_eq!(commands, ["update", "dist-upgrade"], "{inside}");
    assert!(inside.contains("APT::Update::Error-Mode=any"), "{inside}");
    assert!(inside.lines().all(|line| line.starts_with("TMPDIR=/tmp HOME=/root ")), "of this machine: {inside}");
    let root = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
    assert_eq!(fs_err::read_to_string(root.join("etc/apt/sources.list")).unwrap(), format!("{ARCHIVE}{SECURITY}"));
    assert!(!root.join("usr/sbin/policy-rc.d").exists(), "hosts would start no service");
    let known = scratch.cache.find_host_root("bookworm", &[]).unwrap();
    assert_eq!((known.age_days(), known.complaint()), (0, None));
    assert_eq!(known.security.as_deref(), Some("http://mirror.example/debian-security"));
}

#[test]
fn a_machine_without_a_security_suite_is_warned_and_one_that_cannot_reach_it_stops() {
    if !can_make_hosts() {
        return;
    }
    let scratch = Scratch::new();
    let offline = rootfs(&scratch, ARCHIVE, "", &[]);
    assert!(offline.status.success(), "{}", stderr(&offline));
    assert!(stderr(&offline).contains("warning: local hosts get no security updates"), "{}", stderr(&offline));
    assert_eq!(said(&scratch, "chroot.args"), "");
    let complaint = scratch.cache.find_host_root("bookworm", &[]).unwrap().complaint().unwrap();
    assert!(complaint.starts_with("has no security updates"), "{complaint}");

    let scratch = Scratch::new();
    scratch.fake("fails", "");
    let away = rootfs(&scratch, &format!("{ARCHIVE}{SECURITY}"), "", &[]);
    assert_eq!(away.status.code(), Some(5), "{}", stderr(&away));
    let text = stderr(&away);
    assert!(text.contains("apt-get could not download from http://mirror.example/debian-security"), "{text}");
    assert!(text.contains("take the security suite out of this machine's apt configuration"), "{text}");
    assert!(scratch.work().is_empty() && !scratch.cache.host_root_path("bookworm").exists());
}

#[test]
fn without_the_archives_keyring_nothing_is_made() {
    if !can_make_hosts() {
        return;
    }
    let scratch = Scratch::new();
    let output = rootfs(&scratch, ARCHIVE, "mount -t tmpfs none /usr/share/keyrings", &[]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("install --yes --no-install-recommends debian-archive-keyring"),
        "{}",
        stderr(&output)
    );
    assert_eq!(said(&scratch, "debootstrap.args"), "");
}

#[test]
fn an_old_root_says_so_and_is_renewed_unless_hosts_stand_on_it() {
    if !can_make_hosts() {
        return;
    }
    let scratch = Scratch::new();
    let sources = format!("{ARCHIVE}{SECURITY}");
    let made = rootfs(&scratch, &sources, "", &[]);
    let root = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
    let record = root.join("etc/turnup-root.json");
    let age = |days: i64| {
        let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
        let text = serde_json::json!({"made": then, "security": "http://mirror.example/debian-security"});
        fs_err::write(&record, text.to_string()).unwrap();
    };
    age(29);
    assert!(!stderr(&rootfs(&scratch, &sources, "", &[])).contains("warning"));
    age(45);
    fs_err::write(root.join("old"), "").unwrap();
    let old = rootfs(&scratch, &sources, "", &[]);
    assert!(old.status.success(), "{}", stderr(&old));
    let warning =
        "warning: this root is 45 days old: security updates since then are missing; turnup artifacts rootfs --renew";
    assert!(stderr(&old).contains(warning), "{}", stderr(&old));

    let overlay = format!(
        "mkdir -p up work at; mount -t tmpfs none up; mkdir up/u up/w; \
         mount -t overlay -o lowerdir='{}',upperdir=up/u,workdir=up/w overlay at",
        root.display()
    );
    let used = rootfs(&scratch, &sources, &overlay, &["--renew"]);
    assert_eq!(used.status.code(), Some(4), "{}", stderr(&used));
    assert!(stderr(&used).contains("1 hosts of this machine stand on the root"), "{}", stderr(&used));
    assert!(root.join("old").exists());

    let renewed = rootfs(&scratch, &sources, "", &["--renew"]);
    assert!(renewed.status.success() && !stderr(&renewed).contains("warning"), "{}", stderr(&renewed));
    assert!(!root.join("old").exists() && scratch.work().is_empty());
    assert_eq!(scratch.cache.find_host_root("bookworm", &[]).unwrap().age_days(), 0);
}

#[test]
fn killed_while_the_root_of_hosts_is_made_the_next_one_makes_it() {
    if !can_make_hosts() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.fake("debootstrap", &format!("{DEBOOTSTRAP}{SLOW}"));
    scratch.fake("chroot", CHROOT);
    let bin = scratch.dir.path().join("bin");
    let make_root = || {
        let mut command = scratch.turnup(&["rootfs"]);
        command.env("PATH", &path);
        command
    };
    let mut killed = make_root().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("debootstrap mounts", || bin.join("mounted").exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(unmount_below(scratch.dir.path()), [""; 0], "mounted for ever");
    fs_err::write(bin.join("go"), "").unwrap();
    let made = make_root().output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let root = String::from_utf8(made.stdout).unwrap();
    assert!(Path::new(root.trim()).join("etc/systemd/system").is_dir(), "{root}");
    assert_eq!(scratch.work(), Vec::<PathBuf>::new(), "work is left");
}
