//! What hosts get besides Kubernetes: kernel settings, modules, packages, names, directories. What
//! is wrong with those that no single format tells, and the kernel settings that are turnup's own.
//!
//! Pure: it judges values and asks no host.

use std::collections::BTreeMap;
use std::path::Path;

use super::format::{parse_quantity, split_package};
use super::problem::Problem;
use super::relations::words;
use super::values::Values;

/// Kernel settings of every host: forwarding for pods, and what kubelet demands with
/// `protectKernelDefaults` (`pkg/kubelet/cm/container_manager_linux.go`).
pub const KERNEL_SETTINGS: [(&str, &str); 7] = [
    ("net.ipv4.ip_forward", "1"),
    ("vm.overcommit_memory", "1"),
    ("vm.panic_on_oom", "0"),
    ("kernel.panic", "10"),
    ("kernel.panic_on_oops", "1"),
    ("kernel.keys.root_maxkeys", "1000000"),
    ("kernel.keys.root_maxbytes", "25000000"),
];
/// The setting of kubelet's root directory.
pub const DATA_DIR: &str = "phase2.host.data_dir";
/// Where kubelet has its root directory when nothing else is said.
pub const USUAL_DATA_DIR: &str = "/var/lib/kubelet";
/// Directories of others: kubelet's own may neither lie in one of them nor hold one.
pub(super) const TAKEN: [&str; 18] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/opt/cni",
    "/opt/turnup",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/var/lib/turnup",
    "/var/log",
];

/// What systemd, containerd and kubelet of one local host need at the least.
const LEAST: [(&str, &str); 2] = [("phase1.local.memory_limit", "256Mi"), ("phase1.local.cpu_limit", "100m")];

/// Says what is wrong with the text of a setting.
type Judge = fn(&str) -> Option<String>;

/// Everything that is wrong with these settings.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let rules: [(&str, Judge); 5] = [
        ("phase2.host.sysctls", judge_sysctls),
        ("phase2.host.kernel_modules", judge_modules),
        ("phase2.host.packages", judge_packages),
        ("phase2.host.extra_hosts", judge_names),
        (DATA_DIR, judge_data_dir),
    ];
    let judged = rules.into_iter().map(|(name, judge)| (name, facts.text(name).and_then(judge)));
    let mut problems: Vec<Problem> = judged.filter_map(|(name, why)| Some(Problem::of(name, why?))).collect();
    problems.extend(check_kernel(facts));
    problems.extend(check_volumes(facts));
    let name = "phase1.local.packages";
    let local = words(facts.text(name).unwrap_or_default()).into_iter().find(|package| !is_package(package));
    let why = |package| format!("{name}: {package} is no name of a Debian package");
    problems.extend(local.map(|package| Problem::error(why(package)).about(name)));
    problems.extend(LEAST.iter().filter_map(|(name, least)| {
        let text = facts.text(name).filter(|text| !text.is_empty())?;
        let message = format!("{name}: {text} is too little for a host to start; at least {least}");
        (parse_quantity(text)? < parse_quantity(least)?).then(|| Problem::error(message).about(name))
    }));
    problems
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |item: String| {
        let (name, value) = item.split_once('=').unwrap_or((&item, ""));
        (name.trim().to_owned(), value.trim().to_owned())
    };
    words(text).into_iter().map(pair).collect()
}

fn judge_sysctls(text: &str) -> Option<String> {
    pairs(text).into_iter().find_map(|(name, value)| {
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        if !name.contains('.') || !name.split('.').all(is_part) {
            return Some(format!("`{name}` is no name of a kernel setting, such as net.core.somaxconn"));
        }
        if value.is_empty() {
            return Some(format!("{name} has no value"));
        }
        let (_, own) = KERNEL_SETTINGS.iter().find(|(own, _)| *own == name)?;
        (value != *own).then(|| format!("Kubernetes and turnup need {name}={own}; leave {name} out"))
    })
}

/// Whether a kernel setting is of the whole machine, and of every container on it: those of the
/// network are each container's own, and turnup's are what the doctor looks at.
#[must_use]
pub fn is_of_machine(setting: &str) -> bool {
    !setting.starts_with("net.") && !KERNEL_SETTINGS.iter().any(|(own, _)| *own == setting)
}

