//! Serving certificates of kubelets that came by themselves: which requests the API may sign, and the word that it may.
//!
//! Kubernetes signs the first certificate of a kubelet as a client by itself; what a kubelet serves with, nobody approves by default,
//! because a node could ask for the name of another one. Only a request for a node's own name and its own addresses passes here. Hosts
//! of a group come and go between two runs of turnup, and a certificate ends its life: so control-plane hosts look by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension};

use crate::error::{Class, Context as _, Result};
use crate::exec::signals;

use super::api::Kubectl;
use super::pki;

/// The name of the approver's certificate, and of its kubeconfig on control-plane hosts.
pub(super) const APPROVER: &str = "serving-approver";
/// Who it is to the API; `access.yaml` says what it may.
pub(super) const APPROVER_USER: &str = "turnup:serving-approver";
/// The program by which it talks, among turnup's own on the host.
pub(super) const KUBECTL: &str = "kubectl";

/// The certificate of the API server beside it, which has the names of all: read at each look, as it may be made anew.
const API_CERTIFICATE: &str = "/etc/kubernetes/pki/apiserver.crt";
const SIGNER: &str = "kubernetes.io/kubelet-serving";
const USER: &str = "system:node:";
const GROUP: &str = "system:nodes";
/// What a kubelet asks to use the certificate for.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "server auth"];
/// Between two looks. A kubelet waits for a quarter of an hour before it asks anew.
const PAUSE: Duration = Duration::from_secs(10);

/// A request that nobody has decided about.
pub(super) struct Request {
    name: String,
    /// The name of the node, or whoever else asked.
    pub(super) node: String,
    /// Why it must not be signed, if so.
    pub(super) verdict: Verdict,
}

type Verdict = std::result::Result<(), String>;

/// The requests that wait. `api` are the names and addresses of the API servers, in lower case.
pub(super) fn find_requests(kubectl: &Kubectl, api: &BTreeSet<String>) -> Result<Vec<Request>> {
    let selector = format!("--field-selector=spec.signerName={SIGNER}");
    let requests = kubectl.get(&["certificatesigningrequests", &selector])?;
    let waiting = requests["items"].as_array().into_iter().flatten().filter(|request| is_waiting(request));
    let waiting: Vec<&Value> = waiting.collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let owners = Owners { nodes: addresses(&kubectl.get(&["nodes"])?), api };
    let read = |request: &Value| {
        let user = request["spec"]["username"].as_str().unwrap_or_default();
        Some(Request {
            name: request["metadata"]["name"].as_str()?.to_owned(),
            node: user.strip_prefix(USER).unwrap_or(user).to_owned(),
            verdict: owners.judge(request),
        })
    };
    Ok(waiting.into_iter().filter_map(read).collect())
}

/// Looks at the requests again and again, lets the API sign what it may, and writes to `out` what it did and what it leaves alone, each
/// once. For a control-plane host; ends when a signal comes.
///
/// # Errors
/// That it was stopped, or that nobody reads what it says.
pub fn keep_approving(out: &mut dyn Write) -> Result<()> {
    let kubeconfig = PathBuf::from(format!("/etc/kubernetes/{APPROVER}.json"));
    let kubectl = Kubectl::new(PathBuf::from(format!("/opt/turnup/bin/{KUBECTL}")), kubeconfig);
    let mut known = BTreeSet::new();
    loop {
        // An API server that is away is no news either after the first time.
        let news = match approve(&kubectl, Path::new(API_CERTIFICATE), &mut known) {
            Ok(news) => news,
            Err(error) if error.class() == Class::Interrupted => return Err(error),
            Err(error) => {
                let text = error.render();
                known.insert(text.clone()).then_some(text).into_iter().collect()
            }
        };
        for line in news {
            writeln!(out, "{line}").context("cannot write")?;
        }
        signals::sleep(PAUSE)?;
    }
}

