//! The CSR approver: decides about the requests of kubelets whose hosts join by themselves, and of
//! hosts that renew what their kubelets need, for as long as the cluster lives.
//!
//! Two kinds: the client certificate with which the bearer of a node group's token becomes a Node,
//! or a host of turnup's is its Node again (`client`), and the certificate with which a kubelet
//! serves logs and exec (`serving`).
//! Kubernetes approves neither by itself. Hosts come and go between two runs of turnup, so a unit
//! on each control-plane host looks again and again. What is decided is decided about the very
//! object that was judged. The same unit gives the Nodes that joined so their role (`role_label`).
//!
//! Nothing here makes a host that turnup logs in to a Node: `join` does, one request of one token.

mod client;
mod csr;
mod policy;
mod request;
pub(super) mod role_label;
mod serving;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::{UnitStatus, signals};
use crate::parallel;

use super::api::Kubectl;

pub(super) use client::{check_host, find_node};
pub(super) use csr::{CLIENT, SERVING, denial, is_approved, is_decided, is_from_token};
use csr::{CsrDecision, created, host, is_of_group, is_plain, name_of, signer};
pub use policy::Policy;
pub(super) use policy::{group_flag, is_wanted};
use view::View;

/// The name of the approver's certificate, and of its kubeconfig on control-plane hosts.
pub(super) const NAME: &str = "csr-approver";
/// Who it is to the API; `access.yaml` says what it may.
pub(super) const USER: &str = "turnup:csr-approver";
/// The program by which it talks, among turnup's own on the host.
pub(super) const KUBECTL: &str = "kubectl";

const RESOURCE: &str = "certificatesigningrequests";
/// Between two looks. A kubelet waits for a quarter of an hour before it asks again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Until what was left alone is looked at again: its Node may have come, or its name may be free.
/// All Nodes are read for it.
const AGAIN: Duration = Duration::from_secs(30);
/// So many decisions are written at a time.
const AT_ONCE: usize = 8;

/// A kubelet's request for a certificate that it did not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PendingCsr {
    /// The name of the node, or the user that made the request.
    pub node: String,
    /// The name of the request.
    pub request: String,
    /// Why it is denied or not approved; nothing where it only waits for its turn.
    pub why: Option<String>,
}

/// Requests of hosts that join by themselves.
#[derive(Clone, Debug, Default)]
pub struct PendingCsrs {
    /// For the certificate that makes a host a Node.
    pub joining: Vec<PendingCsr>,
    /// For the certificate with which logs and exec are served.
    pub serving: Vec<PendingCsr>,
}

/// Requests of kubelets that are pending or denied; none without an inventory, from which the
/// denied names come.
///
/// # Errors
/// That the API does not answer.
pub fn find_pending(cluster: &Cluster, kubectl: &Kubectl) -> Result<PendingCsrs> {
    let Some(inventory) = cluster.find_inventory()? else { return Ok(PendingCsrs::default()) };
    look(kubectl, &Policy::of(cluster, &inventory)?)
}

/// The same by this policy.
pub(super) fn look(kubectl: &Kubectl, policy: &Policy) -> Result<PendingCsrs> {
    let mut all = list(kubectl, None)?;
    // Newest first: a request that is not answered is made again and again, and of each node the
    // last one counts.
    all.sort_by(|one, other| created(other).cmp(created(one)));
    let mut seen = BTreeSet::new();
    let last: Vec<&Value> = all.iter().filter(|request| seen.insert((signer(request), node_of(request)))).collect();
    let view = read_view(kubectl, &all, &last)?;
    let mut pending = PendingCsrs::default();
    for request in last {
        let why = match (denial(request), is_decided(request)) {
            (Some(why), _) if signer(request) == CLIENT && is_of_group(request) => Some(format!("denied: {why}")),
            (_, true) => continue,
            _ => match judge(request, &view, policy) {
                CsrDecision::Ignore => continue,
                CsrDecision::Approve => None,
                CsrDecision::Deny(_, why) | CsrDecision::Wait(why) => Some(why),
            },
        };
        let csr = PendingCsr { node: node_of(request), request: name_of(request).to_owned(), why };
        if signer(request) == CLIENT { pending.joining.push(csr) } else { pending.serving.push(csr) }
    }
    Ok(pending)
}

