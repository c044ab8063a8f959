//! Does kubelet stay up? One that ends again and again starts no static pod, and its own last words
//! say why. It starts and stops nothing.

use std::time::{Duration, Instant};

use super::systemd;
use crate::error::{Error, Result};

const UNIT: &str = "kubelet.service";
/// So often it may end while a host becomes a node, as it does without its container runtime.
/// systemd starts it again after two seconds.
const MOST_RESTARTS: u32 = 10;
/// Between two questions to systemd.
const INTERVAL: Duration = Duration::from_secs(2);
/// Of its errors so many are shown, the last ones.
const SHOWN: usize = 3;

/// kubelet while something is waited for that it has to start.
pub(super) struct KubeletWatch {
    restarts: u32,
    asked: Instant,
}

impl KubeletWatch {
    /// From now on.
    pub(super) fn new() -> Self {
        Self { restarts: systemd::count_restarts(UNIT), asked: Instant::now() }
    }

    /// An error with kubelet's own reason when it does not stay up.
    pub(super) fn require_up(&mut self) -> Result<()> {
        if self.asked.elapsed() < INTERVAL {
            return Ok(());
        }
        self.asked = Instant::now();
        let times = systemd::count_restarts(UNIT).saturating_sub(self.restarts);
        if times < MOST_RESTARTS {
            return Ok(());
        }
        let error = Error::permanent(format!("kubelet ended {times} times: it does not run with its configuration"));
        let error = last_errors(&systemd::journal(UNIT, 200)).into_iter().fold(error, Error::evidence);
        Err(error.hint("journalctl --unit kubelet (on the host)"))
    }
}

/// The last lines of a level above warning, as klog marks them (`E1125 01:52:09.047358 …`); without
/// any the last lines.
fn last_errors(journal: &str) -> Vec<String> {
    let is_error = |line: &&str| {
        let mut letters = line.chars();
        matches!(letters.next(), Some('E' | 'F')) && letters.take(4).all(|letter| letter.is_ascii_digit())
    };
    let lines: Vec<&str> = journal.lines().collect();
    let errors: Vec<&str> = lines.iter().copied().filter(is_error).collect();
    let chosen = if errors.is_empty() { lines } else { errors };
    chosen[chosen.len().saturating_sub(SHOWN)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::last_errors;

    #[test]
    fn errors_of_klog_are_told_from_its_other_lines() {
        let journal = "I1125 01:52:08.8 a\nE1125 01:52:09.0 no directory\nEnding\nsystemd says so\n";
        assert_eq!(last_errors(journal), ["E1125 01:52:09.0 no directory"]);
        assert_eq!(last_errors("a\nb\nc\nd\n"), ["b", "c", "d"]);
        assert!(last_errors("").is_empty());
    }
}
