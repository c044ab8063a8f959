//! The way back of the provision phase: what Terraform made is destroyed, what is to be kept is
//! taken out of its state first, and what is left is named.

use std::collections::BTreeSet;

use crate::cloud::CLOUDS;
use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::phase::{Cx, Sink};

use super::apply::find_program;
use super::local::{self, HostSpec, NetworkSpec};
use super::local_cloud::SERVICE;
use super::protection;
use super::terraform::{self, DIR, Terraform, has_made};
use super::tfstate::Resource;
use super::volume_guard::is_volume;

/// What happens to the volumes of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volumes {
    /// They stay, and Terraform forgets them.
    Keep,
    /// They are destroyed with all else.
    Destroy,
}

/// What [`destroy`] would remove, and which volumes of etcd are among it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// A line each.
    pub things: Vec<String>,
    /// The addresses of the volumes.
    pub volumes: BTreeSet<String>,
    /// The addresses of what has to stay where the volumes do.
    pub housing: BTreeSet<String>,
}

/// What [`destroy`] would remove, as far as Terraform's state and the descriptions of local hosts
/// tell.
pub fn list_made(cluster: &Cluster) -> Result<Made> {
    let mut made = Made::default();
    let resources = match terraform::remote(cluster)? {
        None => list_local_state(cluster)?,
        Some(place) => {
            let log = cluster.store.create_dir("logs")?.join("down.log");
            let cx = Cx::detached("down", Sink::null(), log, cluster.settings.driver.timeout);
            let terraform = find_program(cluster, &cx)?.for_any_cloud();
            let found = terraform::ready_to_destroy(cluster, terraform, &cx)?.list_state()?;
            if found.is_empty() {
                made.things.push(format!("nothing in the state at {}", place.describe()));
            }
            found
        }
    };
    let address = |resource: &Resource| resource.address.clone();
    made.things.extend(resources.iter().map(address));
    made.volumes = volumes_of(&resources).map(address).collect();
    made.housing = housing_of(&resources).map(address).collect();
    for entry in fs_err::read_dir(cluster.store.path(format!("{DIR}/hosts"))).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".json").to_owned();
        made.things.push(format!("the local host {name} with its disk"));
    }
    made.things.sort();
    Ok(made)
}

/// What is in a state that is a file here.
fn list_local_state(cluster: &Cluster) -> Result<Vec<Resource>> {
    Ok(Resource::parse_all(&cluster.store.read(format!("{DIR}/terraform.tfstate"))?.unwrap_or_default()))
}

fn volumes_of(resources: &[Resource]) -> impl Iterator<Item = &Resource> {
    resources.iter().filter(|resource| is_volume(&resource.address))
}

/// What a volume cannot be without: a container that a cloud deletes with all that is in it.
fn housing_of(resources: &[Resource]) -> impl Iterator<Item = &Resource> {
    let names: BTreeSet<&str> = volumes_of(resources).filter_map(|volume| volume.text("resource_group_name")).collect();
    let is_housing = move |resource: &&Resource| {
        let is_container = CLOUDS.iter().any(|cloud| cloud.container() == Some(resource.kind.as_str()));
        is_container && resource.text("name").is_some_and(|name| names.contains(name))
    };
    resources.iter().filter(is_housing)
}

/// Destroys what Terraform made. Returns what was kept: volumes and what they are in, each with its
/// address and its cloud's name for it.
pub fn destroy(cluster: &Cluster, volumes: Volumes, cx: &Cx) -> Result<BTreeSet<String>> {
    if !has_made(cluster)? {
        return Ok(BTreeSet::new());
    }
    let terraform = find_program(cluster, cx)?.for_any_cloud();
    terraform.require_version()?;
    let terraform = terraform::ready_to_destroy(cluster, terraform, cx)?;
    protection::lift(cluster, &terraform, cx)?;
    let kept = if volumes == Volumes::Keep { keep_volumes(cluster, &terraform, cx)? } else { BTreeSet::new() };
    if let Err(error) = terraform.destroy(cx) {
        return Err(name_leftovers(error, &terraform));
    }
    remove_leftovers(cluster, cx)?;
    let left = terraform.resources()?;
    if left.is_empty() {
        return Ok(kept);
    }
    let error = Error::permanent("Terraform ended well, and its state is not empty");
    Err(name(error, &left).hint("turnup down again; what is known of the cluster stays until then"))
}

/// Which volumes were taken out of the state, also by a run that was killed afterwards: below the
/// cluster's directory.
const KEPT: &str = "provision/kept.json";

fn keep_volumes(cluster: &Cluster, terraform: &Terraform, cx: &Cx) -> Result<BTreeSet<String>> {
    let mut kept: BTreeSet<String> = cluster.store.read_json(KEPT)?.unwrap_or_default();
    let resources = terraform.list_state()?;
    let staying: Vec<&Resource> = volumes_of(&resources).chain(housing_of(&resources)).collect();
    kept.extend(staying.iter().map(|resource| resource.describe()));
    // Named before they are forgotten.
    cluster.store.write_json(KEPT, &kept, 0o600)?;
    for resource in &staying {
        cx.progress(format!("{} is kept", resource.address));
    }
    // Together: a group that is alone in the state would be deleted with the volumes in it.
    terraform.forget(&staying.iter().map(|resource| resource.address.clone()).collect(), cx)?;
    Ok(kept)
}

/// The error lists what is still there: it costs the user money.
fn name_leftovers(error: Error, terraform: &Terraform) -> Error {
    if error.class() == Class::Interrupted {
        return error;
    }
    match terraform.resources() {
        Ok(left) if !left.is_empty() => name(error, &left),
        _ => error,
    }
}

fn name(error: Error, left: &BTreeSet<String>) -> Error {
    error.evidence_of(left.iter().map(|address| format!("still there: {address}")))
}

/// Terraform forgets a host whose creation failed without calling its destroy provisioner; the
/// host's description is still here.
fn remove_leftovers(cluster: &Cluster, cx: &Cx) -> Result<()> {
    // First, so that it replaces nothing.
    local::stop_service(&cluster.store.path(SERVICE))?;
    for entry in fs_err::read_dir(cluster.store.create_dir(format!("{DIR}/hosts"))?)? {
        let path = entry?.path();
        let (spec, _turn) = (HostSpec::read(&path)?, HostSpec::take_turn(&path)?);
        cx.progress(format!("removing what is left of {}", spec.name));
        local::delete_host(&spec)?;
        spec.volume.iter().try_for_each(local::delete_volume)?;
    }
    let network = cluster.store.path(format!("{DIR}/network.json"));
    if network.exists() {
        local::delete_network(&NetworkSpec::read(&network)?)?;
    }
    Ok(())
}
