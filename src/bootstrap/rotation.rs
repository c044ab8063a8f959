//! Rotation of keysets: what an operator may do with their items now. It changes files below
//! `pki/` alone; a run of the phase carries it out.
//!
//! A rotation has three steps with a run after each: a new item is trusted everywhere before it
//! signs, and it has signed everything again before the old one is distrusted. So a step is
//! refused as long as a host has not got what the step before has changed: the node config as it
//! would be computed now must be the one that was written, and the host's last step must have
//! ended well with it. Kubelets get their client certificates by themselves, so hosts are asked for
//! these before the authority that signed them is distrusted.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::{Host, Inventory, Role};
use crate::phase::is_up_to_date;
use crate::state::State;

use super::api::kubectl;
use super::authority_holders;
use super::encryption_key;
use super::keyset::{ItemState, Keyset, KeysetName, RotationStep};
use super::kubelet_certificate;
use super::node_config::find_written;
use super::node_context::NodeContext;
use super::pki::{Pki, end_of};
use super::same_runtime::MAKE_NODES;
use super::token_holders;

/// How many owners of pods are named.
const HOLDERS: usize = 20;

/// What a step may go by, and whom it tells what takes long.
pub struct Looked<'a> {
    /// The operator has checked what turnup does not see.
    pub confirmed: bool,
    /// The step is one of a rotation in one go.
    pub in_rotation: bool,
    /// Takes a line for the operator.
    pub tell: &'a dyn Fn(&str),
}

/// An item as it is listed.
#[derive(Clone, Debug)]
pub struct ListedItem {
    /// Its keyset.
    pub keyset: KeysetName,
    /// Its number.
    pub id: u32,
    /// What it is used for.
    pub state: ItemState,
    /// When it was made, where that is known.
    pub created: Option<Timestamp>,
    /// When its certificate ends; none of a key.
    pub ends: Option<Timestamp>,
    /// Its files that are here, below the cluster's directory.
    pub files: Vec<PathBuf>,
}

/// The items of these keysets; none of one that no run has made yet.
pub fn list(cluster: &Cluster, names: &[KeysetName]) -> Result<Vec<ListedItem>> {
    let pki = Pki::of(cluster);
    let mut found = Vec::new();
    for keyset in names.iter().copied() {
        for item in pki.keyset(keyset)?.items {
            let files = pki.files_of(keyset, item.id);
            if !files.is_empty() {
                let ends = ends(&pki, keyset, item.id)?;
                found.push(ListedItem { keyset, id: item.id, state: item.state, created: item.created, ends, files });
            }
        }
    }
    Ok(found)
}

/// Makes a new item, which the next run lets every verifier trust. Returns its number.
pub fn create(cluster: &Cluster, name: KeysetName) -> Result<u32> {
    let pki = Pki::of(cluster);
    let before = pki.keyset(name)?;
    if pki.files_of(name, before.primary()).is_empty() {
        let message = format!("{name} has no item yet: the first run makes it");
        return Err(Error::precondition(message).hint("turnup up"));
    }
    let keyset = before.create(name, Timestamp::now())?;
    let id = before.next();
    pki.make_item(name, id, &cluster.settings.name)?;
    pki.write_keyset(name, keyset)?;
    Ok(id)
}

/// Begins a rotation that goes on by [`advance`], or takes over the one that is under way. Returns
/// the number of the item that was made for it.
pub fn begin(cluster: &Cluster, name: KeysetName) -> Result<Option<u32>> {
    let pki = Pki::of(cluster);
    let is_new = pki.keyset(name)?.next_step() == Some(RotationStep::Create);
    let id = if is_new { Some(create(cluster, name)?) } else { None };
    let keyset = pki.keyset(name)?;
    if !keyset.rotating {
        pki.write_keyset(name, Keyset { rotating: true, ..keyset })?;
    }
    Ok(id)
}

/// The next step of a rotation, after a run has carried the one before out; none when it is over.
pub fn advance(cluster: &Arc<Cluster>, name: KeysetName, looked: &Looked<'_>) -> Result<Option<(RotationStep, u32)>> {
    let pki = Pki::of(cluster);
    let keyset = pki.keyset(name)?;
    match keyset.next_step() {
        Some(RotationStep::Promote) => Ok(Some((RotationStep::Promote, promote(cluster, name, None, looked)?))),
        Some(RotationStep::Distrust) => Ok(Some((RotationStep::Distrust, distrust(cluster, name, None, looked)?))),
        Some(RotationStep::Create) | None => {
            pki.write_keyset(name, Keyset { rotating: false, ..keyset })?;
            Ok(None)
        }
    }
}

