//! A cgroup of its own for every host, on cgroup v1 and v2: the host sees it as the root of its
//! tree, so that kubelets on one machine do not meet. With systemd as this machine's init, systemd
//! makes the cgroup instead (`machine`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Context as _, Error, Result};
use crate::exec::signals;
use crate::failpoint;

use super::spec::HostSpec;

const MOUNT: &str = "/sys/fs/cgroup";
/// How long killed processes may take to leave.
const LAST_BREATH: Duration = Duration::from_secs(10);

/// Whether this machine has the unified hierarchy alone.
pub(super) fn is_unified() -> bool {
    Path::new(MOUNT).join("cgroup.controllers").exists()
}

/// Moves this process, and so all that it starts from now on, into the machine's cgroup in every
/// hierarchy.
pub(super) fn enter(machine: &str) -> Result<()> {
    for root in hierarchies()? {
        let dir = root.join(machine);
        failpoint::pass(format_args!("cgroup in {}: before", root.display()));
        fs_err::create_dir_all(&dir)?;
        if root.join("cpuset.cpus").exists() && !is_unified() {
            inherit_cpuset(&root, &dir)?;
        }
        fs_err::write(dir.join("cgroup.procs"), std::process::id().to_string())
            .context(format!("cannot enter the cgroup {}", dir.display()))?;
    }
    failpoint::pass(format_args!("cgroups entered"));
    Ok(())
}

/// Removes the machine's cgroups, deepest first. Processes left in them are killed: an nspawn that
/// was itself killed leaves processes behind, some of them for a moment only, and nothing else can
/// be in a cgroup of this name.
pub(super) fn remove(machine: &str) -> Result<()> {
    let since = Instant::now();
    for root in hierarchies()? {
        let dir = root.join(machine);
        if dir.exists() {
            failpoint::pass(format_args!("cgroup in {}: before its removal", root.display()));
        }
        while let Err(error) = remove_tree(&dir) {
            if since.elapsed() > LAST_BREATH {
                return Err(error);
            }
            kill_all(&dir);
            signals::sleep(Duration::from_millis(20))?;
        }
    }
    Ok(())
}

/// Writes the limits of a host into its cgroup, and takes away those that its description says
/// nothing of.
pub(super) fn limit(spec: &HostSpec) -> Result<()> {
    let dirs: Vec<PathBuf> = hierarchies()?.into_iter().map(|root| root.join(&spec.machine)).collect();
    limit_in(&dirs, spec)
}

/// Microseconds of the period that the quota of a CPU limit is a part of: the kernel's default.
const PERIOD: u64 = 100_000;

/// In the directories of the host in all hierarchies: with one for each controller (v1), or with
/// one for all (v2).
fn limit_in(dirs: &[PathBuf], spec: &HostSpec) -> Result<()> {
    let quota = spec.cpu_millis.map(|millis| millis * PERIOD / 1000);
    let text = |value: Option<u64>, none: &str| value.map_or_else(|| none.to_owned(), |value| value.to_string());
    let files = [
        ("memory", spec.memory.is_some(), "memory.max", text(spec.memory, "max")),
        ("memory", spec.memory.is_some(), "memory.limit_in_bytes", text(spec.memory, "-1")),
        ("cpu", quota.is_some(), "cpu.max", format!("{} {PERIOD}", text(quota, "max"))),
        ("cpu", quota.is_some(), "cpu.cfs_quota_us", text(quota, "-1")),
    ];
    for controller in ["memory", "cpu"] {
        let mut found = false;
        let own = files.iter().filter(|(of, ..)| *of == controller);
        for path in own.clone().flat_map(|(_, _, file, value)| dirs.iter().map(move |dir| (dir.join(file), value))) {
            let (path, value) = path;
            if path.exists() {
                found = true;
                failpoint::pass(format_args!("limit {}: before", path.display()));
                fs_err::write(&path, value).map_err(|error| refused(controller, spec).source(error))?;
            }
        }
        if !found && own.clone().any(|(_, wanted, ..)| *wanted) {
            return Err(refused(controller, spec).evidence(format!("no cgroup of it has the controller {controller}")));
        }
    }
    Ok(())
}

fn refused(controller: &str, spec: &HostSpec) -> Error {
    let message = format!("this machine's kernel refuses the {controller} limit of host {}", spec.name);
    Error::precondition(message).hint(format!(
        "set phase1.local.{controller}_limit to more than the host uses now, or to nothing; then turnup up"
    ))
}

