//! The step `join`: a worker that turnup logs in to becomes a node, with a token of its own.
//!
//! Kubernetes approves nothing that comes with a token. This approves one request: made with the
//! token of this host, for the name of this host, and saying nothing else. Then the token is
//! deleted, in the API and on the host.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use zeroize::Zeroizing;

use crate::change::Preview;
use crate::error::{Class, Error, Result};
use crate::phase::{Action, Check, Cx, Inputs, Turns};

use super::api::{Kubectl, kubectl};
use super::csr_approver::{self, CLIENT, check_host, find_node, is_approved, is_decided, is_from_token};
use super::host_connection::HostConnection;
use super::kubeconfig::{self, Identity};
use super::kubelet_certificate;
use super::latest::Latest;
use super::node_context::{FirstStart, NodeContext};
use super::node_metadata;
use super::pki::{Authority, Pki};
use super::token::{self, Token};

/// Between two looks for a host's request.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// How old a list of requests may be: hundreds of hosts that join at once are asked about with one
/// call.
const CACHE_LIFETIME: Duration = Duration::from_millis(700);

/// The requests of kubelets as they were at the last look.
pub(super) type HostCsrs = Latest<Vec<Value>>;

/// A worker joins.
pub(super) struct Join {
    pub(super) node: NodeContext,
    pub(super) csrs: Arc<HostCsrs>,
}

impl Action for Join {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        self.node.node_inputs(host)
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        self.node.prove_host(host)
    }

    fn preview(&self, host: Option<&str>) -> Result<Preview> {
        self.node.preview_host(host)
    }

    fn turns(&self, host: Option<&str>) -> Option<&Turns> {
        let is_node = |host: &str| self.node.nodes.knows(&kubectl(&self.node.cluster)?, host);
        // One that is new harms no other node; where it cannot be told, it takes a turn.
        is_node(host.unwrap_or_default()).unwrap_or(true).then_some(&self.node.update.turns)
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let host = self.node.host(host)?;
        let kubectl = kubectl(&self.node.cluster)?.within(cx);
        let connection = HostConnection::new(&self.node.cluster, host, cx)?;
        connection.copy_turnup(&self.node.cluster)?;
        let mut has_joined = connection.facts()?.joined;
        if has_joined {
            self.node.bring_up(&connection, FirstStart::default(), cx)?;
            if kubelet_certificate::is_of_former_item(&self.node.cluster, &connection)? {
                connection.remove_kubelet_certificate()?;
                has_joined = false;
            }
        }
        if !has_joined {
            let token = self.issue_token(&kubectl, &host.name)?;
            let kubeconfig = Some(self.kubeconfig(&token)?);
            self.node.bring_up(&connection, FirstStart { kubeconfig, ..FirstStart::default() }, cx)?;
            self.approve(&kubectl, &host.name, &token, cx)?;
        }
        connection.finish_join(cx)?;
        node_metadata::wait_for(&kubectl, &host.name, cx)?;
        token::revoke(&kubectl, &host.name)
    }
}

impl Join {
    /// Deletes what an earlier run left of a join that did not come to its end: its token, and then
    /// the request that was made with it, which the kubelet would otherwise take for the answer to
    /// this one.
    fn issue_token(&self, kubectl: &Kubectl, host: &str) -> Result<Token> {
        let token = token::create(kubectl, host, self.node.cluster.settings.pki.token_lifetime)?;
        let all = self.list(kubectl)?;
        let is_left = |request: &&Value| is_from_token(request) && find_node(request).as_deref() == Some(host);
        let left = all.iter().filter(is_left);
        for name in left.filter_map(|request| request["metadata"]["name"].as_str()) {
            // A name that a kubelet did not choose may be anything.
            kubectl.run(&["delete", "certificatesigningrequests", "--ignore-not-found", "--", name])?;
        }
        Ok(token)
    }

    fn list(&self, kubectl: &Kubectl) -> Result<Arc<Vec<Value>>> {
        self.csrs.get(CACHE_LIFETIME, || csr_approver::list(kubectl, Some(CLIENT)))
    }

    fn kubeconfig(&self, token: &Token) -> Result<Zeroizing<String>> {
        let cluster = &self.node.cluster;
        let authority = Pki::of(cluster).bundle(Authority::Cluster)?;
        let server = self.node.inventory.api.url_for_nodes();
        let identity = Identity::Token(token.text());
        Ok(kubeconfig::render(&cluster.settings.name, &server, &authority, "bootstrap", &identity).into())
    }

    /// Waits for the one request of this host, and approves it. An API server that is away for a
    /// moment is waited for.
    fn approve(&self, kubectl: &Kubectl, host: &str, token: &Token, cx: &Cx) -> Result<()> {
        loop {
            let why = match self.list(kubectl) {
                Ok(all) => match find_own(&all, token.id()) {
                    Some(request) if is_approved(request) => return Ok(()),
                    Some(request) => match decide(kubectl, request, host, token) {
                        // Another list says whether it counts.
                        Err(error) if error.class() == Class::Transient => Some(error),
                        other => return other,
                    },
                    None => None,
                },
                Err(error) if error.class() == Class::Transient => Some(error),
                Err(error) => return Err(error),
            };
            if cx.remaining() < Duration::from_secs(5) {
                let error = Error::transient(format!("the kubelet of {host} did not ask for its certificate"));
                let error = why.into_iter().fold(error, Error::source);
                return Err(error.hint(format!("on {host}: journalctl -u kubelet")));
            }
            cx.sleep(POLL_INTERVAL)?;
        }
    }
}

/// Approves the request when it is that of the host, and ends the join when it is not.
fn decide(kubectl: &Kubectl, request: &Value, host: &str, token: &Token) -> Result<()> {
    let Err(why) = check_host(request, host, token.id()) else {
        return csr_approver::approve(kubectl, request, &format!("the host {host}, to which turnup gave this token"));
    };
    // The bearer of the token is not the kubelet that it was given to.
    token::revoke(kubectl, host)?;
    let message = format!("the token of {host} was used for another request than that of its kubelet: {why}");
    let error = Error::permanent(message)
        .hint(format!("check {host} for intruders: only root there could read the token; the token is deleted now"));
    // What is not denied stays pending: nothing else approves it.
    Err(match csr_approver::deny(kubectl, request, "NotThisHost", &why) {
        Ok(()) => error,
        Err(failure) => error.source(failure),
    })
}

/// What was asked for with this token: what is still open, else what was approved.
fn find_own<'r>(all: &'r [Value], token_id: &str) -> Option<&'r Value> {
    let user = format!("{}{token_id}", token::USER);
    let own = || all.iter().filter(|request| request["spec"]["username"] == user);
    own().find(|request| !is_decided(request)).or_else(|| own().find(|request| is_approved(request)))
}
