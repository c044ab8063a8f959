//! Facts about this host that decide whether local hosts can run on it.

use std::path::{Path, PathBuf};

use super::finding::{Finding, FindingLevel, Subject};
use super::ports;
use crate::artifacts::Cache;

const GIB: u64 = 1 << 30;
/// Nothing that we sign would be valid on a clock before this: 2026-01-01.
const EARLIEST: i64 = 1_767_225_600;

pub(super) fn inspect(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = vec![
        clock(),
        disk("disk of the working directory", Path::new(".")),
        disk("disk of the cache", &cache_dir(subject)),
    ];
    if subject.goal.makes_local_hosts() {
        findings.extend([root(), kernel(), cgroup(), memory()]);
        findings.extend([
            module("overlay", "roots of local hosts, container images"),
            module("br_netfilter", "Services between pods on one host"),
            module("nf_tables", "kube-proxy"),
            module("veth", "the network of local hosts"),
            module("bridge", "the network of local hosts"),
        ]);
        if subject.network_policies {
            findings.push(packet_queue());
        }
        findings.extend(ports::inspect());
    }
    findings
}

fn root() -> Finding {
    let uid = rustix::process::geteuid();
    let level = if uid.is_root() { FindingLevel::Ok } else { FindingLevel::Missing };
    Finding::new("root", level, format!("uid {}", uid.as_raw()), "namespaces, mounts and bridges of local hosts")
        .fix("run as root: sudo make up")
}

