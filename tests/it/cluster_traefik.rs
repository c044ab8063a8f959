//! Traefik on real hosts: requests come through Gateways and Ingresses to the pods that these name,
//! none is lost while its pods are replaced, and nothing of it stays.
#![expect(clippy::disallowed_methods, reason = "openssl makes a certificate, and curl judges it")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_addons::{agnhost, apply, field};
use crate::cluster_support::Site;

const SOON: Duration = Duration::from_mins(2);
const SYSTEM: &str = "--namespace=kube-system";
/// The defaults of the settings.
const HTTP: u16 = 30080;
const HTTPS: u16 = 30443;

#[test]
#[ignore = "builds one more program: make test-addons"]
fn cluster_traefik_passes_requests_on() {
    let Some(site) = Site::of_cluster("traefik", "10.125.38.0/24", 1) else { return };
    site.ok(&["config", "set", "phase3.traefik=y", "phase3.gateway_api=y", "phase3.traefik_arrival=node-ports"]);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    assert!(condition(&site, &["gatewayclass", "traefik"], ".status", "Accepted"));
    start_servers(&site);
    let edge = Edge(address(&site, "it-worker-0"), HTTP);
    routes_lead_to_their_services(&site, &edge);
    certificates_are_those_of_secrets(&site, &edge);
    other_namespaces_have_to_grant(&site, &edge);
    ingresses_lead_to_their_services(&site, &edge);
    no_request_is_lost_while_pods_are_replaced(&site, &edge);
    hosts_have_its_ports(&site);
    what_is_switched_off_is_gone(&site);
    site.ok(&["down", "--yes"]);
}

fn address(site: &Site, host: &str) -> String {
    site.hosts()[host]["address"].as_str().unwrap().to_owned()
}

/// The address of a node, and the port for HTTP.
struct Edge(String, u16);

impl Edge {
    /// Status and body.
    fn try_ask(&self, host: &str, path: &str, header: &str) -> io::Result<(u16, String)> {
        let address: SocketAddr = format!("{}:{}", self.0, self.1).parse().map_err(io::Error::other)?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{header}\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Ok((status, text.split_once("\r\n\r\n").unwrap_or_default().1.to_owned()))
    }

    /// Until a pod of this name answers.
    fn becomes(&self, host: &str, path: &str, header: &str, pod: &str) {
        self.until(host, path, header, |status, body| status == 200 && body.contains(pod));
    }

    fn until(&self, host: &str, path: &str, header: &str, is_it: impl Fn(u16, &str) -> bool) {
        let start = Instant::now();
        loop {
            let answer = self.try_ask(host, path, header);
            if answer.as_ref().is_ok_and(|(status, body)| is_it(*status, body)) {
                return;
            }
            assert!(start.elapsed() < SOON, "{host}{path} {header}: {answer:?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// Whether a condition of a status becomes true.
fn condition(site: &Site, what: &[&str], status: &str, name: &str) -> bool {
    let path = format!("{status}.conditions[?(@.type==\"{name}\")].status");
    let start = Instant::now();
    while start.elapsed() < SOON {
        if field(site, what, &path) == "True" {
            return true;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    false
}

fn server(name: &str, namespace: &str, image: &str) -> [Value; 2] {
    let metadata = json!({"name": name, "namespace": namespace});
    let pod = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{
        "name": "main", "image": image, "imagePullPolicy": "Never", "args": ["netexec", "--http-port=8080"],
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/healthz"}, "periodSeconds": 1},
    }]}});
    [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": pod}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}}),
    ]
}

/// `old` and `new` side by side, `far` in another namespace. Each says its pod's name.
fn start_servers(site: &Site) {
    let image = agnhost(site);
    let far = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}});
    let servers = [server("old", "default", &image), server("new", "default", &image), server("far", "far", &image)];
    apply(site, "servers", &[vec![far], servers.concat()].concat());
    for (name, namespace) in [("old", "default"), ("new", "default"), ("far", "far")] {
        let of = format!("--namespace={namespace}");
        site.kubectl(&["rollout", "status", &format!("deployment/{name}"), &of, "--timeout=3m"]);
    }
}

fn route(name: &str, host: &str, rules: &Value) -> Value {
    json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name},
        "spec": {"parentRefs": [{"name": "front"}], "hostnames": [host], "rules": rules}})
}

