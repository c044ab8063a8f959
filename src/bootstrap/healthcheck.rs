//! The health check of the API server on its host (`node::healthcheck`): who it is there and to the
//! API, and where its files are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::inventory::HEALTH_PORT;
use crate::node::layout;
use crate::node::node_config::User;

/// The name of its certificate below `pki/`.
pub(super) const NAME: &str = "healthcheck";
/// Who it is to the API; `access.yaml` says what it may.
pub(super) const USER: &str = "turnup:healthcheck";
/// The number of its user on the host. It serves unauthenticated clients, so it is not root.
pub(super) const USER_ID: u32 = 3990;

/// Its user on the host.
pub(super) fn system_user() -> User {
    User { name: "apiserver-healthcheck".into(), id: USER_ID }
}

/// The flags of `turnup node healthcheck`: at loopback for kubelet, at the host's own address for
/// load balancers.
pub(super) fn flags(address: &str, api_port: u16) -> Vec<String> {
    let own = address.parse::<IpAddr>().ok();
    let listen = [Some(Ipv4Addr::LOCALHOST.into()), own].into_iter().flatten();
    let listen = listen.map(|address: IpAddr| format!("--listen={}", SocketAddr::new(address, HEALTH_PORT)));
    let others = [
        format!("--api-port={api_port}"),
        format!("--certificate={}", layout::HEALTHCHECK_CERTIFICATE),
        format!("--key={}", layout::HEALTHCHECK_KEY),
    ];
    listen.chain(others).collect()
}
