//! What a cloud's Terraform module is given: one typed object, made of the configuration, the same
//! for every cloud but for the part that is the cloud's own.
//!
//! It decides nothing that the configuration does not say, and refuses before Terraform starts what
//! no cloud would accept. It runs nothing and writes nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::dns_provider::DnsProvider;
use super::{Cloud, MachineProof, Target, refused};
use crate::artifacts::Digest;
use crate::config::{Network, Network6, Settings};
use crate::error::{Context as _, Result};
use crate::inventory::{HEALTH_PORT, Role, Taint};

/// The variable `cluster` of a module: `templates/provision/<target>/variables.tf` says what each
/// field is.
#[derive(Clone, Debug, Serialize)]
pub struct Spec {
    pub(crate) name: String,
    pub(crate) kubernetes_version: String,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) networks: Networks,
    /// Hosts have IPv6 beside IPv4; pods and Services do not.
    pub(crate) ipv6: bool,
    pub(crate) api: Api,
    pub(crate) ssh: LoginAccess,
    pub(crate) dns: Dns,
    pub(crate) etcd: Etcd,
    pub(crate) deletion_protection: bool,
    pub(crate) control_plane: BTreeMap<String, ControlPlaneHost>,
    pub(crate) groups: BTreeMap<String, CloudGroup>,
    /// The part that is the cloud's own.
    #[serde(flatten)]
    pub(super) own: Own,
}

/// What the configuration asks of one cloud alone, in the module's variable under the cloud's name.
#[derive(Clone, Debug)]
pub(super) struct Own {
    cloud: &'static dyn Cloud,
    pub(super) settings: Arc<dyn CloudSettings>,
}

impl Serialize for Own {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let variable = self.settings.variable().map_err(S::Error::custom)?;
        BTreeMap::from([(self.cloud.name(), variable)]).serialize(serializer)
    }
}

/// Networks of the cluster that are not the hosts'.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Networks {
    pub(crate) pods: String,
    pub(crate) services: String,
    /// The first and the last port of Services on nodes.
    pub(crate) node_ports: [u16; 2],
}

/// How the API server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Api {
    pub(crate) port: u16,
    /// Where load balancers ask a control-plane host whether its API server is ready.
    pub(crate) health_port: u16,
    pub(crate) exposure: Exposure,
    pub(crate) host: String,
    /// The user's own name or address of the API: the cluster needs no record of its own.
    #[serde(skip)]
    pub(crate) host_is_given: bool,
    pub(crate) external: bool,
    pub(crate) allowed_cidrs: Vec<String>,
    pub(crate) static_address: String,
    pub(crate) internal_load_balancer: bool,
}

/// What clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Exposure {
    /// The address of the one control-plane host.
    StaticAddress,
    /// A load balancer in front of all of them.
    LoadBalancer,
    /// A name that resolves to all of them.
    Dns,
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StaticAddress => "static-address",
            Self::LoadBalancer => "load-balancer",
            Self::Dns => "dns",
        })
    }
}

/// How turnup and people log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LoginAccess {
    pub(crate) user: String,
    pub(crate) port: u16,
    pub(crate) allowed_cidrs: Vec<String>,
    pub(crate) authorized_keys: Vec<String>,
    pub(crate) bastion: bool,
    pub(crate) bastion_machine_type: String,
}

/// Where names are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Dns {
    pub(crate) provider: DnsProvider,
    pub(crate) domain: String,
    pub(crate) zone: String,
    pub(crate) private: bool,
    pub(crate) ttl: u32,
    /// The id of the zone in which hosts keep names themselves; empty for none.
    pub(crate) hosts_zone: String,
}

/// The members of etcd and their volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Etcd {
    pub(crate) members: Vec<String>,
    pub(crate) volume: CloudVolume,
}

/// What each member's volume is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CloudVolume {
    pub(crate) size_gb: u32,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) encrypted: bool,
    pub(crate) kms_key: String,
}

/// One control-plane host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControlPlaneHost {
    pub(crate) member: String,
    pub(crate) zone: String,
    pub(crate) machine_type: String,
    pub(crate) image: String,
    pub(crate) disk_gb: u32,
    pub(crate) disk_type: String,
}

