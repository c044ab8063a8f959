//! What Terraform is given: the module, its variables and the descriptions of local hosts. Writes
//! nothing and asks no host.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;

use crate::artifacts::Digest;
use crate::cluster::user_data::UserDataSettings;
use crate::cluster::{Cluster, SSH_KEY};
use crate::error::{Error, Result};
use crate::unknown;

use super::custom;
use super::local::{self, HostSpec, NetworkSpec, SERVERS};
use super::local_cloud::{
    Joining, SERVICE, find_volume, groups, service, service_variables, user_data_file, volume_of,
};
use super::planned_hosts::{PlannedHost, api_address, find_balancer, planned_hosts, replaces_hosts};
use super::terraform::{self, BackendConfig, DIR, VARIABLES, pretty};
use super::user_data::{USER_DATA, token_file};
use crate::cloud::{CONTROL_PLANE, Spec, Target};
use crate::document;
use crate::inventory::{Role, ServerList};

/// The folder that the load balancer of a local cluster sees, with its list of servers.
pub(super) const BALANCER_DIR: &str = "provision/balancer";

pub(super) fn spec_file(name: &str) -> String {
    format!("{DIR}/hosts/{name}.json")
}

pub(super) fn host_key(host: &str) -> String {
    format!("ssh/hosts/{host}")
}

pub(super) fn public_key(cluster: &Cluster, key: &str) -> Result<String> {
    let bytes = cluster.store.read(format!("{key}.pub"))?;
    let bytes = bytes.ok_or_else(|| Error::permanent(format!("{key}.pub is missing")).hint("turnup provision"))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if unknown::is_in(&text) {
        return Ok(text);
    }
    Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

/// The module, its variables, the place of its state, and the hosts' descriptions, by their paths
/// below the cluster's directory.
pub(super) fn files(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let mut files = match &cluster.settings.cloud {
        _ if cluster.settings.target.is_custom() => custom::files(cluster)?,
        Some(spec) => [module_files(cluster)?, cloud_variables(cluster, spec)?].concat(),
        None => local_files(cluster)?,
    };
    if let Some(place) = BackendConfig::of(&cluster.settings.driver.backend, &cluster.settings.name) {
        files.push((format!("{DIR}/{}", terraform::BACKEND), place.render()));
    }
    let mirror = &cluster.settings.driver.provider_mirror;
    if !mirror.is_empty() {
        files.push((format!("{DIR}/{}", terraform::CLI_CONFIG), cli_config(cluster, mirror)));
    }
    Ok(files)
}

/// Where providers come from, in the form of Terraform's own configuration.
fn cli_config(cluster: &Cluster, mirror: &str) -> String {
    // A text of JSON is one of this language too.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let source = if mirror.starts_with("https://") || mirror.starts_with("http://") {
        let slash = if mirror.ends_with('/') { "" } else { "/" };
        format!("network_mirror {{\n    url = {}\n  }}", quoted(&format!("{mirror}{slash}")))
    } else {
        let path = cluster.work_dir.join(mirror);
        format!("filesystem_mirror {{\n    path = {}\n  }}", quoted(&path.display().to_string()))
    };
    format!("provider_installation {{\n  {source}\n}}\n")
}

/// What the module is, so that another one is another apply.
pub(super) fn module_digest(cluster: &Cluster) -> Result<String> {
    match cluster.settings.target {
        Target::Custom => custom::digest(cluster),
        target => Ok(cluster.source.digest(&format!("templates/provision/{target}"))),
    }
}

/// The hashes of providers that come with the module. Terraform adds to the file: it is written
/// with the module, and not compared.
pub(super) fn locks(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let text = match cluster.settings.target {
        Target::Custom => custom::lock_file(cluster)?,
        target => {
            let file = format!("templates/provision/{target}/{}", terraform::LOCK_FILE);
            if cluster.source.files(&file).is_empty() { None } else { Some(cluster.source.read_text(&file)?) }
        }
    };
    Ok(text.into_iter().map(|text| (format!("{DIR}/{}", terraform::LOCK_FILE), text)).collect())
}

