//! Serving certificates of kubelets that came by themselves: which requests the API may sign, and the word that it may.
//!
//! Kubernetes signs the first certificate of a kubelet as a client by itself; what a kubelet serves with, nobody approves by default,
//! because a node could ask for the name of another one. Only a request for a node's own name and its own addresses passes here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension};

use crate::error::Result;

use super::api::Kubectl;

const SIGNER: &str = "kubernetes.io/kubelet-serving";
const USER: &str = "system:node:";
const GROUP: &str = "system:nodes";
/// What a kubelet asks to use the certificate for.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "server auth"];

/// The names of the requests that wait and may be signed.
pub(super) fn find_waiting(kubectl: &Kubectl) -> Result<Vec<String>> {
    let requests = kubectl.get(&["certificatesigningrequests"])?;
    let items = requests["items"].as_array().into_iter().flatten();
    let waiting: Vec<&Value> = items.filter(|request| is_waiting(request)).collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let nodes = addresses(&kubectl.get(&["nodes"])?);
    let good = waiting.into_iter().filter(|request| is_own(request, &nodes));
    Ok(good.filter_map(|request| Some(request["metadata"]["name"].as_str()?.to_owned())).collect())
}

/// Lets the API sign them.
pub(super) fn approve(kubectl: &Kubectl, names: &[String]) -> Result<()> {
    names.iter().try_for_each(|name| kubectl.run(&["certificate", "approve", name]).map(drop))
}

/// The addresses of each node.
type Addresses = BTreeMap<String, BTreeSet<IpAddr>>;

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

/// Whether a node asks for its own name and addresses, to serve with, and for nothing else. An address that two nodes claim is nobody's.
fn is_own(request: &Value, nodes: &Addresses) -> bool {
    let spec = &request["spec"];
    let texts =
        |field: &str| -> Vec<&str> { spec[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect() };
    let user = spec["username"].as_str().unwrap_or_default();
    let Some(own) = user.strip_prefix(USER).and_then(|node| nodes.get_key_value(node)) else { return false };
    let usages = texts("usages");
    let serves = usages.contains(&"server auth") && usages.iter().all(|usage| USAGES.contains(usage));
    let text = spec["request"].as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
    serves && texts("groups").contains(&GROUP) && asks_for_own(&text, user, own, nodes)
}

fn asks_for_own(pem: &[u8], user: &str, (name, own): (&String, &BTreeSet<IpAddr>), nodes: &Addresses) -> bool {
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(pem) else { return false };
    let Ok((_, request)) = X509CertificationRequest::from_der(&pem.contents) else { return false };
    let subject = &request.certification_request_info.subject;
    let names: Vec<&str> = subject.iter_common_name().filter_map(|name| name.as_str().ok()).collect();
    let groups: Vec<&str> = subject.iter_organization().filter_map(|name| name.as_str().ok()).collect();
    let others: BTreeSet<&IpAddr> = nodes.iter().filter(|(other, _)| *other != name).flat_map(|(_, all)| all).collect();
    let is_mine = |asked: &GeneralName<'_>| match asked {
        GeneralName::DNSName(dns) => *dns == name.as_str(),
        GeneralName::IPAddress(bytes) => {
            let address = <[u8; 4]>::try_from(*bytes)
                .map(IpAddr::from)
                .or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.is_ok_and(|address| own.contains(&address) && !others.contains(&address))
        }
        _ => false,
    };
    let mut asked = 0;
    for extension in request.requested_extensions().into_iter().flatten() {
        if let ParsedExtension::SubjectAlternativeName(alternative) = extension {
            if !alternative.general_names.iter().all(is_mine) {
                return false;
            }
            asked += alternative.general_names.len();
        }
    }
    names == [user] && groups == [GROUP] && asked > 0
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use rcgen::{CertificateParams, DnType, KeyPair, SanType};
    use serde_json::json;

    use super::*;

    fn nodes() -> Addresses {
        let node = |name: &str, address: &str| {
            json!({"metadata": {"name": name}, "status": {"addresses": [
                {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]}})
        };
        addresses(&json!({"items": [node("a", "10.0.0.1"), node("b", "10.0.0.2"), node("thief", "10.0.0.2")]}))
    }

    fn request(user: &str, subject: &str, group: &str, sans: &[&str]) -> Value {
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
        assert!(is_waiting(&good) && is_own(&good, &nodes()));
        for (what, user, subject, group, sans) in [
            ("another name", "system:node:a", "system:node:a", GROUP, &["b"][..]),
            ("another address", "system:node:a", "system:node:a", GROUP, &["a", "10.0.0.2"]),
            ("an address that two claim", "system:node:thief", "system:node:thief", GROUP, &["10.0.0.2"]),
            ("another subject", "system:node:a", "system:node:b", GROUP, &["a"]),
            ("another group", "system:node:a", "system:node:a", "system:masters", &["a"]),
            ("no name", "system:node:a", "system:node:a", GROUP, &[]),
            ("no node", "system:node:c", "system:node:c", GROUP, &["c"]),
            ("no kubelet", "admin", "admin", GROUP, &["a"]),
        ] {
            assert!(!is_own(&request(user, subject, group, sans), &nodes()), "{what}");
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
        for usages in [json!(["client auth", "server auth"]), json!(["digital signature"])] {
            let mut client = good();
            client["spec"]["usages"] = usages;
            assert!(!is_own(&client, &nodes()));
        }
        let mut garbage = good();
        garbage["spec"]["request"] = json!("bm9wZQ==");
        assert!(!is_own(&garbage, &nodes()));
        let mut stranger = good();
        stranger["spec"]["groups"] = json!(["system:authenticated"]);
        assert!(!is_own(&stranger, &nodes()));
    }
}