/// A group of hosts that are made alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CloudGroup {
    pub(crate) role: Role,
    pub(crate) size: u32,
    pub(crate) min: Option<u32>,
    pub(crate) max: Option<u32>,
    pub(crate) machine_type: String,
    pub(crate) image: String,
    pub(crate) disk_gb: u32,
    pub(crate) disk_type: String,
    pub(crate) zones: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) spot: bool,
    pub(crate) public_address: bool,
    pub(crate) tags: BTreeMap<String, String>,
    /// Where the cloud itself rolls a change out: so many hosts at a time, and so many in advance.
    #[serde(flatten)]
    pub(crate) rollout: Option<CloudRollout>,
}

/// How many hosts a cloud replaces at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CloudRollout {
    pub(crate) max_unavailable: u32,
    pub(crate) max_surge: u32,
}

/// What hosts have that say nothing else.
pub struct Defaults {
    pub(super) image: String,
    pub(super) disk_gb: u32,
    pub(super) disk_type: String,
    pub(super) machine_type: String,
    pub(super) control_plane_machine_type: String,
    pub(super) zones: Vec<String>,
    pub(super) control_plane_zones: Vec<String>,
    pub(super) public_address: bool,
    pub(super) etcd_volume_type: String,
}

/// Where the hosts of a cluster stand, and what its module makes there besides them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub(crate) region: String,
    /// The network of the hosts, or the name of one that exists.
    pub(crate) network: String,
    pub(crate) nat_gateways: u32,
    /// Whether control-plane hosts have public addresses.
    pub(crate) public_control_plane: bool,
    /// Public addresses that are paid for, besides those of hosts and of the bastion.
    pub(crate) public_addresses: u32,
}

/// What the configuration asks of one cloud and of no other.
pub trait CloudSettings: fmt::Debug + Send + Sync {
    /// Gives everything a name that the cloud takes.
    fn name_all(
        &mut self,
        cluster: &str,
        control_plane: &BTreeMap<String, ControlPlaneHost>,
        groups: &BTreeMap<String, CloudGroup>,
    );

    /// Where the hosts stand.
    fn site(&self, spec: &Spec) -> Site;

    /// What the cloud would refuse, before it is asked.
    fn check(&self, spec: &Spec) -> Result<()>;

    /// How the names of a group's Nodes begin, without the dash: as the cloud begins those of its
    /// hosts, where they say anything of the group.
    fn node_name_prefix(&self, group: &str) -> Option<String>;

    /// How this cluster's workers prove which machines they are; none where the cloud says nothing
    /// that tells one machine from another.
    fn machine_proof(&self, _spec: &Spec) -> Result<Option<MachineProof>> {
        Ok(None)
    }

    /// What manifests of addons name of this cluster in its cloud, as `cloud.NAME`.
    fn addon_values(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::new()
    }

    /// The variable of the module.
    fn variable(&self) -> serde_json::Result<serde_json::Value>;
}

/// Whether hosts have IPv6 too.
pub(super) const IPV6: &str = "phase1.network.ipv6";
/// The key of the control plane's user data; no group of workers may have this name.
pub const CONTROL_PLANE: &str = "control-plane";

impl Spec {
    /// What the configuration asks of its target; none where that is no cloud. An error names the
    /// setting that the cloud would refuse.
    pub fn find(settings: &Settings) -> Result<Option<Self>> {
        let target = Target::of(&settings.get("phase1.cloud_provider")?);
        target.cloud().map(|cloud| Self::read(cloud, settings)).transpose()
    }

    /// The variable `cluster` of the target's module, as a file of Terraform's variables has it;
    /// `keys` are lines of `authorized_keys`.
    pub fn variables(&self, keys: Vec<String>) -> Result<serde_json::Value> {
        let mut spec = self.clone();
        spec.ssh.authorized_keys = keys;
        spec.check()?;
        serde_json::to_value(BTreeMap::from([("cluster", spec)])).context("the variables of the module")
    }

