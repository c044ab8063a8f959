//! Serving certificates of kubelets that came by themselves: finds the requests that wait, and gives the word that the API may sign.
//!
//! Kubernetes signs the first certificate of a kubelet as a client by itself; what a kubelet serves with, nobody approves by default,
//! because a node could ask for the name of another one. `request` says which may pass. Hosts of a group come and go between two runs of
//! turnup, and a certificate ends its life: so control-plane hosts look by themselves.

mod request;
mod reserved;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::signals;

use super::api::Kubectl;

use request::{Owners, Verdict};
pub(super) use reserved::Reserved;

/// The name of the approver's certificate, and of its kubeconfig on control-plane hosts.
pub(super) const APPROVER: &str = "serving-approver";
/// Who it is to the API; `access.yaml` says what it may.
pub(super) const APPROVER_USER: &str = "turnup:serving-approver";
/// The program by which it talks, among turnup's own on the host.
pub(super) const KUBECTL: &str = "kubectl";

const SIGNER: &str = "kubernetes.io/kubelet-serving";
const USER: &str = "system:node:";
/// Between two looks. A kubelet waits for a quarter of an hour before it asks anew.
const PAUSE: Duration = Duration::from_secs(10);
/// Until what was left alone is looked at again: its Node may have come, or an address may have become its own. All Nodes are read for it.
const AGAIN: Duration = Duration::from_secs(30);
/// So many requests are approved by one call.
const AT_ONCE: usize = 100;

/// A request that nobody has decided about.
pub(super) struct Request {
    name: String,
    /// The name of the node, or whoever else asked.
    pub(super) node: String,
    /// Why it must not be signed, if so.
    pub(super) verdict: Verdict,
}

/// A kubelet that asked for a certificate to serve with and has none: there are no logs of its pods, and no `exec`.
#[derive(Clone, Debug, Serialize)]
pub struct Unserved {
    /// The name of the node, or whoever else asked.
    pub node: String,
    /// The name of its request.
    pub request: String,
    /// Why nobody approves it; nothing where it only waits.
    pub why: Option<String>,
}

/// The kubelets that ask in vain, as the API of this cluster has them; none without a hand-off, from which comes what is reserved.
///
/// # Errors
/// That the API does not answer.
pub fn find_unserved(cluster: &Cluster, kubectl: &Kubectl) -> Result<Vec<Unserved>> {
    let Some(handoff) = cluster.find_handoff()? else { return Ok(Vec::new()) };
    let reserved = Reserved::of(&cluster.settings, &handoff)?;
    let mut waiting = find_waiting(kubectl)?;
    // One that nobody answers is asked anew every quarter of an hour: of each node the last one counts.
    waiting.sort_by(|one, other| {
        other["metadata"]["creationTimestamp"].as_str().cmp(&one["metadata"]["creationTimestamp"].as_str())
    });
    let mut seen = BTreeSet::new();
    waiting.retain(|request| seen.insert(request["spec"]["username"].to_string()));
    let requests = judge(kubectl, &waiting, &reserved)?.into_iter();
    Ok(requests.map(|Request { name, node, verdict }| Unserved { node, request: name, why: verdict.err() }).collect())
}

/// The requests that wait, and whether they may be signed.
pub(super) fn find_requests(kubectl: &Kubectl, reserved: &Reserved) -> Result<Vec<Request>> {
    judge(kubectl, &find_waiting(kubectl)?, reserved)
}

