//! What control-plane hosts are told of the names that they keep in a DNS zone, and the removal of
//! those names with the cluster.

use std::collections::BTreeSet;

use crate::cluster::{Cluster, DnsAccess, DnsSettings, KUBECONFIG};
use crate::document::Document as _;
use crate::error::{Class, Error, Result};
use crate::input;
use crate::inventory::{Host, Inventory};
use crate::node::dns::{self as node_dns, ApiName, DnsConfig, HostedZone, TsigKey, UpdateServer, ZoneAccess};
use crate::node::https_endpoint::HttpsEndpoint;
use crate::node::layout;
use crate::parallel::{self, HOSTS};

use super::backup_words::cluster_id;
use super::host_connection::HostConnection;

/// The name of the certificate with which hosts ask the API server, below `pki/`.
pub(super) const NAME: &str = "dns";
/// Who they are to the API; `rbac.yaml` says what they may.
pub(super) const USER: &str = "turnup:dns";
/// The algorithm where a key of BIND's names none; `tsig-keygen` always does.
const USUAL_ALGORITHM: &str = "hmac-sha256";

/// None where hosts keep no names.
pub(super) fn config(cluster: &Cluster, inventory: &Inventory) -> Result<Option<DnsConfig>> {
    let Some(settings) = &cluster.settings.dns else { return Ok(None) };
    let [external, internal] = settings.api_names();
    let outside = inventory.control_planes().filter_map(|host| Some((host.address, host.external_address?)));
    let id = cluster_id(cluster)?;
    Ok(Some(DnsConfig {
        schema: DnsConfig::SCHEMA.into(),
        zone: settings.zone.clone(),
        access: access(cluster, &settings.access)?,
        ttl: settings.ttl,
        owner: format!("turnup cluster={} id={}", cluster.settings.name, &id[..id.len().min(16)]),
        names: vec![ApiName { name: external, is_external: true }, ApiName { name: internal, is_external: false }],
        internal: settings.internal(),
        external: outside.collect(),
        api: Some(HttpsEndpoint {
            endpoint: format!("https://127.0.0.1:{}", cluster.settings.api_port),
            authority: layout::CA.into(),
            certificate: layout::DNS_CERTIFICATE.into(),
            key: layout::DNS_KEY.into(),
        }),
        annotations: settings.annotations,
        etcd: HttpsEndpoint::of_etcd(),
    }))
}

/// Removes the names of this cluster: by a control-plane host after none of them writes any more,
/// else from here. What stays is returned, a line each.
///
/// # Errors
/// That the operator ends it.
pub fn remove_names(cluster: &Cluster) -> Result<BTreeSet<String>> {
    let inventory = cluster.find_inventory().ok().flatten();
    let (Some(settings), Some(inventory)) = (&cluster.settings.dns, inventory) else { return Ok(BTreeSet::new()) };
    if cluster.store.read(KUBECONFIG)?.is_none() {
        // No host has started anything.
        return Ok(BTreeSet::new());
    }
    let hosts: Vec<&Host> = inventory.control_planes().collect();
    let stopped = parallel::map(&hosts, HOSTS, |host| {
        let connection = HostConnection::for_proof(cluster, host)?;
        connection.stop_dns().map(|()| connection)
    });
    if stopped.iter().flatten().any(|connection| connection.remove_dns_names().is_ok()) {
        return Ok(BTreeSet::new());
    }
    remove_from_here(cluster, &inventory, settings)
}

/// The names of the API server and of members go; those of annotations are known to the cluster
/// alone.
fn remove_from_here(cluster: &Cluster, inventory: &Inventory, settings: &DnsSettings) -> Result<BTreeSet<String>> {
    let removed = config(cluster, inventory).and_then(|config| {
        let Some(mut config) = config else { return Ok(String::new()) };
        let members = inventory.control_planes().map(|host| config.member_name(&host.name));
        let members: Vec<ApiName> = members.map(|name| ApiName { name, is_external: false }).collect();
        config.names.extend(members);
        config.api = None;
        node_dns::remove(&config, &mut std::io::sink())?;
        Ok(config.owner)
    });
    match removed {
        Ok(owner) if settings.annotations => Ok(BTreeSet::from([format!(
            "names in the zone {} that annotations asked for: each has a TXT record \"{owner}\"",
            settings.zone
        )])),
        Ok(_) => Ok(BTreeSet::new()),
        Err(error) if error.class() == Class::Interrupted => Err(error),
        Err(error) => {
            let line = |name: String| format!("the name {name} {}: {}", settings.access.describe(), error.message());
            Ok(settings.api_names().map(line).into())
        }
    }
}

