//! Settings of the addons and manifests of the user's own on a real cluster: what pods resolve,
//! what lies in the kernel, and what stays of manifests that leave. Nothing is faked.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_reset::on_host;
use crate::cluster_support::Site;

const WORKER: &str = "it-worker-0";
/// A Service that a stub domain leads to.
const SHOP_DNS: &str = "10.96.0.53";
/// `CoreDNS` reads its Corefile again by itself; kubelet gives it a new one within about a minute.
const RELOAD: Duration = Duration::from_mins(3);

#[test]
#[ignore = "some minutes: make test-settings"]
fn settings_of_addons_and_own_manifests_act() {
    let Some(site) = Site::of_cluster("addons", "10.123.22.0/24", 1) else { return };
    fs_err::create_dir(site.dir.join("shop")).unwrap();
    site.ok(&["up"]);
    own_manifests_are_applied(&site);
    settings_of_the_dns_show_in_its_answers(&site);
    settings_of_the_network_show_on_the_hosts(&site);
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    the_list_says_what_there_is(&site);
    own_manifests_are_changed_and_pruned(&site);
    site.ok(&["down", "--yes"]);
}

/// The image that a workload runs.
pub(crate) fn image(site: &Site, workload: &str) -> String {
    let path = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    site.kubectl(&["get", workload, "--namespace=kube-system", path])
}

/// Applies these objects, from a file of this name.
pub(crate) fn apply(site: &Site, name: &str, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let file = site.dir.join(format!("{name}.json"));
    fs_err::write(&file, list.to_string()).unwrap();
    site.kubectl(&["apply", &format!("--filename={}", file.display())]);
}

/// A field of an object; empty where it is not there.
pub(crate) fn field(site: &Site, what: &[&str], path: &str) -> String {
    let path = format!("--output=jsonpath={{{path}}}");
    site.kubectl(&[&["get", "--ignore-not-found", &path], what].concat())
}

/// The image of test pods, which every host has. It has the cluster's own version; a node's status
/// names it only some time after the host has it.
pub(crate) fn agnhost(site: &Site) -> String {
    image(site, "daemonset/kube-proxy").replace("kube-proxy", "agnhost")
}

/// A kind and an object of it, a namespace and what is in it: all in one go.
fn own_manifests_are_applied(site: &Site) {
    let coredns = image(site, "deployment/coredns");
    let agnhost = agnhost(site);
    let write = |name: &str, text: &str| fs_err::write(site.dir.join("shop").join(name), text).unwrap();
    write(
        "a-object.yaml",
        "apiVersion: example.com/v1\nkind: Shelf\nmetadata:\n  name: books\n  namespace: shop\nspec: {size: 3}\n",
    );
    write(
        "b-kind.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: shelves.example.com\nspec:\n\
         \x20 group: example.com\n  scope: Namespaced\n  names: {kind: Shelf, plural: shelves, singular: shelf}\n  versions:\n\
         \x20 - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n\
         \x20       x-kubernetes-preserve-unknown-fields: true\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
    );
    write("web.yaml", &web(&agnhost));
    write(
        "dns.yaml",
        &format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: dns, namespace: shop}}\ndata:\n  Corefile: |\n    .:5353 {{\n\
             \x20       hosts {{\n            10.96.0.80 web.corp.example\n        }}\n    }}\n---\n\
             apiVersion: v1\nkind: Service\nmetadata: {{name: dns, namespace: shop}}\nspec:\n  clusterIP: {SHOP_DNS}\n\
             \x20 selector: {{app: dns}}\n  ports:\n  - {{name: dns, port: 53, targetPort: 5353, protocol: UDP}}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: dns, namespace: shop}}\nspec:\n  selector: {{matchLabels: {{app: dns}}}}\n\
             \x20 template:\n    metadata: {{labels: {{app: dns}}}}\n    spec:\n      containers:\n      - name: dns\n        image: {coredns}\n\
             \x20       imagePullPolicy: Never\n        args: [-conf, /etc/dns/Corefile]\n        volumeMounts: [{{name: c, mountPath: /etc/dns}}]\n\
             \x20     volumes: [{{name: c, configMap: {{name: dns, defaultMode: 0444}}}}]\n"
        ),
    );
    site.ok(&["config", "set", "phase3.manifests=shop"]);
    let planned = site.ok(&["plan"]).out;
    assert!(planned.contains("Deployment shop/web"), "{planned}");
    site.ok(&["up"]);
    assert_eq!(site.kubectl(&["get", "shelf", "books", "--namespace=shop", "--output=jsonpath={.spec.size}"]), "3");
    let ready = "--output=jsonpath={.items[*].status.availableReplicas}";
    assert_eq!(site.kubectl(&["get", "deployments", "--namespace=shop", ready]), "1 1", "they were waited for");
}

