//! The only module that writes `.turnup/<cluster>/`.
//!
//! The journal is the truth: an append-only file of what started and how it ended, synced line by
//! line. `state.json` is a snapshot of it and can be rebuilt. Every other file is written whole or
//! not at all. This module knows no phase: a step is a name and a digest here.

mod credential;
mod errors;
mod events;
mod journal;
mod lock;
mod snapshot;
mod store;
mod tail;

pub use credential::Credential;
pub use events::{EventFile, KeptRun};
pub use journal::{JournalEntry, Line, Outcome};
pub use lock::{ClusterLock, Holder, Owner};
pub use snapshot::{Open, Record, State};
pub use store::Store;
pub use tail::Tail;