/// Local hosts are containers.
fn check_kernel(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.host.sysctls";
    // Only local hosts have this network.
    facts.text("phase1.local.subnet")?;
    let (setting, value) = pairs(facts.text(name)?).into_iter().find(|(setting, _)| is_of_machine(setting))?;
    let message = format!(
        "{name}: local hosts share the kernel of this machine, and {setting} belongs to it; \
         leave it out, and set it here: sysctl -w {setting}={value}"
    );
    Some(Problem::error(message).about(name))
}

fn judge_modules(text: &str) -> Option<String> {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let wrong = words(text).into_iter().find(|name| !is_name(name) || name.starts_with('-'))?;
    Some(format!("`{wrong}` is no name of a kernel module: letters, digits, _ and -"))
}

/// What neither apt nor dnf takes for an option, a pattern or an order to remove it.
fn is_package(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"+._:-".contains(&byte);
    name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.bytes().all(is_inner)
        && !name.ends_with(['-', '.', ':'])
}

fn is_version(version: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b".+:~^_-".contains(&byte);
    version.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && version.bytes().all(is_inner)
}

fn judge_packages(text: &str) -> Option<String> {
    let mut known = BTreeMap::new();
    words(text).into_iter().find_map(|package| {
        let (name, version) = split_package(&package);
        if !is_package(name) {
            return Some(format!("`{name}` is no name of a package"));
        }
        if let Some(wrong) = version.filter(|version| !is_version(version)) {
            return Some(format!("`{wrong}` is no version of {name}"));
        }
        let twice = known.insert(name.to_owned(), package.clone()).is_some();
        twice.then(|| format!("{name} is named twice; leave one out"))
    })
}

fn judge_names(text: &str) -> Option<String> {
    const LOCALHOST: &str = "localhost";
    let (name, _) = pairs(text).into_iter().find(|(name, _)| name == LOCALHOST)?;
    Some(format!("{name} is every host itself; leave it out"))
}

fn judge_data_dir(dir: &str) -> Option<String> {
    if dir.is_empty() || dir == USUAL_DATA_DIR {
        return None;
    }
    let why = find_overlap(dir, TAKEN.into_iter().chain([USUAL_DATA_DIR]))?;
    Some(format!("{why}; choose a directory of kubelet's own, such as /data/kubelet"))
}

/// A reset empties the directories of containerd and kubelet, and leaves volumes.
fn check_volumes(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase3.local_storage_path";
    let programs = [DATA_DIR, "phase2.runtime.data_dir"].into_iter().filter_map(|setting| facts.text(setting));
    let why = find_overlap(facts.text(name)?, TAKEN.into_iter().chain(programs))?;
    Some(Problem::of(name, format!("{why}; choose a directory of the volumes' own, such as /data/volumes")))
}

