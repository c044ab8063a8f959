//! Whether components run with what their configuration says: `/configz` of every kubelet, through
//! the API; `/flagz` of the static pods of each control-plane host and kube-proxy's `/configz`, on
//! the host itself, because they answer nowhere else. Held against the node configs that were
//! written for their hosts, and against the addon as it was applied.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::bootstrap::{Kubectl, kubectl, node_config_file};
use crate::cluster::Cluster;
use crate::component::{Mismatch, compare_fields, compare_flags};
use crate::error::{Context as _, Result};
use crate::inventory::{Host, Role};
use crate::node::layout;
use crate::node::node_config::{Content, NodeConfig};
use crate::parallel;

use super::gap::Gap;

/// Asks the components of a control-plane host: `$1` is the API server's port. Each answer stands
/// behind the name of its component; one that does not serve the path answers nothing, as before
/// Kubernetes 1.36. The certificates of two of them are their own, and 127.0.0.1 is this host.
const QUESTION: &str = r#"ask() {
  echo "component $1"
  /opt/turnup/bin/kubectl --kubeconfig="$2" --server="$3" --insecure-skip-tls-verify --request-timeout=10s get --raw "$4" 2>/dev/null
}
admin=/etc/kubernetes/admin.conf
ask kube-apiserver "$admin" "https://127.0.0.1:$1" /flagz
ask kube-controller-manager "$admin" https://127.0.0.1:10257 /flagz
ask kube-scheduler "$admin" https://127.0.0.1:10259 /flagz
ask kube-proxy /dev/null http://127.0.0.1:10249 /configz
true"#;
const STATIC_PODS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
const KUBE_PROXY: &str = "kube-proxy";
const KUBE_PROXY_MANIFEST: &str = "addons/kube-proxy.yaml";
/// A host that has not answered by then does not answer.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A value that a component of a host does not run with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComponentDrift {
    /// The host.
    pub node: String,
    /// `kubelet`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`, `kube-proxy`.
    pub component: &'static str,
    /// The value.
    #[serde(flatten)]
    pub mismatch: Mismatch,
}

