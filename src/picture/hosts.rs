//! The hosts of a picture, by their zones. Names and numbers are those that the phase provision
//! gives them; where a cloud spreads a group over zones, each zone has its share.

use std::collections::BTreeMap;

use super::model::{HostSet, PicturedDisk, Zone};
use crate::cloud::{CloudGroup, Site, Spec, Target, WORKERS};
use crate::config::Settings;
use crate::error::Result;
use crate::inventory::{Inventory, ListedHost, Role};

/// A node group as targets without a module of turnup's have it.
#[derive(serde::Deserialize)]
struct ListedGroup {
    name: String,
    size: u32,
    max: Option<u32>,
    machine_type: Option<String>,
    #[serde(default)]
    zones: Vec<String>,
    #[serde(default)]
    spot: bool,
}

/// All hosts, by zones in the order in which these are first named.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) zones: Vec<Zone>,
    pub(super) control_planes: u32,
    pub(super) workers: u32,
}

impl Layout {
    /// One host.
    fn add(&mut self, zone: &str, host: HostSet) {
        match host.role {
            Role::ControlPlane => self.control_planes += 1,
            Role::Worker => self.workers += 1,
        }
        self.put(zone, host);
    }

    fn put(&mut self, zone: &str, hosts: HostSet) {
        if hosts.most == 0 {
            return;
        }
        match self.zones.iter_mut().find(|known| known.name == zone) {
            Some(known) => known.hosts.push(hosts),
            None => self.zones.push(Zone { name: zone.to_owned(), hosts: vec![hosts] }),
        }
    }

    /// A group's share in each of its zones.
    fn spread(&mut self, zones: &[String], size: u32, hosts: &HostSet) {
        let mut named = Vec::new();
        for zone in zones.iter().map(String::as_str) {
            if !named.contains(&zone) {
                named.push(zone);
            }
        }
        let zones = if named.is_empty() { vec![""] } else { named };
        let parts = u32::try_from(zones.len()).unwrap_or(u32::MAX);
        self.workers += size;
        for zone in zones {
            self.put(zone, HostSet { least: size / parts, most: size.div_ceil(parts), ..hosts.clone() });
        }
    }
}

impl HostSet {
    fn new(name: &str, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            role,
            least: 1,
            most: 1,
            grows_to: None,
            machine_type: None,
            disk: None,
            etcd: Vec::new(),
            spot: false,
            public_address: None,
            address: None,
        }
    }
}

/// What the module of a cloud makes.
pub(super) fn of_cloud(spec: &Spec, site: &Site) -> Layout {
    let mut layout = Layout::default();
    for (name, host) in &spec.control_plane {
        let volume = PicturedDisk {
            what: format!("etcd main {}", host.member),
            size_gb: spec.etcd.volume.size_gb,
            kind: spec.etcd.volume.kind.clone(),
        };
        let hosts = HostSet {
            machine_type: Some(host.machine_type.clone()),
            disk: Some(root_disk(host.disk_gb, &host.disk_type)),
            etcd: vec![volume],
            public_address: Some(site.public_control_plane),
            ..HostSet::new(name, Role::ControlPlane)
        };
        layout.add(&host.zone, hosts);
    }
    for (name, group) in &spec.groups {
        layout.spread(&group.zones, group.size, &workers(name, group));
    }
    layout
}

fn workers(name: &str, group: &CloudGroup) -> HostSet {
    HostSet {
        grows_to: group.max,
        machine_type: Some(group.machine_type.clone()),
        disk: Some(root_disk(group.disk_gb, &group.disk_type)),
        spot: group.spot,
        public_address: Some(group.public_address),
        ..HostSet::new(name, group.role)
    }
}

fn root_disk(size_gb: u32, kind: &str) -> PicturedDisk {
    PicturedDisk { what: "root".to_owned(), size_gb, kind: kind.to_owned() }
}

/// The hosts of targets without a module of turnup's.
pub(super) fn of_settings(settings: &Settings, target: Target, inventory: Option<&Inventory>) -> Result<Layout> {
    if target.uses_terraform() {
        return planned(settings);
    }
    let listed: Vec<ListedHost> = settings.get_records("phase1.baremetal.hosts")?;
    let mut layout = Layout::default();
    for host in &listed {
        let hosts = HostSet { address: Some(host.address.into()), ..HostSet::new(&host.name, host.role) };
        layout.add(&host.zone, hosts);
    }
    if listed.is_empty() {
        for host in inventory.into_iter().flat_map(|inventory| &inventory.hosts) {
            let hosts = HostSet { address: Some(host.address), ..HostSet::new(&host.name, host.role) };
            layout.add(&host.zone, hosts);
        }
    }
    Ok(layout)
}

/// As many as the numbers and the groups say.
fn planned(settings: &Settings) -> Result<Layout> {
    let cluster = settings.get("phase1.cluster_name")?;
    let count: u32 = settings.get_number::<u32>("phase1.control_plane.count")?.max(1);
    let places = settings.get_list("phase1.control_plane.zones")?;
    let mut layout = Layout::default();
    let mut of_control_plane = places.iter().cycle();
    for index in 0..count {
        let name = format!("{cluster}-{}-{index}", Role::ControlPlane.name());
        let zone = of_control_plane.next().map_or("", String::as_str);
        layout.add(zone, HostSet::new(&name, Role::ControlPlane));
    }
    let mut groups: Vec<ListedGroup> = settings.get_records("phase1.node_groups")?;
    if groups.is_empty() {
        let size = settings.get_number("phase1.num_nodes")?;
        groups.push(ListedGroup {
            name: WORKERS.to_owned(),
            size,
            max: None,
            machine_type: None,
            zones: Vec::new(),
            spot: false,
        });
    }
    for group in groups {
        let hosts = HostSet {
            grows_to: group.max,
            machine_type: group.machine_type,
            spot: group.spot,
            ..HostSet::new(&group.name, Role::Worker)
        };
        layout.spread(&group.zones, group.size, &hosts);
    }
    Ok(layout)
}

/// How many machines of each kind there are, for the estimate: type, spot, count.
pub(super) fn machines(spec: &Spec) -> BTreeMap<(&str, bool), u32> {
    let mut count = BTreeMap::new();
    for host in spec.control_plane.values() {
        *count.entry((host.machine_type.as_str(), false)).or_default() += 1;
    }
    for group in spec.groups.values() {
        *count.entry((group.machine_type.as_str(), group.spot)).or_default() += group.size;
    }
    if spec.ssh.bastion {
        *count.entry((spec.ssh.bastion_machine_type.as_str(), false)).or_default() += 1;
    }
    count
}

/// The same of disks: type, gigabytes, count.
pub(super) fn disks(spec: &Spec) -> BTreeMap<(&str, u32), u32> {
    let mut count = BTreeMap::new();
    for host in spec.control_plane.values() {
        *count.entry((host.disk_type.as_str(), host.disk_gb)).or_default() += 1;
    }
    for group in spec.groups.values() {
        *count.entry((group.disk_type.as_str(), group.disk_gb)).or_default() += group.size;
    }
    let volume = &spec.etcd.volume;
    *count.entry((volume.kind.as_str(), volume.size_gb)).or_default() +=
        u32::try_from(spec.etcd.members.len()).unwrap_or(u32::MAX);
    count
}
