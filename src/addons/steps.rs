//! The steps of the addons phase, in the order of `phases/addons/phase.toml`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::artifacts::ResolvedArtifacts;
use crate::bootstrap::step_ids::{API, ARTIFACTS};
use crate::bootstrap::{Kubectl, kube_proxy_config, kubectl};
use crate::change::{Change, Preview};
use crate::cluster::{Cluster, TimeLimits, find_document};
use crate::document::{Document, Fields, Found};
use crate::error::{Class, Error, Result};
use crate::inventory::Inventory;
use crate::phase::{Action, Check, Cx, Inputs, Phase};
use crate::unknown;

use super::object::{DEFINITION, Object, SECRET, WEBHOOKS};
use super::observed::{Observed, Pod};
use super::own::{self, NETWORK, OWN, OwnSet, Recorded, WORKLOADS};
use super::own_apply::{SetDelivery, find_recorded};
use super::render::{Rendered, render_cluster};
use super::rollout::{ExpectedAddons, Outlook};
use super::{authorities, definitions, evidence, preview, prune};

/// Where the manifests lie below the cluster's directory.
const DIR: &str = "addons";
/// What the objects were after they were applied, below the cluster's directory.
const APPLIED: &str = "outputs/addons.json";

/// The output of this phase: each object with what kubectl showed of it after it was applied.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
struct Applied {
    /// Always [`Applied::SCHEMA`](Document::SCHEMA).
    schema: String,
    /// By kubectl's name of the object.
    objects: BTreeMap<String, String>,
}

impl Document for Applied {
    const SCHEMA: &'static str = "turnup.addons/1";
    const WHAT: &'static str = "the list of applied objects";
    const REMEDY: &'static str = "remove the file; turnup addons recreates it";

    fn fields() -> Fields {
        Fields::new(&[("schema", "text"), ("objects.*", "text")])
    }
}

/// Between two looks at the cluster.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long one look serves the proofs of several steps.
const CACHE_LIFETIME: Duration = Duration::from_secs(2);
/// How long a pod may show a reason that no waiting cures: images can still be on their way into a
/// new node.
const STUCK: Duration = Duration::from_secs(45);
/// How long the API server may be away while we wait.
const AWAY: Duration = Duration::from_mins(1);

/// The phase for the hosts of the inventory.
pub fn phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    let context = Arc::new(AddonContext {
        cluster: Arc::clone(cluster),
        inventory: cluster.inventory()?,
        sets: OnceLock::new(),
        rendered: Mutex::default(),
        last_look: Mutex::default(),
    });
    let shared = || Arc::clone(&context);
    let mut manifest = cluster.manifest("addons")?;
    let timeout = cluster.settings.limits.addons;
    manifest.set_timeouts(&["apply", "wait"], timeout, TimeLimits::ADDONS);
    let mut phase = cluster.phase("addons", manifest, cluster.phase_hosts()?);
    phase.limits.phase = Some((timeout, "phase3.timeout"));
    Ok(phase.with("render", Render(shared())).with("apply", Apply(shared())).with("wait", Wait(shared())))
}

/// The manifests that were rendered last, and the list of artifacts that they were made from.
type LastRendered = (Option<Vec<u8>>, Vec<Rendered>);

/// What all steps of this phase know.
struct AddonContext {
    cluster: Arc<Cluster>,
    inventory: Inventory,
    /// The user's own manifests, once they could be built: kustomize takes its time.
    sets: OnceLock<Vec<OwnSet>>,
    rendered: Mutex<Option<LastRendered>>,
    last_look: Mutex<Option<(Instant, Arc<Observed>)>>,
}

