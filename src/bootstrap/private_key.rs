//! New private keys of the kind that the configuration asks for. They are kept by others.

use std::time::Duration;

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, SignatureAlgorithm};
use zeroize::Zeroizing;

use crate::cluster::KeyAlgorithm;
use crate::error::{Context as _, Error, Result};
use crate::exec::Run;
use crate::input;

/// The search for two primes of 1536 bits takes a second or two.
const LIMIT: Duration = Duration::from_mins(2);

/// A new key.
pub(super) fn generate(algorithm: KeyAlgorithm) -> Result<KeyPair> {
    match algorithm {
        KeyAlgorithm::EcdsaP256 | KeyAlgorithm::EcdsaP384 => {
            KeyPair::generate_for(signature(algorithm)).context("cannot make a key")
        }
        KeyAlgorithm::Rsa3072 => generate_rsa(),
    }
}

/// Whether a key is of this kind.
pub(super) fn is_of(key: &KeyPair, algorithm: KeyAlgorithm) -> bool {
    key.algorithm() == signature(algorithm)
}

fn signature(algorithm: KeyAlgorithm) -> &'static SignatureAlgorithm {
    match algorithm {
        KeyAlgorithm::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
        KeyAlgorithm::EcdsaP384 => &PKCS_ECDSA_P384_SHA384,
        KeyAlgorithm::Rsa3072 => &PKCS_RSA_SHA256,
    }
}

/// The library that signs makes no RSA keys. ssh-keygen, which every use of turnup needs, does; the
/// file is in a directory of this user alone, and gone when this returns.
fn generate_rsa() -> Result<KeyPair> {
    let dir = tempfile::tempdir().context("cannot make a directory for a new key")?;
    let file = dir.path().join("key");
    Run::new("ssh-keygen")
        .args(["-q", "-t", "rsa", "-b", "3072", "-m", "PKCS8", "-C", "", "-N", "", "-f"])
        .arg(&file)
        .dir(dir.path())
        .timeout(LIMIT)
        .succeed()?;
    let pem = Zeroizing::new(input::read_text(&file, input::KEYS).context("cannot read a new key")?);
    KeyPair::from_pem(&pem).map_err(|error| Error::permanent("ssh-keygen made a key of another form").source(error))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn each_kind_of_key_is_made_and_read_again() {
        let all = [KeyAlgorithm::EcdsaP256, KeyAlgorithm::EcdsaP384, KeyAlgorithm::Rsa3072];
        for algorithm in all {
            let key = generate(algorithm).unwrap();
            let again = KeyPair::from_pem(&key.serialize_pem()).unwrap();
            assert_eq!(all.map(|one| is_of(&again, one)), all.map(|one| one == algorithm));
        }
    }
}
