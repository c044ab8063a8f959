//! What the API knows of Nodes at one moment, as far as requests are judged by it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::super::condition::find_condition;
use super::super::group_node::{GONE_AFTER, GROUP, silent_since};
use super::csr::{CLIENT, is_of_joiner, name_of};
use super::request::Der;

/// A label that no kubelet can give or take by itself (the admission plugin `NodeRestriction`).
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// How long a host whose request was approved may take until its Node is there.
const REGISTERING: SignedDuration = SignedDuration::from_mins(1);
/// By how much the clocks of a node and of the API server may differ.
const SKEW: SignedDuration = SignedDuration::from_secs(30);

/// All of it.
pub(super) struct View {
    pub(super) nodes: BTreeMap<String, NodeView>,
    /// When each kubelet last renewed its Lease, by the clock of its node.
    leases: BTreeMap<String, Timestamp>,
    /// Client certificates that were approved for hosts that join: the Node's name, the
    /// request's, and when.
    issued: Vec<(String, String, Timestamp)>,
    now: Timestamp,
}

/// One Node.
pub(super) struct NodeView {
    pub(super) addresses: BTreeSet<IpAddr>,
    /// Its names in DNS.
    pub(super) names: BTreeSet<String>,
    pub(super) is_control_plane: bool,
    /// The node group with which it joined.
    pub(super) group: Option<String>,
    /// Its kubelet has been silent for so long that its name and addresses may be another
    /// machine's.
    pub(super) is_gone: bool,
}

impl NodeView {
    fn new(node: &Value, now: Timestamp) -> Self {
        let list = node["status"]["addresses"].as_array().into_iter().flatten();
        let list = list.filter_map(|address| address["address"].as_str());
        let addresses = list.clone().filter_map(|address| address.parse::<IpAddr>().ok());
        let names = list.filter(|address| address.parse::<IpAddr>().is_err());
        let labels = &node["metadata"]["labels"];
        Self {
            addresses: addresses.map(|address| address.to_canonical()).collect(),
            names: names.map(str::to_owned).collect(),
            is_control_plane: labels[CONTROL_PLANE].is_string(),
            group: labels[GROUP].as_str().map(str::to_owned),
            is_gone: silent_since(node).is_some_and(|since| now.duration_since(since) >= GONE_AFTER),
        }
    }
}

impl View {
    /// From lists of the API: Nodes, Leases of kubelets, and all requests.
    pub(super) fn new(nodes: &Value, leases: &Value, requests: &[Value], now: Timestamp) -> Self {
        let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
        let renewed = |lease: &Value| Some((name_of(lease).to_owned(), time(&lease["spec"]["renewTime"])?));
        Self {
            nodes: items(nodes).iter().map(|node| (name_of(node).to_owned(), NodeView::new(node, now))).collect(),
            leases: items(leases).iter().filter_map(renewed).collect(),
            issued: requests.iter().filter_map(issued).collect(),
            now,
        }
    }

    /// Whether the kubelet of this Node has spoken since: not from before, whatever the clocks say.
    pub(super) fn has_spoken_since(&self, node: &str, since: Timestamp) -> bool {
        self.leases.get(node).is_some_and(|renewed| renewed.duration_since(since) > SKEW)
    }

    /// Whether the kubelet of this Node has been silent for so long that it is not running, by the
    /// API or by its Lease: a control plane that was off as well has not noticed yet.
    pub(super) fn is_silent(&self, node: &str) -> bool {
        let is_old = |renewed: &Timestamp| self.now.duration_since(*renewed) >= GONE_AFTER;
        self.nodes.get(node).is_some_and(|known| known.is_gone) || self.leases.get(node).is_some_and(is_old)
    }

    /// When another request for this name was approved, while its host may be about to register its
    /// Node.
    pub(super) fn find_issued(&self, node: &str, request: &str) -> Option<Timestamp> {
        let others = self.issued.iter().filter(|(name, other, _)| name == node && other != request);
        others.map(|(_, _, at)| *at).filter(|at| self.now.duration_since(*at) < REGISTERING).max()
    }
}

/// A client certificate that was approved for a host that joins.
fn issued(request: &Value) -> Option<(String, String, Timestamp)> {
    let spec = &request["spec"];
    if spec["signerName"] != CLIENT || !is_of_joiner(request) {
        return None;
    }
    let approved = find_condition(request, "Approved")?;
    let der = Der::decode(spec["request"].as_str()?).ok()?;
    let node = der.read().ok()?.node()?.to_owned();
    let at = time(&approved["lastUpdateTime"]).or_else(|| time(&request["metadata"]["creationTimestamp"]))?;
    Some((node, name_of(request).to_owned(), at))
}

/// A time as the API writes it.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
