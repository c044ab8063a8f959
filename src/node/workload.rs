//! The processes of pods: found by the shims of our own containerd and by kubelet's cgroups, and
//! ended. Containers of another containerd have another shim and stay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};

use super::layout::{self, program};

/// How long containers may take to end by themselves: they will not be missed.
const ORDERLY: Duration = Duration::from_secs(8);
/// And then to vanish.
const KILLED: Duration = Duration::from_secs(20);

/// A process as far as it matters here.
struct Process {
    parent: i32,
    program: String,
    in_pod: bool,
}

/// Ends what runs in pods; containerd still takes note of it.
pub(super) fn stop_containers() -> Result<usize> {
    end(find_containers, "containers")
}

/// Ends what is left of our programs: shims, and whatever a unit that is stopped has left.
pub(super) fn stop_programs() -> Result<usize> {
    end(find_programs, "programs of turnup's")
}

fn end(find: fn() -> BTreeSet<i32>, what: &str) -> Result<usize> {
    let (since, count) = (Instant::now(), find().len());
    let mut asked = BTreeSet::new();
    loop {
        let left = find();
        if left.is_empty() {
            return Ok(count);
        }
        if since.elapsed() > ORDERLY + KILLED {
            let error = Error::transient(format!("{} {what} do not end", left.len()));
            let shown = left.iter().map(|pid| format!("process {pid}"));
            return Err(shown.take(5).fold(error, Error::evidence).hint("look on the host with: ps -f"));
        }
        for pid in left {
            let signal = if since.elapsed() > ORDERLY { Signal::KILL } else { Signal::TERM };
            // Asked once; it may be gone before the signal comes.
            if signal == Signal::KILL || asked.insert(pid) {
                let _gone = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
            }
        }
        // Not to be cut short: stopped halfway, it is done again.
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Descendants of our shims, and all processes in kubelet's cgroups.
fn find_containers() -> BTreeSet<i32> {
    let all = processes();
    let is_shim = |process: &Process| process.program.starts_with(&program("containerd-shim"));
    let mut found: BTreeSet<i32> =
        all.iter().filter(|(_, process)| process.in_pod && !is_shim(process)).map(|(pid, _)| *pid).collect();
    let shims: BTreeSet<i32> = all.iter().filter(|(_, process)| is_shim(process)).map(|(pid, _)| *pid).collect();
    loop {
        let before = found.len();
        let child = |process: &Process| shims.contains(&process.parent) || found.contains(&process.parent);
        let children: Vec<i32> =
            all.iter().filter(|(_, process)| child(process) && !is_shim(process)).map(|(pid, _)| *pid).collect();
        found.extend(children);
        if found.len() == before {
            return found;
        }
    }
}

fn find_programs() -> BTreeSet<i32> {
    let of_ours = |process: &Process| {
        process.program.starts_with(&program(""))
            && !process.program.trim_end_matches(" (deleted)").ends_with("/turnup")
    };
    processes().into_iter().filter(|(_, process)| of_ours(process)).map(|(pid, _)| pid).collect()
}

fn processes() -> BTreeMap<i32, Process> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid: i32| Some((pid, read(pid)?))).collect()
}

fn read(pid: i32) -> Option<Process> {
    let dir = PathBuf::from(format!("/proc/{pid}"));
    let stat = fs_err::read_to_string(dir.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    let program = fs_err::read_link(dir.join("exe")).map(|path| path.display().to_string()).unwrap_or_default();
    let in_pod = fs_err::read_to_string(dir.join("cgroup")).is_ok_and(|text| text.contains("/kubepods"));
    Some(Process { parent, program, in_pod })
}

/// Removes kubelet's cgroups, and that of a learner of etcd whose agent was killed, deepest first,
/// once they are empty.
pub(super) fn remove_cgroups() -> Result<usize> {
    let mut count = 0;
    let mount = Path::new("/sys/fs/cgroup");
    let roots = fs_err::read_dir(mount).into_iter().flatten().flatten().map(|entry| entry.path());
    for root in roots.chain([mount.to_owned()]) {
        for name in ["kubepods", "kubepods.slice", layout::ETCD_JOINER] {
            let dir = root.join(name);
            if dir.is_dir() && !root.is_symlink() {
                remove_tree(&dir)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

fn remove_tree(dir: &Path) -> Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_tree(&path)?;
        }
    }
    // A killed process needs a moment to leave.
    let since = Instant::now();
    while let Err(error) = fs_err::remove_dir(dir) {
        if since.elapsed() > KILLED {
            return Err(error.into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
