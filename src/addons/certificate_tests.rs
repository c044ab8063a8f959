//! cert-manager as it is rendered, and judgements over an addon of several programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;

use super::object::Object;
use super::observed::Observed;
use super::tests::{differences, missing, render_set, render_with};
use crate::cluster::ClusterSettings;
use crate::config::{Settings, TreeSource};

/// The kinds of cert-manager are as they were published; what turnup adds is how it finds them.
#[test]
fn cert_manager_as_it_is_applied() {
    let manifest = render_set("cert-manager", &[("phase3.cert_manager", "y")]).unwrap();
    let (kinds, others): (Vec<&str>, Vec<&str>) =
        manifest.split("\n---\n").partition(|document| document.contains("kind: CustomResourceDefinition\n"));
    let objects = Object::read(&kinds.join("\n---\n")).unwrap();
    let names: Vec<&str> = objects.iter().map(|(object, _)| object.name.split_once('.').unwrap().0).collect();
    assert_eq!(names, ["certificaterequests", "certificates", "challenges", "clusterissuers", "issuers", "orders"]);
    let lock: Value = serde_json::from_str(include_str!("../../cluster.lock.json")).unwrap();
    for document in kinds {
        let version = document.strip_prefix("# As cert-manager ").and_then(|text| text.split(' ').next()).unwrap();
        assert!(lock["modules"].get(format!("cert-manager-{version}")).is_some(), "{version}");
    }
    insta::assert_snapshot!(others.join("\n---\n"));
}

#[test]
fn settings_of_cert_manager_are_in_its_configurations() {
    let on = ("phase3.cert_manager", "y");
    let chosen = [
        on,
        ("phase3.cert_manager_replicas", "2"),
        ("phase3.cert_manager_cluster_resource_namespace", "issuers"),
        ("phase3.cert_manager_dns01_nameservers", "192.0.2.53,https://192.0.2.54/dns-query"),
        ("phase3.cert_manager_dns01_nameservers_only", "y"),
        ("phase3.cert_manager_default_issuer", "letsencrypt"),
        ("phase3.cert_manager_gateway_api", "y"),
        ("phase3.cert_manager_owner_ref", "y"),
        ("phase3.cert_manager_log_level", "4"),
        ("phase3.cert_manager_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences("cert-manager", &[on], &chosen));
}

/// A cluster that comes back from a power cut has no webhook yet: its pods need what is asked about
/// here to start.
#[test]
fn a_webhook_is_asked_about_kinds_of_its_own_addon_alone() {
    let manifest = render_set("cert-manager", &[("phase3.cert_manager", "y")]).unwrap();
    let objects = Object::read(&manifest).unwrap();
    let webhooks = objects.iter().filter(|(object, _)| object.kind.ends_with("WebhookConfiguration"));
    let rules: Vec<&Value> = webhooks.flat_map(|(_, value)| value["webhooks"].as_array().unwrap()).collect();
    assert_eq!(rules.len(), 2);
    for rule in rules.iter().flat_map(|webhook| webhook["rules"].as_array().unwrap()) {
        for group in rule["apiGroups"].as_array().unwrap() {
            assert!(["cert-manager.io", "acme.cert-manager.io"].contains(&group.as_str().unwrap()), "{rule}");
        }
    }
}

/// An injector writes the authority of a webhook's pods, and these the Secret of their keys.
#[test]
fn what_programs_of_an_addon_write_into_its_objects_is_no_change() {
    let written = |object: Value| {
        let observed = Observed::parse(&serde_json::json!({"items": [object]}));
        observed.addon_objects.into_values().next().unwrap()
    };
    let metadata = |generation: u64| serde_json::json!({"name": "hook", "generation": generation, "labels": {"turnup.dev/addon": "cert-manager"}});
    let hook = |generation, client: Value, policy: &str| {
        written(serde_json::json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": metadata(generation), "webhooks": [{"clientConfig": client, "failurePolicy": policy}],
        }))
    };
    let (bare, injected) = (serde_json::json!({"url": "a"}), serde_json::json!({"url": "a", "caBundle": "b"}));
    assert_eq!(hook(1, bare.clone(), "Fail"), hook(2, injected.clone(), "Fail"));
    assert_ne!(hook(1, bare, "Fail"), hook(2, injected, "Ignore"));
    let secret = |version: &str| {
        written(serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "keys", "namespace": "kube-system", "resourceVersion": version,
            "labels": {"turnup.dev/addon": "cert-manager"},
        }}))
    };
    assert_eq!(secret("7"), secret("8"));
}

/// An addon of several programs works once all of them do.
#[test]
fn every_deployment_of_an_addon_is_awaited() {
    let source = TreeSource::embedded();
    let mut settings = Settings::defaults(&source).unwrap();
    settings.set_all(&[("phase3.cert_manager", "y")]).unwrap();
    let typed = ClusterSettings::read(&settings, std::path::Path::new("/work")).unwrap();
    let mut addons = render_with(&source, &typed, "").unwrap();
    addons.retain(|addon| addon.name == "cert-manager");
    let deployment = |name: &str, available: u64| {
        serde_json::json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1},
            "metadata": {
                "name": name, "namespace": "kube-system", "generation": 1,
                "labels": {"turnup.dev/addon": "cert-manager"}, "annotations": {"turnup.dev/hash": addons[0].hash},
            },
            "status": {"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": available},
        })
    };
    let (controller, injector) = (deployment("cert-manager", 1), deployment("cert-manager-cainjector", 0));
    let observed = Observed::parse(&serde_json::json!({"items": [controller, injector]}));
    assert_eq!(
        missing(&observed, &addons, &[], true),
        ["cert-manager-cainjector: 0 of 1 pods are available", "Deployment cert-manager-webhook is not in the cluster"]
    );
}
