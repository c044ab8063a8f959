//! What a cluster lends to the steps that its user added to `phase.toml`: the settings, the
//! inventory, the connections. It decides nothing.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::exec::{Failure, Output, Ssh};
use crate::inventory;
use crate::phase::{Cx, HostAccess, HostFacts, Manifest, Phase, PhaseHost};

use super::{Cluster, KUBECONFIG};

/// A host that does not answer a look within this time does not answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

impl Cluster {
    /// A phase of this cluster without any actions yet, in which steps of the user's own work.
    #[must_use]
    pub fn phase(self: &Arc<Self>, name: &str, manifest: Manifest, hosts: Vec<PhaseHost>) -> Phase {
        // Only steps of the user's own are given settings by name.
        let has_own_steps = manifest.steps.iter().any(|step| !step.run.is_empty());
        let mut phase = Phase::new(name, manifest, hosts);
        phase.work_dir.clone_from(&self.work_dir);
        if has_own_steps {
            phase.settings = self.inputs(&["phase"]);
        }
        let makes_hosts = name == "provision";
        phase.host_access = Some(Arc::new(ClusterAccess { cluster: Arc::clone(self), makes_hosts }));
        phase
    }
}

struct ClusterAccess {
    cluster: Arc<Cluster>,
    makes_hosts: bool,
}

impl ClusterAccess {
    fn ssh(&self, host: &str) -> Result<Ssh> {
        self.cluster.ssh(self.cluster.inventory()?.host(host)?)
    }
}

impl HostAccess for ClusterAccess {
    fn variables(&self) -> Vec<(&'static str, OsString)> {
        let files = [("TURNUP_INVENTORY", inventory::FILE), ("KUBECONFIG", KUBECONFIG)];
        let there = files.map(|(name, file)| (name, self.cluster.store.path(file)));
        there.into_iter().filter(|(_, path)| path.is_file()).map(|(name, path)| (name, path.into())).collect()
    }

    fn cluster(&self) -> String {
        self.cluster.settings.name.clone()
    }

    fn makes_hosts(&self) -> bool {
        self.makes_hosts
    }

    fn host(&self, host: &str) -> Result<Option<HostFacts>> {
        let Some(inventory) = self.cluster.find_inventory()? else { return Ok(None) };
        let found = inventory.hosts.into_iter().find(|found| found.name == host);
        Ok(found.map(|host| HostFacts { address: host.address.to_string(), instance: host.instance }))
    }

    fn copy(&self, host: &str, local: &Path, remote: &str, mode: u32, cx: &Cx) -> Result<()> {
        self.ssh(host)?.log(cx.log_path()).timeout(cx.remaining()).copy(local, remote, mode)
    }

    fn run(&self, host: &str, argv: &[String], cx: &Cx) -> Result<Result<Output, Failure>> {
        self.ssh(host)?.log(cx.log_path()).timeout(cx.remaining()).try_run(argv)
    }

    fn look(&self, host: &str, argv: &[String]) -> Result<Result<Output, Failure>> {
        self.ssh(host)?.timeout(PROBE_TIMEOUT).try_run(argv)
    }
}
