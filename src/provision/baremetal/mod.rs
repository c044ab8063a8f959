//! Bare metal: the hosts exist. The user lists them in the configuration, or in an inventory file;
//! they are checked, and handed over.
//!
//! Nothing here makes or changes a host; what is asked of one only reads.

mod list;
mod preflight;

use std::sync::{Arc, OnceLock};

use crate::change::{Change, Preview, Verb};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::input;
use crate::phase::{Action, Check, Cx, Inputs, Manifest, Phase};

use super::external_inventory;
use super::known_hosts;
use super::planned_inventory::prove_inventory;
use crate::inventory::{Host, Inventory};

use preflight::Preflight;

/// The phase for hosts that exist.
pub(super) fn phase(cluster: &Arc<Cluster>, manifest: Manifest) -> Phase {
    let host_list = Arc::new(HostList { cluster: Arc::clone(cluster), read: OnceLock::new() });
    cluster
        .phase("provision", manifest, Vec::new())
        .with("hosts", Preflight(Arc::clone(&host_list)))
        .with("inventory", WriteInventory(host_list))
}

/// The inventory made from the user's list or file.
pub(super) fn read(cluster: &Cluster) -> Result<Inventory> {
    let settings = &cluster.settings;
    if settings.hosts.is_empty() {
        return read_file(cluster);
    }
    let file = settings.access.known_hosts.as_deref();
    let find_key = |address: &str, port: u16| file.map_or(Ok(None), |file| known_hosts::find(file, address, port));
    let (hosts, access) = (settings.hosts.as_slice(), &settings.access);
    let (cluster, api_host, api_port) = (&settings.name, &settings.api_host, settings.api_port);
    list::List { cluster, api_port, api_host, hosts, access, find_key: &find_key }.inventory()
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
struct HostList {
    cluster: Arc<Cluster>,
    read: OnceLock<Inventory>,
}

impl HostList {
    fn inventory(&self) -> Result<&Inventory> {
        if let Some(inventory) = self.read.get() {
            return Ok(inventory);
        }
        let settings = &self.cluster.settings;
        let inventory = read(&self.cluster)?;
        inventory.require_cluster(&settings.hosts_file, &settings.name, settings.api_port)?;
        Ok(self.read.get_or_init(|| inventory))
    }
}

/// The inventory becomes the cluster's.
struct WriteInventory(Arc<HostList>);

impl Action for WriteInventory {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(Inputs::new().with("inventory", self.0.inventory()?.render()?))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        Ok(prove_inventory(&self.0.cluster))
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        // An unreadable one is rewritten as a whole.
        let known = self.0.cluster.find_inventory().ok().flatten().map(|known| known.hosts).unwrap_or_default();
        Ok(compare(&known, &self.0.inventory()?.hosts).into())
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        self.0.cluster.write_inventory(self.0.inventory()?).map(|()| true)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        external_inventory::take(&self.0.cluster, self.0.inventory()?, cx)
    }
}

/// Which hosts come, go and are described in another way.
fn compare(known: &[Host], wanted: &[Host]) -> Vec<Change> {
    let in_list = |list: &[Host], name: &str| list.iter().any(|host| host.name == name);
    let lines = |host: &Host, sign: char| {
        let text = serde_json::to_string_pretty(host).unwrap_or_default();
        text.lines().map(|line| format!("{sign} {line}")).collect::<Vec<String>>()
    };
    let gone = known.iter().filter(|host| !in_list(wanted, &host.name));
    let gone = gone.map(|host| Change::new(Verb::Delete, "host", &host.name));
    let come = wanted.iter().filter_map(|host| match known.iter().find(|known| known.name == host.name) {
        Some(known) if known == host => None,
        Some(known) => {
            let (before, after) = (lines(known, '-'), lines(host, '+'));
            let differs = |line: &String, others: &[String]| !others.iter().any(|other| other[1..] == line[1..]);
            let only = before.iter().filter(|line| differs(line, &after));
            let only = only.chain(after.iter().filter(|line| differs(line, &before))).cloned().collect();
            Some(Change::new(Verb::Update, "host", &host.name).with_lines(only))
        }
        None => Some(Change::new(Verb::Create, "host", &host.name)),
    });
    gone.chain(come).collect()
}
