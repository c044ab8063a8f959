//! The inventory that the phase hands over: whether it is there, and that of local hosts before
//! Terraform does it.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifacts::Digest;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::phase::Check;
use crate::unknown;

use super::local;
use super::local_cloud;
use super::planned_hosts::{PlannedHost, api_address, find_balancer, planned_hosts, replaces_hosts};
use super::render::{host_key, network, public_key, spec_file};
use super::step_ids::APPLY;
use crate::inventory::volume::Volume;
use crate::inventory::{self, Endpoint, Host, Inventory, Role, SshAccess};

/// The inventory exists and can be read; otherwise it is recreated from its source.
pub(super) fn prove_inventory(cluster: &Cluster) -> Check {
    match cluster.find_inventory() {
        Ok(Some(_)) => Check::Ok,
        Ok(None) => Check::Drifted(format!("{} is missing", inventory::FILE)),
        Err(_) => Check::Drifted(format!("{} is damaged", inventory::FILE)),
    }
}

/// Writes it. `changed` has the addresses of the resources that Terraform changes, all where it is
/// none: an untouched host stays the host that it is.
pub(super) fn write(cluster: &Cluster, changed: Option<&BTreeSet<String>>) -> Result<()> {
    let known = if changed.is_some() { cluster.find_inventory()? } else { None };
    let instance = |host: &PlannedHost| -> Result<String> {
        let untouched = known.iter().flat_map(|known| &known.hosts).find(|known| known.name == host.name);
        let is_untouched = |_: &&Host| changed.is_some_and(|changed| !changed.contains(&address_of(&host.name)));
        if let Some(host) = untouched.filter(is_untouched) {
            return Ok(host.instance.clone());
        }
        // A host is recreated when its description changes.
        let spec = cluster.store.read(spec_file(&host.name))?.unwrap_or_default();
        Ok(unknown::after_with(&APPLY, Digest::of(&spec)))
    };
    let all = planned_hosts(cluster)?;
    let mut hosts = Vec::new();
    let joins = |role: Role| role == Role::Worker && replaces_hosts(cluster);
    for (host, role) in all.iter().filter_map(|host| Some((host, host.role.filter(|role| !joins(*role))?))) {
        hosts.push(planned(cluster, host, role, instance(host)?)?);
    }
    let api = Endpoint {
        node_balancer: find_balancer(&all).is_some(),
        ..Endpoint::new(api_address(&all)?.to_string(), cluster.settings.api_port)
    };
    let (name, target) = (&cluster.settings.name, &cluster.settings.target);
    let groups = if replaces_hosts(cluster) { local_cloud::groups(cluster) } else { Vec::new() };
    cluster.write_inventory(&Inventory { groups, ..Inventory::of_hosts(name, target, api, hosts) })
}

/// The address of a host's resource in the module of the local target.
pub(super) fn address_of(host: &str) -> String {
    format!("terraform_data.host[\"{host}\"]")
}

fn find_volume(cluster: &Cluster, host: &PlannedHost) -> Result<Option<Volume>> {
    let Some(volume) = local_cloud::find_volume(cluster, host) else { return Ok(None) };
    Ok(Some(local_cloud::volume_of(&network(cluster)?, &volume)))
}

fn planned(cluster: &Cluster, host: &PlannedHost, role: Role, instance: String) -> Result<Host> {
    let host_key = public_key(cluster, &host_key(&host.name))?;
    Ok(Host {
        name: host.name.clone(),
        role,
        group: host.group.clone(),
        address: host.address.into(),
        instance,
        ssh: SshAccess { user: "root".into(), port: 22, host_key, jump: None },
        blobs: local::BLOBS.into(),
        external_address: None,
        zone: String::new(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        etcd_device: String::new(),
        etcd_volume: find_volume(cluster, host)?,
    })
}
