//! The settings `phase2.pki.*` as typed values: which keys the cluster's certificates have, and how
//! long certificates and tokens live.

use std::time::Duration;

use crate::config::Settings;
use crate::error::Result;

/// A kind of private key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// ECDSA with the curve P-256.
    #[default]
    EcdsaP256,
    /// ECDSA with the curve P-384.
    EcdsaP384,
    /// RSA with 3072 bits.
    Rsa3072,
}

/// Keys and lifetimes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct PkiSettings {
    pub leaf_lifetime: Duration,
    pub token_lifetime: Duration,
    pub ca_lifetime: Duration,
    pub key_algorithm: KeyAlgorithm,
    /// A file of the user's, as the configuration names it; empty where turnup makes the authority.
    pub ca_cert_file: String,
    pub ca_key_file: String,
    pub renew_on_hosts: bool,
}

impl PkiSettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let name = |name: &str| format!("phase2.pki.{name}");
        let life = |of: &str, default| -> Result<Duration> { Ok(settings.get_duration(&name(of))?.unwrap_or(default)) };
        let default = Self::default();
        Ok(Self {
            leaf_lifetime: life("leaf_lifetime", default.leaf_lifetime)?,
            token_lifetime: life("token_lifetime", default.token_lifetime)?,
            ca_lifetime: life("ca_lifetime", default.ca_lifetime)?,
            key_algorithm: match settings.get(&name("key_algorithm"))?.as_str() {
                "ecdsa-p384" => KeyAlgorithm::EcdsaP384,
                "rsa-3072" => KeyAlgorithm::Rsa3072,
                _ => KeyAlgorithm::EcdsaP256,
            },
            ca_cert_file: settings.get(&name("ca_cert_file"))?,
            ca_key_file: settings.get(&name("ca_key_file"))?,
            renew_on_hosts: settings.get_bool(&name("renew_on_hosts"))?,
        })
    }
}

impl Default for PkiSettings {
    fn default() -> Self {
        Self {
            leaf_lifetime: Duration::from_hours(365 * 24),
            token_lifetime: Duration::from_mins(30),
            ca_lifetime: Duration::from_hours(10 * 365 * 24),
            key_algorithm: KeyAlgorithm::EcdsaP256,
            ca_cert_file: String::new(),
            ca_key_file: String::new(),
            renew_on_hosts: true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::cluster::tests::{assert_reads, assert_refused};

    #[test]
    fn each_setting_reaches_its_field() {
        let changes = [
            ("phase2.pki.leaf_lifetime", "720h"),
            ("phase2.pki.token_lifetime", "45m"),
            ("phase2.pki.ca_lifetime", "8760h"),
            ("phase2.pki.key_algorithm", "ecdsa-p384"),
            ("phase2.pki.ca_cert_file", "ca.crt"),
            ("phase2.pki.ca_key_file", "ca.key"),
            ("phase2.pki.renew_on_hosts", "n"),
        ];
        let expected = PkiSettings {
            leaf_lifetime: Duration::from_hours(720),
            token_lifetime: Duration::from_mins(45),
            ca_lifetime: Duration::from_hours(8760),
            key_algorithm: KeyAlgorithm::EcdsaP384,
            ca_cert_file: "ca.crt".into(),
            ca_key_file: "ca.key".into(),
            renew_on_hosts: false,
        };
        let mut settings = assert_reads(PkiSettings::read, &PkiSettings::default(), &changes, &expected);
        settings.set("phase2.pki.key_algorithm", "rsa-3072").unwrap();
        assert_eq!(PkiSettings::read(&settings).unwrap().key_algorithm, KeyAlgorithm::Rsa3072);
        let refused = [
            ("phase2.pki.leaf_lifetime", "23h", "less than a day"),
            ("phase2.pki.leaf_lifetime", "8760h", "must be shorter than 8760h (phase2.pki.ca_lifetime)"),
            ("phase2.pki.token_lifetime", "14m", "is shorter than 15m (phase2.host_timeout)"),
            ("phase2.pki.token_lifetime", "25h", "more than a day"),
            ("phase2.pki.ca_key_file", "", "needs its key"),
        ];
        assert_refused(&settings, &refused);
    }
}
