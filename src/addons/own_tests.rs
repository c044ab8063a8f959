//! Sets of the user's own manifests, their inventories, and what their workloads lack.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::*;

fn set(texts: &[&str]) -> Result<OwnSet> {
    let texts: Vec<(String, String)> =
        (1..).zip(texts).map(|(at, text)| (format!("{at}.yaml"), (*text).into())).collect();
    OwnSet::new(OWN, "phase3.manifests", &texts)
}

const SHOP: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n# as it was written\napiVersion: apps/v1\n\
    kind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {template: {spec: {volumes: [{secret: {defaultMode: 0440}}]}}}\n";
const MAP: &str = "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"web\"}}";

#[test]
fn a_set_is_the_texts_as_they_are_and_every_object_in_them() {
    let set = set(&[SHOP, MAP, "\n"]).unwrap();
    assert_eq!(set.text, format!("{SHOP}---\n{MAP}\n"));
    let objects: Vec<String> = set.objects.iter().map(ToString::to_string).collect();
    assert_eq!(objects, ["ConfigMap default/web", "Namespace default/shop", "Deployment shop/web"]);
    assert!(set.has_workloads());
}

#[test]
fn what_could_not_be_kept_apart_is_refused() {
    let twice = set(&[SHOP, SHOP]).unwrap_err();
    assert_eq!(twice.message(), "phase3.manifests: 2.yaml: Namespace default/shop is there twice");
    let nameless = set(&["apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n"]).unwrap_err();
    assert!(nameless.message().starts_with("phase3.manifests: 1.yaml: document 1 has a generateName"));
    let one = set(&[MAP]).unwrap();
    let other = OwnSet { setting: "phase2.network.cni_manifests", ..one.clone() };
    let shared = refuse_shared(&[], &[other, one]).unwrap_err();
    assert_eq!(shared.message(), "phase3.manifests: ConfigMap default/web is in phase2.network.cni_manifests as well");
}

#[test]
fn an_inventory_says_what_is_left_and_whether_an_apply_ended() {
    let set = set(&[SHOP]).unwrap();
    let whole = Recorded { hash: set.hash.clone(), objects: set.objects.clone() };
    let item = whole.config_map(OWN);
    assert_eq!(Recorded::parse(&item), Some((OWN.to_owned(), whole.clone())));
    assert_eq!(item["metadata"]["name"], "turnup-own-manifests");
    assert!(set.is_recorded(Some(&whole), true));
    assert!(!set.is_recorded(None, true));
    assert!(!set.is_recorded(Some(&Recorded { hash: String::new(), ..whole.clone() }), true), "it was killed");
    let mut more = whole.clone();
    more.objects.insert(OwnObject { name: "old".into(), ..set.objects.first().unwrap().clone() });
    assert!(!set.is_recorded(Some(&more), true));
    assert!(set.is_recorded(Some(&more), false), "without pruning what is left does not matter");
    let empty = self::set(&[]).unwrap();
    assert!(empty.is_recorded(None, true) && !empty.is_recorded(Some(&whole), true));
    assert!(empty.is_recorded(Some(&whole), false));
    assert_eq!(Recorded::parse(&json!({"kind": "ConfigMap", "metadata": {"name": "x"}})), None);
}

#[test]
fn workloads_are_waited_for_by_their_own_numbers() {
    let text = ["Deployment", "StatefulSet", "DaemonSet"]
        .map(|kind| format!("apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: a, namespace: shop}}\n"))
        .join("---\n");
    let set = set(&[&text]).unwrap();
    let item = |kind: &str, status: Value| json!({"kind": kind, "metadata": {"name": "a", "namespace": "shop", "generation": 2}, "spec": {"replicas": 2}, "status": status});
    let list = json!({"items": [
        item("Deployment", json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 1})),
        item("StatefulSet", json!({"observedGeneration": 1})),
        item("DaemonSet", json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3})),
        {"kind": "Deployment", "metadata": {"name": "a", "namespace": "other"}},
    ]});
    assert_eq!(
        set.missing(&list),
        ["Deployment shop/a: 1 of 2 pods are available", "StatefulSet shop/a: its controller has not seen it yet"]
    );
    assert_eq!(set.missing(&Value::Null).len(), 3);
}
