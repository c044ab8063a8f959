//! The manifests of the CSI driver of EBS before a real API server: it knows every field, rights
//! are those of the addon, nothing is left of it, and what keeps it is read from real lists. No
//! driver runs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::object::Object;
use super::pulled_run_tests::{apply_strictly, may};
use super::tests::render_set;
use super::{definitions, driver_volumes, prune};
use crate::artifacts::Lock;
use crate::bootstrap::Kubectl;
use crate::bootstrap::api_server::ApiServer;
use crate::cluster::Addon;
use crate::config::TreeSource;

const ON: [(&str, &str); 4] = [
    ("phase1.cloud_provider", "aws"),
    ("phase1.control_plane.count", "3"),
    ("phase3.cloud_storage", "y"),
    ("phase3.snapshots", "y"),
];

/// Applies it, and returns its objects.
fn apply(admin: &Kubectl, addon: &str) -> Vec<Object> {
    Object::read(&apply_strictly(admin, addon, &ON)).unwrap().into_iter().map(|(object, _)| object).collect()
}

fn volume(name: &str, policy: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "20Gi"}, "persistentVolumeReclaimPolicy": policy,
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0a1"}}})
}

#[test]
#[ignore = "starts an API server: make test-addons"]
fn the_api_server_takes_the_driver_of_ebs_whole_and_nothing_of_it_stays() {
    let api = ApiServer::start(&Lock::embedded().unwrap().default, &["--allow-privileged=true"], &[]);
    let admin = api.admin();
    let of_snapshots = apply(&admin, "snapshot-controller");
    definitions::wait_until_served(&admin, &of_snapshots).unwrap();
    let wanted: BTreeSet<Object> = apply(&admin, "aws-ebs-csi-driver").into_iter().collect();
    let found = prune::find_objects(&admin).unwrap().addon_objects;
    assert!(wanted.iter().all(|object| found.contains_key(object)), "{found:?}");

    for (account, words) in [
        ("aws-ebs-csi-controller", &["create", "persistentvolumes"][..]),
        ("aws-ebs-csi-controller", &["patch", "volumeattachments.storage.k8s.io", "--subresource=status"]),
        (
            "aws-ebs-csi-controller",
            &["update", "leases.coordination.k8s.io/ebs-csi-aws-com", "--namespace=kube-system"],
        ),
        ("aws-ebs-csi-node", &["get", "nodes"]),
    ] {
        assert!(may(&admin, account, words), "{account} {words:?}");
    }
    for (account, words) in [
        ("aws-ebs-csi-controller", &["get", "secrets", "--namespace=kube-system"][..]),
        ("aws-ebs-csi-controller", &["patch", "nodes"]),
        ("aws-ebs-csi-controller", &["update", "leases.coordination.k8s.io/other", "--namespace=kube-system"]),
        ("aws-ebs-csi-node", &["patch", "nodes"]),
        ("aws-ebs-csi-node", &["list", "persistentvolumes"]),
    ] {
        assert!(!may(&admin, account, words), "{account} {words:?}");
    }

    let addons = Addon::all(&TreeSource::embedded()).unwrap();
    let going: Vec<Object> = wanted.iter().cloned().collect();
    let judge = || driver_volumes::judge_going(&admin, &going, &addons);
    judge().unwrap();
    admin.apply(&volume("pvc-1", "Delete").to_string()).unwrap();
    let attachment = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "csi-1"},
        "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "web-1", "source": {"persistentVolumeName": "pvc-1"}}});
    admin.apply(&attachment.to_string()).unwrap();
    let content = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": "snapcontent-1"}, "spec": {"driver": "ebs.csi.aws.com", "deletionPolicy": "Delete",
        "source": {"snapshotHandle": "snap-0a1"}, "volumeSnapshotRef": {"namespace": "default", "name": "monday"}}});
    admin.apply(&content.to_string()).unwrap();
    let refused = judge().unwrap_err().render();
    assert!(refused.contains("| PersistentVolume pvc-1 of the claim default/data (20Gi, vol-0a1)\n"), "{refused}");
    assert!(refused.contains("| VolumeSnapshotContent snapcontent-1 of the snapshot default/monday\n"), "{refused}");
    assert!(refused.contains("phase3.cloud_storage=y") && !refused.contains("VolumeAttachment"), "{refused}");
    for words in ["volumeattachment/csi-1", "volumesnapshotcontent/snapcontent-1", "persistentvolume/pvc-1"] {
        assert!(judge().is_err());
        // No controller runs here that would take the finalizer away.
        admin.run(&["patch", words, "--type=merge", "--patch={\"metadata\":{\"finalizers\":null}}"]).unwrap();
        admin.run(&["delete", words]).unwrap();
    }
    judge().unwrap();

    let found = prune::find_objects(&admin).unwrap().addon_objects;
    let rest = Object::read(&render_set("snapshot-controller", &ON).unwrap()).unwrap();
    let gone = prune::superfluous(&found, rest.iter().map(|(object, _)| object));
    assert_eq!(gone.iter().cloned().collect::<BTreeSet<_>>(), wanted);
    prune::remove(&admin, &gone).unwrap();
    let left = prune::find_objects(&admin).unwrap().addon_objects;
    assert!(prune::superfluous(&left, rest.iter().map(|(object, _)| object)).is_empty(), "{left:?}");
}
