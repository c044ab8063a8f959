//! Tests of the CSR approver: serving CSRs, good and forged, and what is written to the API. Client
//! CSRs are in `client_tests`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::json;

use super::request::NODES;
use super::*;
use crate::bootstrap::certificate_request;
use crate::bootstrap::pki::{Authority, Leaf};

/// The object identifier 1.2.840.113549.1.9.14.
const EXTENSION_REQUEST: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];

pub(in crate::bootstrap) fn node(name: &str, address: &str) -> Value {
    json!({"metadata": {"name": name}, "status": {"addresses": [
        {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]}})
}

fn nodes() -> Value {
    let mut control_plane = node("cp-0", "10.0.0.90");
    control_plane["metadata"]["labels"] = json!({"node-role.kubernetes.io/control-plane": ""});
    let mut dead = node("dead", "10.0.0.3");
    dead["status"]["conditions"] =
        json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let all = [
        ("a", "10.0.0.1"),
        ("b", "10.0.0.2"),
        ("thief", "10.0.0.2"),
        ("heir", "10.0.0.3"),
        ("proxy", "10.0.0.100"),
        ("mapped", "::ffff:10.96.0.1"),
        ("mapped-too", "::ffff:10.0.0.1"),
        ("localhost", "10.0.0.9"),
        ("hook.default.svc", "10.0.0.8"),
    ];
    let all = all.into_iter().map(|(name, address)| node(name, address));
    json!({"items": all.chain([control_plane, dead]).collect::<Vec<_>>()})
}

/// Of a cluster with the groups `web` and `web-b`, and a host of its own that is called like one of
/// theirs.
pub(in crate::bootstrap) fn policy() -> Policy {
    let groups = [("web", "web-"), ("web-b", "web-b-")].map(|(group, prefix)| (group.to_owned(), prefix.to_owned()));
    let sans = [".svc", "localhost", "10.0.0.100", "10.96.0.0/16", "*.api.example.com", "web-api"];
    Policy::new(groups.into(), vec!["web-own".into()], sans.map(str::to_owned).into())
}

fn view(requests: &[Value]) -> View {
    View::new(&nodes(), &Value::Null, requests, Timestamp::now())
}

fn verdict(request: &Value) -> Result<(), String> {
    match judge(request, &view(&[]), &policy()) {
        CsrDecision::Approve => Ok(()),
        CsrDecision::Wait(why) => Err(why),
        other => Err(format!("{other:?}")),
    }
}

pub(super) fn params(subject: &str, group: &str, sans: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, subject);
    let san = |text: &&str| match text.parse() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName((*text).try_into().unwrap()),
    };
    params.subject_alt_names = sans.iter().map(san).collect();
    params
}

pub(super) fn pem(params: &CertificateParams) -> String {
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap().replace("\r\n", "\n")
}

fn wrap(user: &str, pem: &str) -> Value {
    json!({"metadata": {"name": "csr-1"}, "spec": {
        "signerName": SERVING, "username": user, "groups": ["system:nodes", "system:authenticated"],
        "usages": ["digital signature", "server auth"], "request": STANDARD.encode(pem)}})
}

pub(in crate::bootstrap) fn request(node: &str, sans: &[&str]) -> Value {
    let user = format!("system:node:{node}");
    wrap(&user, &pem(&params(&user, NODES, sans)))
}

#[test]
fn a_node_may_serve_only_as_itself() {
    let good = request("a", &["a", "10.0.0.1"]);
    assert!(!is_decided(&good));
    // 10.0.0.1 is claimed by another one, by an address that is written in another way.
    let taken = "it asks for 10.0.0.1, which the Node mapped-too has too; if that machine is gone: kubectl delete node mapped-too";
    assert_eq!(verdict(&good), Err(taken.to_owned()));
    assert_eq!(verdict(&request("a", &["a"])), Ok(()));
    assert_eq!(
        verdict(&request("heir", &["heir", "10.0.0.3"])),
        Ok(()),
        "the other kubelet has been silent for months"
    );
    for (node, sans, why) in [
        ("a", &["b"][..], "it asks for b, which is not its name"),
        ("a", &["a", "10.0.0.2"], "it asks for 10.0.0.2, which its Node does not have"),
        (
            "thief",
            &["10.0.0.2"],
            "it asks for 10.0.0.2, which the Node b has too; if that machine is gone: kubectl delete node b",
        ),
        ("proxy", &["10.0.0.100"], "it asks for 10.0.0.100, which is an API server's or a Service's"),
        ("mapped", &["::ffff:10.96.0.1"], "it asks for 10.96.0.1, which is an API server's or a Service's"),
        ("localhost", &["localhost"], "it asks for localhost, which is an API server's or a Service's"),
        (
            "hook.default.svc",
            &["hook.default.svc"],
            "it asks for hook.default.svc, which is an API server's or a Service's",
        ),
        ("cp-0", &["cp-0"], "turnup itself gives control-plane hosts what they serve with"),
        ("a", &[], "it asks for no name and no address"),
        ("c", &["c"], "there is no such Node"),
    ] {
        assert_eq!(verdict(&request(node, sans)), Err(why.to_owned()), "{node} {sans:?}");
    }
    assert!(policy().deny_sans().has_name("Deep.In.API.example.com"), "a wildcard, in any case");
}

