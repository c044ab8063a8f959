//! Traefik as it is rendered.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;

use super::object::Object;
use super::tests::{differences, render_set};

const ON: (&str, &str) = ("phase3.traefik", "y");

#[test]
fn traefik_as_it_is_applied() {
    insta::assert_snapshot!(render_set("traefik", &[ON, ("phase3.gateway_api", "y")]).unwrap());
}

#[test]
fn settings_of_traefik_are_in_its_manifest() {
    let chosen = [
        ON,
        ("phase3.traefik_default_ingress_class", "y"),
        ("phase3.traefik_replicas", "1"),
        ("phase3.traefik_arrival", "node-ports"),
        ("phase3.traefik_http_node_port", "31080"),
        ("phase3.traefik_https_node_port", "31443"),
        ("phase3.traefik_trusted_proxies", "192.0.2.0/24,198.51.100.7/32"),
        ("phase3.traefik_proxy_protocol", "y"),
        ("phase3.traefik_namespaces", "shop,web"),
        ("phase3.traefik_access_log", "y"),
        ("phase3.traefik_log_level", "debug"),
        ("phase3.traefik_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences("traefik", &[ON], &chosen));
}

fn objects(more: &[(&str, &str)]) -> Vec<(Object, Value)> {
    Object::read(&render_set("traefik", &[&[ON], more].concat()).unwrap()).unwrap()
}

fn kinds(of: &[(Object, Value)]) -> Vec<&str> {
    of.iter().map(|(object, _)| object.kind.as_str()).collect()
}

fn find<'o>(of: &'o [(Object, Value)], kind: &str) -> &'o Value {
    of.iter().find(|(object, _)| object.kind == kind).map(|(_, value)| value).unwrap()
}

/// Where others bring the kinds they may not be there yet.
#[test]
fn the_class_of_gateways_comes_with_turnups_kinds_alone() {
    let has_class = |more: &[(&str, &str)]| kinds(&objects(more)).contains(&"GatewayClass");
    let (kinds_of_turnup, gateways) = (("phase3.gateway_api", "y"), "phase3.traefik_gateways");
    assert!(has_class(&[kinds_of_turnup]));
    assert!(!has_class(&[kinds_of_turnup, (gateways, "n")]) && !has_class(&[(gateways, "y")]));
}

/// Two pods cannot have the same port of a host: the new one would wait for ever for the old one.
#[test]
fn pods_with_ports_of_hosts_leave_before_new_ones_come() {
    let of = objects(&[("phase3.traefik_arrival", "host-ports")]);
    assert!(!kinds(&of).contains(&"Service"));
    let spec = &find(&of, "Deployment")["spec"];
    assert_eq!(spec["strategy"]["rollingUpdate"], serde_json::json!({"maxSurge": 0, "maxUnavailable": 1}));
    let ports = spec["template"]["spec"]["containers"][0]["ports"].as_array().unwrap();
    let of_host: Vec<u64> = ports.iter().filter_map(|port| port["hostPort"].as_u64()).collect();
    assert_eq!(of_host, [80, 443]);
}

/// It has rights on what it serves alone, and writes what became of that and nothing else.
#[test]
fn traefik_may_do_what_its_providers_need() {
    let rules = |more: &[(&str, &str)]| find(&objects(more), "ClusterRole")["rules"].as_array().unwrap().clone();
    let groups = |rules: &[Value]| -> Vec<String> {
        rules.iter().filter_map(|rule| rule["apiGroups"][0].as_str().map(str::to_owned)).collect()
    };
    let (ingresses, gateways) = ("networking.k8s.io".to_owned(), "gateway.networking.k8s.io".to_owned());
    let alone = groups(&rules(&[]));
    assert!(alone.contains(&ingresses) && !alone.contains(&gateways), "{alone:?}");
    let without = [("phase3.gateway_api", "y"), ("phase3.traefik_ingresses", "n")];
    let other = groups(&rules(&without));
    assert!(!other.contains(&ingresses) && other.contains(&gateways), "{other:?}");
    assert!(!kinds(&objects(&without)).contains(&"IngressClass"));
    for rule in rules(&[("phase3.gateway_api", "y")]) {
        let named = |list: &str| -> Vec<String> {
            rule[list].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        let (resources, verbs) = (named("resources"), named("verbs"));
        let is_read = verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str()));
        assert!(is_read || resources.iter().all(|resource| resource.ends_with("/status")), "{rule}");
    }
}
