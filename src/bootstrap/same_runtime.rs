//! What a node keeps as long as it is one: where containerd and kubelet have their data, and how.
//! A configuration that changes it is refused before anything begins.
//!
//! Reads the node configs of the cluster's directory; asks no host.

use std::collections::BTreeSet;

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::phase::StepId;
use crate::state::State;

use super::node_config::{find_facts, find_written};
use super::runtime::ContainerRuntime;
use super::usual_facts::usual_facts;

/// The steps that make a host a node.
pub(super) const MAKE_NODES: [StepId; 2] = [StepId::of("bootstrap", "control-plane"), StepId::of("bootstrap", "join")];

/// An error when the settings would move the data of hosts that are nodes. A host that was reset is
/// none: its node config is gone.
pub fn require_same_runtimes(cluster: &Cluster) -> Result<()> {
    // What is wrong with these is said by the step that reads them.
    let (Ok(Some(inventory)), Ok(state)) = (cluster.find_inventory(), cluster.store.state()) else { return Ok(()) };
    let (mut first, mut hosts) = (None, BTreeSet::new());
    for host in inventory.hosts.iter().filter(|host| was_started(&state, &host.name)) {
        let Some(before) = find_written(cluster, &host.name)? else { continue };
        let facts = find_facts(cluster, &host.name).ok().flatten().unwrap_or_else(usual_facts);
        let now = ContainerRuntime { cluster, facts: &facts, pause: "" }.decided();
        if let Some((setting, was, is)) = before.runtime.find_difference(&now) {
            first.get_or_insert((setting, was.to_owned(), is.to_owned()));
            hosts.insert(host.name.as_str());
        }
    }
    let Some((setting, was, is)) = first else { return Ok(()) };
    let hosts: Vec<&str> = hosts.into_iter().collect();
    let message = format!("{setting}: nodes keep what they were made with, {was}, and not {is}: {}", hosts.join(", "));
    Err(Error::config(message)
        .evidence("containers that run cannot be moved; nothing was changed")
        .hint(format!("turnup config set {setting}={was}; or turnup reset {} && turnup up", hosts.join(" "))))
}

fn was_started(state: &State, host: &str) -> bool {
    let ids = MAKE_NODES.map(|step| step.on(host).to_string());
    ids.iter().any(|id| state.steps.contains_key(id) || state.open.contains_key(id))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::path::Path;

    use super::super::node_config::file_of;
    use super::super::node_config::tests::with_configs;
    use super::*;
    use crate::config::{Settings, TreeSource};
    use crate::state::JournalEntry;

    fn with(state_dir: &Path, changes: &[(&str, &str)]) -> Cluster {
        let source = TreeSource::embedded();
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set_all(&[("phase1.cloud_provider", "baremetal")]).unwrap();
        settings.set_all(changes).unwrap();
        Cluster::shadow(&settings, source, state_dir).unwrap()
    }

    #[test]
    fn a_node_keeps_its_directories_until_it_is_reset() {
        with_configs(&[("phase1.cloud_provider", "baremetal")], |configs| {
            let store = &configs.cluster.store;
            configs.cluster.write_inventory(configs.inventory).unwrap();
            for host in &configs.inventory.hosts {
                let (node_config, _) = configs.node_config(host, &usual_facts()).unwrap();
                store.write_json(file_of(&host.name), &node_config, 0o600).unwrap();
            }
            let check = |change: (&str, &str)| require_same_runtimes(&with(store.dir().parent().unwrap(), &[change]));
            let changes = [("phase2.host.data_dir", "/data/kubelet"), ("phase2.runtime.data_dir", "/data/containerd")];
            for change in changes {
                check(change).unwrap();
            }
            let lock = store.lock("test").unwrap();
            let step = MAKE_NODES[1].on("w0").to_string();
            store.record(&lock, JournalEntry::Intent { step, digest: String::new() }).unwrap();
            store.flush(&lock).unwrap();
            for change in changes {
                let error = check(change).unwrap_err().render();
                assert!(error.contains(&format!("{}: nodes keep", change.0)) && error.contains(": w0\n"), "{error}");
                assert!(error.contains("turnup reset w0 && turnup up"), "{error}");
            }
            check(("phase2.runtime.log_level", "debug")).unwrap();
            store.remove(file_of("w0")).unwrap();
            for change in changes {
                check(change).unwrap();
            }
        });
    }
}
