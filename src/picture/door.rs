//! Who may connect to a cluster from outside, by what, and what stands before the hosts.

use serde::Serialize;

use super::model::Fixture;
use crate::cloud::{Exposure, Site, Spec, Target};
use crate::config::{Network, Network6, Settings};
use crate::error::Result;

/// A service that clients outside come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Door {
    pub(super) service: &'static str,
    pub(super) port: u16,
    /// What leads to it.
    pub(super) by: String,
    /// Whether clients outside reach it at all.
    pub(super) is_open: bool,
    /// From where; empty where the target has no firewall of turnup's.
    pub(super) allowed: Vec<AllowedNetwork>,
}

/// A network that a cloud's firewall lets in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AllowedNetwork {
    pub(super) network: String,
    /// Whether that is everyone.
    pub(super) is_world: bool,
}

impl AllowedNetwork {
    fn of(text: &str) -> Self {
        // Half of all addresses is no less than everyone, in two rules.
        let prefix = text.parse().map(Network::prefix).or_else(|_| text.parse().map(Network6::prefix));
        Self { network: text.to_owned(), is_world: prefix.is_ok_and(|prefix| prefix <= 1) }
    }
}

fn all(networks: &[String]) -> Vec<AllowedNetwork> {
    networks.iter().map(|network| AllowedNetwork::of(network)).collect()
}

/// Where clients are.
pub(super) fn outside(target: Target) -> &'static str {
    match target {
        Target::Local => "this machine",
        Target::BareMetal => "your network",
        Target::Cloud(_) | Target::Custom => "the internet",
    }
}

/// The API server and SSH.
pub(super) fn doors(settings: &Settings, target: Target, site: Option<&(&Spec, Site)>) -> Result<Vec<Door>> {
    if let Some((spec, site)) = site {
        return Ok(vec![api_of_cloud(spec, site), ssh_of_cloud(spec, site)]);
    }
    let several = settings.get_int("phase1.control_plane.count")? > 1;
    let host = settings.get("phase1.api.host")?;
    let exposure = settings.get_word::<Exposure>("phase1.api.exposure")?;
    let by = match exposure {
        _ if !host.is_empty() => host,
        Some(Exposure::LoadBalancer) => "load balancer".to_owned(),
        None if several => "load balancer".to_owned(),
        _ => "control plane".to_owned(),
    };
    let external = !target.is_custom() || settings.get_bool("phase1.api.external")?;
    let networks = |name: &str| settings.get_list(name).map(|networks| all(&networks));
    let api = Door {
        service: "API server",
        port: settings.get_number("phase2.api_port")?,
        by,
        is_open: external,
        allowed: if external { networks("phase1.api.allowed_cidrs")? } else { Vec::new() },
    };
    if target.is_local() {
        return Ok(vec![api]);
    }
    let by = match settings.get("phase1.ssh.bastion")?.as_str() {
        "create" => "bastion".to_owned(),
        "existing" => format!("bastion {}", settings.get("phase1.ssh.bastion_host")?),
        _ => "every host".to_owned(),
    };
    let ssh = Door {
        service: "SSH",
        port: settings.get_number("phase1.ssh.port")?,
        by,
        is_open: true,
        allowed: networks("phase1.ssh.allowed_cidrs")?,
    };
    Ok(vec![api, ssh])
}

fn api_of_cloud(spec: &Spec, site: &Site) -> Door {
    let by = match spec.api.exposure {
        Exposure::LoadBalancer => "load balancer".to_owned(),
        Exposure::Dns => spec.api.host.clone(),
        Exposure::StaticAddress => "control plane".to_owned(),
    };
    let is_open = spec.api.external && (spec.has_outer_balancer() || site.public_control_plane);
    let allowed = if is_open { all(&spec.api.allowed_cidrs) } else { Vec::new() };
    Door { service: "API server", port: spec.api.port, by, is_open: is_open && !allowed.is_empty(), allowed }
}

fn ssh_of_cloud(spec: &Spec, site: &Site) -> Door {
    let workers = spec.groups.values().any(|group| group.public_address && group.size > 0);
    let by = match (spec.ssh.bastion, site.public_control_plane, workers) {
        (true, ..) => "bastion",
        (false, true, true) => "every host with a public address",
        (false, true, false) => "control plane",
        (false, false, true) => "workers with public addresses",
        (false, false, false) => "every host",
    };
    let reached = spec.ssh.bastion || site.public_control_plane || workers;
    let allowed = if reached { all(&spec.ssh.allowed_cidrs) } else { Vec::new() };
    Door { service: "SSH", port: spec.ssh.port, by: by.to_owned(), is_open: !allowed.is_empty(), allowed }
}

/// What stands before or beside the hosts.
pub(super) fn fixtures(settings: &Settings, target: Target, site: Option<&(&Spec, Site)>) -> Result<Vec<Fixture>> {
    let fixture = |what, detail: &str| Fixture { what, count: 1, detail: detail.to_owned() };
    let Some((spec, site)) = site else {
        let several = target.is_local() && settings.get_int("phase1.control_plane.count")? > 1;
        let name = format!("{}-api", settings.get("phase1.cluster_name")?);
        let bastion = settings.get("phase1.ssh.bastion")?;
        let host = settings.get("phase1.ssh.bastion_host")?;
        let balanced = several.then(|| fixture("load balancer", &name));
        let created = (bastion == "create").then(|| fixture("bastion", "made by your module"));
        let existing = (bastion == "existing").then(|| fixture("bastion", &host));
        return Ok([balanced, created, existing].into_iter().flatten().collect());
    };
    // Nodes have balancers of their own before several API servers.
    let inside = if spec.control_plane.len() > 1 { "for clients inside" } else { "for nodes" };
    let all = [
        spec.has_outer_balancer().then(|| fixture("load balancer", "for clients")),
        spec.has_inner_balancer().then(|| fixture("inner load balancer", inside)),
        spec.ssh.bastion.then(|| fixture("bastion", &spec.ssh.bastion_machine_type)),
        (site.nat_gateways > 0).then(|| Fixture {
            count: site.nat_gateways,
            ..fixture("NAT gateway", "for hosts without a public address")
        }),
    ];
    Ok(all.into_iter().flatten().collect())
}