    pub(crate) fn cloud(&self) -> &'static dyn Cloud {
        self.own.cloud
    }

    /// Where the hosts stand.
    #[must_use]
    pub(crate) fn site(&self) -> Site {
        self.own.settings.site(self)
    }

    /// Whether clients come to the API server by a load balancer.
    pub(crate) fn has_outer_balancer(&self) -> bool {
        self.api.exposure == Exposure::LoadBalancer && self.api.external
    }

    /// Whether clients inside of the network, and nodes of one control-plane host, come to the API
    /// server by a load balancer.
    pub(crate) fn has_inner_balancer(&self) -> bool {
        self.api.exposure == Exposure::LoadBalancer && (self.api.internal_load_balancer || !self.api.external)
    }

    /// How the names of a group's Nodes begin, without the dash: as the cloud begins those of its
    /// hosts, where they say anything of the group.
    #[must_use]
    pub fn node_name_prefix(&self, group: &str) -> Option<String> {
        self.groups.contains_key(group).then(|| self.own.settings.node_name_prefix(group))?
    }

    /// What the machines of a group are made of and told for their whole life, as far as settings
    /// say it: with another value other machines are needed.
    pub(crate) fn machine_of(&self, group: &str) -> Result<serde_json::Value> {
        let own = self.own.settings.variable().context("the variables of the module")?;
        let fields = self.cloud().machine_fields().iter().map(|field| &own[*field]);
        let of_group = self.groups.get(group).map(|group| {
            let CloudGroup { machine_type, image, disk_gb, disk_type, spot, public_address, .. } = group;
            json!([machine_type, image, disk_gb, disk_type, spot, public_address])
        });
        // Hosts are told once where the API server is. Several have a balancer before them, and the
        // addresses of control-plane hosts are theirs for ever.
        let Api { port, exposure, host, external, static_address, internal_load_balancer, .. } = &self.api;
        let api = if self.control_plane.len() > 1 {
            json!([port])
        } else {
            json!([port, exposure, host, external, static_address, internal_load_balancer])
        };
        Ok(json!([self.ipv6, of_group, api, fields.collect::<Vec<_>>()]))
    }

    /// What manifests of addons name of this cluster in its cloud, as `cloud.NAME`.
    pub(crate) fn addon_values(&self) -> BTreeMap<&'static str, String> {
        self.own.settings.addon_values()
    }

    /// How this cluster's workers prove which machines they are.
    pub(crate) fn machine_proof(&self) -> Result<Option<MachineProof>> {
        self.own.settings.machine_proof(self)
    }

    /// The keys of the variable `user_data`: the control plane and each group.
    pub fn hosts_alike(&self) -> impl Iterator<Item = &str> {
        std::iter::once(CONTROL_PLANE).chain(self.groups.keys().map(String::as_str))
    }

    fn read(cloud: &'static dyn Cloud, settings: &Settings) -> Result<Self> {
        let name = settings.get("phase1.cluster_name")?;
        let (defaults, mut own) = cloud.read(settings)?;
        let control_plane = control_plane(settings, &name, &defaults)?;
        let groups = groups(cloud, settings, &defaults)?;
        own.name_all(&name, &control_plane, &groups);
        let spec = Self {
            networks: Networks {
                pods: settings.get("phase2.pod_cidr")?,
                services: settings.get("phase2.service_cidr")?,
                node_ports: [
                    settings.get_number("phase2.network.node_port_first")?,
                    settings.get_number("phase2.network.node_port_last")?,
                ],
            },
            ipv6: settings.get_bool(IPV6)?,
            kubernetes_version: settings.get("phase2.kubernetes_version")?,
            tags: settings.get_map("phase1.tags")?,
            api: api(settings, &name)?,
            ssh: access(settings)?,
            dns: dns(settings)?,
            etcd: Etcd {
                members: control_plane.values().map(|host| host.member.clone()).collect(),
                volume: CloudVolume {
                    size_gb: settings.get_number("phase1.etcd_volume.size_gb")?,
                    kind: defaults.etcd_volume_type,
                    encrypted: settings.get_bool("phase1.etcd_volume.encrypted")?,
                    kms_key: settings.get("phase1.etcd_volume.kms_key")?,
                },
            },
            deletion_protection: settings.get_bool("phase1.deletion_protection")?,
            own: Own { cloud, settings: own.into() },
            control_plane,
            groups,
            name,
        };
        spec.check()?;
        Ok(spec)
    }
}

