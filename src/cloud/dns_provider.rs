//! Which DNS has the cluster's names, as `phase1.dns.provider` names it.

use std::fmt;

use serde::{Serialize, Serializer};

use super::find_by_dns;

/// The word for names that are in no zone.
const NO_ZONE: &str = "hosts";

/// Which DNS has the cluster's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DnsProvider {
    /// None that turnup writes.
    NoZone,
    /// The one that a cloud's module writes: [`Cloud::dns_provider`](super::Cloud::dns_provider).
    Zones(&'static str),
}

impl DnsProvider {
    /// The provider of this name; none where no cloud has it.
    pub(super) fn of(name: &str) -> Option<Self> {
        if name == NO_ZONE {
            return Some(Self::NoZone);
        }
        find_by_dns(name).map(|cloud| Self::Zones(cloud.dns_provider()))
    }
}

impl fmt::Display for DnsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoZone => NO_ZONE,
            Self::Zones(name) => name,
        })
    }
}

impl Serialize for DnsProvider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::CLOUDS;
    use super::*;

    #[test]
    fn a_provider_has_the_name_that_it_is_found_by() {
        for name in [NO_ZONE].into_iter().chain(CLOUDS.iter().map(|cloud| cloud.dns_provider())) {
            assert_eq!(DnsProvider::of(name).unwrap().to_string(), name);
        }
        assert_eq!(DnsProvider::of("bind"), None);
    }
}
