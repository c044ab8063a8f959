//! What a cloud takes for machines, disks and the rest: the list prices of one day in one region,
//! as `src/cloud/<cloud>/prices.toml` has them. What is not in the list has no price known.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cloud::Cloud;
use crate::error::{Error, Result};

/// One cloud's list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceList {
    /// Of which day the prices are.
    pub(super) dated: jiff::civil::Date,
    /// Of which region.
    pub(super) region: String,
    /// By types, an hour.
    machines: BTreeMap<String, f64>,
    /// By types, a gigabyte and month.
    #[serde(default)]
    disks: BTreeMap<String, f64>,
    /// By types: gigabytes, and what a disk of at most that size costs a month.
    #[serde(default)]
    disk_steps: BTreeMap<String, Vec<(u32, f64)>>,
    pub(super) hourly: Hourly,
}

/// What is paid by the hour.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hourly {
    pub(super) load_balancer: f64,
    /// Whether that is for all of a cluster's together.
    #[serde(default)]
    pub(super) balancers_together: bool,
    #[serde(default)]
    pub(super) nat_gateway: f64,
    /// For each host that goes out by one.
    #[serde(default)]
    pub(super) nat_of_host: f64,
    pub(super) public_address: f64,
}

/// Hours of a month, as clouds count them.
pub(super) const HOURS: f64 = 730.0;

impl PriceList {
    pub(super) fn of(cloud: &dyn Cloud) -> Result<Self> {
        toml::from_str(cloud.price_list())
            .map_err(|error| Error::bug(format!("the price list of {} cannot be read", cloud.name())).source(error))
    }

    /// A month of a machine.
    pub(super) fn machine(&self, kind: &str) -> Option<f64> {
        self.machines.get(kind).map(|price| price * HOURS)
    }

    /// A month of a disk.
    pub(super) fn disk(&self, kind: &str, size_gb: u32) -> Option<f64> {
        if let Some(price) = self.disks.get(kind) {
            return Some(price * f64::from(size_gb));
        }
        let steps = self.disk_steps.get(kind)?;
        steps.iter().find(|(most, _)| size_gb <= *most).map(|(_, price)| *price)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::cloud::CLOUDS;

    #[test]
    fn every_cloud_has_a_list_that_can_be_read() {
        for cloud in CLOUDS {
            let list = PriceList::of(*cloud).unwrap();
            assert!(list.machines.len() > 20 && !list.region.is_empty(), "{}", cloud.name());
            let prices = list.machines.values().chain(list.disks.values());
            let steps = list.disk_steps.values().flatten().map(|(_, price)| price);
            assert!(prices.chain(steps).all(|price| *price > 0.0 && *price < 100.0), "{}", cloud.name());
            let rising = |steps: &Vec<(u32, f64)>| steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1);
            assert!(list.disk_steps.values().all(rising), "{}", cloud.name());
        }
    }

    #[test]
    fn a_disk_costs_by_its_size_or_by_the_next_step() {
        let list: PriceList = toml::from_str(
            "dated = '2026-01-02'\nregion = 'r'\nmachines = {}\n[disks]\nflat = 0.5\n[disk_steps]\nsteps = [[4, 1.0], [8, 3.0]]\n[hourly]\nload_balancer = 1.0\npublic_address = 1.0",
        )
        .unwrap();
        let price = |kind: &str, size| list.disk(kind, size).map(|price| format!("{price:.1}"));
        assert_eq!(price("flat", 10).as_deref(), Some("5.0"));
        assert_eq!(price("steps", 4).as_deref(), Some("1.0"));
        assert_eq!(price("steps", 5).as_deref(), Some("3.0"));
        assert_eq!(price("steps", 9), None, "a step that the list does not have");
        assert_eq!(price("other", 1), None);
        assert_eq!(list.machine("other"), None);
    }
}
