//! Signatures (Ed25519) of manifests. The private key is on the operator's machine and on the
//! control plane, the public one in the cluster's directory: a good signature says that a manifest
//! was written by one of these, and not since in a store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

use super::manifest::BackupManifest;

/// Bytes of a public key, which are the last ones of its DER.
const PUBLIC: usize = 32;

/// A manifest as it stands in an archive, byte by byte, with the signature beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedManifest {
    /// What it says.
    pub manifest: BackupManifest,
    /// What is signed.
    pub text: String,
    /// In base64; none where the host had no key yet.
    pub signature: Option<String>,
}

/// Who is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustedSigner {
    /// The cluster's public key in PEM; none where the cluster has none yet.
    pub public_key: Option<String>,
    /// Also what has no signature.
    pub unsigned: bool,
}

/// The signature of this text with this private key (PKCS #8 in PEM), in base64.
pub(super) fn sign(key: &str, text: &str) -> Result<String> {
    let key = der(key).and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok());
    let key = key.ok_or_else(|| Error::precondition("the key that signs backups is damaged").hint("turnup up"))?;
    Ok(STANDARD.encode(key.sign(text.as_bytes())))
}

/// A short name of a public key, which its owner can write down.
pub(crate) fn fingerprint(public_key: &str) -> String {
    format!("SHA256:{}", hex::encode(Sha256::digest(der(public_key).unwrap_or_default())))
}

impl TrustedSigner {
    /// An error where the manifest of `what` is not signed by the cluster.
    pub(crate) fn require(&self, what: &str, signed: &SignedManifest) -> Result<()> {
        let Some(public_key) = &self.public_key else { return Ok(()) };
        let Some(signature) = &signed.signature else {
            if self.unsigned {
                return Ok(());
            }
            return Err(Error::precondition(format!("{what} is not signed"))
                .evidence("this cluster signs its backups: it is of before that, or of another party")
                .hint("use another one: turnup backup list; or, where you know it to be yours: --unsigned"));
        };
        let der = der(public_key).unwrap_or_default();
        let key = der.get(der.len().saturating_sub(PUBLIC)..).unwrap_or_default();
        let bytes = STANDARD.decode(signature.trim()).unwrap_or_default();
        UnparsedPublicKey::new(&ED25519, key).verify(signed.text.as_bytes(), &bytes).map_err(|_| {
            Error::precondition(format!("{what} is not signed by this cluster"))
                .evidence(format!("its manifest does not fit the signature of {}", fingerprint(public_key)))
                .evidence("it was changed since it was taken, or is of another cluster")
                .hint("use another one: turnup backup list")
        })
    }
}

fn der(pem: &str) -> Option<Vec<u8>> {
    x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok().map(|(_, pem)| pem.contents)
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::manifest::sample;
    use super::*;

    /// A private and a public key, as `pki/` has them.
    pub(crate) fn new_pair() -> (String, String) {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        (key.serialize_pem(), key.public_key_pem())
    }

    #[test]
    fn only_what_the_cluster_signed_is_believed() {
        let (key, public) = new_pair();
        let text = crate::document::render("m", &sample()).unwrap();
        let signature = Some(sign(&key, &text).unwrap());
        let signed = SignedManifest { manifest: sample(), text, signature };
        let trust = |public: &str, unsigned| TrustedSigner { public_key: Some(public.to_owned()), unsigned };
        trust(&public, false).require("b", &signed).unwrap();
        let other = new_pair().1;
        let changed = SignedManifest { text: signed.text.replace("4711", "4712"), ..signed.clone() };
        let cut = SignedManifest { signature: Some("AAAA".into()), ..signed.clone() };
        for (public, signed) in [(&other, &signed), (&public, &changed), (&public, &cut)] {
            let error = trust(public, true).require("b", signed).unwrap_err().render();
            assert!(error.contains("b is not signed by this cluster"), "{error}");
        }
        let without = SignedManifest { signature: None, ..signed.clone() };
        let error = trust(&public, false).require("b", &without).unwrap_err().render();
        assert!(error.contains("b is not signed") && error.contains("--unsigned"), "{error}");
        trust(&public, true).require("b", &without).unwrap();
        TrustedSigner { public_key: None, unsigned: false }.require("b", &without).unwrap();
        assert!(sign("no key", "").is_err());
        assert_ne!(fingerprint(&public), fingerprint(&other));
    }
}
