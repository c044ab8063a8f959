//! Manifests of addons whose images nodes pull, before a real API server: it takes each object with
//! no unknown field, and their accounts may do what the programs need and no more.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::definitions;
use super::object::Object;
use super::tests::render_set;
use crate::artifacts::Lock;
use crate::bootstrap::api_server::ApiServer;
use crate::bootstrap::{APPLY, Kubectl};

/// Addons, and what switches them on with all that they render.
const ADDONS: [(&str, &[(&str, &str)]); 2] = [
    (
        "headlamp",
        &[
            ("phase3.headlamp", "y"),
            ("phase2.apiserver.oidc_issuer_url", "https://login.example.com"),
            ("phase3.headlamp_single_sign_on", "y"),
            ("phase3.headlamp_base_url", "/headlamp"),
        ],
    ),
    (
        "cluster-autoscaler",
        &[
            ("phase1.cloud_provider", "aws"),
            ("phase1.node_groups", r#"[{"name": "web", "role": "worker", "size": 1, "max": 3}]"#),
            ("phase3.cloud_controller", "y"),
            ("phase3.cluster_autoscaler", "y"),
        ],
    ),
];

/// Applies the manifest of an addon where the API server is to know every field.
pub(super) fn apply_strictly(admin: &Kubectl, addon: &str, on: &[(&str, &str)]) -> String {
    let manifest = render_set(addon, on).unwrap();
    let words = [&APPLY[..], &["--validate=strict", "--filename=-"]].concat();
    let taken = admin.run_with(&words, &manifest);
    assert!(taken.is_ok(), "{addon}: {}", taken.unwrap_err().render());
    manifest
}

/// kubectl's word for the account of an addon.
pub(super) fn as_account(account: &str) -> String {
    format!("--as=system:serviceaccount:kube-system:{account}")
}

/// Whether the account of an addon may do this.
pub(super) fn may(admin: &Kubectl, account: &str, words: &[&str]) -> bool {
    admin.run(&[&["auth", "can-i", &as_account(account), "--namespace=kube-system"], words].concat()).is_ok()
}

#[test]
#[ignore = "starts an API server: make test-addons"]
fn an_api_server_takes_the_manifests_of_addons_that_are_pulled() {
    let api = ApiServer::start(&Lock::embedded().unwrap().default, &[], &[]);
    let admin = api.admin();
    for (addon, on) in ADDONS {
        apply_strictly(&admin, addon, on);
    }
    assert!(!may(&admin, "headlamp", &["list", "pods"]));
    let scaler = |words: &[&str]| may(&admin, "cluster-autoscaler", words);
    assert!(scaler(&["update", "nodes"]) && scaler(&["create", "pods", "--subresource=eviction"]));
    assert!(scaler(&["update", "configmaps/cluster-autoscaler-status"]));
    assert!(scaler(&["update", "leases.coordination.k8s.io/cluster-autoscaler"]));
    for refused in [["delete", "nodes"], ["list", "secrets"], ["update", "configmaps"], ["delete", "pods"]] {
        assert!(!scaler(&refused), "{refused:?}");
    }
}

/// The driver of EBS has a test of its own, of its volumes too.
#[test]
#[ignore = "starts an API server: make test-addons"]
fn an_api_server_takes_the_driver_of_compute_engine_whole() {
    let on = [
        ("phase1.cloud_provider", "gce"),
        ("phase1.control_plane.count", "3"),
        ("phase3.cloud_storage", "y"),
        ("phase3.snapshots", "y"),
    ];
    let api = ApiServer::start(&Lock::embedded().unwrap().default, &["--allow-privileged=true"], &[]);
    let admin = api.admin();
    let snapshots = Object::read(&apply_strictly(&admin, "snapshot-controller", &on)).unwrap();
    let snapshots: Vec<Object> = snapshots.into_iter().map(|(object, _)| object).collect();
    definitions::wait_until_served(&admin, &snapshots).unwrap();
    apply_strictly(&admin, "gcp-compute-persistent-disk-csi-driver", &on);

    let controller = |words: &[&str]| may(&admin, "gcp-pd-csi-controller", words);
    let node = |words: &[&str]| may(&admin, "gcp-pd-csi-node", words);
    assert!(controller(&["create", "persistentvolumes"]) && node(&["get", "nodes"]));
    assert!(controller(&["patch", "volumeattachments.storage.k8s.io", "--subresource=status"]));
    for lease in [
        "pd-csi-storage-gke-io",
        "external-attacher-leader-pd-csi-storage-gke-io",
        "external-resizer-pd-csi-storage-gke-io",
        "external-snapshotter-leader-pd-csi-storage-gke-io",
    ] {
        assert!(controller(&["update", &format!("leases.coordination.k8s.io/{lease}")]), "{lease}");
    }
    for refused in [["get", "secrets"], ["patch", "nodes"], ["update", "leases.coordination.k8s.io/other"]] {
        assert!(!controller(&refused), "{refused:?}");
    }
    for refused in [["patch", "nodes"], ["list", "persistentvolumes"], ["get", "secrets"]] {
        assert!(!node(&refused), "{refused:?}");
    }
}
