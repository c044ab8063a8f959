//! Objects of the cluster whose annotations ask for names: which those are, kept up to date by a
//! watch of each kind, and where each name is to lead. Writes nothing.

mod host_name;
mod known;
mod object;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::super::https_endpoint::HttpsEndpoint;

use host_name::HostNames;
use known::{KnownObjects, lock};
use object::SourceKind;
pub(crate) use object::{EXTERNAL, INTERNAL};
pub(super) use object::{Rules, Wanted};
use watch::SourceWatch;

/// The watches of all kinds. They end with it.
pub(super) struct NameSources {
    known: Arc<Mutex<KnownObjects>>,
    host_names: HostNames,
    is_over: Arc<AtomicBool>,
}

impl Drop for NameSources {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl NameSources {
    /// Begins to watch.
    pub(super) fn watch(api: &HttpsEndpoint) -> Self {
        let is_over = Arc::default();
        let sources = Self { known: Arc::default(), host_names: HostNames::watch(Arc::clone(&is_over)), is_over };
        for kind in SourceKind::ALL {
            let watch = SourceWatch {
                api: api.clone(),
                kind,
                known: Arc::clone(&sources.known),
                is_over: Arc::clone(&sources.is_over),
            };
            thread::spawn(move || watch.run());
        }
        sources
    }

    /// The names that all objects ask for. None before every kind was read once: what is missing
    /// would be taken for gone.
    pub(super) fn wanted(&self, rules: &Rules<'_>) -> Option<Wanted> {
        let known = lock(&self.known);
        let is_whole = SourceKind::ALL.iter().all(|kind| known.objects.contains_key(kind));
        is_whole.then(|| object::find_wanted(&known.objects, rules))
    }

    /// The addresses of a load balancer that has a name; none while they are not known.
    pub(super) fn look_up(&self, name: &str) -> Option<BTreeSet<IpAddr>> {
        self.host_names.find(name)
    }

    /// All kinds, as [`failures`](Self::failures) calls them.
    pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
        SourceKind::ALL.into_iter().map(SourceKind::plural)
    }

    /// Which kinds cannot be read now, and why.
    pub(super) fn failures(&self) -> BTreeMap<&'static str, String> {
        lock(&self.known).failures.iter().map(|(kind, why)| (kind.plural(), why.clone())).collect()
    }
}