fn web(agnhost: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: shop}}\nspec:\n  clusterIP: 10.96.0.80\n\
         \x20 selector: {{app: web}}\n  ports:\n  - {{port: 80, targetPort: 8080}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec:\n  replicas: 1\n\
         \x20 selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers:\n\
         \x20     - name: web\n        image: {agnhost}\n        imagePullPolicy: Never\n        args: [netexec, --http-port=8080]\n"
    )
}

/// A connection from a pod.
fn connect(site: &Site, place: &str, timeout: &str) -> Result<String, String> {
    site.try_kubectl(&["exec", "deployment/web", "--namespace=shop", "--", "/agnhost", "connect", place, timeout])
}

fn settings_of_the_dns_show_in_its_answers(site: &Site) {
    site.ok(&[
        "config",
        "set",
        &format!("phase3.dns_stub_domains=corp.example={SHOP_DNS}"),
        "phase3.dns_upstreams=192.0.2.53",
        "phase3.dns_cache_seconds=7",
        "phase3.dns_log=y",
        "phase3.dns_memory_limit=200Mi",
    ]);
    site.ok(&["up"]);
    let corefile =
        site.kubectl(&["get", "configmap", "coredns", "--namespace=kube-system", "--output=jsonpath={.data.Corefile}"]);
    for line in ["forward . 192.0.2.53 {", "cache 7 {", "    log\n", "corp.example:53 {"] {
        assert!(corefile.contains(line), "{line}: {corefile}");
    }
    let start = Instant::now();
    while let Err(said) = connect(site, "web.corp.example:80", "--timeout=3s") {
        assert!(start.elapsed() < RELOAD, "the stub domain: {said}");
        std::thread::sleep(Duration::from_secs(2));
    }
    // Any of its pods may have answered.
    let logs = site.kubectl(&["logs", "--selector=k8s-app=kube-dns", "--namespace=kube-system", "--tail=200"]);
    assert!(logs.contains("web.corp.example."), "{logs}");
}

fn settings_of_the_network_show_on_the_hosts(site: &Site) {
    site.ok(&[
        "config",
        "set",
        "phase2.proxy_mode=iptables",
        "phase3.kube_proxy_masquerade_all=y",
        "phase2.network.mtu=1400",
        "phase2.network.non_masquerade_cidrs=198.51.100.0/24",
        "phase2.overrides=overrides.json",
    ]);
    fs_err::write(site.dir.join("overrides.json"), "{\"kube-proxy\": {\"configSyncPeriod\": \"10m\"}}").unwrap();
    site.ok(&["up"]);
    let mode =
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/10249; printf \"GET /proxyMode HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3'";
    assert!(on_host(site, WORKER, mode).ends_with("iptables"), "the mode of kube-proxy");
    assert_ne!(on_host(site, WORKER, "iptables-save --table=nat | grep --count KUBE-SVC").trim(), "0");
    let network = on_host(site, WORKER, "cat /etc/cni/net.d/10-flannel.conflist");
    let network: Value = serde_json::from_str(&network).unwrap();
    assert_eq!(network["plugins"][0]["mtu"], 1400);
    let rules = on_host(site, WORKER, "nft list chain ip flannel-ipv4 postrtg");
    let rule = "ip daddr 198.51.100.0/24 return";
    let position = |text: &str| rules.find(text).ok_or_else(|| format!("{text}: {rules}")).unwrap();
    assert!(position(rule) < position("masquerade"), "{rules}");
    // A Service works by the new rules.
    connect(site, "10.96.0.80:80", "--timeout=5s").unwrap();
    site.ok(&["validate"]);
    // And back: kube-proxy takes the rules of the other mode away.
    site.ok(&["config", "unset", "phase2.proxy_mode", "phase2.overrides"]);
    site.ok(&["up"]);
    assert!(on_host(site, WORKER, "nft list tables").contains("kube-proxy"));
    site.ok(&["validate"]);
}

