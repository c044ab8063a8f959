//! Traefik itself, with the rights and the arguments of the addon, between a real API server and
//! servers of this test: which requests arrive where, and what is said of Gateways and routes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "programs that run until the test ends")]

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::object::Object;
use super::tests::render_set;
use crate::artifacts::{Cache, Lock, NoProgress, Sources};
use crate::bootstrap::Kubectl;
use crate::bootstrap::api_server::{ApiServer, free_port};

const ON: [(&str, &str); 2] = [("phase3.traefik", "y"), ("phase3.gateway_api", "y")];
const GATEWAY: &str = "gateway.networking.k8s.io/v1";

/// Traefik, which ends with the test.
struct Edge {
    running: Child,
    port: u16,
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.running.kill().ok();
        self.running.wait().ok();
    }
}

impl Edge {
    /// With the arguments of the manifest, at other ports.
    fn start(api: &ApiServer, manifest: &str) -> Self {
        let objects = Object::read(manifest).unwrap();
        let deployment = &objects.iter().find(|(object, _)| object.kind == "Deployment").unwrap().1;
        let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
        let ports = [("web", free_port()), ("websecure", free_port()), ("traefik", free_port())];
        let args = args.as_array().unwrap().iter().map(|arg| {
            let arg = arg.as_str().unwrap();
            let of = |name: &str| format!("--entrypoints.{name}.address=");
            let port = ports.iter().find(|(name, _)| arg.starts_with(&of(name)));
            port.map_or_else(|| arg.to_owned(), |(name, port)| format!("{}:{port}", of(name)))
        });
        let selection = Lock::embedded().unwrap().select(&Lock::embedded().unwrap().default).unwrap();
        let wanted = [selection.binary("traefik").unwrap()];
        let program = Cache::open().unwrap().ensure_all(wanted, &Sources::default(), &NoProgress).unwrap();
        let log = fs_err::File::create(api.dir.path().join("traefik.log")).unwrap().into_file();
        let mut command = Command::new(&program[0].path);
        command.args(args).env_clear().env("KUBECONFIG", api.service_account("traefik"));
        command.current_dir(api.dir.path()).stdin(Stdio::null());
        let running = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Self { running, port: ports[0].1 }
    }

    fn try_ask(&self, host: &str, path: &str, header: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{header}\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Ok((status, text.split_once("\r\n\r\n").unwrap_or_default().1.to_owned()))
    }

    #[track_caller]
    fn becomes(&self, host: &str, path: &str, header: &str, status: u16, body: &str) {
        let since = Instant::now();
        loop {
            let answer = self.try_ask(host, path, header);
            if answer.as_ref().is_ok_and(|(it, text)| *it == status && (body.is_empty() || text == body)) {
                return;
            }
            assert!(since.elapsed() < Duration::from_mins(1), "{host}{path}: {answer:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// An address of this machine that an `EndpointSlice` may have, which none of the loopback is.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}

/// A server that says its name, or at `/request` what it was asked; and the Service that leads to
/// it.
fn server(name: &'static str, namespace: &str) -> [Value; 2] {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut asked = [0; 4096];
            let length = stream.read(&mut asked).unwrap_or_default();
            let asked = String::from_utf8_lossy(&asked[..length]);
            let body = if asked.starts_with("GET /request ") { &*asked } else { name };
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
            write!(stream, "{head}\r\n{body}").ok();
        }
    });
    [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
            "spec": {"ports": [{"port": 80, "targetPort": port}]}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": [own_address()], "conditions": {"ready": true}}],
            "ports": [{"name": "", "port": port, "protocol": "TCP"}]}),
    ]
}

fn route(name: &str, rules: &Value) -> Value {
    json!({"apiVersion": GATEWAY, "kind": "HTTPRoute", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "parentRefs": [{"name": "front"}], "hostnames": [format!("{name}.example.com")], "rules": rules}})
}

fn apply(admin: &Kubectl, objects: &[Value]) {
    admin.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
}

