//! Whether components run with what their configuration says: `/configz` of every kubelet and
//! `/flagz` of an API server, held against the node configs that were written for their hosts.

use serde::Serialize;
use serde_json::Value;

use crate::bootstrap::{Kubectl, kubectl, node_config_file};
use crate::cluster::Cluster;
use crate::component::{Mismatch, compare_fields, compare_flags, find_flag};
use crate::error::{Context as _, Result};
use crate::inventory::{Host, Role};
use crate::node::layout;
use crate::node::node_config::{Content, NodeConfig};
use crate::parallel;

use super::gap::Gap;

const API_SERVER: &str = "kube-apiserver";
/// How many components are asked at once.
const PARALLEL: usize = 16;

/// A value that a component of a host does not run with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComponentDrift {
    /// The host.
    pub node: String,
    /// `kubelet`, `kube-apiserver`.
    pub component: &'static str,
    /// The value.
    #[serde(flatten)]
    pub mismatch: Mismatch,
}

/// Asks the kubelets of these hosts and the API server that the kubeconfig leads to; what cannot
/// be asked becomes a gap.
pub(super) fn ask(cluster: &Cluster, hosts: &[&Host]) -> Result<(Vec<ComponentDrift>, Vec<Gap>)> {
    let kubectl = kubectl(cluster)?;
    let answers = parallel::map(hosts, PARALLEL, |host| ask_kubelet(cluster, &kubectl, host));
    let of_kubelets = hosts.iter().map(|host| format!("the kubelet of {}", host.name)).zip(answers);
    let of_api_server = ("the API server".to_owned(), ask_api_server(cluster, &kubectl, hosts));
    let (mut drifts, mut gaps) = (Vec::new(), Vec::new());
    for (what, answer) in of_kubelets.chain([of_api_server]) {
        match answer {
            Ok(found) => drifts.extend(found),
            Err(error) => gaps.push(Gap::new(what, error)),
        }
    }
    Ok((drifts, gaps))
}

fn ask_kubelet(cluster: &Cluster, kubectl: &Kubectl, host: &Host) -> Result<Vec<ComponentDrift>> {
    let Some(node_config) = find_node_config(cluster, host)? else { return Ok(Vec::new()) };
    let Some(declared) = find_yaml(&node_config, |path| path == layout::KUBELET_CONFIG) else { return Ok(Vec::new()) };
    let Some(said) = get(kubectl, &format!("/api/v1/nodes/{}/proxy/configz", host.name))? else {
        return Ok(Vec::new());
    };
    let said: Value = serde_json::from_str(&said).context("kubelet's /configz is no JSON")?;
    Ok(name_drifts(host, "kubelet", compare_fields(declared, &said["kubeletconfig"])))
}

/// Of several API servers one answers, and its flags say which.
fn ask_api_server(cluster: &Cluster, kubectl: &Kubectl, hosts: &[&Host]) -> Result<Vec<ComponentDrift>> {
    let Some(said) = get(kubectl, "/flagz")? else { return Ok(Vec::new()) };
    let address = find_flag(&said, "advertise-address").unwrap_or_default();
    let mut control_planes = hosts.iter().filter(|host| host.role == Role::ControlPlane);
    let Some(host) = control_planes.find(|host| host.address.to_string() == address) else { return Ok(Vec::new()) };
    let Some(node_config) = find_node_config(cluster, host)? else { return Ok(Vec::new()) };
    let pod = find_yaml(&node_config, |path| layout::static_pod(path) == Some(API_SERVER)).unwrap_or(&Value::Null);
    let command = pod["spec"]["containers"][0]["command"].as_array().into_iter().flatten();
    let flags = command.filter_map(Value::as_str).filter(|word| word.starts_with("--"));
    Ok(name_drifts(host, API_SERVER, compare_flags(flags, &said)))
}

fn name_drifts(host: &Host, component: &'static str, found: Vec<Mismatch>) -> Vec<ComponentDrift> {
    let drift = |mismatch| ComponentDrift { node: host.name.clone(), component, mismatch };
    found.into_iter().map(drift).collect()
}

/// The answer to a path; nothing from a component that does not serve it: `/flagz` before
/// Kubernetes 1.36, `/configz` of a kubelet without debugging handlers.
fn get(kubectl: &Kubectl, path: &str) -> Result<Option<String>> {
    match kubectl.run(&["get", "--raw", path]) {
        Ok(said) => Ok(Some(said)),
        Err(error) if error.evidence_lines().iter().any(|line| line.contains("(NotFound)")) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What was last written for the host.
fn find_node_config(cluster: &Cluster, host: &Host) -> Result<Option<NodeConfig>> {
    let file = node_config_file(&host.name);
    let Some(bytes) = cluster.store.read(&file)? else { return Ok(None) };
    NodeConfig::parse(&file, &String::from_utf8_lossy(&bytes)).map(Some)
}

fn find_yaml(node_config: &NodeConfig, is_wanted: impl Fn(&str) -> bool) -> Option<&Value> {
    let file = node_config.files.iter().find(|file| is_wanted(&file.path))?;
    match &file.content {
        Content::Yaml(value) => Some(value),
        _ => None,
    }
}
