//! What a month of a cluster costs, as an estimate: list prices of one day, without what depends on
//! use (traffic, snapshots, operations) and on contracts.

use serde::Serialize;

use super::hosts;
use super::price_list::{HOURS, PriceList};
use crate::cloud::{Site, Spec};
use crate::error::Result;

/// The estimate, in US dollars.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cost {
    pub(super) currency: &'static str,
    /// Of which day the prices are.
    pub(super) dated: String,
    /// Of which region.
    pub(super) region: String,
    /// Whether the cluster is in another one.
    pub(super) is_other_region: bool,
    pub(super) lines: Vec<CostLine>,
    /// The sum of all lines that have a price.
    pub(super) total: f64,
}

/// One kind of thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CostLine {
    pub(super) what: String,
    pub(super) count: u32,
    /// A month of all of them; none where no price is known.
    pub(super) month: Option<f64>,
}

impl CostLine {
    /// The price of a month in words.
    pub(super) fn price(&self) -> String {
        self.month.map_or_else(|| "no price known".to_owned(), |price| format!("{price:.2}"))
    }
}

/// Whole cents.
fn round(dollars: f64) -> f64 {
    (dollars * 100.0).round() / 100.0
}

impl Cost {
    /// Whether everything has a price.
    pub(super) fn is_whole(&self) -> bool {
        self.lines.iter().all(|line| line.month.is_some())
    }

    /// The sum in a sentence.
    pub(super) fn sum(&self) -> String {
        let more = if self.is_whole() { "" } else { ", and what has no price known" };
        format!("about {:.0} dollars a month{more}", self.total)
    }

    /// What the sum is worth.
    pub(super) fn terms(&self) -> Vec<String> {
        let mut terms = vec![format!("prices of {}, list price, {}", self.dated, self.region)];
        if self.is_other_region {
            terms.push("the cluster is in another region, where prices differ".to_owned());
        }
        terms.push("an estimate: without traffic, operations, snapshots, taxes and discounts".to_owned());
        terms
    }
}

/// The estimate of what the module of a cloud makes.
pub(super) fn estimate(spec: &Spec, site: &Site) -> Result<Cost> {
    let list = PriceList::of(spec.cloud())?;
    let mut lines: Vec<CostLine> = hosts::machines(spec)
        .into_iter()
        .map(|((kind, spot), count)| {
            // What a spot machine costs changes from day to day.
            let price = if spot { None } else { list.machine(kind) };
            CostLine::new(if spot { format!("{kind}, spot") } else { kind.to_owned() }, count, price)
        })
        .collect();
    let disks = hosts::disks(spec).into_iter();
    lines.extend(disks.map(|((kind, size), count)| {
        CostLine::new(format!("disk of {size} GB, {kind}"), count, list.disk(kind, size))
    }));
    lines.extend(around(spec, site, &list));
    lines.retain(|line| line.count > 0);
    Ok(Cost {
        currency: "USD",
        dated: list.dated.to_string(),
        is_other_region: site.region != list.region,
        region: list.region,
        total: round(lines.iter().filter_map(|line| line.month).sum()),
        lines,
    })
}

/// What is paid for besides machines and disks.
fn around(spec: &Spec, site: &Site, list: &PriceList) -> Vec<CostLine> {
    let hourly = &list.hourly;
    let balancers = u32::from(spec.has_outer_balancer()) + u32::from(spec.has_inner_balancer());
    let each = if hourly.balancers_together {
        hourly.load_balancer / f64::from(balancers.max(1))
    } else {
        hourly.load_balancer
    };
    let control_plane = u32::try_from(spec.control_plane.len()).unwrap_or(u32::MAX);
    let public = |public: bool| {
        let groups = spec.groups.values().filter(|group| group.public_address == public).map(|group| group.size);
        let own = if site.public_control_plane == public { control_plane } else { 0 };
        groups.sum::<u32>() + own
    };
    let addresses = public(true) + site.public_addresses + u32::from(spec.ssh.bastion);
    let mut lines = vec![
        CostLine::new("load balancer".to_owned(), balancers, Some(each * HOURS)),
        CostLine::new("public IPv4 address".to_owned(), addresses, Some(hourly.public_address * HOURS)),
    ];
    if hourly.nat_of_host > 0.0 {
        let hosts = if site.nat_gateways > 0 { public(false) } else { 0 };
        lines.push(CostLine::new("host behind NAT".to_owned(), hosts, Some(hourly.nat_of_host * HOURS)));
    } else {
        lines.push(CostLine::new("NAT gateway".to_owned(), site.nat_gateways, Some(hourly.nat_gateway * HOURS)));
    }
    lines
}

impl CostLine {
    fn new(what: String, count: u32, each: Option<f64>) -> Self {
        Self { what, count, month: each.map(|price| round(price * f64::from(count))) }
    }
}
