//! The CSI driver of Compute Engine as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::Object;
use super::tests::{differences, render_set, render_with};
use crate::cluster::ClusterSettings;
use crate::config::{Settings, TreeSource};

const ADDON: &str = "gcp-compute-persistent-disk-csi-driver";
const ON: [(&str, &str); 2] = [("phase1.cloud_provider", "gce"), ("phase3.cloud_storage", "y")];

fn objects(more: &[(&str, &str)]) -> Vec<(Object, Value)> {
    Object::read(&render_set(ADDON, &[&ON[..], more].concat()).unwrap()).unwrap()
}

#[test]
fn the_csi_driver_of_compute_engine_as_it_is_applied() {
    insta::assert_snapshot!(render_set(ADDON, &ON).unwrap());
}

#[test]
fn settings_of_volumes_are_in_the_storage_class_and_in_flags() {
    let chosen = [
        ("phase3.cloud_storage_default_class", "n"),
        ("phase3.cloud_storage_reclaim_policy", "Retain"),
        ("phase3.cloud_storage_memory_limit", "1Gi"),
        ("phase3.cloud_storage_log_level", "5"),
        ("phase3.pd_type", "pd-ssd"),
        ("phase3.pd_fs_type", "xfs"),
        ("phase1.control_plane.count", "3"),
    ];
    insta::assert_snapshot!(differences(ADDON, &ON, &[&ON[..], &chosen].concat()));
}

/// With snapshots come the sidecar that makes them, its rights, its Lease and the class; without
/// there is no trace of them.
#[test]
fn snapshots_of_volumes_come_with_their_addon() {
    insta::assert_snapshot!(differences(ADDON, &ON, &[&ON[..], &[("phase3.snapshots", "y")]].concat()));
    assert!(!render_set(ADDON, &ON).unwrap().contains("snapshot.storage.k8s.io"));
}

/// The host's own account has the rights, and pods come to nodes that wait for the cloud controller
/// manager.
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
        (&"pd-plugin".into(), &true.into())
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

/// Both pods speak with the API server: they start again with its authorities.
#[test]
fn pods_of_the_driver_start_again_with_the_authorities_of_the_api() {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(&ON).unwrap();
    let typed = ClusterSettings::read(&settings, std::path::Path::new("/work")).unwrap();
    let manifests = render_with(&source, &typed, "1,2").unwrap();
    let text = &manifests.iter().find(|manifest| manifest.name == ADDON).unwrap().text;
    let pods = Object::read(text).unwrap();
    let pods = pods.iter().filter(|(object, _)| ["DaemonSet", "Deployment"].contains(&object.kind.as_str()));
    let marks: Vec<&Value> =
        pods.map(|(_, it)| &it["spec"]["template"]["metadata"]["annotations"]["turnup.dev/kubernetes-ca"]).collect();
    assert_eq!(marks, ["1,2", "1,2"]);
}
