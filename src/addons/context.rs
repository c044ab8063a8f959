//! What all steps of the addons phase know: manifests, own sets, and what the cluster looks like.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::artifacts::ResolvedArtifacts;
use crate::bootstrap::step_ids::ARTIFACTS;
use crate::bootstrap::{KUBECONFIG, Kubectl, find_without_balancer, kubectl};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::{Endpoint, Inventory};
use crate::phase::Inputs;
use crate::unknown;

use super::addon_manager::KeptManifest;
use super::object::{LISTED, Object};
use super::observed::Observed;
use super::own::{self, OwnSet, Recorded, WORKLOADS};
use super::own_apply::SetDelivery;
use super::prune;
use super::render::{Rendered, render_cluster};
use super::rollout::{ExpectedAddons, Outlook};

/// How long one look serves the proofs of several steps.
const CACHE_LIFETIME: Duration = Duration::from_secs(2);
/// How long a cluster that did not answer is not asked again.
const SILENCE: Duration = Duration::from_secs(30);
/// The manifests that were rendered last, and the list of artifacts and the place of the API server
/// that they were made from.
type LastRendered = (Option<Vec<u8>>, Endpoint, Vec<Rendered>);
/// Until when these nodes count as those without a balancer of their own.
type LastWithout = (Instant, Vec<String>);

/// What all steps of this phase know.
pub(super) struct AddonContext {
    pub(super) cluster: Arc<Cluster>,
    pub(super) inventory: Inventory,
    /// The user's own manifests, once they could be built: kustomize takes its time.
    sets: OnceLock<Vec<OwnSet>>,
    rendered: Mutex<Option<LastRendered>>,
    last_without: Mutex<Option<LastWithout>>,
    last_look: Mutex<Option<(Instant, Arc<Observed>)>>,
}

impl AddonContext {
    pub(super) fn new(cluster: &Arc<Cluster>) -> Result<Self> {
        Ok(Self {
            cluster: Arc::clone(cluster),
            inventory: cluster.inventory()?,
            sets: OnceLock::new(),
            rendered: Mutex::default(),
            last_without: Mutex::default(),
            last_look: Mutex::default(),
        })
    }

