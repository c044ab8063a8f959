//! The step `rbac`: what administrators, nodes and the API server may do that RBAC's own objects
//! do not say.
//!
//! The administrator's rights are one of these role bindings. While it is missing, a credential of
//! minutes that stands above RBAC applies them; nothing else here uses it.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::phase::{Action, Check, Cx, Inputs};

use super::api::{Kubectl, kubectl};
use super::credentials::kubectl_above_rbac;
use super::node_context::NodeContext;
use super::{cloud_resources, groups, teardown_policy};

/// Those that stand for all of the manifest: of administrators, of hosts that join, of the CSR
/// approver, of the health check, and of what keeps names in a DNS zone.
const BINDINGS: [&str; 5] = [
    "clusterrolebinding/turnup:cluster-admins",
    "clusterrolebinding/turnup:node-bootstrapper",
    "clusterrolebinding/turnup:csr-approver",
    "clusterrolebinding/turnup:healthcheck",
    "clusterrolebinding/turnup:dns",
];
/// What earlier versions of turnup made. The first one let the API sign whatever the bearer of a
/// token asked for.
const RETIRED: [&str; 3] = [
    "clusterrolebinding/turnup:node-autoapprove-bootstrap",
    "clusterrolebinding/turnup:serving-approver",
    "clusterrole/turnup:serving-approver",
];
/// Between two looks whether a new role binding counts.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Administrators, joining, renewal, and calls to kubelets; the tokens of node groups, and the
/// rights of what runs on control-plane hosts.
pub(super) struct ApplyRbac(pub(super) NodeContext);

/// Whether an object is among these, one a line. kubectl names it with all of its kind.
fn names(there: &str, object: &str) -> bool {
    let (kind, name) = object.split_once('/').unwrap_or_default();
    there
        .lines()
        .filter_map(|line| line.split_once('/'))
        .any(|(found, line)| line == name && (found == kind || found.split('.').next() == Some(kind)))
}

/// Waits until the administrator's role binding counts: API servers learn of it by a watch.
fn wait_for_rights(kubectl: &Kubectl, cx: &Cx) -> Result<()> {
    while !kubectl.may_do_everything()? {
        if cx.remaining() < Duration::from_secs(5) {
            return Err(Error::transient("the API server does not apply the role binding turnup:cluster-admins yet")
                .hint("turnup bootstrap"));
        }
        cx.sleep(RETRY_INTERVAL)?;
    }
    Ok(())
}

impl Action for ApplyRbac {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let manifest = self.0.cluster.source.digest("templates/bootstrap/rbac.yaml");
        let inputs =
            Inputs::new().with("host instance", self.0.inventory.control_plane_instances()).with("manifest", manifest);
        let tokens = groups::token_ids(&self.0.cluster)?;
        Ok(if tokens.is_empty() { inputs } else { inputs.with("tokens of groups", tokens) })
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let cluster = &self.0.cluster;
        let kubectl = kubectl(cluster)?;
        let objects = BINDINGS.iter().chain(&teardown_policy::OBJECTS).chain(&RETIRED).copied();
        let words = ["get"].into_iter().chain(objects).chain(["--ignore-not-found", "--output=name"]);
        // Without the first of them the administrator may not even look.
        let there = kubectl.run_once(&words.collect::<Vec<_>>()).unwrap_or_default();
        if BINDINGS.iter().any(|binding| !names(&there, binding)) {
            return Ok(Check::Drifted("the role bindings are missing".into()));
        }
        if let Some(object) = RETIRED.iter().find(|object| names(&there, object)) {
            return Ok(Check::Drifted(format!("{object} of an earlier turnup is there")));
        }
        if teardown_policy::OBJECTS.iter().any(|object| names(&there, object)) {
            return Ok(Check::Drifted("the teardown policy of an unfinished turnup down counts".into()));
        }
        if let Some(group) = groups::find_unregistered(cluster, &kubectl)? {
            return Ok(Check::Drifted(format!("the API does not know the tokens of the group {group} as they are")));
        }
        Ok(Check::Ok)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0.cluster;
        let text = cluster.source.read_text("templates/bootstrap/rbac.yaml")?;
        let kubectl = kubectl(cluster)?.within(cx);
        if kubectl.may_do_everything()? {
            kubectl.apply(&text)?;
        } else {
            cx.progress("administrators have no rights yet: role bindings are applied by a credential of ten minutes");
            kubectl_above_rbac(cluster, &self.0.inventory)?.within(cx).apply(&text)?;
            wait_for_rights(&kubectl, cx)?;
        }
        kubectl.run(&["delete"].into_iter().chain(RETIRED).chain(["--ignore-not-found"]).collect::<Vec<_>>())?;
        teardown_policy::lift(&kubectl, cx)?;
        cloud_resources::forget_orphans(cluster)?;
        groups::register_tokens(cluster, &kubectl)
    }
}
