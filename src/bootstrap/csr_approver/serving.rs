//! Whether a kubelet may serve with a certificate for what it asks: its own name and addresses, and
//! nothing that belongs to another Node, an API server or a Service. Pure.

use std::net::IpAddr;

use serde_json::Value;
use x509_parser::prelude::GeneralName;

use super::super::pki;
use super::csr::{CsrDecision, host, texts};
use super::policy::Policy;
use super::request::{Der, NODE_USER, NODES, Request};
use super::view::View;

/// What a kubelet asks to use the certificate for.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "server auth"];

/// A request that cannot be approved waits: its Node may come, or an address may become its own.
pub(super) fn judge(request: &Value, view: &View, policy: &Policy) -> CsrDecision {
    match check(request, view, policy) {
        Ok(()) => CsrDecision::Approve,
        Err(why) => CsrDecision::Wait(why),
    }
}

fn check(request: &Value, view: &View, policy: &Policy) -> Result<(), String> {
    let spec = &request["spec"];
    let user = spec["username"].as_str().unwrap_or_default();
    let kubelet = user.strip_prefix(NODE_USER).filter(|_| texts(&spec["groups"]).contains(&NODES));
    let node = kubelet.or_else(|| host(request)).ok_or("only nodes and their hosts may ask")?;
    let known = view.nodes.get(node).ok_or("there is no such Node")?;
    if known.is_control_plane {
        return Err("turnup itself gives control-plane hosts what they serve with".into());
    }
    let usages = texts(&spec["usages"]);
    if let Some(other) = usages.iter().find(|usage| !USAGES.contains(usage)) {
        return Err(format!("it asks for the usage {other}"));
    }
    if !usages.contains(&"server auth") {
        return Err("it does not ask to serve".into());
    }
    let der = Der::decode(spec["request"].as_str().unwrap_or_default())?;
    let judge = Judge { view, policy, node };
    judge.request(&der.read()?)
}

struct Judge<'a> {
    view: &'a View,
    policy: &'a Policy,
    node: &'a str,
}

impl Judge<'_> {
    fn request(&self, request: &Request<'_>) -> Result<(), String> {
        let sans = request.sans();
        if sans.is_empty() {
            return Err("it asks for no name and no address".into());
        }
        sans.iter().try_for_each(|san| self.san(san))?;
        if !request.is_exactly(self.node, &sans) {
            return Err(format!("it asks, as {}, for more than a kubelet does", request.subject()));
        }
        Ok(())
    }

    fn san(&self, asked: &GeneralName<'_>) -> Result<(), String> {
        match asked {
            GeneralName::DNSName(dns) if self.policy.deny_sans().has_name(dns) => Err(denied(dns)),
            GeneralName::DNSName(dns) if *dns == self.node => Ok(()),
            GeneralName::DNSName(dns) if self.policy.is_of_machine(dns) => self.name_of_machine(dns),
            GeneralName::DNSName(dns) => Err(format!("it asks for {dns}, which is not its name")),
            GeneralName::IPAddress(bytes) => {
                let address = pki::address(bytes).ok_or("it asks for an address of a strange length")?;
                self.address(address.to_canonical())
            }
            other => Err(format!("it asks for {other}")),
        }
    }

    /// A name of the cloud's, which its controller manager has written on the Node.
    fn name_of_machine(&self, dns: &str) -> Result<(), String> {
        let mut all = self.view.nodes.iter().filter(|(_, known)| known.names.contains(dns));
        if !all.clone().any(|(name, _)| name == self.node) {
            return Err(format!("it asks for {dns}, which its Node does not have"));
        }
        let is_name = self.view.nodes.contains_key(dns).then_some(dns);
        let other = all.find(|(name, known)| *name != self.node && !known.is_gone).map(|(name, _)| name.as_str());
        other.or(is_name).map_or(Ok(()), |other| Err(format!("it asks for {dns}, which the Node {other} has too")))
    }

    /// An address that two Nodes claim is refused to both.
    fn address(&self, address: IpAddr) -> Result<(), String> {
        if self.policy.deny_sans().has_address(address) {
            return Err(denied(&address.to_string()));
        }
        let mut all = self.view.nodes.iter().filter(|(_, known)| known.addresses.contains(&address));
        if !all.clone().any(|(name, _)| name == self.node) {
            return Err(format!("it asks for {address}, which its Node does not have"));
        }
        all.find(|(name, known)| *name != self.node && !known.is_gone).map_or(Ok(()), |(other, _)| {
            let what = format!("it asks for {address}, which the Node {other} has too");
            Err(format!("{what}; if that machine is gone: kubectl delete node {other}"))
        })
    }
}

fn denied(text: &str) -> String {
    format!("it asks for {text}, which is an API server's or a Service's")
}
