//! Which API servers live, as etcd knows it, and where etcd's own members are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::json;

use crate::error::Result;

use super::super::etcd_api::EtcdApi;
use super::super::https_endpoint::HttpsEndpoint;

/// What etcd says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LiveServers {
    /// Whether the member asked leads the others.
    pub(super) is_leader: bool,
    /// The addresses at which API servers say that they serve. A majority of etcd agrees on them.
    pub(super) addresses: BTreeSet<IpAddr>,
    /// Where each member of etcd listens for the others, by its name. One that has not started yet
    /// has no name.
    pub(super) members: BTreeMap<String, BTreeSet<IpAddr>>,
}

impl LiveServers {
    /// None where the member does not lead and `is_due` is false: nothing needs them then. An error
    /// where it has no contact to a majority.
    pub(super) fn read(etcd: &HttpsEndpoint, is_due: bool) -> Result<Option<Self>> {
        let etcd = EtcdApi::connect(etcd)?;
        let status: Status = etcd.ask("maintenance/status", &json!({}))?;
        let is_leader = status.leader == status.header.member_id && status.leader != "0";
        if !is_leader && !is_due {
            return Ok(None);
        }
        let addresses = etcd.api_servers()?;
        // Their names are the leader's to write.
        let list = if is_leader { etcd.ask("cluster/member/list", &json!({}))? } else { MemberList::default() };
        let started = list.members.into_iter().filter(|member| !member.name.is_empty());
        let members = started.map(|member| (member.name, member.peers.iter().filter_map(|url| host_of(url)).collect()));
        Ok(Some(Self { is_leader, addresses, members: members.collect() }))
    }
}

/// The address in `https://ADDRESS:PORT`.
fn host_of(url: &str) -> Option<IpAddr> {
    let (host, _) = url.split_once("://")?.1.rsplit_once(':')?;
    host.trim_matches(['[', ']']).parse().ok()
}

/// Numbers of 64 bits are texts in etcd's JSON.
#[derive(Deserialize)]
struct Status {
    header: Header,
    #[serde(default)]
    leader: String,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    member_id: String,
}

#[derive(Default, Deserialize)]
struct MemberList {
    #[serde(default)]
    members: Vec<ListedMember>,
}

#[derive(Deserialize)]
struct ListedMember {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "peerURLs")]
    peers: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_where_its_url_says() {
        assert_eq!(host_of("https://10.0.0.1:2380"), Some([10, 0, 0, 1].into()));
        assert_eq!(host_of("https://[fd00::1]:2380").map(|host| host.to_string()), Some("fd00::1".into()));
        assert_eq!((host_of("https://etcd-a:2380"), host_of("nonsense")), (None, None));
    }
}
