//! Which certificates of a host are due, and what takes their places: so a cluster lives on with no
//! run of turnup. Keys stay, and so does all that a certificate says but its time. Control-plane
//! hosts sign with the keys of the authorities that lie there; of a worker, the API is asked for
//! the certificate with which kubelet serves, and on every host for a client certificate in the
//! place of one that has ended.
//!
//! A run of turnup renews earlier ([`rest_at_renewal`](super::pki::rest_at_renewal)): whatever is
//! due here is due there, and the next run replaces both. It writes nothing: the agent does.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rcgen::{KeyPair, PublicKeyData as _};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use crate::cluster::{KeyAlgorithm, PkiSettings};
use crate::error::{Class, Context as _, Error, Result};
use crate::input;
use crate::inventory::Role;
use crate::node::NodeConfig;
use crate::node::agent::CertificateSource;
use crate::node::layout::{ETCD_CA, FRONT_PROXY_CA, KUBELET_CERTIFICATE, KUBELET_KEY};
use crate::node::node_config::Content;

use super::certificate_request::{CertificateRequest, Signed};
use super::component::CONTROLLER_MANAGER;
use super::pki::{Authority, BACK_DATE, Leaf, der_of, hosts_of, share_of, sign};
use super::private_key;
use super::token::{HOST_USER, HOSTS};

/// Which certificates are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalScope {
    /// Those that end soon.
    Due,
    /// All of them.
    All,
}

/// An authority whose key is here.
struct Signer {
    certificate: String,
    key: Zeroizing<String>,
}

/// The name of the host's own certificate below `pki/`, without its ending.
pub(super) fn file_of(host: &str) -> String {
    format!("host-{host}")
}

/// By which the host asks for what its kubelet needs, and for nothing else. It lives as long as an
/// authority, so that a host which was off for years comes back.
pub(super) fn host_leaf(host: &str, settings: &PkiSettings) -> Leaf {
    let user = format!("{HOST_USER}{host}");
    Leaf { life: settings.ca_lifetime, ..Leaf::client(&file_of(host), Authority::Cluster, &user, Some(HOSTS)) }
}

/// Renews the certificates of this host: for the agent.
pub struct HostCertificates {
    scope: RenewalScope,
    /// That with which kubelet serves.
    serving: Option<CertificateRequest>,
    /// That by which kubelet is a client of the API.
    client: Option<CertificateRequest>,
}

impl HostCertificates {
    /// Renews those of this scope.
    #[must_use]
    pub const fn new(scope: RenewalScope) -> Self {
        Self { scope, serving: None, client: None }
    }
}

impl CertificateSource for HostCertificates {
    fn renew(&mut self, node_config: &NodeConfig) -> Result<BTreeMap<String, String>> {
        if self.serving.is_some() {
            let signed = look(&mut self.serving)?;
            return Ok(signed.map(|(text, _)| (KUBELET_CERTIFICATE.to_owned(), text)).into_iter().collect());
        }
        let renewed = renew_certificates(node_config, self.scope)?;
        if let Some(leaf) = find_serving(node_config, self.scope)? {
            let key = input::read_text(Path::new(KUBELET_KEY), input::KEYS).map(Zeroizing::new)?;
            let key = KeyPair::from_pem(&key).context(format!("{KUBELET_KEY} is damaged"))?;
            self.serving = Some(CertificateRequest::make(&leaf, key)?);
        }
        Ok(renewed)
    }

    fn renew_kubelet_client(&mut self, node_config: &NodeConfig) -> Result<Option<Zeroizing<String>>> {
        if self.client.is_none() {
            let user = format!("system:node:{}", node_config.node);
            let leaf = Leaf::client("", Authority::Cluster, &user, Some("system:nodes"));
            self.client = Some(CertificateRequest::make(&leaf, private_key::generate(KeyAlgorithm::EcdsaP256)?)?);
        }
        let signed = look(&mut self.client)?;
        Ok(signed.map(|(certificate, key)| Zeroizing::new(certificate + &key)))
    }

    fn is_waiting(&self) -> bool {
        self.serving.is_some() || self.client.is_some()
    }
}