fn routes_lead_to_their_services(site: &Site, edge: &Edge) {
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "front"},
        "spec": {"gatewayClassName": "traefik", "listeners": [
            {"name": "http", "port": 80, "protocol": "HTTP"},
            {"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "shop"}]}},
        ]},
    });
    make_certificate(site);
    let rules = |first: &str| {
        json!([
            {"matches": [{"path": {"type": "PathPrefix", "value": "/hostname"}, "headers": [{"name": "x-canary", "value": "yes"}]}],
             "backendRefs": [{"name": "new", "port": 80}]},
            {"matches": [{"path": {"type": "PathPrefix", "value": "/hostname"}}], "backendRefs": [{"name": first, "port": 80}]},
        ])
    };
    apply(site, "gateway", &[gateway, route("shop", "shop.example.com", &rules("old"))]);
    edge.becomes("shop.example.com", "/hostname", "", "old-");
    edge.becomes("shop.example.com", "/hostname", "x-canary: yes\r\n", "new-");
    for (host, path) in [("shop.example.com", "/healthz"), ("other.example.com", "/hostname")] {
        assert_eq!(edge.try_ask(host, path, "").unwrap().0, 404, "{host}{path}");
    }
    for name in ["Accepted", "Programmed"] {
        assert!(condition(site, &["gateway", "front"], ".status", name), "{name}");
    }
    for name in ["Accepted", "ResolvedRefs"] {
        assert!(condition(site, &["httproute", "shop"], ".status.parents[0]", name), "{name}");
    }
    apply(site, "changed", &[route("shop", "shop.example.com", &rules("new"))]);
    edge.becomes("shop.example.com", "/hostname", "", "new-");
    weights_are_kept(site, edge);
}

/// Each pod of Traefik keeps them for itself.
fn weights_are_kept(site: &Site, edge: &Edge) {
    let backend = |name: &str, weight: u8| json!({"name": name, "port": 80, "weight": weight});
    let rules = json!([{"backendRefs": [backend("old", 1), backend("new", 3)]}]);
    apply(site, "weights", &[route("both", "both.example.com", &rules)]);
    edge.becomes("both.example.com", "/hostname", "", "old-");
    let answers: Vec<_> = (0..80).map(|_| edge.try_ask("both.example.com", "/hostname", "").unwrap()).collect();
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    let new = answers.iter().filter(|(_, body)| body.contains("new-")).count();
    assert!((56..=64).contains(&new), "{new} of 80, three quarters of them");
}

fn make_certificate(site: &Site) {
    let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    let names = ["-subj", "/CN=shop", "-addext", "subjectAltName=DNS:shop.example.com"];
    let files = ["-keyout", "shop.key", "-out", "shop.pem"];
    let made = Command::new("openssl").args(request).args(names).args(files).current_dir(&site.dir).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = |name: &str| site.dir.join(name).display().to_string();
    let (certificate, key) = (format!("--cert={}", file("shop.pem")), format!("--key={}", file("shop.key")));
    site.kubectl(&["create", "secret", "tls", "shop", &certificate, &key]);
}

fn certificates_are_those_of_secrets(site: &Site, edge: &Edge) {
    let start = Instant::now();
    loop {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--noproxy", "*", "--cacert"]).arg(site.dir.join("shop.pem"));
        curl.arg("--resolve").arg(format!("shop.example.com:{HTTPS}:{}", edge.0));
        let output = curl.arg(format!("https://shop.example.com:{HTTPS}/hostname")).output().unwrap();
        if output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with("new-") {
            return;
        }
        assert!(start.elapsed() < SOON, "{output:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn other_namespaces_have_to_grant(site: &Site, edge: &Edge) {
    let rules = json!([{"backendRefs": [{"name": "far", "namespace": "far", "port": 80}]}]);
    apply(site, "far", &[route("far", "far.example.com", &rules)]);
    edge.until("far.example.com", "/hostname", "", |status, _| status == 500);
    let path = ".status.parents[0].conditions[?(@.type==\"ResolvedRefs\")].reason";
    assert_eq!(field(site, &["httproute", "far"], path), "RefNotPermitted");
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
        "metadata": {"name": "front", "namespace": "far"}, "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default"}],
            "to": [{"group": "", "kind": "Service"}],
        },
    });
    apply(site, "grant", &[grant]);
    edge.becomes("far.example.com", "/hostname", "", "far-");
}

