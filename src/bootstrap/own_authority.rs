//! An authority of the user's own: its certificate, those above it, and its key, read from the
//! files that the configuration names and judged before anything is signed with them.
//!
//! What it refuses would make certificates that no component accepts. It writes nothing.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, Issuer, KeyPair, PublicKeyData as _};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use crate::cluster::PkiSettings;
use crate::error::{Context as _, Error, Result};
use crate::input;

use super::subject;

const CERTIFICATE: &str = "phase2.pki.ca_cert_file";
const KEY: &str = "phase2.pki.ca_key_file";

/// An authority that was made elsewhere, in PEM.
pub(super) struct OwnAuthority {
    /// Its certificate alone: components trust this one, and nothing above it.
    pub(super) certificate: String,
    /// The certificates above it up to the root; empty where it is one.
    pub(super) chain: String,
    /// Its key.
    pub(super) key: Zeroizing<String>,
}

impl OwnAuthority {
    /// The authority that the settings name; none where turnup makes one.
    pub(super) fn find(settings: &PkiSettings, work_dir: &Path) -> Result<Option<Self>> {
        if settings.ca_cert_file.is_empty() {
            return Ok(None);
        }
        let read = |name: &str, file: &str| {
            input::read_text(&work_dir.join(file), input::KEYS).map(Zeroizing::new).map_err(|error| {
                Error::config(format!("{name}: {file} cannot be read")).source(error).hint("turnup config check")
            })
        };
        let (file, key_file) = (&settings.ca_cert_file, &settings.ca_key_file);
        let (text, key) = (read(CERTIFICATE, file)?, read(KEY, key_file)?);
        let blocks: Vec<Pem> = Pem::iter_from_buffer(text.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| refuse(file, &format!("is no PEM: {error}")))?;
        let blocks: Vec<Pem> = blocks.into_iter().filter(|block| block.label == "CERTIFICATE").collect();
        let parsed: Vec<X509Certificate<'_>> = blocks
            .iter()
            .map(Pem::parse_x509)
            .collect::<Result<_, _>>()
            .map_err(|error| refuse(file, &format!("has a damaged certificate: {error}")))?;
        let pair = KeyPair::from_pem(&key).map_err(|_| {
            Error::config(format!("{KEY}: {key_file} is no private key in PKCS #8 without a password"))
                .hint(format!("openssl pkcs8 -topk8 -nocrypt -in {key_file} -out NEW-FILE"))
        })?;
        judge(file, &parsed, settings.leaf_lifetime)?;
        let [own, ..] = parsed.as_slice() else { return Err(refuse(file, "has no certificate")) };
        if pair.subject_public_key_info() != own.public_key().raw {
            return Err(Error::config(format!("{KEY}: {key_file} is not the key of the first certificate in {file}"))
                .hint(format!("the authority's own certificate must come first in {file}")));
        }
        let mut pems = blocks.iter().map(|block| subject::pem(&block.contents));
        let certificate = pems.next().unwrap_or_default();
        require_same_name(file, &certificate, own, pair)?;
        Ok(Some(Self { certificate, chain: pems.collect(), key }))
    }
}

fn refuse(file: &str, why: &str) -> Error {
    Error::config(format!("{CERTIFICATE}: {file} {why}")).hint(format!("openssl x509 -noout -text -in {file}"))
}

/// Each is an authority, lives long enough, and is signed by the next one.
fn judge(file: &str, all: &[X509Certificate<'_>], leaf_life: Duration) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let needed = now.saturating_add(i64::try_from(leaf_life.as_secs()).unwrap_or(i64::MAX));
    for (below, one) in all.iter().enumerate() {
        let name = one.subject();
        let constraints = one.basic_constraints().ok().flatten();
        if !constraints.as_ref().is_some_and(|found| found.value.ca) {
            return Err(refuse(file, &format!("holds {name}, which is no authority (CA:TRUE)")));
        }
        let usage = one.key_usage().ok().flatten();
        if usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
            return Err(refuse(file, &format!("holds {name}, which may not sign certificates (keyCertSign)")));
        }
        // The authorities below it, itself not among them.
        let most = constraints.and_then(|found| found.value.path_len_constraint);
        if most.is_some_and(|most| usize::try_from(most).unwrap_or(usize::MAX) < below) {
            return Err(refuse(file, &format!("holds {name}, which allows fewer authorities below it (pathlen)")));
        }
        let validity = one.validity();
        if validity.not_before.timestamp() > now {
            return Err(refuse(file, &format!("holds {name}, which is not valid yet")));
        }
        if validity.not_after.timestamp() < needed {
            return Err(refuse(
                file,
                &format!("holds {name}, which ends before a certificate that it signs (phase2.pki.leaf_lifetime)"),
            ));
        }
        if let Some(above) = all.get(below + 1)
            && (one.issuer().as_raw() != above.subject().as_raw()
                || one.verify_signature(Some(above.public_key())).is_err())
        {
            return Err(refuse(file, &format!("holds {name}, and the next certificate has not signed it")));
        }
    }
    Ok(())
}

