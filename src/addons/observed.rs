//! What the API server says about nodes, workloads and pods, reduced to what decides whether they
//! work. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::bootstrap::{find_condition, is_ready};

use super::object::{ADDON, HASH, HELD, LEASE, Object, WEBHOOKS};
use super::own::Recorded;

/// On the API's copy of a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A list of objects of the API, taken apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) nodes: Vec<ObservedNode>,
    pub(crate) pods: Vec<Pod>,
    pub(super) workloads: Vec<Workload>,
    /// Every object with the label of an addon, and what changes with every write to it: its
    /// generation, or else its resource version.
    pub(super) addon_objects: BTreeMap<Object, String>,
    /// The hashes that the main objects of addons record.
    pub(super) hashes: BTreeMap<Object, String>,
    /// The inventories of the user's own manifests, by set.
    pub(super) recorded: BTreeMap<String, Recorded>,
}

/// A Node.
#[derive(Clone, Debug)]
pub(crate) struct ObservedNode {
    pub(crate) name: String,
    pub(crate) ready: bool,
    /// What the kubelet, or the control plane in its place, says about it.
    pub(crate) says: String,
    /// What it runs out of: `DiskPressure: kubelet has disk pressure`. Such a node refuses and
    /// evicts pods.
    pub(crate) pressure: Vec<String>,
    /// It came by itself, from the user data of a group: no inventory names it.
    pub(crate) is_of_group: bool,
}

/// A Pod.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about one pod")]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) node: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) phase: String,
    pub(crate) ready: bool,
    pub(crate) terminating: bool,
    /// It is run by kubelet from a file.
    pub(crate) is_static: bool,
    /// Its priority class is one of the system's.
    pub(crate) is_critical: bool,
    pub(crate) restarts: u64,
    /// Why its containers wait: `CrashLoopBackOff: back-off 10s …`.
    pub(crate) waiting: Vec<String>,
    /// Everything that says why it is not ready, in the API's words.
    pub(crate) says: Vec<String>,
    pub(super) owner: Option<String>,
    pub(super) hash: Option<String>,
}

/// A `DaemonSet` or Deployment.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) object: Object,
    /// Whether its controller has seen its newest form.
    pub(super) is_current: bool,
    /// Replicas of a Deployment: wanted, in their newest form, available.
    pub(super) replicas: [u64; 3],
}

impl Observed {
    /// Takes a `v1.List` apart.
    pub(crate) fn parse(list: &Value) -> Self {
        let mut observed = Self::default();
        for item in list["items"].as_array().into_iter().flatten() {
            if item["metadata"]["labels"].get(ADDON).is_some() && item["kind"] != "Pod" {
                observed.add_object(item);
            }
            observed.recorded.extend(Recorded::parse(item));
            match item["kind"].as_str() {
                Some("Node") => observed.nodes.push(ObservedNode::parse(item)),
                Some("Pod") => observed.pods.push(Pod::parse(item)),
                Some("DaemonSet" | "Deployment") => observed.workloads.push(Workload::parse(item)),
                _ => {}
            }
        }
        observed
    }

    /// An object with the label of an addon; not one of another namespace, which is a copy.
    fn add_object(&mut self, item: &Value) {
        let (object, metadata) = (Object::from_json(item), &item["metadata"]);
        if metadata["namespace"].as_str().is_some_and(|namespace| Some(namespace) != object.home()) {
            return;
        }
        self.hashes.extend(optional(&metadata["annotations"][HASH]).map(|hash| (object.clone(), hash)));
        self.addon_objects.insert(object, find_written(item));
    }

