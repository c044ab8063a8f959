//! The manifest of Compute Engine's cloud controller manager before a real API server: it knows
//! every field, and the account may do what the controller does and delete no other Node than those
//! whose machine is known. No controller runs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::pulled_run_tests::{apply_strictly, as_account, may};
use crate::artifacts::Lock;
use crate::bootstrap::Kubectl;
use crate::bootstrap::api_server::ApiServer;

const ADDON: &str = "gcp-cloud-controller-manager";
const ON: [(&str, &str); 2] = [("phase1.cloud_provider", "gce"), ("phase3.cloud_controller", "y")];
const MACHINE: &str = "gce://p/us-central1-a/c1-web-1";

fn create(admin: &Kubectl, node: &Value) {
    admin.run_with(&["create", "--filename=-"], &node.to_string()).unwrap();
}

fn node(name: &str, labels: &Value, machine: Option<&str>, provider_id: Option<&str>) -> Value {
    let annotations = machine.map_or_else(|| json!({}), |machine| json!({"turnup.dev/machine": machine}));
    let spec = provider_id.map_or_else(|| json!({}), |provider_id| json!({"providerID": provider_id}));
    let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec})
}

/// Why the controller may not delete this Node; none where it did.
fn delete(admin: &Kubectl, name: &str) -> Option<String> {
    admin.run(&["delete", "node", name, "--wait=false", &as_account(ADDON)]).err().map(|error| error.render())
}

#[test]
#[ignore = "starts an API server: make test-addons"]
fn the_cloud_controller_manager_of_compute_engine_deletes_nodes_whose_machine_is_known_alone() {
    let api = ApiServer::start(&Lock::embedded().unwrap().default, &[], &[]);
    let admin = api.admin();
    apply_strictly(&admin, ADDON, &ON);
    let controller = |words: &[&str]| may(&admin, ADDON, words);
    for allowed in [
        &["delete", "nodes"][..],
        &["patch", "nodes", "--subresource=status"],
        &["patch", "services", "--subresource=status"],
        &["list", "services"],
        &["watch", "configmaps/ingress-uid"],
        &["update", "leases.coordination.k8s.io/gcp-cloud-controller-manager"],
    ] {
        assert!(controller(allowed), "{allowed:?}");
    }
    for refused in [["list", "secrets"], ["create", "configmaps"], ["list", "configmaps"], ["delete", "services"]] {
        assert!(!controller(&refused), "{refused:?}");
    }
    let control_plane = json!({"node-role.kubernetes.io/control-plane": ""});
    let main = node("main", &control_plane, Some(MACHINE), Some(MACHINE));
    create(&admin, &main);
    // A policy counts some time after it was made.
    let start = Instant::now();
    let why = loop {
        match delete(&admin, "main") {
            Some(why) => break why,
            None => create(&admin, &main),
        }
        assert!(start.elapsed() < Duration::from_mins(1), "the policy does not count");
        std::thread::sleep(Duration::from_millis(500));
    };
    assert!(why.contains("a Node of the control plane is its host's"), "{why}");
    for (name, machine, provider_id, why) in [
        ("unknown", None, None, Some("the Node has no provider ID")),
        ("another", Some("gce://p/us-central1-b/c1-web-1"), Some(MACHINE), Some("the Node is another machine's")),
        ("gone", Some(MACHINE), Some(MACHINE), None),
        ("unseen", None, Some(MACHINE), None),
    ] {
        create(&admin, &node(name, &json!({}), machine, provider_id));
        let said = delete(&admin, name);
        let fits = match (&said, why) {
            (Some(said), Some(why)) => said.contains(why),
            (None, None) => true,
            _ => false,
        };
        assert!(fits, "{name}: {said:?}");
    }
}
