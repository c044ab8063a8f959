//! The way back of the provision phase: what Terraform made is destroyed, what is to be kept is taken out of its state first, and what
//! is left is named.

use std::collections::BTreeSet;

use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::phase::{Cx, Sink};

use super::apply::find_program;
use super::local::{self, HostSpec, NetworkSpec};
use super::render::DIR;
use super::steps::has_made;
use super::terraform::{self, Terraform};
use super::volumes::is_volume;

/// So many leftovers are named.
const NAMED: usize = 20;

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
}

/// What [`destroy`] would remove, as far as Terraform's state and the descriptions of local hosts tell.
pub fn list_made(cluster: &Cluster) -> Result<Made> {
    let resources = match terraform::remote(cluster)? {
        None => list_local_state(cluster)?,
        Some(place) => {
            let log = cluster.store.create_dir("logs")?.join("down.log");
            let cx = Cx::detached("down", Sink::null(), log, cluster.settings.driver.timeout);
            let terraform = find_program(cluster, &cx)?.for_any_cloud();
            let terraform = terraform::ready_to_destroy(cluster, terraform, &cx)?;
            let found = terraform.resources()?;
            if found.is_empty() {
                BTreeSet::from([format!("nothing in the state at {}", place.describe())])
            } else {
                found
            }
        }
    };
    let volumes = resources.iter().filter(|address| is_volume(address)).cloned().collect();
    let mut things: Vec<String> = resources.into_iter().collect();
    for entry in fs_err::read_dir(cluster.store.path(format!("{DIR}/hosts"))).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".json").to_owned();
        things.push(format!("the local host {name} with its disk"));
    }
    things.sort();
    Ok(Made { things, volumes })
}

/// The addresses in a state that is a file here.
fn list_local_state(cluster: &Cluster) -> Result<BTreeSet<String>> {
    let state = cluster.store.read(format!("{DIR}/terraform.tfstate"))?.unwrap_or_default();
    // A state that does not read is Terraform's to complain about; this is only to be looked at.
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap_or_default();
    let mut made = BTreeSet::new();
    for resource in state["resources"].as_array().into_iter().flatten().filter(|one| one["mode"] == "managed") {
        let module = resource["module"].as_str().map(|module| format!("{module}.")).unwrap_or_default();
        let text = |name: &str| resource[name].as_str().unwrap_or_default();
        let name = format!("{module}{}.{}", text("type"), text("name"));
        for instance in resource["instances"].as_array().into_iter().flatten() {
            let key = instance.get("index_key").map(|key| format!("[{key}]")).unwrap_or_default();
            made.insert(format!("{name}{key}"));
        }
    }
    Ok(made)
}

/// Destroys what Terraform made. Returns the addresses of the volumes that were kept.
pub fn destroy(cluster: &Cluster, volumes: Volumes, cx: &Cx) -> Result<BTreeSet<String>> {
    if !has_made(cluster)? {
        return Ok(BTreeSet::new());
    }
    let terraform = find_program(cluster, cx)?.for_any_cloud();
    terraform.require_version()?;
    let terraform = terraform::ready_to_destroy(cluster, terraform, cx)?;
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

/// Which volumes were taken out of the state, also by a run that was killed afterwards: below the cluster's directory.
const KEPT: &str = "provision/kept.json";

fn keep_volumes(cluster: &Cluster, terraform: &Terraform, cx: &Cx) -> Result<BTreeSet<String>> {
    let mut kept: BTreeSet<String> = cluster.store.read_json(KEPT)?.unwrap_or_default();
    let volumes: BTreeSet<String> = terraform.resources()?.into_iter().filter(|address| is_volume(address)).collect();
    kept.extend(volumes.iter().cloned());
    // Named before they are forgotten.
    cluster.store.write_json(KEPT, &kept, 0o600)?;
    for address in &volumes {
        cx.progress(format!("{address} is kept"));
    }
    terraform.forget(&volumes, cx)?;
    Ok(kept)
}

/// What is still there goes with the error: the money that it costs is somebody's.
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
    let error = left.iter().take(NAMED).fold(error, |error, address| error.evidence(format!("still there: {address}")));
    if left.len() > NAMED { error.evidence(format!("and {} more", left.len() - NAMED)) } else { error }
}

/// Terraform forgets a host whose creation failed without calling its destroy provisioner; the host's description is still here.
fn remove_leftovers(cluster: &Cluster, cx: &Cx) -> Result<()> {
    for entry in fs_err::read_dir(cluster.store.create_dir(format!("{DIR}/hosts"))?)? {
        let path = entry?.path();
        let (spec, _turn) = (HostSpec::read(&path)?, HostSpec::take_turn(&path)?);
        cx.progress(format!("removing what is left of {}", spec.name));
        local::delete_host(&spec)?;
    }
    let network = cluster.store.path(format!("{DIR}/network.json"));
    if network.exists() {
        local::delete_network(&NetworkSpec::read(&network)?)?;
    }
    Ok(())
}
