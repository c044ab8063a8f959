//! Names in a real DNS server that a real cluster keeps: those of its API server, and those that
//! annotations of Services, Ingresses, Nodes and Pods ask for.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_addons::apply;
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, say};
use crate::dns_support::{DnsServer, KEY, Kind, SECRET, ZONE};

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 125, 37, 1);
const CONTROL_PLANE: &str = "it-control-plane-0";
const WORKER: &str = "it-worker-0";
const EXTERNAL: &str = "dns.alpha.kubernetes.io/external";
const INTERNAL: &str = "dns.alpha.kubernetes.io/internal";
/// A round each five seconds, on a machine with other work.
const SOON: Duration = Duration::from_mins(2);

fn wait_for(server: &DnsServer, site: &Site, name: &str, expected: &[&str]) {
    let start = Instant::now();
    let name = format!("{name}.it.{ZONE}");
    while server.dig(&name, "A") != expected {
        let journal = || on_host(site, CONTROL_PLANE, "journalctl --unit turnup-dns --no-pager --lines 40");
        assert!(start.elapsed() < SOON, "{name}: {:?} is not {expected:?}: {}", server.dig(&name, "A"), journal());
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn address_of(site: &Site, node: &str) -> String {
    let path = "jsonpath={.status.addresses[?(@.type==\"InternalIP\")].address}";
    site.kubectl(&["get", "node", node, "--output", path])
}

fn objects() -> [Value; 4] {
    let names = |all: &str| all.split(' ').map(|name| format!("{name}.it.{ZONE}")).collect::<Vec<_>>().join(",");
    let service = |name: &str, kind: &str, annotation: &str, asked: &str| {
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default", "annotations": {annotation: names(asked)}},
            "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"app": "web"}}})
    };
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "default", "annotations": {EXTERNAL: names("www")}},
        "spec": {"defaultBackend": {"service": {"name": "port", "port": {"number": 80}}}}});
    [
        service("balanced", "LoadBalancer", EXTERNAL, "shop *.apps taken"),
        service("port", "NodePort", EXTERNAL, "port"),
        service("inside", "ClusterIP", INTERNAL, "inside"),
        ingress,
    ]
}

fn set_entrance(site: &Site, object: &str, address: &str) {
    let patch = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}).to_string();
    site.kubectl(&["patch", object, "--namespace=default", "--subresource=status", "--type=merge", "--patch", &patch]);
}

fn list_of_names(site: &Site) -> String {
    site.kubectl(&["get", "configmap", "turnup-dns", "--namespace=kube-system", "--output=jsonpath={.data.names}"])
}