/// Files in the working directory that Terraform would read and that are none of these: what an
/// earlier configuration or an earlier version of a module of one's own had.
pub(super) fn find_strange(cluster: &Cluster, files: &[(String, String)]) -> Vec<String> {
    let own = [terraform::BACKEND, terraform::CLI_CONFIG].map(|name| format!("{DIR}/{name}"));
    let is_ours = |path: &String| !cluster.settings.target.is_local() || own.contains(path);
    let strange = list_module(cluster).into_iter().filter(is_ours);
    strange.filter(|path| !files.iter().any(|(known, _)| known == path)).collect()
}

/// What Terraform reads in the working directory as it is, by paths below the cluster's directory.
pub(super) fn list_module(cluster: &Cluster) -> Vec<String> {
    const READ: [&str; 5] = [".tf", ".tf.json", ".tfvars", ".tfvars.json", terraform::CLI_CONFIG];
    let files = custom::walk(&cluster.store.path(DIR), &["hosts"]);
    let files = files.into_iter().filter(|file| READ.iter().any(|end| file.ends_with(end)));
    files.map(|file| format!("{DIR}/{file}")).collect()
}

/// The files of turnup's own module for this target.
fn module_files(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let module = format!("templates/provision/{}/", cluster.settings.target);
    for file in cluster.source.files(&module) {
        let name = file.trim_start_matches(&module).to_owned();
        if std::path::Path::new(&name).extension().is_some_and(|ending| ending == "tf") {
            files.push((format!("{DIR}/{name}"), cluster.source.read_text(&file)?));
        }
    }
    Ok(files)
}

/// The variables of a cloud's module, by the paths of their files.
pub(super) fn cloud_variables(cluster: &Cluster, spec: &Spec) -> Result<Vec<(String, String)>> {
    let mut files = vec![(VARIABLES.to_owned(), pretty(&spec.variables(cluster.authorized_keys()?)?)?)];
    let settings = &cluster.settings.user_data;
    let read = |file: &str| -> Result<serde_json::Value> {
        let bytes = cluster.store.read(file)?;
        let bytes = bytes.ok_or_else(|| Error::permanent(format!("{file} is missing")).hint("turnup provision"))?;
        Ok(String::from_utf8_lossy(&bytes).into())
    };
    let (mut texts, mut tokens) = (serde_json::Map::new(), serde_json::Map::new());
    for name in spec.hosts_alike().filter(|_| settings.pull) {
        texts.insert(name.to_owned(), read(&settings.form.file_of(name))?);
        if name != CONTROL_PLANE && !settings.by_identity {
            tokens.insert(name.to_owned(), read(&token_file(name))?);
        }
    }
    files.push((USER_DATA.to_owned(), pretty(&json!({"user_data": texts, "join_tokens": tokens}))?));
    Ok(files)
}

