//! For tests: what every kind of store does alike, in servers of other projects.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::store::BackupStore;

pub(super) use crate::node::emulator::Emulator;

/// Objects come, are listed by the beginnings of their names, are read in parts, and go. Returns
/// what is said of one that is gone.
pub(super) fn take_list_read_and_delete(store: &BackupStore) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b");
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    fs_err::write(&path, &bytes).unwrap();
    for name in ["kube-1.tar", "kube-2.tar", "other-1.tar"] {
        store.put(name, &path).unwrap();
    }
    let names = || -> Vec<String> { store.list("kube-").unwrap().into_iter().map(|one| one.name).collect() };
    assert_eq!(names(), ["kube-1.tar", "kube-2.tar"]);
    assert_eq!(store.list("kube-").unwrap()[0].bytes, 400_000);
    let mut found = store.read_part("kube-1.tar", 0, 300_000).unwrap();
    found.extend(store.read_part("kube-1.tar", 300_000, 300_000).unwrap());
    assert_eq!(found, bytes);
    assert!(store.read_part("kube-1.tar", 400_000, 10).unwrap().is_empty(), "behind its end");
    store.delete("kube-1.tar").unwrap();
    assert_eq!(names(), ["kube-2.tar"]);
    store.read_part("kube-1.tar", 0, 10).unwrap_err().render()
}
