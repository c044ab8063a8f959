//! The points as a test sees them: each asks the log and may be the last thing that this process
//! does.

use std::cell::RefCell;
use std::fmt::Arguments;

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::log::{self, Claim};

/// The variable that names the log; every child inherits it.
pub const VARIABLE: Option<&str> = Some(log::VARIABLE);

thread_local! {
    /// Where this thread is, outermost first: part of every name.
    static PLACE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Dropped, the thread leaves the place that `within` took it to.
#[derive(Debug)]
pub struct Inside(());

impl Drop for Inside {
    fn drop(&mut self) {
        PLACE.with_borrow_mut(|place| drop(place.pop()));
    }
}

/// From here on the names of this thread's points begin with this place: a step, a host, an image.
#[must_use]
pub fn within(place: Arguments<'_>) -> Inside {
    PLACE.with_borrow_mut(|all| all.push(place.to_string()));
    Inside(())
}

/// Dies here when the log says so.
pub fn pass(name: Arguments<'_>) {
    pass_with(name, || {});
}

/// The same, with one last act before: half of a write.
pub fn pass_with(name: Arguments<'_>, last_act: impl FnOnce()) {
    if let Some(claim) = take(name) {
        last_act();
        die(&claim);
    }
}

/// An effect with a point before and one after it.
pub fn around<T>(effect: Arguments<'_>, act: impl FnOnce() -> T) -> T {
    pass(format_args!("{effect}: before"));
    let result = act();
    pass(format_args!("{effect}: after"));
    result
}

/// Kills the children of this process that run this program, in place of the process itself.
pub fn kill_children(name: Arguments<'_>, program: &str) {
    let Some(_turn) = take(name) else { return };
    for entry in fs_err::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        // `pid (name) state parent …`; a process may end under the eyes.
        let Ok(stat) = fs_err::read_to_string(entry.path().join("stat")) else { continue };
        let Some((head, rest)) = stat.rsplit_once(") ") else { continue };
        let parent = rest.split(' ').nth(1).and_then(|field| field.parse().ok()).and_then(Pid::from_raw);
        if parent == Some(getpid()) && head.ends_with(&format!("({program}")) {
            let _gone = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether there is a log: then retries need not wait long.
#[must_use]
pub fn is_enabled() -> bool {
    log::path().is_some_and(std::path::Path::exists)
}

fn take(name: Arguments<'_>) -> Option<Claim> {
    log::path()?;
    let place = PLACE.with_borrow(|place| place.join(" > "));
    let name = if place.is_empty() { name.to_string() } else { format!("{place} > {name}") };
    log::take(&name)
}

/// The turn is held until the end, so that no other thread writes down a death that it does not
/// die.
fn die(_turn: &Claim) -> ! {
    loop {
        // The process does not come back from this, so there is nothing to do about an error.
        let _never = kill_process(getpid(), Signal::KILL);
        std::thread::park();
    }
}
