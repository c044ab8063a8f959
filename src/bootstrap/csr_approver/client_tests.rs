//! Tests of client CSRs: requests of new hosts, of hosts that come back, and of an attacker who has
//! the join token.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use serde_json::json;

use super::request::{Der, NODES};
use super::tests::{params, pem, policy};
use super::*;
use crate::bootstrap::pki::{Authority, Leaf};
use crate::bootstrap::{certificate_request, token};

const WEB: &str = "system:bootstrappers:turnup:web";
const USAGES: [&str; 2] = ["digital signature", "client auth"];

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

fn wrap(groups: &[&str], pem: &str) -> Value {
    json!({"metadata": {"name": "node-csr-1", "creationTimestamp": ago(60)}, "spec": {
        "signerName": CLIENT, "username": "system:bootstrap:abcdef", "groups": groups, "usages": USAGES,
        "request": STANDARD.encode(pem)}})
}

fn of(subject: &str, group: &str) -> CertificateParams {
    params(subject, group, &[])
}

pub(super) fn joining(group: &str, node: &str) -> Value {
    let group = format!("{}:{group}", token::BOOTSTRAPPERS);
    let groups = ["system:bootstrappers", token::BOOTSTRAPPERS, &group, "system:authenticated"];
    let mut request = wrap(&groups, &pem(&of(&format!("system:node:{node}"), NODES)));
    request["metadata"]["name"] = json!(format!("csr-{node}"));
    request
}

/// A Node of a group, silent for so many seconds if it is.
fn node(name: &str, group: Option<&str>, silent: Option<i64>) -> Value {
    let ready = match silent {
        None => json!({"type": "Ready", "status": "True", "lastTransitionTime": ago(9999)}),
        Some(seconds) => json!({"type": "Ready", "status": "Unknown", "lastTransitionTime": ago(seconds)}),
    };
    let labels = group.map_or(json!({}), |group| json!({"turnup.dev/group": group}));
    json!({"metadata": {"name": name, "labels": labels}, "status": {"conditions": [ready]}})
}

fn lease(name: &str, seconds: i64) -> Value {
    json!({"metadata": {"name": name}, "spec": {"renewTime": ago(seconds)}})
}

fn view(nodes: &[Value], leases: &[Value], requests: &[Value]) -> View {
    View::new(&json!({"items": nodes}), &json!({"items": leases}), requests, now())
}

fn judged(request: &Value, nodes: &[Value], leases: &[Value]) -> CsrDecision {
    judge(request, &view(nodes, leases, &[]), &policy())
}

fn denied(reason: &'static str, why: &str) -> CsrDecision {
    CsrDecision::deny(reason, why)
}

#[test]
fn a_new_name_of_the_group_joins_and_no_other_one() {
    let ask = |group: &str, node: &str| judged(&joining(group, node), &[], &[]);
    assert_eq!(ask("web", "web-1"), CsrDecision::Approve);
    assert_eq!(ask("web-b", "web-b-1"), CsrDecision::Approve);
    let of_other = |group: &str, node: &str, other: &str| {
        let why = format!("the node name {node} is one of the node group {other}, and the host is of {group}");
        assert_eq!(ask(group, node), denied("OtherNodeGroup", &why));
    };
    of_other("web", "web-b-1", "web-b");
    of_other("web-b", "web-1", "web");
    for name in ["web", "never-seen"] {
        let why = format!("the node name {name} does not begin with web-, as those of the node group web do");
        assert_eq!(ask("web", name), denied("OtherNodeGroup", &why));
    }
    for name in ["localhost", "web-api", "web-own"] {
        let why = format!("{name} is reserved: an API server, a Service or another host has this name");
        assert_eq!(ask("web", name), denied("ReservedName", &why));
    }
    assert!(matches!(ask("web", "hook.default.svc"), CsrDecision::Deny("NotAKubelet", _)), "no label");
    let unknown = "this control-plane host does not know the node group new: turnup up";
    assert_eq!(ask("new", "new-1"), CsrDecision::Wait(unknown.into()));
}

