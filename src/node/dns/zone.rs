//! The zone of the names, of a server or of a cloud: what is at a name, and a change of that which
//! takes effect only while it is still there.

use std::time::Duration;

use crate::error::Result;

use super::cloud_zone::CloudZone;
use super::config::{DnsConfig, ZoneAccess};
use super::record::{Changed, FoundName, NewName};
use super::update_server::DynamicServer;

/// How often a name of a cloud's zone is looked at that is as it should be: an account has five
/// requests a second for all its zones
/// (<https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html>).
const CLOUD_INTERVAL: Duration = Duration::from_mins(1);
/// The same of a name that could not be looked at or changed.
const CLOUD_RETRY_INTERVAL: Duration = Duration::from_secs(20);

/// The zone of a configuration.
pub(super) enum NameZone<'c> {
    Server(DynamicServer<'c>),
    Cloud(CloudZone<'c>),
}

impl<'c> NameZone<'c> {
    /// Asks nothing yet.
    pub(super) fn open(config: &'c DnsConfig) -> Result<Self> {
        Ok(match &config.access {
            ZoneAccess::Server(access) => Self::Server(DynamicServer::new(config, access)?),
            ZoneAccess::Cloud(zone) => Self::Cloud(CloudZone::new(zone, &config.owner)?),
        })
    }

    /// What is at this name now.
    pub(super) fn look(&self, name: &str) -> Result<FoundName> {
        match self {
            Self::Server(server) => server.look(name),
            Self::Cloud(zone) => zone.look(name),
        }
    }

    /// Puts this at the name, or nothing, while what was found is still there. Where nothing of the
    /// owner was found, only while nothing at all is there.
    pub(super) fn change(&self, name: &str, found: &FoundName, new: Option<&NewName>) -> Result<Changed> {
        match self {
            Self::Server(server) => server.change(name, found, new),
            Self::Cloud(zone) => zone.change(name, found, new),
        }
    }

    /// How long a name that was as it should be is not looked at again.
    pub(super) const fn interval(&self) -> Duration {
        match self {
            Self::Server(_) => Duration::ZERO,
            Self::Cloud(_) => CLOUD_INTERVAL,
        }
    }

    /// The same after an error.
    pub(super) const fn retry_interval(&self) -> Duration {
        match self {
            Self::Server(_) => Duration::ZERO,
            Self::Cloud(_) => CLOUD_RETRY_INTERVAL,
        }
    }
}
