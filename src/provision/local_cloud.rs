//! What Terraform and the hosts of this machine are told where it does for them what a cloud does:
//! each host's user data, the volumes of etcd, the service. Writes nothing and starts nothing.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::artifacts::Digest;
use crate::cloud::{CONTROL_PLANE, WORKERS, member_name};
use crate::cluster::Cluster;
use crate::cluster::user_data::UserDataSettings;
use crate::error::{Context as _, Error, Result};
use crate::inventory::{HostGroup, Role, ServerList, volume::Volume};

use super::local::{NetworkSpec, ServiceSpec, VolumeSpec};
use super::planned_hosts::{PlannedHost, api_address, planned_hosts, replaces_hosts};
use super::terraform::{DIR, pretty};
use super::user_data::token_file;

/// What stands in user data for what only this phase knows, as Terraform modules of clouds have it.
const API: &str = "@turnup:api@";
const API_SERVERS: &str = "@turnup:api-servers@";
const TOKEN: &str = "@turnup:token@";
const VOLUME: &str = "@turnup:volume@";

/// The description of the service, below the cluster's directory.
pub(super) const SERVICE: &str = "provision/service.json";

/// Where the user data of a host lies, with everything filled in. Apart from the hosts'
/// descriptions: there is a secret in it.
pub(super) fn user_data_file(host: &str) -> String {
    format!("{DIR}/user-data/{host}.ign")
}

/// The volume of a control-plane host.
pub(super) fn find_volume(cluster: &Cluster, host: &PlannedHost) -> Option<VolumeSpec> {
    if !replaces_hosts(cluster) || host.role != Some(Role::ControlPlane) {
        return None;
    }
    let cluster_name = &cluster.settings.name;
    let member = member_name(host.name.rsplit('-').next()?.parse().ok()?);
    let name = format!("{cluster_name}-etcd-main-{member}");
    let tags = [("cluster", cluster_name.as_str()), ("etcd", "main"), ("member", member)];
    let tags: BTreeMap<String, String> = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Some(VolumeSpec { file: cluster.store.path(format!("volumes/{name}.img")), name, tags })
}

/// What a host attaches: the volume's id says where to ask for it.
pub(super) fn volume_of(network: &NetworkSpec, volume: &VolumeSpec) -> Volume {
    let (gateway, port, name) = (network.gateway, UserDataSettings::LOCAL_PORT, volume.name.clone());
    Volume { cloud: "local".into(), id: format!("{gateway}:{port}/volumes/{name}"), name }
}

/// The groups of hosts that join by themselves.
pub(super) fn groups(cluster: &Cluster) -> Vec<HostGroup> {
    let settings = &cluster.settings;
    let group = |name: &str, size: u32| HostGroup { name: name.into(), role: Role::Worker, size, min: None, max: None };
    let pool = (settings.node_groups.is_empty() && settings.num_nodes > 0).then(|| group(WORKERS, settings.num_nodes));
    settings.node_groups.iter().map(|record| group(&record.name, record.size)).chain(pool).collect()
}

/// The service, as the process reads it.
pub(super) fn service(cluster: &Cluster, network: &NetworkSpec) -> ServiceSpec {
    ServiceSpec {
        address: SocketAddrV4::new(network.gateway, UserDataSettings::LOCAL_PORT),
        program: cluster.store.path(format!("{DIR}/turnup")),
        version: cluster.version().to_owned(),
        hosts: cluster.store.path(format!("{DIR}/hosts")),
        log: cluster.store.path("logs/service.log"),
        attach_delay: 0,
    }
}

/// The same, as Terraform sees that it changed.
pub(super) fn service_variables(cluster: &Cluster, network: &NetworkSpec) -> Result<Value> {
    let digest = Digest::of(pretty(&service(cluster, network))?.as_bytes());
    Ok(json!({"spec": cluster.store.path(SERVICE), "digest": digest}))
}

/// What is filled into user data.
pub(super) struct Joining {
    /// The text of each group and the token of those that have one.
    groups: BTreeMap<String, (Zeroizing<String>, Zeroizing<String>)>,
    api: String,
    /// All API servers, for the balancers of hosts.
    api_servers: String,
}

impl Joining {
    /// None where turnup logs in to all hosts.
    pub(super) fn find(cluster: &Cluster, hosts: &[PlannedHost]) -> Result<Option<Self>> {
        if !replaces_hosts(cluster) {
            return Ok(None);
        }
        let read = |file: &str| -> Result<Zeroizing<String>> {
            let bytes = cluster.store.read(file)?.map(Zeroizing::new);
            let missing = || Error::permanent(format!("{file} is missing")).hint("turnup provision");
            let text =
                std::str::from_utf8(&bytes.ok_or_else(missing)?).context(format!("{file} is no text"))?.to_owned();
            Ok(Zeroizing::new(text))
        };
        let mut all = BTreeMap::new();
        for name in hosts.iter().filter_map(group_of) {
            let token = if name == CONTROL_PLANE { Zeroizing::default() } else { read(&token_file(name))? };
            all.insert(name.to_owned(), (read(&cluster.settings.user_data.form.file_of(name))?, token));
        }
        let control_planes = hosts.iter().filter(|host| host.role == Some(Role::ControlPlane));
        let addresses = control_planes.map(|host| (host.name.clone(), host.address.into()));
        let api_servers = ServerList::of_node(addresses, cluster.settings.api_port).line();
        Ok(Some(Self { groups: all, api: api_address(hosts)?.to_string(), api_servers }))
    }

    /// What of it a step depends on, by names for people.
    pub(super) fn inputs(cluster: &Cluster) -> Result<Vec<(String, Zeroizing<String>)>> {
        let joining = Self::find(cluster, &planned_hosts(cluster)?)?;
        let groups = joining.into_iter().flat_map(|joining| joining.groups);
        let of_group = |(name, (text, token))| {
            [(format!("user data of the group {name}"), text), (format!("join token of the group {name}"), token)]
        };
        Ok(groups.flat_map(of_group).collect())
    }

    /// The file of one host.
    pub(super) fn user_data(&self, host: &PlannedHost, volume: Option<&Volume>) -> Result<Option<(String, String)>> {
        let Some(group) = group_of(host) else { return Ok(None) };
        let (text, token) = self.groups.get(group).ok_or_else(|| Error::bug("a host is of no group"))?;
        let volume = volume.map(|volume| format!("{},{}", volume.id.replace('/', "%2F"), volume.name));
        let text = text.replace(API, &self.api).replace(API_SERVERS, &self.api_servers);
        let text = text.replace(TOKEN, token.trim());
        let text = volume.map_or(text.clone(), |volume| text.replace(VOLUME, &volume));
        Ok(Some((user_data_file(&host.name), text)))
    }
}

/// The group whose user data the host has; none of the load balancer.
fn group_of(host: &PlannedHost) -> Option<&str> {
    host.role.map(|role| if role == Role::ControlPlane { CONTROL_PLANE } else { host.group.as_str() })
}
