//! The hosts that the user lists in the configuration or in an inventory file.

use std::sync::{Arc, OnceLock};

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::input;
use crate::inventory::Inventory;
use crate::provision::known_hosts;

use super::list::List;

/// The inventory made from the user's list or file.
fn read(cluster: &Cluster) -> Result<Inventory> {
    let settings = &cluster.settings;
    if settings.hosts.is_empty() {
        return read_file(cluster);
    }
    let file = settings.access.known_hosts.as_deref();
    let find_key = |address: &str, port: u16| file.map_or(Ok(None), |file| known_hosts::find(file, address, port));
    let (hosts, access) = (settings.hosts.as_slice(), &settings.access);
    let (cluster, api_host, api_port) = (&settings.name, &settings.api_host, settings.api_port);
    List { cluster, api_port, api_host, hosts, access, find_key: &find_key }.inventory()
}

fn read_file(cluster: &Cluster) -> Result<Inventory> {
    let settings = &cluster.settings;
    let path = cluster.work_dir.join(&settings.hosts_file);
    let text = input::read_text(&path, input::DOCUMENT).map_err(|error| {
        let hint =
            "list the hosts in phase1.baremetal.hosts, or write them into this file; docs/baremetal.md shows both";
        Error::config(format!("phase1.baremetal.hosts_file: {error}")).hint(hint)
    })?;
    Inventory::parse(&path.display().to_string(), &text)
}

/// What both steps work on, read once.
pub(super) struct BareMetalHosts {
    pub(super) cluster: Arc<Cluster>,
    read: OnceLock<Inventory>,
}

impl BareMetalHosts {
    pub(super) fn new(cluster: &Arc<Cluster>) -> Self {
        Self { cluster: Arc::clone(cluster), read: OnceLock::new() }
    }

    /// The inventory, read when it is asked for first.
    pub(super) fn inventory(&self) -> Result<&Inventory> {
        if let Some(inventory) = self.read.get() {
            return Ok(inventory);
        }
        let settings = &self.cluster.settings;
        let inventory = read(&self.cluster)?;
        inventory.require_cluster(&settings.hosts_file, &settings.name, settings.api_port)?;
        Ok(self.read.get_or_init(|| inventory))
    }
}
