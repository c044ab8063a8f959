//! Volumes and snapshots that the CSI driver of an addon has made, or holds. Without it nothing
//! attaches, detaches or deletes them, so turnup removes no driver while there are any. It deletes
//! none of them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bootstrap::Kubectl;
use crate::cluster::{Addon, Cluster};
use crate::error::{Error, Result};

use super::early_look::{find_leaving, judge_early};
use super::object::{ADDON, DRIVER, Object};

/// Where volumes of a driver show, and the driver itself: its label says which addon has brought
/// it.
const VOLUMES: [&str; 4] =
    ["persistentvolumes", "persistentvolumeclaims", "volumeattachments.storage.k8s.io", "csidrivers.storage.k8s.io"];
/// Only clusters with snapshots know it.
const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";
/// On a claim for which a driver is making a volume.
const AWAITED: &str = "volume.kubernetes.io/storage-provisioner";

/// An error while a driver is among these objects, which are to go, and it has volumes.
pub(super) fn require_none(cluster: &Cluster, kubectl: &Kubectl, going: &[Object]) -> Result<()> {
    judge_going(kubectl, going, &Addon::all(&cluster.source)?)
}

/// The same, with the addons that there are.
pub(super) fn judge_going(kubectl: &Kubectl, going: &[Object], addons: &[Addon]) -> Result<()> {
    let drivers = drivers_of(going);
    if drivers.is_empty() { Ok(()) } else { judge(&drivers, &list(kubectl)?, addons) }
}

/// The same before an earlier phase takes the rights of the driver's hosts away. It asks the
/// cluster only where a driver was on.
pub fn require_no_driver_volumes(cluster: &Cluster) -> Result<()> {
    let leaving = find_leaving(cluster)?;
    if drivers_of(&leaving).is_empty() {
        return Ok(());
    }
    let addons = Addon::all(&cluster.source)?;
    judge_early(cluster, |kubectl| Ok(judge(&drivers_of(&leaving), &list(kubectl)?, &addons)))
}

fn drivers_of(objects: &[Object]) -> BTreeSet<&str> {
    objects.iter().filter(|object| object.kind == DRIVER).map(|object| object.name.as_str()).collect()
}

fn list(kubectl: &Kubectl) -> Result<Value> {
    let definition = format!("customresourcedefinition/{CONTENTS}");
    let defined = kubectl.run(&["get", &definition, "--ignore-not-found", "--output=name"])?;
    let more = [CONTENTS].into_iter().filter(|_| !defined.trim().is_empty());
    let kinds: Vec<&str> = VOLUMES.into_iter().chain(more).collect();
    kubectl.get(&[kinds.join(",").as_str(), "--all-namespaces"])
}

/// An error that names what would stay.
fn judge(drivers: &BTreeSet<&str>, list: &Value, addons: &[Addon]) -> Result<()> {
    let items = || list["items"].as_array().into_iter().flatten();
    let is_of = |driver: &Value| driver.as_str().is_some_and(|name| drivers.contains(name));
    let held: Vec<&Value> = items().filter(|item| is_held(item, &is_of)).collect();
    // One that is attached is named as the volume that it is.
    let names: BTreeSet<&str> = held.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
    let is_named = |item: &Value| {
        item["spec"]["source"]["persistentVolumeName"].as_str().is_some_and(|volume| names.contains(volume))
    };
    let left: BTreeSet<String> = held.iter().filter(|item| !is_named(item)).map(|item| describe(item)).collect();
    if left.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = drivers.iter().copied().collect();
    let what = if left.len() == 1 {
        "a volume or snapshot".to_owned()
    } else {
        format!("{} volumes and snapshots", left.len())
    };
    let message = format!("{what} would stay without the CSI driver {}; nothing was changed", names.join(" and "));
    let of = |item: &Value| item["metadata"]["labels"][ADDON].as_str().map(str::to_owned);
    let brought: BTreeSet<String> =
        items().filter(|item| item["kind"] == DRIVER && is_of(&item["metadata"]["name"])).filter_map(of).collect();
    let switches = addons.iter().filter(|addon| brought.contains(&addon.name));
    let keep: BTreeSet<String> = switches.map(|addon| format!("{}=y", addon.switch)).collect();
    let keep: Vec<String> = keep.into_iter().collect();
    let keep = if keep.is_empty() { String::new() } else { format!("turnup config set {}; or, ", keep.join(" ")) };
    Err(Error::precondition(message).evidence_of(left).hint(format!(
        "{keep}to lose what is on them, delete claims and snapshots: kubectl delete pvc NAME --namespace=NAMESPACE"
    )))
}

