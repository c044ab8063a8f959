//! Whether the bearer of a join token, or a machine by its cloud's word, may become a Node: the
//! client certificate of a kubelet, for a new name of the node group, and of a machine for its own;
//! and whether a host that turnup logs in to may be its Node again. Pure.
//!
//! A certificate for the name of a Node is that Node: its pods, their Secrets and tokens. So a name
//! that is taken is never given again. It is free when its kubelet has been silent for five
//! minutes, after which Kubernetes has evicted its pods, or when its Node is deleted.

use serde_json::Value;

use crate::inventory::is_label;

use super::super::token;
use super::csr::{CLIENT, CsrDecision, host, is_of_joiner, is_plain, machine, name_of, texts};
use super::policy::Policy;
use super::request::Der;
use super::view::{View, time};

/// What a kubelet asks to use the certificate for.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "client auth"];

/// Requests of others (nodes that renew, hosts that turnup logs in to, people) are ignored: another
/// approver decides about them.
pub(super) fn judge(request: &Value, view: &View, policy: &Policy) -> CsrDecision {
    if let Some(host) = host(request) {
        return judge_host(request, host, view);
    }
    let spec = &request["spec"];
    let group_prefix = format!("{}:", token::BOOTSTRAPPERS);
    let mut groups = texts(&spec["groups"]).into_iter().filter_map(|group| group.strip_prefix(&group_prefix));
    let Some(group) = groups.next().filter(|_| is_of_joiner(request)) else { return CsrDecision::Ignore };
    if groups.next().is_some() {
        return CsrDecision::deny("SeveralNodeGroups", "its user is of several node groups");
    }
    let Some(prefix) = policy.name_prefix(group) else {
        return CsrDecision::Wait(format!("this control-plane host does not know the node group {group}: turnup up"));
    };
    let node = match read_node(spec) {
        Ok(node) => node,
        Err(why) => return CsrDecision::deny("NotAKubelet", why),
    };
    if let Some(machine) = machine(request)
        && machine != format!("{group}:{node}")
    {
        let machine = machine.rsplit(':').next().unwrap_or_default();
        let why = format!("its cloud says that it is the machine {machine}, and it asks to be the node {node}");
        return CsrDecision::deny("NotThisMachine", why);
    }
    if policy.denies_node(&node) {
        return CsrDecision::deny(
            "ReservedName",
            format!("{node} is reserved: an API server, a Service or another host has this name"),
        );
    }
    if policy.group_of(&node) != Some(group) {
        let why = match policy.group_of(&node) {
            Some(other) => {
                format!("the node name {node} is one of the node group {other}, and the host is of {group}")
            }
            None => format!("the node name {node} does not begin with {prefix}, as those of the node group {group} do"),
        };
        return CsrDecision::deny("OtherNodeGroup", why);
    }
    judge_name(request, &node, group, view)
}

/// A host that turnup logs in to, whose kubelet's certificate has ended: it may be the Node again
/// that it was. One whose Node is deleted was removed from the cluster.
fn judge_host(request: &Value, host: &str, view: &View) -> CsrDecision {
    match read_node(&request["spec"]) {
        Err(why) => return CsrDecision::deny("NotAKubelet", why),
        Ok(node) if node != host => {
            return CsrDecision::deny("NotThisHost", format!("the host {host} asks to be the node {node}"));
        }
        Ok(_) => {}
    }
    let Some(known) = view.nodes.get(host) else {
        return CsrDecision::Wait("there is no such Node; if the host belongs to the cluster: turnup up".into());
    };
    if known.group.is_some() {
        return CsrDecision::deny("NotThisHost", format!("the Node {host} belongs to a node group"));
    }
    if view.is_silent(host) {
        return CsrDecision::Approve;
    }
    CsrDecision::Wait("its kubelet is alive; it gets this when it has been silent for five minutes".into())
}

/// Whether the name is free.
fn judge_name(request: &Value, node: &str, group: &str, view: &View) -> CsrDecision {
    if let Some(at) = view.find_issued(node, name_of(request)) {
        let why = format!("another request for {node} was approved at {at}");
        return CsrDecision::Wait(format!("{why}; the name is free a minute later, unless that host has joined"));
    }
    let Some(known) = view.nodes.get(node) else { return CsrDecision::Approve };
    if known.is_control_plane {
        return CsrDecision::deny("ReservedName", format!("{node} is a control-plane host"));
    }
    if known.group.as_deref() != Some(group) {
        return CsrDecision::deny(
            "OtherNodeGroup",
            format!("the Node {node} does not belong to the node group {group}"),
        );
    }
    let created = time(&request["metadata"]["creationTimestamp"]);
    if created.is_some_and(|created| view.has_spoken_since(node, created)) {
        return CsrDecision::deny("NodeIsAlive", format!("the Node {node} exists and its kubelet is alive"));
    }
    if known.is_gone {
        return CsrDecision::Approve;
    }
    let free = "its name is free when its kubelet has been silent for five minutes";
    CsrDecision::Wait(format!("the Node {node} exists; {free}, or at once: kubectl delete node {node}"))
}

/// The name of the Node for which a kubelet asks, when it asks as a kubelet does and for nothing
/// else.
fn read_node(spec: &Value) -> Result<String, String> {
    let usages = texts(&spec["usages"]);
    if let Some(other) = usages.iter().find(|usage| !USAGES.contains(usage)) {
        return Err(format!("it asks for the usage {other}"));
    }
    if !usages.contains(&"client auth") {
        return Err("it does not ask for the usage client auth".into());
    }
    let der = Der::decode(spec["request"].as_str().unwrap_or_default())?;
    let request = der.read()?;
    let foreign =
        || format!("it asks to be {}, and a kubelet is O=system:nodes, CN=system:node:NAME", request.subject());
    let node = request.node().filter(|node| is_label(node)).ok_or_else(foreign)?;
    if !request.sans().is_empty() {
        return Err("it asks for names or addresses, and a client has none".into());
    }
    request.check_key()?;
    if request.is_exactly(node, &[]) { Ok(node.to_owned()) } else { Err(foreign()) }
}

/// Nothing when this is the request of one host that turnup itself gave this token to, else why
/// not.
pub(in crate::bootstrap) fn check_host(request: &Value, host: &str, token_id: &str) -> Result<(), String> {
    let spec = &request["spec"];
    if !is_plain(name_of(request)) {
        return Err("no kubelet gives a request such a name".into());
    }
    if spec["signerName"] != CLIENT {
        return Err(format!("it is for the signer {}", spec["signerName"]));
    }
    if spec["username"] != format!("{}{token_id}", token::USER) {
        return Err(format!("it comes from {}", spec["username"]));
    }
    let node = read_node(spec)?;
    if node == host { Ok(()) } else { Err(format!("it asks to be the node {node}")) }
}

/// The Node for whose name a bearer of any token asks, whatever else the request says.
pub(in crate::bootstrap) fn find_node(request: &Value) -> Option<String> {
    let der = Der::decode(request["spec"]["request"].as_str()?).ok()?;
    Some(der.read().ok()?.node()?.to_owned())
}