impl AddonContext {
    /// The manifests: all else that they are made from stays as it is while a command runs.
    fn manifests(&self) -> Result<Vec<Rendered>> {
        let artifacts = self.cluster.store.read(ResolvedArtifacts::FILE)?;
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, manifests)) = rendered.as_ref().filter(|(of, _)| *of == artifacts) {
            return Ok(manifests.clone());
        }
        let manifests = render_cluster(&self.cluster, &self.inventory)?;
        *rendered = Some((artifacts, manifests.clone()));
        Ok(manifests)
    }

    /// The user's own manifests; nothing while kubectl, which builds some of them, is not there.
    fn find_sets(&self) -> Result<Option<&[OwnSet]>> {
        if let Some(sets) = self.sets.get() {
            return Ok(Some(sets));
        }
        Ok(own::load(&self.cluster)?.map(|sets| self.sets.get_or_init(|| sets).as_slice()))
    }

    /// The same where they are needed.
    fn sets(&self) -> Result<&[OwnSet]> {
        self.find_sets()?
            .ok_or_else(|| Error::permanent("kubectl is not there yet, to build manifests").hint("turnup bootstrap"))
    }

    /// The hashes of the manifests; unknown as long as the images are not known.
    fn manifest_inputs(&self, inputs: Inputs) -> Inputs {
        let inputs = match self.manifests() {
            Ok(manifests) => manifests
                .iter()
                .fold(inputs, |inputs, manifest| inputs.with(format!("manifest of {}", manifest.name), &manifest.hash)),
            Err(_) => inputs.with("manifests", unknown::after(&ARTIFACTS)),
        };
        self.set_inputs(inputs).with("phase3.prune", self.prunes().to_string())
    }

    /// The hashes of the user's own manifests.
    fn set_inputs(&self, inputs: Inputs) -> Inputs {
        match self.find_sets() {
            Ok(Some(sets)) => sets
                .iter()
                .filter(|set| !set.objects.is_empty())
                .fold(inputs, |inputs, set| inputs.with(set.setting, &set.hash)),
            Ok(None) | Err(_) => inputs.with("own manifests", unknown::after(&ARTIFACTS)),
        }
    }

    fn prunes(&self) -> bool {
        self.cluster.settings.addons.prune
    }

    /// Objects of addons that no manifest has, where they are to go.
    fn superfluous(&self, there: &Observed, manifests: &[Rendered]) -> Vec<Object> {
        if !self.prunes() {
            return Vec::new();
        }
        prune::superfluous(&there.addon_objects, manifests.iter().flat_map(|manifest| &manifest.objects))
    }

    fn delivery<'a>(
        &self,
        kubectl: &'a Kubectl,
        set: &'a OwnSet,
        recorded: &'a BTreeMap<String, Recorded>,
    ) -> SetDelivery<'a> {
        let file = self.cluster.store.path(set.file()).display().to_string();
        SetDelivery { kubectl, set, recorded: recorded.get(set.name), prune: self.prunes(), file }
    }

    /// Whether nodes become Ready by what turnup applies.
    fn has_network(&self) -> bool {
        self.cluster.settings.addons.cni || !self.cluster.settings.own_manifests.network.is_empty()
    }

    /// Recreating the control-plane host makes another cluster.
    fn cluster_inputs(&self) -> Inputs {
        Inputs::new().with("control-plane host", self.inventory.control_plane_instances())
    }

    fn hosts(&self) -> Vec<String> {
        self.inventory.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Nodes, workloads, pods and what belongs to them, all in one call; one more for main objects
    /// that are no workload, for definitions, which other software may bring as well, and for
    /// webhooks and their keys.
    fn look(&self) -> Result<Observed> {
        let kinds = "nodes,daemonsets.apps,deployments.apps,pods,services,configmaps";
        let kubectl = kubectl(&self.cluster)?;
        let mut observed = Observed::parse(&kubectl.get(&[kinds, "--namespace=kube-system"])?);
        if self.manifests().is_ok_and(|manifests| manifests.iter().any(Rendered::needs_list)) {
            let mut further = prune::find_objects(&kubectl)?;
            let kinds = [DEFINITION, SECRET, WEBHOOKS[0], WEBHOOKS[1]];
            let is_seen =
                |object: &Object| further.hashes.contains_key(object) || kinds.contains(&object.kind.as_str());
            further.addon_objects.retain(|object, _| is_seen(object));
            observed.addon_objects.extend(further.addon_objects);
            observed.hashes.extend(further.hashes);
        }
        Ok(observed)
    }

    /// The same, at most [`FRESH`] old: the proofs of all steps need only one call.
    fn look_once(&self) -> Result<Arc<Observed>> {
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

    fn forget_look(&self) {
        *self.last_look.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn outlook(&self, observed: &Observed) -> Result<Outlook> {
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

/// The manifests as files that the user can read first.
struct Render(Arc<AddonContext>);

impl Render {
    /// The files that should be there, with their texts.
    fn files(&self) -> Result<Vec<(String, String)>> {
        let (manifests, sets) = (self.0.manifests()?, self.0.sets()?);
        own::refuse_shared(&manifests, sets)?;
        let sets = sets.iter().filter(|set| !set.objects.is_empty()).map(|set| (set.file(), set.text.clone()));
        Ok(manifests.into_iter().map(|manifest| (manifest.file(), manifest.text)).chain(sets).collect())
    }

    fn stale_files(&self, files: &[(String, String)]) -> Vec<String> {
        let wanted: Vec<&String> = files.iter().map(|(name, _)| name).collect();
        let entries = fs_err::read_dir(self.0.cluster.store.path(DIR)).into_iter().flatten().flatten();
        let manifests =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        let names = manifests.filter_map(|path| Some(format!("{DIR}/{}", path.file_name()?.to_string_lossy())));
        names.filter(|name| !wanted.contains(&name)).collect()
    }
}

impl Action for Render {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let cluster = &self.0.cluster;
        let settings =
            ["phase3.", "phase2.pod_cidr", "phase2.service_cidr", "phase2.cluster_domain", "phase2.network."];
        let mut inputs = self.0.set_inputs(cluster.inputs(&settings));
        let authorities = authorities::mark(cluster)?;
        if !authorities.is_empty() {
            inputs.insert("authorities", authorities);
        }
        Ok(inputs
            .with("API endpoint", format!("{:?}", self.0.inventory.api))
            // With overrides, which are in a file of the user's.
            .with("kube-proxy configuration", kube_proxy_config(&cluster.settings)?)
            .with("templates", cluster.source.digest("templates/addons"))
            .with("artifacts", cluster.store.read(ResolvedArtifacts::FILE)?.unwrap_or_default()))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let files = self.files()?;
        for (name, text) in &files {
            if self.0.cluster.store.read(name)?.as_deref() != Some(text.as_bytes()) {
                return Ok(Check::Drifted(format!("{name} is missing or was changed")));
            }
        }
        let stale = self.stale_files(&files);
        Ok(stale.first().map_or(Check::Ok, |file| Check::Drifted(format!("{file} belongs to no addon"))))
    }

    fn run(&self, _host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.simulate(None).map(drop)
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        if self.0.find_sets()?.is_none() {
            return Ok(false);
        }
        let (store, files) = (&self.0.cluster.store, self.files()?);
        for (name, text) in &files {
            store.write_file(name, text.as_bytes(), 0o600)?;
        }
        self.stale_files(&files).into_iter().try_for_each(|file| store.remove(file))?;
        Ok(true)
    }
}

/// kubectl apply of what changed, and removal of what should not be there.
struct Apply(Arc<AddonContext>);

impl Apply {
    /// The manifests that the cluster does not have whole in exactly this form, untouched since
    /// they were applied.
    fn changed<'m>(&self, there: &Observed, manifests: &'m [Rendered]) -> Vec<&'m Rendered> {
        // What is missing, damaged or of an older turnup is applied once more.
        let applied = match find_document::<Applied>(&self.0.cluster.store, APPLIED) {
            Ok(Found::There(applied)) => applied.objects,
            _ => BTreeMap::new(),
        };
        let is_untouched = |object: &Object| {
            let now = there.addon_objects.get(object);
            now.is_some() && now == applied.get(&object.argument())
        };
        let same = |manifest: &Rendered| {
            manifest.objects.iter().all(is_untouched) && there.hashes.get(&manifest.main) == Some(&manifest.hash)
        };
        manifests.iter().filter(|manifest| !same(manifest)).collect()
    }

    /// What applying and pruning would change in the cluster, and whether that is refused.
    fn find_changes(&self) -> Result<(Vec<Change>, Result<()>)> {
        let (kubectl, manifests) = (kubectl(&self.0.cluster)?, self.0.manifests()?);
        let there = prune::find_objects(&kubectl)?;
        let wanted = self.changed(&there, &manifests);
        let superfluous = self.0.superfluous(&there, &manifests);
        let mut changes = preview::find_changes(&kubectl, &there, &wanted, &superfluous)?;
        let recorded = find_recorded(&kubectl)?;
        for set in self.0.sets()? {
            changes.extend(self.0.delivery(&kubectl, set, &recorded).find_changes()?);
        }
        Ok((changes, definitions::require_removable(&self.0.cluster, &kubectl, &superfluous)))
    }

    /// Remembers what the objects are now, so that changes by other clients are noticed.
    fn remember(&self) -> Result<()> {
        let there = prune::find_objects(&kubectl(&self.0.cluster)?)?;
        let objects = there.addon_objects.into_iter().map(|(object, written)| (object.argument(), written)).collect();
        self.0.cluster.write_document(APPLIED, &Applied { schema: Applied::SCHEMA.into(), objects }, 0o600)
    }
}

impl Action for Apply {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(self.0.manifest_inputs(self.0.cluster_inputs()))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        // RBAC is left to the run itself: what is looked at here costs one call together with the
        // nodes and pods.
        const SEEN: [&str; 5] = ["DaemonSet", "Deployment", "Service", "ConfigMap", DEFINITION];
        let there = self.0.look_once()?;
        let mut manifests = self.0.manifests()?;
        for manifest in &mut manifests {
            let main = manifest.main.clone();
            manifest.objects.retain(|object| SEEN.contains(&object.kind.as_str()) || *object == main);
        }
        if let Some(manifest) = self.changed(&there, &manifests).first() {
            return Ok(Check::Drifted(format!(
                "the cluster does not have {} {} as it should be",
                manifest.name, manifest.version
            )));
        }
        if let Some(object) = self.0.superfluous(&there, &manifests).first() {
            return Ok(Check::Drifted(format!("{object} belongs to no addon that is on")));
        }
        let kubectl = kubectl(&self.0.cluster)?;
        for set in self.0.sets()? {
            if let Some(why) = self.0.delivery(&kubectl, set, &there.recorded).drift()? {
                return Ok(Check::Drifted(why));
            }
        }
        Ok(Check::Ok)
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        if self.0.inventory.control_planes().any(|host| unknown::is_in(&host.instance)) {
            return Ok(Preview::after(API));
        }
        match self.find_changes() {
            Ok((changes, allowed)) => allowed.map(|()| changes.into()),
            Err(error) if error.class() == Class::Interrupted => Err(error),
            // No kubectl, no kubeconfig or no answer yet.
            Err(_) => Ok(Preview::after(API)),
        }
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        self.0.forget_look();
        if cx.is_bound() {
            cx.admit(&self.find_changes()?.0)?;
        }
        let kubectl = kubectl(&self.0.cluster)?;
        let logged = kubectl.clone().within(cx);
        let manifests = self.0.manifests()?;
        let there = prune::find_objects(&kubectl)?;
        let superfluous = self.0.superfluous(&there, &manifests);
        definitions::require_removable(&self.0.cluster, &kubectl, &superfluous)?;
        let (sets, recorded) = (self.0.sets()?, find_recorded(&kubectl)?);
        let deliver = |name: &str| -> Result<()> {
            for set in sets.iter().filter(|set| set.name == name) {
                if self.0.delivery(&logged, set, &recorded).run()? {
                    cx.progress(format!("applied {} of {}", set.objects.len(), set.setting));
                }
            }
            Ok(())
        };
        deliver(NETWORK)?;
        // First, so that no two things claim the same address or port.
        if !superfluous.is_empty() {
            cx.progress(format!("removing {} objects", superfluous.len()));
            prune::remove(&logged, &superfluous)?;
        }
        let changed = self.changed(&there, &manifests);
        if !changed.is_empty() {
            authorities::wait(&self.0.cluster, &kubectl, cx)?;
            self.apply(&changed, &logged, cx)?;
        }
        self.remember()?;
        deliver(OWN)
    }
}