/// What a request has come to. It is asked again after an API that is away, and made once more
/// after everything else.
fn look(slot: &mut Option<CertificateRequest>) -> Result<Option<Signed>> {
    let Some(request) = slot.take() else { return Ok(None) };
    match request.look() {
        Err(error) if error.class() != Class::Transient => Err(error),
        Ok(Some(signed)) => Ok(Some(signed)),
        undecided => {
            *slot = Some(request);
            undecided
        }
    }
}

/// What a worker asks for, when it is due: no authority's key is there.
fn find_serving(node_config: &NodeConfig, scope: RenewalScope) -> Result<Option<Leaf>> {
    let mut files = node_config.files.iter().filter(|file| file.path == KUBELET_CERTIFICATE);
    let Some(file) = files.next().filter(|_| node_config.role == Role::Worker) else { return Ok(None) };
    let Content::Text(text) = &file.content else { return Ok(None) };
    let der = der_of(text.as_bytes()).unwrap_or_default();
    let certificate = X509Certificate::from_der(&der).context(format!("{} is damaged", file.path))?.1;
    let share = share_name(node_config, &file.path);
    Ok((scope == RenewalScope::All || is_due(&certificate, &share)).then(|| leaf_of(&certificate)))
}

fn share_name(node_config: &NodeConfig, path: &str) -> String {
    format!("{} {path}", node_config.node)
}

/// The new texts of these files of the node config, by their paths; nothing on a host without the
/// key of an authority.
fn renew_certificates(node_config: &NodeConfig, scope: RenewalScope) -> Result<BTreeMap<String, String>> {
    let cluster = CONTROLLER_MANAGER.file("ca");
    let read = |path: &str| input::read_text(Path::new(path), input::KEYS).map(Zeroizing::new);
    let signers = [cluster.as_str(), ETCD_CA, FRONT_PROXY_CA].map(|authority| {
        let key = format!("{authority}.key");
        if !Path::new(&key).exists() {
            return Ok(None);
        }
        Ok(Some(Signer { certificate: read(&format!("{authority}.crt"))?.to_string(), key: read(&key)? }))
    });
    let signers = signers.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
    renew_with(node_config, scope, &signers, &|path| Ok(read(path)?))
}

fn renew_with(
    node_config: &NodeConfig,
    scope: RenewalScope,
    signers: &[Signer],
    read_key: &dyn Fn(&str) -> Result<Zeroizing<String>>,
) -> Result<BTreeMap<String, String>> {
    let mut renewed = BTreeMap::new();
    let has_key = |path: &str| node_config.files.iter().any(|file| file.path == path);
    for file in &node_config.files {
        let (Some(stem), Content::Text(text)) = (file.path.strip_suffix(".crt"), &file.content) else { continue };
        let key = format!("{stem}.key");
        let Some(der) = der_of(text.as_bytes()).filter(|_| has_key(&key)) else { continue };
        let certificate = X509Certificate::from_der(&der).context(format!("{} is damaged", file.path))?.1;
        let share = share_name(node_config, &file.path);
        if certificate.is_ca() || scope == RenewalScope::Due && !is_due(&certificate, &share) {
            continue;
        }
        // What another authority has signed is not ours to renew.
        let Some(signer) = signers.iter().find(|signer| has_signed(signer, &certificate)) else { continue };
        let key = KeyPair::from_pem(&read_key(&key)?).context(format!("{key} is damaged"))?;
        if key.subject_public_key_info() != certificate.public_key().raw {
            return Err(Error::permanent(format!("the key of {} is another one's", file.path)).hint("turnup up"));
        }
        let signer_key = KeyPair::from_pem(&signer.key).context("the key of an authority is damaged")?;
        renewed.insert(file.path.clone(), sign(&leaf_of(&certificate), &key, &signer.certificate, signer_key)?);
    }
    Ok(renewed)
}

fn has_signed(signer: &Signer, certificate: &X509Certificate<'_>) -> bool {
    let Some(der) = der_of(signer.certificate.as_bytes()) else { return false };
    X509Certificate::from_der(&der)
        .is_ok_and(|(_, authority)| certificate.verify_signature(Some(authority.public_key())).is_ok())
}

