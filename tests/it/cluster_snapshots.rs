//! Volume snapshots on a real host, as far as they go without a CSI driver: the kinds are served,
//! one of two controllers leads, a snapshot is taken up, and nothing takes one away unasked.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_addons::apply;
use crate::cluster_reset::on_host;
use crate::cluster_support::Site;

const HOST: &str = "it-control-plane-0";
/// Only what hangs takes as long: a Lease is free after 15 seconds.
const SOON: Duration = Duration::from_mins(2);
const DRIVER: &str = "disk.example.com";
const KINDS: &str = "volumesnapshots.snapshot.storage.k8s.io,volumesnapshotcontents.snapshot.storage.k8s.io,\
    volumesnapshotclasses.snapshot.storage.k8s.io";

#[test]
#[ignore = "builds one more program: make test-addons"]
fn cluster_snapshots_are_taken_up_and_never_lost_unasked() {
    let Some(site) = Site::of_cluster("snapshots", "10.125.27.0/24", 0) else { return };
    site.ok(&["config", "set", "phase3.snapshots=y", "phase3.snapshots_replicas=2"]);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    let first = leader(&site, "");
    a_snapshot_is_taken_up(&site);
    what_no_driver_could_make_says_so(&site);
    it_has_the_rights_that_it_uses(&site);
    another_one_leads_when_the_leader_is_gone(&site, &first);
    a_lost_lease_is_made_again(&site);
    snapshots_are_not_switched_off_unasked(&site);
    snapshots_are_not_taken_down_unasked(&site);
    what_is_switched_off_is_gone(&site);
    what_is_to_be_retained_is_named(&site);
}

/// Asks until it is what it should be.
fn wait_for(site: &Site, what: &str, args: &[&str], is_good: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    loop {
        let said = site.try_kubectl(args);
        match &said {
            Ok(good) if is_good(good) => return good.clone(),
            _ => assert!(start.elapsed() < SOON, "{what}: {said:?}"),
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The pod that leads, once it is another one than this and runs.
fn leader(site: &Site, other: &str) -> String {
    let lease = "lease/snapshot-controller-leader";
    let args = ["get", lease, "--namespace=kube-system", "--output=jsonpath={.spec.holderIdentity}"];
    wait_for(site, "a leader", &args, |holder| holder.starts_with("snapshot-controller-") && holder != other)
}

/// A claim with a volume of a driver that does not exist, made by hand, and a class of that driver.
fn a_snapshot_is_taken_up(site: &Site) {
    let storage = json!({"storage": "1Mi"});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
        "capacity": storage, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": DRIVER, "volumeHandle": "disk-1"},
    }});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": storage}, "storageClassName": "", "volumeName": "disk",
    }});
    let class = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "disks"},
        "driver": DRIVER, "deletionPolicy": "Delete",
    });
    apply(site, "volume", &[volume, claim, class]);
    site.kubectl(&["wait", "--for=jsonpath={.status.phase}=Bound", "persistentvolumeclaim/data", "--timeout=1m"]);
    apply(site, "snapshot", &[snapshot("monday", "data", &json!("disks"))]);
    let content = "jsonpath={.status.boundVolumeSnapshotContentName}";
    let args = ["get", "volumesnapshot", "monday", &format!("--output={content}")];
    let content = wait_for(site, "a content", &args, |name| name.starts_with("snapcontent-"));
    let content: Value =
        serde_json::from_str(&site.kubectl(&["get", "volumesnapshotcontent", &content, "--output=json"])).unwrap();
    assert_eq!(content["spec"]["source"]["volumeHandle"], "disk-1", "{content}");
    assert_eq!(content["spec"]["driver"], DRIVER, "{content}");
    // From here on it is the driver's turn.
    let ready = ["get", "volumesnapshot", "monday", "--output=jsonpath={.status.readyToUse}"];
    assert_eq!(site.kubectl(&ready), "false");
    let events =
        ["get", "events", "--field-selector=involvedObject.name=monday", "--output=jsonpath={.items[*].reason}"];
    wait_for(site, "an event", &events, |reasons| reasons.contains("CreatingSnapshot"));
}

fn snapshot(name: &str, claim: &str, class: &Value) -> Value {
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": name},
        "spec": {"volumeSnapshotClassName": class, "source": {"persistentVolumeClaimName": claim}},
    })
}

/// The class that is missing is named where the user looks.
fn what_no_driver_could_make_says_so(site: &Site) {
    apply(site, "tuesday", &[snapshot("tuesday", "data", &json!("tapes"))]);
    let args = ["get", "volumesnapshot", "tuesday", "--output=jsonpath={.status.error.message}"];
    wait_for(site, "an error", &args, |said| said.contains("tapes"));
}

