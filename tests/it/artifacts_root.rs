//! The root of local hosts when debootstrap is killed in the middle, with a debootstrap that is made up.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "it kills turnup, and looks for what is still mounted")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::artifacts_support::wait_until;
use crate::cluster_support::can_make_hosts;

/// Mounts what the real one mounts, and goes on only once there is a file `go`.
const DEBOOTSTRAP: &str = r#"#!/bin/sh -e
mkdir -p "$5/proc" "$5/var/lib/dbus" "$5/etc/ssh" "$5/etc/systemd/system"
mount -t proc proc "$5/proc"
touch "$(dirname "$0")/mounted"
until [ -e "$(dirname "$0")/go" ]; do sleep 0.1; done
umount "$5/proc"
"#;

fn make_root(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnup"));
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    command.args(["artifacts", "host-root"]).current_dir(dir).env("PATH", path).env("TURNUP_CACHE", dir.join("cache"));
    command.stderr(Stdio::null());
    command
}

/// Takes away what is mounted below this directory, and says what that was.
fn unmount_all(dir: &Path) -> Vec<String> {
    let mounts = fs_err::read_to_string("/proc/mounts").unwrap();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let left: Vec<String> = places.filter(|place| Path::new(place).starts_with(dir)).map(str::to_owned).collect();
    for place in &left {
        assert!(Command::new("umount").args(["--lazy", place]).status().unwrap().success());
    }
    left
}

#[test]
fn killed_while_the_root_of_hosts_is_made_the_next_one_makes_it() {
    if !can_make_hosts() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (fake, go) = (dir.path().join("debootstrap"), dir.path().join("go"));
    fs_err::write(&fake, DEBOOTSTRAP).unwrap();
    fs_err::set_permissions(&fake, PermissionsExt::from_mode(0o755)).unwrap();
    let mut killed = make_root(dir.path()).stdout(Stdio::null()).spawn().unwrap();
    wait_until("debootstrap mounts", || dir.path().join("mounted").exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(unmount_all(dir.path()), [""; 0], "mounted for ever");
    fs_err::write(go, "").unwrap();
    let made = make_root(dir.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let root = String::from_utf8(made.stdout).unwrap();
    assert!(Path::new(root.trim()).join("etc/systemd/system").is_dir(), "{root}");
    assert_eq!(fs_err::read_dir(dir.path().join("cache/work")).unwrap().count(), 0, "work is left");
}