/// Every request of a kubelet, decided or not; of one signer where it is named.
pub(super) fn list(kubectl: &Kubectl, signer_name: Option<&str>) -> Result<Vec<Value>> {
    let selector = signer_name.map(|name| format!("--field-selector=spec.signerName={name}"));
    let words = [RESOURCE].into_iter().chain(selector.as_deref());
    let mut requests = kubectl.get(&words.collect::<Vec<_>>())?;
    let all = requests["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    Ok(all.into_iter().filter(|request| [CLIENT, SERVING].contains(&signer(request))).collect())
}

fn read_view(kubectl: &Kubectl, all: &[Value], judged: &[&Value]) -> Result<View> {
    if judged.iter().all(|request| is_decided(request)) {
        return Ok(View::new(&Value::Null, &Value::Null, all, Timestamp::now()));
    }
    let nodes = kubectl.get(&["nodes"])?;
    let joins = judged.iter().any(|request| is_of_group(request) || host(request).is_some());
    let leases = if joins { kubectl.get(&["leases", "--namespace=kube-node-lease"])? } else { Value::Null };
    Ok(View::new(&nodes, &leases, all, Timestamp::now()))
}

fn judge(request: &Value, view: &View, policy: &Policy) -> CsrDecision {
    let decision = match signer(request) {
        CLIENT => client::judge(request, view, policy),
        _ => serving::judge(request, view, policy),
    };
    match decision {
        // Almost anything may be called almost anything; the name becomes a part of a path.
        CsrDecision::Approve | CsrDecision::Deny(..) if !is_plain(name_of(request)) => {
            CsrDecision::Wait("no kubelet gives a request such a name".into())
        }
        decision => decision,
    }
}

/// The Node that made the request, else the Node that it names, else the user.
fn node_of(request: &Value) -> String {
    let user = request["spec"]["username"].as_str().unwrap_or_default();
    let own = user.strip_prefix(request::NODE_USER).map(str::to_owned);
    own.or_else(|| find_node(request)).unwrap_or_else(|| user.to_owned())
}

/// What becomes of each of these. Of several that ask for one name at the same time the first one
/// is approved.
fn decide<'r>(requests: &[&'r Value], view: &View, policy: &Policy) -> Vec<(&'r Value, CsrDecision)> {
    let mut sorted = requests.to_vec();
    sorted.sort_by_key(|request| (created(request), name_of(request)));
    let mut given = BTreeSet::new();
    let decide = |request: &'r Value| {
        let decision = judge(request, view, policy);
        let is_second =
            decision == CsrDecision::Approve && signer(request) == CLIENT && !given.insert(node_of(request));
        let why = || format!("another request for {} came first", node_of(request));
        (request, if is_second { CsrDecision::Wait(why()) } else { decision })
    };
    sorted.into_iter().map(decide).collect()
}

/// Approves this very object: one that was changed since, or made again under the same name, is
/// not.
pub(super) fn approve(kubectl: &Kubectl, request: &Value, why: &str) -> Result<()> {
    settle(kubectl, request, ("Approved", "TurnupApproved"), why)
}

/// Denies this very object.
pub(super) fn deny(kubectl: &Kubectl, request: &Value, reason: &str, why: &str) -> Result<()> {
    settle(kubectl, request, ("Denied", reason), why)
}

fn settle(kubectl: &Kubectl, request: &Value, (kind, reason): (&str, &str), why: &str) -> Result<()> {
    if !is_plain(name_of(request)) {
        return Err(Error::permanent("a certificate signing request has a name that no kubelet gives")
            .evidence(name_of(request)));
    }
    let mut request = request.clone();
    request["status"]["conditions"] =
        json!([{"type": kind, "status": "True", "reason": reason, "message": format!("turnup: {why}")}]);
    // kubectl's own `certificate approve` reads the object once more, and writes no reason.
    let path = format!("--raw=/apis/certificates.k8s.io/v1/{RESOURCE}/{}/approval", name_of(&request));
    kubectl.run_with(&["replace", &path, "--filename=-"], &request.to_string()).map(drop)
}

