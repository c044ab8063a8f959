//! The groups of hosts that come by themselves, and the tokens with which their workers join.

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::node::Complete;
use crate::node::complete::SERVING_UNIT;
use crate::provision::cloud::{CONTROL_PLANE, WORKERS};
use crate::provision::{Handoff, Role};

use super::super::api::Kubectl;
use super::super::complete::file_of;
use super::super::outfit::Group;
use super::super::steps::kubectl;
use super::super::token;

/// Every group whose hosts get user data, the control plane first; none where hosts are logged in to.
pub fn groups(cluster: &Cluster) -> Result<Vec<Group>> {
    let settings = &cluster.settings.user_data;
    if !settings.pull {
        return Ok(Vec::new());
    }
    let mut groups: Vec<Group> = Vec::new();
    for record in &settings.groups {
        require_own_labels(&record.name, record.labels.keys())?;
        groups.push(Group {
            name: record.name.clone(),
            role: Role::Worker,
            labels: record.labels.clone(),
            taints: record.taints.clone(),
            max_pods: record.max_pods,
            kube_reserved: record.kube_reserved.clone(),
        });
    }
    let plain = |name: &str, role| Group {
        name: name.into(),
        role,
        labels: std::collections::BTreeMap::new(),
        taints: Vec::new(),
        max_pods: None,
        kube_reserved: std::collections::BTreeMap::new(),
    };
    groups.push(plain(CONTROL_PLANE, Role::ControlPlane));
    if settings.groups.is_empty() && cluster.settings.num_nodes > 0 {
        groups.push(plain(WORKERS, Role::Worker));
    }
    groups.sort_by_key(|group| group.role);
    Ok(groups)
}

/// What a kubelet may not say of itself: it would not even start (kubelet's `--node-labels`).
pub fn require_own_labels<'k>(group: &str, keys: impl Iterator<Item = &'k String>) -> Result<()> {
    const OPEN: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
    const KNOWN: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
    let within = |prefix: &str, domain: &str| prefix == domain || prefix.ends_with(&format!(".{domain}"));
    for key in keys {
        let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
        let is_reserved = within(prefix, "kubernetes.io") || within(prefix, "k8s.io");
        if is_reserved && !OPEN.iter().any(|open| within(prefix, open)) && !KNOWN.contains(&key.as_str()) {
            let message = format!(
                "phase1.node_groups: the group {group} has the label {key}, which only the control plane may set"
            );
            return Err(Error::config(message).hint("choose a name outside of kubernetes.io and k8s.io"));
        }
    }
    Ok(())
}

fn workers(cluster: &Cluster) -> Result<Vec<Group>> {
    Ok(groups(cluster)?.into_iter().filter(|group| group.role == Role::Worker).collect())
}

/// Lets the token of one group in, of machines that somebody makes by hand.
pub fn admit(cluster: &Cluster, group: &Group) -> Result<()> {
    let token = token::ensure_for_group(&cluster.store, &group.name, cluster.settings.user_data.token_lifetime)?;
    token::register_for_group(&kubectl(cluster)?, &group.name, &token)
}

/// Whether hosts come to this cluster by themselves: by its configuration, or because somebody made a token for them.
pub(in crate::bootstrap) fn has_comers(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.settings.user_data.pull || token::has_any(&cluster.store)?)
}

/// Whether all control-plane hosts approve with what kubelets of such hosts serve, as far as this machine knows.
pub fn is_approved_by(cluster: &Cluster, handoff: &Handoff) -> Result<bool> {
    for host in handoff.control_planes() {
        let text = cluster.store.read(file_of(&host.name))?.unwrap_or_default();
        let complete = Complete::parse(&host.name, &String::from_utf8_lossy(&text));
        if !complete.is_ok_and(|complete| complete.units.iter().any(|unit| unit.name == SERVING_UNIT)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The ids of all tokens, by group: what the API has to know.
pub(in crate::bootstrap) fn token_ids(cluster: &Cluster) -> Result<String> {
    let mut all = Vec::new();
    for group in workers(cluster)? {
        let token = token::find_for_group(&cluster.store, &group.name)?;
        all.push(format!("{}: {}", group.name, token.as_ref().map_or("", |token| token.id())));
    }
    Ok(all.join("; "))
}

/// Lets the tokens of all groups in.
pub(in crate::bootstrap) fn register_tokens(cluster: &Cluster, kubectl: &Kubectl) -> Result<()> {
    for group in workers(cluster)? {
        let token = token::ensure_for_group(&cluster.store, &group.name, cluster.settings.user_data.token_lifetime)?;
        token::register_for_group(kubectl, &group.name, &token)?;
    }
    Ok(())
}

/// A group of which the API does not know the token, or not for long enough.
pub(in crate::bootstrap) fn find_unregistered(cluster: &Cluster, kubectl: &Kubectl) -> Result<Option<String>> {
    for group in workers(cluster)? {
        let is_known = match token::find_for_group(&cluster.store, &group.name)? {
            Some(token) if token.is_fresh(cluster.settings.user_data.token_lifetime) => {
                token::is_registered(kubectl, &group.name, &token)?
            }
            _ => false,
        };
        if !is_known {
            return Ok(Some(group.name));
        }
    }
    Ok(None)
}
