//! The step `access`: what nodes and the API server may do that RBAC's own objects do not say.

use crate::error::Result;
use crate::phase::{Action, Cx, Inputs, Proof};

use super::steps::{Node, kubectl};
use super::{ban, belongings, user_data};

/// Two that stand for all of the manifest: that of hosts, and that of whoever approves with what their kubelets serve.
const ROLE_BINDINGS: [&str; 2] =
    ["clusterrolebinding/turnup:node-bootstrapper", "clusterrolebinding/turnup:serving-approver"];

/// Joining, renewal, and calls to kubelets; the tokens of groups, and the rights of whoever approves with what their kubelets serve.
pub(super) struct Access(pub(super) Node);

/// Whether an object is among these, one a line. kubectl names it with all of its kind.
fn names(there: &str, object: &str) -> bool {
    let name = object.trim_start_matches(|letter| letter != '/');
    there.lines().any(|line| line.ends_with(name))
}

impl Action for Access {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let manifest = self.0.cluster.source.digest("templates/bootstrap/access.yaml");
        let inputs =
            Inputs::new().with("host instance", self.0.handoff.control_plane_instances()).with("manifest", manifest);
        let tokens = user_data::token_ids(&self.0.cluster)?;
        Ok(if tokens.is_empty() { inputs } else { inputs.with("tokens of groups", tokens) })
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        let cluster = &self.0.cluster;
        let kubectl = kubectl(cluster)?;
        let [binding, policy] = ban::OBJECTS;
        let [hosts, approver] = ROLE_BINDINGS;
        let there = kubectl.run(&["get", hosts, approver, binding, policy, "--ignore-not-found", "--output=name"]);
        let there = there.unwrap_or_default();
        if ROLE_BINDINGS.iter().any(|binding| !names(&there, binding)) {
            return Ok(Proof::Gone("the role bindings are missing".into()));
        }
        if ban::OBJECTS.iter().any(|object| names(&there, object)) {
            return Ok(Proof::Gone("the ban of an unfinished turnup down counts".into()));
        }
        if let Some(group) = user_data::find_unregistered(cluster, &kubectl)? {
            return Ok(Proof::Gone(format!("the token of the group {group} is not known")));
        }
        Ok(Proof::Holds)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0.cluster;
        let text = cluster.source.read_text("templates/bootstrap/access.yaml")?;
        let kubectl = kubectl(cluster)?.within(cx);
        kubectl.apply(text)?;
        ban::lift(&kubectl, cx)?;
        belongings::forget_left(cluster)?;
        user_data::register_tokens(cluster, &kubectl)
    }
}
