//! The teardown policy of `turnup down`: while a cluster gives back what it made in its cloud,
//! nothing new of that kind may come. A `StatefulSet`, for one, recreates its claim as soon as that
//! is gone. `turnup up` removes the policy that an unfinished `down` has left.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::phase::Cx;

use super::api::Kubectl;

const TEMPLATE: &str = "templates/bootstrap/teardown-policy.yaml";
/// The names of the policy and of its binding.
const NAME: &str = "turnup-down";
/// The same in kubectl's words, the one that makes it count first.
pub(super) const OBJECTS: [&str; 2] =
    ["validatingadmissionpolicybinding/turnup-down", "validatingadmissionpolicy/turnup-down"];
/// How long API servers may need until they heed it: they watch for policies.
const HEED: Duration = Duration::from_mins(1);
/// Between two looks.
const RETRY_INTERVAL: Duration = Duration::from_millis(300);

/// Declares it and waits until it counts.
pub(super) fn declare(cluster: &Cluster, kubectl: &Kubectl, cx: &Cx) -> Result<()> {
    kubectl.clone().within(cx).apply(&cluster.source.read_text(TEMPLATE)?)?;
    wait_until(true, kubectl, cx)
}

fn wait_until(counts: bool, kubectl: &Kubectl, cx: &Cx) -> Result<()> {
    let start = Instant::now();
    while is_heeded(kubectl) != counts {
        if start.elapsed() > HEED {
            return Err(Error::transient(format!("the API server does not notice that the policy {NAME} has changed")));
        }
        cx.sleep(RETRY_INTERVAL)?;
    }
    Ok(())
}

/// Whether a load balancer would be refused because of it, and not because of another policy.
fn is_heeded(kubectl: &Kubectl) -> bool {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "turnup-", "namespace": "kube-system"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let asked = kubectl.run_with(&["create", "--dry-run=server", "--filename=-"], &service.to_string());
    asked.is_err_and(|error| error.evidence_lines().iter().any(|line| line.contains(NAME)))
}

/// Lets everything come again, where it was declared.
pub(super) fn lift(kubectl: &Kubectl, cx: &Cx) -> Result<()> {
    let deleted = kubectl.run(&["delete", OBJECTS[0], OBJECTS[1], "--ignore-not-found"])?;
    if deleted.trim().is_empty() { Ok(()) } else { wait_until(false, kubectl, cx) }
}
