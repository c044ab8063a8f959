//! `turnup status`: the nodes and addons of a cluster, and where its kubeconfig is. Also the end of `turnup up`.

use serde_json::{Value, json};

use crate::bootstrap::{KUBECONFIG, kubectl};
use crate::cluster::Cluster;
use crate::error::Result;
use crate::report::Table;

use super::run::open_cluster;
use super::{Global, Printer};

/// No options of its own.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

/// Shows the status.
pub(super) fn run(_args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let overview = Overview::read(&*open_cluster(global)?).map_err(|error| match error.next() {
        None => error.hint("turnup up (goes on where something is missing)"),
        Some(_) => error,
    })?;
    overview.print(printer)
}

/// What the API says about a cluster.
pub(super) struct Overview {
    nodes: Vec<[String; 5]>,
    addons: Vec<[String; 3]>,
    kubeconfig: String,
}

impl Overview {
    pub(super) fn read(cluster: &Cluster) -> Result<Self> {
        let kubectl = kubectl(cluster)?;
        let nodes = kubectl.get(&["nodes"])?;
        let selector = "--selector=turnup.dev/addon";
        let workloads = kubectl.get(&["daemonsets,deployments", "--namespace=kube-system", selector])?;
        Ok(Self {
            nodes: items(&nodes).iter().map(node_row).collect(),
            addons: items(&workloads).iter().map(addon_row).collect(),
            kubeconfig: cluster.store.path(KUBECONFIG).display().to_string(),
        })
    }

    pub(super) fn print(&self, printer: &Printer) -> Result<()> {
        if printer.is_json() {
            let node = |row: &[String; 5]| json!({"name": row[0], "status": row[1], "role": row[2], "address": row[3], "version": row[4]});
            let addon = |row: &[String; 3]| json!({"name": row[0], "kind": row[1], "ready": row[2]});
            return printer.json(&json!({
                "schema": "turnup.status/1",
                "nodes": self.nodes.iter().map(node).collect::<Vec<_>>(),
                "addons": self.addons.iter().map(addon).collect::<Vec<_>>(),
                "kubeconfig": self.kubeconfig,
            }));
        }
        let mut nodes = Table::new(&["NODE", "STATUS", "ROLE", "ADDRESS", "VERSION"]);
        for row in &self.nodes {
            nodes.row(row);
        }
        let mut addons = Table::new(&["ADDON", "KIND", "READY"]);
        for row in &self.addons {
            addons.row(row);
        }
        printer.line(nodes.render().trim_end())?;
        if !addons.is_empty() {
            printer.line("")?;
            printer.line(addons.render().trim_end())?;
        }
        printer.line("")?;
        printer.line(&format!("export KUBECONFIG={}", shell_words::quote(&self.kubeconfig)))
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn node_row(node: &Value) -> [String; 5] {
    let find = |list: &Value, kind: &str| {
        list.as_array().and_then(|list| list.iter().find(|item| item["type"] == kind)).cloned()
    };
    let ready = find(&node["status"]["conditions"], "Ready").unwrap_or_default();
    let status =
        if ready["status"] == "True" { "Ready".to_owned() } else { format!("NotReady: {}", text(&ready["message"])) };
    let address = find(&node["status"]["addresses"], "InternalIP").map(|address| text(&address["address"]));
    let labels = node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let roles: Vec<&str> = labels.keys().filter_map(|label| label.strip_prefix("node-role.kubernetes.io/")).collect();
    let version = text(&node["status"]["nodeInfo"]["kubeletVersion"]);
    [text(&node["metadata"]["name"]), status, roles.join(","), address.unwrap_or_default(), version]
}

fn addon_row(workload: &Value) -> [String; 3] {
    let status = &workload["status"];
    let number = |names: [&str; 2]| names.iter().find_map(|name| status[*name].as_u64()).unwrap_or(0);
    let ready = number(["numberReady", "readyReplicas"]);
    let wanted = number(["desiredNumberScheduled", "replicas"]);
    [text(&workload["metadata"]["name"]), text(&workload["kind"]), format!("{ready}/{wanted}")]
}
