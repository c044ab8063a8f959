//! What a host is told of the names that it keeps in a DNS zone. A file for root alone: the key of
//! the zone is in it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::document::{self, Document, Fields};
use crate::error::{Error, Result};
use crate::input;

use super::super::https_endpoint::HttpsEndpoint;

/// The server, the zone, the names and where the live API servers are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DnsConfig {
    /// Always `turnup.dns/2`.
    pub schema: String,
    /// The zone, without a dot at its end.
    pub zone: String,
    /// Who has the zone, and by what it is changed.
    pub access: ZoneAccess,
    /// How long resolvers may keep an answer, in seconds.
    pub ttl: u32,
    /// Whose the names are: the text of a TXT record at each. At most 255 bytes.
    pub owner: String,
    /// The names.
    pub names: Vec<ApiName>,
    /// Members of etcd are `etcd-NAME` below it. Empty in a file of an older turnup.
    #[serde(default)]
    pub internal: String,
    /// By the address of an API server inside the cluster, the one at which clients outside reach
    /// it.
    pub external: BTreeMap<IpAddr, IpAddr>,
    /// The member of etcd beside it.
    pub etcd: HttpsEndpoint,
    /// The API server beside it, which has the objects with annotations and the list of the names
    /// that were made for them. None in a file of an older turnup.
    #[serde(default)]
    pub api: Option<HttpsEndpoint>,
    /// Whether annotations ask for names.
    #[serde(default)]
    pub annotations: bool,
}

/// Who has a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ZoneAccess {
    /// A server that takes dynamic updates.
    Server(UpdateServer),
    /// A cloud, by its API and with the rights of the host's own identity.
    Cloud(HostedZone),
}

/// A server that takes dynamic updates (RFC 2136).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateServer {
    /// An address or a name.
    pub server: String,
    /// Its TCP port.
    pub port: u16,
    /// With which messages are signed.
    pub key: TsigKey,
}

/// A zone of a cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostedZone {
    /// The cloud's name.
    pub cloud: String,
    /// The cloud's own name of the zone.
    pub id: String,
}

/// A key of TSIG (RFC 8945).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TsigKey {
    /// Its name, as the server knows it.
    pub name: String,
    /// `hmac-sha256` or another one that the server has.
    pub algorithm: String,
    /// Base64.
    pub secret: Zeroizing<String>,
}

impl std::fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TsigKey").field("name", &self.name).field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// A name that leads to all live API servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiName {
    /// Without a dot at its end.
    pub name: String,
    /// Whether it leads to the addresses for clients outside.
    pub is_external: bool,
}

impl Document for DnsConfig {
    const SCHEMA: &'static str = "turnup.dns/2";
    const WHAT: &'static str = "what a host is told of the names that it keeps in a DNS zone";
    const REMEDY: &'static str = "turnup up (delivers it again)";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("zone", "dns-name"),
            ("access.server.server", "host"),
            ("access.server.key.name", "dns-name"),
            ("access.server.key.algorithm", "enum(hmac-sha1, hmac-sha256, hmac-sha384, hmac-sha512)"),
            ("access.server.key.secret", "text"),
            ("access.cloud.cloud", "dns-label"),
            ("access.cloud.id", "id"),
            ("owner", "text"),
            ("names[].name", "dns-name"),
            ("internal", "empty or dns-name"),
            ("external.*", "ip"),
            ("etcd.endpoint", "url"),
            ("etcd.authority", "empty or host-path"),
            ("etcd.certificate", "empty or host-path"),
            ("etcd.key", "empty or host-path"),
            ("api.endpoint", "url"),
            ("api.authority", "empty or host-path"),
            ("api.certificate", "empty or host-path"),
            ("api.key", "empty or host-path"),
        ])
    }
}

impl DnsConfig {
    /// The name of a member of etcd.
    pub(crate) fn member_name(&self, member: &str) -> String {
        format!("etcd-{member}.{}", self.internal)
    }

    /// From the file that bootstrap wrote.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = Zeroizing::new(input::read_text(path, input::DOCUMENT)?);
        document::parse(&path.display().to_string(), &text)
    }

    /// An error about a field that the library does not take.
    pub(super) fn wrong(&self, field: &str) -> Error {
        Error::precondition(format!("the DNS zone {}: {field} is not what DNS has", self.zone)).hint(Self::REMEDY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        let endpoint = |port: u16| {
            serde_json::json!({
                "endpoint": format!("https://127.0.0.1:{port}"),
                "authority": "/etc/kubernetes/pki/ca.crt",
                "certificate": "/etc/kubernetes/dns/client.crt",
                "key": "/etc/kubernetes/dns/client.key",
            })
        };
        let key = serde_json::json!({"name": "turnup", "algorithm": "hmac-sha256", "secret": "c2VjcmV0"});
        let samples = [
            serde_json::json!({"server": {"server": "192.0.2.53", "port": 53, "key": key}}),
            serde_json::json!({"cloud": {"cloud": "aws", "id": "Z0123456789"}}),
        ]
        .map(|access| {
            serde_json::json!({
                "schema": DnsConfig::SCHEMA,
                "zone": "example.com",
                "access": access,
                "ttl": 30,
                "owner": "turnup: test",
                "names": [{"name": "api.example.com", "is_external": true}],
                "internal": "internal.example.com",
                "external": {"10.0.0.10": "192.0.2.10"},
                "etcd": endpoint(2379),
                "api": endpoint(6443),
                "annotations": true,
            })
        });
        document::hostile::try_every_text_of::<DnsConfig>(&samples);
    }
}
