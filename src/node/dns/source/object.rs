//! What objects ask for by annotations, in the words of kops' dns-controller, and where that leads.
//! Pure.
//!
//! `dns.alpha.kubernetes.io/external` and `…/internal` hold names, with commas between them. A name
//! leads to the addresses of all objects that ask for it, and is gone when none does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Deserialize;

pub(crate) const EXTERNAL: &str = "dns.alpha.kubernetes.io/external";
pub(crate) const INTERNAL: &str = "dns.alpha.kubernetes.io/internal";
/// Nodes with it run pods of users only where there are no others.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The kinds that may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SourceKind {
    Service,
    Ingress,
    Node,
    Pod,
}

impl SourceKind {
    pub(super) const ALL: [Self; 4] = [Self::Service, Self::Ingress, Self::Node, Self::Pod];

    /// Where all of them are, in the API.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Service => "/api/v1/services",
            Self::Ingress => "/apis/networking.k8s.io/v1/ingresses",
            Self::Node => "/api/v1/nodes",
            Self::Pod => "/api/v1/pods",
        }
    }

    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Service => "services",
            Self::Ingress => "ingresses",
            Self::Node => "nodes",
            Self::Pod => "pods",
        }
    }

    const fn singular(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Ingress => "ingress",
            Self::Node => "node",
            Self::Pod => "pod",
        }
    }
}