    pub(crate) fn node(&self, name: &str) -> Option<&ObservedNode> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

/// What changes with every write to an object: its generation, or else its resource version.
pub(super) fn find_written(item: &Value) -> String {
    let kind = item["kind"].as_str().unwrap_or_default();
    if WEBHOOKS.contains(&kind) {
        return digest_webhooks(item["webhooks"].clone());
    }
    let metadata = &item["metadata"];
    let generation = metadata["generation"].as_u64().map(|number| format!("generation {number}"));
    // What a Lease says is its holder's matter, and new every few seconds; a Secret of the user's
    // is none of these.
    let is_held = kind == LEASE || HELD.contains(&kind) && metadata["labels"].get(ADDON).is_some();
    let generation = generation.or_else(|| is_held.then(|| "there".to_owned()));
    generation.unwrap_or_else(|| format!("version {}", text(&metadata["resourceVersion"])))
}

/// What a webhook configuration says, but for the authority of its pods, which is not the
/// manifest's matter: an injector writes it in.
fn digest_webhooks(mut webhooks: Value) -> String {
    for webhook in webhooks.as_array_mut().into_iter().flatten() {
        if let Some(client) = webhook["clientConfig"].as_object_mut() {
            client.remove("caBundle");
        }
    }
    format!("sha256 {}", hex::encode(Sha256::digest(webhooks.to_string())))
}

impl ObservedNode {
    fn parse(item: &Value) -> Self {
        let ready = find_condition(item, "Ready");
        let says = ready.map_or_else(|| "the kubelet has not reported yet".into(), reason_and_message);
        let conditions = item["status"]["conditions"].as_array().into_iter().flatten();
        let pressed = conditions
            .filter(|condition| condition["status"] == "True" && text(&condition["type"]).ends_with("Pressure"));
        let pressure =
            pressed.map(|condition| format!("{}: {}", text(&condition["type"]), text(&condition["message"]))).collect();
        Self {
            name: text(&item["metadata"]["name"]),
            ready: is_ready(item),
            says,
            pressure,
            is_of_group: item["metadata"]["labels"]["turnup.dev/group"].is_string(),
        }
    }
}

impl Pod {
    fn parse(item: &Value) -> Self {
        let (metadata, spec, status) = (&item["metadata"], &item["spec"], &item["status"]);
        let class = spec["priorityClassName"].as_str().unwrap_or_default();
        let containers: Vec<&Value> = ["initContainerStatuses", "containerStatuses"]
            .iter()
            .flat_map(|name| status[*name].as_array().into_iter().flatten())
            .collect();
        let waiting: Vec<String> = containers
            .iter()
            .filter_map(|container| container["state"].get("waiting"))
            .map(reason_and_message)
            .filter(|text| !text.is_empty())
            .collect();
        let ready = is_ready(item);
        let says = if ready { Vec::new() } else { pod_says(item, &containers, &waiting) };
        Self {
            name: text(&metadata["name"]),
            node: optional(&spec["nodeName"]),
            address: optional(&status["podIP"]),
            phase: text(&status["phase"]),
            ready,
            terminating: metadata.get("deletionTimestamp").is_some(),
            is_static: metadata["annotations"].get(MIRROR).is_some(),
            is_critical: class.starts_with("system-") && class.ends_with("-critical"),
            restarts: containers.iter().filter_map(|container| container["restartCount"].as_u64()).sum(),
            waiting,
            says,
            owner: optional(&metadata["ownerReferences"][0]["name"]),
            hash: optional(&metadata["annotations"][HASH]),
        }
    }

    /// `kube-system/NAME on NODE: Pending: …`.
    pub(crate) fn describe(&self) -> String {
        let node = self.node.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
        let state = if self.terminating { "Terminating" } else { &self.phase };
        let says = if self.says.is_empty() { String::new() } else { format!(": {}", self.says.join("; ")) };
        format!("pod {}{node}: {state}{says}", self.name)
    }

    /// It has ended and will not run again.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == "Failed" || self.phase == "Succeeded"
    }

    /// The same of a pod whose controller runs another one in its place: after a host went down
    /// with it, the ended one stays on the list.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_over() && self.owner.is_some()
    }

    /// A reason that no waiting cures.
    pub(crate) fn stuck(&self) -> Option<&str> {
        let is_final = |reason: &str| {
            reason.starts_with("ErrImageNeverPull")
                || reason.starts_with("InvalidImageName")
                || (reason.starts_with("CrashLoopBackOff") && self.restarts >= 4)
        };
        self.waiting.iter().map(String::as_str).find(|reason| is_final(reason))
    }
}

fn pod_says(item: &Value, containers: &[&Value], waiting: &[String]) -> Vec<String> {
    let mut says = waiting.to_vec();
    for container in containers {
        for state in ["state", "lastState"] {
            if let Some(end) = container[state].get("terminated").filter(|end| end["exitCode"] != 0) {
                let message = end["message"].as_str().unwrap_or_default().trim();
                let separator = if message.is_empty() { "" } else { ": " };
                says.push(format!("ended with exit code {}{separator}{message}", end["exitCode"]));
            }
        }
    }
    // An evicted pod says so at the top of its status.
    says.push(reason_and_message(&item["status"]));
    says.retain(|text| !text.is_empty());
    if let Some(scheduled) = find_condition(item, "PodScheduled").filter(|scheduled| scheduled["status"] == "False") {
        says.push(reason_and_message(scheduled));
    }
    if says.is_empty()
        && let Some(ready) = find_condition(item, "Ready")
    {
        says.push(reason_and_message(ready));
    }
    says.retain(|text| !text.is_empty());
    says
}

impl Workload {
    fn parse(item: &Value) -> Self {
        let (metadata, status) = (&item["metadata"], &item["status"]);
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        Self {
            object: Object::from_json(item),
            is_current: number(&status["observedGeneration"]) >= number(&metadata["generation"]),
            replicas: [&item["spec"]["replicas"], &status["updatedReplicas"], &status["availableReplicas"]].map(number),
        }
    }
}

fn reason_and_message(value: &Value) -> String {
    match (value["reason"].as_str().unwrap_or_default(), value["message"].as_str().unwrap_or_default().trim()) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn optional(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
