//! Tests of what a rotation changes on hosts: by node configs, which hold all that is delivered.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::node_config::NodeConfigs;
use super::super::node_config::tests::{facts, with_configs};
use super::*;
use crate::node::node_config::{Content, NodeConfig};
use crate::node::{layout, yaml};

/// A node config, and its secrets.
type Delivered = (NodeConfig, BTreeMap<String, String>);

/// What the hosts are to become: the control plane, and a worker.
fn delivered(configs: &NodeConfigs<'_>) -> Vec<Delivered> {
    let hosts = configs.inventory.hosts.iter();
    let all = hosts.map(|host| configs.node_config(host, &facts()).unwrap());
    all.map(|(config, secrets)| {
        (config, secrets.into_iter().map(|(name, text)| (name, text.as_str().to_owned())).collect())
    })
    .collect()
}

fn step(configs: &NodeConfigs<'_>, name: KeysetName, verb: RotationStep) -> Vec<Delivered> {
    let pki = Pki::of(configs.cluster);
    let keyset = pki.keyset(name).unwrap();
    match verb {
        RotationStep::Create => drop(create(configs.cluster, name).unwrap()),
        RotationStep::Promote => {
            pki.write_keyset(name, keyset.promote(name, 2, None, Timestamp::now()).unwrap()).unwrap();
        }
        RotationStep::Distrust => pki.write_keyset(name, keyset.distrust(name, 1).unwrap()).unwrap(),
    }
    for leaf in configs.leaves().unwrap() {
        pki.ensure_leaf(&leaf).unwrap();
    }
    delivered(configs)
}

/// The static pods that are others, and kubelet where it restarts on a file that is.
fn restarted(before: &[Delivered], after: &[Delivered]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for ((before, _), (after, _)) in before.iter().zip(after) {
        assert_eq!(before.mounts, after.mounts, "a disk of etcd is known by the first item for ever");
        let changed: Vec<&str> = after
            .files
            .iter()
            .filter(|file| !before.files.contains(file) && !file.initial)
            .map(|file| file.path.as_str())
            .collect();
        found.extend(changed.iter().filter_map(|path| layout::static_pod(path)).map(str::to_owned));
        let kubelet = after.units.iter().find(|unit| unit.name == "kubelet.service").unwrap();
        if changed.iter().any(|path| kubelet.restart_on.iter().any(|on| on == path)) {
            found.insert("kubelet".to_owned());
        }
    }
    found
}

/// The texts in which this stands, as it is or as data of a kubeconfig.
fn holders(all: &[Delivered], text: &str) -> BTreeSet<String> {
    let needle = text.trim_end();
    let mut found = BTreeSet::new();
    for (config, secrets) in all {
        for file in &config.files {
            let content = match &file.content {
                Content::Text(text) => text.clone(),
                Content::Yaml(value) => yaml::render(value),
                Content::Secret { name, .. } => secrets[name].clone(),
                Content::Base64(_) | Content::Url { .. } | Content::Symlink(_) | Content::Directory {} => String::new(),
            };
            let data = content.lines().filter_map(|line| line.split_once("certificate-authority-data: "));
            let data: String = data
                .filter_map(|(_, data)| String::from_utf8(STANDARD.decode(data.trim_matches('"')).ok()?).ok())
                .collect();
            if content.contains(needle) || data.contains(needle) {
                found.insert(file.path.clone());
            }
        }
    }
    found
}

#[test]
fn a_step_restarts_what_it_says_and_no_trace_of_a_distrusted_item_is_left() {
    for name in KeysetName::ALL {
        with_configs(&[], |configs| {
            let pki = Pki::of(configs.cluster);
            let mut before = delivered(configs);
            for verb in RotationStep::ALL {
                let after = step(configs, name, verb);
                let expected: BTreeSet<String> = restarts(name, verb).iter().map(|one| (*one).to_owned()).collect();
                assert_eq!(restarted(&before, &after), expected, "{name} {verb:?}");
                before = after;
            }
            for end in ["crt", "pub", "key"] {
                let Ok(old) = pki.text(&name.file(1), end) else { continue };
                let (old, new) = (holders(&before, &old), holders(&before, &pki.text(&name.file(2), end).unwrap()));
                assert_eq!(old, BTreeSet::new(), "{name}.{end}");
                assert!(!new.is_empty() || end == "key" && pki.text(&name.file(2), "crt").is_ok(), "{name}.{end}");
            }
        });
    }
}

