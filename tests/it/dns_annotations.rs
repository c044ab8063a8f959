//! Names that annotations ask for, in real DNS servers: what is made, kept and removed, also by a
//! writer that was killed. The API is played here; `cluster_names` has a real one.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::dns_names::{Writer, remove, server};
use crate::dns_support::{DnsServer, Kind};
use crate::http_server::{self, Request};

const WEB: &str = "web.it.example.test";
const SHOP: &str = "shop.it.example.test";
/// The only member that has started.
const MEMBER: &str = "etcd-cp-0.internal.it.example.test";
const LIST: &str = "/api/v1/namespaces/kube-system/configmaps/turnup-dns";

/// What the API server has.
#[derive(Default)]
struct Objects {
    /// By the last part of their path.
    all: BTreeMap<&'static str, Vec<Value>>,
    names: String,
    version: u32,
    is_away: bool,
}

#[derive(Clone, Default)]
struct Api(Arc<Mutex<Objects>>);

impl Api {
    /// A watch ends at once with 410, so that every change is found by a new list.
    fn answer(&self, request: &Request) -> (&'static str, Value) {
        let mut objects = self.0.lock().unwrap();
        if objects.is_away {
            return ("503 Service Unavailable", json!({"message": "apiserver is shutting down"}));
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        if path == LIST {
            let version = objects.version.to_string();
            if request.method == "PUT" {
                let sent: Value = serde_json::from_slice(&request.body).unwrap();
                if sent["metadata"]["resourceVersion"] != version {
                    return ("409 Conflict", json!({"message": "the object has been modified"}));
                }
                sent["data"]["names"].as_str().unwrap().clone_into(&mut objects.names);
                objects.version += 1;
            }
            let metadata = json!({"name": "turnup-dns", "resourceVersion": objects.version.to_string()});
            return ("200 OK", json!({"metadata": metadata, "data": {"names": objects.names}}));
        }
        if query.contains("watch=1") {
            return ("200 OK", json!({"type": "ERROR", "object": {"code": 410}}));
        }
        let items = objects.all.get(path.rsplit('/').next().unwrap()).cloned().unwrap_or_default();
        ("200 OK", json!({"metadata": {"resourceVersion": "1"}, "items": items}))
    }

    fn set(&self, change: impl FnOnce(&mut Objects)) {
        change(&mut self.0.lock().unwrap());
    }

    fn services(&self, services: &[(&str, &str)]) {
        let all = services.iter().map(|(names, address)| {
            json!({"metadata": {"name": names, "namespace": "default", "annotations": {"dns.alpha.kubernetes.io/external": names}},
                "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": address}]}}})
        });
        let all = all.collect();
        self.set(|objects| drop(objects.all.insert("services", all)));
    }

    /// The list without the member.
    fn names(&self) -> String {
        let names = self.0.lock().unwrap().names.clone();
        names.lines().filter(|name| *name != MEMBER).collect::<Vec<_>>().join(" ")
    }
}

fn start(server: &DnsServer, annotations: bool) -> (Api, Writer) {
    let api = Api::default();
    let shared = api.clone();
    let url = http_server::serve(http_server::LOOPBACK, move |request, stream| {
        let (status, body) = shared.answer(&request);
        http_server::send(stream, status, body.to_string().as_bytes())
    });
    let writer = Writer::start(server, |config| {
        config["api"] = json!({"endpoint": url, "authority": "", "certificate": "", "key": ""});
        config["annotations"] = json!(annotations);
    });
    (api, writer)
}

#[test]
fn names_come_and_go_with_the_annotations() {
    for kind in [Kind::Bind, Kind::Knot] {
        let server = server(kind);
        let (api, mut writer) = start(&server, true);
        api.services(&[
            ("web.it.example.test,taken.it.example.test", "192.0.2.1"),
            (SHOP, "192.0.2.2"),
            ("a.else.test", "192.0.2.9"),
        ]);
        writer.wait_for_addresses(&server, WEB, &["192.0.2.1"]);
        writer.wait_for_addresses(&server, SHOP, &["192.0.2.2"]);
        writer.wait_for_addresses(&server, MEMBER, &["10.0.0.1"]);
        assert_eq!(server.dig(WEB, "TXT"), ["turnup cluster=it id=1"]);
        writer.wait_for_line("service default/a.else.test: a.else.test is not in the zone example.test");
        writer.wait_for_line("taken.it.example.test: another owner has it (192.0.2.9), and it is left alone");
        assert_eq!(api.names(), "shop.it.example.test taken.it.example.test web.it.example.test");

        api.services(&[(WEB, "192.0.2.1"), (WEB, "192.0.2.3")]);
        // One name, two objects of it.
        api.set(|objects| objects.all.get_mut("services").unwrap()[1]["metadata"]["name"] = json!("second"));
        writer.wait_for_addresses(&server, WEB, &["192.0.2.1", "192.0.2.3"]);
        writer.wait_for_addresses(&server, SHOP, &[]);
        writer.wait_for("the list", || api.names() == WEB);
        assert!(server.dig(SHOP, "TXT").is_empty());
        assert_eq!(server.dig("taken.it.example.test", "A"), ["192.0.2.9"]);

        // An API that is away takes nothing from the zone.
        api.set(|objects| objects.is_away = true);
        writer.wait_for_line("services: the API server does not list services: apiserver is shutting down");
        assert_eq!(server.dig(WEB, "A"), ["192.0.2.1", "192.0.2.3"]);
        // What was asked for while no writer ran goes as well.
        writer.stop();
        api.services(&[]);
        api.set(|objects| objects.is_away = false);
        writer.start_again();
        writer.wait_for_addresses(&server, WEB, &[]);
        writer.wait_for("the list", || api.names().is_empty());
    }
}

#[test]
fn only_the_host_of_the_leader_writes_them_and_all_go_at_the_end() {
    let server = server(Kind::Bind);
    let (api, mut writer) = start(&server, true);
    writer.lead(false);
    api.services(&[(WEB, "192.0.2.1")]);
    std::thread::sleep(Duration::from_secs(12));
    assert!(server.dig(WEB, "A").is_empty(), "{}", writer.log());
    writer.lead(true);
    writer.wait_for_addresses(&server, WEB, &["192.0.2.1"]);

    // Switched off: they go, and nothing else does.
    writer.reconfigure(|config| config["annotations"] = json!(false));
    writer.wait_for_addresses(&server, WEB, &[]);
    writer.wait_for("the list", || api.names().is_empty());
    writer.wait_for_addresses(&server, MEMBER, &["10.0.0.1"]);
    writer.reconfigure(|config| config["annotations"] = json!(true));
    writer.wait_for_addresses(&server, WEB, &["192.0.2.1"]);
    writer.stop();
    // As long as the list cannot be read, it is not said that all is gone.
    api.set(|objects| objects.is_away = true);
    let (ok, said) = remove(&writer);
    assert!(!ok && said.contains("the API server does not give the ConfigMap kube-system/turnup-dns"), "{said}");
    api.set(|objects| objects.is_away = false);
    let (ok, said) = remove(&writer);
    assert!(ok && said.contains("removed web.it.example.test\n"), "{said}");
    for name in [WEB, MEMBER] {
        assert!(server.dig(name, "A").is_empty() && server.dig(name, "TXT").is_empty(), "{name}");
    }
}
