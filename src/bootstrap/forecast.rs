//! The bootstrap phase as it would go, without going: the node config of each node in an imagined directory.
//!
//! Certificates and keys are placeholder texts. A host that was not inspected yet is assumed to be
//! the usual one.

use crate::artifacts::{Cache, Lock, ResolvedArtifacts};
use crate::cluster::{Cluster, find_document};
use crate::document::{Document as _, Found};
use crate::error::Result;
use crate::inventory::{self, Inventory};
use crate::node::Facts;
use crate::state::Store;
use crate::unknown;

use super::etcd_step;
use super::node_config::{NodeConfigs, facts_file, file_of};
use super::pki::{Authority, Leaf, Pki};
use super::step_ids::PKI;

/// Fills the imagined directory of the cluster, in which the inventory lies already; what is known of real hosts and artifacts is taken over.
pub fn forecast(cluster: &Cluster, real: &Store) -> Result<()> {
    let (store, inventory) = (&cluster.store, cluster.inventory()?);
    let selection = Lock::load(&cluster.work_dir)?.select(&cluster.settings.kubernetes_version)?;
    let known = match find_document::<ResolvedArtifacts>(real, ResolvedArtifacts::FILE)? {
        Found::There(known) => Some(known),
        _ => None,
    };
    let cache = Cache::locate().ok();
    let artifacts = ResolvedArtifacts::expected(&selection, &cluster.settings.sources, known.as_ref(), cache.as_ref());
    cluster.write_document(ResolvedArtifacts::FILE, &artifacts, 0o600)?;
    etcd_step::forecast(cluster, real, &inventory)?;
    let configs = NodeConfigs { cluster, inventory: &inventory, artifacts: &artifacts };
    write_certificates(store, &cluster.settings.name, &configs.leaves()?)?;
    let alike = known_facts(real)?.unwrap_or_else(usual_facts);
    for host in &inventory.hosts {
        let file = facts_file(&host.name);
        let facts = match find_document(real, &file)? {
            Found::There(facts) => facts,
            _ => alike.clone(),
        };
        cluster.write_document(&file, &facts, 0o600)?;
        let (node_config, _) = configs.node_config(host, &facts)?;
        store.write_json(file_of(&host.name), &node_config, 0o600)?;
    }
    Ok(())
}

/// The facts of the first host that is there: a host that was not inspected yet is assumed to be
/// like it.
fn known_facts(real: &Store) -> Result<Option<Facts>> {
    let Found::There(inventory) = find_document::<Inventory>(real, inventory::FILE)? else { return Ok(None) };
    let Some(first) = inventory.sorted().hosts.into_iter().next() else { return Ok(None) };
    Ok(match find_document(real, &facts_file(&first.name))? {
        Found::There(facts) => Some(facts),
        _ => None,
    })
}

/// A virtual machine with systemd and the unified hierarchy of cgroups.
pub(super) fn usual_facts() -> Facts {
    Facts {
        schema: Facts::SCHEMA.into(),
        os: "Linux".into(),
        kernel: String::new(),
        arch: std::env::consts::ARCH.into(),
        cgroup: 2,
        container: false,
        lowers_oom_score: true,
        joined: false,
        resolv_conf: "/etc/resolv.conf".into(),
        client: None,
        memory_mib: 0,
        cpus: 0,
    }
}

fn write_certificates(store: &Store, cluster: &str, leaves: &[Leaf]) -> Result<()> {
    let write = |file: &str, what: &str| store.write_file(format!("pki/{file}"), placeholder(what).as_bytes(), 0o600);
    for authority in Authority::ALL.map(Authority::file) {
        write(&format!("{authority}.crt"), &format!("authority {authority} of {cluster}"))?;
        write(&format!("{authority}.key"), &format!("key of the authority {authority}"))?;
    }
    write("sa.pub", "public key of service accounts")?;
    write("sa.key", "key of service accounts")?;
    write("encryption.key", "key for Secrets in etcd")?;
    for leaf in leaves {
        let (group, hosts) = (leaf.group.as_deref().unwrap_or("no group"), leaf.hosts.join(", "));
        let what = format!("certificate of {} ({group}), signed by {}, for: {hosts}", leaf.name, leaf.authority.file());
        write(&format!("{}.crt", leaf.file), &what)?;
        write(&format!("{}.key", leaf.file), &format!("key of {}", leaf.file))?;
    }
    Ok(())
}

/// Placeholders for the certificates and keys that are missing or would be renewed.
pub(super) fn simulate_certificates(cluster: &Cluster, leaves: &[Leaf]) -> Result<()> {
    let store = &cluster.store;
    let placeholder = unknown::after(&PKI);
    let write = |file: String| store.write_file(format!("pki/{file}"), placeholder.as_bytes(), 0o600);
    let missing = |file: &str| store.read(format!("pki/{file}")).map(|bytes| bytes.is_none());
    let authorities = Authority::ALL.map(Authority::file).into_iter();
    let kept = authorities.flat_map(|file| [format!("{file}.crt"), format!("{file}.key")]);
    for file in kept.chain(["sa.pub", "sa.key", "encryption.key"].map(str::to_owned)) {
        if missing(&file)? {
            write(file)?;
        }
    }
    let pki = Pki::new(store);
    for leaf in leaves {
        // Without its authority nothing can be said about it.
        if !pki.is_good(leaf).unwrap_or(false) {
            write(format!("{}.crt", leaf.file))?;
            if missing(&format!("{}.key", leaf.file))? {
                write(format!("{}.key", leaf.file))?;
            }
        }
    }
    Ok(())
}

fn placeholder(what: &str) -> String {
    format!("(made by bootstrap: {what})\n")
}
