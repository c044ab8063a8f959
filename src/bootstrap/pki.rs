//! The cluster's own certificates: three authorities and what they sign, below `pki/` of the cluster's directory.
//!
//! ECDSA P-256; authorities live ten years, leaves one, the administrator's a day. What is there, fits and is not about to expire
//! is kept, so that a repeated run changes nothing; a key is written before its certificate, so that a crash between the two
//! only repeats the signature. Authorities' keys stay here and on the control plane, never on a worker.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber,
};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};
use zeroize::Zeroizing;

use crate::error::{Context as _, Error, Result};
use crate::state::Store;

const DAY: Duration = Duration::from_hours(24);
/// Lifetimes from the security defaults: authorities ten years, leaves one year.
const CA_LIFE: Duration = Duration::from_hours(10 * 365 * 24);
/// The life of a leaf certificate.
pub const LEAF_LIFE: Duration = Duration::from_hours(365 * 24);
/// The life of the administrator's certificate; `turnup kubeconfig` makes a new one.
pub const ADMIN_LIFE: Duration = DAY;
/// Certificates begin this long before they are made: clocks of hosts differ.
const BACK_DATE: Duration = Duration::from_hours(1);

/// One of the cluster's authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Signs the API server, kubelets and clients of the API.
    Cluster,
    /// Signs etcd's servers, peers and clients.
    Etcd,
    /// Signs the API server as a client of extension API servers.
    FrontProxy,
}

impl Authority {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cluster, Self::Etcd, Self::FrontProxy];

    /// The file name below `pki/`, without ending.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Cluster => "ca",
            Self::Etcd => "etcd-ca",
            Self::FrontProxy => "front-proxy-ca",
        }
    }
}

/// A certificate that somebody needs.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The file name below `pki/`, without ending.
    pub file: String,
    /// Who signs.
    pub authority: Authority,
    /// The subject's common name: the user's name to Kubernetes.
    pub name: String,
    /// The subject's organization: the user's group to Kubernetes.
    pub group: Option<String>,
    /// DNS names and IP addresses at which it serves; empty for a client.
    pub hosts: Vec<String>,
    /// Usable by a client.
    pub client: bool,
    /// How long it lives.
    pub life: Duration,
}

impl Leaf {
    /// A client's certificate.
    #[must_use]
    pub fn client(file: &str, authority: Authority, name: &str, group: Option<&str>) -> Self {
        let group = group.map(str::to_owned);
        Self {
            file: file.into(),
            authority,
            name: name.into(),
            group,
            hosts: Vec::new(),
            client: true,
            life: LEAF_LIFE,
        }
    }

    /// A server's certificate for these names and addresses.
    #[must_use]
    pub fn server(file: &str, authority: Authority, name: &str, hosts: Vec<String>) -> Self {
        Self { file: file.into(), authority, name: name.into(), group: None, hosts, client: false, life: LEAF_LIFE }
    }
}

/// The certificates below `pki/`.
pub struct Pki<'a> {
    store: &'a Store,
}

impl<'a> Pki<'a> {
    /// The PKI of the cluster in this store.
    #[must_use]
    pub const fn new(store: &'a Store) -> Self {
        Self { store }
    }