/// As the cloud controller manager of AWS writes them on Nodes.
#[test]
fn a_kubelet_serves_under_the_names_that_its_cloud_gave_its_machine() {
    let machine = |name: &str, dns: &str| {
        let mut node = node(name, "10.0.1.7");
        let own = ["InternalDNS", "Hostname"].map(|kind| json!({"type": kind, "address": dns}));
        node["status"]["addresses"] = own.into();
        node
    };
    let (dns, other) = ("ip-10-0-1-7.ec2.internal", "ip-10-0-1-8.ec2.internal");
    let all = [
        machine("web-a", dns),
        machine("web-b", other),
        machine("web-thief", other),
        machine("web-plain", "www.example.com"),
        machine("web-api", "api.compute.internal"),
    ];
    let view = View::new(&json!({"items": all}), &Value::Null, &[], Timestamp::now());
    let domains = || vec![".ec2.internal".to_owned(), ".compute.internal".to_owned()];
    let judge = |policy: &Policy, node: &str, sans: &[&str]| match judge(&request(node, sans), &view, policy) {
        CsrDecision::Approve => Ok(()),
        CsrDecision::Wait(why) => Err(why),
        other => Err(format!("{other:?}")),
    };
    let sans = vec![".svc".to_owned(), "api.compute.internal".to_owned()];
    let groups = BTreeMap::from([("web".to_owned(), "web-".to_owned())]);
    let none = Policy::new(groups, Vec::new(), sans);
    let policy = none.clone().with_machine_domains(domains());
    assert_eq!(judge(&policy, "web-a", &["web-a", dns]), Ok(()));
    for (node, name, why) in [
        ("web-a", other, "it asks for ip-10-0-1-8.ec2.internal, which its Node does not have"),
        ("web-thief", other, "it asks for ip-10-0-1-8.ec2.internal, which the Node web-b has too"),
        ("web-plain", "www.example.com", "it asks for www.example.com, which is not its name"),
        ("web-a", ".ec2.internal", "it asks for .ec2.internal, which is not its name"),
        (
            "web-api",
            "api.compute.internal",
            "it asks for api.compute.internal, which is an API server's or a Service's",
        ),
    ] {
        assert_eq!(judge(&policy, node, &[node, name]), Err(why.to_owned()), "{node} {name}");
    }
    let why = "it asks for ip-10-0-1-7.ec2.internal, which is not its name";
    assert_eq!(judge(&none, "web-a", &["web-a", dns]), Err(why.to_owned()), "without a controller that gives names");
    assert!(policy.flags().contains(&"--machine-domain=.ec2.internal".to_owned()), "{:?}", policy.flags());
}

#[test]
fn a_host_may_ask_for_what_its_own_kubelet_serves_with() {
    let ask = |host: &str, node: &str, hosts: &[&str], key: &KeyPair| {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let leaf = Leaf::server("", Authority::Cluster, &format!("system:node:{node}"), hosts);
        let leaf = Leaf { group: Some(NODES.to_owned()), ..leaf };
        let mut request = certificate_request::object(&leaf, key).unwrap();
        assert_eq!(request["spec"]["expirationSeconds"], 365 * 24 * 60 * 60);
        request["metadata"] = json!({"name": "turnup-x7k2p"});
        request["spec"]["username"] = json!(format!("turnup:host:{host}"));
        request["spec"]["groups"] = json!(["turnup:hosts", "system:authenticated"]);
        verdict(&request)
    };
    let key = KeyPair::generate().unwrap();
    assert_eq!(ask("b", "b", &["b"], &key), Ok(()));
    assert_eq!(ask("heir", "heir", &["heir", "10.0.0.3"], &key), Ok(()));
    let long = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    assert_eq!(ask("heir", "heir", &["10.0.0.3", "heir"], &long), Ok(()));
    assert_eq!(ask("b", "a", &["a"], &key).unwrap_err(), "it asks for a, which is not its name");
    assert!(ask("b", "a", &["b"], &key).unwrap_err().ends_with("for more than a kubelet does"));
    let other = "it asks for 10.0.0.3, which its Node does not have";
    assert_eq!(ask("b", "b", &["b", "10.0.0.3"], &key).unwrap_err(), other);
    let signed_here = "turnup itself gives control-plane hosts what they serve with";
    assert_eq!(ask("cp-0", "cp-0", &["cp-0"], &key).unwrap_err(), signed_here);
}