/// Of its own class alone.
fn ingresses_lead_to_their_services(site: &Site, edge: &Edge) {
    let ingress = |name: &str, class: &str| {
        let backend = json!({"service": {"name": "old", "port": {"number": 80}}});
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name}, "spec": {
            "ingressClassName": class, "rules": [{"host": format!("{name}.example.com"), "http": {"paths": [
                {"path": "/hostname", "pathType": "Prefix", "backend": backend}]}}],
        }})
    };
    apply(site, "ingresses", &[ingress("foreign", "other"), ingress("blog", "traefik")]);
    edge.becomes("blog.example.com", "/hostname", "", "old-");
    assert_eq!(edge.try_ask("foreign.example.com", "/hostname", "").unwrap().0, 404);
}

fn no_request_is_lost_while_pods_are_replaced(site: &Site, edge: &Edge) {
    let is_over = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let (is_over, edge) = (Arc::clone(&is_over), Edge(edge.0.clone(), HTTP));
        move || {
            let (mut requests, mut failed) = (0, Vec::new());
            while !is_over.load(Ordering::SeqCst) {
                requests += 1;
                let answer = edge.try_ask("shop.example.com", "/hostname", "");
                if !answer.as_ref().is_ok_and(|(status, _)| *status == 200) {
                    failed.push(answer);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            (requests, failed)
        }
    });
    site.kubectl(&["rollout", "restart", "deployment/traefik", SYSTEM]);
    site.kubectl(&["rollout", "status", "deployment/traefik", SYSTEM, "--timeout=5m"]);
    let gone = "--selector=app.kubernetes.io/name=traefik";
    let is_replaced = || site.kubectl(&["get", "pods", SYSTEM, gone, "--output=name"]).lines().count() == 2;
    let start = Instant::now();
    while !is_replaced() {
        assert!(start.elapsed() < SOON, "the old pods end");
        std::thread::sleep(Duration::from_secs(1));
    }
    is_over.store(true, Ordering::SeqCst);
    let (requests, failed) = asking.join().unwrap();
    assert!(requests > 100, "{requests}");
    assert!(failed.is_empty(), "{} of {requests}: {failed:?}", failed.len());
}

/// Instead of a Service: the pods of a change have to go before the new ones come.
fn hosts_have_its_ports(site: &Site) {
    site.ok(&["config", "set", "phase3.traefik_arrival=host-ports"]);
    site.ok(&["up"]);
    assert_eq!(left(site, "services", "traefik"), [""; 0]);
    for host in ["it-control-plane-0", "it-worker-0"] {
        Edge(address(site, host), 80).becomes("shop.example.com", "/hostname", "", "new-");
    }
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

/// The objects of these kinds with a word in their names.
fn left(site: &Site, kinds: &str, word: &str) -> Vec<String> {
    let names = site.kubectl(&["get", kinds, "--all-namespaces", "--output=name"]);
    names.lines().filter(|name| name.contains(word)).map(str::to_owned).collect()
}

fn what_is_switched_off_is_gone(site: &Site) {
    site.ok(&["config", "unset", "phase3.traefik", "phase3.traefik_arrival"]);
    site.ok(&["up"]);
    let kinds = "deployments,services,endpointslices,serviceaccounts,clusterroles,clusterrolebindings,ingressclasses,\
        poddisruptionbudgets";
    assert_eq!(left(site, &format!("{kinds},gatewayclasses"), "traefik"), [""; 0]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");

    // Both at once: the class, which turnup has made, goes with its kind; what users made is kept.
    site.ok(&["config", "set", "phase3.traefik=y", "phase3.traefik_arrival=node-ports"]);
    site.ok(&["up"]);
    site.ok(&["config", "unset", "phase3.traefik", "phase3.traefik_arrival", "phase3.gateway_api"]);
    let refused = site.fails(4, &["up"]);
    let said = refused.out + &refused.err;
    assert!(said.contains("Gateway default/front") && !said.contains("GatewayClass traefik"), "{said}");
    let of_users = "gateways.gateway.networking.k8s.io,httproutes.gateway.networking.k8s.io,\
        referencegrants.gateway.networking.k8s.io";
    site.kubectl(&["delete", of_users, "--all", "--all-namespaces"]);
    site.ok(&["up"]);
    assert_eq!(left(site, kinds, "traefik"), [""; 0]);
    assert_eq!(left(site, "customresourcedefinitions,configmaps", "gateway"), [""; 0]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}
