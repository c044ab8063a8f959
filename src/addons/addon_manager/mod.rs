//! The addon-manager: keeps what `turnup addons` applied last as it was applied, with no run of
//! turnup. Kubernetes' addon-manager and kops' channels in protokube.
//!
//! A unit on each control-plane host reads the manifests that the cluster keeps for it ([`kept`]),
//! looks whether their objects are as they were after the last apply, and applies a manifest again
//! where they are not. Only the holder of a Lease applies ([`lease`]), a run of turnup among them.
//! It deletes nothing and knows no manifest but those: to change or remove an addon is a run's
//! work.

mod kept;
mod lease;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::bootstrap::{APPLY, Kubectl};
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::{UnitStatus, signals};
use crate::failpoint;

use super::object::{MANAGER, Object, read_answer};
use super::observed::find_written;
use super::own::OwnObject;
use super::own_apply::apply_until_known;
pub(super) use kept::{KeptManifest, keep};
use lease::ApplyLease;
pub(super) use lease::HeldLease;

/// Between two looks.
const INTERVAL: Duration = Duration::from_mins(1);
/// The longest that a repair takes, which is how long its host is trusted to live.
const REPAIR: Duration = Duration::from_mins(5);

/// Why addon-managers do not keep these manifests; nothing when they do.
pub(super) fn find_drift(kubectl: &Kubectl, manifests: &[KeptManifest]) -> Result<Option<String>> {
    let is_kept = kept::are_kept(kubectl, manifests)?;
    Ok((!is_kept).then(|| "the addon-manager does not have the manifests as they are now".to_owned()))
}

/// Takes everything that the cluster keeps for addon-managers.
pub(super) fn remove_all(kubectl: &Kubectl) -> Result<()> {
    let selector = format!("--selector={MANAGER}");
    let args = ["delete", "secrets,leases.coordination.k8s.io", "--namespace=kube-system", &selector];
    kubectl.run(&args).map(drop)
}

/// Keeps the addons until a signal comes, and writes to `out` what it did, a line each. For a
/// control-plane host of this name; `kubectl` and `kubeconfig` are files of it.
///
/// # Errors
/// That `out` cannot be written to.
pub fn run(kubectl: &Path, kubeconfig: &Path, holder: &str, out: &mut dyn Write) -> Result<()> {
    let kubectl = Kubectl::new(kubectl.to_owned(), kubeconfig.to_owned());
    let mut manager =
        AddonManager { kubectl, lease: ApplyLease::new(holder.to_owned()), known: BTreeMap::new(), failing: None };
    let mut status = UnitStatus::default();
    while !signals::interrupted() {
        for line in manager.tell_round() {
            // What others chose is in it.
            writeln!(out, "{}", line.replace(char::is_control, "?")).context("cannot write")?;
        }
        status.set(&manager.failing);
        signals::sleep(INTERVAL).ok();
    }
    Ok(())
}

/// The objects of a manifest that are there, each with what changes when it is written.
type Written = BTreeMap<OwnObject, String>;

/// What a round did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Round {
    /// What was put right.
    news: Vec<String>,
    /// What could not be.
    failures: Vec<String>,
}

struct AddonManager {
    kubectl: Kubectl,
    lease: ApplyLease,
    /// By the name of a manifest: its hash, and its objects after they were applied.
    known: BTreeMap<String, (String, Written)>,
    /// What failed last.
    failing: Option<String>,
}

impl AddonManager {
    /// One round, and what is new of it: an API server that is away is none.
    fn tell_round(&mut self) -> Vec<String> {
        let (news, failing) = match self.round() {
            Ok(Round { news, failures }) => (news, Some(failures.join("; ")).filter(|all| !all.is_empty())),
            Err(error) if error.is_passing() => return Vec::new(),
            Err(error) => (Vec::new(), Some(error.in_one_line())),
        };
        let is_new = failing.is_some() && failing != self.failing;
        self.failing.clone_from(&failing);
        news.into_iter().chain(failing.filter(|_| is_new)).collect()
    }

