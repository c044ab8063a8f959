//! Which API servers are up, and which one the next connection goes to. Pure: it makes no
//! connection and knows no clock.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::inventory::ApiServer;

/// So many checks in a row must fail before a server is out: one that fails may have met a restart
/// of the health check itself.
const FALL: u32 = 2;

/// What a check changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The server gets connections from now on.
    Up,
    /// It gets none, and those that it has are closed.
    Down,
}

/// The servers and what is known of them.
#[derive(Debug, Default)]
pub(super) struct Pool {
    servers: Vec<State>,
    /// Where the search begins among servers with equally many connections.
    next: usize,
}

#[derive(Debug)]
struct State {
    server: ApiServer,
    /// Whether it gets connections. A new one does not before its first check.
    up: bool,
    /// Failed checks since the last good one.
    failures: u32,
    connections: usize,
    /// Whether a check is under way.
    checked: bool,
    /// Why the last check failed; empty after a good one.
    why: String,
}

impl Pool {
    /// Takes over another list. What is known of servers that stay is kept; returns those that
    /// went.
    pub(super) fn replace(&mut self, list: &[ApiServer]) -> Vec<SocketAddr> {
        let mut old = std::mem::take(&mut self.servers);
        for server in list {
            let known = old.iter().position(|state| state.server.socket() == server.socket());
            let state = known.map(|at| old.swap_remove(at));
            let state = state.map_or_else(|| State::new(server), |state| State { server: server.clone(), ..state });
            self.servers.push(state);
        }
        old.into_iter().map(|state| state.server.socket()).collect()
    }

    /// The servers whose last check has ended: the next one begins now.
    pub(super) fn begin_checks(&mut self) -> Vec<ApiServer> {
        let idle = self.servers.iter_mut().filter(|state| !state.checked);
        idle.map(|state| {
            state.checked = true;
            state.server.clone()
        })
        .collect()
    }

    /// Ends a check.
    pub(super) fn end_check(&mut self, server: SocketAddr, result: Result<(), String>) -> Option<Turn> {
        let state = self.find(server)?;
        state.checked = false;
        state.judge(result)
    }

    /// A check that could not begin says nothing about the server.
    pub(super) fn skip_check(&mut self, server: SocketAddr) {
        if let Some(state) = self.find(server) {
            state.checked = false;
        }
    }

    /// A connection that the server did not accept, which counts like a failed check.
    pub(super) fn refuse(&mut self, server: SocketAddr, why: String) -> Option<Turn> {
        self.find(server)?.judge(Err(why))
    }

    /// The servers to try for a connection, the best one first: it has the fewest connections, and
    /// among several of these it is next in turn.
    pub(super) fn candidates(&mut self) -> Vec<SocketAddr> {
        let count = self.servers.len().max(1);
        let start = self.next;
        self.next = (start + 1) % count;
        let mut up: Vec<(usize, usize, SocketAddr)> = self
            .servers
            .iter()
            .enumerate()
            .filter(|(_, state)| state.up)
            .map(|(at, state)| (state.connections, (at + count - start % count) % count, state.server.socket()))
            .collect();
        up.sort_unstable();
        up.into_iter().map(|(_, _, server)| server).collect()
    }

    /// Counts a connection; false where the server is out meanwhile, and the connection must be
    /// closed.
    pub(super) fn open(&mut self, server: SocketAddr) -> bool {
        let Some(state) = self.find(server).filter(|state| state.up) else { return false };
        state.connections += 1;
        true
    }

    /// Counts the end of a connection.
    pub(super) fn close(&mut self, server: SocketAddr) {
        if let Some(state) = self.find(server) {
            state.connections = state.connections.saturating_sub(1);
        }
    }

    /// The name of a server, for messages.
    pub(super) fn name(&mut self, server: SocketAddr) -> String {
        self.find(server).map_or_else(|| server.to_string(), |state| format!("{} ({server})", state.server.name))
    }

    /// The servers that get no connections, and why. Nothing is known of one before its first
    /// check.
    pub(super) fn troubles(&self) -> Vec<String> {
        let out = self.servers.iter().filter(|state| !state.up && !state.why.is_empty());
        out.map(|state| format!("{} is out: {}", state.server.name, state.why)).collect()
    }

    /// Everything as JSON.
    pub(super) fn status(&self) -> Value {
        let servers = self.servers.iter().map(|state| {
            json!({
                "name": state.server.name,
                "address": state.server.socket(),
                "up": state.up,
                "connections": state.connections,
                "why": state.why,
            })
        });
        json!({"schema": "turnup.balancer-status/1", "servers": servers.collect::<Vec<_>>()})
    }

    fn find(&mut self, server: SocketAddr) -> Option<&mut State> {
        self.servers.iter_mut().find(|state| state.server.socket() == server)
    }
}

