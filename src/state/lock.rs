//! The lock: one writer for each cluster.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Name of the machine.
    pub host: String,
    /// When it was taken.
    pub start: Timestamp,
    /// The command that took it.
    pub command: String,
}

/// Proof that this process is the only writer; dropped, the lock is free.
#[derive(Debug)]
pub struct Lock {
    pub(super) previous: Option<Owner>,
}

impl Lock {
    /// The owner that died holding the lock, if the last one did.
    #[must_use]
    pub fn previous(&self) -> Option<&Owner> {
        self.previous.as_ref()
    }
}
