//! The cloud controller manager as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::object::Object;
use super::tests::{differences, render_set};

pub(super) const ADDON: &str = "aws-cloud-controller-manager";
pub(super) const ON: [(&str, &str); 2] = [("phase1.cloud_provider", "aws"), ("phase3.cloud_controller", "y")];

#[test]
fn the_cloud_controller_manager_as_it_is_applied() {
    insta::assert_snapshot!(render_set(ADDON, &ON).unwrap());
}

#[test]
fn settings_of_the_cloud_controller_manager_are_its_flags_and_its_cloud_config() {
    let chosen = [
        ("phase3.cloud_controller_nlb_security_groups", "n"),
        ("phase3.cloud_controller_concurrent_services", "5"),
        ("phase3.cloud_controller_log_level", "4"),
        ("phase3.cloud_controller_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences(ADDON, &ON, &[&ON[..], &chosen].concat()));
}

/// It comes before the network of pods, before names of Services, and on nodes that wait for it.
#[test]
fn the_cloud_controller_manager_waits_for_no_other_addon() {
    let objects = Object::read(&render_set(ADDON, &ON).unwrap()).unwrap();
    let pod = &objects.iter().find(|(object, _)| object.kind == "DaemonSet").unwrap().1["spec"]["template"]["spec"];
    assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&true.into(), &"Default".into()));
    let tolerated = |key: &str| pod["tolerations"].as_array().unwrap().iter().any(|it| it["key"] == key);
    let keys = ["node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/control-plane"];
    assert!(keys.into_iter().all(tolerated), "{pod:#}");
    // What nodes need before it lets them in tolerates every taint.
    for addon in ["flannel", "kube-proxy"] {
        let objects = Object::read(&render_set(addon, &ON).unwrap()).unwrap();
        let daemon = &objects.iter().find(|(object, _)| object.kind == "DaemonSet").unwrap().1;
        let all = serde_json::json!([{"operator": "Exists"}]);
        assert_eq!(daemon["spec"]["template"]["spec"]["tolerations"], all, "{addon}");
    }
}
