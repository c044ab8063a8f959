//! An API server whose host is gone leaves the endpoints of the Service `kubernetes` early: pods
//! that meet it wait for nothing. Its lease ends after 15 seconds, and the others look every ten,
//! so its address would stay for 25. This takes its key out of etcd before that.
//!
//! A key is removed once for each time that its API server falls silent, and only while the API
//! server of this host has one. What another host can still reach writes its key again within ten
//! seconds, and is left alone from then on: two hosts that cannot see each other harm nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::failpoint;

use super::super::etcd_api::EtcdApi;
use super::super::https_endpoint::HttpsEndpoint;
use super::super::node_config::NodeConfig;
use super::super::static_pod::{find_flag, find_manifest};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long an API server may take to accept a connection: its kernel answers, however busy it is.
const CONNECT: Duration = Duration::from_secs(1);
/// After so many looks without an answer it is gone.
const SILENT: u32 = 2;
/// Between two questions to etcd which API servers there are.
const LIST: Duration = Duration::from_secs(30);

/// What is known of an API server of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// It accepts connections, but for the last so many looks.
    Serves(u32),
    /// Its key was removed then, and it has accepted no connection since.
    Forgotten(Instant),
}

impl Peer {
    /// After one more look: what is known, and whether its key is to be removed.
    const fn after(self, accepts: bool) -> (Self, bool) {
        match self {
            _ if accepts => (Self::Serves(0), false),
            Self::Serves(missed) => (Self::Serves(missed.saturating_add(1)), missed + 1 >= SILENT),
            Self::Forgotten(_) => (self, false),
        }
    }

    /// Whether it is looked at any longer after etcd said which there are. One that has no key is
    /// over; where it was removed only now, an API server that others reach writes it again.
    fn stays(self, is_listed: bool) -> bool {
        is_listed || matches!(self, Self::Forgotten(at) if at.elapsed() < LIST)
    }
}

/// The API server of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnServer {
    address: IpAddr,
    port: u16,
}

impl OwnServer {
    /// Where this node config has one, beside a member of etcd.
    fn find(node_config: &NodeConfig) -> Option<Self> {
        find_manifest(node_config, "etcd")?;
        let manifest = find_manifest(node_config, "kube-apiserver")?;
        let address = find_flag(manifest, "advertise-address")?.parse().ok()?;
        Some(Self { address, port: find_flag(manifest, "secure-port")?.parse().ok()? })
    }
}

/// What the agent and the thread that looks share.
#[derive(Default)]
struct Shared {
    own: Option<OwnServer>,
    is_started: bool,
    news: Vec<String>,
}

/// The watch over API servers of other hosts.
#[derive(Clone, Default)]
pub(super) struct ApiServerWatch {
    shared: Arc<Mutex<Shared>>,
}

impl ApiServerWatch {
    /// From now on by this node config. The thread begins with the first one that has an API
    /// server.
    pub(super) fn follow(&self, node_config: Option<&NodeConfig>) {
        let own = node_config.and_then(OwnServer::find);
        let starts = self.with(|shared| {
            shared.own = own;
            let starts = own.is_some() && !shared.is_started;
            shared.is_started |= starts;
            starts
        });
        if starts {
            let watch = self.clone();
            thread::spawn(move || watch.run());
        }
    }