/// Whether the object stands for something that its driver alone can attach, detach or delete.
fn is_held(item: &Value, is_of: &dyn Fn(&Value) -> bool) -> bool {
    let (spec, phase) = (&item["spec"], &item["status"]["phase"]);
    match item["kind"].as_str() {
        // The driver is done with one whose claim is gone and that is to be kept.
        Some("PersistentVolume") => {
            let is_kept = phase == "Released" && spec["persistentVolumeReclaimPolicy"] == "Retain";
            is_of(&spec["csi"]["driver"]) && !is_kept
        }
        Some("PersistentVolumeClaim") => is_of(&item["metadata"]["annotations"][AWAITED]) && phase == "Pending",
        Some("VolumeAttachment") => is_of(&spec["attacher"]),
        Some("VolumeSnapshotContent") => is_of(&spec["driver"]) && spec["deletionPolicy"] == "Delete",
        _ => false,
    }
}

fn describe(item: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let (kind, spec, name) = (text(&item["kind"]), &item["spec"], text(&item["metadata"]["name"]));
    let pair = |of: &Value| format!("{}/{}", text(&of["namespace"]), text(&of["name"]));
    match kind.as_str() {
        "PersistentVolume" if spec["claimRef"].is_object() => {
            let (size, handle) = (text(&spec["capacity"]["storage"]), text(&spec["csi"]["volumeHandle"]));
            format!("PersistentVolume {name} of the claim {} ({size}, {handle})", pair(&spec["claimRef"]))
        }
        "PersistentVolumeClaim" => format!("PersistentVolumeClaim {}, which gets its volume", pair(&item["metadata"])),
        "VolumeAttachment" => format!("VolumeAttachment {name} on the node {}", text(&spec["nodeName"])),
        "VolumeSnapshotContent" => {
            format!("VolumeSnapshotContent {name} of the snapshot {}", pair(&spec["volumeSnapshotRef"]))
        }
        _ => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;
    use crate::config::TreeSource;

    const EBS: &str = "ebs.csi.aws.com";

    fn judge_items(items: &[Value]) -> Result<()> {
        let addons = Addon::all(&TreeSource::embedded()).unwrap();
        judge(&BTreeSet::from([EBS]), &json!({"items": items}), &addons)
    }

    fn volume(name: &str, driver: &str, policy: &str, phase: &str) -> Value {
        json!({"kind": "PersistentVolume", "metadata": {"name": name}, "status": {"phase": phase}, "spec": {
            "capacity": {"storage": "20Gi"}, "persistentVolumeReclaimPolicy": policy,
            "claimRef": {"namespace": "shop", "name": "data"}, "csi": {"driver": driver, "volumeHandle": "vol-0a1"}}})
    }

    fn claim(provisioner: &str, phase: &str) -> Value {
        json!({"kind": "PersistentVolumeClaim", "status": {"phase": phase},
            "metadata": {"namespace": "shop", "name": "new", "annotations": {AWAITED: provisioner}}})
    }

    fn attachment(driver: &str, volume: &str) -> Value {
        json!({"kind": "VolumeAttachment", "metadata": {"name": "csi-1"},
            "spec": {"attacher": driver, "nodeName": "web-1", "source": {"persistentVolumeName": volume}}})
    }

    fn content(driver: &str, policy: &str) -> Value {
        json!({"kind": "VolumeSnapshotContent", "metadata": {"name": "snapcontent-1"}, "spec": {"driver": driver,
            "deletionPolicy": policy, "volumeSnapshotRef": {"namespace": "shop", "name": "monday"}}})
    }

    #[test]
    fn a_driver_stays_while_it_has_volumes_and_they_are_named() {
        let driver = json!({"kind": DRIVER, "metadata": {"name": EBS, "labels": {ADDON: "aws-ebs-csi-driver"}}});
        let items = [
            driver,
            volume("pvc-1", EBS, "Delete", "Bound"),
            volume("pvc-2", EBS, "Retain", "Bound"),
            attachment(EBS, "pvc-1"),
            attachment(EBS, "pvc-3"),
            claim(EBS, "Pending"),
            content(EBS, "Delete"),
        ];
        insta::assert_snapshot!(judge_items(&items).unwrap_err().render());
        let one = judge_items(&[volume("pvc-1", EBS, "Delete", "Released")]).unwrap_err();
        assert!(one.message().starts_with("a volume or snapshot would stay"), "{}", one.message());
    }

    #[test]
    fn what_the_driver_has_let_go_of_and_what_others_hold_is_no_reason() {
        let other = "hostpath.csi.k8s.io";
        judge_items(&[
            volume("pvc-1", EBS, "Retain", "Released"),
            volume("pvc-2", other, "Delete", "Bound"),
            attachment(other, "pvc-2"),
            claim(other, "Pending"),
            claim(EBS, "Bound"),
            content(other, "Delete"),
            content(EBS, "Retain"),
        ])
        .unwrap();
    }
}
