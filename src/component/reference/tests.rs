//! Tests of the tables.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::json;

use super::super::compare;
use super::*;

fn newest() -> Reference {
    Reference::clone(&Reference::load(&TreeSource::embedded(), "1.36.3").unwrap())
}

#[test]
fn every_table_is_the_text_that_is_written_again() {
    let source = TreeSource::embedded();
    let versions = versions_with(&source, |_| true).unwrap();
    assert_eq!(versions.iter().map(|version| Reference::path(version)).collect::<Vec<_>>(), source.files(DIR));
    for version in versions {
        let reference = Reference::load(&source, &version).unwrap();
        assert_eq!(reference.kubernetes, version);
        let text = source.read_text(&Reference::path(&version)).unwrap();
        assert!(reference.to_text().unwrap() == text, "{version}: turnup artifacts reference --write");
    }
}

#[test]
fn what_components_accept_is_found_by_name() {
    let reference = newest();
    let kubelet = reference.component("kubelet").unwrap();
    assert_eq!(kubelet.flag("node-labels").unwrap().type_name, "mapStringString");
    assert!(kubelet.flag("max-pods").unwrap().deprecated.is_some());
    assert_eq!(kubelet.field("maxPods").unwrap().default, Some(json!(110)));
    assert_eq!(kubelet.field("evictionHard").unwrap().field_type.to_string(), "map<string, string>");
    assert_eq!(kubelet.field("registerWithTaints[].key").unwrap().field_type, FieldType::String);
    assert!(kubelet.gate("RotateKubeletServerCertificate").unwrap().default);
    assert_eq!(kubelet.suggest_gate("RotateKubeletServerCert").as_deref(), Some("RotateKubeletServerCertificate"));

    let server = reference.component("kube-apiserver").unwrap();
    assert!(server.flag("kubelet-port").unwrap().hidden);
    assert_eq!(server.file("EncryptionConfiguration").unwrap().api_version, "apiserver.config.k8s.io/v1");
    assert_eq!(server.field("resources"), None, "it has several kinds of files");
    assert_eq!(reference.component("etcd").unwrap().flag("election-timeout").unwrap().default.as_deref(), Some("1000"));
    assert_eq!(reference.component("kubeadm"), None);
}

#[test]
fn versions_are_chosen_by_what_they_have() {
    let source = TreeSource::embedded();
    let has = |flag: &'static str| {
        let is = move |reference: &Reference| reference.component("kubelet").is_some_and(|it| it.flag(flag).is_some());
        versions_with(&source, is).unwrap()
    };
    assert_eq!(has("max-pods"), versions_with(&source, |_| true).unwrap());
    assert!(has("no-such-flag").is_empty());
}

#[test]
fn a_version_without_a_table_has_a_way_out() {
    let error = Reference::load(&TreeSource::embedded(), "1.0.0").unwrap_err();
    assert!(error.render().contains("turnup artifacts reference --kubernetes 1.0.0 --write"), "{}", error.render());
}

#[test]
fn a_difference_is_an_entry_with_both_sides() {
    let old = newest();
    let mut new = old.clone();
    let kubelet = new.components.get_mut("kubelet").unwrap();
    let ports = kubelet.flags.remove("port").unwrap();
    kubelet.flags.insert("ports".into(), ports);
    kubelet.feature_gates.get_mut("AllAlpha").unwrap().default = true;
    kubelet.files.get_mut("KubeletConfiguration").unwrap().fields.get_mut("maxPods").unwrap().default = Some(json!(9));
    let lines: Vec<String> = compare(Some(&old), &new)
        .unwrap()
        .iter()
        .map(|it| format!("{}: {} -> {}", it.entry, it.old.is_some(), it.new.is_some()))
        .collect();
    let kinds = "kubelet KubeletConfiguration maxPods: true -> true";
    let expected = [
        "kubelet --port: true -> false",
        "kubelet --ports: false -> true",
        kinds,
        "kubelet gate AllAlpha: true -> true",
    ];
    assert_eq!(lines, expected);
    assert!(compare(Some(&new), &new).unwrap().is_empty());
    assert!(compare(None, &new).unwrap().len() > 2000);
}

#[test]
fn a_table_of_another_party_cannot_say_everything() {
    document::hostile::try_every_text::<Reference>(&json!({
        "schema": Reference::SCHEMA,
        "kubernetes": "1.36.3",
        "components": { "kubelet": {
            "version": "1.36.3",
            "flags": { "v": { "type": "Level", "placeholder": "N", "default": "1", "deprecated": "no more", "words": ["a"] } },
            "files": { "KubeletConfiguration": {
                "api_version": "kubelet.config.k8s.io/v1beta1",
                "fields": { "maxPods": { "type": "int", "default": "110" } }
            } },
            "feature_gates": { "AllAlpha": { "stage": "alpha", "default": false } }
        } }
    }));
}
