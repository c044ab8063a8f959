//! A cgroup of its own for every host, on cgroup v1 and v2: the host sees it as the root of its
//! tree, so that kubelets on one machine do not meet. With systemd as this machine's init, systemd
//! makes the cgroup instead (`machine`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Context as _, Result};
use crate::exec::signals;
use crate::failpoint;

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