/// Asks the components of these hosts; what cannot be asked becomes a gap.
pub(super) fn ask(cluster: &Cluster, hosts: &[&Host]) -> Result<(Vec<ComponentDrift>, Vec<Gap>)> {
    let kubectl = kubectl(cluster)?;
    let answers = parallel::map(hosts, parallel::HOSTS, |host| ask_kubelet(cluster, &kubectl, host));
    let of_kubelets = hosts.iter().map(|host| format!("the kubelet of {}", host.name)).zip(answers);
    let control_planes: Vec<&Host> = hosts.iter().copied().filter(|host| host.role == Role::ControlPlane).collect();
    let manifest = cluster.store.read(KUBE_PROXY_MANIFEST)?.unwrap_or_default();
    let kube_proxy = find_kube_proxy(&String::from_utf8_lossy(&manifest));
    let ask_static_pods = |host: &&Host| ask_control_plane(cluster, host, kube_proxy.as_ref());
    let answers = parallel::map(&control_planes, parallel::HOSTS, ask_static_pods);
    let of_static_pods = control_planes.iter().map(|host| format!("the static pods of {}", host.name)).zip(answers);
    let (mut drifts, mut gaps) = (Vec::new(), Vec::new());
    for (what, answer) in of_kubelets.chain(of_static_pods) {
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

fn ask_control_plane(cluster: &Cluster, host: &Host, kube_proxy: Option<&Value>) -> Result<Vec<ComponentDrift>> {
    let Some(node_config) = find_node_config(cluster, host)? else { return Ok(Vec::new()) };
    let port = cluster.settings.api_port.to_string();
    let said = cluster.ssh(host)?.timeout(TIMEOUT).run(&["sh", "-c", QUESTION, "sh", &port])?.stdout;
    Ok(compare_answers(host, &node_config, kube_proxy, &said))
}

/// What the answers to [`QUESTION`] say otherwise than the node config and kube-proxy's
/// configuration.
fn compare_answers(
    host: &Host,
    node_config: &NodeConfig,
    kube_proxy: Option<&Value>,
    said: &str,
) -> Vec<ComponentDrift> {
    let mut drifts = Vec::new();
    for (name, answer) in said.split("component ").filter_map(|part| part.split_once('\n')) {
        if let Some(component) = STATIC_PODS.into_iter().find(|component| *component == name) {
            let pod = find_yaml(node_config, |path| layout::static_pod(path) == Some(component));
            let command = pod.map(|pod| &pod["spec"]["containers"][0]["command"]);
            let words = command.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let flags = words.filter(|word| word.starts_with("--"));
            drifts.extend(name_drifts(host, component, compare_flags(flags, answer)));
        } else if let (KUBE_PROXY, Some(declared), Ok(said)) = (name, kube_proxy, serde_json::from_str::<Value>(answer))
        {
            let said = &said["kubeproxy.config.k8s.io"];
            // Before Kubernetes 1.36 it shows names of its own (`Mode`), in another order.
            let is_of_the_file = said["mode"].is_string();
            let found = if is_of_the_file { compare_fields(declared, said) } else { Vec::new() };
            drifts.extend(name_drifts(host, KUBE_PROXY, found));
        }
    }
    drifts
}

/// The parts of kube-proxy's configuration of which each counts in one mode, the one of its name.
const MODES: [&str; 4] = ["iptables", "ipvs", "nftables", "winkernel"];

/// kube-proxy's configuration in its manifest, as far as it counts in its mode.
fn find_kube_proxy(manifest: &str) -> Option<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).ok()?;
    let map =
        objects.iter().find(|object| object["kind"] == "ConfigMap" && object["metadata"]["name"] == KUBE_PROXY)?;
    let mut config: Value = serde_saphyr::from_str(map["data"]["config.yaml"].as_str()?).ok()?;
    let mode = config["mode"].as_str().unwrap_or_default().to_owned();
    config.as_object_mut()?.retain(|part, _| *part == mode || !MODES.contains(&part.as_str()));
    Some(config)
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;
    use crate::node::node_config::{File, sample};

    #[test]
    fn each_component_is_compared_with_what_was_declared_for_it() {
        let host: Host = serde_json::from_value(json!({"name": "cp-0", "role": "control-plane", "address": "10.0.0.1",
            "instance": "1", "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAA"}}))
        .unwrap();
        let mut node_config: NodeConfig = serde_json::from_value(sample()).unwrap();
        for (pod, flag) in [("kube-scheduler", "--v=2"), ("kube-controller-manager", "--kube-api-qps=30")] {
            let manifest = json!({"spec": {"containers": [{"command": [pod, flag]}]}});
            let path = format!("/etc/kubernetes/manifests/{pod}.yaml");
            node_config.files.push(File::new(&path, 0o600, 0, Content::Yaml(manifest)));
        }
        let manifest = "kind: Service\nmetadata: {name: kube-proxy}\n---\nkind: ConfigMap\nmetadata: {name: kube-proxy}\n\
                        data:\n  config.yaml: |\n    kind: KubeProxyConfiguration\n    mode: nftables\n    nftables: {syncPeriod: 40s}\n    iptables: {syncPeriod: 40s}\n";
        let declared = find_kube_proxy(manifest);
        let nftables = json!({"syncPeriod": "40s"});
        let expected = json!({"kind": "KubeProxyConfiguration", "mode": "nftables", "nftables": nftables});
        assert_eq!(declared, Some(expected), "what counts in another mode is not in effect");
        let said = "component kube-apiserver\ncomponent kube-controller-manager\n\nflagz\nkube-api-qps=20\n\
                    component kube-scheduler\nv=2\ncomponent kube-proxy\n{\"kubeproxy.config.k8s.io\": {\"mode\": \"iptables\", \"nftables\": {\"syncPeriod\": \"40s\"}}}\n";
        let found = compare_answers(&host, &node_config, declared.as_ref(), said);
        let found: Vec<(&str, String)> =
            found.iter().map(|drift| (drift.component, format!("{:?}", drift.mismatch))).collect();
        let differs = |entry: &str, declared: &str, effective: &str| {
            let (entry, declared) = (entry.to_owned(), declared.to_owned());
            format!("{:?}", Mismatch { entry, declared, effective: Some(effective.to_owned()) })
        };
        assert_eq!(
            found,
            [
                ("kube-controller-manager", differs("--kube-api-qps", "30", "20")),
                ("kube-proxy", differs("mode", "nftables", "iptables")),
            ]
        );
        let of_before =
            "component kube-proxy\n{\"kubeproxy.config.k8s.io\": {\"Mode\": \"iptables\", \"SyncPeriod\": \"40s\"}}\n";
        assert!(compare_answers(&host, &node_config, declared.as_ref(), of_before).is_empty(), "Kubernetes 1.35");
    }
}