/// Which of these directories one lies in or holds.
fn find_overlap<'a>(dir: &str, mut others: impl Iterator<Item = &'a str>) -> Option<String> {
    let wanted = Path::new(dir);
    let other = others.find(|other| wanted.starts_with(other) || Path::new(other).starts_with(wanted))?;
    let place = if wanted.starts_with(other) { "lies in" } else { "holds" };
    Some(format!("{dir} {place} {other}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn kernel_settings_that_turnup_needs_have_one_value() {
        assert_eq!(judge_sysctls("net.core.somaxconn=4096,net.ipv4.ip_local_port_range=1024 65000"), None);
        assert_eq!(judge_sysctls("vm.panic_on_oom=0"), None, "the same value");
        for (text, why) in [
            ("vm.panic_on_oom=1", "need vm.panic_on_oom=0; leave vm.panic_on_oom out"),
            ("somaxconn=1", "`somaxconn` is no name of a kernel setting"),
            ("net/core/somaxconn=1", "is no name of a kernel setting"),
            ("net..core=1", "is no name of a kernel setting"),
            ("net.ipv4.conf.*.rp_filter=1", "is no name of a kernel setting"),
            ("net.core.somaxconn=", "net.core.somaxconn has no value"),
        ] {
            assert!(judge_sysctls(text).is_some_and(|said| said.contains(why)), "{text}: {:?}", judge_sysctls(text));
        }
    }

    #[test]
    fn names_of_modules_and_packages_are_no_options() {
        assert_eq!(judge_modules("nf_conntrack,br-netfilter"), None);
        for wrong in ["-r", "../evil", "a b"] {
            assert!(judge_modules(wrong).is_some(), "{wrong}");
        }
        assert_eq!(judge_packages("nfs-common,g++,libc6:amd64,jq=1.6-2.1+deb12u1,open-iscsi=1:2.0~rc1"), None);
        for (text, why) in [
            ("-oDebug=1", "`-oDebug` is no name of a package"),
            ("jq-", "`jq-` is no name"),
            ("jq=", "`` is no version of jq"),
            ("jq=1;reboot", "is no version of jq"),
            ("jq,jq=1", "jq is named twice"),
        ] {
            assert!(judge_packages(text).is_some_and(|said| said.contains(why)), "{text}: {:?}", judge_packages(text));
        }
    }

    #[test]
    fn kubelets_directory_is_its_own() {
        for right in ["/var/lib/kubelet", "/data/kubelet", "/mnt/pods", "/var/lib/kubelet2"] {
            assert_eq!(judge_data_dir(right), None, "{right}");
        }
        for (wrong, why) in [
            ("/", "/ holds /bin"),
            ("/var/lib", "/var/lib holds /var/lib/cni"),
            ("/etc/kubelet", "lies in /etc"),
            ("/var/lib/kubelet/data", "lies in /var/lib/kubelet"),
        ] {
            let said = judge_data_dir(wrong);
            assert!(said.as_ref().is_some_and(|said| said.contains(why)), "{wrong}: {said:?}");
        }
        assert!(judge_names("localhost=192.0.2.1").is_some() && judge_names("a.example=2001:db8::1").is_none());
    }

    #[test]
    fn volumes_lie_where_no_reset_comes() {
        let refused = |more: (&str, &str)| {
            let mut settings = crate::config::Settings::defaults(&crate::config::TreeSource::embedded()).unwrap();
            let pairs = [("phase3.local_storage", "y"), more];
            settings.set_all(&pairs).map_or_else(|error| error.message().to_owned(), |_| String::new())
        };
        let path = "phase3.local_storage_path";
        for (dir, why) in [
            ("/var/lib", "/var/lib holds /var/lib/cni"),
            ("/var/lib/turnup/volumes", "/var/lib/turnup/volumes lies in /var/lib/turnup"),
            ("/var/lib/kubelet/volumes", "/var/lib/kubelet/volumes lies in /var/lib/kubelet"),
        ] {
            assert!(refused((path, dir)).starts_with(&format!("{path}: {why}; choose")), "{}", refused((path, dir)));
        }
        assert_eq!(refused((path, "/data/volumes")), "");
        let other = refused((DATA_DIR, "/var/lib/local-path-volumes"));
        assert!(other.contains("lies in /var/lib/local-path-volumes"), "{other}");
    }

    #[test]
    fn local_hosts_set_nothing_of_the_kernel_of_this_machine() {
        let said = |target: &str, value: &str| {
            let source = crate::config::TreeSource::embedded();
            let mut settings = crate::config::Settings::defaults(&source).unwrap();
            let changes = [("phase1.cloud_provider", target), ("phase2.host.sysctls", value)];
            let refusal = settings.set_all(&changes).err().map(|error| error.render());
            refusal.unwrap_or_default() + &format!("{:?}", settings.check())
        };
        let why = "local hosts share the kernel of this machine, and vm.max_map_count belongs to it";
        assert!(said("local", "net.core.somaxconn=4096,vm.max_map_count=262144").contains(why));
        for (target, value) in [
            ("local", "net.core.somaxconn=4096"),
            ("local", "vm.panic_on_oom=0"),
            ("baremetal", "vm.max_map_count=262144"),
        ] {
            assert!(!said(target, value).contains("belongs to it"), "{target} {value}");
        }
    }
}
