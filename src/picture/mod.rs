//! The cluster that a configuration describes, as a picture: where its hosts stand and what they
//! are, its networks, who may connect, and what a month of it costs.
//!
//! [`Picture::of`] is a pure function of the settings and of an inventory that the user wrote; it
//! asks no cloud and no host. `hosts`, `door` and `cost` make the model out of settings, `text` and
//! `svg` draw it. What a cloud's module makes is known from `cloud::Spec`, the object that the
//! module is given.

mod cost;
mod door;
mod hosts;
mod model;
mod price_list;
mod svg;
mod text;

use serde::Serialize;

use crate::cloud::{Spec, Target};
use crate::config::{Settings, TARGET};
use crate::error::Result;
use crate::inventory::Inventory;

use cost::Cost;
use door::Door;
use model::{Fixture, Zone};
pub(crate) use text::Glyphs;

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Picture {
    cluster: String,
    target: String,
    /// None where the target has none.
    region: Option<String>,
    /// Where clients are.
    outside: &'static str,
    /// What clients come to.
    doors: Vec<Door>,
    /// The network of the hosts; none where only its owner knows it.
    host_network: Option<String>,
    pod_network: String,
    service_network: String,
    /// What stands before or beside the hosts: load balancers, bastion, NAT gateways.
    fixtures: Vec<Fixture>,
    control_plane_hosts: u32,
    workers: u32,
    zones: Vec<Zone>,
    /// None where nothing is ordered from a cloud that turnup knows.
    cost: Option<Cost>,
}

impl Picture {
    /// The schema of its JSON form.
    pub(crate) const SCHEMA: &'static str = "turnup.config.picture/1";

    /// The picture of these settings; `inventory` is the one that the user wrote for hosts that
    /// exist. An error where the settings cannot be read.
    pub(crate) fn of(settings: &Settings, inventory: Option<&Inventory>) -> Result<Self> {
        let target = Target::of(&settings.get(TARGET)?);
        let spec = Spec::find(settings)?;
        let site = spec.as_ref().map(|spec| (spec, spec.site()));
        let host_network = match &site {
            Some((_, site)) => Some(site.network.clone()),
            None if target.is_local() => Some(settings.get("phase1.local.subnet")?),
            None => None,
        };
        let layout = match &site {
            Some((spec, site)) => hosts::of_cloud(spec, site),
            None => hosts::of_settings(settings, target, inventory)?,
        };
        Ok(Self {
            cluster: settings.get("phase1.cluster_name")?,
            target: target.name().to_owned(),
            region: site.as_ref().map(|(_, site)| site.region.clone()).filter(|region| !region.is_empty()),
            outside: door::outside(target),
            doors: door::doors(settings, target, site.as_ref())?,
            host_network,
            pod_network: settings.get("phase2.pod_cidr")?,
            service_network: settings.get("phase2.service_cidr")?,
            fixtures: door::fixtures(settings, target, site.as_ref())?,
            control_plane_hosts: layout.control_planes,
            workers: layout.workers,
            zones: layout.zones,
            cost: site.as_ref().map(|(spec, site)| cost::estimate(spec, site)).transpose()?,
        })
    }

    /// Name, target, region.
    fn title(&self) -> String {
        let place = self.region.as_ref().map_or_else(String::new, |region| format!(", {region}"));
        format!("{} on {}{place}", self.cluster, self.target)
    }
}

#[cfg(test)]
mod tests;