/// A rotation that has not come to its end, and how it goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnfinishedRotation {
    /// The keyset.
    pub keyset: String,
    /// The item that is trusted beside the primary; none where the last run alone is left.
    pub item: Option<u32>,
    /// Whether that item is the former primary, which is to go.
    pub is_former: bool,
    /// Before this the former item may not go; none where no time is to be waited for, or where it
    /// is not known yet.
    pub not_before: Option<Timestamp>,
    /// The next command.
    pub command: String,
}

impl UnfinishedRotation {
    /// A line for people.
    #[must_use]
    pub fn describe(&self, now: Timestamp) -> String {
        let Self { keyset, item, is_former, not_before, command } = self;
        let next = match not_before.filter(|time| *time > now) {
            Some(time) => format!("from {time:.0} on"),
            None => "next".to_owned(),
        };
        match item {
            Some(item) if *is_former => {
                format!("{keyset}: item {item} signs no longer and is still trusted; {next}: {command}")
            }
            Some(item) => format!("{keyset}: item {item} is trusted and does not sign yet; {next}: {command}"),
            None => format!("{keyset}: the run that ends the rotation is left; {next}: {command}"),
        }
    }
}

/// The rotations that are under way, as far as the cluster's directory tells.
pub fn find_unfinished(cluster: &Cluster) -> Result<Vec<UnfinishedRotation>> {
    let pki = Pki::of(cluster);
    let mut found = Vec::new();
    for name in KeysetName::ALL {
        let keyset = pki.keyset(name)?;
        let item = keyset.other();
        if item.is_none() && !keyset.rotating {
            continue;
        }
        let is_former = keyset.next_step() == Some(RotationStep::Distrust);
        let waits = is_former && name == KeysetName::ServiceAccount;
        let signs = if waits { signing_since(cluster, &keyset)? } else { None };
        found.push(UnfinishedRotation {
            keyset: name.name().to_owned(),
            item,
            is_former,
            not_before: signs.map(token_holders::usual_end),
            command: format!("turnup keyset rotate {name}{}", if waits { " --confirmed" } else { "" }),
        });
    }
    Ok(found)
}

/// Since when every API server signs with the primary; none where a host has not got it yet.
fn signing_since(cluster: &Cluster, keyset: &Keyset) -> Result<Option<Timestamp>> {
    if let Some(since) = keyset.signs() {
        return Ok(Some(since));
    }
    let Some(inventory) = cluster.find_inventory()? else { return Ok(None) };
    let state = cluster.store.state()?;
    let finished = inventory.control_planes().map(|host| {
        let record = state.steps.get(&MAKE_NODES[0].on(&host.name).to_string())?;
        keyset.promoted().is_none_or(|promoted| record.finished >= promoted).then_some(record.finished)
    });
    Ok(finished.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max()))
}

/// No pod and no Secret has a token that the key before has signed. All hosts have what the last
/// step has changed: since when is written down, so that no later run moves it.
fn require_new_tokens(cluster: &Cluster, keyset: &Keyset, id: u32) -> Result<()> {
    let (pki, name) = (Pki::of(cluster), KeysetName::ServiceAccount);
    let signs = signing_since(cluster, keyset)?.unwrap_or_else(Timestamp::now);
    if keyset.signs() != Some(signs) {
        pki.write_keyset(name, keyset.with_signs(signs))?;
    }
    let end = token_holders::usual_end(signs);
    if end > Timestamp::now() {
        let error = Error::precondition(format!("{name}: pods have tokens of the key before until {end:.0}"));
        return Err(error
            .evidence("the new key signs already; both are trusted, and nothing has to be done before")
            .hint(format!("then: turnup keyset rotate {name} --confirmed")));
    }
    token_holders::require_none(cluster, name.name(), &pki.text(&name.file(id), "pub")?, signs)
}

