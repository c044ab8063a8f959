//! Points at which a test may end this process as a crash would: at once, with nothing flushed and nobody told.
//!
//! Every effect passes one before and one after it: a line of the journal, a file, a child process, whatever a host is made of. Who dies
//! where is said by a ledger, a file of a test: a process that comes to a point whose name is not in it writes the name down and kills
//! itself, so that a chain of runs dies once at each point of its way. Names are the same in each run: no process ids, times, digests.
//!
//! Without the feature `kill-points` all of this is nothing at all. This room knows no effect; it must never be what an effect waits for.

#[cfg(feature = "kill-points")]
mod ledger;

#[cfg(feature = "kill-points")]
mod armed;
#[cfg(feature = "kill-points")]
pub use armed::{Inside, around, is_armed, kill_children, pass, pass_with, within};

#[cfg(not(feature = "kill-points"))]
mod unarmed;
#[cfg(not(feature = "kill-points"))]
pub use unarmed::{Inside, around, is_armed, kill_children, pass, pass_with, within};

/// The variable that names the ledger; every child inherits it.
#[cfg(feature = "kill-points")]
pub const VARIABLE: Option<&str> = Some(ledger::VARIABLE);
/// No variable: there are no points.
#[cfg(not(feature = "kill-points"))]
pub const VARIABLE: Option<&str> = None;

/// Where the ledger of a host lies: ssh hands over no variables. Honoured only with the feature `kill-points`.
pub const ON_HOST: &str = "/var/tmp/turnup-kill-ledger";
