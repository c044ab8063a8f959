//! The root of local hosts when debootstrap is killed in the middle, with a debootstrap that is made up.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::artifacts_support::{Scratch, wait_until};
use crate::cluster_support::{can_make_hosts, unmount_below};

/// Mounts what the real one mounts, and goes on only once there is a file `go`.
const DEBOOTSTRAP: &str = r#"#!/bin/sh -e
mkdir -p "$5/proc" "$5/var/lib/dbus" "$5/etc/ssh" "$5/etc/systemd/system"
mount -t proc proc "$5/proc"
touch "$(dirname "$0")/mounted"
until [ -e "$(dirname "$0")/go" ]; do sleep 0.1; done
umount "$5/proc"
"#;

#[test]
fn killed_while_the_root_of_hosts_is_made_the_next_one_makes_it() {
    if !can_make_hosts() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.fake("debootstrap", DEBOOTSTRAP);
    let bin = scratch.dir.path().join("bin");
    let make_root = || {
        let mut command = scratch.turnup(&["host-root"]);
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
