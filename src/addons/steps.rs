//! The steps of the addons phase, in the order of `phases/addons/phase.toml`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::artifacts::ResolvedArtifacts;
use crate::bootstrap::step_ids::API;
use crate::bootstrap::{APPLY, Kubectl, kube_proxy_config, kubectl};
use crate::change::{Change, Preview};
use crate::cluster::{Cluster, TimeLimits, find_document};
use crate::document::{Document, Fields, Found};
use crate::error::{Class, Result};
use crate::phase::{Action, Check, Cx, Inputs, Phase};
use crate::unknown;

use super::addon_manager::{self, HeldLease};
use super::context::AddonContext;
use super::log_shipping::LogShippingFiles;
use super::object::{LISTED, Object};
use super::observed::Observed;
use super::own::{self, NETWORK, OWN};
use super::own_apply::find_recorded;
use super::prunable::is_of_defined_kind;
use super::render::Rendered;
use super::replacement::replace_where_refused;
use super::wait::WaitForAddons;
use super::{authorities, definitions, driver_volumes, load_balancers, preview, prune};

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

/// The phase for the hosts of the inventory.
pub fn phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    let context = Arc::new(AddonContext::new(cluster)?);
    let shared = || Arc::clone(&context);
    let mut manifest = cluster.manifest("addons")?;
    let timeout = cluster.settings.limits.addons;
    manifest.set_timeouts(&["apply", "wait"], timeout, TimeLimits::ADDONS);
    let mut phase = cluster.phase("addons", manifest, cluster.phase_hosts()?);
    phase.limits.phase = Some((timeout, "phase3.timeout"));
    Ok(phase.with("render", Render(shared())).with("apply", Apply(shared())).with("wait", WaitForAddons(shared())))
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
        if let Some(digest) = LogShippingFiles::read(cluster)?.digest() {
            inputs.insert("files of log shipping", digest);
        }
        Ok(inputs
            .with("API endpoint", format!("{:?}", self.0.api()))
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

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        self.0.ask_for_balancers()?;
        let without = self.0.without_balancer();
        if !without.is_empty() {
            let (names, place) = (without.join(", "), self.0.api().url_for_nodes());
            cx.progress(format!(
                "kube-proxy and the network ask {place} until hosts with a balancer of their own are in the place of: {names}"
            ));
        }
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
    /// What the objects were after they were applied; nothing where that is missing, damaged or of
    /// an older turnup.
    fn find_applied(&self) -> Option<BTreeMap<String, String>> {
        match find_document::<Applied>(&self.0.cluster.store, APPLIED) {
            Ok(Found::There(applied)) => Some(applied.objects),
            _ => None,
        }
    }

    /// The manifests that the cluster does not have whole in exactly this form, untouched since
    /// they were applied.
    fn changed<'m>(&self, there: &Observed, manifests: &'m [Rendered]) -> Vec<&'m Rendered> {
        let applied = self.find_applied().unwrap_or_default();
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
        let mut allowed = definitions::require_removable(&self.0.cluster, &kubectl, &superfluous)
            .and(load_balancers::require_none(&self.0.cluster, &kubectl, &superfluous))
            .and(driver_volumes::require_none(&self.0.cluster, &kubectl, &superfluous));
        let recorded = find_recorded(&kubectl)?;
        for set in self.0.sets()? {
            let (of_set, is_allowed) = self.0.delivery(&kubectl, set, &recorded).find_changes()?;
            changes.extend(of_set);
            allowed = allowed.and(is_allowed);
        }
        Ok((changes, allowed))
    }

    /// Remembers what the objects are now, so that changes by other clients are noticed.
    fn remember(&self) -> Result<()> {
        let there = prune::find_objects(&kubectl(&self.0.cluster)?)?;
        let objects = there.addon_objects.into_iter().map(|(object, written)| (object.argument(), written)).collect();
        self.0.cluster.write_document(APPLIED, &Applied { schema: Applied::SCHEMA.into(), objects }, 0o600)
    }
}

/// Whether a manifest whose objects were written to since they were applied is in the cluster all
/// the same: the addon-manager has put it right, or another one has set what no manifest sets.
fn is_right(kubectl: &Kubectl, there: &Observed, manifest: &Rendered) -> Result<bool> {
    let is_there = |object: &Object| there.addon_objects.contains_key(object);
    if !manifest.objects.iter().all(is_there) || there.hashes.get(&manifest.main) != Some(&manifest.hash) {
        return Ok(false);
    }
    match preview::diff(kubectl, &manifest.text) {
        Ok(changes) => Ok(changes.is_empty()),
        Err(error) if error.is_passing() => Err(error),
        Err(_) => Ok(false),
    }
}

