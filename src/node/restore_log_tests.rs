//! What a host is remembered to have been, and what of that is put back when.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use crate::node::node_config::File;

#[test]
fn what_kubelet_wrote_for_logind_goes_with_the_node_and_not_before() {
    let node_config: NodeConfig = serde_json::from_value(super::super::node_config::sample()).unwrap();
    let path = "/etc/systemd/logind.conf.d/99-kubelet.conf";
    assert!(files_of(&node_config).any(|file| file == path));
    let mut restore_log = RestoreLog::default();
    restore_log.push(RestoreEntry::File { path: path.into(), before: None });
    restore_log.push(RestoreEntry::Package { name: "jq".into() });
    assert_eq!(restore_log.find_superseded(&node_config), Vec::<&RestoreEntry>::new(), "nor does a package go");
}

#[test]
fn a_directory_of_the_users_own_goes_with_its_entry() {
    let node_config: NodeConfig = serde_json::from_value(super::super::node_config::sample()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let [new, old] = ["new", "old"].map(|name| dir.path().join(name).display().to_string());
    fs_err::create_dir(&old).unwrap();
    let with = |paths: &[&String]| {
        let mut files = node_config.files.clone();
        files.retain(|file| file.content != Content::Directory {});
        files.extend(paths.iter().map(|path| File::new(path, 0o755, 0, Content::Directory {})));
        NodeConfig { files, ..node_config.clone() }
    };
    let mut restore_log = RestoreLog::default();
    restore_log.look_at_own_directories(&with(&[&new, &old])).unwrap();
    assert_eq!(restore_log.entries[0], RestoreEntry::Version { version: 4 }, "an older turnup reads no further");
    assert!(restore_log.has_made(&new) && !restore_log.has_made(&old), "{restore_log:?}");
    assert!(restore_log.find_superseded(&with(&[&new, &old])).is_empty());
    let superseded = restore_log.find_superseded(&with(&[&new]));
    assert!(
        matches!(superseded[..], [RestoreEntry::OwnDirectory { path, before: Some((0o755, ..)) }] if *path == old),
        "{superseded:?}"
    );
    let known = restore_log.entries.len();
    restore_log.look_at_own_directories(&with(&[&new, &old])).unwrap();
    assert_eq!(restore_log.entries.len(), known, "the first look counts");
    fs_err::write(dir.path().join("file"), "").unwrap();
    let file = dir.path().join("file").display().to_string();
    let error = restore_log.look_at_own_directories(&with(&[&file])).unwrap_err();
    assert!(error.message().contains("is no directory"), "{error:?}");
}
