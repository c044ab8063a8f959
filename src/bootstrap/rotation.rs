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
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::inventory::{Host, Inventory, Role};
use crate::parallel;
use crate::phase::is_up_to_date;
use crate::state::{State, Store};

use super::host_connection::HostConnection;
use super::keyset::{ItemState, Keyset, KeysetName};
use super::node_config::find_written;
use super::node_context::NodeContext;
use super::pki::{Pki, end_of};
use super::same_runtime::MAKE_NODES;

/// How many hosts are asked at once.
const PARALLEL: usize = 16;

/// What a command does with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// A new one is made and trusted.
    Create,
    /// It becomes the primary.
    Promote,
    /// It is trusted no longer.
    Distrust,
}

impl RotationStep {
    /// All of them, in the order of a rotation.
    pub const ALL: [Self; 3] = [Self::Create, Self::Promote, Self::Distrust];

    /// The command's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Promote => "promote",
            Self::Distrust => "distrust",
        }
    }
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

/// An item of an authority.
#[derive(Clone, Debug)]
pub struct AuthorityItem {
    /// Its keyset.
    pub keyset: KeysetName,
    /// Its number.
    pub id: u32,
    /// What it is used for.
    pub state: ItemState,
    /// Its file below `pki/`, without ending.
    pub file: String,
    /// When it ends, in seconds since 1970.
    pub ends: i64,
    der: Vec<u8>,
}

impl AuthorityItem {
    /// Whether it signed this certificate.
    #[must_use]
    pub fn has_signed(&self, certificate: &X509Certificate<'_>) -> bool {
        X509Certificate::from_der(&self.der)
            .is_ok_and(|(_, own)| certificate.verify_signature(Some(own.public_key())).is_ok())
    }
}

/// All items of authorities that are here.
pub fn authorities(store: &Store) -> Result<Vec<AuthorityItem>> {
    let pki = Pki::new(store);
    let mut found = Vec::new();
    for keyset in KeysetName::ALL.into_iter().filter(|name| name.authority().is_some()) {
        for item in pki.keyset(keyset)?.items {
            let file = keyset.file(item.id);
            let Some(der) = pki.certificate(&file)? else { continue };
            let ends = X509Certificate::from_der(&der).map(|(_, own)| own.validity().not_after.timestamp());
            let ends = ends.unwrap_or_default();
            found.push(AuthorityItem { keyset, id: item.id, state: item.state, file, ends, der });
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

/// Lets an item sign, once every host trusts it; without a number the newer one. Returns its
/// number.
pub fn promote(cluster: &Arc<Cluster>, name: KeysetName, id: Option<u32>, confirmed: bool) -> Result<u32> {
    let pki = Pki::of(cluster);
    let keyset = pki.keyset(name)?;
    let id = id.map_or_else(|| keyset.meant(name, true), Ok)?;
    let ends = if keyset.trusted().any(|item| item == id) { ends(&pki, name, id)? } else { None };
    let promoted = keyset.promote(name, id, ends, Timestamp::now())?;
    require(cluster, name, RotationStep::Promote, confirmed, &keyset, id)?;
    pki.write_keyset(name, promoted)?;
    Ok(id)
}

/// Ends the trust in an item that signs no longer, once nothing of it is in use as far as this
/// machine knows; without a number the older one. Returns its number.
pub fn distrust(cluster: &Arc<Cluster>, name: KeysetName, id: Option<u32>, confirmed: bool) -> Result<u32> {
    let pki = Pki::of(cluster);
    let keyset = pki.keyset(name)?;
    let id = id.map_or_else(|| keyset.meant(name, false), Ok)?;
    let distrusted = keyset.distrust(name, id)?;
    require(cluster, name, RotationStep::Distrust, confirmed, &keyset, id)?;
    pki.write_keyset(name, distrusted)?;
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
    confirmed: bool,
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
        let kubelets = find_kubelets(cluster, &inventory, id)?;
        if !kubelets.is_empty() {
            let error =
                Error::precondition(format!("{what}: kubelets use client certificates that it signed, or do not tell"));
            return Err(error.evidence_of(kubelets).hint("docs/certificates.md says how a kubelet gets another one"));
        }
    }
    let unseen = if has_signed { unseen(name, verb, !inventory.groups.is_empty()) } else { Vec::new() };
    if unseen.is_empty() || confirmed {
        return Ok(());
    }
    let next = format!("turnup keyset {} {name} {id} --confirmed", verb.name());
    let error = Error::precondition(format!("{what} without --confirmed: what uses it elsewhere turnup does not see"));
    Err(error.evidence_of(unseen).hint(format!("docs/certificates.md has each check; then: {next}")))
}

/// What only the operator can see.
fn unseen(name: KeysetName, verb: RotationStep, has_groups: bool) -> Vec<&'static str> {
    let mut unseen = Vec::new();
    if name == KeysetName::KubernetesCa && has_groups {
        unseen.push("hosts of node groups have been replaced since the last `turnup up`");
    }
    unseen.extend(match (verb, name) {
        (RotationStep::Distrust, KeysetName::KubernetesCa) => {
            &["nothing outside uses a kubeconfig that was issued before"][..]
        }
        (RotationStep::Distrust, KeysetName::ServiceAccount) => {
            &["every token of a pod was renewed (an hour), and no Secret holds one"][..]
        }
        (RotationStep::Distrust, KeysetName::EncryptionKey) => {
            &["every encrypted object was written again after the promotion"][..]
        }
        _ => &[],
    });
    unseen
}

/// The hosts whose kubelet's client certificate this item signed, and those that do not tell.
fn find_kubelets(cluster: &Cluster, inventory: &Inventory, id: u32) -> Result<Vec<String>> {
    let authorities = authorities(&cluster.store)?;
    let item = authorities.iter().find(|one| (one.keyset, one.id) == (KeysetName::KubernetesCa, id));
    let ask = |host: &Host| -> Result<Option<String>> {
        match HostConnection::for_proof(cluster, host).and_then(|connection| connection.kubelet_certificate()) {
            Ok(pem) => Ok(judge_kubelet(&pem, item).map(|why| format!("{}: {why}", host.name))),
            Err(error) if error.class() == Class::Interrupted => Err(error),
            Err(error) => Ok(Some(format!("{} does not tell: {}", host.name, error.message()))),
        }
    };
    let answers = parallel::map(&inventory.hosts, PARALLEL, ask);
    answers.into_iter().filter_map(Result::transpose).collect()
}

fn judge_kubelet(pem: &str, item: Option<&AuthorityItem>) -> Option<&'static str> {
    let Some(pem) = Pem::iter_from_buffer(pem.as_bytes()).flatten().next() else {
        return Some("its kubelet has no client certificate");
    };
    match pem.parse_x509() {
        Ok(certificate) if item.is_some_and(|item| item.has_signed(&certificate)) => {
            Some("its kubelet's client certificate is of this item")
        }
        Ok(_) => None,
        Err(_) => Some("its kubelet's client certificate is damaged"),
    }
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