impl Action for Apply {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(self.0.manifest_inputs(self.0.cluster_inputs()))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        // RBAC is left to the run itself: what is looked at here costs one call together with the
        // nodes and pods.
        const SEEN: [&str; 4] = ["DaemonSet", "Deployment", "Service", "ConfigMap"];
        let there = self.0.look_once()?;
        let mut manifests = self.0.manifests()?;
        for manifest in &mut manifests {
            let main = manifest.main.clone();
            let is_seen = |kind: &str| SEEN.contains(&kind) || LISTED.contains(&kind);
            manifest.objects.retain(|object| is_seen(&object.kind) || *object == main);
        }
        let kubectl = kubectl(&self.0.cluster)?;
        let is_recorded = self.find_applied().is_some();
        for manifest in self.changed(&there, &manifests) {
            if !is_recorded || !is_right(&kubectl, &there, manifest)? {
                return Ok(Check::Drifted(format!(
                    "the cluster does not have {} {} as it should be",
                    manifest.name, manifest.version
                )));
            }
        }
        if let Some(object) = self.0.superfluous(&there, &manifests).first() {
            return Ok(Check::Drifted(format!("{object} belongs to no addon that is on")));
        }
        for set in self.0.sets()? {
            if let Some(why) = self.0.delivery(&kubectl, set, &there.recorded).drift()? {
                return Ok(Check::Drifted(why));
            }
        }
        if self.0.has_manager()
            && let Some(why) = addon_manager::find_drift(&kubectl, &self.0.kept()?)?
        {
            return Ok(Check::Drifted(why));
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
        self.0.ask_for_balancers()?;
        if cx.is_bound() {
            cx.admit(&self.find_changes()?.0)?;
        }
        let kubectl = kubectl(&self.0.cluster)?;
        let held = self.0.has_manager().then(|| HeldLease::acquire(&kubectl, cx)).transpose()?;
        let ended = self.bring(&kubectl, cx);
        let released = held.map_or(Ok(()), |held| held.release(&kubectl));
        ended.and(released)
    }
}

impl Apply {
    /// Brings the cluster to the manifests. Addon-managers know them first: of a run that is killed
    /// they do the rest, and nothing of what is removed here.
    fn bring(&self, kubectl: &Kubectl, cx: &Cx) -> Result<()> {
        let logged = kubectl.clone().within(cx);
        let manifests = self.0.manifests()?;
        let there = prune::find_objects(kubectl)?;
        let superfluous = self.0.superfluous(&there, &manifests);
        definitions::require_removable(&self.0.cluster, kubectl, &superfluous)?;
        load_balancers::require_none(&self.0.cluster, kubectl, &superfluous)?;
        driver_volumes::require_none(&self.0.cluster, kubectl, &superfluous)?;
        let (sets, recorded) = (self.0.sets()?, find_recorded(kubectl)?);
        sets.iter().try_for_each(|set| self.0.delivery(kubectl, set, &recorded).require_replaceable())?;
        if self.0.has_manager() {
            addon_manager::keep(kubectl, &self.0.kept()?)?;
        } else {
            addon_manager::remove_all(kubectl)?;
        }
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
            authorities::wait(&self.0.cluster, kubectl, cx)?;
            self.apply(&changed, &logged, cx)?;
        }
        self.remember()?;
        deliver(OWN)
    }

    fn apply(&self, changed: &[&Rendered], logged: &Kubectl, cx: &Cx) -> Result<()> {
        let names: Vec<String> =
            changed.iter().map(|manifest| format!("{} {}", manifest.name, manifest.version)).collect();
        cx.progress(format!("applying {}", names.join(", ")));
        in_stages(changed).iter().try_for_each(|stage| self.apply_stage(stage, logged))
    }

    fn apply_stage(&self, changed: &[&Rendered], logged: &Kubectl) -> Result<()> {
        // The server refuses unknown fields anyway; kubectl's own look at them takes longer than
        // all the rest.
        let mut args: Vec<String> = APPLY.into_iter().chain(["--validate=ignore"]).map(Into::into).collect();
        let path =
            |manifest: &&Rendered| format!("--filename={}", self.0.cluster.store.path(manifest.file()).display());
        args.extend(changed.iter().map(path));
        let texts: Vec<&str> = changed.iter().map(|manifest| manifest.text.trim_end()).collect();
        replace_where_refused(logged, &texts.join("\n---\n"), || logged.run(&args).map(drop))?;
        definitions::wait_until_served(logged, changed.iter().flat_map(|manifest| &manifest.objects))
    }
}

/// What has objects of kinds that addons define comes after all else: kubectl knows no kind that is
/// not served yet.
fn in_stages<'m>(changed: &[&'m Rendered]) -> Vec<Vec<&'m Rendered>> {
    let needs_kinds = |manifest: &&Rendered| manifest.objects.iter().any(is_of_defined_kind);
    let (later, first): (Vec<&Rendered>, Vec<&Rendered>) = changed.iter().copied().partition(needs_kinds);
    [first, later].into_iter().filter(|stage| !stage.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_with_objects_of_new_kinds_come_after_the_kinds() {
        let rendered = |name: &str, kind: &str, group: &str| {
            let main = Object { group: group.into(), kind: kind.into(), name: name.into() };
            let name = name.to_owned();
            Rendered {
                version: String::new(),
                hash: String::new(),
                text: String::new(),
                objects: vec![main.clone()],
                main,
                name,
            }
        };
        let class = rendered("a", "GatewayClass", "gateway.networking.k8s.io");
        let kinds = rendered("b", "CustomResourceDefinition", "apiextensions.k8s.io");
        let names = |of: &[&Rendered]| -> Vec<Vec<String>> {
            in_stages(of).iter().map(|stage| stage.iter().map(|it| it.name.clone()).collect()).collect()
        };
        assert_eq!(names(&[&class, &kinds]), [["b"], ["a"]]);
        assert_eq!(names(&[&class]), [["a"]]);
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<Applied>(
            &serde_json::json!({"schema": Applied::SCHEMA, "objects": {"deployment.apps/coredns": "abc"}}),
        );
    }
}
