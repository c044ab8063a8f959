//! Images: the same binaries give the same bytes, and the layout is what `ctr images import` and a node expect.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;

use turnup::artifacts::{Artifact, Digest, Lock, Platform, image_tar};

fn image(name: &str) -> Artifact {
    let platform = Platform { os: "linux".into(), arch: "amd64".into() };
    Lock::embedded().unwrap().select_for("1.36.3", &platform).unwrap().image(name).unwrap().clone()
}

/// The archive of an image whose binaries hold only their own names.
fn archive(name: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let artifact = image(name);
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for binary in &artifact.image().unwrap().binaries {
        let path = dir.path().join(&binary.name);
        fs_err::write(&path, &binary.name).unwrap();
        files.insert(binary.name.clone(), path);
    }
    let mut bytes = Vec::new();
    image_tar(&artifact, &files, &mut bytes).unwrap();
    bytes
}

fn members(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().display().to_string(), content)
    };
    archive.entries().unwrap().map(read).collect()
}

/// One line an entry, as `tar tv` would show them.
fn listing(layer: &[u8]) -> String {
    let mut text = String::new();
    for entry in tar::Archive::new(layer).entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        let link = entry.link_name().unwrap().map(|target| format!(" -> {}", target.display())).unwrap_or_default();
        writeln!(
            text,
            "{:?} {:o} {}:{} @{} {}{link}",
            header.entry_type(),
            header.mode().unwrap(),
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap(),
            entry.path().unwrap().display(),
        )
        .unwrap();
    }
    text
}

#[test]
fn the_same_binaries_give_the_same_bytes() {
    for name in ["pause", "kube-proxy", "etcd"] {
        assert_eq!(Digest::of(&archive(name)), Digest::of(&archive(name)));
    }
}

#[test]
fn an_archive_is_what_containerd_imports() {
    let members = members(&archive("kube-proxy"));
    let by_name: BTreeMap<&str, &[u8]> = members.iter().map(|(name, content)| (name.as_str(), &content[..])).collect();
    let manifest: serde_json::Value = serde_json::from_slice(by_name["manifest.json"]).unwrap();
    assert_eq!(manifest[0]["RepoTags"][0], "turnup.local/kube-proxy:v1.36.3");
    assert_eq!(manifest[0]["Layers"][0], "layer.tar");
    let config_name = manifest[0]["Config"].as_str().unwrap();
    let config = by_name[config_name];
    assert_eq!(config_name, format!("{}.json", Digest::of(config)));
    let config: serde_json::Value = serde_json::from_slice(config).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", Digest::of(by_name["layer.tar"])));
    insta::assert_snapshot!(serde_json::to_string_pretty(&config["config"]).unwrap());
    assert_eq!((&config["os"], &config["architecture"]), (&"linux".into(), &"amd64".into()));
}

#[test]
fn layers_hold_what_the_lock_file_says_and_no_more() {
    let layers: Vec<String> = ["kube-proxy", "etcd", "pause", "agnhost"]
        .iter()
        .map(|name| {
            let members = members(&archive(name));
            let (_, layer) = members.iter().find(|(member, _)| member == "layer.tar").unwrap();
            format!("{name}\n{}", listing(layer))
        })
        .collect();
    insta::assert_snapshot!(layers.join("\n"));
}