/// How long it was to live when it was made.
fn life_of(certificate: &X509Certificate<'_>) -> Duration {
    let validity = certificate.validity();
    let seconds = validity.not_after.timestamp().saturating_sub(validity.not_before.timestamp());
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default()).saturating_sub(BACK_DATE)
}

/// Between 7/30 of its life, a third less a tenth, where every run of turnup finds it due, and a
/// tenth. The share follows from the names of host and file: hosts do not renew all on one day.
fn is_due(certificate: &X509Certificate<'_>, share: &str) -> bool {
    let life = life_of(certificate);
    let (latest, least) = (life.mul_f64(7.0 / 30.0), life / 10);
    let limit = least + latest.saturating_sub(least).mul_f64(1.0 - share_of(share));
    let rest = certificate.validity().time_to_expiration().unwrap_or_default();
    rest.unsigned_abs() <= limit
}

/// What it says, for a life as long as its own.
fn leaf_of(certificate: &X509Certificate<'_>) -> Leaf {
    let subject = certificate.subject();
    let name = subject.iter_common_name().next().and_then(|name| name.as_str().ok()).unwrap_or_default();
    let group = subject.iter_organization().next().and_then(|name| name.as_str().ok());
    let usage = certificate.extended_key_usage().ok().flatten();
    Leaf {
        file: String::new(),
        authority: Authority::Cluster,
        name: name.to_owned(),
        group: group.map(str::to_owned),
        hosts: hosts_of(certificate),
        client: usage.is_some_and(|usage| usage.value.client_auth),
        life: life_of(certificate),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::bootstrap::pki::{Pki, rest_at_renewal};
    use crate::node::node_config::{File, sample};
    use crate::state::Store;

    const YEAR: Duration = Duration::from_hours(365 * 24);

    /// A host with the cluster's authority and one certificate of it that has this long to live of
    /// a year.
    struct TestHost {
        config: NodeConfig,
        signer: Signer,
        key: Zeroizing<String>,
    }

    const PATH: &str = "/etc/kubernetes/etcd/server.crt";

    fn leaf(life: Duration) -> Leaf {
        let hosts = vec!["m1".to_owned(), "192.0.2.1".to_owned()];
        Leaf { client: true, life, ..Leaf::server("etcd-server-m1", Authority::Cluster, "m1", hosts) }
    }

    fn host_with(leaf: &Leaf) -> TestHost {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let pki = Pki::new(&store);
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        pki.ensure_leaf(leaf).unwrap();
        let text = |name: &str| String::from_utf8(store.read(format!("pki/{name}")).unwrap().unwrap()).unwrap();
        let mut config: NodeConfig = serde_json::from_value(sample()).unwrap();
        let secret = Content::Secret { name: "key".into(), sha256: "0".repeat(64) };
        config.files = vec![
            File::new(PATH, 0o644, 0, Content::Text(text(&format!("{}.crt", leaf.file)))),
            File::new("/etc/kubernetes/etcd/server.key", 0o600, 0, secret),
            File::new("/etc/kubernetes/etcd/ca.crt", 0o644, 0, Content::Text(text("ca.crt"))),
        ];
        let key = text(&format!("{}.key", leaf.file)).into();
        TestHost { config, signer: Signer { certificate: text("ca.crt"), key: text("ca.key").into() }, key }
    }

    impl TestHost {
        /// The certificate in PEM.
        fn text(&self) -> &str {
            if let Content::Text(text) = &self.config.files[0].content { text } else { "" }
        }

        fn renew(&self, scope: RenewalScope) -> BTreeMap<String, String> {
            let read = |path: &str| {
                assert_eq!(path, "/etc/kubernetes/etcd/server.key");
                Ok(self.key.clone())
            };
            renew_with(&self.config, scope, std::slice::from_ref(&self.signer), &read).unwrap()
        }
    }

    #[test]
    fn all_but_the_time_of_a_renewed_certificate_is_as_it_was() {
        let host = host_with(&leaf(YEAR));
        assert_eq!(host.renew(RenewalScope::Due), BTreeMap::new(), "it is young");
        let renewed = host.renew(RenewalScope::All);
        assert_eq!(renewed.keys().collect::<Vec<_>>(), [PATH]);
        let (before, after) = (der_of(host.text().as_bytes()).unwrap(), der_of(renewed[PATH].as_bytes()).unwrap());
        let [before, after] = [&before, &after].map(|der| X509Certificate::from_der(der).unwrap().1);
        assert!(has_signed(&host.signer, &after));
        assert_eq!(before.subject(), after.subject());
        assert_eq!(before.public_key().raw, after.public_key().raw);
        assert_eq!(hosts_of(&before), hosts_of(&after));
        assert_eq!(life_of(&before), life_of(&after));
        assert_ne!(before.raw_serial(), after.raw_serial());
        let usage = |certificate: &X509Certificate<'_>| {
            let usage = certificate.extended_key_usage().unwrap().unwrap();
            (usage.value.client_auth, usage.value.server_auth)
        };
        assert_eq!((usage(&before), usage(&after)), ((true, true), (true, true)));
    }

    /// By how much of its life is left, for any name.
    #[test]
    fn what_is_due_here_is_due_for_a_run_of_turnup_as_well() {
        let host = host_with(&leaf(YEAR));
        let der = der_of(host.text().as_bytes()).unwrap();
        let hour = Duration::from_hours(1);
        let latest = YEAR.mul_f64(7.0 / 30.0);
        let (_, mut certificate) = X509Certificate::from_der(&der).unwrap();
        let end_after = |certificate: &mut X509Certificate<'_>, rest: Duration| {
            let now = jiff::Timestamp::now().as_second();
            let end = now + i64::try_from(rest.as_secs()).unwrap();
            let time = |second| x509_parser::prelude::ASN1Time::from_timestamp(second).unwrap();
            certificate.tbs_certificate.validity.not_after = time(end);
            certificate.tbs_certificate.validity.not_before =
                time(end - i64::try_from((YEAR + BACK_DATE).as_secs()).unwrap());
        };
        for number in 0..200 {
            let name = format!("etcd-server-m{number}");
            let earliest = rest_at_renewal(&name, YEAR);
            end_after(&mut certificate, earliest);
            assert!(!is_due(&certificate, &name) || earliest <= latest + hour, "{name}");
            end_after(&mut certificate, latest + hour);
            assert!(!is_due(&certificate, &name), "{name}: before each run of turnup would");
            end_after(&mut certificate, (YEAR / 10).saturating_sub(hour));
            assert!(is_due(&certificate, &name), "{name}");
            end_after(&mut certificate, Duration::ZERO);
            assert!(is_due(&certificate, &name), "{name} has ended");
        }
    }

    #[test]
    fn a_worker_asks_for_what_its_kubelet_serves_with_and_a_control_plane_host_does_not() {
        let node = Leaf { group: Some("system:nodes".into()), client: false, ..leaf(YEAR) };
        let mut host = host_with(&node);
        host.config.files[0].path = KUBELET_CERTIFICATE.to_owned();
        host.config.role = Role::Worker;
        assert!(find_serving(&host.config, RenewalScope::Due).unwrap().is_none(), "it is young");
        let asked = find_serving(&host.config, RenewalScope::All).unwrap().unwrap();
        assert_eq!(
            (asked.name, asked.group, asked.hosts),
            (node.name, node.group, node.hosts.into_iter().rev().collect())
        );
        assert!(!asked.client && asked.life == YEAR);
        host.config.role = Role::ControlPlane;
        assert!(find_serving(&host.config, RenewalScope::All).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_renewed_here_is_left_alone_or_told() {
        let host = host_with(&leaf(YEAR));
        let other = host_with(&leaf(YEAR));
        let read = |_: &str| Ok(host.key.clone());
        let none = renew_with(&host.config, RenewalScope::All, &[], &read).unwrap();
        assert_eq!(none, BTreeMap::new(), "no authority's key is here");
        let foreign = renew_with(&host.config, RenewalScope::All, &[other.signer], &read).unwrap();
        assert_eq!(foreign, BTreeMap::new(), "another authority has signed it");
        let wrong = |_: &str| Ok(other.key.clone());
        let error =
            renew_with(&host.config, RenewalScope::All, std::slice::from_ref(&host.signer), &wrong).unwrap_err();
        assert_eq!(error.message(), format!("the key of {PATH} is another one's"));
    }
}
