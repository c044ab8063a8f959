//! The kinds of the Gateway API on a real host: own manifests have objects of them in the same run,
//! and they go only when there are none.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::json;

use crate::cluster_addons::apply;
use crate::cluster_support::Site;

const KINDS: [&str; 10] = [
    "backendtlspolicies",
    "gatewayclasses",
    "gateways",
    "grpcroutes",
    "httproutes",
    "listenersets",
    "referencegrants",
    "tcproutes",
    "tlsroutes",
    "udproutes",
];

#[test]
#[ignore = "makes a host: make test-addons"]
fn cluster_gateway_kinds_are_there_first_and_go_last() {
    let Some(site) = Site::of_cluster("gateway", "10.125.28.0/24", 0) else { return };
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "edge"},
        "spec": {"controllerName": "example.com/edge"},
    });
    fs_err::write(site.dir.join("class.json"), class.to_string()).unwrap();
    site.ok(&["config", "set", "phase3.gateway_api=y", "phase3.manifests=class.json"]);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    assert_eq!(site.kubectl(&["get", "gatewayclasses", "--output=jsonpath={.items[*].metadata.name}"]), "edge");
    let served = site.kubectl(&["api-resources", "--api-group=gateway.networking.k8s.io", "--output=name"]);
    let mut served: Vec<&str> = served.lines().filter_map(|name| Some(name.split_once('.')?.0)).collect();
    served.sort_unstable();
    assert_eq!(served, KINDS);
    a_route_is_checked_by_the_kind(&site);
    what_others_do_to_a_kind_is_seen(&site);
    kinds_in_use_are_not_switched_off(&site);
    what_is_switched_off_is_gone(&site);
    site.ok(&["down", "--yes"]);
}

/// The rules of the kind itself judge, as no controller is there.
fn a_route_is_checked_by_the_kind(site: &Site) {
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "front"},
        "spec": {"gatewayClassName": "edge", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    });
    let route = |path: &str| {
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "shop"}, "spec": {
            "parentRefs": [{"name": "front"}],
            "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": path}}], "backendRefs": [{"name": "web", "port": 80}]}],
        }})
    };
    apply(site, "gateway", &[gateway, route("/cart")]);
    fs_err::write(site.dir.join("bad.json"), route("cart").to_string()).unwrap();
    let file = format!("--filename={}", site.dir.join("bad.json").display());
    let refused = site.try_kubectl(&["apply", &file]).unwrap_err();
    assert!(refused.contains("value must be an absolute path"), "{refused}");
}

fn what_others_do_to_a_kind_is_seen(site: &Site) {
    let (kind, short) =
        ("customresourcedefinition/gatewayclasses.gateway.networking.k8s.io", "jsonpath={.spec.names.shortNames}");
    let patch = json!({"spec": {"names": {"shortNames": ["class"]}}}).to_string();
    site.kubectl(&["patch", kind, "--type=merge", &format!("--patch={patch}")]);
    let told = site.ok(&["plan"]).out;
    assert!(told.contains("CustomResourceDefinition gatewayclasses.gateway.networking.k8s.io"), "{told}");
    site.ok(&["up"]);
    assert_eq!(site.kubectl(&["get", kind, &format!("--output={short}")]), "[\"gc\"]");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

fn kinds_in_use_are_not_switched_off(site: &Site) {
    site.ok(&["config", "set", "phase3.gateway_api=n"]);
    for command in ["up", "plan"] {
        let refused = site.fails(4, &[command]);
        let said = refused.out + &refused.err;
        for part in [
            "3 objects of kinds that the addon gateway-api defines would be deleted with it; nothing was changed",
            "Gateway default/front",
            "GatewayClass edge",
            "HTTPRoute default/shop",
            "turnup config set phase3.gateway_api=y; or, to lose them: kubectl delete gateways.gateway.networking.k8s.io,\
             httproutes.gateway.networking.k8s.io,gatewayclasses.gateway.networking.k8s.io --all --all-namespaces",
        ] {
            assert!(said.contains(part), "{command}: {part}: {said}");
        }
    }
    assert_eq!(site.kubectl(&["get", "gateways,httproutes,gatewayclasses", "--output=name"]).lines().count(), 3);
}

fn what_is_switched_off_is_gone(site: &Site) {
    site.ok(&["config", "unset", "phase3.manifests"]);
    // What the refusal said.
    let kinds = "gateways.gateway.networking.k8s.io,httproutes.gateway.networking.k8s.io,\
        gatewayclasses.gateway.networking.k8s.io";
    site.kubectl(&["delete", kinds, "--all", "--all-namespaces"]);
    site.ok(&["up"]);
    let kinds = "customresourcedefinitions,configmaps";
    let left = site.kubectl(&["get", kinds, "--all-namespaces", "--output=name"]);
    assert_eq!(left.lines().filter(|name| name.contains("gateway")).collect::<Vec<_>>(), [""; 0], "{left}");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}
