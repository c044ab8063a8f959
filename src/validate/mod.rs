//! Whether the cluster does what a cluster is for: nodes Ready, the control plane up, pods that
//! reach each other, Services and names.
//!
//! It looks through the API only. The one thing that it makes is the namespace of its probe pods,
//! and that it removes again, however the validation ends. It repairs nothing: a failed check says
//! what was seen and which command shows more.

mod probes;
mod report;
mod state;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::addons::observed::Observed;
use crate::bootstrap::{Kubectl, find_unanswered, groups, kubectl};
use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::inventory::Inventory;
use crate::phase::Cx;

pub(crate) use report::{CheckResult, ValidationReport};

use probes::{POLL_INTERVAL, Probes};

/// The time for the requests themselves, beside the patience.
pub(crate) const REQUESTS: Duration = Duration::from_secs(15);

/// Validates the cluster; `deep` starts probe pods on every node. What is not good yet is waited
/// for until `patience` is over or `cx` has no more time.
pub(crate) fn run(cluster: &Cluster, cx: &Cx, deep: bool, patience: Duration) -> Result<ValidationReport> {
    let inventory = cluster.inventory()?;
    let kubectl = kubectl(cluster)?;
    // Without a network of turnup's own, pods can run only where the user's own plugin has made the
    // nodes Ready.
    if !deep || (!cluster.settings.addons.cni && !all_ready(&inventory, &kubectl)?) {
        return Ok(ValidationReport::new(cluster, false, check_state(cluster, &inventory, &kubectl, cx, patience)?));
    }
    let nodes = find_probed(cluster, &inventory, &kubectl)?;
    cx.progress("a probe pod on every node, the pods of kube-system");
    let probes = Probes::new(cluster, &nodes, &kubectl, cx, patience)?;
    let checks = probes.start().and_then(|()| {
        // The first answer must not wait for what has nothing to do with it.
        std::thread::scope(|scope| {
            let state = scope.spawn(|| check_state(cluster, &inventory, &kubectl, cx, patience));
            let answers = probes.check();
            let state = state.join().unwrap_or_else(|_| Err(Error::bug("the thread that looks at the nodes panicked")));
            Ok(state?.into_iter().chain(answers?).collect())
        })
    });
    let removed = probes.remove();
    let checks = checks?;
    removed?;
    Ok(ValidationReport::new(cluster, true, checks))
}

/// The nodes that get a probe pod: the hosts', and those of groups, which only the API server
/// knows.
fn find_probed(cluster: &Cluster, inventory: &Inventory, kubectl: &Kubectl) -> Result<Vec<String>> {
    let tolerated = cluster.settings.validation.max_unready_nodes;
    // The request takes time that most small clusters need not spend.
    let observed = if tolerated > 0 || groups::has_node_groups(cluster)? {
        Observed::parse(&kubectl.get(&["nodes"])?)
    } else {
        Observed::default()
    };
    Ok(state::find_probed(inventory, tolerated, &observed))
}

fn all_ready(inventory: &Inventory, kubectl: &Kubectl) -> Result<bool> {
    let observed = Observed::parse(&kubectl.get(&["nodes"])?);
    Ok(inventory.hosts.iter().all(|host| observed.node(&host.name).is_some_and(|node| node.ready)))
}

/// Nodes, static pods and what is critical, once all is good or nothing gets better any more.
fn check_state(
    cluster: &Cluster,
    inventory: &Inventory,
    kubectl: &Kubectl,
    cx: &Cx,
    patience: Duration,
) -> Result<Vec<CheckResult>> {
    let deadline = Instant::now() + cx.remaining().min(patience);
    let (network, tolerated) = (cluster.settings.addons.cni, cluster.settings.validation.max_unready_nodes);
    let is_over = || Instant::now() >= deadline;
    cx.progress("nodes and the pods of kube-system");
    loop {
        match kubectl.get(&["nodes,pods", "--namespace=kube-system"]) {
            Ok(list) => {
                let mut checks = state::judge(inventory, network, tolerated, &Observed::parse(&list));
                let is_good = |checks: &[CheckResult]| checks.iter().all(|check| check.ok);
                if is_good(&checks) || is_over() {
                    // Asked last, not at each look. Without an answer the nodes' own states count.
                    checks.extend(find_unanswered(kubectl).unwrap_or_default().iter().map(state::judge_webhook));
                    if is_good(&checks) || is_over() {
                        return Ok(checks);
                    }
                }
            }
            Err(error) if error.class() == Class::Transient && !is_over() => {}
            Err(error) => return Err(error.hint("turnup status")),
        }
        cx.sleep(POLL_INTERVAL)?;
    }
}
