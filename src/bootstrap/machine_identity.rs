//! Workers of a cloud that join by their cloud's word of each machine, without a token of their
//! group: by what the API server knows them, and how their kubelets show it.
//!
//! Where the cloud signs what a machine is, the API server verifies the signature and makes of the
//! claims a user of one group and one name; expressions are CEL (`AuthenticationConfiguration` of
//! Kubernetes). Elsewhere the machine authenticator of its host says who it is. The CSR approver
//! gives a certificate for that name alone.

use serde_json::{Value, json};

use crate::cloud::{IdentityIssuer, MachineProof, MachineRole, Spec};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::Role;
use crate::node::layout;

use super::groups::groups;
use super::token::{BOOTSTRAPPERS, MACHINE_USER};

/// What stands before a zone in a list with other texts.
const ZONE_MARK: &str = "zone/";

/// The one service that the API server asks whose token it is.
const WEBHOOK: &str = "phase2.apiserver.authentication_webhook_file";

/// How machines prove which ones they are; none where hosts join with the token of their group.
fn find_proof(cluster: &Cluster) -> Result<Option<MachineProof>> {
    if !cluster.settings.user_data.by_identity {
        return Ok(None);
    }
    let proof = cluster.settings.cloud.as_ref().map(Spec::machine_proof).transpose()?.flatten();
    let none =
        || Error::config("phase1.user_data.identity: this target says nothing that tells one machine from another");
    let proof = proof.ok_or_else(|| none().hint("turnup config set phase1.user_data.identity=token"))?;
    let webhook = &cluster.settings.control_plane.authentication_webhook_file;
    if matches!(proof, MachineProof::Asked(_)) && !webhook.is_empty() {
        let why = "the API server asks one service whose token it is, and that one tells it which machines are whose";
        return Err(Error::config(format!("{WEBHOOK}: {why} (phase1.user_data.identity)"))
            .hint(format!("turnup config unset {WEBHOOK}, or: turnup config set phase1.user_data.identity=token")));
    }
    Ok(Some(proof))
}

/// The issuer of the machines' tokens, where the API server verifies them itself.
pub(super) fn find_issuer(cluster: &Cluster) -> Result<Option<IdentityIssuer>> {
    Ok(find_proof(cluster)?.and_then(|proof| match proof {
        MachineProof::Signed(issuer) => Some(issuer),
        MachineProof::Asked(_) => None,
    }))
}

/// As what the machines are known to their cloud, where that is asked about them.
pub(super) fn find_role(cluster: &Cluster) -> Result<Option<MachineRole>> {
    Ok(find_proof(cluster)?.and_then(|proof| match proof {
        MachineProof::Asked(role) => Some(role),
        MachineProof::Signed(_) => None,
    }))
}

/// What the API server is told of them, as one of the list `jwt`.
pub(super) fn authenticator(cluster: &Cluster) -> Result<Option<Value>> {
    let Some(issuer) = find_issuer(cluster)? else { return Ok(None) };
    Ok(Some(render(&issuer, &machine_groups(cluster)?)))
}

/// The command by which a kubelet shows who its machine is; none for hosts that have a token.
pub(super) fn find_program(cluster: &Cluster) -> Result<Option<Vec<String>>> {
    let Some(proof) = find_proof(cluster)? else { return Ok(None) };
    let (cloud, audience) =
        (format!("--cloud={}", cluster.settings.target), format!("--audience={}", proof.audience()));
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
