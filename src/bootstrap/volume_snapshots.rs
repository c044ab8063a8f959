//! Snapshots of volumes that the cluster has made: they lie in the storage of its CSI drivers,
//! which outlives it, and only the cluster's own objects say which they are. Pure but for one look
//! at files of the cluster's directory.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::state::Store;

/// The kinds, as kubectl lists them.
pub(super) const KINDS: [&str; 2] = [SNAPSHOTS, CONTENTS];
const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";
const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";
/// Where manifests lie, and what the cluster had of addons after they were applied.
const MANIFESTS: &str = "addons";
const APPLIED: &str = "outputs/addons.json";

/// All that is known of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeSnapshots {
    /// Those that are deleted with their objects, a line each, and those that are being made.
    pub going: BTreeSet<String>,
    /// Those that their deletion policy keeps.
    pub staying: BTreeSet<String>,
    /// Whether one of the former has no `VolumeSnapshot`.
    has_unclaimed: bool,
}

/// Whether the kinds are among the manifests of this cluster.
pub(super) fn is_defined(store: &Store) -> bool {
    let entries = fs_err::read_dir(store.path(MANIFESTS)).into_iter().flatten().flatten();
    let manifests = entries.map(|entry| format!("{MANIFESTS}/{}", entry.file_name().to_string_lossy()));
    let texts = manifests.chain([APPLIED.to_owned()]).filter_map(|file| store.read(&file).ok().flatten());
    texts.into_iter().any(|text| String::from_utf8_lossy(&text).contains(SNAPSHOTS))
}

impl VolumeSnapshots {
    /// Takes a list of `VolumeSnapshot`s and `VolumeSnapshotContent`s apart.
    pub(super) fn parse(list: &Value) -> Self {
        let of_kind = |kind: &'static str| {
            list["items"].as_array().into_iter().flatten().filter(move |item| item["kind"] == kind)
        };
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let name_of = |value: &Value| format!("{}/{}", text(&value["namespace"]), text(&value["name"]));
        let snapshots: BTreeSet<String> = of_kind("VolumeSnapshot").map(|item| name_of(&item["metadata"])).collect();
        let mut found = Self::default();
        let mut made = BTreeSet::new();
        for content in of_kind("VolumeSnapshotContent") {
            let spec = &content["spec"];
            let of = name_of(&spec["volumeSnapshotRef"]);
            let handle = content["status"]["snapshotHandle"].as_str();
            // One that was there before has been named by the user.
            let handle = handle.or_else(|| spec["source"]["snapshotHandle"].as_str());
            let handle = handle.map_or_else(String::new, |handle| format!(", {handle}"));
            let name = text(&content["metadata"]["name"]);
            let what = format!("the snapshot {name} of VolumeSnapshot {of} ({}{handle})", text(&spec["driver"]));
            if spec["deletionPolicy"] == "Retain" {
                found.staying.insert(what);
            } else {
                found.has_unclaimed |= !snapshots.contains(&of);
                found.going.insert(what);
            }
            made.insert(of);
        }
        let awaited = snapshots.difference(&made).map(|name| format!("what the VolumeSnapshot {name} waits for"));
        found.going.extend(awaited);
        found
    }

    /// An error while there are any that would be left behind.
    pub fn require_none(&self) -> Result<()> {
        if self.going.is_empty() {
            return Ok(());
        }
        let kinds = if self.has_unclaimed { format!("{SNAPSHOTS},{CONTENTS}") } else { SNAPSHOTS.to_owned() };
        let message = "snapshots of volumes would stay in their storage, and nothing would know of them any more";
        Err(Error::precondition(message).evidence_of(&self.going).hint(format!(
            "kubectl delete {kinds} --all --all-namespaces, then turnup down; to leave them there: turnup down --keep-cloud-resources"
        )))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::json;

    use super::*;

    fn content(name: &str, of: &str, policy: &str) -> Value {
        json!({"kind": "VolumeSnapshotContent", "metadata": {"name": name}, "status": {"snapshotHandle": format!("id-{name}")}, "spec": {
            "deletionPolicy": policy, "driver": "disk.example.com", "volumeSnapshotRef": {"namespace": "shop", "name": of},
        }})
    }

    fn snapshot(name: &str) -> Value {
        json!({"kind": "VolumeSnapshot", "metadata": {"namespace": "shop", "name": name}})
    }

    #[test]
    fn what_would_be_left_behind_is_refused_and_what_is_kept_on_purpose_is_named() {
        let mut items = vec![content("c1", "monday", "Delete"), snapshot("monday"), snapshot("tuesday")];
        items.extend([content("c2", "kept", "Retain"), snapshot("kept")]);
        let found = VolumeSnapshots::parse(&json!({"items": items}));
        let staying: Vec<&String> = found.staying.iter().collect();
        assert_eq!(staying, ["the snapshot c2 of VolumeSnapshot shop/kept (disk.example.com, id-c2)"]);
        insta::assert_snapshot!(found.require_none().unwrap_err().render(), @r"
        error: snapshots of volumes would stay in their storage, and nothing would know of them any more
          | the snapshot c1 of VolumeSnapshot shop/monday (disk.example.com, id-c1)
          | what the VolumeSnapshot shop/tuesday waits for
        next: kubectl delete volumesnapshots.snapshot.storage.k8s.io --all --all-namespaces, then turnup down; to leave them there: turnup down --keep-cloud-resources
        ");
        // One whose VolumeSnapshot is gone goes with its own object.
        let lost = VolumeSnapshots::parse(&json!({"items": [content("c1", "monday", "Delete")]}));
        let hint = lost.require_none().unwrap_err().render();
        assert!(hint.contains(&format!("kubectl delete {SNAPSHOTS},{CONTENTS} --all")), "{hint}");
        VolumeSnapshots::parse(&json!({"items": items[3..]})).require_none().unwrap();
    }

    #[test]
    fn a_cluster_is_asked_for_snapshots_where_its_manifests_define_them() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().to_owned());
        assert!(!is_defined(&store));
        fs_err::create_dir(dir.path().join(MANIFESTS)).unwrap();
        for (file, text) in [("addons/own-manifests.yaml", SNAPSHOTS), (APPLIED, SNAPSHOTS), ("addons/a.yaml", "other")]
        {
            fs_err::create_dir_all(dir.path().join("outputs")).unwrap();
            fs_err::write(dir.path().join(file), format!("name: {text}\n")).unwrap();
            assert_eq!(is_defined(&store), text == SNAPSHOTS, "{file}");
            fs_err::remove_file(dir.path().join(file)).unwrap();
        }
    }
}
