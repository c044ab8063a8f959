//! Bare metal: the hosts exist. The user lists them in the configuration, or in an inventory file;
//! they are checked, and handed over.
//!
//! Nothing here makes or changes a host; what is asked of one only reads.

mod hosts;
mod list;
mod preflight;

use std::sync::Arc;

use crate::change::{Change, Preview, Verb};
use crate::cluster::Cluster;
use crate::error::Result;
use crate::phase::{Action, Check, Cx, Inputs, Manifest, Phase};

use super::external_inventory;
use super::planned_inventory::prove_inventory;
use crate::inventory::Host;

use hosts::BareMetalHosts;
use preflight::Preflight;

/// The phase for hosts that exist.
pub(super) fn phase(cluster: &Arc<Cluster>, manifest: Manifest) -> Phase {
    let hosts = Arc::new(BareMetalHosts::new(cluster));
    cluster
        .phase("provision", manifest, Vec::new())
        .with("hosts", Preflight(Arc::clone(&hosts)))
        .with("inventory", WriteInventory(hosts))
}

/// The inventory becomes the cluster's.
struct WriteInventory(Arc<BareMetalHosts>);

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