fn the_list_says_what_there_is(site: &Site) {
    let list: Value = serde_json::from_str(&site.ok(&["addons", "list", "--output", "json"]).out).unwrap();
    let (on, off): (Vec<&Value>, _) =
        list["addons"].as_array().unwrap().iter().partition(|addon| addon["enabled"] == true);
    let names: Vec<&str> = off.iter().filter_map(|addon| addon["name"].as_str()).collect();
    let expected = vec![
        "cert-manager",
        "gateway-api",
        "kube-network-policies",
        "kube-state-metrics",
        "limit-range",
        "local-path-provisioner",
        "log-shipping",
        "metrics-server",
        "node-exporter",
        "snapshot-controller",
        "traefik",
    ];
    assert_eq!((on.len(), names), (3, expected), "{list}");
    for addon in on {
        assert_eq!(addon["installed"], addon["available"], "{list}");
        assert_eq!(addon["skew"], Value::Null, "{list}");
    }
    assert_eq!(list["manifests"][0]["objects"], list["manifests"][0]["recorded"], "{list}");
}

fn own_manifests_are_changed_and_pruned(site: &Site) {
    // By hand, by a change of the file, and an object of another's in the place of a pruned one.
    site.kubectl(&["scale", "deployment/web", "--namespace=shop", "--replicas=3"]);
    assert!(site.ok(&["plan"]).out.contains("replicas"), "a change by hand is seen");
    site.ok(&["up"]);
    let replicas = ["get", "deployment/web", "--namespace=shop", "--output=jsonpath={.spec.replicas}"];
    assert_eq!(site.kubectl(&replicas), "1");
    fs_err::remove_file(site.dir.join("shop/dns.yaml")).unwrap();
    site.kubectl(&["delete", "configmap", "dns", "--namespace=shop"]);
    site.kubectl(&["create", "configmap", "dns", "--namespace=shop", "--from-literal=mine=yes"]);
    site.ok(&["config", "set", "phase3.prune=n"]);
    site.ok(&["up"]);
    assert_eq!(site.kubectl(&["get", "deployments", "--namespace=shop", "--output=name"]).lines().count(), 2);
    site.ok(&["config", "unset", "phase3.prune"]);
    assert!(site.ok(&["plan"]).out.contains("Deployment shop/dns"), "what is pruned is planned");
    site.ok(&["up"]);
    assert_eq!(
        site.kubectl(&["get", "deployments", "--namespace=shop", "--output=name"]).trim(),
        "deployment.apps/web"
    );
    site.kubectl(&["get", "configmap", "dns", "--namespace=shop"]);
    // A kustomization in place of the directory; everything else goes, the kind after its objects.
    fs_err::create_dir(site.dir.join("kustom")).unwrap();
    fs_err::copy(site.dir.join("shop/web.yaml"), site.dir.join("kustom/web.yaml")).unwrap();
    let kustomization = "resources: [web.yaml]\nreplicas: [{name: web, count: 2}]\n";
    fs_err::write(site.dir.join("kustom/kustomization.yaml"), kustomization).unwrap();
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    fs_err::write(site.dir.join("namespace.yaml"), namespace).unwrap();
    site.ok(&["config", "set", "phase3.manifests=namespace.yaml,kustom"]);
    site.ok(&["up"]);
    assert_eq!(site.kubectl(&replicas), "2");
    assert!(site.try_kubectl(&["get", "shelves", "--namespace=shop"]).is_err(), "the kind is gone");
    // The wrong manifest is refused before anything changes.
    fs_err::write(site.dir.join("namespace.yaml"), "kind: Namespace\n").unwrap();
    let refused = site.fails(3, &["up"]);
    assert!(refused.err.contains("document 1 has no apiVersion"), "{refused}");
    site.ok(&["config", "unset", "phase3.manifests"]);
    site.ok(&["up"]);
    assert!(site.try_kubectl(&["get", "namespace", "shop"]).is_err(), "all of it is gone");
    let left = site.kubectl(&["get", "configmaps", "--namespace=kube-system", "--output=name"]);
    assert!(!left.contains("turnup-own-manifests"), "{left}");
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
}