fn access(cluster: &Cluster, access: &DnsAccess) -> Result<ZoneAccess> {
    Ok(match access {
        DnsAccess::Server { server, port, key_file } => {
            ZoneAccess::Server(UpdateServer { server: server.clone(), port: *port, key: read_key(cluster, key_file)? })
        }
        DnsAccess::Cloud { cloud, zone_id } => {
            ZoneAccess::Cloud(HostedZone { cloud: (*cloud).to_owned(), id: zone_id.clone() })
        }
    })
}

fn read_key(cluster: &Cluster, name: &str) -> Result<TsigKey> {
    let setting = DnsSettings::KEY_FILE;
    let text = input::read_text(&cluster.work_dir.join(name), input::KEYS).map_err(|error| {
        Error::config(format!("{setting}: {name} cannot be read")).source(error).hint("turnup config check")
    })?;
    parse_key(&text).ok_or_else(|| {
        Error::config(format!("{setting}: {name} has no TSIG key"))
            .evidence("expected what tsig-keygen or keymgr -t prints, or one line algorithm:name:secret")
            .hint("tsig-keygen NAME > FILE, and give the server the same key")
    })
}

/// The key of a clause of BIND's, or of a line of Knot's, which stands in a comment of what its
/// program prints.
fn parse_key(text: &str) -> Option<TsigKey> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches('#').trim());
    lines.clone().find_map(parse_line).or_else(|| parse_clause(text))
}

fn parse_line(line: &str) -> Option<TsigKey> {
    let mut parts = line.split(':');
    let (algorithm, name, secret) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !algorithm.starts_with("hmac-") {
        return None;
    }
    key(name, algorithm, secret)
}

/// `key "name" { algorithm hmac-sha256; secret "base64"; };`
fn parse_clause(text: &str) -> Option<TsigKey> {
    let (head, body) = text.split_once("key")?.1.split_once('{')?;
    let body = body.split_once('}')?.0;
    let value = |wanted: &str| {
        let statements = body.split(';').map(str::trim);
        let found = statements
            .filter_map(|statement| statement.split_once(char::is_whitespace))
            .find(|(name, _)| *name == wanted);
        found.map(|(_, value)| value)
    };
    key(head, value("algorithm").unwrap_or(USUAL_ALGORITHM), value("secret")?)
}

fn key(name: &str, algorithm: &str, secret: &str) -> Option<TsigKey> {
    let plain = |text: &str| text.trim().trim_matches('"').trim_end_matches('.').to_owned();
    let (name, algorithm, secret) = (plain(name), plain(algorithm).to_ascii_lowercase(), plain(secret));
    let is_whole =
        ![&name, &algorithm, &secret].into_iter().any(|text| text.is_empty() || text.contains(char::is_whitespace));
    is_whole.then(|| TsigKey { name, algorithm, secret: secret.into() })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_key_is_read_as_the_servers_print_it() {
        let bind = "key \"it-key\" {\n\talgorithm hmac-sha512;\n\tsecret \"c2VjcmV0\";\n};\n";
        let knot =
            "# hmac-sha512:it-key:c2VjcmV0\nkey:\n  - id: it-key\n    algorithm: hmac-sha512\n    secret: c2VjcmV0\n";
        for text in
            [bind, knot, "hmac-sha512:it-key.:c2VjcmV0", "key it-key { secret c2VjcmV0; algorithm HMAC-SHA512; };"]
        {
            let key = parse_key(text).unwrap();
            assert_eq!(
                (&*key.name, &*key.algorithm, key.secret.as_str()),
                ("it-key", "hmac-sha512", "c2VjcmV0"),
                "{text}"
            );
            assert!(!format!("{key:?}").contains("c2VjcmV0"), "no secret in a message");
        }
        for text in [
            "",
            "nonsense",
            "hmac-md5",
            "hmac-sha256::c2VjcmV0",
            "key \"a\" { algorithm hmac-sha256; };",
            "a:b:c",
            "key a b { secret c; };",
        ] {
            assert!(parse_key(text).is_none(), "{text}");
        }
    }
}
