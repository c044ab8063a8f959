//! What stands in a picture.

use std::net::IpAddr;

use serde::Serialize;

use crate::inventory::Role;

/// Something that is no node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fixture {
    pub(super) what: &'static str,
    pub(super) count: u32,
    pub(super) detail: String,
}

/// A failure domain and its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Zone {
    /// Empty where the target has none.
    pub(super) name: String,
    pub(super) hosts: Vec<HostSet>,
}

/// Hosts of one zone that are made alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HostSet {
    /// The host's name, or that of the node group.
    pub(super) name: String,
    pub(super) role: Role,
    /// How many stand in this zone: at least and at most, because a cloud may spread a group in
    /// either way.
    pub(super) least: u32,
    pub(super) most: u32,
    /// The largest size of the whole group, where an autoscaler decides.
    pub(super) grows_to: Option<u32>,
    pub(super) machine_type: Option<String>,
    pub(super) disk: Option<PicturedDisk>,
    /// Disks of etcd's members, each with what it is for.
    pub(super) etcd: Vec<PicturedDisk>,
    pub(super) spot: bool,
    /// Whether the hosts have public addresses; none where turnup does not decide.
    pub(super) public_address: Option<bool>,
    /// Of one host that is listed.
    pub(super) address: Option<IpAddr>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PicturedDisk {
    pub(super) what: String,
    pub(super) size_gb: u32,
    #[serde(rename = "type")]
    pub(super) kind: String,
}
