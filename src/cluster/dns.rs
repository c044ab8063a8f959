//! The settings `phase2.dns.*` as typed values: the names that hosts keep in a DNS zone.

use crate::config::Settings;
use crate::error::Result;

/// A zone that takes dynamic updates, and the domain of the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct DnsSettings {
    pub server: String,
    pub port: u16,
    pub zone: String,
    /// As configured, else the cluster's name in the zone.
    pub domain: String,
    pub key_file: String,
    pub ttl: u32,
    pub annotations: bool,
}

impl DnsSettings {
    /// The setting that switches it on.
    pub const SERVER: &'static str = "phase2.dns.server";
    /// The file with the key.
    pub const KEY_FILE: &'static str = "phase2.dns.key_file";

    /// What the settings say; nothing where hosts write no names.
    pub(super) fn read(settings: &Settings) -> Result<Option<Self>> {
        let server = settings.get(Self::SERVER)?;
        if server.is_empty() {
            return Ok(None);
        }
        let zone = settings.get("phase2.dns.zone")?;
        let own = format!("{}.{zone}", settings.get("phase1.cluster_name")?);
        let domain = Some(settings.get("phase2.dns.domain")?).filter(|domain| !domain.is_empty()).unwrap_or(own);
        Ok(Some(Self {
            server,
            port: settings.get_number("phase2.dns.port")?,
            domain,
            zone,
            key_file: settings.get(Self::KEY_FILE)?,
            ttl: settings.get_number("phase2.dns.ttl")?,
            annotations: settings.get_bool("phase2.dns.annotations")?,
        }))
    }

    /// The name for clients outside, and the one at the inner addresses.
    #[must_use]
    pub fn api_names(&self) -> [String; 2] {
        ["api", "api.internal"].map(|name| format!("{name}.{}", self.domain))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::cluster::tests::assert_reads;
    use crate::config::TreeSource;

    const CHANGES: [(&str, &str); 8] = [
        ("phase1.cluster_name", "prod"),
        ("phase2.dns.server", "ns1.example.com"),
        ("phase2.dns.port", "5353"),
        ("phase2.dns.zone", "example.com"),
        ("phase2.dns.domain", "k8s.example.com"),
        ("phase2.dns.key_file", "dns.key"),
        ("phase2.dns.ttl", "7"),
        ("phase2.dns.annotations", "y"),
    ];

    #[test]
    fn each_setting_reaches_its_field() {
        let expected = DnsSettings {
            server: "ns1.example.com".into(),
            port: 5353,
            zone: "example.com".into(),
            domain: "k8s.example.com".into(),
            key_file: "dns.key".into(),
            ttl: 7,
            annotations: true,
        };
        assert_eq!(expected.api_names(), ["api.k8s.example.com", "api.internal.k8s.example.com"]);
        assert_reads(DnsSettings::read, &None, &CHANGES, &Some(expected));
    }

    #[test]
    fn the_domain_is_the_clusters_own_unless_it_is_given() {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set_all(&CHANGES).unwrap();
        settings.set_all(&[("phase2.dns.domain", "")]).unwrap();
        assert_eq!(DnsSettings::read(&settings).unwrap().unwrap().domain, "prod.example.com");
    }
}
