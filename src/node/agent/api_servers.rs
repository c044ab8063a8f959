//! An API server whose host is gone leaves the endpoints of the Service `kubernetes` early: pods
//! that meet it wait for nothing. Its lease ends after 15 seconds, and the others look every ten; so
//! its address would stay for 25. This takes its key out of etcd before that.
//!
//! A key is removed once for each time that its API server falls silent, and only while the API
//! server of this host has one. What another host can still reach writes its key again within ten
//! seconds, and is left alone from then on: two hosts that cannot see each other harm nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
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
    /// From now on by this node config. The thread begins with the first one that has an API server.
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
        let mut peers = BTreeMap::new();
        let mut listed: Option<Instant> = None;
        loop {
            thread::sleep(INTERVAL);
            let Some(own) = self.with(|shared| shared.own) else { continue };
            if listed.is_none_or(|at| at.elapsed() >= LIST) {
                // etcd without a majority says nothing; what is known stays.
                if list(own, &mut peers).is_ok() {
                    listed = Some(Instant::now());
                }
            }
            for (address, peer) in &mut peers {
                let accepts = TcpStream::connect_timeout(&SocketAddr::new(*address, own.port), CONNECT).is_ok();
                let (known, is_gone) = peer.after(accepts);
                *peer = known;
                // What fails is tried again at the next look.
                if let (true, Ok(has_had_key)) = (is_gone, forget(own, *address)) {
                    *peer = Peer::Forgotten(Instant::now());
                    let told = format!("the API server at {address} accepts no connection: out of the endpoints");
                    self.with(|shared| shared.news.extend(has_had_key.then_some(told)));
                }
            }
        }
    }
}

/// Takes over which API servers there are, besides this host's own one.
fn list(own: OwnServer, peers: &mut BTreeMap<IpAddr, Peer>) -> Result<()> {
    let found = EtcdApi::connect(&HttpsEndpoint::of_etcd())?.api_servers()?;
    peers.retain(|address, peer| peer.stays(found.contains(address)));
    for address in found.into_iter().filter(|address| *address != own.address) {
        peers.entry(address).or_insert(Peer::Serves(0));
    }
    Ok(())
}

/// Removes the key of an API server; whether there was one.
///
/// # Errors
/// That this host's own API server has none: an address that does not answer is better than none.
fn forget(own: OwnServer, address: IpAddr) -> Result<bool> {
    let etcd = EtcdApi::connect(&HttpsEndpoint::of_etcd())?;
    if !etcd.api_servers()?.contains(&own.address) {
        return Err(Error::transient("the API server of this host does not serve"));
    }
    failpoint::around(format_args!("forget the API server at {address}"), || etcd.forget_api_server(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which looks the key is removed, where connections are accepted so.
    fn removals(accepted: &[bool]) -> Vec<usize> {
        let mut peer = Peer::Serves(0);
        let mut removed = Vec::new();
        for (look, accepts) in accepted.iter().enumerate() {
            let (known, is_gone) = peer.after(*accepts);
            peer = if is_gone { Peer::Forgotten(Instant::now()) } else { known };
            removed.extend(is_gone.then_some(look));
        }
        removed
    }

    #[test]
    fn a_key_is_removed_once_for_each_silence() {
        let (yes, no) = (true, false);
        assert_eq!(removals(&[yes, no, yes, no, yes]), Vec::<usize>::new(), "one look says nothing");
        assert_eq!(removals(&[yes, no, no, no, no, no]), [2], "it may be reached by others: that is its own affair");
        assert_eq!(removals(&[no, no, yes, no, no]), [1, 4]);
    }

    #[test]
    fn a_removal_that_failed_is_tried_again() {
        let (known, is_gone) = Peer::Serves(1).after(false);
        assert!(is_gone);
        assert_eq!(known.after(false), (Peer::Serves(3), true));
        assert_eq!(known.after(true), (Peer::Serves(0), false));
    }

    #[test]
    fn what_has_no_key_is_looked_at_no_more() {
        let now = Instant::now();
        assert!(Peer::Serves(0).stays(true) && !Peer::Serves(0).stays(false));
        assert!(Peer::Forgotten(now).stays(false), "it may write its key again");
        assert!(now.checked_sub(LIST).is_none_or(|then| !Peer::Forgotten(then).stays(false)));
    }
}
