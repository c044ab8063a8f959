//! Load balancers that the cloud controller manager has made for Services. Without it they stay,
//! cost money, and keep the network from being deleted, so turnup removes no such controller while
//! there are any.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bootstrap::Kubectl;
use crate::bootstrap::cloud_resources::CLEANUP;
use crate::cluster::{Addon, CLOUD_CONTROLLER, Cluster};
use crate::error::{Error, Result};

use super::early_look::judge_early;
use super::object::Object;
use super::render::file_of;

/// An error while the controller is among these objects, which are to go, and there are Services
/// whose load balancers it has made.
pub(super) fn require_none(cluster: &Cluster, kubectl: &Kubectl, going: &[Object]) -> Result<()> {
    let addon = Addon::find_cloud_controller(&cluster.source, &cluster.settings.addons)?;
    let is_controller =
        |object: &Object| addon.as_ref().is_some_and(|it| object.name == it.name && object.kind == it.main);
    if going.iter().any(is_controller) { judge(&list(kubectl)?) } else { Ok(()) }
}

/// The same before an earlier phase takes the controller's image, and its rights, away. It asks the
/// cluster only where the addon was on; a cluster that does not answer is asked again by the step
/// that removes it.
pub fn require_no_load_balancers(cluster: &Cluster) -> Result<()> {
    let settings = &cluster.settings.addons;
    let Some(addon) = Addon::find_cloud_controller(&cluster.source, settings)? else { return Ok(()) };
    if addon.is_on(settings) || !settings.prune || !cluster.store.path(file_of(&addon.name)).exists() {
        return Ok(());
    }
    judge_early(cluster, |kubectl| Ok(judge(&list(kubectl)?)))
}

fn list(kubectl: &Kubectl) -> Result<Value> {
    kubectl.get(&["services", "--all-namespaces"])
}

/// An error that names the Services whose load balancers would stay.
fn judge(services: &Value) -> Result<()> {
    let items = services["items"].as_array().into_iter().flatten();
    let has_one = |item: &&Value| {
        let finalizers = item["metadata"]["finalizers"].as_array().into_iter().flatten();
        finalizers.into_iter().any(|finalizer| finalizer == CLEANUP)
    };
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let describe = |item: &Value| {
        let (metadata, ingress) = (&item["metadata"], &item["status"]["loadBalancer"]["ingress"][0]);
        let at = ingress["hostname"].as_str().or_else(|| ingress["ip"].as_str());
        let at = at.map_or_else(String::new, |at| format!(" ({at})"));
        format!("Service {}/{}{at}", text(&metadata["namespace"]), text(&metadata["name"]))
    };
    let left: BTreeSet<String> = items.filter(has_one).map(describe).collect();
    if left.is_empty() {
        return Ok(());
    }
    let count = left.len();
    let what = if count == 1 { "a load balancer".to_owned() } else { format!("{count} load balancers") };
    let message = format!("{what} of Services would stay without the cloud controller manager; nothing was changed");
    Err(Error::precondition(message).evidence_of(left).hint(format!(
        "kubectl delete service -n NAMESPACE NAME, or make it type ClusterIP; or turnup config set {CLOUD_CONTROLLER}=y"
    )))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    #[test]
    fn load_balancers_that_would_stay_are_named_with_the_ways_out() {
        let service = |name: &str, finalizers: Value, status: Value| json!({"metadata": {"namespace": "web", "name": name, "finalizers": finalizers}, "status": status});
        let made = json!({"loadBalancer": {"ingress": [{"hostname": "a1.elb.amazonaws.com"}]}});
        let plain = service("inside", json!([]), json!({}));
        judge(&json!({"items": [plain]})).unwrap();
        let one = service("front", json!([CLEANUP]), made);
        let two = service("waits", json!(["other", CLEANUP]), json!({}));
        let errors = [json!({"items": [plain, one]}), json!({"items": [two, plain, one]})];
        insta::assert_snapshot!(errors.map(|list| judge(&list).unwrap_err().render()).join("\n\n"));
    }
}
