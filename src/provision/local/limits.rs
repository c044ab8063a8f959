//! Limits of this machine that all programs share: checked before hosts are made, because the
//! programs that run into such a limit fail in ways that do not name it. Read only.

use crate::error::{Error, Result};

const INSTANCES: &str = "/proc/sys/fs/inotify/max_user_instances";
/// What systemd, containerd, kubelet and the addons of one host hold, measured; and what the control plane's pods hold besides.
const OF_A_HOST: usize = 18;
const OF_THE_CONTROL_PLANE: usize = 16;

/// An error when this machine cannot watch enough files for so many more hosts: containerd and kubelet would not start on the last ones.
pub fn require_room(hosts: usize) -> Result<()> {
    let limit = fs_err::read_to_string(INSTANCES).unwrap_or_default().trim().parse().unwrap_or(usize::MAX);
    judge(hosts, limit, count_instances())
}

fn judge(hosts: usize, limit: usize, used: usize) -> Result<()> {
    if hosts == 0 {
        return Ok(());
    }
    let needed = hosts * OF_A_HOST + OF_THE_CONTROL_PLANE;
    if used + needed <= limit {
        return Ok(());
    }
    let message = format!(
        "{hosts} more hosts need about {needed} inotify instances; this machine allows {limit}, and {used} are in use"
    );
    let enough = (2 * (used + needed)).next_power_of_two();
    Err(Error::precondition(message).hint(format!("sysctl -w fs.inotify.max_user_instances={enough}")))
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
    fn hosts_that_do_not_fit_are_refused_with_the_way_out() {
        assert!(judge(4, 128, 20).is_ok());
        assert!(judge(0, 0, 500).is_ok());
        let error = judge(2, 128, 100).unwrap_err();
        assert_eq!(error.class(), crate::Class::Precondition);
        assert_eq!(
            error.message(),
            "2 more hosts need about 52 inotify instances; this machine allows 128, and 100 are in use"
        );
        assert_eq!(error.next(), Some("sysctl -w fs.inotify.max_user_instances=512"));
    }
}