    /// What it did since it was asked last.
    pub(super) fn take_news(&self) -> Vec<String> {
        self.with(|shared| std::mem::take(&mut shared.news))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Shared) -> T) -> T {
        act(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As long as the process.
    fn run(&self) {
        let mut peers = Peers::default();
        loop {
            thread::sleep(INTERVAL);
            let Some(own) = self.with(|shared| shared.own) else { continue };
            let removed = peers.look(own.address, &EtcdKeys { port: own.port });
            let told = removed
                .iter()
                .map(|address| format!("the API server at {address} accepts no connection: out of the endpoints"));
            self.with(|shared| shared.news.extend(told));
        }
    }
}

/// What is asked and done while API servers are watched.
trait ServerKeys {
    /// The addresses of API servers that have a key.
    fn list(&self) -> Result<BTreeSet<IpAddr>>;
    fn accepts(&self, address: IpAddr) -> bool;
    /// Removes the key; whether there was one.
    fn remove(&self, address: IpAddr) -> Result<bool>;
}

/// The keys as etcd has them, of API servers that listen on this port.
struct EtcdKeys {
    port: u16,
}

impl ServerKeys for EtcdKeys {
    fn list(&self) -> Result<BTreeSet<IpAddr>> {
        EtcdApi::connect(&HttpsEndpoint::of_etcd())?.api_servers()
    }

    fn accepts(&self, address: IpAddr) -> bool {
        TcpStream::connect_timeout(&SocketAddr::new(address, self.port), CONNECT).is_ok()
    }

    fn remove(&self, address: IpAddr) -> Result<bool> {
        let etcd = EtcdApi::connect(&HttpsEndpoint::of_etcd())?;
        failpoint::around(format_args!("forget the API server at {address}"), || etcd.forget_api_server(address))
    }
}

/// The API servers of other hosts.
#[derive(Default)]
struct Peers {
    known: BTreeMap<IpAddr, Peer>,
    /// When etcd said last which there are.
    listed: Option<Instant>,
}

impl Peers {
    /// One look, by the host of this address; whose keys were removed. What fails is tried again at
    /// the next look: etcd without a majority says nothing.
    fn look(&mut self, own: IpAddr, keys: &impl ServerKeys) -> Vec<IpAddr> {
        if self.listed.is_none_or(|at| at.elapsed() >= LIST)
            && let Ok(listed) = keys.list()
        {
            self.take_over(own, &listed);
        }
        let mut removed = Vec::new();
        for (address, peer) in &mut self.known {
            let (known, is_gone) = peer.after(keys.accepts(*address));
            *peer = known;
            if !is_gone || !keys.list().is_ok_and(|listed| listed.contains(&own)) {
                continue;
            }
            if let Ok(had_key) = keys.remove(*address) {
                *peer = Peer::Forgotten(Instant::now());
                removed.extend(had_key.then_some(*address));
            }
        }
        removed
    }

    fn take_over(&mut self, own: IpAddr, listed: &BTreeSet<IpAddr>) {
        self.known.retain(|address, peer| peer.stays(listed.contains(address)));
        for address in listed.iter().filter(|address| **address != own) {
            self.known.entry(*address).or_insert(Peer::Serves(0));
        }
        self.listed = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    /// Keys of these API servers, of which some accept connections.
    #[derive(Default)]
    struct FakeKeys {
        keys: RefCell<BTreeSet<IpAddr>>,
        accepting: RefCell<BTreeSet<IpAddr>>,
        is_without_majority: RefCell<bool>,
        removed: RefCell<Vec<IpAddr>>,
    }

    impl ServerKeys for FakeKeys {
        fn list(&self) -> Result<BTreeSet<IpAddr>> {
            if *self.is_without_majority.borrow() {
                return Err(Error::transient("no leader"));
            }
            Ok(self.keys.borrow().clone())
        }

        fn accepts(&self, address: IpAddr) -> bool {
            self.accepting.borrow().contains(&address)
        }

        fn remove(&self, address: IpAddr) -> Result<bool> {
            self.list()?;
            self.removed.borrow_mut().push(address);
            Ok(self.keys.borrow_mut().remove(&address))
        }
    }

    const OWN: u8 = 1;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn keys(of: &[u8], accepting: &[u8]) -> FakeKeys {
        let set = |of: &[u8]| RefCell::new(of.iter().copied().map(address).collect());
        FakeKeys { keys: set(of), accepting: set(accepting), ..FakeKeys::default() }
    }

    fn look(peers: &mut Peers, keys: &FakeKeys) -> Vec<IpAddr> {
        peers.look(address(OWN), keys)
    }

    #[test]
    fn a_key_is_removed_once_for_each_silence() {
        let (keys, mut peers) = (keys(&[1, 2, 3], &[1, 2, 3]), Peers::default());
        assert!((0..5).all(|_| look(&mut peers, &keys).is_empty()));
        keys.accepting.borrow_mut().remove(&address(2));
        assert!(look(&mut peers, &keys).is_empty(), "one look says nothing");
        assert_eq!(look(&mut peers, &keys), [address(2)]);
        // Other hosts reach it, and it says again that it serves.
        keys.keys.borrow_mut().insert(address(2));
        assert!((0..5).all(|_| look(&mut peers, &keys).is_empty()));
        keys.accepting.borrow_mut().insert(address(2));
        assert!(look(&mut peers, &keys).is_empty());
        keys.accepting.borrow_mut().remove(&address(2));
        assert_eq!((look(&mut peers, &keys), look(&mut peers, &keys)), (vec![], vec![address(2)]));
        assert_eq!(*keys.removed.borrow(), [address(2), address(2)]);
    }

    #[test]
    fn a_host_that_is_cut_off_removes_nothing_and_goes_on_after_that() {
        let (keys, mut peers) = (keys(&[1, 2], &[1, 2]), Peers::default());
        look(&mut peers, &keys);
        keys.accepting.borrow_mut().remove(&address(2));
        *keys.is_without_majority.borrow_mut() = true;
        assert!((0..5).all(|_| look(&mut peers, &keys).is_empty()));
        *keys.is_without_majority.borrow_mut() = false;
        assert_eq!(look(&mut peers, &keys), [address(2)]);
    }

    #[test]
    fn no_key_is_removed_while_the_own_api_server_has_none() {
        let (keys, mut peers) = (keys(&[2, 3], &[1]), Peers::default());
        assert!((0..5).all(|_| look(&mut peers, &keys).is_empty()));
        keys.keys.borrow_mut().insert(address(OWN));
        assert_eq!(look(&mut peers, &keys), [address(2), address(3)]);
    }

    #[test]
    fn what_has_no_key_is_looked_at_no_more() {
        let now = Instant::now();
        assert!(Peer::Serves(0).stays(true) && !Peer::Serves(0).stays(false));
        assert!(Peer::Forgotten(now).stays(false), "it may write its key again");
        assert!(now.checked_sub(LIST).is_none_or(|then| !Peer::Forgotten(then).stays(false)));
    }

    proptest! {
        #[test]
        fn no_key_goes_of_an_api_server_that_accepted_a_connection_in_two_looks(
            looks in prop::collection::vec(prop::collection::btree_set(1_u8..5, 0..5), 1..40),
        ) {
            let (keys, mut peers) = (keys(&[1, 2, 3, 4], &[]), Peers::default());
            let mut before = BTreeSet::new();
            for accepting in looks {
                *keys.accepting.borrow_mut() = accepting.iter().copied().map(address).collect();
                keys.removed.borrow_mut().clear();
                look(&mut peers, &keys);
                let removed: BTreeSet<IpAddr> = keys.removed.borrow().iter().copied().collect();
                let alive: BTreeSet<IpAddr> = accepting.union(&before).copied().map(address).collect();
                prop_assert!(removed.is_disjoint(&alive), "{removed:?} of {alive:?}");
                prop_assert!(!removed.contains(&address(OWN)));
                keys.keys.borrow_mut().extend(removed);
                before = accepting;
            }
        }
    }
}