/// What is read of an object, of whatever kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct SourceObject {
    pub(super) metadata: SourceMetadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SourceMetadata {
    name: String,
    namespace: String,
    pub(super) resource_version: String,
    annotations: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    r#type: String,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Vec<String>,
    host_network: bool,
    node_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    load_balancer: LoadBalancer,
    addresses: Vec<NodeAddress>,
    conditions: Vec<Condition>,
    #[serde(rename = "podIPs")]
    pod_ips: Vec<PodAddress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct LoadBalancer {
    ingress: Vec<Entrance>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Entrance {
    ip: String,
    hostname: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct NodeAddress {
    r#type: String,
    address: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PodAddress {
    ip: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl SourceObject {
    /// Namespace and name.
    pub(super) fn key(&self) -> (String, String) {
        (self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    /// Whether it is kept: it asks for something, or is a Node, to which others lead.
    pub(super) fn counts(&self, kind: SourceKind) -> bool {
        let annotations = &self.metadata.annotations;
        kind == SourceKind::Node || annotations.contains_key(EXTERNAL) || annotations.contains_key(INTERNAL)
    }

    /// The annotations of turnup's own pods are for other programs: their names are kept as etcd
    /// knows them to live.
    fn is_api_server(&self, kind: SourceKind) -> bool {
        kind == SourceKind::Pod
            && self.metadata.namespace == "kube-system"
            && self.metadata.labels.get("component").is_some_and(|name| name == "kube-apiserver")
    }

    fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True")
    }

    fn describe(&self, kind: SourceKind) -> String {
        let SourceMetadata { name, namespace, .. } = &self.metadata;
        let within = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        format!("{} {within}{name}", kind.singular())
    }

    /// Of a Node; its inner addresses also where it has no outer one.
    fn node_addresses(&self, is_external: bool) -> BTreeSet<IpAddr> {
        let of = |wanted: &str| -> BTreeSet<IpAddr> {
            let own = self.status.addresses.iter().filter(|address| address.r#type == wanted);
            own.filter_map(|address| address.address.parse().ok()).collect()
        };
        Some(of("ExternalIP")).filter(|outer| is_external && !outer.is_empty()).unwrap_or_else(|| of("InternalIP"))
    }
}

/// What a name has to be like.
pub(in super::super) struct Rules<'a> {
    /// The zone, without a dot at its end.
    pub(in super::super) zone: &'a str,
    /// Names of turnup's own.
    pub(in super::super) reserved: &'a BTreeSet<&'a str>,
    /// The addresses of a name, of a load balancer that has no address; none where they are not
    /// known.
    pub(in super::super) look_up: &'a dyn Fn(&str) -> Option<BTreeSet<IpAddr>>,
}

/// What all objects ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Wanted {
    /// Where each name is to lead: never nowhere.
    pub(in super::super) names: BTreeMap<String, BTreeSet<IpAddr>>,
    /// Names that stay as they are: not all of where they lead is known.
    pub(in super::super) held: BTreeSet<String>,
    /// The objects that get less than they ask for, and why.
    pub(in super::super) refused: BTreeMap<String, String>,
}

pub(super) fn find_wanted(
    all: &BTreeMap<SourceKind, BTreeMap<(String, String), SourceObject>>,
    rules: &Rules<'_>,
) -> Wanted {
    let none = BTreeMap::new();
    let nodes = all.get(&SourceKind::Node).unwrap_or(&none);
    let mut wanted = Wanted::default();
    for (kind, objects) in all {
        for object in objects.values() {
            for (annotation, is_external) in [(EXTERNAL, true), (INTERNAL, false)] {
                let Some(text) = object.metadata.annotations.get(annotation) else { continue };
                let found = find_addresses(*kind, object, is_external, nodes, rules);
                let addresses = found.unwrap_or_else(|why| {
                    wanted.refused.insert(object.describe(*kind), why);
                    Some(BTreeSet::new())
                });
                for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                    match check_name(name, rules) {
                        _ if object.is_api_server(*kind) => {}
                        Ok(name) => wanted.ask(name, addresses.as_ref()),
                        Err(why) => drop(wanted.refused.insert(object.describe(*kind), why)),
                    }
                }
            }
        }
    }
    wanted
}

impl Wanted {
    /// One object asks for a name at these addresses, if they are known.
    fn ask(&mut self, name: String, addresses: Option<&BTreeSet<IpAddr>>) {
        match addresses {
            Some(addresses) if addresses.is_empty() => {}
            Some(addresses) => self.names.entry(name).or_default().extend(addresses),
            None => drop(self.held.insert(name)),
        }
    }
}

/// The name as it stands in the zone.
fn check_name(name: &str, rules: &Rules<'_>) -> Result<String, String> {
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_letter) && !label.starts_with('-')
    };
    let plain = lower.strip_prefix("*.").unwrap_or(&lower);
    if lower.len() > 253 || !plain.split('.').all(is_label) {
        return Err(format!("{name:?} is no DNS name"));
    }
    if lower != rules.zone && !lower.ends_with(&format!(".{}", rules.zone)) {
        return Err(format!("{lower} is not in the zone {}", rules.zone));
    }
    if rules.reserved.contains(lower.as_str()) {
        return Err(format!("{lower} is a name of the API server, which leads there"));
    }
    Ok(lower)
}

/// Where the names of an object lead, none where that is not known now; an error where such an
/// object never has an address for them.
fn find_addresses(
    kind: SourceKind,
    object: &SourceObject,
    is_external: bool,
    nodes: &BTreeMap<(String, String), SourceObject>,
    rules: &Rules<'_>,
) -> Result<Option<BTreeSet<IpAddr>>, String> {
    Ok(Some(match kind {
        SourceKind::Ingress => return Ok(entrances(object, rules)),
        SourceKind::Node => object.node_addresses(is_external),
        SourceKind::Service => match object.spec.r#type.as_str() {
            "LoadBalancer" => return Ok(entrances(object, rules)),
            "NodePort" => node_ports(nodes, is_external),
            "ClusterIP" if !is_external => parse_all(object.spec.cluster_ips.iter()),
            other => {
                let annotation = if is_external { EXTERNAL } else { INTERNAL };
                return Err(format!("{annotation} leads nowhere for a service of the type {other}"));
            }
        },
        SourceKind::Pod if !object.is_ready() => BTreeSet::new(),
        SourceKind::Pod if !is_external => parse_all(object.status.pod_ips.iter().map(|address| &address.ip)),
        SourceKind::Pod if !object.spec.host_network => {
            return Err(format!("{EXTERNAL} leads nowhere for a pod without the host's network"));
        }
        SourceKind::Pod => {
            let node = nodes.get(&(String::new(), object.spec.node_name.clone()));
            node.map(|node| node.node_addresses(true)).unwrap_or_default()
        }
    }))
}

/// The addresses of a load balancer.
fn entrances(object: &SourceObject, rules: &Rules<'_>) -> Option<BTreeSet<IpAddr>> {
    let mut all = BTreeSet::new();
    for entrance in &object.status.load_balancer.ingress {
        match entrance.ip.parse() {
            Ok(address) => drop(all.insert(address)),
            Err(_) if entrance.hostname.is_empty() => {}
            Err(_) => all.extend((rules.look_up)(&entrance.hostname)?),
        }
    }
    Some(all)
}

/// Every Node that is Ready opens the ports of Services: workers, and others where there are none.
fn node_ports(nodes: &BTreeMap<(String, String), SourceObject>, is_external: bool) -> BTreeSet<IpAddr> {
    let ready = || nodes.values().filter(|node| node.is_ready());
    let has_workers = ready().any(|node| !node.metadata.labels.contains_key(CONTROL_PLANE));
    let chosen = ready().filter(|node| !has_workers || !node.metadata.labels.contains_key(CONTROL_PLANE));
    chosen.flat_map(|node| node.node_addresses(is_external)).collect()
}

/// `None` stands among the addresses of a Service that has none.
fn parse_all<'t>(texts: impl Iterator<Item = &'t String>) -> BTreeSet<IpAddr> {
    texts.filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use serde_json::{Value, json};

    use super::*;

    fn objects(items: &[(SourceKind, Value)]) -> BTreeMap<SourceKind, BTreeMap<(String, String), SourceObject>> {
        let mut all: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for (kind, value) in items {
            let object: SourceObject = serde_json::from_value(value.clone()).unwrap();
            if object.counts(*kind) {
                all.entry(*kind).or_default().insert(object.key(), object);
            }
        }
        all
    }

    fn wanted(items: &[(SourceKind, Value)]) -> Wanted {
        let look_up = |name: &str| match name {
            "lb.example.net" => Some(BTreeSet::from([IpAddr::from([198, 51, 100, 7])])),
            _ => None,
        };
        let reserved = BTreeSet::from(["api.prod.example.com"]);
        find_wanted(&objects(items), &Rules { zone: "example.com", reserved: &reserved, look_up: &look_up })
    }

    fn names(items: &[(SourceKind, Value)]) -> Vec<String> {
        let line = |(name, addresses): (&String, &BTreeSet<IpAddr>)| {
            format!("{name} {}", addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        wanted(items).names.iter().map(line).collect()
    }

    fn service(name: &str, annotation: &str, names: &str, spec: &Value, ingress: &Value) -> (SourceKind, Value) {
        let object = json!({"metadata": {"name": name, "namespace": "web", "annotations": {annotation: names}},
            "spec": spec, "status": {"loadBalancer": {"ingress": ingress}}});
        (SourceKind::Service, object)
    }

    fn node(name: &str, last: u8, role: &str, ready: &str) -> (SourceKind, Value) {
        let object = json!({"metadata": {"name": name, "labels": {format!("node-role.kubernetes.io/{role}"): ""}},
            "status": {"conditions": [{"type": "Ready", "status": ready}],
                "addresses": [{"type": "InternalIP", "address": format!("10.0.0.{last}")}, {"type": "Hostname", "address": name}]}});
        (SourceKind::Node, object)
    }

    fn with_outer((kind, mut node): (SourceKind, Value), address: &str) -> (SourceKind, Value) {
        let addresses = node["status"]["addresses"].as_array_mut().unwrap();
        addresses.push(json!({"type": "ExternalIP", "address": address}));
        (kind, node)
    }

    #[test]
    fn a_load_balancer_has_its_names_at_its_addresses() {
        let spec = json!({"type": "LoadBalancer"});
        let entrances = json!([{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}, {"hostname": "lb.example.net"}]);
        let one = service("one", EXTERNAL, "A.example.com., b.example.com,,*.apps.example.com", &spec, &entrances);
        let all = "192.0.2.1 198.51.100.7 2001:db8::1";
        let found = names(std::slice::from_ref(&one));
        assert_eq!(found, ["*.apps", "a", "b"].map(|name| format!("{name}.example.com {all}")));
        let two = service("two", INTERNAL, "a.example.com", &spec, &json!([{"ip": "192.0.2.9"}]));
        assert!(names(&[one, two]).contains(&"a.example.com 192.0.2.1 192.0.2.9 198.51.100.7 2001:db8::1".to_owned()));
        assert!(names(&[service("late", EXTERNAL, "c.example.com", &spec, &json!([]))]).is_empty(), "none yet");
        let away = json!([{"ip": "192.0.2.1"}, {"hostname": "away.example.net"}]);
        let held = wanted(&[service("away", EXTERNAL, "c.example.com", &spec, &away)]);
        assert_eq!((held.names.len(), held.held.len()), (0, 1), "it stays as it is");
        let ingress = json!({"metadata": {"name": "i", "annotations": {EXTERNAL: "i.example.com"}},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.3"}]}}});
        assert_eq!(names(&[(SourceKind::Ingress, ingress)]), ["i.example.com 192.0.2.3"]);
    }

    #[test]
    fn a_node_port_is_reached_at_workers_that_are_ready() {
        let port =
            |annotation: &str| service("p", annotation, "p.example.com", &json!({"type": "NodePort"}), &json!([]));
        let (cp, a) = (node("cp", 1, "control-plane", "True"), node("a", 2, "worker", "True"));
        let b = with_outer(node("b", 3, "worker", "True"), "192.0.2.3");
        let silent = node("c", 4, "worker", "Unknown");
        let all = |annotation| names(&[cp.clone(), a.clone(), b.clone(), silent.clone(), port(annotation)]);
        assert_eq!(all(INTERNAL), ["p.example.com 10.0.0.2 10.0.0.3"]);
        assert_eq!(all(EXTERNAL), ["p.example.com 10.0.0.2 192.0.2.3"]);
        assert_eq!(names(&[cp.clone(), silent.clone(), port(EXTERNAL)]), ["p.example.com 10.0.0.1"]);
        assert!(names(&[silent, port(EXTERNAL)]).is_empty());
    }

    #[test]
    fn nodes_and_pods_ask_for_themselves() {
        let mut own = with_outer(node("a", 2, "worker", "True"), "192.0.2.2");
        own.1["metadata"]["annotations"] = json!({INTERNAL: "a.in.example.com", EXTERNAL: "a.example.com"});
        assert_eq!(names(std::slice::from_ref(&own)), ["a.example.com 192.0.2.2", "a.in.example.com 10.0.0.2"]);
        let pod = |host: bool, ready: &str| {
            let object = json!({"metadata": {"name": "p", "namespace": "web", "annotations": {INTERNAL: "in.example.com", EXTERNAL: "out.example.com"}},
                "spec": {"hostNetwork": host, "nodeName": "a"},
                "status": {"podIPs": [{"ip": "10.244.1.4"}, {"ip": "fd00::4"}], "conditions": [{"type": "Ready", "status": ready}]}});
            (SourceKind::Pod, object)
        };
        let plain = node("a", 2, "worker", "True");
        assert_eq!(
            names(&[plain.clone(), pod(true, "True")]),
            ["in.example.com 10.244.1.4 fd00::4", "out.example.com 10.0.0.2"]
        );
        assert!(names(&[plain.clone(), pod(true, "False")]).is_empty());
        let alone = wanted(&[plain, pod(false, "True")]);
        assert_eq!(alone.names.keys().collect::<Vec<_>>(), ["in.example.com"]);
        assert_eq!(
            alone.refused["pod web/p"],
            "dns.alpha.kubernetes.io/external leads nowhere for a pod without the host's network"
        );
    }

    #[test]
    fn what_cannot_be_is_told_and_hinders_no_other_name() {
        let spec = json!({"type": "ClusterIP", "clusterIPs": ["10.96.0.7", "None"]});
        for (name, why) in [
            ("a.example.org", "a.example.org is not in the zone example.com"),
            ("badexample.com", "badexample.com is not in the zone example.com"),
            ("a..example.com", "\"a..example.com\" is no DNS name"),
            ("a b.example.com", "\"a b.example.com\" is no DNS name"),
            ("API.prod.example.com", "api.prod.example.com is a name of the API server, which leads there"),
        ] {
            let asked = format!("{name},good.example.com");
            let found = wanted(&[service("s", INTERNAL, &asked, &spec, &json!([]))]);
            assert_eq!(found.refused["service web/s"], why);
            assert_eq!(found.names.keys().collect::<Vec<_>>(), ["good.example.com"]);
        }
        let outside = wanted(&[service("s", EXTERNAL, "a.example.com", &spec, &json!([]))]);
        assert!(outside.names.is_empty() && outside.refused["service web/s"].contains("of the type ClusterIP"));
        assert_eq!(wanted(&[]), Wanted::default());
        let nothing = json!({"metadata": {"name": "s"}});
        assert_eq!(wanted(&[(SourceKind::Service, nothing)]), Wanted::default());
    }
}
