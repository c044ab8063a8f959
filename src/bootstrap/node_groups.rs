//! Node groups, whose hosts join by themselves; and the step `wait-groups`, which waits until each
//! group has as many Nodes as it has hosts, and until their kubelets have a certificate to serve
//! with. turnup does not log in to these hosts. It knows their Nodes, whether their kubelets are
//! alive, and their CSRs. Where an autoscaler decides, its lower bound is enough.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::HostGroup;
use crate::phase::{Action, Check, Cx, Inputs};

use super::api::{Kubectl, kubectl};
use super::csr_approver::{self, PendingCsr, Policy};
use super::group_node::{BALANCER, GROUP, GroupNode, find_nodes};
use super::node_context::NodeContext;

/// Between two looks.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);

/// Waits for the hosts of node groups.
pub(super) struct WaitForGroups(pub(super) NodeContext);

/// How many Nodes a group has to have.
pub(super) const fn wanted(group: &HostGroup) -> u32 {
    match (group.max, group.min) {
        (None, _) => group.size,
        (Some(_), Some(min)) => min,
        (Some(_), None) => 0,
    }
}

/// A line for each group that is not complete. A machine that died leaves its Node behind: only
/// kubelets that speak count.
fn find_missing(groups: &[HostGroup], nodes: &Value) -> Vec<String> {
    let all = find_nodes(nodes);
    let describe = |group: &HostGroup| {
        let own = all.iter().filter(|node| node.group == group.name);
        let (silent, speaking): (Vec<&GroupNode<'_>>, Vec<_>) = own.partition(|node| node.silent_since.is_some());
        if u32::try_from(speaking.len()).is_ok_and(|count| count >= wanted(group)) {
            return None;
        }
        let silent: Vec<&str> = silent.iter().map(|node| node.name).collect();
        let silent = if silent.is_empty() { String::new() } else { format!(" (silent: {})", silent.join(", ")) };
        Some(format!("{}: {} of {} hosts have joined{silent}", group.name, speaking.len(), wanted(group)))
    };
    groups.iter().filter_map(describe).collect()
}

/// What is still missing: hosts, and serving certificates of their kubelets. And the requests to
/// join that are not approved.
fn look(kubectl: &Kubectl, groups: &[HostGroup], policy: &Policy) -> Result<(Vec<String>, Vec<String>)> {
    let mut missing = find_missing(groups, &kubectl.get(&["nodes", "--selector", GROUP])?);
    let pending = csr_approver::look(kubectl, policy)?;
    let unserved = pending.serving.into_iter().filter(|csr| csr.why.is_none());
    missing.extend(unserved.map(|csr| format!("{}: its kubelet waits for a certificate to serve with", csr.node)));
    let in_vain =
        |PendingCsr { node, request, why }: PendingCsr| Some(format!("{node} asks to join ({request}): {}", why?));
    Ok((missing, pending.joining.into_iter().filter_map(in_vain).collect()))
}

/// The Nodes of groups whose machines were made before nodes had a balancer of their own.
pub fn find_without_balancer(cluster: &Cluster) -> Result<Vec<String>> {
    Ok(without_balancer(&kubectl(cluster)?.get(&["nodes", "--selector", GROUP])?))
}

fn without_balancer(nodes: &Value) -> Vec<String> {
    let lacks_it = |node: &&Value| {
        let labels = &node["metadata"]["labels"];
        labels[GROUP].is_string() && !labels[BALANCER].is_string()
    };
    let nodes = nodes["items"].as_array().into_iter().flatten().filter(lacks_it);
    nodes.filter_map(|node| node["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

impl Action for WaitForGroups {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let wanted: Vec<String> =
            self.0.inventory.groups.iter().map(|group| format!("{} {}", group.name, wanted(group))).collect();
        Ok(Inputs::new()
            .with("host instance", self.0.inventory.control_plane_instances())
            .with("groups", wanted.join(", ")))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let nodes = kubectl(&self.0.cluster)?.get(&["nodes", "--selector", GROUP])?;
        let missing = find_missing(&self.0.inventory.groups, &nodes);
        Ok(missing.into_iter().next().map_or(Check::Ok, Check::Drifted))
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let kubectl = kubectl(&self.0.cluster)?.within(cx);
        let policy = Policy::of(&self.0.cluster, &self.0.inventory)?;
        let mut told = Vec::new();
        loop {
            let (missing, in_vain) = look(&kubectl, &self.0.inventory.groups, &policy)?;
            if missing.is_empty() {
                return Ok(());
            }
            let all = [missing, in_vain].concat();
            if cx.remaining() < RETRY_INTERVAL * 3 {
                return Err(late(&all));
            }
            if all != told {
                cx.progress(all.join("; "));
                told = all;
            }
            cx.sleep(RETRY_INTERVAL)?;
        }
    }
}

fn late(missing: &[String]) -> Error {
    let error = Error::transient("groups of hosts that join by themselves are not complete");
    missing.iter().fold(error, Error::evidence).hint(
        "look at the console of such a machine, or on it: journalctl -u turnup-node (it says what it cannot fetch or reach); of its requests on a control-plane host: journalctl -u turnup-csr-approver; then: turnup up",
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    fn group(name: &str, size: u32, min: Option<u32>, max: Option<u32>) -> HostGroup {
        HostGroup { name: name.into(), role: crate::inventory::Role::Worker, size, min, max }
    }

    fn nodes(groups: &[&str]) -> Value {
        let node = |group: &&str| json!({"metadata": {"labels": {GROUP: group}}});
        json!({"items": groups.iter().map(node).collect::<Vec<_>>()})
    }

    #[test]
    fn a_host_of_a_group_without_the_label_of_a_balancer_has_none() {
        let node = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
        let list = json!({"items": [
            node("web-old", json!({GROUP: "web"})),
            node("web-new", json!({GROUP: "web", BALANCER: "true"})),
            // turnup logs in there, so that it has what the inventory says.
            node("cp-0", json!({})),
        ]});
        assert_eq!(without_balancer(&list), ["web-old"]);
    }

    #[test]
    fn a_group_is_complete_when_its_hosts_are_nodes() {
        let all = [group("web", 2, None, None), group("batch", 5, Some(1), Some(9)), group("spare", 3, None, Some(4))];
        let missing = |come: &[&str]| find_missing(&all, &nodes(come));
        assert_eq!(missing(&[]), ["web: 0 of 2 hosts have joined", "batch: 0 of 1 hosts have joined"]);
        assert_eq!(missing(&["web", "batch", "other"]), ["web: 1 of 2 hosts have joined"]);
        assert!(missing(&["web", "web", "batch"]).is_empty() && missing(&["web"; 9]).len() == 1);
        let mut dead = nodes(&["web", "web", "batch"]);
        dead["items"][1]["metadata"]["name"] = "web-2".into();
        dead["items"][0]["status"] = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        assert!(find_missing(&all, &dead).is_empty(), "not ready before there is a network for pods, but it speaks");
        dead["items"][1]["status"] = json!({"conditions": [{"type": "Ready", "status": "Unknown"}]});
        assert_eq!(find_missing(&all, &dead), ["web: 1 of 2 hosts have joined (silent: web-2)"]);
        let error = late(&missing(&["web"])).render();
        assert!(
            error.contains("  | web: 1 of 2 hosts have joined\n") && error.contains("journalctl -u turnup-node"),
            "{error}"
        );
    }

    #[test]
    fn hosts_are_waited_for_and_what_their_kubelets_serve_with() {
        let fake = csr_approver::tests::Fake::new();
        let answer = |name: &str, items: &[&Value]| fake.answer(name, &json!({"items": items}));
        let kubectl = fake.kubectl();
        let look =
            |size: u32| look(&kubectl, &[group("web", size, None, None)], &csr_approver::tests::policy()).unwrap();
        let mut host = csr_approver::tests::node("web-1", "10.0.0.1");
        host["metadata"]["labels"] = json!({GROUP: "web"});
        answer("nodes", &[&host]);
        answer("requests", &[]);
        assert_eq!(look(2).0, ["web: 1 of 2 hosts have joined"]);
        assert!(look(1).0.is_empty());
        let request = |name: &str, asked: &str| {
            let mut request = csr_approver::tests::request(name, &[asked]);
            request["metadata"]["name"] = json!(name);
            request
        };
        answer("requests", &[&request("web-1", "10.0.0.1")]);
        assert_eq!(look(1).0, ["web-1: its kubelet waits for a certificate to serve with"]);
        answer("requests", &[&request("web-1", "10.0.0.2"), &request("stranger", "10.0.0.1")]);
        assert!(look(1).0.is_empty(), "a request that is not approved is not waited for");
        let mut attacker = csr_approver::tests::joining("web", "cp-0");
        attacker["status"] = json!({"conditions": [{"type": "Denied", "message": "turnup: cp-0 is reserved"}]});
        answer("requests", &[&attacker, &csr_approver::tests::joining("web", "web-2")]);
        assert_eq!(look(2).1, ["cp-0 asks to join (csr-cp-0): denied: turnup: cp-0 is reserved"], "web-2 is in time");
    }
}