impl Apply {
    fn apply(&self, changed: &[&Rendered], logged: &Kubectl, cx: &Cx) -> Result<()> {
        let names: Vec<String> =
            changed.iter().map(|manifest| format!("{} {}", manifest.name, manifest.version)).collect();
        cx.progress(format!("applying {}", names.join(", ")));
        // The server refuses unknown fields anyway; kubectl's own look at them takes longer than
        // all the rest.
        let options = ["apply", "--server-side", "--field-manager=turnup", "--force-conflicts", "--validate=ignore"];
        let mut args: Vec<String> = options.map(Into::into).into();
        let path =
            |manifest: &&Rendered| format!("--filename={}", self.0.cluster.store.path(manifest.file()).display());
        args.extend(changed.iter().map(path));
        logged.run(&args)?;
        definitions::wait_until_served(logged, changed.iter().flat_map(|manifest| &manifest.objects))
    }
}

/// Until every addon is rolled out and every node is Ready.
struct Wait(Arc<AddonContext>);

impl Action for Wait {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let inputs = self.0.manifest_inputs(self.0.cluster_inputs()).with("network", self.0.has_network().to_string());
        let hosts = self.0.inventory.hosts.iter();
        Ok(hosts.fold(inputs, |inputs, host| inputs.with(format!("host {}", host.name), &host.instance)))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let outlook = self.0.outlook(&*self.0.look_once()?)?;
        Ok(outlook.missing.into_iter().next().map_or(Check::Ok, Check::Drifted))
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        self.0.forget_look();
        Waiting {
            context: &self.0,
            cx,
            told: Vec::new(),
            doing: String::new(),
            renewed: false,
            stuck_since: None,
            away_since: None,
        }
        .run()
    }
}