#[test]
fn nothing_passes_that_could_be_read_in_two_ways() {
    let user = "system:node:a";
    let good = pem(&params(user, NODES, &["a"]));
    assert_eq!(verdict(&wrap(user, &good)), Ok(()));
    let bad = pem(&params(user, NODES, &["10.96.0.1"]));
    let block = "its request is not one block of PEM";
    let broken_end = good.replace("END CERTIFICATE REQUEST", "END X");
    let other_label = good.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST");
    let headed = good.replace("REQUEST-----\n", "REQUEST-----\nA: b\n\n");
    for text in [&format!("{broken_end}{bad}"), &format!("{good}{bad}"), &format!("x\n{good}"), &other_label, &headed] {
        assert_eq!(verdict(&wrap(user, text)), Err(block.to_owned()), "{text}");
    }
    let more = |params: &CertificateParams| verdict(&wrap(user, &pem(params))).unwrap_err();
    for (subject, group) in [("system:node:b", NODES), (user, "system:masters")] {
        let said = more(&params(subject, group, &["a"]));
        assert_eq!(said, format!("it asks, as O={group}, CN={subject}, for more than a kubelet does"));
    }
    let mut twice = params(user, NODES, &["a"]);
    twice.distinguished_name.push(DnType::OrganizationalUnitName, "x");
    assert!(more(&twice).contains("more than a kubelet does"));
    // A second subjectAltName, and an extension that has nothing to do with names.
    for oid in [[2, 5, 29, 17], [2, 5, 29, 99]] {
        let mut params = params(user, NODES, &["a"]);
        params
            .custom_extensions
            .push(CustomExtension::from_oid_content(&oid, vec![0x30, 0x06, 0x87, 0x04, 10, 96, 0, 1]));
        more(&params);
    }
    // A length in a longer form than need be: one parser takes it, another one goes on to what
    // comes next.
    let text = good.lines().filter(|line| !line.starts_with("---")).collect::<String>();
    let mut der = STANDARD.decode(text).unwrap();
    let oid = der.windows(9).position(|bytes| bytes == EXTENSION_REQUEST).unwrap();
    assert_eq!((der[oid - 6], der[oid - 4], der[oid + 9]), (0xa0, 0x30, 0x31), "attributes, attribute, set");
    der.insert(oid + 10, 0x81);
    let outer = usize::from(der[1] & 0x7f) + 1;
    let inner = outer + usize::from(der[outer + 2] & 0x7f) + 2;
    for length in [oid - 5, oid - 3, outer, inner] {
        der[length] += 1;
    }
    let body = STANDARD.encode(&der);
    let text = format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n");
    let said = verdict(&wrap(user, &text)).unwrap_err();
    assert!(said.contains("more than a kubelet does"), "{said}");
}

#[test]
fn other_usages_names_and_decisions_are_left_alone() {
    let good = || request("a", &["a"]);
    let mut denied = good();
    denied["status"] = json!({"conditions": [{"type": "Denied"}]});
    assert!(is_decided(&denied) && !is_approved(&denied));
    let with = |field: &str, value: Value| {
        let mut request = good();
        request["spec"][field] = value;
        verdict(&request).unwrap_err()
    };
    assert_eq!(with("usages", json!(["client auth", "server auth"])), "it asks for the usage client auth");
    assert_eq!(with("usages", json!(["digital signature"])), "it does not ask to serve");
    assert_eq!(with("request", json!("bm9wZQ==")), "its request is not one block of PEM");
    assert_eq!(with("groups", json!(["system:authenticated"])), "only nodes and their hosts may ask");
    assert_eq!(with("username", json!("admin")), "only nodes and their hosts may ask");
    for name in ["-x", "--help", "a;reboot", "a\nb", "A", ""] {
        let mut request = good();
        request["metadata"]["name"] = json!(name);
        assert_eq!(verdict(&request), Err("no kubelet gives a request such a name".into()), "{name:?}");
    }
}