    /// Makes the authority, or keeps it. An authority is never made anew while its key is there.
    pub fn ensure_authority(&self, authority: Authority, cluster: &str) -> Result<()> {
        let key = self.ensure_key(authority.file())?;
        if self.certificate(authority.file())?.is_some() {
            return Ok(());
        }
        let mut params = params(&format!("{cluster} {}", authority.file()), None, CA_LIFE)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).context("cannot sign an authority")?;
        self.write_certificate(authority.file(), &certificate.pem())
    }

    /// Makes the certificate, or keeps it when it fits and less than two thirds of its life are over. Returns whether it is new.
    pub fn ensure_leaf(&self, leaf: &Leaf) -> Result<bool> {
        if self.is_good(leaf)? {
            return Ok(false);
        }
        let key = self.ensure_key(&leaf.file)?;
        let mut params = params(&leaf.name, leaf.group.as_deref(), leaf.life)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if leaf.client {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        }
        if !leaf.hosts.is_empty() {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        for host in &leaf.hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(host.as_str().try_into().context("a name is not ASCII")?),
            });
        }
        params.use_authority_key_identifier_extension = true;
        let authority_key = self.read_key(leaf.authority.file())?;
        let authority = self.text(leaf.authority.file(), "crt")?;
        let issuer = Issuer::from_ca_cert_pem(&authority, authority_key).context("cannot read an authority")?;
        let certificate = params.signed_by(&key, &issuer).context("cannot sign a certificate")?;
        self.write_certificate(&leaf.file, &certificate.pem())?;
        Ok(true)
    }

    /// Makes the key pair that signs service accounts' tokens, or keeps it.
    pub fn ensure_service_account_key(&self) -> Result<()> {
        let key = self.ensure_key("sa")?;
        if self.store.read("pki/sa.pub")?.is_none() {
            self.store.write_file("pki/sa.pub", key.public_key_pem().as_bytes(), 0o644)?;
        }
        Ok(())
    }

    /// Makes the key that encrypts Secrets in etcd (32 bytes as base64), or keeps it.
    pub fn ensure_encryption_key(&self) -> Result<()> {
        use base64::Engine as _;
        if self.store.read("pki/encryption.key")?.is_some() {
            return Ok(());
        }
        let mut bytes = Zeroizing::new([0_u8; 32]);
        getrandom::fill(bytes.as_mut()).map_err(|error| Error::permanent(format!("no random numbers: {error}")))?;
        let text = Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(bytes.as_ref()));
        self.store.write_file("pki/encryption.key", text.as_bytes(), 0o600)
    }

    /// A file's text, which must be there.
    pub fn text(&self, file: &str, ending: &str) -> Result<String> {
        let rel = format!("pki/{file}.{ending}");
        let bytes = self.store.read(&rel)?.ok_or_else(|| {
            Error::permanent(format!("{} is missing", self.store.path(&rel).display())).hint("turnup bootstrap")
        })?;
        String::from_utf8(bytes).context(format!("{rel} is not text"))
    }

    /// Whether the certificate is there, fits the request and its key, and is young enough.
    pub fn is_good(&self, leaf: &Leaf) -> Result<bool> {
        let Some(der) = self.certificate(&leaf.file)? else { return Ok(false) };
        let Ok((_, certificate)) = X509Certificate::from_der(&der) else { return Ok(false) };
        let subject = certificate.subject();
        let common_name = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
        let group = subject.iter_organization().next().and_then(|name| name.as_str().ok());
        let signed_by_current = self.certificate(leaf.authority.file())?.is_some_and(|der| {
            X509Certificate::from_der(&der)
                .is_ok_and(|(_, authority)| certificate.verify_signature(Some(authority.public_key())).is_ok())
        });
        let fits = common_name == Some(leaf.name.as_str())
            && group == leaf.group.as_deref()
            && hosts_of(&certificate) == sorted(leaf.hosts.clone())
            && signed_by_current
            && self.read_key(&leaf.file).is_ok_and(|key| key.subject_public_key_info() == certificate.public_key().raw);
        let rest = certificate.validity().time_to_expiration().unwrap_or_default();
        Ok(fits && rest.unsigned_abs() > leaf.life / 3)
    }

    fn certificate(&self, file: &str) -> Result<Option<Vec<u8>>> {
        let Some(bytes) = self.store.read(format!("pki/{file}.crt"))? else { return Ok(None) };
        Ok(x509_parser::pem::parse_x509_pem(&bytes).ok().map(|(_, pem)| pem.contents))
    }

    fn ensure_key(&self, file: &str) -> Result<KeyPair> {
        if self.store.read(format!("pki/{file}.key"))?.is_none() {
            let key = KeyPair::generate().context("cannot make a key")?;
            let pem = Zeroizing::new(key.serialize_pem());
            self.store.write_file(format!("pki/{file}.key"), pem.as_bytes(), 0o600)?;
        }
        self.read_key(file)
    }

    fn read_key(&self, file: &str) -> Result<KeyPair> {
        let pem = Zeroizing::new(self.text(file, "key")?);
        // Never made anew by itself: of an authority it would be another cluster.
        KeyPair::from_pem(&pem).map_err(|error| {
            let path = self.store.path(format!("pki/{file}.key"));
            Error::person(format!("{} is not a private key", path.display())).source(error).hint(format!(
                "put it back from a backup; of a leaf, remove it and it is made anew: rm {}",
                path.display()
            ))
        })
    }

    fn write_certificate(&self, file: &str, pem: &str) -> Result<()> {
        self.store.write_file(format!("pki/{file}.crt"), pem.as_bytes(), 0o644)
    }
}

fn params(name: &str, group: Option<&str>, life: Duration) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let now = SystemTime::now();
    params.not_before = (now - BACK_DATE).into();
    params.not_after = (now + life).into();
    let mut serial = [0_u8; 16];
    getrandom::fill(&mut serial).map_err(|error| Error::permanent(format!("no random numbers: {error}")))?;
    // RFC 5280 4.1.2.2: a positive integer.
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    Ok(params)
}

fn hosts_of(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let hosts = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    });
    sorted(hosts.collect())
}

/// An address as certificates have it: 4 or 16 bytes.
pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

fn sorted(mut hosts: Vec<String>) -> Vec<String> {
    hosts.sort();
    hosts
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn leaf() -> Leaf {
        let hosts = vec!["kubernetes.default".into(), "10.96.0.1".into()];
        Leaf::server("apiserver", Authority::Cluster, "kube-apiserver", hosts)
    }

    #[test]
    fn a_second_run_keeps_everything() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let pki = Pki::new(&store);
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        let authority = pki.text("ca", "crt").unwrap();
        assert!(pki.ensure_leaf(&leaf()).unwrap());
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        assert_eq!(pki.text("ca", "crt").unwrap(), authority);
        assert!(!pki.ensure_leaf(&leaf()).unwrap());
    }

    #[test]
    fn a_certificate_that_no_longer_fits_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let pki = Pki::new(&store);
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        pki.ensure_leaf(&leaf()).unwrap();
        let key = pki.text("apiserver", "key").unwrap();
        let mut moved = leaf();
        moved.hosts.push("10.0.0.7".into());
        assert!(pki.ensure_leaf(&moved).unwrap());
        assert_eq!(pki.text("apiserver", "key").unwrap(), key, "the key stays");
        // Another authority under the same name: the old signature no longer counts.
        store.remove("pki/ca.key").unwrap();
        store.remove("pki/ca.crt").unwrap();
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        assert!(!pki.is_good(&moved).unwrap());
    }
}