/// One wait, with what it has already told.
struct Waiting<'a> {
    context: &'a AddonContext,
    cx: &'a Cx,
    told: Vec<String>,
    doing: String,
    renewed: bool,
    stuck_since: Option<Instant>,
    away_since: Option<Instant>,
}

impl Waiting<'_> {
    fn run(mut self) -> Result<()> {
        loop {
            let started = Instant::now();
            if let Some(observed) = self.look()? {
                let outlook = self.context.outlook(&observed)?;
                self.tell(&outlook);
                if outlook.missing.is_empty() {
                    return Ok(());
                }
                self.renew(&observed)?;
                self.check_stuck(&observed, &outlook)?;
                if self.cx.remaining() < Duration::from_secs(10) {
                    let error = Error::transient("the addons do not become ready in time");
                    return Err(self.explain(error, &observed, &outlook));
                }
            }
            self.cx.sleep(POLL_INTERVAL.saturating_sub(started.elapsed()).max(POLL_INTERVAL / 4))?;
        }
    }

    /// What is there; nothing while the API server is away for a moment.
    fn look(&mut self) -> Result<Option<Observed>> {
        match self.context.look() {
            Ok(observed) => {
                self.away_since = None;
                Ok(Some(observed))
            }
            Err(error) => {
                let since = *self.away_since.get_or_insert_with(Instant::now);
                let passing = error.class() == Class::Transient && since.elapsed() < AWAY;
                if passing { Ok(None) } else { Err(error) }
            }
        }
    }

    fn tell(&mut self, outlook: &Outlook) {
        let nodes = outlook.ready_nodes.iter().map(|name| format!("node {name} Ready"));
        let dns = outlook.ready_addons.iter().any(|name| name == "coredns").then(|| "CoreDNS ready".to_owned());
        for milestone in nodes.chain(dns) {
            if !self.told.contains(&milestone) {
                self.cx.milestone(&*milestone);
                self.told.push(milestone);
            }
        }
        if let Some(first) = outlook.missing.first() {
            let doing = format!("waiting: {first}");
            if self.doing != doing {
                self.cx.progress(&*doing);
                self.doing = doing;
            }
        }
    }

    /// Gives pods of addons that were stuck before we came a fresh start, once: their cause may be
    /// repaired, but their back-off is long.
    fn renew(&mut self, observed: &Observed) -> Result<()> {
        if std::mem::replace(&mut self.renewed, true) {
            return Ok(());
        }
        let manifests = self.context.manifests()?;
        let is_ours = |pod: &&Pod| {
            let owner = pod.owner.as_deref().unwrap_or_default();
            manifests.iter().any(|manifest| owner == manifest.name || owner.starts_with(&format!("{}-", manifest.name)))
        };
        let names: Vec<&str> = observed
            .pods
            .iter()
            .filter(is_ours)
            .filter(|pod| pod.stuck().is_some())
            .map(|pod| pod.name.as_str())
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        self.cx.progress(format!("starting {} again", names.join(", ")));
        let options = ["delete", "pods", "--namespace=kube-system", "--ignore-not-found", "--wait=false"];
        let kubectl = kubectl(&self.context.cluster)?.within(self.cx);
        kubectl.run(&[&options[..], &names].concat()).map(drop)
    }

    fn check_stuck(&mut self, observed: &Observed, outlook: &Outlook) -> Result<()> {
        let Some((pod, why)) = observed.pods.iter().find_map(|pod| Some((pod, pod.stuck()?))) else {
            self.stuck_since = None;
            return Ok(());
        };
        if self.stuck_since.get_or_insert_with(Instant::now).elapsed() < STUCK {
            return Ok(());
        }
        let error = Error::permanent(format!("the pod {} cannot start: {why}", pod.name));
        Err(self.explain(error, observed, outlook))
    }

    fn explain(&self, error: Error, observed: &Observed, outlook: &Outlook) -> Error {
        let error = outlook.missing.iter().fold(error, Error::evidence);
        match kubectl(&self.context.cluster) {
            Ok(kubectl) => evidence::collect(error, &kubectl, "kube-system", &observed.pods),
            Err(_) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<Applied>(
            &serde_json::json!({"schema": Applied::SCHEMA, "objects": {"deployment.apps/coredns": "abc"}}),
        );
    }
}
