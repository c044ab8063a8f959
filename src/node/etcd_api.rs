//! etcd by its JSON over HTTP, of the member on this host: a program for each look would cost more
//! than all else. Which API servers serve, as etcd knows it: each keeps a key with a lease of 15
//! seconds while it does (Kubernetes' `pkg/controlplane/reconcilers/lease.go`).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, Result};

use super::https_endpoint::{HttpsEndpoint, reason};

/// What an API server's key begins with, before its address.
pub(crate) const API_SERVERS: &str = "/registry/masterleases/";
/// The first key after all of these.
const API_SERVERS_END: &str = "/registry/masterleases0";
/// A member that has lost its leader waits seven seconds before it says so.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const LONGEST: u64 = 1 << 20;

/// The member, for some questions: its certificates are read again for the next ones.
pub(super) struct EtcdApi {
    agent: ureq::Agent,
    endpoint: String,
}

impl EtcdApi {
    pub(super) fn connect(etcd: &HttpsEndpoint) -> Result<Self> {
        Ok(Self { agent: etcd.client(PATIENCE)?, endpoint: etcd.endpoint.clone() })
    }

    /// `what` is the path of a method, below `/v3/`.
    pub(super) fn ask<T: DeserializeOwned>(&self, what: &str, body: &Value) -> Result<T> {
        let away = |why: &dyn std::fmt::Display| Error::transient(format!("etcd does not answer {what}: {why}"));
        let url = format!("{}/v3/{what}", self.endpoint);
        let mut answer = self.agent.post(&url).send(body.to_string().as_bytes()).map_err(|error| away(&error))?;
        let status = answer.status();
        let text = answer.body_mut().with_config().limit(LONGEST).read_to_string().map_err(|error| away(&error))?;
        if !status.is_success() {
            return Err(away(&reason(&text, status)));
        }
        serde_json::from_str(&text).map_err(|error| away(&error))
    }

    /// The addresses at which API servers say that they serve. A majority of etcd agrees on them.
    pub(super) fn api_servers(&self) -> Result<BTreeSet<IpAddr>> {
        let range = json!({
            "key": STANDARD.encode(API_SERVERS),
            "range_end": STANDARD.encode(API_SERVERS_END),
            "keys_only": true,
        });
        let found: Found = self.ask("kv/range", &range)?;
        let address = |key: &Key| {
            let key = String::from_utf8(STANDARD.decode(&key.key).ok()?).ok()?;
            key.strip_prefix(API_SERVERS)?.parse().ok()
        };
        Ok(found.kvs.iter().filter_map(address).collect())
    }

    /// Removes what an API server says of itself, and returns whether it had said anything. One
    /// that serves says it again within ten seconds.
    pub(super) fn forget_api_server(&self, address: IpAddr) -> Result<bool> {
        let key = json!({"key": STANDARD.encode(format!("{API_SERVERS}{address}"))});
        let Removed { deleted } = self.ask("kv/deleterange", &key)?;
        Ok(deleted.is_some_and(|count| count != "0"))
    }
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    kvs: Vec<Key>,
}

/// Numbers of 64 bits are texts in etcd's JSON, and zero is left out.
#[derive(Deserialize)]
struct Removed {
    deleted: Option<String>,
}

#[derive(Deserialize)]
struct Key {
    key: String,
}