/// Lets an item sign, once every host trusts it; without a number the newer one. Returns its
/// number.
pub fn promote(cluster: &Arc<Cluster>, name: KeysetName, id: Option<u32>, looked: &Looked<'_>) -> Result<u32> {
    let pki = Pki::of(cluster);
    let keyset = pki.keyset(name)?;
    let id = id.map_or_else(|| keyset.meant(name, true), Ok)?;
    let ends = if keyset.trusted().any(|item| item == id) { ends(&pki, name, id)? } else { None };
    let promoted = keyset.promote(name, id, ends, Timestamp::now())?;
    require(cluster, name, RotationStep::Promote, looked, &keyset, id)?;
    pki.write_keyset(name, promoted)?;
    Ok(id)
}

/// Ends the trust in an item that signs no longer, once nothing of it is in use as far as this
/// machine knows; without a number the older one. Returns its number.
pub fn distrust(cluster: &Arc<Cluster>, name: KeysetName, id: Option<u32>, looked: &Looked<'_>) -> Result<u32> {
    let pki = Pki::of(cluster);
    let keyset = pki.keyset(name)?;
    let id = id.map_or_else(|| keyset.meant(name, false), Ok)?;
    keyset.distrust(name, id)?;
    require(cluster, name, RotationStep::Distrust, looked, &keyset, id)?;
    // Read again: what it needed may have been written down.
    pki.write_keyset(name, pki.keyset(name)?.distrust(name, id)?)?;
    Ok(id)
}

fn ends(pki: &Pki<'_>, name: KeysetName, id: u32) -> Result<Option<Timestamp>> {
    if name.authority().is_none() {
        return Ok(None);
    }
    let end = end_of(&pki.text(&name.file(id), "crt")?);
    Ok(end.and_then(|end| Timestamp::from_second(end.timestamp()).ok()))
}

/// What the step needs: that all hosts have what the step before has changed, and that the operator
/// has looked at what turnup does not see.
fn require(
    cluster: &Arc<Cluster>,
    name: KeysetName,
    verb: RotationStep,
    looked: &Looked<'_>,
    keyset: &Keyset,
    id: u32,
) -> Result<()> {
    let did = if verb == RotationStep::Distrust { "distrusted" } else { "promoted" };
    let what = format!("{name}: item {id} cannot be {did} yet");
    let inventory = cluster.inventory()?;
    let behind = find_behind(cluster, &inventory)?;
    if !behind.is_empty() {
        let error = Error::precondition(format!("{what}: the last change of the cluster is not on every host"));
        return Err(error.evidence_of(behind).hint("turnup up; then the same command again"));
    }
    // An item that never was the primary has signed nothing.
    let has_signed = verb == RotationStep::Promote || keyset.has_signed(id);
    if (name, verb) == (KeysetName::KubernetesCa, RotationStep::Distrust) && has_signed {
        let kubelets = kubelet_certificate::find_signed_by(cluster, &inventory, id)?;
        if !kubelets.is_empty() {
            let error =
                Error::precondition(format!("{what}: kubelets use client certificates that it signed, or do not tell"));
            return Err(error.evidence_of(kubelets).hint("docs/certificates.md says how a kubelet gets another one"));
        }
    }
    if (name, verb) == (KeysetName::ServiceAccount, RotationStep::Distrust) && has_signed {
        require_new_tokens(cluster, keyset, id)?;
    }
    if name == KeysetName::EncryptionKey {
        encryption_key::wait_until_loaded(cluster, &inventory, looked.tell)?;
        if verb == RotationStep::Distrust && has_signed {
            encryption_key::rewrite(cluster, &inventory, id, looked.tell)?;
        }
    }
    let mut unseen = if has_signed { unseen(name, verb, !inventory.groups.is_empty()) } else { Vec::new() };
    if (name, verb) == (KeysetName::KubernetesCa, RotationStep::Promote) && !looked.confirmed {
        unseen.splice(0..0, find_holders(cluster));
    }
    if unseen.is_empty() || looked.confirmed {
        return Ok(());
    }
    let next = if looked.in_rotation {
        format!("turnup keyset rotate {name} --confirmed")
    } else {
        format!("turnup keyset {} {name} {id} --confirmed", verb.name())
    };
    let error = Error::precondition(format!("{what} without --confirmed: what uses it elsewhere turnup does not see"));
    Err(error.evidence_of(unseen).hint(format!("docs/certificates.md has each check; then: {next}")))
}

