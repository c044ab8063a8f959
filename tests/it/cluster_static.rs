//! The one binary runs here and on every host, whatever C library that host has: it asks for no
//! loader and no shared library.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the test is a shell on an old distribution")]

use std::process::Command;

use crate::cluster_support::{Site, can_make_hosts};

const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const ELF64_LITTLE: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];

/// A program header of elf(5).
struct Segment {
    kind: u32,
    offset: usize,
    size: usize,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn index(bytes: &[u8], at: usize, size: usize) -> usize {
    usize::try_from(number(bytes, at, size)).unwrap()
}

fn segments(bytes: &[u8]) -> Vec<Segment> {
    let (table, size, count) = (index(bytes, 32, 8), index(bytes, 54, 2), index(bytes, 56, 2));
    let header = |at: usize| Segment {
        kind: u32::try_from(number(bytes, at, 4)).unwrap(),
        offset: index(bytes, at + 8, 8),
        size: index(bytes, at + 32, 8),
    };
    (0..count).map(|number| header(table + number * size)).collect()
}

/// The properties that keep a program from running everywhere.
fn needs(bytes: &[u8]) -> Vec<String> {
    let mut needs = Vec::new();
    for segment in segments(bytes) {
        if segment.kind == PT_INTERP {
            let name = &bytes[segment.offset..segment.offset + segment.size];
            needs.push(format!("the loader {}", String::from_utf8_lossy(name).trim_end_matches('\0')));
        }
        if segment.kind == PT_DYNAMIC {
            let entries = bytes[segment.offset..segment.offset + segment.size].chunks_exact(16);
            let libraries = entries.filter(|entry| number(entry, 0, 8) == DT_NEEDED).count();
            needs.extend((libraries > 0).then(|| format!("{libraries} shared libraries")));
        }
    }
    needs
}

#[test]
fn the_binary_needs_no_loader_and_no_library() {
    let bytes = fs_err::read(env!("CARGO_BIN_EXE_turnup")).unwrap();
    assert_eq!(bytes[..6], ELF64_LITTLE);
    assert!(!segments(&bytes).is_empty());
    assert_eq!(needs(&bytes), Vec::<String>::new());
    // The same check of a dynamically linked program finds something.
    assert!(!needs(&fs_err::read("/bin/sh").unwrap()).is_empty());
}

#[test]
fn the_binary_runs_on_the_oldest_supported_distribution() {
    if !can_make_hosts() {
        return;
    }
    let site = Site::new("static");
    site.warm_cache();
    let root = site.ok(&["artifacts", "rootfs"]).out;
    // In a mount namespace of its own: the root in the cache is shared by all hosts and stays as it
    // is.
    let script = r#"set -e
mount --bind "$1" "$2/usr/bin/true"
mount -t proc proc "$2/proc"
chroot "$2" /usr/bin/true --version
chroot "$2" /usr/bin/true node facts"#;
    let arguments = ["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_turnup"), root.trim()];
    let output = Command::new("unshare").args(arguments).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.starts_with(&format!("turnup {}", env!("CARGO_PKG_VERSION"))), "{out}");
    assert!(out.contains("Debian GNU/Linux 12 (bookworm)"), "{out}");
}
