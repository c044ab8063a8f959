//! What no kubelet may serve as, though the same authority signs: names and addresses of API servers and of Services.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::cluster::{Cluster, ClusterSettings};
use crate::config::Network;
use crate::error::Result;
use crate::provision::{Handoff, Role};

use super::super::control_plane::api_names;
use super::super::user_data;

/// Names, addresses and networks that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::bootstrap) struct Reserved {
    /// Lower case; one that begins with a dot stands for all names that end so.
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
    networks: Vec<Network>,
}

impl Reserved {
    /// What a host of this role refuses, where it approves at all: the control plane of a cluster to which hosts come by themselves.
    pub(in crate::bootstrap) fn list_for(
        role: Role,
        cluster: &Cluster,
        handoff: &Handoff,
    ) -> Result<Option<Vec<String>>> {
        let approves = role == Role::ControlPlane && user_data::has_comers(cluster)?;
        approves.then(|| Self::list(&cluster.settings, handoff)).transpose()
    }

    /// Those of this cluster.
    pub(in crate::bootstrap) fn of(settings: &ClusterSettings, handoff: &Handoff) -> Result<Self> {
        Ok(Self::parse(&Self::list(settings, handoff)?))
    }

    /// Those of this cluster, as [`Reserved::parse`] reads them.
    fn list(settings: &ClusterSettings, handoff: &Handoff) -> Result<Vec<String>> {
        let services =
            [".svc".to_owned(), format!(".svc.{}", settings.cluster_domain), settings.service_cidr.to_string()];
        let mut all = BTreeSet::from(services);
        for host in handoff.control_planes() {
            all.extend(api_names(settings, &handoff.api, host)?);
        }
        Ok(all.into_iter().collect())
    }

    /// Names, addresses and networks as text. A wildcard stands for what it covers, and for what is below that.
    pub(super) fn parse(list: &[String]) -> Self {
        let mut reserved = Self::default();
        for text in list {
            if let Ok(address) = text.parse::<IpAddr>() {
                reserved.addresses.insert(address.to_canonical());
            } else if let Ok(network) = text.parse() {
                reserved.networks.push(network);
            } else {
                reserved.names.insert(text.trim_start_matches('*').to_lowercase());
            }
        }
        reserved
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.iter().any(|known| if known.starts_with('.') { name.ends_with(known) } else { name == *known })
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        let is_within = |network: &Network| matches!(address, IpAddr::V4(address) if network.contains(address));
        self.addresses.contains(&address) || self.networks.iter().any(is_within)
    }
}
