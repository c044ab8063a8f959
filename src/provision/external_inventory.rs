//! Hosts that turnup did not make: an inventory that the user wrote, or that another directory's
//! provision phase did.
//!
//! Nothing here makes or changes a host. It remembers where such an inventory came from, so that no
//! run makes other hosts in their place.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cloud::{Target, require_volume_provider};
use crate::cluster::{Cluster, KNOWN_HOSTS, SSH_KEY, find_document};
use crate::document::{Document, Fields, Found};
use crate::error::{Error, Result};
use crate::input;
use crate::phase::Cx;

use super::ssh_keys::ensure_key;
use super::terraform::has_made;
use crate::inventory::{Host, Inventory};

/// Where it is remembered, below the cluster's directory.
const FILE: &str = "outputs/from.json";

/// Where the hosts of a cluster came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Always [`Origin::SCHEMA`](Document::SCHEMA).
    schema: String,
    /// The inventory that was given, absolute.
    pub file: PathBuf,
}

impl Document for Origin {
    const SCHEMA: &'static str = "turnup.from/1";
    const WHAT: &'static str = "where the hosts of this cluster came from";
    const REMEDY: &'static str = "turnup bootstrap --from FILE";

    fn fields() -> Fields {
        Fields::new(&[("schema", "text"), ("file", "path")])
    }
}

/// Takes over the hosts of this inventory in place of a provision phase. Returns whether the
/// cluster's key had to be made: no host can know it then.
pub fn adopt(cluster: &Cluster, file: &Path, cx: &Cx) -> Result<(Inventory, bool)> {
    let shown = file.display().to_string();
    let text = input::read_text(file, input::DOCUMENT).map_err(|error| {
        Error::config(format!("{shown}: {error}"))
            .hint("name the inventory of a provision phase, or one of your own: docs/baremetal.md shows the form")
    })?;
    let inventory = Inventory::parse(&shown, &text)?;
    inventory.require_cluster(&shown, &cluster.settings.name, cluster.settings.api_port)?;
    refuse_made(cluster)?;
    let file = fs_err::canonicalize(file)?;
    let is_new = cluster.settings.access.key.is_none() && cluster.store.read(SSH_KEY)?.is_none();
    // First where they came from: an inventory without it would be one of hosts that are ours to
    // delete.
    cluster.write_document(FILE, &Origin { schema: Origin::SCHEMA.into(), file }, 0o600)?;
    take(cluster, &inventory, cx)?;
    Ok((inventory, is_new))
}

/// Where the hosts came from, when `turnup bootstrap --from` brought them.
fn find_origin(cluster: &Cluster) -> Result<Option<Origin>> {
    match find_document(&cluster.store, FILE)? {
        Found::There(origin) => Ok(Some(origin)),
        Found::Missing => Ok(None),
        Found::Older(schema) => {
            Err(Error::permanent(format!("{FILE} is of an older turnup ({schema})")).hint(Origin::REMEDY))
        }
    }
}

/// The cluster's key, the hosts' keys and the inventory, each below the cluster's directory.
pub(super) fn take(cluster: &Cluster, inventory: &Inventory, cx: &Cx) -> Result<()> {
    prepare_access(cluster, inventory, cx)?;
    cluster.write_inventory(inventory)
}

/// What a first connection needs: the key, unless the user has one, and the hosts' keys.
pub(super) fn prepare_access(cluster: &Cluster, inventory: &Inventory, cx: &Cx) -> Result<()> {
    let volumes = inventory.hosts.iter().filter_map(|host| host.etcd_volume.as_ref());
    volumes.map(require_volume_provider).collect::<Result<Vec<_>>>()?;
    let store = &cluster.store;
    store.create_dir("ssh")?;
    if cluster.settings.access.key.is_none() {
        ensure_key(store, SSH_KEY, cx)?;
    }
    let known_hosts: String = inventory.hosts.iter().map(Host::known_hosts).collect();
    store.write_file(KNOWN_HOSTS, known_hosts.as_bytes(), 0o600)
}

/// Where hosts came from for which the provision phase has nothing to do; none when the inventory
/// of bare metal is that very file.
pub fn find_external_inventory(cluster: &Cluster) -> Result<Option<Origin>> {
    let settings = &cluster.settings;
    let listed = fs_err::canonicalize(cluster.work_dir.join(&settings.hosts_file)).ok();
    let reads_file = matches!(settings.target, Target::BareMetal) && settings.hosts.is_empty();
    let same = |origin: &Origin| reads_file && listed.as_ref() == Some(&origin.file);
    Ok(find_origin(cluster)?.filter(|origin| !same(origin)))
}

/// An error when the hosts were handed over.
pub(super) fn refuse_adopted(cluster: &Cluster) -> Result<()> {
    let Some(origin) = find_external_inventory(cluster)? else { return Ok(()) };
    let settings = &cluster.settings;
    let file = origin.file.display();
    let message =
        format!("the hosts of the cluster {} were handed over in {file}: turnup makes none for it", settings.name);
    let error = Error::config(message).evidence(format!("the target of this configuration is {}", settings.target));
    Err(error.hint(format!("turnup bootstrap --from {file} && turnup addons")))
}

/// An error when the provision phase has made, or started to make, hosts of this cluster's own:
/// they would be forgotten.
fn refuse_made(cluster: &Cluster) -> Result<()> {
    if !has_made(cluster)? {
        return Ok(());
    }
    let message = format!("the cluster {} has hosts of its own, made by `turnup provision`", cluster.settings.name);
    Err(Error::config(message)
        .hint("turnup down (deletes them), or another name: turnup config set phase1.cluster_name=…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<Origin>(
            &serde_json::json!({"schema": Origin::SCHEMA, "file": "/srv/hosts.json"}),
        );
    }
}