#[test]
fn every_verifier_trusts_both_items_and_one_signs() {
    let mut lines = Vec::new();
    for name in KeysetName::ALL {
        with_configs(&[], |configs| {
            let pki = Pki::of(configs.cluster);
            let created = step(configs, name, RotationStep::Create);
            let promoted = step(configs, name, RotationStep::Promote);
            for (state, all) in [("created", &created), ("promoted", &promoted)] {
                for end in ["crt", "pub", "key"] {
                    let Ok(first) = pki.text(&name.file(1), end) else { continue };
                    let (first, second) = (holders(all, &first), holders(all, &pki.text(&name.file(2), end).unwrap()));
                    for path in first.union(&second) {
                        let items = match (first.contains(path), second.contains(path)) {
                            (true, true) => "1 2",
                            (true, false) => "1",
                            _ => "2",
                        };
                        lines.push(format!("{name}.{end} {state}: {path}: {items}"));
                    }
                }
            }
            let flags = |all: &[Delivered]| -> Vec<String> {
                let (config, _) = &all[0];
                let pods = config.files.iter().filter(|file| layout::static_pod(&file.path).is_some());
                let Content::Yaml(all) = json_of(pods.map(|file| &file.content)) else { return Vec::new() };
                let all = yaml::render(&all);
                let is_meant =
                    |line: &&str| ["-ca-file=", "cafile=", "-key-file="].iter().any(|end| line.contains(end));
                all.lines().filter(is_meant).map(|line| line.trim().to_owned()).collect()
            };
            let plain = with_configs(&[], |configs| flags(&delivered(configs)));
            let more: Vec<String> = flags(&created).into_iter().filter(|flag| !plain.contains(flag)).collect();
            lines.push(format!("{name} flags: {more:?}"));
        });
    }
    insta::assert_snapshot!(lines.join("\n"));
}

fn json_of<'a>(contents: impl Iterator<Item = &'a Content>) -> Content {
    let values =
        contents.filter_map(|content| if let Content::Yaml(value) = content { Some(value.clone()) } else { None });
    Content::Yaml(values.collect())
}

#[test]
fn a_cluster_that_was_never_rotated_gets_the_same_bytes() {
    with_configs(&[], |configs| {
        let before = delivered(configs);
        assert!(configs.cluster.store.read(super::super::keyset::FILE).unwrap().is_none(), "nothing is written down");
        let pki = Pki::of(configs.cluster);
        for name in KeysetName::ALL {
            assert_eq!(pki.keyset(name).unwrap(), Keyset::default());
            pki.write_keyset(name, Keyset::default()).unwrap();
        }
        assert_eq!(delivered(configs), before);
        for (authority, file) in [("ca", "ca"), ("etcd-ca", "etcd-ca"), ("front-proxy-ca", "front-proxy-ca")] {
            let name = KeysetName::ALL.into_iter().find(|name| name.file(1) == authority).unwrap();
            assert_eq!(pki.bundle(name.authority().unwrap()).unwrap(), pki.text(file, "crt").unwrap());
        }
    });
}

#[test]
fn an_item_whose_making_was_cut_off_is_taken_over() {
    with_configs(&[], |configs| {
        let (cluster, name) = (configs.cluster, KeysetName::EtcdCa);
        let pki = Pki::of(cluster);
        pki.make_item(name, 2, "kubernetes").unwrap();
        assert_eq!(list(cluster, &[name]).unwrap().len(), 1, "without the list it is no item");
        let key = pki.text("etcd-ca-2", "key").unwrap();
        assert_eq!(create(cluster, name).unwrap(), 2);
        assert_eq!(pki.text("etcd-ca-2", "key").unwrap(), key);
        let listed = list(cluster, &[name]).unwrap();
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[1].files, ["pki/etcd-ca-2.crt", "pki/etcd-ca-2.key"].map(PathBuf::from));
        assert!(listed[1].ends > listed[1].created);
    });
}

#[test]
fn what_is_left_of_a_rotation_is_told_with_its_command() {
    with_configs(&[], |configs| {
        let (cluster, name) = (configs.cluster, KeysetName::ServiceAccount);
        let pki = Pki::of(cluster);
        let at = |second| Timestamp::from_second(second).unwrap();
        let told =
            || -> Vec<String> { find_unfinished(cluster).unwrap().iter().map(|one| one.describe(at(0))).collect() };
        assert_eq!(told(), Vec::<String>::new());
        create(cluster, name).unwrap();
        create(cluster, KeysetName::EtcdCa).unwrap();
        let promoted = pki.keyset(name).unwrap().promote(name, 2, None, at(1000)).unwrap();
        pki.write_keyset(name, promoted.clone()).unwrap();
        insta::assert_snapshot!(told().join("\n"));
        // Since when it signs is known once every host has got it.
        pki.write_keyset(name, promoted.with_signs(at(1000))).unwrap();
        assert!(
            told()[1].ends_with("; from 1970-01-01T01:31:40Z on: turnup keyset rotate service-account --confirmed")
        );
        let back = promoted.with_signs(at(1000)).promote(name, 1, None, at(2000)).unwrap();
        assert_eq!(back.promote(name, 2, None, at(3000)).unwrap().signs(), None, "it is looked at again");
        let last = Keyset { rotating: true, ..promoted.distrust(name, 1).unwrap() };
        pki.write_keyset(name, last).unwrap();
        assert!(told()[1].contains("the run that ends the rotation is left"), "{:?}", told());
    });
}

#[test]
fn what_turnup_does_not_see_is_asked_of_items_that_have_signed() {
    let asked = |name, verb, groups| unseen(name, verb, groups).len();
    let distrust = KeysetName::ALL.map(|name| asked(name, RotationStep::Distrust, false));
    assert_eq!(distrust, [1, 0, 0, 1, 0], "kubeconfigs, tokens");
    let promote = KeysetName::ALL.map(|name| asked(name, RotationStep::Promote, false));
    assert_eq!(promote, [1, 0, 0, 0, 0], "pods that know the old authority alone");
    // turnup does not log in to hosts of node groups.
    assert_eq!(KeysetName::ALL.map(|name| asked(name, RotationStep::Promote, true)), [2, 0, 0, 0, 0]);
}