/// The names and addresses in an API server's certificate, which is in PEM.
pub(super) fn names_of_api(certificate: &str) -> Result<BTreeSet<String>> {
    Ok(pki::names_in(certificate)?.into_iter().map(|name| name.to_lowercase()).collect())
}

/// One look. What is known is not told again, and forgotten when nobody asks for it any more.
fn approve(kubectl: &Kubectl, certificate: &Path, known: &mut BTreeSet<String>) -> Result<Vec<String>> {
    let (mut news, mut left) = (Vec::new(), BTreeSet::new());
    let api = names_of_api(&fs_err::read_to_string(certificate).context("cannot read the API server's names")?)?;
    for Request { name, node, verdict } in find_requests(kubectl, &api)? {
        match verdict {
            Ok(()) => {
                kubectl.run(&["certificate", "approve", &name])?;
                news.push(format!("approved {name}: the node {node} serves as itself"));
            }
            Err(why) => {
                let line =
                    format!("left {name} of {node} alone: {why}; if it is right: kubectl certificate approve {name}");
                if !known.contains(&line) {
                    news.push(line.clone());
                }
                left.insert(line);
            }
        }
    }
    *known = left;
    Ok(news)
}

/// The addresses of each node.
type Addresses = BTreeMap<String, BTreeSet<IpAddr>>;

/// What belongs to whom. The same authority signs for API servers and for kubelets, and a node says of itself what it is called and where
/// it is: what is an API server's is no kubelet's.
struct Owners<'a> {
    nodes: Addresses,
    api: &'a BTreeSet<String>,
}

fn addresses(nodes: &Value) -> Addresses {
    let of = |node: &Value| {
        let list = node["status"]["addresses"].as_array().into_iter().flatten();
        list.filter_map(|address| address["address"].as_str()?.parse().ok()).collect()
    };
    let nodes = nodes["items"].as_array().into_iter().flatten();
    nodes.filter_map(|node| Some((node["metadata"]["name"].as_str()?.to_owned(), of(node)))).collect()
}

fn is_waiting(request: &Value) -> bool {
    let decided = request["status"]["conditions"].as_array().is_some_and(|conditions| !conditions.is_empty());
    request["spec"]["signerName"] == SIGNER && !decided
}