/// Looks at the requests again and again, decides, and writes to `out` what it did and what it
/// leaves alone, each once. For a control-plane host; `kubectl` and `kubeconfig` are files of it.
/// Ends when a signal comes.
///
/// # Errors
/// That `out` cannot be written to.
pub fn run(kubectl: &Path, kubeconfig: &Path, policy: &Policy, out: &mut dyn Write) -> Result<()> {
    let kubectl = Kubectl::new(kubectl.to_owned(), kubeconfig.to_owned());
    let (mut left, mut failing) = (BTreeMap::new(), None);
    let mut labelled: Option<Instant> = None;
    let mut status = UnitStatus::default();
    while !signals::interrupted() {
        let mut looks = vec![step(&kubectl, policy, &mut left)];
        if policy.has_node_groups() && labelled.is_none_or(|at| at.elapsed() > AGAIN) {
            looks.push(role_label::give(&kubectl, policy));
            labelled = Some(Instant::now());
        }
        let errors = looks.iter().filter_map(|look| look.as_ref().err());
        status.set(errors.filter(|error| !error.is_passing()).map(Error::in_one_line));
        for line in tell_news(looks, &mut failing) {
            // What others chose is in it.
            writeln!(out, "{}", line.replace(char::is_control, "?")).context("cannot write")?;
        }
        signals::sleep(RETRY_INTERVAL).ok();
    }
    Ok(())
}

/// The lines of these looks. `failing` is the class of the last error: an API server that is away
/// is no news after the first time.
fn tell_news(looks: Vec<Result<Vec<String>>>, failing: &mut Option<Class>) -> Vec<String> {
    if looks.iter().all(Result::is_ok) {
        *failing = None;
    }
    let tell = |look: Result<Vec<String>>| match look {
        Ok(news) => news,
        Err(error) if error.class() == Class::Interrupted || failing.replace(error.class()) == Some(error.class()) => {
            Vec::new()
        }
        Err(error) => vec![error.in_one_line()],
    };
    looks.into_iter().flat_map(tell).collect()
}

/// One look from nothing; what it did and what it left alone.
#[cfg(test)]
pub(super) fn look_once(kubectl: &Kubectl, policy: &Policy) -> Result<Vec<String>> {
    step(kubectl, policy, &mut BTreeMap::new())
}

/// One look. `left` is what was left alone, and when it was looked at last.
fn step(kubectl: &Kubectl, policy: &Policy, left: &mut BTreeMap<String, Instant>) -> Result<Vec<String>> {
    let all = list(kubectl, None)?;
    let mut waiting: Vec<&Value> = all.iter().filter(|request| !is_decided(request)).collect();
    left.retain(|name, _| waiting.iter().any(|request| name_of(request) == name));
    waiting.retain(|request| left.get(name_of(request)).is_none_or(|at| at.elapsed() > AGAIN));
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let decisions = decide(&waiting, &read_view(kubectl, &all, &waiting)?, policy);
    let done = parallel::map(&decisions, AT_ONCE, |(request, decision)| settle_as(kubectl, request, decision));
    let mut news = Vec::new();
    for ((request, decision), done) in decisions.iter().zip(done) {
        let (name, node) = (name_of(request), node_of(request));
        let alone = match (decision, done) {
            (CsrDecision::Ignore, _) => continue,
            (CsrDecision::Approve, Ok(())) if signer(request) == CLIENT && host(request).is_some() => {
                news.push(format!("approved {name}: the host {node} is its Node again"));
                continue;
            }
            (CsrDecision::Approve, Ok(())) if signer(request) == CLIENT => {
                news.push(format!("approved {name}: the host {node} joins"));
                continue;
            }
            (CsrDecision::Approve, Ok(())) => {
                news.push(format!("approved {name}: the node {node} serves as itself"));
                continue;
            }
            (CsrDecision::Deny(_, why), Ok(())) => {
                news.push(format!("denied {name} of {node}: {why}"));
                continue;
            }
            (CsrDecision::Wait(why), _) => format!("left {name} of {node} alone: {why}"),
            // Another control-plane host was faster, or the API server is away: the next look
            // tells.
            (_, Err(error)) if error.class() == Class::Transient => continue,
            (_, Err(error)) => format!("cannot decide about {name} of {node}: {}", error.in_one_line()),
        };
        news.extend(left.insert(name.to_owned(), Instant::now()).is_none().then_some(alone));
    }
    Ok(news)
}

fn settle_as(kubectl: &Kubectl, request: &Value, decision: &CsrDecision) -> Result<()> {
    match decision {
        CsrDecision::Approve => approve(kubectl, request, "a kubelet, for its own name"),
        CsrDecision::Deny(reason, why) => deny(kubectl, request, reason, why),
        CsrDecision::Wait(_) | CsrDecision::Ignore => Ok(()),
    }
}

#[cfg(test)]
mod client_tests;
#[cfg(test)]
pub(super) mod tests;