/// What it signs must name it byte for byte: a name with an attribute that occurs twice, such as
/// the DC of directories, comes out shorter.
fn require_same_name(file: &str, certificate: &str, own: &X509Certificate<'_>, key: KeyPair) -> Result<()> {
    let issuer = Issuer::from_ca_cert_pem(certificate, key)
        .map_err(|error| refuse(file, &format!("cannot be used: {error}")))?;
    let probe = KeyPair::generate().context("cannot make a key")?;
    let signed = CertificateParams::default().signed_by(&probe, &issuer).context("cannot sign a certificate")?;
    let (_, signed) = X509Certificate::from_der(signed.der()).context("a new certificate is unreadable")?;
    if signed.issuer().as_raw() == own.subject().as_raw() {
        return Ok(());
    }
    Err(refuse(file, &format!("is of {}, a name that turnup cannot repeat: an attribute occurs twice", own.subject())))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use rcgen::{BasicConstraints, DnType, IsCa, KeyUsagePurpose};

    use super::*;

    struct Made {
        pem: String,
        key: KeyPair,
        issuer: Issuer<'static, KeyPair>,
    }

    fn params(name: &str, pathlen: BasicConstraints, years: u64) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(pathlen);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.not_before = (SystemTime::now() - Duration::from_hours(1)).into();
        params.not_after = (SystemTime::now() + Duration::from_hours(years * 365 * 24)).into();
        params
    }

    fn make(params: &CertificateParams, by: Option<&Made>) -> Made {
        let key = KeyPair::generate().unwrap();
        let made = match by {
            Some(by) => params.signed_by(&key, &by.issuer).unwrap(),
            None => params.self_signed(&key).unwrap(),
        };
        let again = KeyPair::from_pem(&key.serialize_pem()).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&made.pem(), again).unwrap();
        Made { pem: made.pem(), key, issuer }
    }

    fn find(certificates: &str, key: &KeyPair) -> Result<Option<OwnAuthority>> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("ca.pem"), certificates).unwrap();
        fs_err::write(dir.path().join("ca.key"), key.serialize_pem()).unwrap();
        let settings =
            PkiSettings { ca_cert_file: "ca.pem".into(), ca_key_file: "ca.key".into(), ..PkiSettings::default() };
        OwnAuthority::find(&settings, dir.path())
    }

    #[test]
    fn an_intermediate_is_taken_with_what_stands_above_it() {
        let root = make(&params("root", BasicConstraints::Unconstrained, 10), None);
        let middle = make(&params("middle", BasicConstraints::Constrained(0), 5), Some(&root));
        let own = find(&format!("{}{}", middle.pem, root.pem), &middle.key).unwrap().unwrap();
        let plain = |text: &str| text.replace('\r', "");
        assert_eq!((plain(&own.certificate), plain(&own.chain)), (plain(&middle.pem), plain(&root.pem)));
        assert!(find(&root.pem, &root.key).unwrap().unwrap().chain.is_empty());
        assert!(OwnAuthority::find(&PkiSettings::default(), Path::new("/")).unwrap().is_none());
    }

    #[test]
    fn what_no_component_would_accept_is_refused() {
        let free = BasicConstraints::Unconstrained;
        let root = make(&params("root", BasicConstraints::Constrained(0), 10), None);
        let middle = make(&params("middle", free, 5), Some(&root));
        let other = make(&params("other", free, 10), None);
        let mut of_short = params("short", free, 1);
        of_short.not_after = (SystemTime::now() + Duration::from_hours(24)).into();
        let short = make(&of_short, None);
        let mut of_leaf = params("leaf", free, 10);
        of_leaf.is_ca = IsCa::NoCa;
        let leaf = make(&of_leaf, None);
        let mut of_silent = params("silent", free, 10);
        of_silent.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let silent = make(&of_silent, None);
        for (certificates, key, why) in [
            (format!("{}{}", middle.pem, root.pem), &middle.key, "(pathlen)"),
            (format!("{}{}", middle.pem, other.pem), &middle.key, "the next certificate has not signed it"),
            (short.pem.clone(), &short.key, "phase2.pki.leaf_lifetime"),
            (leaf.pem.clone(), &leaf.key, "(CA:TRUE)"),
            (silent.pem.clone(), &silent.key, "(keyCertSign)"),
            (other.pem.clone(), &root.key, "is not the key of the first certificate"),
            (String::new(), &root.key, "has no certificate"),
        ] {
            let error = find(&certificates, key).err().unwrap().render();
            assert!(error.contains("phase2.pki.ca_") && error.contains(why), "{error}");
        }
    }
}
