//! The list of API servers that a load balancer passes connections on to: what the provision phase
//! writes and `turnup node balancer` reads. And the one line by which user data tells of the same
//! servers. Nothing here makes a connection.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::document::{Document, Fields};
use crate::error::{Class, Error, Result};

use super::endpoint::BALANCER;
use super::{HEALTH_PORT, MOST_CONTROL_PLANES};

/// Where a load balancer listens, and the API servers behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerList {
    /// Always `turnup.balancer/1`.
    pub schema: String,
    /// The address that clients connect to.
    pub address: IpAddr,
    /// Its TCP port.
    pub port: u16,
    /// The API servers.
    pub servers: Vec<ApiServer>,
}

/// One API server behind a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiServer {
    /// The name of its host, for messages.
    pub name: String,
    /// The address of its host.
    pub address: IpAddr,
    /// The TCP port of the API server.
    pub port: u16,
    /// Where its host answers `GET /readyz` by plain HTTP. Without one a server counts as ready
    /// when it accepts a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_port: Option<u16>,
}

impl ServerList {
    /// A load balancer at this place before the API servers of these hosts, all at one port.
    pub fn new(own: SocketAddr, hosts: impl Iterator<Item = (String, IpAddr)>, api_port: u16) -> Self {
        let servers = hosts.map(|(name, address)| ApiServer::of_host(name, SocketAddr::new(address, api_port)));
        Self { schema: Self::SCHEMA.into(), address: own.ip(), port: own.port(), servers: servers.collect() }
    }

    /// The balancer of a node before the API servers of these hosts.
    pub fn of_node(hosts: impl Iterator<Item = (String, IpAddr)>, api_port: u16) -> Self {
        Self::new(BALANCER, hosts, api_port)
    }

    /// The balancer of a node whose API servers are not known yet.
    #[must_use]
    pub fn of_node_without_servers() -> Self {
        Self::of_node(std::iter::empty(), 0)
    }

    /// The servers on one line: `NAME=ADDRESS:PORT,…`.
    #[must_use]
    pub fn line(&self) -> String {
        let servers = self.servers.iter().map(|server| format!("{}={}", server.name, server.socket()));
        servers.collect::<Vec<_>>().join(",")
    }

    /// The same balancer before the servers of such a line; else what is wrong with it.
    pub fn with_line(&self, line: &str) -> Result<Self, String> {
        let server = |entry: &str| {
            let parts = entry.split_once('=').filter(|(name, _)| !name.is_empty());
            let parts = parts.and_then(|(name, socket)| Some((name, socket.parse::<SocketAddr>().ok()?)));
            let (name, socket) = parts.ok_or_else(|| format!("{entry:?} is not NAME=ADDRESS:PORT"))?;
            Ok(ApiServer::of_host(name.to_owned(), socket))
        };
        let servers = line.split(',').map(server).collect::<Result<Vec<_>, String>>()?;
        if servers.len() > MOST_CONTROL_PLANES {
            return Err(format!("{} API servers, and {MOST_CONTROL_PLANES} at most are allowed", servers.len()));
        }
        Ok(Self { servers, ..self.clone() })
    }
}

impl ApiServer {
    const fn of_host(name: String, socket: SocketAddr) -> Self {
        Self { name, address: socket.ip(), port: socket.port(), health_port: Some(HEALTH_PORT) }
    }

    /// Where connections for it go.
    #[must_use]
    pub const fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

impl Document for ServerList {
    const SCHEMA: &'static str = "turnup.balancer/1";
    const WHAT: &'static str = "the list of API servers of a load balancer";
    const REMEDY: &'static str = "turnup up";
    const CLASS: Class = Class::Config;

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("address", "ip"),
            ("servers[].name", "dns-label"),
            ("servers[].address", "ip"),
        ])
    }

    fn check(&self, path: &str) -> Result<()> {
        let refused = |why: String| Err(Error::config(format!("{path}: {why}")).hint(Self::REMEDY));
        if self.port == 0 || self.servers.iter().any(|server| server.port == 0 || server.health_port == Some(0)) {
            return refused("a port is 0".to_owned());
        }
        let own = SocketAddr::new(self.address, self.port);
        let mut seen = BTreeSet::new();
        for server in &self.servers {
            if server.socket() == own {
                return refused(format!("{} is the load balancer itself", server.name));
            }
            if !seen.insert(server.socket()) {
                return refused(format!("{} repeats the address {}", server.name, server.socket()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;
    use crate::document;

    fn list() -> ServerList {
        let server = |at: u8| ApiServer {
            name: format!("cp-{at}"),
            address: [10, 0, 0, at].into(),
            port: 6443,
            health_port: Some(3990),
        };
        let servers = vec![server(10), server(11)];
        ServerList { schema: ServerList::SCHEMA.into(), address: [10, 0, 0, 9].into(), port: 6443, servers }
    }

    type Change = fn(&mut ServerList);

    #[test]
    fn a_list_survives_the_way_and_one_that_could_not_work_is_refused() {
        let text = document::render("servers.json", &list()).unwrap();
        assert_eq!(document::parse::<ServerList>("servers.json", &text).unwrap(), list());
        let wrong: [(Change, &str); 4] = [
            (|list| list.servers[1].port = 0, "a port is 0"),
            (|list| list.servers[0].address = list.address, "cp-10 is the load balancer itself"),
            (|list| list.servers[1].address = list.servers[0].address, "cp-11 repeats the address 10.0.0.10:6443"),
            (|list| list.servers[0].name = "a\nb".into(), "servers[0].name"),
        ];
        for (change, expected) in wrong {
            let mut list = list();
            change(&mut list);
            let error = document::render("servers.json", &list).unwrap_err();
            assert!(error.message().contains(expected), "{expected}: {}", error.message());
        }
    }

    #[test]
    fn the_line_of_user_data_says_the_same_servers_and_a_wrong_one_is_refused() {
        let none = ServerList::of_node_without_servers();
        let full = ServerList { address: none.address, port: none.port, ..list() };
        assert_eq!(full.line(), "cp-10=10.0.0.10:6443,cp-11=10.0.0.11:6443");
        assert_eq!(none.with_line(&full.line()).unwrap(), full);
        for (wrong, expected) in [
            ("", "\"\" is not NAME=ADDRESS:PORT"),
            ("@turnup:api-servers@", "\"@turnup:api-servers@\" is not NAME=ADDRESS:PORT"),
            ("a=10.0.0.1", "\"a=10.0.0.1\" is not NAME=ADDRESS:PORT"),
            ("a=api.example.com:6443", "\"a=api.example.com:6443\" is not NAME=ADDRESS:PORT"),
            ("=10.0.0.1:6443", "\"=10.0.0.1:6443\" is not NAME=ADDRESS:PORT"),
            ("a=10.0.0.1:6443,", "\"\" is not NAME=ADDRESS:PORT"),
            ("a=10.0.0.1:6443, b=10.0.0.2:64430000", "\" b=10.0.0.2:64430000\" is not NAME=ADDRESS:PORT"),
        ] {
            assert_eq!(none.with_line(wrong).unwrap_err(), expected);
        }
        let many = ["a=10.0.0.1:6443"; 1 + MOST_CONTROL_PLANES].join(",");
        assert!(none.with_line(&many).unwrap_err().contains("at most"));
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        document::hostile::try_every_text::<ServerList>(&serde_json::to_value(list()).unwrap());
    }
}