/// A request for the certificate that makes the bearer of a group's token this Node.
pub(in crate::bootstrap) fn joining(group: &str, node: &str) -> Value {
    client_tests::joining(group, node)
}

/// A kubectl that answers from files, and keeps what is written to the API.
pub(in crate::bootstrap) struct Fake(tempfile::TempDir);

impl Fake {
    pub(in crate::bootstrap) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ncase \"$*\" in\n*'get --output=json certificatesigningrequests'*) cat requests ;;\n\
            *replace*) test ! -e broken || { echo forbidden >&2; exit 1; }; f=$(mktemp settled.XXXXXX); { echo \"$*\"; cat; } > $f ;;\n\
            *leases*) cat leases ;;\n*nodes*) cat nodes ;;\n*) exit 1 ;;\nesac\n";
        let program = dir.path().join("kubectl");
        fs_err::write(&program, script).unwrap();
        fs_err::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let fake = Self(dir);
        fake.answer("nodes", &nodes());
        fake.answer("leases", &json!({"items": []}));
        fake
    }

    pub(in crate::bootstrap) fn answer(&self, name: &str, answer: &Value) {
        fs_err::write(self.0.path().join(name), answer.to_string()).unwrap();
    }

    pub(in crate::bootstrap) fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.0.path().join("kubectl"), self.0.path().join("kubeconfig"))
    }

    /// The paths that were written to, with the condition that was.
    pub(super) fn settled(&self) -> Vec<(String, Value)> {
        let files = fs_err::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("settled."));
        let read = |path: std::path::PathBuf| {
            let text = fs_err::read_to_string(&path).unwrap();
            let (words, object) = text.split_once('\n').unwrap();
            let path = words.split(' ').find_map(|word| word.strip_prefix("--raw=")).unwrap();
            let object: Value = serde_json::from_str(object).unwrap();
            assert!(words.ends_with("--filename=-") && object["spec"]["request"].is_string(), "{text}");
            (path.to_owned(), object["status"]["conditions"].clone())
        };
        let mut all: Vec<(String, Value)> = files.map(read).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

#[test]
fn what_may_be_signed_is_approved_and_the_rest_told_once() {
    let fake = Fake::new();
    let named = |name: &str, mut request: Value| {
        request["metadata"]["name"] = json!(name);
        request
    };
    let (good, bad) = (named("csr-good", request("a", &["a"])), named("csr-bad", request("c", &["c"])));
    let (new, thief) =
        (named("node-csr-new", joining("web", "web-7")), named("node-csr-thief", joining("web", "cp-0")));
    let strange = named("-x", request("a", &["a"]));
    fake.answer("requests", &json!({"items": [good, bad, strange, new, thief]}));
    let mut left = BTreeMap::new();
    let mut look = || {
        let mut news = step(&fake.kubectl(), &policy(), &mut left).unwrap();
        news.sort();
        news
    };
    let done = [
        "approved csr-good: the node a serves as itself",
        "approved node-csr-new: the host web-7 joins",
        "denied node-csr-thief of cp-0: the node name cp-0 does not begin with web-, as those of the node group web do",
    ];
    let alone = [
        "left -x of a alone: no kubelet gives a request such a name",
        "left csr-bad of c alone: there is no such Node",
    ];
    assert_eq!(look(), [&done[..], &alone].concat());
    let base = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let condition = |kind: &str, reason: &str, message: &str| json!([{"type": kind, "status": "True", "reason": reason, "message": format!("turnup: {message}")}]);
    let approved = condition("Approved", "TurnupApproved", "a kubelet, for its own name");
    let why = "the node name cp-0 does not begin with web-, as those of the node group web do";
    let wanted = [
        (format!("{base}/csr-good/approval"), approved.clone()),
        (format!("{base}/node-csr-new/approval"), approved),
        (format!("{base}/node-csr-thief/approval"), condition("Denied", "OtherNodeGroup", why)),
    ];
    assert_eq!(fake.settled(), wanted);
    assert_eq!(look(), done, "the rest is not even looked at");
    // What cannot be written holds up nothing, and is told once as well.
    fake.answer("broken", &json!(null));
    let failed = look();
    assert!(
        failed.len() == 3
            && failed[0].starts_with("cannot decide about csr-good of a: ")
            && failed[0].contains("forbidden"),
        "{failed:?}"
    );
    assert!(look().is_empty());
    fake.answer("requests", &json!({"items": []}));
    assert!(look().is_empty() && left.is_empty());
}