#[test]
#[ignore = "a cluster of its own, some minutes: make test-heal"]
fn a_cluster_keeps_its_names_in_a_zone() {
    let Some(site) = Site::of_cluster("names", "10.125.37.0/24", 1) else { return };
    let before = site.look_around();
    site.ok(&["up"]);
    // The bridge is there now. BIND gives out a key that may write below the cluster's name alone.
    let server = DnsServer::start(Kind::Bind, GATEWAY.into());
    fs_err::write(site.dir.join("dns.key"), format!("hmac-sha256:{KEY}:{SECRET}\n")).unwrap();
    fs_err::set_permissions(site.dir.join("dns.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let port = server.address.port();
    let of_server = [
        format!("phase1.local.open_ports={port}"),
        format!("phase2.dns.server={GATEWAY}"),
        format!("phase2.dns.port={port}"),
        format!("phase2.dns.zone={ZONE}"),
        "phase2.dns.key_file=dns.key".to_owned(),
        "phase2.dns.annotations=y".to_owned(),
    ];
    let words: Vec<&str> = ["config", "set"].into_iter().chain(of_server.iter().map(String::as_str)).collect();
    site.ok(&words);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    let [own, worker] = [CONTROL_PLANE, WORKER].map(|node| address_of(&site, node));
    wait_for(&server, &site, "api", &[&own]);
    wait_for(&server, &site, "api.internal", &[&own]);
    let member = format!("etcd-{CONTROL_PLANE}.internal");
    wait_for(&server, &site, &member, &[&own]);

    annotations_are_followed(&site, &server, &own, &worker);
    a_killed_writer_loses_nothing(&site, &server);

    // Off: the names of annotations go, those of the API server stay.
    site.ok(&["config", "set", "phase2.dns.annotations=n"]);
    site.ok(&["up"]);
    wait_for(&server, &site, "port", &[]);
    wait_for(&server, &site, "worker", &[]);
    wait_for(&server, &site, "api", &[&own]);
    site.ok(&["config", "set", "phase2.dns.annotations=y"]);
    site.ok(&["up"]);
    wait_for(&server, &site, "port", &[&worker]);

    let said = site.ok(&["down", "--yes"]);
    for name in ["api", "api.internal", &member, "port", "worker", "inside", "www"] {
        let name = format!("{name}.it.{ZONE}");
        let left = [server.dig_at_loopback(&name, "A"), server.dig_at_loopback(&name, "TXT")].concat();
        assert!(left.is_empty(), "{name} leads to {left:?} after down: {}", said.out);
    }
    assert_eq!(server.dig_at_loopback(&format!("taken.it.{ZONE}"), "A"), ["192.0.2.9"], "of another owner");
    drop(server);
    let after = site.look_around();
    let left: Vec<&String> = after.difference(&before).collect();
    assert!(left.is_empty(), "left behind or changed: {left:#?}");
}

fn annotations_are_followed(site: &Site, server: &DnsServer, own: &str, worker: &str) {
    let start = Instant::now();
    apply(site, "named", &objects());
    set_entrance(site, "service/balanced", "192.0.2.77");
    set_entrance(site, "ingress/web", "192.0.2.78");
    site.kubectl(&["annotate", "node", WORKER, &format!("{INTERNAL}=worker.it.{ZONE}")]);
    let of = "jsonpath={.items[0].metadata.name}";
    let on = format!("--field-selector=spec.nodeName={CONTROL_PLANE}");
    let proxy =
        site.kubectl(&["get", "pods", "--namespace=kube-system", "--selector=k8s-app=kube-proxy", &on, "--output", of]);
    site.kubectl(&["annotate", "pod", &proxy, "--namespace=kube-system", &format!("{EXTERNAL}=proxy.it.{ZONE}")]);
    wait_for(server, site, "shop", &["192.0.2.77"]);
    say(&format!("the first name: {:.1} s after its object", start.elapsed().as_secs_f64()));
    wait_for(server, site, "anything.apps", &["192.0.2.77"]);
    wait_for(server, site, "www", &["192.0.2.78"]);
    wait_for(server, site, "port", &[worker]);
    wait_for(server, site, "worker", &[worker]);
    wait_for(server, site, "proxy", &[own]);
    let inside = site.kubectl(&["get", "service", "inside", "--output=jsonpath={.spec.clusterIP}"]);
    wait_for(server, site, "inside", &[&inside]);
    let journal = on_host(site, CONTROL_PLANE, "journalctl --unit turnup-dns --no-pager");
    assert!(journal.contains("taken.it.example.test: another owner has it (192.0.2.9)"), "{journal}");
    assert!(list_of_names(site).contains("shop.it.example.test"));
    set_entrance(site, "service/balanced", "192.0.2.79");
    wait_for(server, site, "shop", &["192.0.2.79"]);
    site.kubectl(&["delete", "service", "balanced", "--namespace=default"]);
    wait_for(server, site, "shop", &[]);
    wait_for(server, site, "anything.apps", &[]);
    assert!(!list_of_names(site).contains("shop.it.example.test"));
}

/// What goes while it is dead goes from the zone when it lives again.
fn a_killed_writer_loses_nothing(site: &Site, server: &DnsServer) {
    on_host(site, CONTROL_PLANE, "systemctl stop turnup-dns.service");
    site.kubectl(&["annotate", "pods", "--all", "--namespace=kube-system", &format!("{EXTERNAL}-")]);
    on_host(site, CONTROL_PLANE, "systemctl start turnup-dns.service");
    wait_for(server, site, "proxy", &[]);
    // The next one is killed in the middle of whatever it does.
    for _ in 0..3 {
        on_host(site, CONTROL_PLANE, "systemctl kill --signal=KILL turnup-dns.service; sleep 1");
    }
    site.kubectl(&["annotate", "node", WORKER, &format!("{EXTERNAL}=second.it.{ZONE}")]);
    let worker = address_of(site, WORKER);
    wait_for(server, site, "second", &[&worker]);
    let idle = on_host(
        site,
        CONTROL_PLANE,
        "grep -E '^(VmRSS|VmHWM)' /proc/$(systemctl show --property MainPID --value turnup-dns)/status",
    );
    say(&format!("the writer: {}", idle.replace('\n', ", ")));
}