fn kernel() -> Finding {
    let release = release();
    let numbers: Vec<u32> = release.split(['.', '-']).take(2).filter_map(|part| part.parse().ok()).collect();
    let level = if numbers.as_slice() < [5, 4].as_slice() { FindingLevel::Warning } else { FindingLevel::Ok };
    Finding::new("kernel", level, release, "kubelet, containerd").fix("Kubernetes is tested on Linux 5.4 and newer")
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn cgroup() -> Finding {
    let root = Path::new("/sys/fs/cgroup");
    let why = "limits of pods";
    if root.join("cgroup.controllers").is_file() {
        Finding::new("cgroup", FindingLevel::Ok, "v2", why)
    } else if root.join("memory").is_dir() {
        Finding::new("cgroup", FindingLevel::Ok, "v1 (works; version 2 is where Kubernetes is going)", why)
    } else {
        Finding::new("cgroup", FindingLevel::Missing, "not mounted", why).fix("mount -t cgroup2 none /sys/fs/cgroup")
    }
}

fn memory() -> Finding {
    let why = "about 1 GiB for a control plane, 0.5 GiB for a worker";
    let text = fs_err::read_to_string("/proc/meminfo").unwrap_or_default();
    let Some(kib) = field(&text, "MemAvailable:") else {
        return Finding::new("memory", FindingLevel::Warning, "unknown", why);
    };
    let bytes = kib * 1024;
    let level = if bytes < GIB + GIB / 2 {
        FindingLevel::Missing
    } else if bytes < 3 * GIB {
        FindingLevel::Warning
    } else {
        FindingLevel::Ok
    };
    Finding::new("memory", level, format!("{} available", gib(bytes)), why)
        .fix("free memory, or set phase1.num_nodes=0")
}

/// The number behind a name in `/proc/meminfo`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

fn clock() -> Finding {
    let now = jiff::Timestamp::now();
    let level = if now.as_second() < EARLIEST { FindingLevel::Missing } else { FindingLevel::Ok };
    Finding::new("clock", level, now.strftime("%Y-%m-%d %H:%M:%SZ").to_string(), "validity of certificates")
        .fix("set the clock: timedatectl set-ntp true")
}

fn disk(name: &str, dir: &Path) -> Finding {
    let why = "artifacts, images, roots of local hosts";
    // The nearest directory that exists decides about one that will be made.
    let there = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or_else(|| Path::new("/"));
    let Ok(stat) = rustix::fs::statvfs(there) else {
        return Finding::new(name, FindingLevel::Warning, format!("unknown ({})", dir.display()), why);
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let level = if free < 3 * GIB {
        FindingLevel::Missing
    } else if free < 10 * GIB {
        FindingLevel::Warning
    } else {
        FindingLevel::Ok
    };
    Finding::new(name, level, format!("{} free at {}", gib(free), there.display()), why)
        .fix(format!("free space there (look with: df -h {}), 10 GiB are comfortable", there.display()))
}

fn gib(bytes: u64) -> String {
    let tenths = bytes / (GIB / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// Where artifacts are cached.
fn cache_dir(subject: &Subject<'_>) -> PathBuf {
    let cache = Cache::locate_in(subject.cache_dir.as_deref());
    cache.map_or_else(|_| PathBuf::from("/var/cache/turnup"), |cache| cache.root().to_owned())
}

/// A feature of the kernel: loaded, built in, or a module that can be loaded.
fn module(name: &str, why: &str) -> Finding {
    let what = format!("kernel: {name}");
    if is_active(name) {
        return Finding::new(&what, FindingLevel::Ok, "active", why);
    }
    let dir = Path::new("/lib/modules").join(release());
    let list = |file: &str| fs_err::read_to_string(dir.join(file)).ok();
    match (list("modules.builtin"), list("modules.dep")) {
        (None, None) => {
            Finding::new(&what, FindingLevel::Warning, "unknown: this kernel brings no list of its modules", why)
                .fix(format!("try: modprobe {name}"))
        }
        (builtin, dep) => {
            let file = format!("/{name}.ko");
            let has = |list: &Option<String>| list.as_ref().is_some_and(|list| list.contains(&file));
            if has(&builtin) {
                Finding::new(&what, FindingLevel::Ok, "built in", why)
            } else if has(&dep) {
                Finding::new(&what, FindingLevel::Ok, "a module, loaded when needed", why)
            } else {
                Finding::new(&what, FindingLevel::Missing, "not in this kernel", why).fix("use a kernel that has it")
            }
        }
    }
}

/// Either of the two ways in which the kernel asks a program about a packet.
fn packet_queue() -> Finding {
    let ways = ["nft_queue", "xt_NFQUEUE"].map(|name| module(name, "phase3.network_policies"));
    let [new, old] = ways;
    if old.level < new.level { old } else { new }
}

fn is_active(name: &str) -> bool {
    let file_systems = || fs_err::read_to_string("/proc/filesystems").unwrap_or_default();
    Path::new("/sys/module").join(name).exists()
        || match name {
            "overlay" => file_systems().lines().any(|line| line.split_whitespace().last() == Some("overlay")),
            "br_netfilter" => Path::new("/proc/sys/net/bridge").exists(),
            // Made only by the nf_tables core, and there as soon as it is.
            "nf_tables" => {
                fs_err::read_to_string("/proc/kallsyms").is_ok_and(|list| list.contains(" nft_register_expr"))
            }
            "veth" => fs_err::read_to_string("/proc/kallsyms").is_ok_and(|list| list.contains(" veth_newlink")),
            "nft_queue" => fs_err::read_to_string("/proc/kallsyms").is_ok_and(|list| list.contains(" nft_queue_eval")),
            "xt_NFQUEUE" => fs_err::read_to_string("/proc/kallsyms").is_ok_and(|list| list.contains(" nfqueue_tg_v3")),
            "bridge" => fs_err::read_to_string("/proc/kallsyms").is_ok_and(|list| list.contains(" br_add_bridge")),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_meminfo() {
        assert_eq!(field("MemTotal: 5 kB\nMemAvailable:   123 kB\n", "MemAvailable:"), Some(123));
        assert_eq!(field("", "MemAvailable:"), None);
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(gib(10 * GIB + GIB / 2), "10.5 GiB");
        assert_eq!(gib(0), "0.0 GiB");
    }

    #[test]
    fn the_disk_of_a_directory_to_be_is_that_of_its_parent() {
        assert!(disk("x", Path::new("/no/such/dir")).found.ends_with("free at /"));
    }
}
