//! `NetworkPolicies` on real hosts: what a policy denies does not arrive, on the same node and from
//! another one; what it allows does; the rules stay without their program, and go with the addon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_addons::{agnhost, apply};
use crate::cluster_reset::on_host;
use crate::cluster_support::Site;

const NODES: [&str; 2] = ["it-control-plane-0", "it-worker-0"];
/// Only what hangs takes as long: rules follow a policy within seconds.
const SOON: Duration = Duration::from_mins(1);
/// An address of its own for the pod `web`.
const SERVICE: &str = "10.96.0.81:80";
const ADDON: &str = "daemonset/kube-network-policies";

#[test]
#[ignore = "builds one more program: make test-addons"]
fn cluster_policies_are_enforced_while_their_addon_is_on() {
    let Some(site) = Site::of_cluster("policies", "10.125.26.0/24", 1) else { return };
    site.ok(&["config", "set", "phase3.network_policies=y"]);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    let web = start_pods(&site);
    for client in ["near", "far"] {
        becomes(&site, client, &web, true);
        becomes(&site, client, SERVICE, true);
    }
    what_is_denied_does_not_arrive(&site, &web);
    what_does_not_run_leaves_its_rules(&site, &web);
    what_is_switched_off_is_gone(&site, &web);
    site.ok(&["down", "--yes"]);
}

/// The server and a client on the worker, a client on the control plane; the server's address.
fn start_pods(site: &Site) -> String {
    let image = agnhost(site);
    let pod = |name: &str, node: &str, args: &[&str]| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": {
            "nodeName": node, "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "main", "image": image, "imagePullPolicy": "Never", "command": ["/agnhost"], "args": args,
                // Asked by kubelet, whom no policy keeps out.
                "readinessProbe": {"httpGet": {"port": 8080, "path": "/healthz"}, "periodSeconds": 1, "timeoutSeconds": 3},
            }],
        }})
    };
    let serve = ["netexec", "--http-port=8080"];
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {
        "clusterIP": SERVICE.strip_suffix(":80"), "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}],
    }});
    let [control_plane, worker] = NODES;
    let pods = [pod("web", worker, &serve), pod("near", worker, &serve), pod("far", control_plane, &serve), service];
    apply(site, "pods", &pods);
    site.kubectl(&["wait", "--for=condition=Ready", "pod/web", "pod/near", "pod/far", "--timeout=2m"]);
    site.kubectl(&["get", "pod", "web", "--output=jsonpath={.status.podIP}"]) + ":8080"
}

fn connect(site: &Site, client: &str, place: &str) -> Result<String, String> {
    site.try_kubectl(&["exec", client, "--", "/agnhost", "connect", place, "--timeout=2s"])
}

/// Waits until a new connection arrives, or does not; a moment later it is the same.
fn becomes(site: &Site, client: &str, place: &str, arrives: bool) {
    let start = Instant::now();
    let mut seen = 0;
    while seen < 2 {
        let said = connect(site, client, place);
        seen = if said.is_ok() == arrives { seen + 1 } else { 0 };
        assert!(start.elapsed() < SOON, "{client} to {place}, wanted {arrives}: {said:?}");
    }
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec})
}

fn closed() -> Value {
    policy("closed", &json!({"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}))
}

fn what_is_denied_does_not_arrive(site: &Site, web: &str) {
    apply(site, "closed", &[closed()]);
    for client in ["near", "far"] {
        becomes(site, client, web, false);
        becomes(site, client, SERVICE, false);
    }
    // Only the worker has a pod that a policy selects.
    let rules = on_host(site, NODES[1], "nft list set ip kube-network-policies selected-pods");
    assert!(rules.contains(web.trim_end_matches(":8080")), "{rules}");
    site.kubectl(&["wait", "--for=condition=Ready", "pod/web", "--timeout=5s"]);
    let from = json!([{"podSelector": {"matchLabels": {"app": "far"}}}]);
    let ports = json!([{"port": 8080, "protocol": "TCP"}]);
    let open = policy(
        "open",
        &json!({"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"], "ingress": [{"from": from, "ports": ports}]}),
    );
    apply(site, "open", &[open]);
    becomes(site, "far", SERVICE, true);
    becomes(site, "near", SERVICE, false);
    // What leaves a pod, the way to its own node included.
    let address = "--output=jsonpath={.status.addresses[?(@.type=='InternalIP')].address}";
    let node = site.kubectl(&["get", "node", NODES[0], address]) + ":6443";
    becomes(site, "far", &node, true);
    let spec = json!({"podSelector": {"matchLabels": {"app": "far"}}, "policyTypes": ["Egress"]});
    apply(site, "inside", &[policy("inside", &spec)]);
    becomes(site, "far", web, false);
    becomes(site, "far", &node, false);
    site.kubectl(&["delete", "networkpolicies", "--all"]);
    for client in ["near", "far"] {
        becomes(site, client, web, true);
    }
}

/// Its pods go to nodes that do not exist; `turnup up` brings them back.
fn stop_it(site: &Site) {
    let nowhere = json!({"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "nowhere"}}}}});
    site.kubectl(&["patch", ADDON, "--namespace=kube-system", "--patch", &nowhere.to_string()]);
    wait_until_its_pods_are_gone(site);
}

fn wait_until_its_pods_are_gone(site: &Site) {
    let selector = "--selector=app.kubernetes.io/name=kube-network-policies";
    site.kubectl(&["wait", "--for=delete", "pod", "--namespace=kube-system", selector, "--timeout=2m"]);
}

fn what_does_not_run_leaves_its_rules(site: &Site, web: &str) {
    apply(site, "closed", &[closed()]);
    becomes(site, "near", web, false);
    stop_it(site);
    becomes(site, "near", web, false);
    // One that no policy selects.
    let near = site.kubectl(&["get", "pod", "near", "--output=jsonpath={.status.podIP}"]) + ":8080";
    becomes(site, "far", &near, true);
    assert!(site.ok(&["plan"]).out.contains("nowhere"), "a change by hand is seen");
    site.ok(&["config", "set", "phase3.network_policies_fail_open=y"]);
    site.ok(&["up"]);
    becomes(site, "near", web, false);
    stop_it(site);
    becomes(site, "near", web, true);
    site.ok(&["up"]);
    becomes(site, "near", web, false);
}

fn what_is_switched_off_is_gone(site: &Site, web: &str) {
    site.ok(&["config", "unset", "phase3.network_policies", "phase3.network_policies_fail_open"]);
    site.ok(&["up"]);
    let kinds = "daemonsets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings";
    let selector = "--selector=turnup.dev/addon=kube-network-policies";
    assert_eq!(site.kubectl(&["get", kinds, "--all-namespaces", selector, "--output=name"]), "");
    wait_until_its_pods_are_gone(site);
    for node in NODES {
        let tables = on_host(site, node, "nft list tables");
        assert!(tables.contains("kube-proxy") && !tables.contains("kube-network-policies"), "{node}: {tables}");
    }
    // The policy is still there, and says nothing any more.
    becomes(site, "near", web, true);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}