#[test]
fn the_name_of_a_node_is_free_when_its_kubelet_has_been_silent_for_five_minutes() {
    let request = joining("web", "web-1");
    let with = |node: Value, lease: Value| judged(&request, &[node], &[lease]);
    let alive = denied("NodeIsAlive", "the Node web-1 exists and its kubelet is alive");
    // The request is a minute old. A kubelet that was killed with its machine spoke before it.
    assert_eq!(with(node("web-1", Some("web"), None), lease("web-1", 5)), alive);
    let free =
        "its name is free when its kubelet has been silent for five minutes, or at once: kubectl delete node web-1";
    let wait = CsrDecision::Wait(format!("the Node web-1 exists; {free}"));
    assert_eq!(with(node("web-1", Some("web"), None), lease("web-1", 61)), wait);
    assert_eq!(with(node("web-1", Some("web"), None), lease("web-1", 45)), wait, "a clock that is ahead is no life");
    assert_eq!(with(node("web-1", Some("web"), Some(299)), lease("web-1", 339)), wait);
    assert_eq!(with(node("web-1", Some("web"), Some(300)), lease("web-1", 340)), CsrDecision::Approve);
    assert_eq!(with(node("web-1", Some("web"), Some(300)), lease("web-1", 5)), alive, "it came back");
    let other = denied("OtherNodeGroup", "the Node web-1 does not belong to the node group web");
    for group in [None, Some("web-b")] {
        assert_eq!(with(node("web-1", group, Some(9000)), lease("web-1", 9000)), other);
    }
    let mut control_plane = node("web-1", Some("web"), Some(9000));
    control_plane["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = json!("");
    assert_eq!(with(control_plane, lease("x", 0)), denied("ReservedName", "web-1 is a control-plane host"));
}

#[test]
fn one_name_is_given_once() {
    let (mut first, mut second) = (joining("web", "web-1"), joining("web", "web-1"));
    first["metadata"]["name"] = json!("node-csr-b");
    second["metadata"] = json!({"name": "node-csr-a", "creationTimestamp": ago(50)});
    let decisions = decide(&[&second, &first], &view(&[], &[], &[]), &policy());
    let decisions: Vec<(&str, &CsrDecision)> =
        decisions.iter().map(|(request, decision)| (name_of(request), decision)).collect();
    let later = CsrDecision::Wait("another request for web-1 came first".into());
    assert_eq!(decisions, [("node-csr-b", &CsrDecision::Approve), ("node-csr-a", &later)]);
    // Until its host has joined, which shows by its Node.
    let approved = |seconds: i64| {
        let mut approved = first.clone();
        approved["status"] = json!({"conditions": [{"type": "Approved", "lastUpdateTime": ago(seconds)}]});
        judge(&second, &view(&[], &[], &[approved]), &policy())
    };
    assert!(
        matches!(approved(59), CsrDecision::Wait(why) if why.starts_with("another request for web-1 was approved at "))
    );
    assert_eq!(approved(60), CsrDecision::Approve);
}

#[test]
fn who_asks_for_more_than_a_kubelet_is_denied() {
    let user = "system:node:web-1";
    let why = |pem: &str| match judged(&wrap(&[WEB], pem), &[], &[]) {
        CsrDecision::Deny("NotAKubelet", why) => why,
        other => format!("{other:?}"),
    };
    assert_eq!(why(&pem(&of(user, NODES))), "Approve");
    let foreign =
        |subject: &str| format!("it asks to be {subject}, and a kubelet is O=system:nodes, CN=system:node:NAME");
    assert_eq!(why(&pem(&of(user, "system:masters"))), foreign("O=system:masters, CN=system:node:web-1"));
    assert_eq!(why(&pem(&of("admin", NODES))), foreign("O=system:nodes, CN=admin"));
    assert_eq!(why(&pem(&of("system:node:Web-1", NODES))), foreign("O=system:nodes, CN=system:node:Web-1"));
    assert_eq!(why(&pem(&of("system:node:", NODES))), foreign("O=system:nodes, CN=system:node:"));
    let mut both = of(user, NODES);
    both.distinguished_name.push(rcgen::DnType::OrganizationalUnitName, "x");
    assert!(why(&pem(&both)).contains("OU=x"));
    assert_eq!(why(&pem(&params(user, NODES, &["web-1"]))), "it asks for names or addresses, and a client has none");
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let other_key = of(user, NODES).serialize_request(&key).unwrap().pem().unwrap().replace("\r\n", "\n");
    assert_eq!(why(&other_key), "its key is neither ECDSA nor RSA of 2048 bits or more");
    assert_eq!(why("nope"), "its request is not one block of PEM");
    let usage = |usages: Value| {
        let mut request = joining("web", "web-1");
        request["spec"]["usages"] = usages;
        judged(&request, &[], &[])
    };
    assert_eq!(
        usage(json!(["client auth", "server auth"])),
        denied("NotAKubelet", "it asks for the usage server auth")
    );
    let none = "it does not ask for the usage client auth";
    assert_eq!(usage(json!(["digital signature"])), denied("NotAKubelet", none));
    let two = json!([WEB, format!("{WEB}-b")]);
    let mut request = joining("web", "web-1");
    request["spec"]["groups"] = two;
    assert_eq!(judged(&request, &[], &[]), denied("SeveralNodeGroups", "its user is of several node groups"));
}

#[test]
fn a_machine_joins_as_itself_and_as_no_other() {
    let ask = |user: &str, group: &str, node: &str| {
        let mut request = joining(group, node);
        request["spec"]["username"] = json!(format!("turnup:machine:{user}"));
        judged(&request, &[], &[])
    };
    assert_eq!(ask("web:web-1", "web", "web-1"), CsrDecision::Approve);
    assert_eq!(ask("web-b:web-b-1", "web-b", "web-b-1"), CsrDecision::Approve);
    let not = |machine: &str, node: &str| {
        let why = format!("its cloud says that it is the machine {machine}, and it asks to be the node {node}");
        denied("NotThisMachine", &why)
    };
    assert_eq!(ask("web:web-1", "web", "web-2"), not("web-1", "web-2"));
    assert_eq!(ask("web:web-1", "web", "web-b-1"), not("web-1", "web-b-1"));
    // A user of one group whose groups say another.
    assert_eq!(ask("web:web-b-1", "web-b", "web-b-1"), not("web-b-1", "web-b-1"));
    assert_eq!(ask("web-1", "web", "web-1"), not("web-1", "web-1"));
    // The rest of the policy counts for machines as well.
    assert!(matches!(ask("web:web-b-1", "web", "web-b-1"), CsrDecision::Deny("OtherNodeGroup", _)));
    assert!(matches!(ask("web:web-own", "web", "web-own"), CsrDecision::Deny("ReservedName", _)));
    let mut request = joining("web", "web-1");
    request["spec"]["username"] = json!("turnup:machine:web:web-1");
    let alive = denied("NodeIsAlive", "the Node web-1 exists and its kubelet is alive");
    assert_eq!(judged(&request, &[node("web-1", Some("web"), None)], &[lease("web-1", 5)]), alive);
    let mut approved = request.clone();
    approved["metadata"]["name"] = json!("node-csr-b");
    approved["status"] = json!({"conditions": [{"type": "Approved", "lastUpdateTime": ago(5)}]});
    assert!(matches!(judge(&request, &view(&[], &[], &[approved]), &policy()), CsrDecision::Wait(_)), "given once");
    request["spec"]["groups"] = json!([token::BOOTSTRAPPERS]);
    assert_eq!(judged(&request, &[], &[]), CsrDecision::Ignore);
}

/// As the agent of a host asks, byte for byte.
fn of_host(host: &str, node: &str) -> Value {
    let leaf = Leaf::client("", Authority::Cluster, &format!("system:node:{node}"), Some(NODES));
    let mut request = certificate_request::object(&leaf, &KeyPair::generate().unwrap()).unwrap();
    request["metadata"] = json!({"name": "turnup-x7k2p", "creationTimestamp": ago(60)});
    request["spec"]["username"] = json!(format!("turnup:host:{host}"));
    request["spec"]["groups"] = json!([token::HOSTS, "system:authenticated"]);
    request
}

#[test]
fn a_host_is_its_node_again_when_its_kubelet_has_been_silent_for_five_minutes() {
    let with = |node: Value, lease: Value| judged(&of_host("w0", "w0"), &[node], &[lease]);
    let alive = CsrDecision::Wait("its kubelet is alive; it gets this when it has been silent for five minutes".into());
    assert_eq!(with(node("w0", None, None), lease("w0", 5)), alive);
    assert_eq!(with(node("w0", None, Some(299)), lease("w0", 299)), alive);
    assert_eq!(with(node("w0", None, Some(300)), lease("w0", 5)), CsrDecision::Approve);
    assert_eq!(with(node("w0", None, None), lease("w0", 300)), CsrDecision::Approve, "all were off");
    assert_eq!(with(node("w0", None, None), lease("w1", 9000)), alive, "another's Lease says nothing");
    let mut control_plane = node("w0", None, Some(9000));
    control_plane["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = json!("");
    assert_eq!(with(control_plane, lease("w0", 9000)), CsrDecision::Approve);
    let removed = "there is no such Node; if the host belongs to the cluster: turnup up";
    assert_eq!(judged(&of_host("w0", "w0"), &[], &[]), CsrDecision::Wait(removed.into()));
}

#[test]
fn a_host_is_no_other_node() {
    let silent = |group: Option<&str>| [node("w0", group, Some(9000)), node("w1", group, Some(9000))];
    let other = denied("NotThisHost", "the host w0 asks to be the node w1");
    assert_eq!(judged(&of_host("w0", "w1"), &silent(None), &[]), other);
    let of_group = denied("NotThisHost", "the Node w0 belongs to a node group");
    assert_eq!(judged(&of_host("w0", "w0"), &silent(Some("web")), &[]), of_group);
    let mut masters = of_host("w0", "w0");
    masters["spec"]["request"] = json!(STANDARD.encode(pem(&of("system:node:w0", "system:masters"))));
    assert!(matches!(judged(&masters, &silent(None), &[]), CsrDecision::Deny("NotAKubelet", _)));
    // The name alone is anyone's whom an administrator called so.
    let mut stranger = of_host("w0", "w0");
    stranger["spec"]["groups"] = json!(["system:authenticated"]);
    assert_eq!(judged(&stranger, &silent(None), &[]), CsrDecision::Ignore);
}

#[test]
fn requests_of_others_are_another_approvers() {
    let with = |user: &str, groups: &[&str]| {
        let mut request = joining("web", "web-1");
        request["spec"]["username"] = json!(user);
        request["spec"]["groups"] = json!(groups);
        judged(&request, &[], &[])
    };
    // A node that renews, a host that turnup logs in to, a token of another tool, and an
    // administrator.
    assert_eq!(with("system:node:web-1", &[NODES]), CsrDecision::Ignore);
    assert_eq!(with("system:bootstrap:abcdef", &["system:bootstrappers", token::BOOTSTRAPPERS]), CsrDecision::Ignore);
    assert_eq!(
        with("system:bootstrap:abcdef", &["system:bootstrappers:kubeadm:default-node-token"]),
        CsrDecision::Ignore
    );
    assert_eq!(with("admin", &[WEB]), CsrDecision::Ignore);
    let mut strange = joining("web", "web-1");
    strange["metadata"]["name"] = json!("../../../pods");
    assert!(matches!(judged(&strange, &[], &[]), CsrDecision::Wait(_)), "its name would be a part of a path");
}

#[test]
fn the_request_of_a_host_is_that_of_its_token_and_its_name() {
    let mut request = joining("web", "w0");
    let check = |request: &Value| check_host(request, "w0", "abcdef");
    assert_eq!(check(&request), Ok(()), "the groups of the token say nothing");
    assert_eq!(check_host(&request, "w0", "fedcba").unwrap_err(), "it comes from \"system:bootstrap:abcdef\"");
    assert_eq!(check_host(&request, "w1", "abcdef").unwrap_err(), "it asks to be the node w0");
    request["spec"]["usages"] = json!(["client auth", "server auth"]);
    assert_eq!(check(&request).unwrap_err(), "it asks for the usage server auth");
    let mut strange = joining("web", "w0");
    strange["metadata"]["name"] = json!("x?dryRun=All");
    assert_eq!(check(&strange).unwrap_err(), "no kubelet gives a request such a name");
    let mut serving = joining("web", "w0");
    serving["spec"]["signerName"] = json!(SERVING);
    assert!(check(&serving).unwrap_err().starts_with("it is for the signer"));
    let masters = wrap(&[], &pem(&of("system:node:w0", "system:masters")));
    assert!(check(&masters).unwrap_err().starts_with("it asks to be O=system:masters"));
}

/// Signed once: a key takes longer than all the rest.
static REQUESTS: LazyLock<BTreeMap<(&'static str, &'static str), String>> = LazyLock::new(|| {
    let all = NAMES.into_iter().flat_map(|name| [NODES, "system:masters"].map(|group| (name, group)));
    all.map(|(name, group)| ((name, group), pem(&of(&format!("system:node:{name}"), group)))).collect()
});
const NAMES: [&str; 7] = ["web-1", "web-b-1", "web-own", "web-api", "cp-0", "localhost", "web"];

prop_compose! {
    /// What is known of the Node whose name is asked for: its group, whether it is the control
    /// plane's, how long it is silent, and when it last spoke.
    fn a_node()(group in prop::sample::select(vec![None, Some("web"), Some("web-b")]), is_control_plane in any::<bool>(),
        silent in prop::option::of(0_i64..900), spoke in 0_i64..900) -> (Option<&'static str>, bool, Option<i64>, i64) {
        (group, is_control_plane, silent, spoke)
    }
}

proptest! {
    /// The policy once more, in other words: a token of one known group; the request of a kubelet;
    /// a name of that group alone; and the name is free, or that of a Node of the same group whose
    /// kubelet has been silent for five minutes and has not spoken since the request.
    #[test]
    fn approves_exactly_what_the_policy_allows(
        name in prop::sample::select(NAMES.to_vec()),
        organization in prop::sample::select(vec![NODES, "system:masters"]),
        group in prop::sample::select(vec!["web", "web-b", "unknown", ""]),
        is_token in prop::bool::weighted(0.8),
        extra_usage in prop::bool::weighted(0.1),
        known in prop::option::of(a_node()),
        issued in prop::option::of(0_i64..120),
    ) {
        let groups = if group.is_empty() { vec![token::BOOTSTRAPPERS.to_owned()] } else { vec![format!("{}:{group}", token::BOOTSTRAPPERS)] };
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let mut request = wrap(&groups, &REQUESTS[&(name, organization)]);
        if !is_token {
            request["spec"]["username"] = json!("system:node:web-9");
        }
        if extra_usage {
            request["spec"]["usages"] = json!(["client auth", "server auth"]);
        }
        let nodes: Vec<Value> = known.iter().map(|(group, is_control_plane, silent, _)| {
            let mut node = node(name, *group, *silent);
            if *is_control_plane {
                node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = json!("");
            }
            node
        }).collect();
        let leases: Vec<Value> = known.iter().map(|(.., spoke)| lease(name, *spoke)).collect();
        let others: Vec<Value> = issued.iter().map(|seconds| {
            let mut other = joining("web", name);
            other["status"] = json!({"conditions": [{"type": "Approved", "lastUpdateTime": ago(*seconds)}]});
            other
        }).collect();
        let decision = judge(&request, &view(&nodes, &leases, &others), &policy());
        let fits = matches!((group, name), ("web", "web-1") | ("web-b", "web-b-1"));
        let is_free = known.is_none_or(|(of, is_control_plane, silent, spoke)| {
            of == Some(group) && !is_control_plane && silent.is_some_and(|silent| silent >= 300) && 60 - spoke <= 30
        });
        let may = is_token && organization == NODES && !extra_usage && fits && is_free && issued.is_none_or(|seconds| seconds >= 60);
        prop_assert_eq!(decision == CsrDecision::Approve, may, "{:?}", decision);
        prop_assert_eq!(decision == CsrDecision::Ignore, !is_token || group.is_empty(), "{:?}", decision);
    }

    /// Whatever is in a request: it is judged, and what is no kubelet's is not approved.
    #[test]
    fn no_bytes_are_approved(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..400) {
        let good = STANDARD.decode(REQUESTS[&("web-1", NODES)].lines().filter(|line| !line.starts_with("---")).collect::<String>()).unwrap();
        let mut damaged = good.clone();
        for (at, byte) in bytes.iter().enumerate() {
            let place = (cut + at * 7) % damaged.len();
            damaged[place] ^= byte;
        }
        for der in [bytes, damaged] {
            let is_whole = der == good;
            let pem = format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", STANDARD.encode(&der));
            let decision = judged(&wrap(&[WEB], &pem), &[], &[]);
            // The API server verifies signature and key; neither names the requester.
            let same_name = Der::decode(&STANDARD.encode(&pem)).is_ok_and(|der| der.read().is_ok_and(|request| request.is_exactly("web-1", &[])));
            prop_assert!(decision != CsrDecision::Approve || is_whole || same_name);
        }
    }
}
