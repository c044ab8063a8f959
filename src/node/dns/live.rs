//! Which API servers live, as etcd knows it: each keeps a key with a lease of 15 seconds while it
//! serves (Kubernetes' `pkg/controlplane/reconcilers/lease.go`); and where etcd's own members are.
//! Asked of the member beside it, by etcd's JSON over HTTP: a program for each look would cost more
//! than all else.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, Result};

use super::config::{HttpsEndpoint, reason};

/// A member that has lost its leader waits seven seconds before it says so.
const PATIENCE: Duration = Duration::from_secs(10);
/// What an API server's key begins with, before its address; and the first key that does not.
const LEASES: &str = "/registry/masterleases/";
const LEASES_END: &str = "/registry/masterleases0";
/// Bytes of an answer.
const LONGEST: u64 = 1 << 20;

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
        let agent = etcd.client(PATIENCE)?;
        let status: Status = ask(&agent, etcd, "maintenance/status", &json!({}))?;
        let is_leader = status.leader == status.header.member_id && status.leader != "0";
        if !is_leader && !is_due {
            return Ok(None);
        }
        let range =
            json!({"key": STANDARD.encode(LEASES), "range_end": STANDARD.encode(LEASES_END), "keys_only": true});
        let found: Found = ask(&agent, etcd, "kv/range", &range)?;
        let address = |key: &Key| {
            let key = String::from_utf8(STANDARD.decode(&key.key).ok()?).ok()?;
            key.strip_prefix(LEASES)?.parse().ok()
        };
        let addresses = found.kvs.iter().filter_map(address).collect();
        // Their names are the leader's to write.
        let list =
            if is_leader { ask(&agent, etcd, "cluster/member/list", &json!({}))? } else { MemberList::default() };
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

fn ask<T: DeserializeOwned>(agent: &ureq::Agent, etcd: &HttpsEndpoint, what: &str, body: &Value) -> Result<T> {
    let away = |why: &dyn std::fmt::Display| Error::transient(format!("etcd does not answer {what}: {why}"));
    let url = format!("{}/v3/{what}", etcd.endpoint);
    let mut answer = agent.post(&url).send(body.to_string().as_bytes()).map_err(|error| away(&error))?;
    let status = answer.status();
    let text = answer.body_mut().with_config().limit(LONGEST).read_to_string().map_err(|error| away(&error))?;
    if !status.is_success() {
        return Err(away(&reason(&text, status)));
    }
    serde_json::from_str(&text).map_err(|error| away(&error))
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

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    kvs: Vec<Key>,
}

#[derive(Deserialize)]
struct Key {
    key: String,
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