/// The module of the local target, its variables and the hosts' descriptions.
fn local_files(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let mut files = module_files(cluster)?;
    let network = network(cluster)?;
    // Other open ports make no other network and no other host.
    let closed = NetworkSpec { open_ports: Vec::new(), ..network.clone() };
    let digest_of = |spec: &HostSpec| -> Result<Digest> {
        // Nor do other limits, which a host takes while it runs.
        let same = HostSpec { network: closed.clone(), memory: None, cpu_millis: None, ..spec.clone() };
        Ok(Digest::of(pretty(&same)?.as_bytes()))
    };
    let mut hosts = serde_json::Map::new();
    let planned_hosts = planned_hosts(cluster)?;
    let joining = Joining::find(cluster, &planned_hosts)?;
    for host in &planned_hosts {
        let spec = spec(cluster, host, network.clone())?;
        let volume = spec.volume.as_ref().map(|volume| volume_of(&network, volume));
        let text = pretty(&spec)?;
        hosts.insert(
            host.name.clone(),
            json!({
                "role": host.role_name(),
                "group": host.group,
                "address": host.address,
                "spec": cluster.store.path(spec_file(&host.name)),
                "digest": digest_of(&spec)?,
                "limits": spec.describe_limits(),
                "host_key": public_key(cluster, &host_key(&host.name))?,
                "blobs": local::BLOBS,
                "volume": volume,
            }),
        );
        files.push((spec_file(&host.name), text));
        if let Some(joining) = &joining {
            files.extend(joining.user_data(host, volume.as_ref())?);
        }
    }
    let api = api_address(&planned_hosts)?;
    let several = find_balancer(&planned_hosts).is_some();
    if several {
        files.push((server_list_file(), server_list(cluster, api, &planned_hosts)?));
    }
    let variables = json!({"cluster": {
        "name": cluster.settings.name,
        "api": {"host": api, "port": cluster.settings.api_port, "node_balancer": several},
        "network": {
            "spec": cluster.store.path(format!("{DIR}/network.json")),
            "digest": Digest::of(pretty(&closed)?.as_bytes()),
            "open_ports": network.open_ports,
        },
        "hosts": hosts,
        "groups": if joining.is_some() { groups(cluster) } else { Vec::new() },
        "service": joining.as_ref().map(|_| service_variables(cluster, &network)).transpose()?,
    }});
    if joining.is_some() {
        files.push((SERVICE.to_owned(), pretty(&service(cluster, &network))?));
    }
    files.push((format!("{DIR}/network.json"), pretty(&network)?));
    files.push((VARIABLES.to_owned(), pretty(&variables)?));
    Ok(files)
}

fn server_list_file() -> String {
    format!("{BALANCER_DIR}/{SERVERS}")
}

/// The list of the load balancer, which reads it where it lies.
fn server_list(cluster: &Cluster, address: Ipv4Addr, hosts: &[PlannedHost]) -> Result<String> {
    let port = cluster.settings.api_port;
    let control_planes = hosts.iter().filter(|host| host.role == Some(Role::ControlPlane));
    let control_planes = control_planes.map(|host| (host.name.clone(), host.address.into()));
    let list = ServerList::new(SocketAddr::new(address.into(), port), control_planes, port);
    document::render(&server_list_file(), &list)
}

/// The bridge of the hosts.
pub(super) fn network(cluster: &Cluster) -> Result<NetworkSpec> {
    let subnet = cluster.settings.subnet;
    let gateway = subnet.address(1).ok_or_else(|| Error::config(format!("{subnet} has no addresses")))?;
    let id = local::cluster_id(cluster.store.dir());
    let service = replaces_hosts(cluster).then_some(UserDataSettings::LOCAL_PORT);
    let open_ports: BTreeSet<u16> = cluster.settings.open_ports.iter().copied().chain(service).collect();
    let open_ports = open_ports.into_iter().collect();
    Ok(NetworkSpec { bridge: format!("tu-{id}"), gateway, prefix: subnet.prefix(), open_ports })
}

fn spec(cluster: &Cluster, host: &PlannedHost, network: NetworkSpec) -> Result<HostSpec> {
    let store = &cluster.store;
    let id = local::cluster_id(store.dir());
    let cache = cluster.locate_cache()?;
    Ok(HostSpec {
        name: host.name.clone(),
        machine: format!("turnup-{id}-{}", host.offset),
        interface: format!("tu{id}-{}", host.offset),
        address: host.address,
        network,
        dir: store.path(format!("hosts/{}", host.name)),
        root: cache.host_root_path_with(&host.release, &cluster.settings.local_hosts.packages),
        memory: cluster.settings.local_hosts.memory,
        cpu_millis: cluster.settings.local_hosts.cpu_millis,
        authorized_keys: store.path(format!("{SSH_KEY}.pub")),
        host_key: store.path(host_key(&host.name)),
        blobs: cache.blobs_dir(),
        balancer: host.role.is_none().then(|| store.path(BALANCER_DIR)),
        user_data: host.role.filter(|_| replaces_hosts(cluster)).map(|_| store.path(user_data_file(&host.name))),
        is_of_group: host.role == Some(Role::Worker) && replaces_hosts(cluster),
        volume: find_volume(cluster, host),
    })
}
