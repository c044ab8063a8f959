//! The settings `phase2.dns.*` as typed values: the names that hosts keep in a DNS zone.

use crate::cloud::{self, Cloud};
use crate::config::Settings;
use crate::error::{Error, Result};

/// Who has the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsAccess {
    /// A server that takes dynamic updates.
    Server {
        /// An address or a name.
        server: String,
        /// Its port.
        port: u16,
        /// The file with its key, beside the configuration.
        key_file: String,
    },
    /// A cloud.
    Cloud {
        /// Its name.
        cloud: &'static str,
        /// Its own name of the zone.
        zone_id: String,
    },
}

/// A zone that hosts change, and the domain of the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct DnsSettings {
    /// Who has it.
    pub access: DnsAccess,
    pub zone: String,
    /// As configured, else the cluster's name in the zone.
    pub domain: String,
    pub ttl: u32,
    pub annotations: bool,
}

const PROVIDER: &str = "phase2.dns.provider";

fn read_zone_id(cloud: &dyn Cloud, settings: &Settings) -> Result<String> {
    const KEY: &str = "phase2.dns.zone_id";
    let (id, forms) = (settings.get(KEY)?, cloud.zone_id_forms());
    if !forms.iter().any(|form| cloud::has_form(form, &id)) {
        let message = format!("{KEY}: {id:?} is not of the form {}", forms.join(" or "));
        return Err(Error::config(message).hint(format!("turnup config set {KEY}=<identifier of the zone>")));
    }
    Ok(id)
}

impl DnsAccess {
    fn read(settings: &Settings) -> Result<Option<Self>> {
        let provider = settings.get(PROVIDER)?;
        if let Some(cloud) = cloud::find_by_dns(&provider) {
            let name = cloud.name();
            if settings.get("phase1.cloud_provider")? != name {
                let message = format!("{PROVIDER}: only machines of {name} have rights in zones of {provider}");
                return Err(Error::config(message).hint(format!("turnup config set {PROVIDER}=rfc2136")));
            }
            return Ok(Some(Self::Cloud { cloud: name, zone_id: read_zone_id(cloud, settings)? }));
        }
        let server = settings.get(DnsSettings::SERVER)?;
        if server.is_empty() {
            return Ok(None);
        }
        let port = settings.get_number("phase2.dns.port")?;
        Ok(Some(Self::Server { server, port, key_file: settings.get(DnsSettings::KEY_FILE)? }))
    }

    /// In messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Server { server, .. } => format!("on the DNS server {server}"),
            Self::Cloud { zone_id, .. } => format!("in the zone {zone_id}"),
        }
    }
}

impl DnsSettings {
    /// The setting that switches it on.
    pub const SERVER: &'static str = "phase2.dns.server";
    /// The file with the key.
    pub const KEY_FILE: &'static str = "phase2.dns.key_file";

    /// What the settings say; nothing where hosts write no names.
    pub(super) fn read(settings: &Settings) -> Result<Option<Self>> {
        let Some(access) = DnsAccess::read(settings)? else { return Ok(None) };
        let zone = settings.get("phase2.dns.zone")?;
        let own = format!("{}.{zone}", settings.get("phase1.cluster_name")?);
        let domain = Some(settings.get("phase2.dns.domain")?).filter(|domain| !domain.is_empty()).unwrap_or(own);
        Ok(Some(Self {
            access,
            domain,
            zone,
            ttl: settings.get_number("phase2.dns.ttl")?,
            annotations: settings.get_bool("phase2.dns.annotations")?,
        }))
    }

    /// The name for clients outside, and the one at the inner addresses.
    #[must_use]
    pub fn api_names(&self) -> [String; 2] {
        [&self.domain, &self.internal()].map(|domain| format!("api.{domain}"))
    }

    /// The domain of names that lead to inner addresses.
    #[must_use]
    pub fn internal(&self) -> String {
        format!("internal.{}", self.domain)
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
            access: DnsAccess::Server { server: "ns1.example.com".into(), port: 5353, key_file: "dns.key".into() },
            zone: "example.com".into(),
            domain: "k8s.example.com".into(),
            ttl: 7,
            annotations: true,
        };
        assert_eq!(expected.api_names(), ["api.k8s.example.com", "api.internal.k8s.example.com"]);
        assert_reads(DnsSettings::read, &None, &CHANGES, &Some(expected));
    }

    #[test]
    fn a_zone_of_a_cloud_has_the_id_of_the_cloud() {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let changes = [
            ("phase1.cloud_provider", "aws"),
            ("phase2.dns.provider", "route53"),
            ("phase2.dns.zone", "example.com"),
            ("phase2.dns.zone_id", "Z0123456789"),
        ];
        settings.set_all(&changes).unwrap();
        let access = DnsSettings::read(&settings).unwrap().unwrap().access;
        assert_eq!(access, DnsAccess::Cloud { cloud: "aws", zone_id: "Z0123456789".into() });
    }

    #[test]
    fn a_zone_that_no_machine_of_the_cluster_may_change_is_refused() {
        let wrong = |changes: &[(&str, &str)]| {
            let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
            settings.set_all(&[changes, &[("phase2.dns.zone", "example.com")]].concat()).unwrap();
            DnsSettings::read(&settings).unwrap_err().message().to_owned()
        };
        let route53 = ("phase2.dns.provider", "route53");
        assert_eq!(
            wrong(&[route53, ("phase2.dns.zone_id", "Z0123456789")]),
            "phase2.dns.provider: only machines of aws have rights in zones of route53"
        );
        for (target, provider, id, form) in [
            ("aws", "route53", "example.com", "Z*"),
            ("gce", "clouddns", "k8s", "projects/*/managedZones/*"),
            ("azure", "azuredns", "/subscriptions/s", "dnsZones/* or /subscriptions/"),
        ] {
            let said = wrong(&[
                ("phase1.cloud_provider", target),
                ("phase2.dns.provider", provider),
                ("phase2.dns.zone_id", id),
            ]);
            assert!(said.starts_with("phase2.dns.zone_id: ") && said.contains(form), "{said}");
        }
    }

    #[test]
    fn the_domain_is_the_clusters_own_unless_it_is_given() {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set_all(&CHANGES).unwrap();
        settings.set_all(&[("phase2.dns.domain", "")]).unwrap();
        assert_eq!(DnsSettings::read(&settings).unwrap().unwrap().domain, "prod.example.com");
    }
}
