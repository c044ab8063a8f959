//! The cluster's own certificates: three authorities and what they sign, below `pki/` of the
//! cluster's directory.
//!
//! ECDSA P-256; authorities live ten years, leaves one, the administrator's as long as
//! `phase2.kubeconfig.lifetime` says. What is there, fits and is not about to expire is kept, so
//! that a repeated run changes nothing; a key is written before its certificate, so that a crash
//! between the two only repeats the signature. Authorities' keys stay here and on the control
//! plane, never on a worker. Certificates of people ([`Pki::issue`]) are not kept here, and their
//! keys are never written by this module.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber,
};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};
use zeroize::Zeroizing;

use crate::error::{Context as _, Error, Result};
use crate::state::Store;
use crate::unknown;

use super::step_ids::PKI;
use super::subject;

/// Lifetimes from the security defaults: authorities ten years, leaves one year.
const CA_LIFE: Duration = Duration::from_hours(10 * 365 * 24);
/// The life of a leaf certificate.
pub const LEAF_LIFE: Duration = Duration::from_hours(365 * 24);
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

/// One certificate to issue.
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

/// A client's certificate with its key, in memory alone.
pub struct Issued {
    /// In PEM.
    pub certificate: String,
    /// In PEM.
    pub key: Zeroizing<String>,
    /// The serial number, 16 bytes in hexadecimal.
    pub serial: String,
    /// The SHA-256 of the certificate in DER, in hexadecimal: the API server's audit log names a
    /// client by it.
    pub sha256: String,
    /// When it ends.
    pub expires: Timestamp,
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