impl Owners<'_> {
    /// Whether a node asks for its own name and addresses, to serve with, and for nothing else. An address that two nodes claim is nobody's.
    fn judge(&self, request: &Value) -> Verdict {
        let spec = &request["spec"];
        let texts = |field: &str| -> Vec<&str> {
            spec[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let user = spec["username"].as_str().unwrap_or_default();
        let Some(node) = user.strip_prefix(USER).filter(|_| texts("groups").contains(&GROUP)) else {
            return Err("only nodes may ask".into());
        };
        if !self.nodes.contains_key(node) {
            return Err("there is no such Node".into());
        }
        let usages = texts("usages");
        if let Some(other) = usages.iter().find(|usage| !USAGES.contains(usage)) {
            return Err(format!("it asks for the usage {other}"));
        }
        if !usages.contains(&"server auth") {
            return Err("it does not ask to serve".into());
        }
        let text = spec["request"].as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
        self.judge_text(&text, user, node)
    }

    fn judge_text(&self, pem: &[u8], user: &str, node: &str) -> Verdict {
        let unreadable = || "its request cannot be read".to_owned();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem).map_err(|_| unreadable())?;
        let (_, request) = X509CertificationRequest::from_der(&pem.contents).map_err(|_| unreadable())?;
        let subject = &request.certification_request_info.subject;
        let names: Vec<&str> = subject.iter_common_name().filter_map(|name| name.as_str().ok()).collect();
        let groups: Vec<&str> = subject.iter_organization().filter_map(|name| name.as_str().ok()).collect();
        if names != [user] || groups != [GROUP] {
            return Err(format!("it asks for the subject {subject}"));
        }
        let mut asked = 0;
        for extension in request.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(alternative) = extension {
                alternative.general_names.iter().try_for_each(|name| self.judge_name(name, node))?;
                asked += alternative.general_names.len();
            }
        }
        if asked == 0 { Err("it asks for no name and no address".into()) } else { Ok(()) }
    }

    fn judge_name(&self, asked: &GeneralName<'_>, node: &str) -> Verdict {
        let is_of = |name: &str| self.nodes.get(name).into_iter().flatten();
        let text = match asked {
            GeneralName::DNSName(dns) if *dns == node => node.to_owned(),
            GeneralName::IPAddress(bytes) => {
                let address = pki::address(bytes).ok_or("an address in its request cannot be read")?;
                if !is_of(node).any(|own| *own == address) {
                    return Err(format!("it asks for {address}, which its Node does not have"));
                }
                let mut others = self.nodes.keys().filter(|other| *other != node);
                if let Some(other) = others.find(|other| is_of(other).any(|theirs| *theirs == address)) {
                    return Err(format!("it asks for {address}, which the Node {other} has too"));
                }
                address.to_string()
            }
            other => return Err(format!("it asks for {other}")),
        };
        if self.api.contains(&text.to_lowercase()) {
            return Err(format!("it asks for {text}, which is an API server's"));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use rcgen::{CertificateParams, DnType, KeyPair, SanType};
    use serde_json::json;

    use super::*;

    pub(in crate::bootstrap) fn node(name: &str, address: &str) -> Value {
        json!({"metadata": {"name": name}, "status": {"addresses": [
            {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]}})
    }

    fn nodes() -> Addresses {
        let all = [
            ("a", "10.0.0.1"),
            ("b", "10.0.0.2"),
            ("thief", "10.0.0.2"),
            ("proxy", "10.0.0.100"),
            ("localhost", "10.0.0.9"),
        ];
        addresses(&json!({"items": all.map(|(name, address)| node(name, address))}))
    }

    fn judge(request: &Value) -> Verdict {
        let api = ["kubernetes.default.svc", "localhost", "10.0.0.100", "10.96.0.1"].map(str::to_owned).into();
        Owners { nodes: nodes(), api: &api }.judge(request)
    }

    pub(in crate::bootstrap) fn request(user: &str, subject: &str, group: &str, sans: &[&str]) -> Value {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, subject);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let san = |text: &&str| match text.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName((*text).try_into().unwrap()),
        };
        params.subject_alt_names = sans.iter().map(san).collect();
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        json!({"metadata": {"name": "csr-1"}, "spec": {
            "signerName": SIGNER, "username": user, "groups": ["system:nodes", "system:authenticated"],
            "usages": ["digital signature", "server auth"], "request": STANDARD.encode(pem)}})
    }

    #[test]
    fn a_node_may_serve_as_itself_and_as_nobody_else() {
        let good = request("system:node:a", "system:node:a", GROUP, &["a", "10.0.0.1"]);
        assert!(is_waiting(&good));
        assert_eq!(judge(&good), Ok(()));
        for (user, subject, group, sans, why) in [
            ("system:node:a", "system:node:a", GROUP, &["b"][..], "it asks for DNSName(b)"),
            (
                "system:node:a",
                "system:node:a",
                GROUP,
                &["a", "10.0.0.2"],
                "it asks for 10.0.0.2, which its Node does not have",
            ),
            (
                "system:node:thief",
                "system:node:thief",
                GROUP,
                &["10.0.0.2"],
                "it asks for 10.0.0.2, which the Node b has too",
            ),
            (
                "system:node:proxy",
                "system:node:proxy",
                GROUP,
                &["10.0.0.100"],
                "it asks for 10.0.0.100, which is an API server's",
            ),
            (
                "system:node:localhost",
                "system:node:localhost",
                GROUP,
                &["localhost"],
                "it asks for localhost, which is an API server's",
            ),
            (
                "system:node:a",
                "system:node:b",
                GROUP,
                &["a"],
                "it asks for the subject CN=system:node:b, O=system:nodes",
            ),
            (
                "system:node:a",
                "system:node:a",
                "system:masters",
                &["a"],
                "it asks for the subject CN=system:node:a, O=system:masters",
            ),
            ("system:node:a", "system:node:a", GROUP, &[], "it asks for no name and no address"),
            ("system:node:c", "system:node:c", GROUP, &["c"], "there is no such Node"),
            ("admin", "admin", GROUP, &["a"], "only nodes may ask"),
        ] {
            assert_eq!(judge(&request(user, subject, group, sans)), Err(why.to_owned()));
        }
    }

    #[test]
    fn other_signers_usages_and_decisions_are_left_alone() {
        let good = || request("system:node:a", "system:node:a", GROUP, &["a"]);
        let mut other = good();
        other["spec"]["signerName"] = json!("kubernetes.io/kube-apiserver-client-kubelet");
        assert!(!is_waiting(&other));
        let mut denied = good();
        denied["status"] = json!({"conditions": [{"type": "Denied"}]});
        assert!(!is_waiting(&denied));
        let with = |field: &str, value: Value| {
            let mut request = good();
            request["spec"][field] = value;
            judge(&request).unwrap_err()
        };
        assert_eq!(with("usages", json!(["client auth", "server auth"])), "it asks for the usage client auth");
        assert_eq!(with("usages", json!(["digital signature"])), "it does not ask to serve");
        assert_eq!(with("request", json!("bm9wZQ==")), "its request cannot be read");
        assert_eq!(with("groups", json!(["system:authenticated"])), "only nodes may ask");
    }

    /// A kubectl with one good and one bad request, which writes down what it was asked.
    #[test]
    fn what_may_be_signed_is_approved_and_the_rest_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let named = |name: &str, mut request: Value| {
            request["metadata"]["name"] = json!(name);
            request
        };
        let good = named("csr-good", request("system:node:a", "system:node:a", GROUP, &["a"]));
        let bad = named("csr-bad", request("system:node:c", "system:node:c", GROUP, &["c"]));
        let answers =
            [("requests", json!({"items": [good, bad]})), ("nodes", json!({"items": [node("a", "10.0.0.1")]}))];
        for (name, answer) in answers {
            fs_err::write(dir.path().join(name), answer.to_string()).unwrap();
        }
        let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\ncase \"$*\" in\n*signerName*) cat requests ;;\n\
            *approve*) echo \"$*\" >> approved ;;\n*nodes*) cat nodes ;;\nesac\n";
        let program = dir.path().join("kubectl");
        fs_err::write(&program, script).unwrap();
        fs_err::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let certificate = dir.path().join("apiserver.crt");
        let pem = rcgen::generate_simple_self_signed(["Kubernetes".to_owned()]).unwrap().cert.pem();
        fs_err::write(&certificate, &pem).unwrap();
        assert_eq!(names_of_api(&pem).unwrap(), BTreeSet::from(["kubernetes".to_owned()]));
        let kubectl = Kubectl::new(program, dir.path().join("kubeconfig"));
        let mut known = BTreeSet::new();
        let mut look = || approve(&kubectl, &certificate, &mut known).unwrap();
        let left =
            "left csr-bad of c alone: there is no such Node; if it is right: kubectl certificate approve csr-bad";
        assert_eq!(look(), ["approved csr-good: the node a serves as itself", left]);
        assert_eq!(look(), ["approved csr-good: the node a serves as itself"]);
        let approved = fs_err::read_to_string(dir.path().join("approved")).unwrap();
        assert!(approved.contains("certificate approve csr-good") && !approved.contains("bad"), "{approved}");
        fs_err::write(dir.path().join("requests"), "{\"items\": []}").unwrap();
        assert!(look().is_empty() && known.is_empty());
    }
}