impl State {
    fn new(server: &ApiServer) -> Self {
        Self { server: server.clone(), up: false, failures: 0, connections: 0, checked: false, why: String::new() }
    }

    fn judge(&mut self, result: Result<(), String>) -> Option<Turn> {
        match result {
            Ok(()) => {
                self.failures = 0;
                self.why.clear();
                let turned = !self.up;
                self.up = true;
                turned.then_some(Turn::Up)
            }
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                self.why = why;
                let turned = self.up && self.failures >= FALL;
                self.up &= !turned;
                turned.then_some(Turn::Down)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(at: u8) -> ApiServer {
        ApiServer { name: format!("cp-{at}"), address: [10, 0, 0, at].into(), port: 6443, health_port: None }
    }

    fn pool(count: u8) -> Pool {
        let mut pool = Pool::default();
        let list: Vec<ApiServer> = (0..count).map(server).collect();
        assert!(pool.replace(&list).is_empty());
        pool
    }

    fn fail(pool: &mut Pool, at: u8) -> Option<Turn> {
        pool.end_check(server(at).socket(), Err("refused".into()))
    }

    fn pass(pool: &mut Pool, at: u8) -> Option<Turn> {
        pool.end_check(server(at).socket(), Ok(()))
    }

    #[test]
    fn a_server_is_in_after_one_good_check_and_out_after_two_bad_ones() {
        let mut pool = pool(2);
        assert!(pool.candidates().is_empty(), "nothing is known yet");
        assert_eq!((fail(&mut pool, 0), pass(&mut pool, 0)), (None, Some(Turn::Up)));
        assert_eq!(pool.candidates(), [server(0).socket()]);
        assert_eq!((fail(&mut pool, 0), pass(&mut pool, 0)), (None, None), "one failure changes nothing");
        assert_eq!((fail(&mut pool, 0), fail(&mut pool, 0)), (None, Some(Turn::Down)));
        assert!(pool.candidates().is_empty() && !pool.open(server(0).socket()));
        assert_eq!((fail(&mut pool, 0), pass(&mut pool, 0)), (None, Some(Turn::Up)));
        assert_eq!(pool.refuse(server(0).socket(), "no route".into()), None);
        assert_eq!(fail(&mut pool, 0), Some(Turn::Down), "a connection that is refused counts as well");
        assert_eq!(pool.status()["servers"][0]["why"], "refused");
    }

    #[test]
    fn a_check_begins_when_the_last_one_has_ended() {
        let mut pool = pool(2);
        assert_eq!(pool.begin_checks().len(), 2);
        assert!(pool.begin_checks().is_empty());
        pass(&mut pool, 1);
        assert_eq!(pool.begin_checks(), [server(1)]);
    }

    #[test]
    fn connections_are_spread_and_a_server_that_comes_back_gets_the_next_ones() {
        let mut pool = pool(3);
        for at in 0..3 {
            pass(&mut pool, at);
        }
        let mut used = Vec::new();
        for _ in 0..6 {
            let first = pool.candidates()[0];
            assert!(pool.open(first));
            used.push(first);
        }
        used.sort_unstable();
        assert_eq!(used, [0, 0, 1, 1, 2, 2].map(|at| server(at).socket()));
        for _ in 0..2 {
            pool.close(server(1).socket());
        }
        assert_eq!(pool.candidates()[0], server(1).socket());
    }

    #[test]
    fn another_list_keeps_what_is_known() {
        let mut pool = pool(2);
        for at in 0..2 {
            pass(&mut pool, at);
        }
        assert!(pool.open(server(1).socket()));
        assert_eq!(pool.replace(&[server(1), server(2)]), [server(0).socket()]);
        assert_eq!(pool.candidates(), [server(1).socket()], "the new one is not checked yet");
        assert_eq!(pool.status()["servers"][0]["connections"], 1);
        assert_eq!(pass(&mut pool, 0), None, "the check of one that went means nothing");
    }

    proptest! {
        #[test]
        fn only_servers_that_passed_their_last_check_or_failed_once_get_connections(
            results in prop::collection::vec((0_u8..4, any::<bool>()), 0..60),
        ) {
            let mut pool = pool(4);
            let mut last: [Vec<bool>; 4] = Default::default();
            for (at, good) in results {
                if good { pass(&mut pool, at) } else { fail(&mut pool, at) };
                last[usize::from(at)].push(good);
                let mut candidates = pool.candidates();
                candidates.sort_unstable();
                let up = |at: &u8| {
                    let all = &last[usize::from(*at)];
                    let since = all.iter().rev().take_while(|good| !**good).count();
                    all.contains(&true) && since < 2
                };
                let expected: Vec<SocketAddr> = (0..4).filter(up).map(|at| server(at).socket()).collect();
                prop_assert_eq!(candidates, expected);
            }
        }
    }
}
