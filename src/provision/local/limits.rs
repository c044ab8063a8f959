//! The one limit of this machine that all programs share and local hosts exhaust: inotify
//! instances. It is raised before hosts are made, because the programs that run into it fail in
//! ways that do not name it, and restored when the last host is gone.

use std::fmt;
use std::path::Path;

use crate::atomic_file::{FileMode, replace};
use crate::error::{Context as _, Error, Result};

use super::registry;

const INSTANCES: &str = "/proc/sys/fs/inotify/max_user_instances";
/// What the limit was, and what it was raised to; below the registry's directory.
const RAISED: &str = "inotify-instances";
/// What systemd, containerd, kubelet and the addons of one host hold, measured; and what the
/// pods of one control-plane host hold besides.
const OF_A_HOST: usize = 18;
const OF_A_CONTROL_PLANE: usize = 16;

/// What was done to the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised {
    from: usize,
    to: usize,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fs.inotify.max_user_instances raised from {} to {} until the last local host is gone",
            self.from, self.to
        )
    }
}

/// Lets this machine watch enough files for so many more hosts, of which some are control-plane
/// hosts: else containerd and kubelet would not start on the last ones. None where the limit is
/// high enough.
pub fn make_room(hosts: usize, control_planes: usize) -> Result<Option<Raised>> {
    let needed = hosts * OF_A_HOST + control_planes.max(1) * OF_A_CONTROL_PLANE;
    make_room_in(Path::new(INSTANCES), Path::new(registry::DIR), hosts, needed, count_instances())
}

/// Gives the limit back the value that it had, unless another hand has changed it since.
pub(super) fn restore() -> Result<()> {
    restore_in(Path::new(INSTANCES), Path::new(registry::DIR))
}

fn make_room_in(limit: &Path, dir: &Path, hosts: usize, more: usize, used: usize) -> Result<Option<Raised>> {
    let from = read_limit(limit);
    let needed = used + more;
    if hosts == 0 || needed <= from {
        return Ok(None);
    }
    let raised = Raised { from, to: (2 * needed).next_power_of_two() };
    // The first value is the user's; a later raise keeps it.
    let first = read_record(dir).map_or(from, |(first, _)| first);
    registry::make_dir(dir)?;
    let record = format!("{first} {}\n", raised.to);
    replace(&dir.join(RAISED), record.as_bytes(), FileMode::Exact(0o600)).context("cannot record the inotify limit")?;
    fs_err::write(limit, raised.to.to_string()).map_err(|error| {
        let message = format!(
            "{hosts} more hosts need about {more} inotify instances; this machine allows {from}, and {used} are in use"
        );
        let hint = format!("sysctl -w fs.inotify.max_user_instances={}", raised.to);
        Error::precondition(message).source(error).hint(hint)
    })?;
    Ok(Some(raised))
}

fn restore_in(limit: &Path, dir: &Path) -> Result<()> {
    let Some((first, ours)) = read_record(dir) else { return Ok(()) };
    if read_limit(limit) == ours {
        fs_err::write(limit, first.to_string())?;
    }
    fs_err::remove_file(dir.join(RAISED))?;
    Ok(())
}

fn read_limit(limit: &Path) -> usize {
    fs_err::read_to_string(limit).unwrap_or_default().trim().parse().unwrap_or(usize::MAX)
}

fn read_record(dir: &Path) -> Option<(usize, usize)> {
    let text = fs_err::read_to_string(dir.join(RAISED)).ok()?;
    let (first, ours) = text.trim().split_once(' ')?;
    Some((first.parse().ok()?, ours.parse().ok()?))
}

/// All open ones, of every process: the limit is a user's, and local hosts are root's.
fn count_instances() -> usize {
    let processes = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    let files =
        processes.flat_map(|process| fs_err::read_dir(process.path().join("fd")).into_iter().flatten().flatten());
    files
        .filter(|file| fs_err::read_link(file.path()).is_ok_and(|link| link.as_os_str() == "anon_inode:inotify"))
        .count()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn the_limit_is_raised_for_hosts_and_restored_after_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let (limit, run) = (dir.path().join("limit"), dir.path().join("run"));
        fs_err::write(&limit, "128\n").unwrap();
        let now = || fs_err::read_to_string(&limit).unwrap();
        assert_eq!(make_room_in(&limit, &run, 2, 52, 70).unwrap(), None, "122 fit");
        assert_eq!(make_room_in(&limit, &run, 0, 16, 500).unwrap(), None, "no host is to start");
        let raised = make_room_in(&limit, &run, 2, 52, 100).unwrap().unwrap();
        assert_eq!(
            raised.to_string(),
            "fs.inotify.max_user_instances raised from 128 to 512 until the last local host is gone"
        );
        assert_eq!(now(), "512");
        assert_eq!(make_room_in(&limit, &run, 30, 556, 100).unwrap().unwrap(), Raised { from: 512, to: 2048 });
        restore_in(&limit, &run).unwrap();
        assert_eq!(now(), "128", "what it was before the first raise");
        restore_in(&limit, &run).unwrap();
    }

    #[test]
    fn a_limit_that_the_user_has_set_since_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (limit, run) = (dir.path().join("limit"), dir.path().join("run"));
        fs_err::write(&limit, "128\n").unwrap();
        make_room_in(&limit, &run, 2, 52, 100).unwrap();
        fs_err::write(&limit, "8192\n").unwrap();
        restore_in(&limit, &run).unwrap();
        assert_eq!(fs_err::read_to_string(&limit).unwrap(), "8192\n");
    }

    #[test]
    fn a_limit_that_cannot_be_raised_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        // Read only even for root: the most groups of a process.
        let limit = Path::new("/proc/sys/kernel/ngroups_max");
        let used = read_limit(limit);
        let error = make_room_in(limit, dir.path(), 2, 52, used).unwrap_err();
        assert!(error.message().starts_with("2 more hosts need about 52 inotify instances"), "{}", error.message());
        assert!(error.next().is_some_and(|next| next.starts_with("sysctl -w fs.inotify.max_user_instances=")));
    }
}