/// The same as properties of a unit of systemd (systemd.resource-control(5)).
pub(super) fn properties(spec: &HostSpec) -> [String; 2] {
    let memory = spec.memory.map_or_else(|| "infinity".to_owned(), |bytes| bytes.to_string());
    let cpu = spec.cpu_millis.map_or_else(String::new, |millis| format!("{}.{}%", millis / 10, millis % 10));
    [format!("MemoryMax={memory}"), format!("CPUQuota={cpu}")]
}

fn kill_all(dir: &Path) {
    // Processes and directories may vanish under the eyes; the next attempt to remove the directory
    // decides.
    let procs = fs_err::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    for pid in procs.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        let _gone = kill_process(pid, Signal::KILL);
    }
    for entry in fs_err::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            kill_all(&entry.path());
        }
    }
}

/// On v1 a new cpuset has no CPU and no memory node, and nothing may enter it before it has.
fn inherit_cpuset(root: &Path, dir: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        fs_err::write(dir.join(file), fs_err::read_to_string(root.join(file))?)?;
    }
    Ok(())
}

fn hierarchies() -> Result<Vec<PathBuf>> {
    if is_unified() {
        let root = PathBuf::from(MOUNT);
        // The controllers that a kubelet needs; one that this kernel lacks is refused by itself,
        // without harm to the others.
        for controller in ["cpu", "cpuset", "memory", "pids", "io"] {
            drop(fs_err::write(root.join("cgroup.subtree_control"), format!("+{controller}")));
        }
        return Ok(vec![root]);
    }
    let mut roots = Vec::new();
    for entry in fs_err::read_dir(MOUNT)? {
        let path = entry?.path();
        // The named hierarchy `systemd` and the empty `unified` count as well: the systemds of two
        // hosts would remove each other's units from a common one.
        if path.is_dir() && !path.is_symlink() && path.join("cgroup.procs").exists() {
            roots.push(path);
        }
    }
    Ok(roots)
}

fn remove_tree(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs_err::remove_dir(dir)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    fn spec(memory: Option<u64>, cpu_millis: Option<u64>) -> HostSpec {
        let spec = serde_json::json!({
            "name": "a", "machine": "m", "interface": "i", "address": "10.0.0.2", "dir": "/d", "root": "/r",
            "network": {"bridge": "b", "gateway": "10.0.0.1", "prefix": 24, "open_ports": []},
            "authorized_keys": "/k", "host_key": "/h", "blobs": "/b",
        });
        HostSpec { memory, cpu_millis, ..serde_json::from_value(spec).unwrap() }
    }

    #[test]
    fn limits_are_written_where_the_controllers_are_and_lifted_again() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = ["memory", "cpu", "named"].map(|name| dir.path().join(name));
        for (dir, file) in dirs.iter().zip(["memory.limit_in_bytes", "cpu.cfs_quota_us", "cgroup.procs"]) {
            fs_err::create_dir(dir).unwrap();
            fs_err::write(dir.join(file), "").unwrap();
        }
        let read = |at: usize, file: &str| fs_err::read_to_string(dirs[at].join(file)).unwrap();
        limit_in(&dirs, &spec(Some(1 << 31), Some(1500))).unwrap();
        assert_eq!(
            (read(0, "memory.limit_in_bytes"), read(1, "cpu.cfs_quota_us")),
            ("2147483648".into(), "150000".into())
        );
        limit_in(&dirs, &spec(None, None)).unwrap();
        assert_eq!((read(0, "memory.limit_in_bytes"), read(1, "cpu.cfs_quota_us")), ("-1".into(), "-1".into()));
        assert!(!dirs[2].join("memory.max").exists());

        let unified = [dir.path().join("unified")];
        fs_err::create_dir(&unified[0]).unwrap();
        limit_in(&unified, &spec(None, None)).unwrap();
        let error = limit_in(&unified, &spec(None, Some(500))).unwrap_err();
        assert!(error.message().contains("refuses the cpu limit of host a"), "{}", error.message());
        for file in ["memory.max", "cpu.max"] {
            fs_err::write(unified[0].join(file), "").unwrap();
        }
        limit_in(&unified, &spec(None, Some(500))).unwrap();
        assert_eq!(fs_err::read_to_string(unified[0].join("cpu.max")).unwrap(), "50000 100000");
        assert_eq!(fs_err::read_to_string(unified[0].join("memory.max")).unwrap(), "max");
    }

    #[test]
    fn systemd_gets_the_same_limits() {
        assert_eq!(properties(&spec(Some(1024), Some(1250))), ["MemoryMax=1024", "CPUQuota=125.0%"]);
        assert_eq!(properties(&spec(None, None)), ["MemoryMax=infinity", "CPUQuota="]);
    }
}