/// The ranges of a setting, each in the one way in which clouds write it.
fn ranges(settings: &Settings, key: &str) -> Result<Vec<String>> {
    let one = |text: String| match text.parse::<Network6>() {
        Ok(network) => network.to_string(),
        Err(_) => text,
    };
    Ok(settings.get_list(key)?.into_iter().map(one).collect())
}

/// Terraform works in another directory than the user who named the file.
pub(super) fn absolute(key: &str, file: &str) -> Result<String> {
    if file.is_empty() {
        return Ok(String::new());
    }
    let path = std::path::absolute(Path::new(file)).context(format!("{key}: {file}"))?;
    Ok(path.display().to_string())
}

/// Refuses networks of hosts that share addresses with pods or Services.
pub(super) fn require_apart(key: &str, hosts: &str, networks: &Networks) -> Result<()> {
    let parse = |key: &str, text: &str| text.parse::<Network>().map_err(|why| refused(key, why));
    let own = parse(key, hosts)?;
    for (other_key, text) in [("phase2.pod_cidr", &networks.pods), ("phase2.service_cidr", &networks.services)] {
        if own.overlaps(parse(other_key, text)?) {
            return Err(refused(key, format!("{hosts} overlaps {text} of {other_key}"))
                .hint(format!("turnup config set {key}=… (or {other_key}) to networks that share no address")));
        }
    }
    Ok(())
}

/// A name no longer than a cloud takes: one that is too long keeps its beginning and ends in six
/// digits of its digest, so that two that begin alike stay two.
pub(super) fn fit(name: &str, longest: usize) -> String {
    if name.len() <= longest {
        return name.to_owned();
    }
    let digest = Digest::of(name.as_bytes()).to_string();
    let kept = name.get(..longest.saturating_sub(7)).unwrap_or_default();
    format!("{}-{}", kept.trim_end_matches('-'), &digest[..6])
}

/// A group as the configuration has it.
#[derive(Deserialize)]
struct Asked {
    name: String,
    size: u32,
    min: Option<u32>,
    max: Option<u32>,
    machine_type: Option<String>,
    image: Option<String>,
    disk_gb: Option<u32>,
    disk_type: Option<String>,
    zones: Option<Vec<String>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Taint>,
    #[serde(default)]
    spot: bool,
    public_address: Option<bool>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    max_unavailable: Option<u32>,
    max_surge: Option<u32>,
}

/// What the member of etcd on the control-plane host of this number is called, counted from 0.
#[must_use]
pub fn member_name(place: usize) -> &'static str {
    ["a", "b", "c", "d", "e"].get(place).copied().unwrap_or("z")
}

/// The name of the default group, when the user describes none.
pub const WORKERS: &str = "workers";

fn control_plane(
    settings: &Settings,
    cluster: &str,
    defaults: &Defaults,
) -> Result<BTreeMap<String, ControlPlaneHost>> {
    let count = settings.get_number::<u32>("phase1.control_plane.count")?.max(1);
    let asked = settings.get_list("phase1.control_plane.zones")?;
    let zones = if asked.is_empty() { &defaults.control_plane_zones } else { &asked };
    let machine = |index: u32| {
        let place = usize::try_from(index).unwrap_or_default();
        let zone = zones.iter().cycle().nth(place).cloned().unwrap_or_default();
        let member = member_name(place).to_owned();
        let machine = ControlPlaneHost {
            member,
            zone,
            machine_type: defaults.control_plane_machine_type.clone(),
            image: defaults.image.clone(),
            disk_gb: defaults.disk_gb,
            disk_type: defaults.disk_type.clone(),
        };
        (fit_host(cluster, index), machine)
    };
    Ok((0..count).map(machine).collect())
}

/// A control-plane host's name, which is its Node's: an RFC 1123 label.
fn fit_host(cluster: &str, index: u32) -> String {
    let end = format!("-{}-{index}", Role::ControlPlane.name());
    fit(cluster, 63 - end.len()) + &end
}

