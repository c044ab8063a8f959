//! The node groups whose hosts join by themselves, how the names of their Nodes begin, and the
//! tokens with which they join.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use crate::cloud::{CONTROL_PLANE, WORKERS};
use crate::cluster::Cluster;
use crate::cluster::user_data::GroupRecord;
use crate::error::{Error, Result};
use crate::inventory::{self, Host, Inventory, Role};

use super::api::{Kubectl, kubectl};
use super::group_tokens::{self, GroupTokens};
use super::node_target::Group;

/// Every group whose hosts get user data, the control plane first; none where hosts are logged in
/// to.
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
            name_prefix: name_prefix(cluster, &record.name),
            labels: record.labels.clone(),
            taints: record.taints.clone(),
            max_pods: record.max_pods,
            kube_reserved: record.kube_reserved.clone(),
        });
    }
    let plain = |name: &str, role| Group {
        name: name.into(),
        role,
        name_prefix: if role == Role::Worker { name_prefix(cluster, name) } else { String::new() },
        labels: BTreeMap::new(),
        taints: Vec::new(),
        max_pods: None,
        kube_reserved: BTreeMap::new(),
    };
    groups.push(plain(CONTROL_PLANE, Role::ControlPlane));
    if settings.groups.is_empty() && cluster.settings.num_nodes > 0 {
        groups.push(plain(WORKERS, Role::Worker));
    }
    groups.sort_by_key(|group| group.role);
    Ok(groups)
}

/// Whether any host runs pods of users alone: the control plane is kept free of them then.
pub(super) fn has_workers(cluster: &Cluster, inventory: &Inventory) -> bool {
    let is_worker = |group: &Group| group.role == Role::Worker;
    let come_alone = groups(cluster).is_ok_and(|groups| groups.iter().any(is_worker));
    come_alone || inventory.hosts.iter().any(|host| host.role == Role::Worker)
}

/// The group of the configuration that a host of the inventory belongs to.
pub(super) fn find_record<'c>(cluster: &'c Cluster, host: &Host) -> Result<Option<&'c GroupRecord>> {
    if host.group.is_empty() {
        return Ok(None);
    }
    let all = &cluster.settings.node_groups;
    // The one pool of a configuration without groups has this name as well.
    let is_pool = all.is_empty() && host.group == WORKERS;
    let found = all.iter().find(|record| record.name == host.group);
    if found.is_some() || is_pool {
        return Ok(found);
    }
    let near = kconfig::suggest(&host.group, all.iter().map(|record| record.name.as_str()));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let message = format!("{}: host {} belongs to the group `{}`", inventory::FILE, host.name, host.group);
    Err(Error::config(message)
        .evidence(format!("phase1.node_groups has no group of this name{near}"))
        .hint("add the group to phase1.node_groups, or leave it out where the inventory comes from"))
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

/// How the names of a group's Nodes begin: as its cloud calls the hosts, where that depends on the
/// group.
#[must_use]
pub fn name_prefix(cluster: &Cluster, group: &str) -> String {
    let of_cloud = cluster.settings.cloud.as_ref().and_then(|spec| spec.node_name_prefix(group));
    // Hosts of this machine are called after their cluster.
    let of_local = cluster.settings.local_hosts.replaces_hosts.then(|| format!("{}-{group}", cluster.settings.name));
    format!("{}-", of_cloud.or(of_local).as_deref().unwrap_or(group))
}

/// The same of every group of workers that joins by itself, by the names of the groups: those of
/// the configuration, and those that `turnup user-data` made.
pub(super) fn name_prefixes(cluster: &Cluster) -> Result<BTreeMap<String, String>> {
    let made = group_tokens::find_all(&cluster.store)?.into_iter();
    let mut all: BTreeMap<String, String> =
        made.map(|tokens| (tokens.group().to_owned(), tokens.name_prefix().to_owned())).collect();
    all.extend(workers(cluster)?.into_iter().map(|group| (group.name, group.name_prefix)));
    Ok(all)
}

/// Whether the hosts of this group prove by their cloud who they are: those of the configuration
/// do, where it says so. Machines that are made by hand have a token.
pub(super) fn joins_by_identity(cluster: &Cluster, group: &str) -> Result<bool> {
    Ok(cluster.settings.user_data.by_identity && workers(cluster)?.iter().any(|worker| worker.name == group))
}

/// The tokens of a group of the configuration, if it has any and its hosts join by them.
fn find_tokens(cluster: &Cluster, group: &str) -> Result<Option<GroupTokens>> {
    if cluster.settings.user_data.by_identity { Ok(None) } else { group_tokens::find(&cluster.store, group) }
}

/// Gives one group, of machines that are made by hand, a token that the API knows.
pub fn admit(cluster: &Cluster, group: &Group) -> Result<Zeroizing<String>> {
    if joins_by_identity(cluster, &group.name)? {
        let message = format!("hosts of the group {} join by their cloud's word, and no token lets one in", group.name);
        return Err(
            Error::usage(message).hint("turnup user-data with the name of another group, for machines of your own")
        );
    }
    let (kubectl, life) = (kubectl(cluster)?, cluster.settings.user_data.token_lifetime);
    let names = (group.name.as_str(), group.name_prefix.as_str());
    let (tokens, _) = group_tokens::ensure(&cluster.store, names, life, |_| Ok(()))?;
    group_tokens::register(&kubectl, &group.name, Some(&tokens))?;
    Ok(Zeroizing::new(tokens.current().to_owned()))
}

/// Whether hosts join this cluster by themselves: by its configuration, or because a token was made
/// for them.
pub fn has_node_groups(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.settings.user_data.pull || !group_tokens::find_all(&cluster.store)?.is_empty())
}

/// The ids of all tokens, by group: what the API has to know.
pub(super) fn token_ids(cluster: &Cluster) -> Result<String> {
    let mut all = Vec::new();
    for group in workers(cluster)? {
        let tokens = find_tokens(cluster, &group.name)?;
        all.push(format!("{}: {}", group.name, tokens.map(|tokens| tokens.ids()).unwrap_or_default()));
    }
    Ok(all.join("; "))
}

/// Makes the API know the tokens of all groups of the configuration, and no others of theirs.
pub(super) fn register_tokens(cluster: &Cluster, kubectl: &Kubectl) -> Result<()> {
    for group in workers(cluster)? {
        let tokens = find_tokens(cluster, &group.name)?;
        group_tokens::register(kubectl, &group.name, tokens.as_ref())?;
    }
    Ok(())
}

/// A group of the configuration whose tokens the API does not know as they are.
pub(super) fn find_unregistered(cluster: &Cluster, kubectl: &Kubectl) -> Result<Option<String>> {
    for group in workers(cluster)? {
        let tokens = find_tokens(cluster, &group.name)?;
        if !group_tokens::is_registered(kubectl, &group.name, tokens.as_ref())? {
            return Ok(Some(group.name));
        }
    }
    Ok(None)
}
