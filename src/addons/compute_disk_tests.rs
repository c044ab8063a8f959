//! The CSI driver of Compute Engine as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::tests::{differences, render_set};

const ADDON: &str = "gcp-compute-persistent-disk-csi-driver";
const ON: [(&str, &str); 2] = [("phase1.cloud_provider", "gce"), ("phase3.cloud_storage", "y")];

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
