//! The exec credential plugin behind `/etc/kubernetes/admin.conf`: signs a client certificate for
//! an hour with the CA key of the host, so that no long-lived administrator's key lies there. It
//! writes no file.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::KeyPair;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::config::people::ADMINISTRATORS;
use crate::error::{Context as _, Error, Result};
use crate::input;

use super::component::CONTROLLER_MANAGER;
use super::pki::{Authority, Leaf, sign};

/// The life of the certificate.
const LIFE: Duration = Duration::from_hours(1);

/// A new key and certificate for this user, as an `ExecCredential` of
/// `client.authentication.k8s.io/v1`.
pub fn sign_credential(user: &str) -> Result<Value> {
    let [authority, key] = ["ca.crt", "ca.key"].map(|file| CONTROLLER_MANAGER.file(file));
    sign_with(user, Path::new(&authority), Path::new(&key))
}

fn sign_with(user: &str, authority: &Path, authority_key: &Path) -> Result<Value> {
    let read = |path: &Path| {
        let hint = "run it as root on a host of the control plane";
        input::read_text(path, input::KEYS).map(Zeroizing::new).map_err(|error| {
            Error::precondition("the authority of the cluster cannot be read here").source(error).hint(hint)
        })
    };
    let (authority, authority_key) = (read(authority)?, read(authority_key)?);
    let authority_key = KeyPair::from_pem(&authority_key).context("the key of the authority is damaged")?;
    let leaf = Leaf { life: LIFE, ..Leaf::client("", Authority::Cluster, user, Some(ADMINISTRATORS)) };
    let key = KeyPair::generate().context("cannot make a key")?;
    let ends = Timestamp::now() + LIFE;
    let certificate = sign(&leaf, &key, &authority, authority_key)?;
    Ok(json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "expirationTimestamp": ends.strftime("%FT%TZ").to_string(),
            "clientCertificateData": certificate,
            "clientKeyData": key.serialize_pem(),
        },
    }))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use x509_parser::prelude::{FromDer as _, X509Certificate};

    use super::super::pki::Pki;
    use super::*;
    use crate::state::Store;

    #[test]
    fn root_gets_an_hour_as_an_administrator() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        Pki::new(&store).ensure_authority(Authority::Cluster, "c").unwrap();
        let [authority, key] = ["pki/ca.crt", "pki/ca.key"].map(|file| store.path(file));
        let credential = sign_with("root@cp", &authority, &key).unwrap();
        let field = |name: &str| credential["status"][name].as_str().unwrap().to_owned();
        let (_, pem) = x509_parser::pem::parse_x509_pem(field("clientCertificateData").as_bytes()).unwrap();
        let (_, certificate) = X509Certificate::from_der(&pem.contents).unwrap();
        assert_eq!(certificate.subject().to_string(), "O=turnup:cluster-admins, CN=root@cp");
        let left = certificate.validity().time_to_expiration().unwrap().whole_seconds();
        assert!((3500..=3600).contains(&left), "{left}");
        let ends: Timestamp = field("expirationTimestamp").parse().unwrap();
        assert_eq!(ends.as_second(), certificate.validity().not_after.timestamp());
        let (_, pem) = x509_parser::pem::parse_x509_pem(&fs_err::read(&authority).unwrap())
            .map(|(rest, pem)| (rest.to_vec(), pem))
            .unwrap();
        let (_, signer) = X509Certificate::from_der(&pem.contents).unwrap();
        certificate.verify_signature(Some(signer.public_key())).unwrap();
        assert!(field("clientKeyData").starts_with("-----BEGIN PRIVATE KEY-----"));
        assert_ne!(
            sign_with("root@cp", &authority, &key).unwrap()["status"]["clientKeyData"],
            credential["status"]["clientKeyData"]
        );
        let error = sign_with("root@cp", &authority, Path::new("/nowhere")).unwrap_err();
        insta::assert_snapshot!(error.render());
    }
}