    /// The manifests: all else that they are made from stays as it is while a command runs.
    pub(super) fn manifests(&self) -> Result<Vec<Rendered>> {
        let artifacts = self.cluster.store.read(ResolvedArtifacts::FILE)?;
        let api = self.api();
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., manifests)) = rendered.as_ref().filter(|(of, at, _)| *of == artifacts && *at == api) {
            return Ok(manifests.clone());
        }
        let manifests = render_cluster(&self.cluster, &api)?;
        *rendered = Some((artifacts, api, manifests.clone()));
        Ok(manifests)
    }

    /// Where addons on the network of hosts reach the API server. They are the same on all nodes:
    /// as long as one has no balancer of its own, they go where nodes without one go.
    pub(super) fn api(&self) -> Endpoint {
        let api = &self.inventory.api;
        if self.without_balancer().is_empty() { api.clone() } else { api.without_node_balancer() }
    }

    /// Whether there may be nodes without a balancer, in a cluster that can be asked.
    fn may_lack_balancers(&self) -> bool {
        let (api, groups) = (&self.inventory.api, &self.inventory.groups);
        api.node_balancer && !groups.is_empty() && self.cluster.store.path(KUBECONFIG).exists()
    }

    /// Asks the cluster which nodes have no balancer, before the answer decides what it is given.
    pub(super) fn ask_for_balancers(&self) -> Result<()> {
        if self.may_lack_balancers() {
            let names = find_without_balancer(&self.cluster)?;
            let mut last = self.last_without.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some((Instant::now() + CACHE_LIFETIME, names));
        }
        Ok(())
    }

    /// The nodes of groups that were made before nodes had a balancer; none known where the cluster
    /// has never answered.
    pub(super) fn without_balancer(&self) -> Vec<String> {
        if !self.may_lack_balancers() {
            return Vec::new();
        }
        let mut last = self.last_without.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(until, _)| *until < Instant::now()) {
            let (lifetime, names) = match find_without_balancer(&self.cluster) {
                Ok(names) => (CACHE_LIFETIME, names),
                // It takes its time to find out that there is no answer.
                Err(_) => (SILENCE, last.take().map(|(_, names)| names).unwrap_or_default()),
            };
            *last = Some((Instant::now() + lifetime, names));
        }
        last.as_ref().map(|(_, names)| names.clone()).unwrap_or_default()
    }

    /// The user's own manifests; nothing while kubectl, which builds some of them, is not there.
    pub(super) fn find_sets(&self) -> Result<Option<&[OwnSet]>> {
        if let Some(sets) = self.sets.get() {
            return Ok(Some(sets));
        }
        Ok(own::load(&self.cluster)?.map(|sets| self.sets.get_or_init(|| sets).as_slice()))
    }

    /// The same where they are needed.
    pub(super) fn sets(&self) -> Result<&[OwnSet]> {
        self.find_sets()?
            .ok_or_else(|| Error::permanent("kubectl is not there yet, to build manifests").hint("turnup bootstrap"))
    }

    /// The hashes of the manifests; unknown as long as the images are not known.
    pub(super) fn manifest_inputs(&self, inputs: Inputs) -> Inputs {
        let inputs = match self.manifests() {
            Ok(manifests) => manifests
                .iter()
                .fold(inputs, |inputs, manifest| inputs.with(format!("manifest of {}", manifest.name), &manifest.hash)),
            Err(_) => inputs.with("manifests", unknown::after(&ARTIFACTS)),
        };
        let inputs = self.set_inputs(inputs).with("phase3.prune", self.prunes().to_string());
        if self.has_manager() { inputs.with("phase3.addon_manager", "true") } else { inputs }
    }

    /// The hashes of the user's own manifests.
    pub(super) fn set_inputs(&self, inputs: Inputs) -> Inputs {
        match self.find_sets() {
            Ok(Some(sets)) => sets
                .iter()
                .filter(|set| !set.objects.is_empty())
                .fold(inputs, |inputs, set| inputs.with(set.setting, &set.hash)),
            Ok(None) | Err(_) => inputs.with("own manifests", unknown::after(&ARTIFACTS)),
        }
    }

    pub(super) fn prunes(&self) -> bool {
        self.cluster.settings.addons.prune
    }

    /// Whether control-plane hosts keep the addons as this phase applied them.
    pub(super) fn has_manager(&self) -> bool {
        self.cluster.settings.addons.addon_manager
    }

    /// What they keep.
    pub(super) fn kept(&self) -> Result<Vec<KeptManifest>> {
        Ok(KeptManifest::all(&self.manifests()?, self.sets()?))
    }

    /// Objects of addons that no manifest has, where they are to go.
    pub(super) fn superfluous(&self, there: &Observed, manifests: &[Rendered]) -> Vec<Object> {
        if !self.prunes() {
            return Vec::new();
        }
        prune::superfluous(&there.addon_objects, manifests.iter().flat_map(|manifest| &manifest.objects))
    }

    pub(super) fn delivery<'a>(
        &self,
        kubectl: &'a Kubectl,
        set: &'a OwnSet,
        recorded: &'a BTreeMap<String, Recorded>,
    ) -> SetDelivery<'a> {
        let file = self.cluster.store.path(set.file()).display().to_string();
        SetDelivery { kubectl, set, recorded: recorded.get(set.name), prune: self.prunes(), file }
    }

    /// Whether nodes become Ready by what turnup applies.
    pub(super) fn has_network(&self) -> bool {
        self.cluster.settings.addons.cni || !self.cluster.settings.own_manifests.network.is_empty()
    }

    /// Recreating the control-plane host makes another cluster.
    pub(super) fn cluster_inputs(&self) -> Inputs {
        Inputs::new().with("control-plane host", self.inventory.control_plane_instances())
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        self.inventory.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Nodes, workloads, pods and what belongs to them, all in one call; one more for main objects
    /// that are no workload, for definitions, which other software may bring as well, and for
    /// webhooks and their keys.
    pub(super) fn look(&self) -> Result<Observed> {
        let kinds = "nodes,daemonsets.apps,deployments.apps,pods,services,configmaps";
        let kubectl = kubectl(&self.cluster)?;
        let mut observed = Observed::parse(&kubectl.get(&[kinds, "--namespace=kube-system"])?);
        if self.manifests().is_ok_and(|manifests| manifests.iter().any(Rendered::needs_list)) {
            let mut further = prune::find_objects(&kubectl)?;
            let is_seen =
                |object: &Object| further.hashes.contains_key(object) || LISTED.contains(&object.kind.as_str());
            further.addon_objects.retain(|object, _| is_seen(object));
            observed.addon_objects.extend(further.addon_objects);
            observed.hashes.extend(further.hashes);
        }
        Ok(observed)
    }

    /// The same, at most [`CACHE_LIFETIME`] old: the proofs of all steps need only one call.
    pub(super) fn look_once(&self) -> Result<Arc<Observed>> {
        let mut last = self.last_look.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, observed)) = last.as_ref()
            && when.elapsed() < CACHE_LIFETIME
        {
            return Ok(Arc::clone(observed));
        }
        let observed = Arc::new(self.look()?);
        *last = Some((Instant::now(), Arc::clone(&observed)));
        Ok(observed)
    }

    pub(super) fn forget_look(&self) {
        *self.last_look.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn outlook(&self, observed: &Observed) -> Result<Outlook> {
        let expected = ExpectedAddons {
            hosts: &self.hosts(),
            addons: &self.manifests()?,
            network: self.has_network(),
            tolerated: self.cluster.settings.validation.max_unready_nodes,
        };
        let mut outlook = expected.compare(observed);
        let sets = self.sets()?;
        if self.has_network() && sets.iter().any(OwnSet::has_workloads) {
            let list = kubectl(&self.cluster)?.get(&[WORKLOADS, "--all-namespaces"])?;
            outlook.missing.extend(sets.iter().flat_map(|set| set.missing(&list)));
        }
        Ok(outlook)
    }
}
