//! Points at which a test may end this process as a crash would: at once, with nothing flushed and
//! nothing reported.
//!
//! Every effect passes one before and one after it: a line of the journal, a file, a child process,
//! whatever a host is made of. Who dies where is said by a log, a file of a test: a process that
//! comes to a point whose name is not in it writes the name down and kills itself, so that a chain
//! of runs dies once at each point of its way. Names are the same in each run: no process ids,
//! times, digests.
//!
//! Without the feature `failpoints` all of this is nothing at all. This module knows no effect; it
//! must never be what an effect waits for.

#[cfg(feature = "failpoints")]
mod log;

#[cfg(feature = "failpoints")]
mod enabled;
#[cfg(feature = "failpoints")]
pub use enabled::{Inside, VARIABLE, around, is_enabled, kill_children, pass, pass_with, within};

#[cfg(not(feature = "failpoints"))]
mod disabled;
#[cfg(not(feature = "failpoints"))]
pub use disabled::{Inside, VARIABLE, around, is_enabled, kill_children, pass, pass_with, within};

/// Where the log of a host lies: ssh hands over no variables. Honoured only with the feature
/// `failpoints`.
pub const ON_HOST: &str = "/var/tmp/turnup-failpoint-log";
