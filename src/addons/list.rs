//! Which addons there are, and which of them the cluster has.

use serde::Serialize;
use serde_json::Value;

use crate::artifacts::{ResolvedArtifacts, Selection};
use crate::bootstrap::{KUBECONFIG, kubectl};
use crate::cluster::{Addon, Cluster};
use crate::error::Result;

use super::object::ADDON;
use super::own;
use super::own_apply::find_recorded;
use super::prune;

/// The annotation that records the version of an addon.
const VERSION: &str = "turnup.dev/version";

/// An addon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddonRow {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub summary: String,
    /// Whether the configuration switches it on.
    pub enabled: bool,
    /// The version that turnup has for this Kubernetes.
    pub available: Option<String>,
    /// The version that the cluster has; nothing where it has none, or where it was not asked.
    pub installed: Option<String>,
    /// The versions of Kubernetes that it is for.
    pub kubernetes: String,
    /// Why it is not for the cluster's version.
    pub skew: Option<String>,
}

/// Manifests of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManifestRow {
    /// The setting that names them.
    pub setting: String,
    /// How many objects they have.
    pub objects: usize,
    /// How many objects the cluster's inventory names; nothing where it was not asked.
    pub recorded: Option<usize>,
}

/// Everything that phase 3 applies on this target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddonList {
    /// Name and version of this form.
    pub schema: &'static str,
    /// Whether the cluster was asked: it is not before bootstrap has made one.
    pub asked: bool,
    /// The addons, in the order in which they are applied.
    pub addons: Vec<AddonRow>,
    /// The user's own manifests.
    pub manifests: Vec<ManifestRow>,
}

impl AddonList {
    /// Looks at the tree and, where there is one, at the cluster.
    pub fn look(cluster: &Cluster) -> Result<Self> {
        let settings = &cluster.settings;
        let selection = cluster.select_artifacts()?;
        let asked = [KUBECONFIG, ResolvedArtifacts::FILE].iter().all(|file| cluster.store.path(file).is_file());
        let (objects, recorded) = if asked {
            let kubectl = kubectl(cluster)?;
            (prune::list_objects(&kubectl)?, Some(find_recorded(&kubectl)?))
        } else {
            (Value::Null, None)
        };
        let row = |addon: Addon| AddonRow {
            enabled: addon.is_on(&settings.addons),
            available: available(&addon, &selection),
            installed: installed(&objects, &addon.name),
            kubernetes: format!("{} to {}", addon.first_kubernetes, addon.last_kubernetes),
            skew: addon.skew(&settings.kubernetes_version),
            name: addon.name,
            summary: addon.summary,
        };
        let known = Addon::all(&cluster.source)?.into_iter();
        let addons = known.filter(|addon| addon.is_for_target(&settings.addons)).map(row).collect();
        let manifest = |set: own::OwnSet| ManifestRow {
            setting: set.setting.to_owned(),
            objects: set.objects.len(),
            recorded: recorded.as_ref().map(|all| all.get(set.name).map_or(0, |one| one.objects.len())),
        };
        let sets = own::load(cluster)?.unwrap_or_default();
        let manifests = sets.into_iter().map(manifest).filter(|row| row.objects + row.recorded.unwrap_or(0) > 0);
        Ok(Self { schema: "turnup.addon-list/1", asked, addons, manifests: manifests.collect() })
    }
}

/// The version that turnup has.
fn available(addon: &Addon, selection: &Selection) -> Option<String> {
    let of_image = |image: &String| selection.image_version(image).map(str::to_owned);
    addon.image.as_ref().map_or_else(|| addon.version.clone(), of_image)
}

/// The version that the main object of an addon records.
fn installed(objects: &Value, addon: &str) -> Option<String> {
    let mut items = objects["items"].as_array()?.iter().map(|item| &item["metadata"]);
    let version = |metadata: &Value| metadata["annotations"][VERSION].as_str().map(str::to_owned);
    items.find_map(|metadata| (metadata["labels"][ADDON] == addon).then(|| version(metadata))?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_version_in_the_cluster_is_the_one_that_its_main_object_records() {
        let item = |addon: &str, annotations: Value| json!({"metadata": {"labels": {ADDON: addon}, "annotations": annotations}});
        let list = json!({"items": [item("a", json!({})), item("a", json!({VERSION: "1.2"})), item("b", json!({VERSION: "3"}))]});
        assert_eq!(installed(&list, "a").as_deref(), Some("1.2"));
        assert_eq!(installed(&list, "c"), None);
        assert_eq!(installed(&Value::Null, "a"), None);
    }
}
