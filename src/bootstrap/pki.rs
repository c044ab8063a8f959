//! The cluster's own certificates: three authorities and what they sign, below `pki/` of the
//! cluster's directory.
//!
//! Keys and lifetimes are those of `phase2.pki.*`; the administrator's certificate lives as long
//! as `phase2.kubeconfig.lifetime` says. The cluster's authority may be the user's own. What is
//! there, fits and is not about to expire is kept, so that a repeated run changes nothing; a key is
//! written before its certificate, so that a crash between the two only repeats the signature.
//! Which items of an authority sign and verify is the part of `keyset`: what fits is signed by the
//! primary. Authorities' keys stay here and on the control plane, never on a worker. Certificates
//! of people ([`Pki::issue`]) are not kept here, and their keys are never written by this module.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber,
};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{ASN1Time, FromDer as _, GeneralName, X509Certificate};
use zeroize::Zeroizing;

use crate::cluster::{Cluster, PkiSettings};
use crate::error::{Context as _, Error, Result};
use crate::state::Store;
use crate::unknown;

pub use super::authority::Authority;
use super::keyset::{FIRST, KeysetName};
use super::own_authority::OwnAuthority;
use super::private_key;
use super::step_ids::PKI;
use super::subject;

/// The life of a leaf certificate where nothing else is said.
pub const LEAF_LIFE: Duration = Duration::from_hours(365 * 24);
/// Certificates begin this long before they are made: clocks of hosts differ.
pub const BACK_DATE: Duration = Duration::from_hours(1);

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
    pub(super) store: &'a Store,
    pub(super) settings: PkiSettings,
    /// From where files of the user's are named.
    pub(super) work_dir: &'a Path,
}

impl<'a> Pki<'a> {
    /// The PKI of the cluster in this store, with keys and lifetimes as they are by default.
    #[must_use]
    pub fn new(store: &'a Store) -> Self {
        Self { store, settings: PkiSettings::default(), work_dir: Path::new("") }
    }

    /// The PKI of a cluster, as its settings say.
    #[must_use]
    pub fn of(cluster: &'a Cluster) -> Self {
        Self { store: &cluster.store, settings: cluster.settings.pki.clone(), work_dir: &cluster.work_dir }
    }

    /// Makes the authority, or keeps it. An authority is never replaced while its key or its
    /// certificate is there; without its key nothing can be signed, and the first signature says
    /// so. That of the cluster may be the user's own.
    pub fn ensure_authority(&self, authority: Authority, cluster: &str) -> Result<()> {
        if authority == Authority::Cluster
            && let Some(own) = OwnAuthority::find(&self.settings, self.work_dir)?
        {
            return self.adopt(&own);
        }
        self.make_authority(authority.file(), &format!("{cluster} {}", authority.file()))
    }

