//! Workers of a cloud that join by what the cloud signs of each machine, without a token of their
//! group: by what the API server knows them, and how their kubelets show it.
//!
//! The API server verifies the signature and makes of the claims a user of one group and one name;
//! the CSR approver gives a certificate for that name alone. Expressions are CEL
//! (`AuthenticationConfiguration` of Kubernetes).

use serde_json::{Value, json};

use crate::cloud::{IdentityIssuer, Spec};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::Role;
use crate::node::layout;

use super::groups::groups;
use super::token::{BOOTSTRAPPERS, MACHINE_USER};

/// What stands before a zone in a list with other texts.
const ZONE_MARK: &str = "zone/";

/// The issuer of the machines' tokens; none where hosts join with the token of their group.
pub(super) fn find_issuer(cluster: &Cluster) -> Result<Option<IdentityIssuer>> {
    if !cluster.settings.user_data.by_identity {
        return Ok(None);
    }
    let issuer = cluster.settings.cloud.as_ref().map(Spec::identity_issuer).transpose()?.flatten();
    let none =
        || Error::config("phase1.user_data.identity: this target signs nothing that tells one machine from another");
    issuer.ok_or_else(|| none().hint("turnup config set phase1.user_data.identity=token")).map(Some)
}

/// What the API server is told of them, as one of the list `jwt`.
pub(super) fn authenticator(cluster: &Cluster) -> Result<Option<Value>> {
    let Some(issuer) = find_issuer(cluster)? else { return Ok(None) };
    Ok(Some(render(&issuer, &machine_groups(cluster)?)))
}

/// The command by which a kubelet shows who its machine is; none for hosts that have a token.
pub(super) fn find_program(cluster: &Cluster) -> Result<Option<Vec<String>>> {
    let Some(issuer) = find_issuer(cluster)? else { return Ok(None) };
    let (cloud, audience) = (format!("--cloud={}", cluster.settings.target), format!("--audience={}", issuer.audience));
    Ok(Some(vec![layout::TURNUP.into(), "node".into(), "machine-identity".into(), cloud, audience]))
}

/// Which machines are of a node group.
struct MachineGroup {
    name: String,
    /// How their names begin.
    prefix: String,
    zones: Vec<String>,
}

fn machine_groups(cluster: &Cluster) -> Result<Vec<MachineGroup>> {
    let zones = |group: &str| Some(cluster.settings.cloud.as_ref()?.groups.get(group)?.zones.clone());
    let workers = groups(cluster)?.into_iter().filter(|group| group.role == Role::Worker);
    let of_group = |group: super::node_target::Group| {
        Some(MachineGroup { zones: zones(&group.name)?, name: group.name, prefix: group.name_prefix })
    };
    Ok(workers.filter_map(of_group).collect())
}

fn render(issuer: &IdentityIssuer, groups: &[MachineGroup]) -> Value {
    let IdentityIssuer { name, zone, .. } = issuer;
    let mut sorted: Vec<&MachineGroup> = groups.iter().collect();
    // The longest beginning counts: `web-b-1` is of `web-b` where there is also a `web`.
    sorted.sort_by_key(|group| (std::cmp::Reverse(group.prefix.len()), &group.name));
    // A row has texts alone, as CEL wants its lists: how names begin, user, group, and the zones,
    // marked as such.
    let row = |group: &&MachineGroup| {
        let own =
            [group.prefix.clone(), format!("{MACHINE_USER}{}:", group.name), format!("{BOOTSTRAPPERS}:{}", group.name)];
        own.into_iter().chain(group.zones.iter().map(|zone| format!("{ZONE_MARK}{zone}"))).collect::<Vec<_>>()
    };
    let rows = json!(sorted.iter().map(row).collect::<Vec<_>>());
    let own = format!("{rows}.filter(row, {name}.startsWith(row[0]))");
    let rules = issuer.rules.iter().map(|(expression, message)| json!({"expression": expression, "message": message}));
    let of_group = json!({
        "expression": format!("{own}.size() > 0 && {} + {zone} in {own}[0]", json!(ZONE_MARK)),
        "message": "a machine of no node group, or in another zone",
    });
    json!({
        "issuer": {"url": issuer.url, "audiences": [issuer.audience]},
        "claimValidationRules": rules.chain([of_group]).collect::<Vec<_>>(),
        "claimMappings": {
            "username": {"expression": format!("{own}[0][1] + {name}")},
            "groups": {"expression": format!("[{}, {own}[0][2]]", json!(BOOTSTRAPPERS))},
        },
    })
}

#[cfg(test)]
#[path = "machine_identity_tests.rs"]
mod tests;
