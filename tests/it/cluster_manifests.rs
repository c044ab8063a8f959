//! Manifests of one's own on a real host, at their edges: what cannot be changed is replaced or
//! refused, what is renamed or moved leaves nothing, and how long a thousand objects take.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_addons::{agnhost, apply, field};
use crate::cluster_support::{Site, say};

const SHOP: &str = "--namespace=shop";

#[test]
#[ignore = "minutes with a thousand objects: make test-addons"]
fn cluster_manifests_are_replaced_moved_and_pruned() {
    let Some(site) = Site::of_cluster("manifests", "10.125.30.0/24", 0) else { return };
    site.ok(&["config", "set", "phase3.manifests=shop.json"]);
    write(&site, &[]);
    site.ok(&["up"]);
    what_is_immutable_is_replaced(&site);
    what_holds_data_is_never_replaced(&site);
    what_others_made_is_never_replaced(&site);
    what_is_renamed_or_moved_leaves_nothing(&site);
    a_kind_gets_another_version(&site);
    an_unchanged_apply_writes_nothing(&site);
    a_thousand_objects_go(&site);
    site.ok(&["down", "--yes"]);
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The manifests of the cluster: the namespace `shop`, and these.
fn write(site: &Site, objects: &[Value]) {
    let all: Vec<Value> = [namespace("shop")].into_iter().chain(objects.iter().cloned()).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    fs_err::write(site.dir.join("shop.json"), list.to_string()).unwrap();
}

fn prices(count: usize) -> Vec<Value> {
    let one = |number: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("price-{number}"), "namespace": "shop"},
            "data": {"tea": number.to_string()}})
    };
    (0..count).map(one).collect()
}

fn what_is_immutable_is_replaced(site: &Site) {
    let image = agnhost(site);
    let objects = |label: &str, address: &str, role: &str| {
        [
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {
                "selector": {"matchLabels": {"app": label}},
                "template": {"metadata": {"labels": {"app": label}}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "web", "image": image, "imagePullPolicy": "Never", "args": ["pause"]}]}}}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"clusterIP": address, "selector": {"app": label}, "ports": [{"port": 80}]}}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "shop"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd", "namespace": "shop"}, "data": {"text": label}}),
        ]
    };
    write(site, &objects("old", "10.96.0.80", "view"));
    site.ok(&["up"]);
    let before = field(site, &["configmap/motd", SHOP], ".metadata.uid");
    write(site, &objects("new", "10.96.0.81", "edit"));
    let planned = site.ok(&["plan"]).out;
    for line in [
        "-/+ object Deployment shop/web",
        "spec.selector # forces replacement",
        "-/+ object Service shop/web",
        "roleRef # forces replacement",
        "object ConfigMap motd",
    ] {
        assert!(planned.contains(line), "{line}: {planned}");
    }
    site.ok(&["up"]);
    assert_eq!(field(site, &["deployment/web", SHOP], ".spec.selector.matchLabels.app"), "new");
    assert_eq!(field(site, &["deployment/web", SHOP], ".status.availableReplicas"), "1");
    assert_eq!(field(site, &["service/web", SHOP], ".spec.clusterIP"), "10.96.0.81");
    assert_eq!(field(site, &["clusterrolebinding/shop"], ".roleRef.name"), "edit");
    assert_eq!(field(site, &["configmap/motd", SHOP], ".metadata.uid"), before, "what may change is not replaced");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");

    // Wrong in another way as well: nothing is deleted for it.
    let mut wrong = objects("newest", "10.96.0.81", "edit");
    wrong[0]["spec"]["replicas"] = (-1).into();
    write(site, &wrong);
    let refused = site.run(&["up"]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains("spec.replicas"), "{refused}");
    assert_eq!(field(site, &["deployment/web", SHOP], ".spec.selector.matchLabels.app"), "new");
}

fn what_holds_data_is_never_replaced(site: &Site) {
    let claim = |size: &str, class: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "till", "namespace": "shop"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": size}}}})
    };
    write(site, &[claim("1Gi", "slow")]);
    site.ok(&["up"]);
    let before = field(site, &["persistentvolumeclaim/till", SHOP], ".metadata.uid");
    write(site, &[claim("1Gi", "fast"), prices(1).remove(0)]);
    for command in ["plan", "up"] {
        let refused = site.fails(3, &[command]);
        assert!(
            refused.err.contains("PersistentVolumeClaim shop/till cannot become what its manifest says"),
            "{refused}"
        );
    }
    assert_eq!(field(site, &["persistentvolumeclaim/till", SHOP], ".metadata.uid"), before);
    assert_eq!(field(site, &["configmap/price-0", SHOP], ".metadata.name"), "", "refused before anything changed");
    write(site, &[]);
    site.ok(&["up"]);
}

