//! What is known of objects that may ask for names, shared by the threads that watch them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::object::{SourceKind, SourceObject};

/// The objects of one kind, by namespace and name.
pub(super) type Listed = BTreeMap<(String, String), SourceObject>;

/// What is known of them, shared with the threads that watch.
#[derive(Default)]
pub(super) struct KnownObjects {
    /// A kind is missing until all of its objects were read once.
    pub(super) objects: BTreeMap<SourceKind, Listed>,
    /// What was wrong last.
    pub(super) failures: BTreeMap<SourceKind, String>,
}

/// Waits for its turn.
pub(super) fn lock(known: &Mutex<KnownObjects>) -> MutexGuard<'_, KnownObjects> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
