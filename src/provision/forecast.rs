//! The provision phase as it would go, without going: its files and its inventory in an imagined directory.
//!
//! What only the real run makes, keys and instances, is a text that says so.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifacts::Digest;
use crate::cloud::Target;
use crate::cluster::{Cluster, SSH_KEY};
use crate::error::Result;
use crate::state::Store;
use crate::unknown;

use super::render::{self, DIR, PlannedHost, VARIABLES, host_key, planned_hosts, public_key, spec_file};
use super::step_ids::APPLY;
use super::{baremetal, local};
use crate::inventory::{self, Endpoint, Host, Inventory, SshAccess};

/// Fills the imagined directory of the cluster; what the real one already has of keys is taken over.
pub fn forecast(cluster: &Cluster, real: &Store) -> Result<()> {
    match cluster.settings.target {
        Target::BareMetal => cluster.write_inventory(&baremetal::read(cluster)?),
        Target::Cloud(_) | Target::Custom => forecast_elsewhere(cluster, real),
        Target::Local => forecast_here(cluster, real),
    }
}

fn forecast_here(cluster: &Cluster, real: &Store) -> Result<()> {
    let store = &cluster.store;
    let planned_hosts = planned_hosts(cluster)?;
    for host in &planned_hosts {
        let file = format!("{}.pub", host_key(&host.name));
        let unknown = || format!("(made by provision: {file})").into_bytes();
        store.write_file(&file, &real.read(&file)?.unwrap_or_else(unknown), 0o600)?;
    }
    for (path, text) in render::files(cluster)?.into_iter().chain(render::locks(cluster)?) {
        store.write_file(path, text.as_bytes(), 0o600)?;
    }
    // What Terraform's state says afterwards follows from what Terraform was given.
    let variables = store.read(VARIABLES)?.unwrap_or_default();
    store.write_file(format!("{DIR}/terraform.tfstate"), &variables, 0o600)?;
    write_inventory(cluster, |host| {
        // A host is recreated when its description changes.
        let spec = store.read(spec_file(&host.name))?.unwrap_or_default();
        Ok(Digest::of(&spec).to_string())
    })
}

/// The public half of the cluster's key in an imagined directory, where hosts are made that let it in.
pub fn forecast_key(cluster: &Cluster, real: &Store) -> Result<()> {
    let key = format!("{SSH_KEY}.pub");
    let unknown = || format!("(made by provision: {key})").into_bytes();
    cluster.store.write_file(&key, &real.read(&key)?.unwrap_or_else(unknown), 0o600)
}

/// The files of a cloud's module, or of one's own. Its hosts are those that it has made, and before
/// it has made any they are unknown.
fn forecast_elsewhere(cluster: &Cluster, real: &Store) -> Result<()> {
    forecast_key(cluster, real)?;
    for (path, text) in render::files(cluster)?.into_iter().chain(render::locks(cluster)?) {
        cluster.store.write_file(path, text.as_bytes(), 0o600)?;
    }
    match real.read(inventory::FILE)? {
        Some(known) => cluster.store.write_file(inventory::FILE, &known, 0o600),
        None => Ok(()),
    }
}

/// The inventory after Terraform has changed the resources at these addresses: who is untouched stays the host that it is.
pub(super) fn simulate_inventory(cluster: &Cluster, changed: &BTreeSet<String>) -> Result<()> {
    let known = cluster.find_inventory()?;
    write_inventory(cluster, |host| {
        let untouched = known.iter().flat_map(|known| &known.hosts).find(|known| known.name == host.name);
        let untouched = untouched.filter(|_| !changed.contains(&address_of(&host.name)));
        Ok(untouched.map_or_else(|| unknown::after(&APPLY), |host| host.instance.clone()))
    })
}

/// The address of a host's resource in the module of the local target.
pub(super) fn address_of(host: &str) -> String {
    format!("terraform_data.host[\"{host}\"]")
}

fn write_inventory(cluster: &Cluster, instance: impl Fn(&PlannedHost) -> Result<String>) -> Result<()> {
    let hosts = planned_hosts(cluster)?;
    let hosts = hosts.iter().map(|host| planned(cluster, host, instance(host)?)).collect::<Result<Vec<Host>>>()?;
    let api = Endpoint { host: hosts[0].address.to_string(), port: cluster.settings.api_port, internal_host: None };
    let (schema, target) = (inventory::SCHEMA.into(), cluster.settings.target.name().into());
    let name = cluster.settings.name.clone();
    cluster.write_inventory(&Inventory {
        schema,
        cluster: name,
        target,
        api,
        hosts,
        groups: Vec::new(),
        volumes: Vec::new(),
    })
}

fn planned(cluster: &Cluster, host: &PlannedHost, instance: String) -> Result<Host> {
    let host_key = public_key(cluster, &host_key(&host.name))?;
    Ok(Host {
        name: host.name.clone(),
        role: host.role,
        address: host.address.into(),
        instance,
        ssh: SshAccess { user: "root".into(), port: 22, host_key, jump: None },
        blobs: local::BLOBS.into(),
        external_address: None,
        zone: String::new(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        etcd_device: String::new(),
        etcd_volume: None,
    })
}