    /// Makes the authority in this file, with this name, or keeps it.
    pub(super) fn make_authority(&self, file: &str, name: &str) -> Result<()> {
        if self.certificate(file)?.is_some() {
            return Ok(());
        }
        let key = self.ensure_key(file)?;
        let mut params = params(name, None, self.settings.ca_lifetime)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).context("cannot sign an authority")?;
        self.write_certificate(file, &certificate.pem())
    }

    /// Makes the certificate, or keeps it when it fits and is not yet to be renewed
    /// ([`rest_at_renewal`]). Returns whether it is new.
    pub fn ensure_leaf(&self, leaf: &Leaf) -> Result<bool> {
        if self.is_good(leaf)? {
            return Ok(false);
        }
        let mut key = self.ensure_key(&leaf.file)?;
        if !private_key::is_of(&key, self.settings.key_algorithm) {
            key = self.make_key(&leaf.file)?;
        }
        let signer = self.primary(leaf.authority.into())?;
        let certificate = sign(leaf, &key, &self.text(&signer, "crt")?, self.read_key(&signer)?)?;
        self.write_certificate(&leaf.file, &certificate)?;
        Ok(true)
    }

    /// A certificate of the cluster's authority for a user of the API in these groups, with a new
    /// key. Nothing is written.
    pub fn issue(&self, user: &str, groups: &[String], life: Duration) -> Result<Issued> {
        let key = private_key::generate(self.settings.key_algorithm)?;
        let mut params = params(user, groups.first().map(String::as_str), life)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let serial = params.serial_number.as_ref().map(|serial| hex::encode(serial.to_bytes())).unwrap_or_default();
        let expires = Timestamp::from_second(params.not_after.unix_timestamp()).context("the end is out of range")?;
        let issuer = self.issuer(Authority::Cluster)?;
        let mut der = params.signed_by(&key, &issuer).context("cannot sign a certificate")?.der().to_vec();
        if groups.len() > 1 {
            der = subject::with_groups(&der, user, groups, &self.read_key(&self.primary(KeysetName::KubernetesCa)?)?)?;
        }
        let (certificate, key) = (subject::pem(&der), key.serialize_pem().into());
        Ok(Issued { certificate, key, serial, sha256: hex::encode(Sha256::digest(&der)), expires })
    }

    /// An authority, ready to sign.
    fn issuer(&self, authority: Authority) -> Result<Issuer<'static, KeyPair>> {
        let file = self.primary(authority.into())?;
        let (key, certificate) = (self.read_key(&file)?, self.text(&file, "crt")?);
        Issuer::from_ca_cert_pem(&certificate, key).context("cannot read an authority")
    }

    /// Makes the key pair that signs service accounts' tokens, or keeps it.
    pub fn ensure_service_account_key(&self) -> Result<()> {
        self.make_service_account_key(&KeysetName::ServiceAccount.file(FIRST))
    }

    /// Makes the key that encrypts Secrets in etcd (32 bytes as base64), or keeps it.
    pub fn ensure_encryption_key(&self) -> Result<()> {
        self.make_encryption_key(&KeysetName::EncryptionKey.file(FIRST))
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
        if OwnAuthority::find(&self.settings, self.work_dir)?.is_some() {
            self.ensure_authority(Authority::Cluster, cluster)?;
        }
        for name in KeysetName::ALL {
            for file in self.trusted(name)? {
                match name {
                    KeysetName::ServiceAccount => {
                        write_missing(&format!("{file}.pub"), "public key of service accounts")?;
                        write_missing(&format!("{file}.key"), "key of service accounts")?;
                    }
                    KeysetName::EncryptionKey => write_missing(&format!("{file}.key"), "key for Secrets in etcd")?,
                    KeysetName::KubernetesCa | KeysetName::EtcdCa | KeysetName::FrontProxyCa => {
                        write_missing(&format!("{file}.crt"), &format!("authority {file} of {cluster}"))?;
                        write_missing(&format!("{file}.key"), &format!("key of the authority {file}"))?;
                    }
                }
            }
        }
        for leaf in leaves {
            // Without its authority nothing can be said about it.
            if self.is_good(leaf).unwrap_or(false) {
                continue;
            }
            let (group, hosts) = (leaf.group.as_deref().unwrap_or("no group"), leaf.hosts.join(", "));
            let signer = self.primary(leaf.authority.into())?;
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

    /// Whether the private key of this item is here.
    pub fn has_key(&self, file: &str) -> Result<bool> {
        Ok(self.store.read(format!("pki/{file}.key"))?.is_some())
    }

    fn missing(&self, file: &str, rel: &str) -> Error {
        let path = self.store.path(rel);
        let is_authority = self.find_item(file).is_ok_and(|found| found.is_some());
        if is_authority && self.store.path(format!("pki/{file}.crt")).exists() {
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
        let authority = self.certificate(&self.primary(leaf.authority.into())?)?.unwrap_or_default();
        let authority = X509Certificate::from_der(&authority).ok().map(|(_, authority)| authority);
        let signed_by_current = authority
            .as_ref()
            .is_some_and(|authority| certificate.verify_signature(Some(authority.public_key())).is_ok());
        let authority_end = authority.as_ref().map(|authority| authority.validity().not_after.timestamp());
        let fits = common_name == Some(leaf.name.as_str())
            && group == leaf.group.as_deref()
            && hosts_of(&certificate) == sorted(leaf.hosts.clone())
            && signed_by_current
            && self.read_key(&leaf.file).is_ok_and(|key| {
                key.subject_public_key_info() == certificate.public_key().raw
                    && private_key::is_of(&key, self.settings.key_algorithm)
            });
        let rest = certificate.validity().time_to_expiration().unwrap_or_default();
        // One that was made when lives were longer is no good either; one that ends with its
        // authority cannot be better.
        let ends_with_authority = authority_end == Some(certificate.validity().not_after.timestamp());
        let is_young =
            rest.unsigned_abs() > rest_at_renewal(&leaf.file, leaf.life) || (ends_with_authority && !rest.is_zero());
        Ok(fits && is_young && rest <= leaf.life)
    }

    pub(super) fn certificate(&self, file: &str) -> Result<Option<Vec<u8>>> {
        let Some(bytes) = self.store.read(format!("pki/{file}.crt"))? else { return Ok(None) };
        Ok(der_of(&bytes))
    }

    pub(super) fn ensure_key(&self, file: &str) -> Result<KeyPair> {
        if self.store.read(format!("pki/{file}.key"))?.is_none() {
            return self.make_key(file);
        }
        self.read_key(file)
    }

    fn make_key(&self, file: &str) -> Result<KeyPair> {
        let key = private_key::generate(self.settings.key_algorithm)?;
        let pem = Zeroizing::new(key.serialize_pem());
        self.store.write_file(format!("pki/{file}.key"), pem.as_bytes(), 0o600)?;
        Ok(key)
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

    pub(super) fn write_certificate(&self, file: &str, pem: &str) -> Result<()> {
        self.store.write_file(format!("pki/{file}.crt"), pem.as_bytes(), 0o600)
    }
}

/// How much of its life a certificate has left when it is renewed: a third, less a share of up to a
/// tenth of the life. The share follows from the file's name, which has the host's: it stays the
/// same, and certificates that were made in one run are not all renewed in one run.
#[must_use]
pub fn rest_at_renewal(file: &str, life: Duration) -> Duration {
    (life / 3).saturating_sub((life / 10).mul_f64(share_of(file)))
}

/// A number from 0 to 1 that follows from this name alone.
pub(super) fn share_of(name: &str) -> f64 {
    let share = Sha256::digest(name).iter().take(4).fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
    f64::from(share) / f64::from(u32::MAX)
}

/// The certificate in PEM that this authority signs for this key; `authority` is its own in PEM.
pub(super) fn sign(leaf: &Leaf, key: &KeyPair, authority: &str, authority_key: KeyPair) -> Result<String> {
    let mut params = params(&leaf.name, leaf.group.as_deref(), leaf.life)?;
    // What outlives its authority is worth nothing.
    if let Some(end) = end_of(authority) {
        params.not_after = params.not_after.min(end.to_datetime());
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    if leaf.client {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    }
    if !leaf.hosts.is_empty() {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    }
    params.subject_alt_names = alternative_names(&leaf.hosts)?;
    params.use_authority_key_identifier_extension = true;
    let issuer = Issuer::from_ca_cert_pem(authority, authority_key).context("cannot read an authority")?;
    Ok(params.signed_by(key, &issuer).context("cannot sign a certificate")?.pem())
}

/// What asks an authority elsewhere for the certificate: its subject and names, signed with this
/// key, in PEM (RFC 2986). How it may be used is said beside it.
pub(super) fn request(leaf: &Leaf, key: &KeyPair) -> Result<String> {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject_of(&leaf.name, leaf.group.as_deref());
    params.subject_alt_names = alternative_names(&leaf.hosts)?;
    let request = params.serialize_request(key).context("cannot sign a request for a certificate")?;
    request.pem().context("cannot write a request for a certificate")
}

fn alternative_names(hosts: &[String]) -> Result<Vec<SanType>> {
    let name = |host: &String| match host.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(host.as_str().try_into().context("a name is not ASCII")?)),
    };
    hosts.iter().map(name).collect()
}

fn params(name: &str, group: Option<&str>, life: Duration) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject_of(name, group);
    let now = SystemTime::now();
    params.not_before = (now - BACK_DATE).into();
    params.not_after = (now + life).into();
    params.serial_number = Some(SerialNumber::from_slice(&random_serial()?));
    Ok(params)
}

fn subject_of(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    subject
}

/// A positive integer (RFC 5280 4.1.2.2) of 126 random bits.
fn random_serial() -> Result<[u8; 16]> {
    let mut serial = [0_u8; 16];
    getrandom::fill(&mut serial).map_err(|error| Error::permanent(format!("no random numbers: {error}")))?;
    // Without a leading zero, which DER leaves out: the certificate has the bytes that we name.
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

/// The first certificate of a text in PEM.
pub(super) fn der_of(pem: &[u8]) -> Option<Vec<u8>> {
    x509_parser::pem::parse_x509_pem(pem).ok().map(|(_, pem)| pem.contents)
}

/// When a certificate in PEM ends.
pub(super) fn end_of(pem: &str) -> Option<ASN1Time> {
    let der = der_of(pem.as_bytes())?;
    let (_, certificate) = X509Certificate::from_der(&der).ok()?;
    Some(certificate.validity().not_after)
}

/// The DNS names and addresses at which a certificate serves, sorted.
#[must_use]
pub fn hosts_of(certificate: &X509Certificate<'_>) -> Vec<String> {
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
#[path = "pki_tests.rs"]
mod tests;