/// Pods that do not know the authorities of now, or know others, with what starts them again.
/// Addons of turnup's are none of them: their pods have a mark of the authorities.
pub fn find_holders(cluster: &Cluster) -> Vec<String> {
    let holders = match kubectl(cluster).and_then(|kubectl| authority_holders::find(&kubectl)) {
        Ok(holders) => holders,
        Err(error) => {
            return vec![format!("every pod that talks to the API was started again since ({})", error.message())];
        }
    };
    let more = holders.len().saturating_sub(HOLDERS);
    let mut lines: Vec<String> =
        holders.iter().take(HOLDERS).map(|holder| format!("started before: {}", holder.describe())).collect();
    if more > 0 {
        lines.push(format!("and {more} more that started before"));
    }
    lines
}

/// The authorities of the API that are trusted, by their numbers; nothing where they were never
/// rotated.
pub fn trusted_authorities(cluster: &Cluster) -> Result<String> {
    let keyset = Pki::of(cluster).keyset(KeysetName::KubernetesCa)?;
    if keyset.items.len() < 2 {
        return Ok(String::new());
    }
    Ok(keyset.trusted().map(|item| item.to_string()).collect::<Vec<_>>().join(","))
}

/// What only the operator can see.
fn unseen(name: KeysetName, verb: RotationStep, has_groups: bool) -> Vec<String> {
    let mut unseen = Vec::new();
    if name == KeysetName::KubernetesCa && has_groups {
        unseen.push("hosts of node groups have been replaced since the last `turnup up`");
    }
    unseen.extend(match (verb, name) {
        (RotationStep::Promote, KeysetName::KubernetesCa) => {
            &["nothing outside uses a kubeconfig that knows the old authority alone: issue them again before"][..]
        }
        (RotationStep::Distrust, KeysetName::KubernetesCa) => {
            &["nothing outside uses a kubeconfig that was issued before"][..]
        }
        (RotationStep::Distrust, KeysetName::ServiceAccount) => {
            &["no program keeps a token that it read before, and none from `kubectl create token` is in use"][..]
        }
        _ => &[],
    });
    unseen.into_iter().map(str::to_owned).collect()
}

/// The hosts that have not got what the last run was to bring, each with the reason.
fn find_behind(cluster: &Arc<Cluster>, inventory: &Inventory) -> Result<Vec<String>> {
    let context = NodeContext::new(cluster, inventory);
    let state = cluster.store.state()?;
    let mut behind = Vec::new();
    let pki = Pki::of(cluster);
    for leaf in context.leaves()? {
        if !pki.is_good(&leaf)? {
            behind.push(format!("pki/{}.crt is to be renewed", leaf.file));
        }
    }
    for host in &inventory.hosts {
        behind.extend(find_fault(&context, &state, host)?.map(|why| format!("{}: {why}", host.name)));
    }
    Ok(behind)
}

fn find_fault(context: &NodeContext, state: &State, host: &Host) -> Result<Option<&'static str>> {
    let Ok((computed, _)) = context.computed(&host.name) else { return Ok(Some("it is no node yet")) };
    if find_written(&context.cluster, &host.name)?.is_none_or(|written| written != computed) {
        return Ok(Some("its node config has changed"));
    }
    let [control_plane, join] = MAKE_NODES;
    let step = if host.role == Role::ControlPlane { control_plane } else { join };
    let is_applied = is_up_to_date(state, &step.on(&host.name), &context.node_inputs(Some(&host.name))?);
    Ok((!is_applied).then_some("its node config was not applied"))
}

/// What a run restarts to carry it out. All else reads its files again by itself.
#[must_use]
pub const fn restarts(name: KeysetName, verb: RotationStep) -> &'static [&'static str] {
    const API_SERVER: &str = "kube-apiserver";
    const MANAGER: &str = "kube-controller-manager";
    match (name, verb) {
        (KeysetName::KubernetesCa, RotationStep::Promote) => &[MANAGER, "kubelet"],
        (KeysetName::KubernetesCa, _) => &[API_SERVER, MANAGER, "kube-scheduler", "kubelet"],
        (KeysetName::EtcdCa | KeysetName::FrontProxyCa, RotationStep::Promote) | (KeysetName::EncryptionKey, _) => &[],
        (KeysetName::EtcdCa, _) => &["etcd", API_SERVER],
        (KeysetName::FrontProxyCa, _) | (KeysetName::ServiceAccount, RotationStep::Promote) => &[API_SERVER, MANAGER],
        (KeysetName::ServiceAccount, _) => &[API_SERVER],
    }
}

#[cfg(test)]
#[path = "rotation_tests.rs"]
mod tests;
