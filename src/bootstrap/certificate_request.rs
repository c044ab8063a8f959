//! A certificate that the API is asked for, for a host of turnup's: the request, and what became of
//! it. The CSR approver judges it, the controller manager signs it.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::node::api_client::ApiClient;
use crate::node::layout::{HOST_CERTIFICATE, HOST_KEY};

use super::csr_approver::{self, CLIENT, SERVING};
use super::pki::{self, Leaf};

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// After this the request is given up: the API forgets one that is approved after an hour, and one
/// that is not after a day.
const PATIENCE: Duration = Duration::from_mins(10);
/// The shortest life that the API lets a request ask for.
const SHORTEST: Duration = Duration::from_mins(10);

/// One request.
pub(super) struct CertificateRequest {
    name: String,
    key: KeyPair,
    made: Instant,
}

/// A certificate and the key that it is for, in PEM.
pub(super) type Signed = (String, Zeroizing<String>);

impl CertificateRequest {
    /// Asks for this certificate of the cluster's authority, as the host itself.
    pub(super) fn make(leaf: &Leaf, key: KeyPair) -> Result<Self> {
        let object = object(leaf, &key)?;
        let made = connect()?.create(PATH, &object)?;
        let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(Self { name, key, made: Instant::now() })
    }

    /// Looks what became of it; none while it is not yet signed.
    ///
    /// # Errors
    /// A transient one while the API is away; another one when the request comes to nothing.
    pub(super) fn look(&self) -> Result<Option<Signed>> {
        let found = connect()?.get(&format!("{PATH}/{}", self.name))?;
        self.read(&found.ok_or_else(|| self.refused("is deleted"))?, self.made.elapsed())
    }

    fn read(&self, request: &Value, age: Duration) -> Result<Option<Signed>> {
        if let Some(why) = csr_approver::denial(request) {
            return Err(self.refused(&format!("is denied: {why}")));
        }
        let Some(text) = request["status"]["certificate"].as_str() else {
            let what = if csr_approver::is_approved(request) { "signed" } else { "approved" };
            if age < PATIENCE {
                return Ok(None);
            }
            return Err(self.refused(&format!("was not {what} in ten minutes")));
        };
        let pem = STANDARD.decode(text).ok().and_then(|pem| String::from_utf8(pem).ok());
        let pem = pem.ok_or_else(|| self.refused("has a certificate that is no text"))?;
        Ok(Some((pem, Zeroizing::new(self.key.serialize_pem()))))
    }

    fn refused(&self, what: &str) -> Error {
        Error::permanent(format!("the request {} for a certificate {what}", self.name)).hint("turnup status (says why)")
    }
}

/// By the host's own certificate, which outlives that of its kubelet.
fn connect() -> Result<ApiClient> {
    ApiClient::connect(Path::new(HOST_CERTIFICATE), Path::new(HOST_KEY))
}

/// As a kubelet asks (`CertificateSigningRequest` of `certificates.k8s.io/v1`).
pub(super) fn object(leaf: &Leaf, key: &KeyPair) -> Result<Value> {
    let (signer, usage) = if leaf.client { (CLIENT, "client auth") } else { (SERVING, "server auth") };
    let mut usages = vec!["digital signature", usage];
    if key.algorithm() == &PKCS_RSA_SHA256 {
        usages.insert(1, "key encipherment");
    }
    let mut spec = json!({
        "request": STANDARD.encode(pki::request(leaf, key)?),
        "signerName": signer,
        "usages": usages,
    });
    if !leaf.client {
        // A client's lives as long as those that kubelets ask for: the controller manager says.
        spec["expirationSeconds"] = leaf.life.max(SHORTEST).as_secs().into();
    }
    Ok(json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "turnup-"},
        "spec": spec,
    }))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn a_request_is_waited_for_until_it_is_signed_denied_or_old() {
        let key = KeyPair::generate().unwrap();
        let request = CertificateRequest { name: "turnup-x7k2p".into(), key, made: Instant::now() };
        let read = |status: Value, minutes: u64| match request
            .read(&json!({"status": status}), Duration::from_mins(minutes))
        {
            Ok(None) => "pending".to_owned(),
            Ok(Some((pem, key))) => format!("{pem} {}", *key == request.key.serialize_pem()),
            Err(error) => {
                assert_eq!(error.class(), crate::error::Class::Permanent);
                error.message().to_owned()
            }
        };
        let approved = json!([{"type": "Approved", "status": "True"}]);
        let given_up = |what: &str| format!("the request turnup-x7k2p for a certificate was not {what} in ten minutes");
        assert_eq!(read(json!({}), 9), "pending");
        assert_eq!(read(json!({}), 10), given_up("approved"));
        assert_eq!(read(json!({"conditions": approved}), 9), "pending");
        assert_eq!(read(json!({"conditions": approved}), 10), given_up("signed"));
        assert_eq!(read(json!({"conditions": approved, "certificate": STANDARD.encode("PEM")}), 11), "PEM true");
        let denied =
            json!({"conditions": [{"type": "Denied", "message": "turnup: the host w0 asks to be the node w1"}]});
        let why = "the request turnup-x7k2p for a certificate is denied: turnup: the host w0 asks to be the node w1";
        assert_eq!(read(denied, 0), why);
    }
}
