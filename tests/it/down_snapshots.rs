//! `turnup down` of a cluster that knows snapshots of volumes, on hosts where no cloud is: they lie
//! in storage that outlives the cluster.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::{Value, json};

use crate::simulation::Simulation;

const KIND: &str = "volumesnapshots.snapshot.storage.k8s.io";

/// A cluster that has a snapshot by a controller of its own manifests.
fn with_snapshot() -> Simulation {
    let simulation = Simulation::new(1);
    simulation.ok(&["up"]);
    simulation.put("customresourcedefinition", KIND, &json!({}));
    let snapshot = json!({"kind": "VolumeSnapshot", "metadata": {"namespace": "shop", "name": "monday"}});
    simulation.put("volumesnapshot", "monday", &snapshot);
    simulation
}

fn define(simulation: &Simulation) {
    fs_err::write(simulation.state("addons/own-manifests.yaml"), format!("name: {KIND}\n")).unwrap();
}

fn hosts_are_untouched(simulation: &Simulation) -> Value {
    serde_json::from_str(&fs_err::read_to_string(simulation.state("outputs/provision.json")).unwrap()).unwrap()
}

#[test]
fn snapshots_are_named_before_the_cluster_goes() {
    let simulation = with_snapshot();
    define(&simulation);
    let before = hosts_are_untouched(&simulation);
    let refused = simulation.run(&["down", "--yes"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err.contains("what the VolumeSnapshot shop/monday waits for"), "{refused}");
    assert!(refused.err.contains(&format!("next: kubectl delete {KIND} --all --all-namespaces")), "{refused}");
    assert_eq!(hosts_are_untouched(&simulation), before);
    // Left on purpose, it is named; simulated hosts know no reset.
    let told = simulation.run(&["down", "--yes", "--keep-cloud-resources"]).err;
    assert!(told.contains("to be kept: what the VolumeSnapshot shop/monday waits for"), "{told}");
}

#[test]
fn a_cluster_that_cannot_say_whether_it_has_snapshots_is_not_taken_down_unasked() {
    let simulation = with_snapshot();
    simulation.script(&[json!({"tool": "kubectl", "when": ["readyz"], "exit": 1, "stderr": "error: broken\n"})]);
    // Without the kinds among its manifests it is not even asked.
    let unasked = simulation.run(&["down", "--yes"]).err;
    assert!(!unasked.contains("cannot be asked"), "{unasked}");
    define(&simulation);
    let refused = simulation.run(&["down", "--yes"]);
    assert!(refused.err.contains("the cluster cannot be asked what it made in its cloud or storage: "), "{refused}");
    assert!(
        refused.err.contains("to leave it there, if there is any: turnup down --keep-cloud-resources"),
        "{refused}"
    );
    let told = simulation.run(&["down", "--yes", "--keep-cloud-resources"]).err;
    assert!(!told.contains("cannot be asked"), "{told}");
}
