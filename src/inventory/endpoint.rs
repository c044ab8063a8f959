//! Where the API server of a cluster is reached, by clients and by nodes. Nothing here connects.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Where the balancer of a node listens: at loopback, so that its clients are on the node.
pub const BALANCER_HOST: &str = "127.0.0.1";
pub(super) const BALANCER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3992);

/// An address and a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// A DNS name or an IP address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Where it is reached inside of a cloud's network, when that is not where clients elsewhere
    /// do: an address or a name. Nodes without a balancer of their own use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_host: Option<String>,
    /// Whether nodes reach it by a balancer of their own, which passes connections on to all API
    /// servers. Clients elsewhere do not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub node_balancer: bool,
}

impl Endpoint {
    /// The same place for clients and nodes.
    #[must_use]
    pub const fn new(host: String, port: u16) -> Self {
        Self { host, port, internal_host: None, node_balancer: false }
    }

    /// Where nodes and what runs on them reach it.
    #[must_use]
    pub fn host_for_nodes(&self) -> &str {
        if self.node_balancer { BALANCER_HOST } else { self.internal_host.as_deref().unwrap_or(&self.host) }
    }

    /// The TCP port there.
    #[must_use]
    pub const fn port_for_nodes(&self) -> u16 {
        if self.node_balancer { BALANCER.port() } else { self.port }
    }

    /// The same for nodes that were made before nodes had a balancer.
    #[must_use]
    pub fn without_node_balancer(&self) -> Self {
        Self { node_balancer: false, ..self.clone() }
    }

    /// The API's URL there.
    #[must_use]
    pub fn url_for_nodes(&self) -> String {
        format!("https://{}:{}", self.host_for_nodes(), self.port_for_nodes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_with_a_balancer_ask_it_and_others_ask_inside_of_the_network() {
        let inner = Endpoint {
            internal_host: Some("api.internal.example.com".into()),
            node_balancer: true,
            ..Endpoint::new("203.0.113.1".into(), 6443)
        };
        assert_eq!(inner.url_for_nodes(), "https://127.0.0.1:3992");
        let without = inner.without_node_balancer();
        assert_eq!(without.url_for_nodes(), "https://api.internal.example.com:6443");
        let outer = Endpoint { internal_host: None, ..without };
        assert_eq!(outer.url_for_nodes(), "https://203.0.113.1:6443");
    }
}