/// Until a condition is true, or false for this reason.
#[track_caller]
fn says(admin: &Kubectl, what: &[&str], pointer: &str, kind: &str, expected: &str) {
    let since = Instant::now();
    loop {
        let object = admin.get(&[what, &["--namespace=default"]].concat()).unwrap();
        let conditions = object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let mut of_kind = conditions.filter(|condition| condition["type"] == kind);
        if of_kind.any(|condition| condition["status"] == expected || condition["reason"] == expected) {
            return;
        }
        assert!(since.elapsed() < Duration::from_mins(1), "{what:?} {kind}: {:#}", object["status"]);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "builds Traefik and starts an API server: make test-addons"]
fn requests_arrive_where_gateways_and_ingresses_send_them() {
    let api = ApiServer::start(&Lock::embedded().unwrap().default, &[], &[]);
    let admin = api.admin();
    admin.apply(&render_set("gateway-api", &ON).unwrap()).unwrap();
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", "--all", definitions]).unwrap();
    let manifest = render_set("traefik", &ON).unwrap();
    admin.apply(&manifest).unwrap();
    let edge = Edge::start(&api, &manifest);
    let log = || fs_err::read_to_string(api.dir.path().join("traefik.log")).unwrap();
    says(&admin, &["gatewayclass", "traefik"], "/status/conditions", "Accepted", "True");

    let far = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}});
    let servers = [server("old", "default"), server("new", "default"), server("far", "far")];
    apply(&admin, &[vec![far], servers.concat()].concat());
    let gateway = json!({"apiVersion": GATEWAY, "kind": "Gateway", "metadata": {"name": "front", "namespace": "default"},
        "spec": {"gatewayClassName": "traefik", "listeners": [{"name": "http", "port": edge.port, "protocol": "HTTP"}]}});
    let cart = json!({"path": {"type": "PathPrefix", "value": "/cart"}});
    let mut canary = cart.clone();
    canary["headers"] = json!([{"name": "x-canary", "value": "yes"}]);
    let backend = |name: &str, weight: u8| json!({"name": name, "port": 80, "weight": weight});
    let rules = json!([
        {"matches": [canary], "backendRefs": [backend("new", 1)]},
        {"matches": [cart], "backendRefs": [backend("old", 1)]},
        {"matches": [{"path": {"type": "Exact", "value": "/both"}}], "backendRefs": [backend("old", 1), backend("new", 3)]},
    ]);
    apply(&admin, &[gateway, route("shop", &rules)]);
    edge.becomes("shop.example.com", "/cart/7", "", 200, "old");
    edge.becomes("shop.example.com", "/cart/7", "x-canary: yes\r\n", 200, "new");
    edge.becomes("shop.example.com", "/other", "", 404, "");
    edge.becomes("other.example.com", "/cart", "", 404, "");
    let answers: Vec<String> = (0..40).map(|_| edge.try_ask("shop.example.com", "/both", "").unwrap().1).collect();
    assert_eq!(answers.iter().filter(|answer| *answer == "new").count(), 30, "{answers:?}");
    for kind in ["Accepted", "Programmed"] {
        says(&admin, &["gateway", "front"], "/status/conditions", kind, "True");
    }
    for kind in ["Accepted", "ResolvedRefs"] {
        says(&admin, &["httproute", "shop"], "/status/parents/0/conditions", kind, "True");
    }

    // What gives load balancers their addresses writes them into the Service.
    let given = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}).to_string();
    let service = ["patch", "service", "traefik", "--namespace=kube-system", "--subresource=status", "--type=merge"];
    admin.run(&[&service[..], &["--patch", &given]].concat()).unwrap();
    let since = Instant::now();
    let front =
        || admin.get(&["gateway", "front", "--namespace=default"]).unwrap()["status"]["addresses"][0]["value"].clone();
    while front() != "203.0.113.7" {
        assert!(since.elapsed() < Duration::from_mins(1), "{}", front());
        std::thread::sleep(Duration::from_millis(200));
    }

    // Other namespaces have to grant it.
    let rules = json!([{"backendRefs": [{"name": "far", "namespace": "far", "port": 80}]}]);
    apply(&admin, &[route("far", &rules)]);
    says(&admin, &["httproute", "far"], "/status/parents/0/conditions", "ResolvedRefs", "RefNotPermitted");
    edge.becomes("far.example.com", "/", "", 500, "");
    let from = json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default"}]);
    let grant = json!({"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
        "metadata": {"name": "front", "namespace": "far"},
        "spec": {"from": from, "to": [{"group": "", "kind": "Service"}]}});
    apply(&admin, &[grant]);
    edge.becomes("far.example.com", "/", "", 200, "far");

    // Ingresses of its class alone.
    let ingress = |name: &str, class: &str| {
        let backend = json!({"service": {"name": "old", "port": {"number": 80}}});
        let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name, "namespace": "default"},
            "spec": {"ingressClassName": class, "rules": [{"host": format!("{name}.example.com"), "http": {"paths": paths}}]}})
    };
    apply(&admin, &[ingress("foreign", "other"), ingress("blog", "traefik")]);
    edge.becomes("blog.example.com", "/", "", 200, "old");
    edge.becomes("foreign.example.com", "/", "", 404, "");

    // What clients say of themselves counts only where they are trusted proxies.
    let asked = |edge: &Edge, header: &str| {
        edge.becomes("blog.example.com", "/", "", 200, "old");
        edge.try_ask("blog.example.com", "/request", header).unwrap().1.to_lowercase()
    };
    for header in ["X-Forwarded-For: 192.0.2.7\r\n", "X.Forwarded.For: 192.0.2.7\r\n"] {
        let seen = asked(&edge, header);
        assert!(seen.contains("x-forwarded-for: 127.0.0.1") && !seen.contains("192.0.2.7"), "{seen}");
    }
    // It asks for no right that it does not have.
    assert!(!log().contains("forbidden"), "{}", log());
    drop(edge);

    let trusted = [ON[0], ON[1], ("phase3.traefik_trusted_proxies", "127.0.0.0/8")];
    let edge = Edge::start(&api, &render_set("traefik", &trusted).unwrap());
    let seen = asked(&edge, "X-Forwarded-For: 192.0.2.7\r\n");
    assert!(seen.contains("x-forwarded-for: 192.0.2.7, 127.0.0.1"), "{seen}");
}
