//! Looks at a cluster before an earlier phase takes images, and rights in the cloud, away from what
//! the addons phase would refuse to remove. It changes nothing.

use crate::bootstrap::credentials::write_kubeconfig;
use crate::bootstrap::{Kubectl, kubectl};
use crate::cluster::{Addon, Cluster};
use crate::error::{Class, Error, Result};

use super::object::Object;
use super::render::file_of;

/// What `judge` says of the cluster. One that does not answer is asked once more by the step that
/// removes.
pub(super) fn judge_early(cluster: &Cluster, judge: impl FnOnce(&Kubectl) -> Result<Result<()>>) -> Result<()> {
    let ask = || {
        if let Some(inventory) = cluster.find_inventory()? {
            // The administrator's certificate lives for a day, clusters live longer.
            write_kubeconfig(cluster, &inventory)?;
        }
        judge(&kubectl(cluster)?)
    };
    match ask() {
        Ok(judged) => judged,
        Err(error) if Error::class(&error) == Class::Interrupted => Err(error),
        Err(_) => Ok(()),
    }
}

/// The objects of addons that were on and are no longer, as their last manifests have them.
pub(super) fn find_leaving(cluster: &Cluster) -> Result<Vec<Object>> {
    let settings = &cluster.settings.addons;
    let off = Addon::all(&cluster.source)?.into_iter().filter(|addon| settings.prune && !addon.is_on(settings));
    let objects = off.filter_map(|addon| {
        let text = cluster.store.read(file_of(&addon.name)).ok().flatten()?;
        Object::read(&String::from_utf8_lossy(&text)).ok()
    });
    Ok(objects.flatten().map(|(object, _)| object).collect())
}
