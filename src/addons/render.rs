//! From settings and inventory to the manifests of the addons that are switched on. Pure: the same
//! values give the same bytes.

use std::collections::BTreeMap;

use minijinja::value::{Serde, merge_maps};
use minijinja::{Value, context};
use sha2::{Digest as _, Sha256};

use crate::artifacts::ResolvedArtifacts;
use crate::bootstrap::{kube_proxy_config, template};
use crate::cluster::{Addon, Cluster, ClusterSettings};
use crate::config::TreeSource;
use crate::error::{Error, Result};
use crate::inventory::Endpoint;

use super::authorities;
use super::log_shipping::LogShippingFiles;
use super::object::{LISTED, Object};
use super::prunable::why_not_pruned;

/// The manifest of one addon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rendered {
    pub(super) name: String,
    pub(super) version: String,
    /// The sha256 of the text without this hash; recorded in the cluster.
    pub(super) hash: String,
    pub(super) text: String,
    pub(super) objects: Vec<Object>,
    pub(super) main: Object,
}

impl Rendered {
    /// Where the manifest lies below the cluster's directory.
    pub(super) fn file(&self) -> String {
        file_of(&self.name)
    }

    /// Whether its main object runs pods, which are waited for.
    pub(super) fn has_workload(&self) -> bool {
        ["DaemonSet", "Deployment"].contains(&self.main.kind.as_str())
    }

    /// Whether a look at nodes, pods and workloads does not tell all that is looked for.
    pub(super) fn needs_list(&self) -> bool {
        !self.has_workload() || self.objects.iter().any(|object| LISTED.contains(&object.kind.as_str()))
    }
}

/// The same of an addon by its name.
pub(super) fn file_of(addon: &str) -> String {
    format!("addons/{addon}.yaml")
}

/// What the manifests are made from.
pub(super) struct TemplateValues<'a> {
    pub(super) source: &'a TreeSource,
    pub(super) settings: &'a ClusterSettings,
    pub(super) api: &'a Endpoint,
    /// Reference and version of an image.
    pub(super) image: &'a dyn Fn(&str) -> Result<(String, String)>,
    /// The mark of the authorities of the API.
    pub(super) authorities: &'a str,
    pub(super) log_shipping: &'a LogShippingFiles,
}

/// The manifests of this cluster's addons.
pub(super) fn render_cluster(cluster: &Cluster, api: &Endpoint) -> Result<Vec<Rendered>> {
    let resolved = cluster.resolved()?;
    let image = |name: &str| find_image(&resolved, name);
    let (source, settings, authorities) = (&cluster.source, &cluster.settings, &authorities::mark(cluster)?);
    let log_shipping = &LogShippingFiles::read(cluster)?;
    TemplateValues { source, settings, api, image: &image, authorities, log_shipping }.render()
}

fn find_image(resolved: &ResolvedArtifacts, name: &str) -> Result<(String, String)> {
    Ok((resolved.reference(name)?, resolved.image_version(name)?.to_owned()))
}

impl TemplateValues<'_> {
    pub(super) fn render(&self) -> Result<Vec<Rendered>> {
        let addons = Addon::all(self.source)?;
        let enabled = addons.iter().filter(|addon| addon.is_on(&self.settings.addons));
        enabled.map(|addon| self.render_addon(addon)).collect()
    }

    fn render_addon(&self, addon: &Addon) -> Result<Rendered> {
        let (image, version) = match &addon.image {
            Some(image) => (self.image)(image)?,
            None => (String::new(), addon.version.clone().unwrap_or_default()),
        };
        let hash = hex::encode(Sha256::digest(join(&self.fill(addon, &image, &version, "")?)));
        let files = self.fill(addon, &image, &version, &hash)?;
        let mut objects = Vec::new();
        for (file, text) in &files {
            objects.extend(read_objects(&addon.name, file, text)?);
        }
        let is_main = |object: &&Object| object.kind == addon.main && object.name == addon.name;
        let main = objects.iter().find(is_main).cloned();
        let main = main.ok_or_else(|| {
            Error::config(format!("the manifest of {} has no {} of this name", addon.name, addon.main))
        })?;
        Ok(Rendered { name: addon.name.clone(), version, hash, text: join(&files), objects, main })
    }

    /// The addon's templates by their paths, each with the values that it names; a name without a
    /// value is an error.
    fn fill(&self, addon: &Addon, image: &str, version: &str, hash: &str) -> Result<Vec<(String, String)>> {
        let settings = self.settings;
        let dns_address =
            settings.service_cidr.address(10).ok_or_else(|| Error::config("phase2.service_cidr is too small"))?;
        let more = self.log_shipping.values(&settings.addons)?;
        let images = addon.images.iter().map(|name| Ok((name.as_str(), (self.image)(name)?.0)));
        let images = images.collect::<Result<BTreeMap<_, _>>>()?;
        let values = context! {
            image, images, version, hash,
            authorities => self.authorities,
            kubernetes_version => &settings.kubernetes_version,
            pod_cidr => settings.pod_cidr.to_string(),
            cluster_domain => &settings.cluster_domain,
            dns_address => dns_address.to_string(),
            api_host => self.api.host_for_nodes(),
            api_port => self.api.port_for_nodes(),
            // Pods of the pod network do not come to a balancer of their node's.
            node_balancer => self.api.node_balancer,
            kube_proxy_config => kube_proxy_config(settings)?,
            cluster_name => &settings.name,
            control_planes => settings.control_planes,
            cloud => settings.cloud_values(),
            ..merge_maps([Value::from(Serde(&settings.addons)), Value::from(Serde(&more))])
        };
        let files = addon.manifests(self.source).into_iter();
        files
            .map(|file| {
                let text = template::render(self.source, &file, &values)?;
                Ok((file, text))
            })
            .collect()
    }
}

/// One text of several files.
fn join(files: &[(String, String)]) -> String {
    let texts: Vec<&str> = files.iter().map(|(_, text)| text.strip_suffix('\n').unwrap_or(text)).collect();
    texts.join("\n---\n") + "\n"
}

/// The objects of one template, which may be the user's own: each must be found again when its
/// addon is switched off.
fn read_objects(addon: &str, file: &str, text: &str) -> Result<Vec<Object>> {
    let objects = Object::read(text).map_err(|why| Error::config(format!("{file}: {why}")))?;
    objects
        .into_iter()
        .map(|(object, manifest)| match why_not_pruned(&object, &manifest, addon) {
            Some(why) => Err(Error::config(format!("{file}: {object} would stay when {addon} is switched off"))
                .evidence(why)
                .hint("correct the template, or apply it in a step of your own: docs/steps.md")),
            None => Ok(object),
        })
        .collect()
}