    /// Looks, and applies what is not as it was; what was put right, and what could not be.
    fn round(&mut self) -> Result<Round> {
        let kept = kept::read(&self.kubectl)?;
        self.known.retain(|name, _| kept.iter().any(|manifest| manifest.name == *name));
        if self.find_lost(&self.kubectl, &kept)?.is_empty() {
            return Ok(Round::default());
        }
        let end = Instant::now() + REPAIR;
        let Ok(held) = self.lease.acquire(&self.kubectl, REPAIR)? else { return Ok(Round::default()) };
        let ended = self.put_right(&self.kubectl.clone().until(end));
        let released = held.release(&self.kubectl);
        let mut round = ended?;
        round.failures.extend(released.err().map(|error| error.in_one_line()));
        Ok(round)
    }

    /// With the Lease held: what is kept is read again, because a run may have ended just now.
    fn put_right(&mut self, kubectl: &Kubectl) -> Result<Round> {
        let mut round = Round::default();
        let kept = kept::read(kubectl)?;
        for manifest in self.find_lost(kubectl, &kept)? {
            match self.apply(kubectl, &manifest) {
                Ok(changed) => {
                    round.news.extend(changed.iter().map(|change| format!("{}: put right {change}", manifest.name)));
                }
                Err(error) if error.class() == Class::Interrupted => return Err(error),
                Err(error) => {
                    round.failures.push(format!("{} cannot be applied: {}", manifest.name, error.in_one_line()));
                }
            }
        }
        Ok(round)
    }

    /// Applies a manifest; the objects that this changed.
    fn apply(&mut self, kubectl: &Kubectl, manifest: &KeptManifest) -> Result<Vec<String>> {
        // A kind of it may be gone.
        let before = look(kubectl, &manifest.text).unwrap_or_default();
        // As the server has written them: what another one does a moment later is seen by the next
        // look.
        let args = [&APPLY[..], &["--output=json", "--filename=-"]].concat();
        let said = failpoint::around(format_args!("addon-manager apply {}", manifest.name), || {
            apply_until_known(kubectl, &find_wanted(&manifest.text)?, || kubectl.run_with(&args, &manifest.text))
        })?;
        let after = find_all_written(&said)?;
        let changed = after.iter().filter(|(object, written)| before.get(object) != Some(written));
        let describe = |object: &OwnObject| {
            let was = if before.contains_key(object) { "changed" } else { "gone" };
            format!("{object}, which was {was}")
        };
        let changed = changed.map(|(object, _)| describe(object)).collect();
        self.known.insert(manifest.name.clone(), (manifest.hash.clone(), after));
        Ok(changed)
    }

    /// The manifests with an object that is gone or not as it was, or that are new here.
    fn find_lost(&self, kubectl: &Kubectl, kept: &[KeptManifest]) -> Result<Vec<KeptManifest>> {
        let all: Vec<&str> = kept.iter().map(|manifest| manifest.text.trim_end()).collect();
        let there = match look(kubectl, &all.join("\n---\n")) {
            Ok(there) => there,
            Err(error) if error.is_passing() => return Err(error),
            // A kind is gone, and kubectl says nothing of all others.
            Err(_) => Written::new(),
        };
        let mut lost = Vec::new();
        for manifest in kept {
            let wanted = find_wanted(&manifest.text)?;
            let known = self.known.get(&manifest.name).filter(|(hash, _)| *hash == manifest.hash);
            if known.is_none_or(|(_, known)| is_lost(&wanted, known, &there)) {
                lost.push(manifest.clone());
            }
        }
        Ok(lost)
    }
}

/// The objects of these manifests that are there.
fn look(kubectl: &Kubectl, manifests: &str) -> Result<Written> {
    if manifests.trim().is_empty() {
        return Ok(Written::new());
    }
    let args = ["get", "--output=json", "--ignore-not-found", "--filename=-"];
    find_all_written(&kubectl.run_with(&args, manifests)?)
}

fn find_all_written(said: &str) -> Result<Written> {
    let items = read_answer(said)?;
    Ok(items.iter().map(|item| (OwnObject::new(&Object::from_json(item), item), find_written(item))).collect())
}

/// Whether one of the wanted objects is not as it was known last.
fn is_lost(wanted: &BTreeSet<OwnObject>, known: &Written, there: &Written) -> bool {
    wanted.iter().any(|object| there.get(object).is_none_or(|written| known.get(object) != Some(written)))
}

fn find_wanted(text: &str) -> Result<BTreeSet<OwnObject>> {
    let objects =
        OwnObject::read(text).map_err(|why| Error::permanent(format!("a kept manifest cannot be read: {why}")))?;
    Ok(objects.into_iter().map(|(object, _)| object).collect())
}

#[cfg(test)]
mod tests;
