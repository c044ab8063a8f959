//! SIGINT, SIGTERM and SIGHUP: noticed once, forwarded once, remembered.
//!
//! A second interrupt makes terraform give up at once and lose state, and a terminal sends Ctrl-C
//! to its whole foreground group. So every child lives in a group of its own, the first signal is
//! sent to each running group exactly once, and later ones are swallowed while the children end.
//! The thread that waits for a child kills its group when the child's grace period is over.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{Context as _, Error, Result};

/// The interval at which a lock held by another process is tried.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Watch {
    listening: bool,
    stopped: Option<(Instant, Signal)>,
    groups: BTreeSet<u32>,
}

static WATCH: LazyLock<(Mutex<Watch>, Condvar)> = LazyLock::new(Default::default);

fn watch() -> MutexGuard<'static, Watch> {
    // A panic elsewhere must not take away the way to stop.
    WATCH.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that listens. Called once by the binary before anything is spawned; again is
/// harmless.
pub fn install() -> Result<()> {
    let mut state = watch();
    if state.listening {
        return Ok(());
    }
    let hangup = (!hangup_is_ignored()).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup)).context("cannot listen for signals")?;
    let listen = move || {
        for number in &mut signals {
            stop(if number == SIGINT { Signal::INT } else { Signal::TERM });
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(listen)
        .context("cannot start the thread that listens for signals")?;
    state.listening = true;
    Ok(())
}

/// Whether our parent (nohup) wants us to outlive the terminal.
fn hangup_is_ignored() -> bool {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// What the first signal does: also callable by a screen in raw mode, where Ctrl-C is a key and not
/// a signal.
pub fn stop(signal: Signal) {
    let mut state = watch();
    if state.stopped.is_some() {
        return;
    }
    state.stopped = Some((Instant::now(), signal));
    for group in &state.groups {
        send(*group, signal);
    }
    WATCH.1.notify_all();
}

/// Whether a signal has asked us to stop.
#[must_use]
pub fn interrupted() -> bool {
    since().is_some()
}

/// When a signal asked us to stop.
#[must_use]
pub fn since() -> Option<Instant> {
    watch().stopped.map(|(since, _)| since)
}

/// An error of class `Interrupted` once a signal has asked us to stop.
pub fn check() -> Result<()> {
    match watch().stopped {
        None => Ok(()),
        Some((_, signal)) => {
            let name = if signal == Signal::INT { "SIGINT" } else { "SIGTERM" };
            Err(Error::interrupted(format!("stopped by {name}")))
        }
    }
}

/// Sleeps, but not longer than until a signal comes.
pub fn sleep(duration: Duration) -> Result<()> {
    let end = Instant::now() + duration;
    let mut state = watch();
    while state.stopped.is_none() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        state = WATCH.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(state);
    check()
}

/// Waits for the lock on this file, but not longer than until a signal comes. Whether it came
/// within the limit.
pub fn lock(file: &fs_err::File, limit: Duration) -> Result<bool> {
    let start = Instant::now();
    while file.file().try_lock().is_err() {
        if start.elapsed() > limit {
            return Ok(false);
        }
        sleep(LOOK_AGAIN)?;
    }
    Ok(true)
}

/// Starts a child and registers its group as one act: no signal can fall between. After a stop only
/// cleaning up starts anything.
pub(super) fn start_registered<T>(
    cleanup: bool,
    start: impl FnOnce() -> io::Result<T>,
    group: impl FnOnce(&T) -> Option<u32>,
) -> io::Result<Option<T>> {
    let mut state = watch();
    if state.stopped.is_some() && !cleanup {
        return Ok(None);
    }
    let child = start()?;
    if let Some(group) = group(&child) {
        state.groups.insert(group);
    }
    Ok(Some(child))
}

/// Forgets a group whose leader has been waited for.
pub(super) fn unregister(group: u32) {
    watch().groups.remove(&group);
}

/// Sends a signal to a whole group; a group that is gone is fine.
pub(super) fn send(group: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // ESRCH: all its processes have ended already, which is what a signal is for.
        let _gone = kill_process_group(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_lock_is_waited_for_as_long_as_was_said() {
        let dir = tempfile::tempdir().unwrap();
        let open = || fs_err::File::create(dir.path().join("lock")).unwrap();
        let (held, wanted) = (open(), open());
        assert!(lock(&held, Duration::ZERO).unwrap());
        assert!(!lock(&wanted, Duration::from_millis(60)).unwrap());
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(60));
                drop(held);
            });
            assert!(lock(&wanted, Duration::from_mins(1)).unwrap());
        });
    }
}
