//! Points at which a test may end this process as a crash would: at once, with nothing flushed and nobody told.
//!
//! Without the feature `kill-points` this is nothing at all.

/// Where in the life of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Point {
    BeforeIntent,
    AfterIntent,
    AfterEffect,
    AfterOutcome,
}

/// Kills the process when `TURNUP_KILL_AT` is `<step id>:<point>` for this step and this point; the id `*` is every step's.
#[cfg(feature = "kill-points")]
pub(super) fn pass(step: &str, point: Point) {
    let name = match point {
        Point::BeforeIntent => "before-intent",
        Point::AfterIntent => "after-intent",
        Point::AfterEffect => "after-effect",
        Point::AfterOutcome => "after-outcome",
    };
    if std::env::var("TURNUP_KILL_AT").is_ok_and(|at| at == format!("{step}:{name}") || at == format!("*:{name}")) {
        // The process does not come back from this, so there is nothing to do about an error.
        let _never = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::thread::park();
    }
}

#[cfg(not(feature = "kill-points"))]
pub(super) const fn pass(_step: &str, _point: Point) {}
