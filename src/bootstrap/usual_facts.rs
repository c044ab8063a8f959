//! What a host is taken for that was not inspected yet.

use crate::cluster::Cluster;
use crate::error::Result;
use crate::node::Facts;

use super::node_config::{facts_file, find_facts};

/// A virtual machine with systemd and the unified hierarchy of cgroups.
pub(super) fn usual_facts() -> Facts {
    use crate::document::Document as _;
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

/// Writes facts of those hosts of the inventory that have none, for a forecast: they are taken to
/// be like the first one that was inspected, or else the usual ones.
pub fn assume_facts(cluster: &Cluster) -> Result<()> {
    let hosts = cluster.inventory()?.hosts;
    let known = hosts.iter().map(|host| find_facts(cluster, &host.name)).collect::<Result<Vec<_>>>()?;
    let alike = known.iter().flatten().next().cloned().unwrap_or_else(usual_facts);
    for (host, _) in hosts.iter().zip(&known).filter(|(_, known)| known.is_none()) {
        cluster.write_document(&facts_file(&host.name), &alike, 0o600)?;
    }
    Ok(())
}