fn groups(cloud: &dyn Cloud, settings: &Settings, defaults: &Defaults) -> Result<BTreeMap<String, CloudGroup>> {
    let mut asked: Vec<Asked> = settings.get_records("phase1.node_groups")?;
    // Clouds find the control plane's machines and give them rights by names that begin so.
    if let Some(group) = asked.iter().find(|group| group.name.starts_with(CONTROL_PLANE)) {
        let why =
            format!("no name of a group of workers can begin with {CONTROL_PLANE}, as that of {} does", group.name);
        return Err(refused("phase1.node_groups", why).hint("give the group another name"));
    }
    let size: u32 = settings.get_number("phase1.num_nodes")?;
    if asked.is_empty() && size > 0 {
        asked = vec![
            serde_json::from_value(serde_json::json!({"name": WORKERS, "size": size}))
                .context("the group of all workers")?,
        ];
    }
    // Elsewhere turnup renews the hosts itself.
    let usual = if cloud.replaces_ended_machines() {
        None
    } else {
        let max_surge = settings.get_number("phase2.update.max_surge")?;
        Some(CloudRollout { max_unavailable: settings.get_number("phase2.update.max_unavailable")?, max_surge })
    };
    let group = |one: Asked| {
        let group = CloudGroup {
            role: Role::Worker,
            size: one.size,
            min: one.min,
            max: one.max,
            machine_type: one.machine_type.unwrap_or_else(|| defaults.machine_type.clone()),
            image: one.image.unwrap_or_else(|| defaults.image.clone()),
            disk_gb: one.disk_gb.unwrap_or(defaults.disk_gb),
            disk_type: one.disk_type.unwrap_or_else(|| defaults.disk_type.clone()),
            zones: one.zones.unwrap_or_else(|| defaults.zones.clone()),
            labels: one.labels,
            taints: one.taints,
            spot: one.spot,
            public_address: one.public_address.unwrap_or(defaults.public_address),
            tags: one.tags,
            rollout: usual.map(|usual| CloudRollout {
                max_unavailable: one.max_unavailable.unwrap_or(usual.max_unavailable),
                max_surge: one.max_surge.unwrap_or(usual.max_surge),
            }),
        };
        (one.name, group)
    };
    Ok(asked.into_iter().map(group).collect())
}

fn api(settings: &Settings, cluster: &str) -> Result<Api> {
    let domain = settings.get("phase1.dns.domain")?;
    let given = Some(settings.get("phase1.api.host")?).filter(|host| !host.is_empty());
    Ok(Api {
        port: settings.get_number("phase2.api_port")?,
        health_port: HEALTH_PORT,
        exposure: settings.get_word("phase1.api.exposure")?.unwrap_or(Exposure::StaticAddress),
        host_is_given: given.is_some(),
        host: given.unwrap_or_else(|| format!("api.{cluster}.{domain}")),
        external: settings.get_bool("phase1.api.external")?,
        allowed_cidrs: ranges(settings, "phase1.api.allowed_cidrs")?,
        static_address: settings.get("phase1.api.static_address")?,
        internal_load_balancer: settings.get_bool("phase1.api.internal_load_balancer")?,
    })
}

fn access(settings: &Settings) -> Result<LoginAccess> {
    Ok(LoginAccess {
        user: settings.ssh_user()?,
        port: settings.get_number("phase1.ssh.port")?,
        allowed_cidrs: ranges(settings, "phase1.ssh.allowed_cidrs")?,
        authorized_keys: Vec::new(),
        bastion: settings.get("phase1.ssh.bastion")? == "create",
        bastion_machine_type: settings.get("phase1.ssh.bastion_machine_type")?,
    })
}

fn dns(settings: &Settings) -> Result<Dns> {
    Ok(Dns {
        provider: dns_provider(settings)?,
        domain: settings.get("phase1.dns.domain")?,
        zone: settings.get("phase1.dns.zone")?,
        private: settings.get_bool("phase1.dns.private_zone")?,
        ttl: settings.get_number("phase1.dns.ttl")?,
        hosts_zone: settings.get("phase2.dns.zone_id")?,
    })
}

fn dns_provider(settings: &Settings) -> Result<DnsProvider> {
    const KEY: &str = "phase1.dns.provider";
    let name = settings.get(KEY)?;
    DnsProvider::of(&name).ok_or_else(|| refused(KEY, format!("no cloud of turnup's has zones of {name}")))
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
