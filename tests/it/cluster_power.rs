//! The end of a local host without a word to anything that runs on it, as when its power is cut.
#![expect(clippy::disallowed_methods, reason = "the test finds a host's processes with the system's own tools")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cluster_support::Site;

impl Site {
    /// The first process of a host, the leader's child.
    pub(crate) fn init(&self, host: &str) -> Pid {
        let leader = self.leader(host).unwrap().as_raw_nonzero().to_string();
        let init = Command::new("pgrep").args(["--parent", &leader]).output().unwrap();
        let init = String::from_utf8(init.stdout).unwrap();
        Pid::from_raw(init.lines().next().unwrap().parse().unwrap()).unwrap()
    }

    /// Kills everything that runs on a host. The kernel does with its first process: the leader
    /// alone would leave that behind.
    pub(crate) fn cut_power(&self, host: &str) {
        let leader = self.leader(host);
        kill_process(self.init(host), Signal::KILL).unwrap();
        let since = Instant::now();
        // Another machine may be in its place at once.
        while self.leader(host) == leader {
            assert!(since.elapsed() < Duration::from_mins(10), "{host} does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
