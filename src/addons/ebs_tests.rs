//! The CSI driver of Amazon EBS as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::Object;
use super::tests::{differences, render_set};

const ADDON: &str = "aws-ebs-csi-driver";
const ON: [(&str, &str); 2] = [("phase1.cloud_provider", "aws"), ("phase3.cloud_storage", "y")];

fn objects(more: &[(&str, &str)]) -> Vec<(Object, Value)> {
    Object::read(&render_set(ADDON, &[&ON[..], more].concat()).unwrap()).unwrap()
}

#[test]
fn the_csi_driver_of_ebs_as_it_is_applied() {
    insta::assert_snapshot!(render_set(ADDON, &ON).unwrap());
}

#[test]
fn settings_of_volumes_are_in_the_storage_class_and_in_flags() {
    let chosen = [
        ("phase3.cloud_storage_default_class", "n"),
        ("phase3.cloud_storage_reclaim_policy", "Retain"),
        ("phase3.cloud_storage_memory_limit", "1Gi"),
        ("phase3.cloud_storage_log_level", "5"),
        ("phase3.ebs_iops", "4000"),
        ("phase3.ebs_throughput", "1000"),
        ("phase3.ebs_kms_key", "arn:aws:kms:us-east-1:123456789012:key/1"),
        ("phase3.ebs_fs_type", "xfs"),
        ("phase3.ebs_reserved_attachments", "3"),
        ("phase1.control_plane.count", "3"),
    ];
    insta::assert_snapshot!(differences(ADDON, &ON, &[&ON[..], &chosen].concat()));
    let slow = [("phase3.ebs_type", "st1"), ("phase3.ebs_encrypted", "n")];
    insta::assert_snapshot!("a_storage_class_of_hard_disks", differences(ADDON, &ON, &[&ON[..], &slow].concat()));
}

/// With snapshots come the sidecar that makes them, its rights, its Lease and the class; without
/// there is no trace of them.
#[test]
fn snapshots_of_volumes_come_with_their_addon() {
    insta::assert_snapshot!(differences(ADDON, &ON, &[&ON[..], &[("phase3.snapshots", "y")]].concat()));
    assert!(!render_set(ADDON, &ON).unwrap().contains("snapshot.storage.k8s.io"));
}

/// On hosts of the cluster only the metadata service's first hop has credentials, and its pods come
/// to nodes that wait for the cloud controller manager.
#[test]
fn pods_of_the_driver_are_in_the_network_of_their_host_and_tolerate_what_waits() {
    let objects = objects(&[]);
    let pod = |kind: &str| {
        objects.iter().find(|(object, _)| object.kind == kind).unwrap().1["spec"]["template"]["spec"].clone()
    };
    let (controller, node) = (pod("Deployment"), pod("DaemonSet"));
    for pod in [&controller, &node] {
        assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&true.into(), &"Default".into()));
    }
    assert_eq!(node["tolerations"], serde_json::json!([{"operator": "Exists"}]));
    let tolerated = |key: &str| controller["tolerations"].as_array().unwrap().iter().any(|it| it["key"] == key);
    assert!(
        ["node.cloudprovider.kubernetes.io/uninitialized", "node-role.kubernetes.io/control-plane"]
            .into_iter()
            .all(tolerated)
    );
    assert_eq!(controller["nodeSelector"]["node-role.kubernetes.io/control-plane"], "");
    // One container formats and mounts; all others have no privilege at all.
    let containers = [&controller, &node].into_iter().flat_map(|pod| pod["containers"].as_array().unwrap());
    let privileged: Vec<&Value> =
        containers.filter(|it| it["securityContext"]["capabilities"]["drop"] != serde_json::json!(["ALL"])).collect();
    assert_eq!(privileged.len(), 1);
    assert_eq!(
        (&privileged[0]["name"], &privileged[0]["securityContext"]["privileged"]),
        (&"ebs-plugin".into(), &true.into())
    );
}

/// Each sidecar writes the Lease that the role lets it, and the Lease goes with the addon.
#[test]
fn leases_of_sidecars_are_those_that_their_role_names() {
    for more in [&[][..], &[("phase3.snapshots", "y")]] {
        let objects = objects(more);
        let leases: BTreeSet<&str> = objects
            .iter()
            .filter(|(object, _)| object.kind == "Lease")
            .map(|(object, _)| object.name.as_str())
            .collect();
        let role = &objects.iter().find(|(object, _)| object.kind == "Role").unwrap().1;
        let named = role["rules"][0]["resourceNames"].as_array().unwrap().iter();
        assert_eq!(named.map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>(), leases);
        let containers = &objects.iter().find(|(object, _)| object.kind == "Deployment").unwrap().1["spec"]["template"]
            ["spec"]["containers"];
        let electing = containers
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["args"].as_array().unwrap().contains(&"--leader-election=true".into()));
        assert_eq!(electing.count(), leases.len());
    }
}