fn find_waiting(kubectl: &Kubectl) -> Result<Vec<Value>> {
    let selector = format!("--field-selector=spec.signerName={SIGNER}");
    let mut requests = kubectl.get(&["certificatesigningrequests", &selector])?;
    let all = requests["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    Ok(all.into_iter().filter(is_waiting).collect())
}

fn is_waiting(request: &Value) -> bool {
    let decided = request["status"]["conditions"].as_array().is_some_and(|conditions| !conditions.is_empty());
    request["spec"]["signerName"] == SIGNER && !decided
}

fn judge(kubectl: &Kubectl, waiting: &[Value], reserved: &Reserved) -> Result<Vec<Request>> {
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let owners = Owners::new(&kubectl.get(&["nodes"])?, reserved, Timestamp::now());
    let read = |request: &Value| {
        let user = request["spec"]["username"].as_str().unwrap_or_default();
        let node = user.strip_prefix(USER).unwrap_or(user).to_owned();
        Request { name: name_of(request).to_owned(), node, verdict: owners.judge(request) }
    };
    Ok(waiting.iter().map(read).collect())
}

fn name_of(request: &Value) -> &str {
    request["metadata"]["name"].as_str().unwrap_or_default()
}

/// Looks at the requests again and again, lets the API sign what it may, and writes to `out` what it did and what it leaves alone, each
/// once. For a control-plane host, whose programs and kubeconfig it uses; ends when a signal comes. `reserved` are names, addresses and
/// networks that no kubelet may serve as: `localhost`, `10.0.0.1`, `10.96.0.0/16`, and `.svc` for all names that end so.
///
/// # Errors
/// That nobody reads what it says.
pub fn keep_approving(reserved: &[String], out: &mut dyn Write) -> Result<()> {
    let kubeconfig = PathBuf::from(format!("/etc/kubernetes/{APPROVER}.json"));
    let kubectl = Kubectl::new(PathBuf::from(format!("/opt/turnup/bin/{KUBECTL}")), kubeconfig);
    let reserved = Reserved::parse(reserved);
    let (mut left, mut failing) = (BTreeMap::new(), None);
    while !signals::interrupted() {
        let news = match approve(&kubectl, &reserved, &mut left) {
            Ok(news) => {
                failing = None;
                news
            }
            // An API server that is away is no news after the first time.
            Err(error)
                if error.class() == Class::Interrupted || failing.replace(error.class()) == Some(error.class()) =>
            {
                Vec::new()
            }
            Err(error) => vec![describe(&error)],
        };
        for line in news {
            // What others chose is in it.
            writeln!(out, "{}", line.replace(char::is_control, "?")).context("cannot write")?;
        }
        signals::sleep(PAUSE).ok();
    }
    Ok(())
}

/// What to do about it is said for whoever runs turnup, not for this host.
fn describe(error: &Error) -> String {
    [error.message()]
        .into_iter()
        .chain(error.evidence_lines().iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(": ")
}

/// One look. `left` is what was left alone, and when it was looked at last.
fn approve(kubectl: &Kubectl, reserved: &Reserved, left: &mut BTreeMap<String, Instant>) -> Result<Vec<String>> {
    let mut waiting = find_waiting(kubectl)?;
    left.retain(|name, _| waiting.iter().any(|request| name_of(request) == name));
    waiting.retain(|request| left.get(name_of(request)).is_none_or(|at| at.elapsed() > AGAIN));
    let (mut news, mut good) = (Vec::new(), Vec::new());
    let mut leave = |name: String, line: String| left.insert(name, Instant::now()).is_none().then_some(line);
    for Request { name, node, verdict } in judge(kubectl, &waiting, reserved)? {
        match verdict {
            Ok(()) => good.push((name, node)),
            Err(why) => news.extend(leave(name.clone(), format!("left {name} of {node} alone: {why}"))),
        }
    }
    for some in good.chunks(AT_ONCE) {
        let names = some.iter().map(|(name, _)| name.as_str());
        let failure = kubectl.run(&["certificate", "approve"].into_iter().chain(names).collect::<Vec<_>>()).err();
        for (name, node) in some {
            news.extend(match &failure {
                None => Some(format!("approved {name}: the node {node} serves as itself")),
                Some(error) => leave(name.clone(), format!("cannot approve {name}: {}", describe(error))),
            });
        }
    }
    Ok(news)
}

#[cfg(test)]
pub(super) mod tests;
