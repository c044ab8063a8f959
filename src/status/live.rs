//! What the API says: nodes, pending CSRs of kubelets, and addons.

use serde::Serialize;
use serde_json::Value;

use crate::artifacts::ResolvedArtifacts;
use crate::bootstrap::{
    KUBECONFIG, PendingCsrs, UnansweredWebhook, find_condition, find_pending, find_unanswered, is_ready, kubectl,
};
use crate::cluster::Cluster;
use crate::error::Result;

/// A node.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodeStatus {
    /// Its name.
    pub name: String,
    /// `Ready`, or `NotReady:` and why.
    pub status: String,
    /// Its roles, with commas.
    pub role: String,
    /// Its internal address.
    pub address: String,
    /// Its kubelet's version.
    pub version: String,
}

/// A workload of an addon.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AddonStatus {
    /// Its name.
    pub name: String,
    /// `DaemonSet` or `Deployment`.
    pub kind: String,
    /// Pods that are ready, of how many: `2/3`.
    pub ready: String,
}

/// What the API says about a cluster.
#[derive(Debug)]
pub(crate) struct Live {
    /// The nodes.
    pub nodes: Vec<NodeStatus>,
    /// Requests of kubelets that are pending or denied, or why they cannot be listed.
    pub csrs: Result<PendingCsrs>,
    /// The addons.
    pub addons: Vec<AddonStatus>,
    /// Webhooks that must be asked and do not answer, or why they cannot be listed.
    pub webhooks: Result<Vec<UnansweredWebhook>>,
}

impl Live {
    /// Asks an API that must be there.
    pub(crate) fn read(cluster: &Cluster) -> Result<Self> {
        let kubectl = kubectl(cluster)?;
        let nodes = kubectl.get(&["nodes"])?;
        let selector = "--selector=turnup.dev/addon";
        let workloads = kubectl.get(&["daemonsets,deployments", "--namespace=kube-system", selector])?;
        Ok(Self {
            nodes: items(&nodes).iter().map(NodeStatus::read).collect(),
            csrs: find_pending(cluster, &kubectl),
            addons: items(&workloads).iter().map(AddonStatus::read).collect(),
            webhooks: find_unanswered(&kubectl),
        })
    }

    /// Asks the API; nothing as long as bootstrap has not come so far that there is one.
    pub(super) fn ask(cluster: &Cluster) -> Result<Option<Self>> {
        let started = [KUBECONFIG, ResolvedArtifacts::FILE].iter().all(|file| cluster.store.path(file).is_file());
        if started { Self::read(cluster).map(Some) } else { Ok(None) }
    }
}

impl NodeStatus {
    fn read(node: &Value) -> Self {
        let status = if is_ready(node) {
            "Ready".to_owned()
        } else {
            let message = find_condition(node, "Ready").map(|ready| text(&ready["message"]));
            format!("NotReady: {}", message.unwrap_or_default())
        };
        let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
        let address =
            addresses.find(|address| address["type"] == "InternalIP").map(|address| text(&address["address"]));
        let labels = node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        let roles = labels.keys().filter_map(|label| label.strip_prefix("node-role.kubernetes.io/"));
        Self {
            name: text(&node["metadata"]["name"]),
            status,
            role: roles.collect::<Vec<_>>().join(","),
            address: address.unwrap_or_default(),
            version: text(&node["status"]["nodeInfo"]["kubeletVersion"]),
        }
    }
}

impl AddonStatus {
    fn read(workload: &Value) -> Self {
        let status = &workload["status"];
        let number = |names: [&str; 2]| names.iter().find_map(|name| status[*name].as_u64()).unwrap_or(0);
        let ready = number(["numberReady", "readyReplicas"]);
        let wanted = number(["desiredNumberScheduled", "replicas"]);
        Self {
            name: text(&workload["metadata"]["name"]),
            kind: text(&workload["kind"]),
            ready: format!("{ready}/{wanted}"),
        }
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
