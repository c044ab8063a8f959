//! What every cloud refuses of a [`Spec`], before Terraform starts: how clients and nodes find the
//! API server, and networks that are not the hosts'. What only one of them refuses is in its
//! directory.

use super::dns_provider::DnsProvider;
use super::refused;
use super::spec::{Exposure, IPV6, Spec};
use crate::error::Result;

impl Spec {
    /// Hosts without IPv6 get no IPv6 rules.
    fn check_families(&self) -> Result<()> {
        let lists = [
            ("phase1.ssh.allowed_cidrs", &self.ssh.allowed_cidrs),
            ("phase1.api.allowed_cidrs", &self.api.allowed_cidrs),
        ];
        for (key, list) in lists {
            if let Some(range) = list.iter().find(|range| range.contains(':') && !self.ipv6) {
                return Err(refused(key, format!("{range} is an IPv6 network, and the hosts have IPv4 alone"))
                    .hint(format!("turnup config set {IPV6}=y, or leave {range} out")));
            }
        }
        Ok(())
    }

    /// A zone of another cloud would be left as it is, and the name would lead nowhere.
    fn check_names(&self) -> Result<()> {
        const KEY: &str = "phase1.dns.provider";
        if self.dns.provider == DnsProvider::NoZone || self.writes_zones() {
            return Ok(());
        }
        let (own, none) = (self.cloud().dns_provider(), DnsProvider::NoZone);
        let why = format!("{} is another cloud's, and this one makes records in {own} alone", self.dns.provider);
        Err(refused(KEY, why).hint(format!(
            "turnup config set {KEY}={own}, or {KEY}={none} and a record of your own for {}",
            self.api.host
        )))
    }

    /// What every cloud refuses.
    pub(super) fn check(&self) -> Result<()> {
        self.check_families()?;
        self.check_names()?;
        self.own.settings.check(self)?;
        self.check_api()
    }

    /// Whether the module writes the cluster's names into zones of its cloud's DNS.
    pub(super) fn writes_zones(&self) -> bool {
        self.dns.provider == DnsProvider::Zones(self.cloud().dns_provider())
    }

    /// Whether the module makes a zone of the cluster's own name.
    fn makes_zone(&self) -> bool {
        let is_own = self.writes_zones() && self.dns.zone.is_empty() && self.dns.private;
        is_own && self.cloud().zone_has_cluster_name()
    }

    /// Clients have to find the API server, also when one of several control-plane hosts is gone.
    /// Nodes find several by a balancer of their own.
    fn check_api(&self) -> Result<()> {
        const EXPOSURE: &str = "phase1.api.exposure";
        let (several, zones) = (self.control_plane.len() > 1, self.cloud().dns_provider());
        // Clients from outside are to find the name in a zone that the module writes.
        let is_outer = self.api.external && self.writes_zones();
        match self.api.exposure {
            Exposure::StaticAddress if several => {
                Err(refused(EXPOSURE, "one address cannot lead to several control-plane hosts")
                    .hint(format!("turnup config set {EXPOSURE}=load-balancer")))
            }
            Exposure::Dns if !self.api.host_is_given && !self.writes_zones() => {
                let why = format!(
                    "no zone would have the name {}, because phase1.dns.provider is {}",
                    self.api.host, self.dns.provider
                );
                Err(refused(EXPOSURE, why).hint(format!(
                    "turnup config set phase1.dns.provider={zones} phase1.dns.domain=… phase1.dns.zone=…; or phase1.api.host=NAME, whose records you keep; or {EXPOSURE}=load-balancer"
                )))
            }
            Exposure::Dns if is_outer && self.dns.private => {
                let why = format!(
                    "only networks of the zone's own find {}, and phase1.api.external wants clients from outside",
                    self.api.host
                );
                Err(refused("phase1.dns.private_zone", why).hint(format!(
                    "turnup config set phase1.api.external=n, and run turnup where the name is found; or phase1.dns.private_zone=n; or {EXPOSURE}=load-balancer"
                )))
            }
            _ if self.makes_zone() && !self.api.host.ends_with(&format!(".{}.{}", self.name, self.dns.domain)) => {
                let why = format!(
                    "{} is no name of the zone that is made for the cluster, {}.{}",
                    self.api.host, self.name, self.dns.domain
                );
                Err(refused("phase1.api.host", why)
                    .hint("turnup config unset phase1.api.host, or name a zone: turnup config set phase1.dns.zone=…"))
            }
            _ if !self.api.external && !self.api.static_address.is_empty() => {
                Err(refused("phase1.api.static_address", "it is a public address, and the API server has none")
                    .hint("turnup config unset phase1.api.static_address, or turnup config set phase1.api.external=y"))
            }
            _ => Ok(()),
        }
    }
}
