//! The cluster autoscaler as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::object::Object;
use super::tests::{differences, render_set};

const ADDON: &str = "cluster-autoscaler";
const ON: [(&str, &str); 4] = [
    ("phase1.cloud_provider", "aws"),
    ("phase1.node_groups", r#"[{"name": "web", "role": "worker", "size": 1, "max": 3}]"#),
    ("phase3.cloud_controller", "y"),
    ("phase3.cluster_autoscaler", "y"),
];

#[test]
fn the_cluster_autoscaler_as_it_is_applied() {
    insta::assert_snapshot!(render_set(ADDON, &ON).unwrap());
}

#[test]
fn settings_of_the_cluster_autoscaler_are_its_flags() {
    let chosen = [
        ("phase3.cluster_autoscaler_expander", "most-pods"),
        ("phase3.cluster_autoscaler_balance", "y"),
        ("phase3.cluster_autoscaler_utilization", "100"),
        ("phase3.cluster_autoscaler_unneeded_time", "3m"),
        ("phase3.cluster_autoscaler_delay_after_add", "5m"),
        ("phase3.cluster_autoscaler_skip_local_storage", "n"),
        ("phase3.cluster_autoscaler_skip_system_pods", "n"),
        ("phase3.cluster_autoscaler_memory_limit", "1Gi"),
        ("phase3.cluster_autoscaler_log_level", "4"),
    ];
    insta::assert_snapshot!(
        "settings_of_the_cluster_autoscaler",
        differences(ADDON, &ON, &[&ON[..], &chosen].concat())
    );
    let only_grows = [&ON[..], &[("phase3.cluster_autoscaler_scale_down", "n")]].concat();
    insta::assert_snapshot!("a_cluster_autoscaler_that_takes_no_host_away", differences(ADDON, &ON, &only_grows));
}

/// It makes the hosts that everything else waits for, and has the role of a control-plane host.
#[test]
fn the_cluster_autoscaler_runs_where_no_group_is() {
    let objects = Object::read(&render_set(ADDON, &ON).unwrap()).unwrap();
    let deployment = &objects.iter().find(|(object, _)| object.kind == "Deployment").unwrap().1["spec"];
    let pod = &deployment["template"]["spec"];
    assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&true.into(), &"Default".into()));
    assert_eq!(pod["nodeSelector"], serde_json::json!({"node-role.kubernetes.io/control-plane": ""}));
    // Two pods of one host would want one port.
    assert_eq!((&deployment["replicas"], &deployment["strategy"]["type"]), (&1.into(), &"Recreate".into()));
}