fn another_one_leads_when_the_leader_is_gone(site: &Site, first: &str) {
    site.kubectl(&["delete", "pod", first, "--namespace=kube-system"]);
    let second = leader(site, first);
    metrics_are_where_the_document_says(site, &second);
    assert_ne!(first, second);
    site.kubectl(&["rollout", "status", "deployment/snapshot-controller", "--namespace=kube-system", "--timeout=2m"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

/// It has the labels of its addon again with the next run that applies the addon.
fn a_lost_lease_is_made_again(site: &Site) {
    site.kubectl(&["delete", "lease", "snapshot-controller-leader", "--namespace=kube-system"]);
    let old = leader(site, "");
    site.ok(&["config", "set", "phase3.snapshots_log_level=5"]);
    site.ok(&["up"]);
    leader(site, &old);
    let lease = "--selector=turnup.dev/addon=snapshot-controller";
    assert!(site.kubectl(&["get", "leases", "--namespace=kube-system", lease, "--output=name"]).contains("leader"));
}

fn it_has_the_rights_that_it_uses(site: &Site) {
    let log = site.kubectl(&[
        "logs",
        "--namespace=kube-system",
        "--selector=app.kubernetes.io/name=snapshot-controller",
        "--tail=-1",
    ]);
    assert!(log.contains("became leader") && !log.contains("forbidden"), "{log}");
    let itself = "--as=system:serviceaccount:kube-system:snapshot-controller";
    for [verb, resource] in [
        ["list", "secrets"],
        ["list", "nodes"],
        ["delete", "persistentvolumeclaims"],
        ["delete", "volumesnapshots.snapshot.storage.k8s.io"],
        ["list", "volumegroupsnapshots.groupsnapshot.storage.k8s.io"],
    ] {
        let may = site.try_kubectl(&["auth", "can-i", verb, resource, "--all-namespaces", itself]);
        assert!(may.is_err(), "{verb} {resource}: {may:?}");
    }
}

fn metrics_are_where_the_document_says(site: &Site, pod: &str) {
    let path = format!("/api/v1/namespaces/kube-system/pods/{pod}:8080/proxy/metrics");
    let said = site.kubectl(&["get", "--raw", &path]);
    assert!(said.contains("snapshot_controller_"), "{said}");
}

/// Neither cluster nor host has changed, and the way out is said.
fn snapshots_are_not_switched_off_unasked(site: &Site) {
    let image = "bash -lc 'crictl images' | grep --count snapshot-controller";
    let before = on_host(site, HOST, image);
    site.ok(&["config", "set", "phase3.snapshots=n"]);
    for command in ["up", "addons", "plan"] {
        let refused = site.fails(4, &[command]);
        let said = refused.out + &refused.err;
        for part in [
            "4 objects of kinds that the addon snapshot-controller defines would be deleted with it; nothing was changed",
            "VolumeSnapshot default/monday",
            "VolumeSnapshot default/tuesday",
            "VolumeSnapshotContent snapcontent-",
            "VolumeSnapshotClass disks",
            "turnup config set phase3.snapshots=y; or, to lose them: kubectl delete volumesnapshots.snapshot.storage.k8s.io,",
        ] {
            assert!(said.contains(part), "{command}: {part}: {said}");
        }
    }
    assert_eq!(on_host(site, HOST, image), before, "the image is there as before");
    let ready = "--output=jsonpath={.status.readyReplicas}";
    assert_eq!(site.kubectl(&["get", "deployment", "snapshot-controller", "--namespace=kube-system", ready]), "2");
    assert_eq!(site.kubectl(&["get", KINDS, "--all-namespaces", "--output=name"]).lines().count(), 4);
}

fn snapshots_are_not_taken_down_unasked(site: &Site) {
    let refused = site.fails(4, &["down", "--yes"]).err;
    for part in [
        "snapshots of volumes would stay in their storage, and nothing would know of them any more",
        "of VolumeSnapshot default/monday (disk.example.com)",
        "what the VolumeSnapshot default/tuesday waits for",
        "kubectl delete volumesnapshots.snapshot.storage.k8s.io --all --all-namespaces, then turnup down; \
         to leave them there: turnup down --keep-cloud-resources",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(site.ready_nodes(), [HOST]);
}

fn what_is_switched_off_is_gone(site: &Site) {
    // What the refusal said. Without a driver, what it would take from a content goes by hand.
    let deleted = site.try_kubectl(&["delete", KINDS, "--all", "--all-namespaces", "--wait=false"]);
    assert!(deleted.is_ok(), "{deleted:?}");
    let contents = site.kubectl(&["get", "volumesnapshotcontents", "--output=name"]);
    for content in contents.lines() {
        let patch = "--patch={\"metadata\": {\"finalizers\": null}}";
        drop(site.try_kubectl(&["patch", content, "--type=merge", patch]));
    }
    wait_for(site, "no snapshots", &["get", KINDS, "--all-namespaces", "--output=name"], |left| left.trim().is_empty());
    site.ok(&["up"]);
    let kinds = "customresourcedefinitions,deployments,leases,serviceaccounts,roles,rolebindings,clusterroles,\
        clusterrolebindings";
    let of_it = |name: &&str| name.contains("snapshot");
    let left = site.kubectl(&["get", kinds, "--all-namespaces", "--output=name"]);
    assert_eq!(left.lines().filter(of_it).collect::<Vec<_>>(), [""; 0], "{left}");
    let selector = "--selector=app.kubernetes.io/name=snapshot-controller";
    site.kubectl(&["wait", "--for=delete", "pod", "--namespace=kube-system", selector, "--timeout=2m"]);
    let leases = site.kubectl(&["get", "leases", "--namespace=kube-system", "--output=name"]);
    assert!(!leases.contains("snapshot"), "{leases}");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

/// Switched on once more, with a snapshot that was there before the cluster.
fn what_is_to_be_retained_is_named(site: &Site) {
    site.ok(&["config", "set", "phase3.snapshots=y"]);
    site.ok(&["up"]);
    let content = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent", "metadata": {"name": "old"},
        "spec": {
            "driver": DRIVER, "deletionPolicy": "Retain", "source": {"snapshotHandle": "id-1"},
            "volumeSnapshotRef": {"namespace": "default", "name": "friday"},
        },
    });
    apply(site, "content", &[content]);
    let told = site.ok(&["down", "--yes"]).err;
    for word in ["to be kept", "kept, no longer managed by turnup"] {
        let line = format!("{word}: the snapshot old of VolumeSnapshot default/friday ({DRIVER}, id-1)");
        assert!(told.contains(&line), "{line}: {told}");
    }
}
