//! The addresses of load balancers that have a name, as this host's resolver knows them. A thread
//! asks, because a resolver that is away takes half a minute to say so.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::exec::signals;

/// How long an answer counts, and how long a name is looked up that is not asked for.
const LIFETIME: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_mins(10);

#[derive(Clone)]
struct HostName {
    /// The last answer: it stays when the resolver does not answer.
    addresses: Option<BTreeSet<IpAddr>>,
    looked_up: Option<Instant>,
    asked: Instant,
}

type HostNameTable = Arc<Mutex<BTreeMap<String, HostName>>>;

/// The names that were asked for.
pub(super) struct HostNames {
    known: HostNameTable,
}

fn lock(known: &HostNameTable) -> MutexGuard<'_, BTreeMap<String, HostName>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostNames {
    /// Looks up until it is over.
    pub(super) fn watch(is_over: Arc<AtomicBool>) -> Self {
        let known = HostNameTable::default();
        let shared = Arc::clone(&known);
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) && signals::sleep(Duration::from_secs(1)).is_ok() {
                look_up(&shared);
            }
        });
        Self { known }
    }

    /// What is known of it. It is looked up from now on.
    pub(super) fn find(&self, name: &str) -> Option<BTreeSet<IpAddr>> {
        let now = Instant::now();
        let new = || HostName { addresses: None, looked_up: None, asked: now };
        let mut known = lock(&self.known);
        let entry = known.entry(name.to_owned()).or_insert_with(new);
        entry.asked = now;
        entry.addresses.clone()
    }
}

fn look_up(known: &HostNameTable) {
    lock(known).retain(|_, name| name.asked.elapsed() < IDLE);
    let is_due = |name: &HostName| name.looked_up.is_none_or(|at| at.elapsed() >= LIFETIME);
    let due: Vec<String> = lock(known).iter().filter(|(_, name)| is_due(name)).map(|(name, _)| name.clone()).collect();
    for name in due {
        let found = (name.as_str(), 0).to_socket_addrs();
        let addresses: Option<BTreeSet<IpAddr>> = found.ok().map(|all| all.map(|address| address.ip()).collect());
        if let Some(entry) = lock(known).get_mut(&name) {
            entry.looked_up = Some(Instant::now());
            entry.addresses = addresses.or_else(|| entry.addresses.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_stays_when_the_resolver_is_away() {
        let names = HostNames { known: HostNameTable::default() };
        assert_eq!(names.find("localhost"), None, "not looked up yet");
        assert_eq!(names.find("nowhere.invalid"), None);
        look_up(&names.known);
        let here = names.find("localhost");
        assert!(here.as_ref().is_some_and(|addresses| addresses.iter().all(IpAddr::is_loopback)), "{here:?}");
        assert_eq!(names.find("nowhere.invalid"), None);
        let last = BTreeSet::from([IpAddr::from([192, 0, 2, 1])]);
        if let Some(entry) = lock(&names.known).get_mut("nowhere.invalid") {
            (entry.addresses, entry.looked_up) = (Some(last.clone()), None);
        }
        look_up(&names.known);
        assert_eq!(names.find("nowhere.invalid"), Some(last));
    }
}