    /// Makes the authority, or keeps it. An authority is never replaced while its key or its
    /// certificate is there; without its key nothing can be signed, and the first signature says
    /// so.
    pub fn ensure_authority(&self, authority: Authority, cluster: &str) -> Result<()> {
        if self.certificate(authority.file())?.is_some() {
            return Ok(());
        }
        let key = self.ensure_key(authority.file())?;
        let mut params = params(&format!("{cluster} {}", authority.file()), None, CA_LIFE)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).context("cannot sign an authority")?;
        self.write_certificate(authority.file(), &certificate.pem())
    }

    /// Makes the certificate, or keeps it when it fits and less than two thirds of its life are
    /// over. Returns whether it is new.
    pub fn ensure_leaf(&self, leaf: &Leaf) -> Result<bool> {
        if self.is_good(leaf)? {
            return Ok(false);
        }
        let key = self.ensure_key(&leaf.file)?;
        let authority = self.text(leaf.authority.file(), "crt")?;
        let certificate = sign(leaf, &key, &authority, self.read_key(leaf.authority.file())?)?;
        self.write_certificate(&leaf.file, &certificate)?;
        Ok(true)
    }

    /// A certificate of the cluster's authority for a user of the API in these groups, with a new
    /// key. Nothing is written.
    pub fn issue(&self, user: &str, groups: &[String], life: Duration) -> Result<Issued> {
        let key = KeyPair::generate().context("cannot make a key")?;
        let mut params = params(user, groups.first().map(String::as_str), life)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let serial = params.serial_number.as_ref().map(|serial| hex::encode(serial.to_bytes())).unwrap_or_default();
        let expires = Timestamp::from_second(params.not_after.unix_timestamp()).context("the end is out of range")?;
        let issuer = self.issuer(Authority::Cluster)?;
        let mut der = params.signed_by(&key, &issuer).context("cannot sign a certificate")?.der().to_vec();
        if groups.len() > 1 {
            der = subject::with_groups(&der, user, groups, &self.read_key(Authority::Cluster.file())?)?;
        }
        let (certificate, key) = (subject::pem(&der), key.serialize_pem().into());
        Ok(Issued { certificate, key, serial, sha256: hex::encode(Sha256::digest(&der)), expires })
    }

    /// An authority, ready to sign.
    fn issuer(&self, authority: Authority) -> Result<Issuer<'static, KeyPair>> {
        let key = self.read_key(authority.file())?;
        let certificate = self.text(authority.file(), "crt")?;
        Issuer::from_ca_cert_pem(&certificate, key).context("cannot read an authority")
    }

    /// Makes the key pair that signs service accounts' tokens, or keeps it.
    pub fn ensure_service_account_key(&self) -> Result<()> {
        let key = self.ensure_key("sa")?;
        if self.store.read("pki/sa.pub")?.is_none() {
            self.store.write_file("pki/sa.pub", key.public_key_pem().as_bytes(), 0o600)?;
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

    /// In a plan, writes placeholders for what is missing or would be renewed, each with what it is
    /// for.
    pub fn simulate(&self, cluster: &str, leaves: &[Leaf]) -> Result<()> {
        let write = |file: &str, what: &str| {
            self.store.write_file(format!("pki/{file}"), unknown::after_with(&PKI, what).as_bytes(), 0o600)
        };
        let write_missing = |file: &str, what: &str| {
            if self.store.read(format!("pki/{file}"))?.is_some() { Ok(()) } else { write(file, what) }
        };
        for authority in Authority::ALL.map(Authority::file) {
            write_missing(&format!("{authority}.crt"), &format!("authority {authority} of {cluster}"))?;
            write_missing(&format!("{authority}.key"), &format!("key of the authority {authority}"))?;
        }
        write_missing("sa.pub", "public key of service accounts")?;
        write_missing("sa.key", "key of service accounts")?;
        write_missing("encryption.key", "key for Secrets in etcd")?;
        for leaf in leaves {
            // Without its authority nothing can be said about it.
            if self.is_good(leaf).unwrap_or(false) {
                continue;
            }
            let (group, hosts) = (leaf.group.as_deref().unwrap_or("no group"), leaf.hosts.join(", "));
            let signer = leaf.authority.file();
            let what = format!("certificate of {} ({group}), signed by {signer}, for: {hosts}", leaf.name);
            write(&format!("{}.crt", leaf.file), &what)?;
            write_missing(&format!("{}.key", leaf.file), &format!("key of {}", leaf.file))?;
        }
        Ok(())
    }

    /// A file's text, which must be there.
    pub fn text(&self, file: &str, ending: &str) -> Result<String> {
        let rel = format!("pki/{file}.{ending}");
        let bytes = self.store.read(&rel)?.ok_or_else(|| self.missing(file, &rel))?;
        String::from_utf8(bytes).context(format!("{rel} is not text"))
    }

    fn missing(&self, file: &str, rel: &str) -> Error {
        let path = self.store.path(rel);
        let is_kept_elsewhere =
            Authority::ALL.iter().any(|one| one.file() == file) && self.store.path(format!("pki/{file}.crt")).exists();
        if is_kept_elsewhere {
            return Error::precondition(format!(
                "{} is not here, and without it turnup cannot sign certificates",
                path.display()
            ))
            .hint("put the authority's key back for as long as this command takes, then the same command again");
        }
        Error::permanent(format!("{} is missing", path.display())).hint("turnup bootstrap")
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
        // One that was made when lives were longer is no good either.
        Ok(fits && rest.unsigned_abs() > leaf.life / 3 && rest <= leaf.life)
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
        // Never recreated silently: a new authority would make another cluster.
        KeyPair::from_pem(&pem).map_err(|error| {
            let path = self.store.path(format!("pki/{file}.key"));
            Error::precondition(format!("{} is not a private key", path.display())).source(error).hint(format!(
                "put it back from a backup; of a leaf, remove it and it is recreated: rm {}",
                path.display()
            ))
        })
    }

    fn write_certificate(&self, file: &str, pem: &str) -> Result<()> {
        self.store.write_file(format!("pki/{file}.crt"), pem.as_bytes(), 0o600)
    }
}

/// The certificate in PEM that this authority signs for this key; `authority` is its own in PEM.
pub(super) fn sign(leaf: &Leaf, key: &KeyPair, authority: &str, authority_key: KeyPair) -> Result<String> {
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
    let issuer = Issuer::from_ca_cert_pem(authority, authority_key).context("cannot read an authority")?;
    Ok(params.signed_by(key, &issuer).context("cannot sign a certificate")?.pem())
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
    fn a_certificate_that_no_longer_fits_is_renewed() {
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
        let short = Leaf { life: LEAF_LIFE / 10, ..moved.clone() };
        assert!(!pki.is_good(&short).unwrap(), "a shorter life counts at once");
        // Another authority under the same name: the old signature no longer counts.
        store.remove("pki/ca.key").unwrap();
        store.remove("pki/ca.crt").unwrap();
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        assert!(!pki.is_good(&moved).unwrap());
    }

    #[test]
    fn an_authority_whose_key_is_kept_elsewhere_is_not_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let pki = Pki::new(&store);
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        let key = pki.text("ca", "key").unwrap();
        store.remove("pki/ca.key").unwrap();
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        assert!(store.read("pki/ca.key").unwrap().is_none());
        let error = pki.ensure_leaf(&leaf()).unwrap_err();
        assert_eq!(error.class(), crate::Class::Precondition);
        assert!(error.message().ends_with("pki/ca.key is not here, and without it turnup cannot sign certificates"));
        assert!(pki.issue("anne", &[], LEAF_LIFE).is_err());
        store.write_file("pki/ca.key", key.as_bytes(), 0o600).unwrap();
        assert!(pki.ensure_leaf(&leaf()).unwrap());
    }

    #[test]
    fn a_user_has_every_group_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let pki = Pki::new(&store);
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        let files = || fs_err::read_dir(dir.path().join("pki")).unwrap().count();
        let before = files();
        let long: Vec<String> = (0..40).map(|number| format!("team-{number:050}")).collect();
        for groups in [vec![], vec!["viewers".to_owned()], vec!["viewers".into(), "audit".into()], long] {
            let issued = pki.issue("anne@laptop", &groups, Duration::from_hours(2)).unwrap();
            let (_, pem) = x509_parser::pem::parse_x509_pem(issued.certificate.as_bytes()).unwrap();
            let (rest, found) = X509Certificate::from_der(&pem.contents).unwrap();
            assert!(rest.is_empty());
            let (_, authority) = x509_parser::pem::parse_x509_pem(pki.text("ca", "crt").unwrap().as_bytes()).unwrap();
            let (_, authority) = X509Certificate::from_der(&authority.contents).unwrap();
            found.verify_signature(Some(authority.public_key())).unwrap();
            let names = |name: &x509_parser::x509::AttributeTypeAndValue<'_>| name.as_str().unwrap().to_owned();
            assert_eq!(found.subject().iter_organization().map(names).collect::<Vec<_>>(), groups);
            assert_eq!(found.subject().iter_common_name().map(names).collect::<Vec<_>>(), ["anne@laptop"]);
            assert_eq!(found.raw_serial_as_string().replace(':', ""), issued.serial);
            assert_eq!(found.validity().not_after.timestamp(), issued.expires.as_second());
            assert_eq!(hex::encode(Sha256::digest(&pem.contents)), issued.sha256);
            let usage = found.extended_key_usage().unwrap().unwrap().value;
            assert!(usage.client_auth && !usage.server_auth && !found.is_ca());
            let key = KeyPair::from_pem(&issued.key).unwrap();
            assert_eq!(key.subject_public_key_info(), found.public_key().raw);
        }
        assert_eq!(files(), before);
    }
}
