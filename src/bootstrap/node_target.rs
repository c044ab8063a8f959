//! Whose node config is computed: one host's, or that of all hosts of a group.

use std::collections::BTreeMap;

use crate::cluster::user_data::GroupRecord;
use crate::inventory::{Host, Role, Taint};
use crate::node::boot_config::Placeholder;

/// Hosts that are made alike and become nodes by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name: an RFC 1123 label.
    pub name: String,
    /// What its hosts are for.
    pub role: Role,
    /// How the names of its Nodes begin: `pool-`. Empty for the control plane, whose hosts are
    /// named one by one.
    pub name_prefix: String,
    /// Labels of its Nodes, beside those that only the control plane may set.
    pub labels: BTreeMap<String, String>,
    /// Taints of its Nodes.
    pub taints: Vec<Taint>,
    /// Another limit of pods than the cluster's.
    pub max_pods: Option<u32>,
    /// What kubelet keeps for itself and the container runtime, as Kubernetes' quantities by
    /// resource.
    pub kube_reserved: BTreeMap<String, String>,
}

/// Whose configuration it is: one host's, or that of any host of a group, with placeholders for
/// what only the host knows.
#[derive(Clone, Copy)]
pub(super) struct NodeTarget<'a> {
    pub(super) name: &'a str,
    /// An address, or the placeholder of one.
    pub(super) address: &'a str,
    pub(super) role: Role,
    /// A folder on the host in which artifacts lie already; empty when there is none.
    pub(super) blobs: &'a str,
    /// The group, of a host that comes by itself.
    pub(super) group: Option<&'a Group>,
    /// The group of the configuration that a host which is logged in to belongs to.
    pub(super) record: Option<&'a GroupRecord>,
    /// Taints of this one host.
    pub(super) taints: &'a [Taint],
    /// The one host, of which more is known.
    pub(super) host: Option<&'a Host>,
}

impl<'a> NodeTarget<'a> {
    /// One host; `address` is its own as text, `record` describes its group.
    pub(super) fn of_host(host: &'a Host, address: &'a str, record: Option<&'a GroupRecord>) -> Self {
        Self {
            name: &host.name,
            address,
            role: host.role,
            blobs: &host.blobs,
            group: None,
            record,
            taints: &host.taints,
            host: Some(host),
        }
    }

    /// Any host of a group.
    pub(super) const fn of_group(group: &'a Group) -> Self {
        let (name, address) = (Placeholder::Name.text(), Placeholder::Address.text());
        Self { name, address, role: group.role, blobs: "", group: Some(group), record: None, taints: &[], host: None }
    }

    /// The name of its group; none of a host that belongs to none.
    pub(super) fn group_name(&self) -> Option<&'a str> {
        let record = self.record.map(|record| record.name.as_str());
        self.group.map(|group| group.name.as_str()).or(record)
    }

    /// The taints of its group and its own.
    pub(super) fn all_taints(&self) -> impl Iterator<Item = &'a Taint> {
        let of_record = self.record.map_or(&[][..], |record| &record.taints);
        let of_group = self.group.map_or(of_record, |group| &group.taints);
        of_group.iter().chain(self.taints)
    }

    /// The limit of pods of its group.
    pub(super) fn max_pods(&self) -> Option<u32> {
        self.group.map_or_else(|| self.record?.max_pods, |group| group.max_pods)
    }

    /// What the kubelets of its group keep for themselves.
    pub(super) fn kube_reserved(&self) -> Option<&'a BTreeMap<String, String>> {
        let record = self.record.map(|record| &record.kube_reserved);
        self.group.map(|group| &group.kube_reserved).or(record).filter(|reserved| !reserved.is_empty())
    }
}