/// An object of the same name that another program made is taken over as far as it can be changed,
/// and never deleted.
fn what_others_made_is_never_replaced(site: &Site) {
    let service = |address: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "theirs", "namespace": "shop"},
            "spec": {"clusterIP": address, "ports": [{"port": 80}]}})
    };
    apply(site, "theirs", &[service("10.96.0.90")]);
    let before = field(site, &["service/theirs", SHOP], ".metadata.uid");
    write(site, &[service("10.96.0.91")]);
    let refused = site.fails(3, &["up"]);
    assert!(refused.err.contains("another program made the object"), "{refused}");
    assert_eq!(field(site, &["service/theirs", SHOP], ".metadata.uid"), before);
    site.kubectl(&["delete", "service/theirs", SHOP]);
    write(site, &[]);
    site.ok(&["up"]);
}

fn what_is_renamed_or_moved_leaves_nothing(site: &Site) {
    let map = |name: &str, place: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": place}, "data": {"a": "b"}});
    write(site, &[namespace("stock"), map("one", "shop"), map("two", "shop")]);
    site.ok(&["up"]);
    write(site, &[namespace("stock"), map("uno", "shop"), map("two", "stock")]);
    let planned = site.ok(&["plan"]).out;
    for line in [
        "+   object ConfigMap shop/uno",
        "-   object ConfigMap shop/one",
        "+   object ConfigMap stock/two",
        "-   object ConfigMap shop/two",
    ] {
        assert!(planned.contains(line), "{line}: {planned}");
    }
    site.ok(&["up"]);
    let there = |place: &str| {
        let names = field(site, &["configmaps", &format!("--namespace={place}")], ".items[*].metadata.name");
        names.split(' ').filter(|name| *name != "kube-root-ca.crt").map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((there("shop"), there("stock")), (vec!["uno".to_owned()], vec!["two".to_owned()]));
}

fn a_kind_gets_another_version(site: &Site) {
    let kind = |stored: &str| {
        let version = |name: &str| {
            json!({"name": name, "served": true, "storage": name == stored,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
        };
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "shelves.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Shelf", "plural": "shelves", "singular": "shelf"},
                "versions": [version("v1beta1"), version("v1")]}})
    };
    let shelf = |version: &str, size: u32| {
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Shelf", "metadata": {"name": "books", "namespace": "shop"},
            "spec": {"size": size}})
    };
    write(site, &[kind("v1beta1"), shelf("v1beta1", 3)]);
    site.ok(&["up"]);
    let before = field(site, &["shelves.v1.example.com/books", SHOP], ".metadata.uid");
    write(site, &[kind("v1"), shelf("v1", 4)]);
    assert!(site.ok(&["plan"]).out.contains("object Shelf books"));
    site.ok(&["up"]);
    assert_eq!(field(site, &["shelves.v1.example.com/books", SHOP], ".spec.size"), "4");
    assert_eq!(field(site, &["shelves.v1beta1.example.com/books", SHOP], ".metadata.uid"), before, "the same object");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

fn an_unchanged_apply_writes_nothing(site: &Site) {
    write(site, &prices(100));
    site.ok(&["up"]);
    let versions = || field(site, &["configmaps", SHOP], ".items[*].metadata.resourceVersion");
    let before = versions();
    let took = [0, 1].map(|_| timed(|| drop(site.ok(&["addons"]))));
    assert_eq!(versions(), before);
    let file = format!("--filename={}", site.dir.join("shop.json").display());
    let peer = timed(|| drop(site.kubectl(&["apply", "--server-side", "--field-manager=turnup", &file])));
    say(&format!("100 objects unchanged: {:.1} s, `kubectl apply` {:.1} s", took[1].as_secs_f64(), peer.as_secs_f64()));
    assert!(took[1] < 10 * peer, "{took:?}, kubectl {peer:?}");
}

fn a_thousand_objects_go(site: &Site) {
    write(site, &prices(1000));
    site.ok(&["up"]);
    write(site, &[]);
    let took = timed(|| drop(site.ok(&["up"])));
    assert_eq!(field(site, &["configmaps", SHOP], ".items[*].metadata.name"), "kube-root-ca.crt");
    write(site, &prices(1000));
    let file = format!("--filename={}", site.dir.join("shop.json").display());
    site.kubectl(&["apply", "--server-side", &file]);
    let peer = timed(|| drop(site.kubectl(&["delete", &file])));
    say(&format!("1,000 objects pruned: {:.1} s, `kubectl delete` {:.1} s", took.as_secs_f64(), peer.as_secs_f64()));
    assert!(took < 2 * peer, "{took:?}, kubectl {peer:?}");
    write(site, &[]);
    site.ok(&["up"]);
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}
