//! What all steps of the bootstrap phase share: the cluster, its hosts, and what a host is to
//! become. It is no step, and decides nothing about a node.

use std::sync::Arc;

use base64::Engine as _;
use zeroize::Zeroizing;

use crate::change::Preview;
use crate::cluster::Cluster;
use crate::error::{Class, Error, Result};
use crate::inventory::{Host, Inventory};
use crate::node::etcd_first_start::EtcdStart;
use crate::node::layout;
use crate::node::up::Delivery;
use crate::node::{Facts, NodeConfig};
use crate::phase::{Check, Cx, Inputs};
use crate::unknown;

use super::api::kubectl;
use super::base_config;
use super::contents::SecretTexts;
use super::firewall;
use super::host_connection::HostConnection;
use super::node_config::{NodeConfigs, facts_file, find_facts, find_written};
use super::node_metadata::Nodes;
use super::pki::Leaf;
use super::rolling_lock::RollingLock;
use super::rolling_update::RollingUpdate;
use super::step_ids::{GATHER_FACTS, NODE_CONFIG};
use super::version_skew::VERSION;

/// What all steps of this phase know.
#[derive(Clone)]
pub(super) struct NodeContext {
    pub(super) cluster: Arc<Cluster>,
    pub(super) inventory: Inventory,
    pub(super) nodes: Arc<Nodes>,
    pub(super) rolling_lock: Arc<RollingLock>,
    pub(super) update: Arc<RollingUpdate>,
}

/// What only the first start of a host's components needs.
#[derive(Default)]
pub(super) struct FirstStart {
    /// The kubeconfig with a join token.
    pub(super) kubeconfig: Option<Zeroizing<String>>,
    /// How its member of etcd starts for the first time.
    pub(super) etcd: Option<EtcdStart>,
}

impl NodeContext {
    pub(super) fn new(cluster: &Arc<Cluster>, inventory: &Inventory) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            inventory: inventory.clone(),
            nodes: Arc::default(),
            rolling_lock: Arc::default(),
            update: Arc::new(RollingUpdate::new(&cluster.settings.update)),
        }
    }

    pub(super) fn host(&self, name: Option<&str>) -> Result<&Host> {
        self.inventory.host(name.unwrap_or_default())
    }

    pub(super) fn leaves(&self) -> Result<Vec<Leaf>> {
        let resolved = self.cluster.resolved()?;
        NodeConfigs { cluster: &self.cluster, inventory: &self.inventory, artifacts: &resolved }.leaves()
    }

    pub(super) fn facts(&self, host: &str) -> Result<Facts> {
        let missing = || Error::permanent(format!("{} is missing", facts_file(host))).hint("turnup bootstrap");
        find_facts(&self.cluster, host)?.ok_or_else(missing)
    }

    pub(super) fn computed(&self, host: &str) -> Result<(NodeConfig, SecretTexts)> {
        let facts = self.facts(host)?;
        let resolved = self.cluster.resolved()?;
        let configs = NodeConfigs { cluster: &self.cluster, inventory: &self.inventory, artifacts: &resolved };
        configs.node_config(self.inventory.host(host)?, &facts)
    }

    /// What the work on one host depends on: which machine it is, and its node config, secrets
    /// included by digest.
    pub(super) fn node_inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.host(host)?;
        let mut inputs = Inputs::new().with("host instance", &host.instance).with("turnup", self.cluster.version());
        let node_config = match self.written_complete(&host.name)? {
            Ok(node_config) => node_config,
            Err(mark) => return Ok(inputs.with("node config", mark)),
        };
        inputs.insert(VERSION, &node_config.kubernetes_version);
        inputs.extend(node_config.files.iter().map(|file| (file.path.clone(), format!("{file:?}"))));
        inputs.extend(node_config.units.iter().map(|unit| (unit.name.clone(), format!("{unit:?}"))));
        inputs.insert("binaries", format!("{:?}", node_config.binaries));
        inputs.insert("container runtime", format!("{:?} {:?}", node_config.runtime, node_config.proxy));
        inputs.insert("images", format!("{:?}", node_config.images));
        inputs.insert("kernel settings", format!("{:?} {:?}", node_config.sysctls, node_config.modules));
        inputs.insert("packages", format!("{:?}", node_config.packages));
        inputs.insert("names of /etc/hosts", format!("{:?}", node_config.extra_hosts));
        Ok(inputs)
    }

    /// The API server's manifest as the host's node config has it.
    pub(super) fn api_manifest(&self, host: &str) -> Result<String> {
        Ok(self.written_complete(host)?.map_or_else(
            |mark| mark,
            |node_config| {
                let manifest =
                    node_config.files.iter().find(|file| layout::static_pod(&file.path) == Some("kube-apiserver"));
                manifest.map(|file| format!("{file:?}")).unwrap_or_default()
            },
        ))
    }

    /// The node config that the step before has written; the placeholder that stands for it as long
    /// as it has not.
    pub(super) fn written_complete(&self, host: &str) -> Result<std::result::Result<NodeConfig, String>> {
        Ok(find_written(&self.cluster, host)?.ok_or_else(|| unknown::after(&NODE_CONFIG.on(host))))
    }

    /// Asks the host itself whether it still is what it was made.
    pub(super) fn prove_host(&self, host: Option<&str>) -> Result<Check> {
        let host = self.host(host)?;
        let (node_config, _) = self.computed(&host.name)?;
        Ok(match HostConnection::for_proof(&self.cluster, host)?.differences(&node_config) {
            Err(error) if error.class() == Class::Interrupted => return Err(error),
            Err(error) => Check::Drifted(format!("{} does not answer: {}", host.name, error.message())),
            Ok(changes) => changes.first().map_or(Check::Ok, |change| Check::Drifted(change.describe_fault())),
        })
    }

    /// Everything that differs on a host, as far as there is one that can tell.
    pub(super) fn preview_host(&self, host: Option<&str>) -> Result<Preview> {
        let host = self.host(host)?;
        if let Some(step) = unknown::step_of(&host.instance) {
            return Ok(Preview::after(step));
        }
        let inspected = Preview::after(GATHER_FACTS.on(&host.name));
        let Ok((node_config, _)) = self.computed(&host.name) else { return Ok(inspected) };
        match HostConnection::for_proof(&self.cluster, host)?.differences(&node_config) {
            Ok(mut changes) => {
                changes.extend(self.update.preview(&host.name, &changes));
                Ok(changes.into())
            }
            Err(error) if error.class() == Class::Interrupted => Err(error),
            // It does not answer, or has no turnup of this version yet.
            Err(_) => Ok(inspected),
        }
    }

    /// Brings one host, which has this turnup, to its node config; one that is a node already, as a
    /// part of the rolling update.
    pub(super) fn bring_up(&self, connection: &HostConnection<'_>, first: FirstStart, cx: &Cx) -> Result<()> {
        let (node_config, secrets) = self.computed(&connection.host().name)?;
        // Not by the facts of the inspection, which may be of another operator's run.
        let facts = connection.facts()?;
        firewall::require_way_in(&self.cluster, &self.inventory, connection.host(), facts.client)?;
        // Looks at the host once more when a plan says what may change there.
        let looks = cx.is_bound() || facts.joined;
        let changes = if looks { connection.differences(&node_config)? } else { Vec::new() };
        cx.admit(&changes)?;
        let encode = |text: &Zeroizing<String>| {
            Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(text.as_bytes()))
        };
        let secrets = secrets.iter().map(|(name, text)| (name.clone(), encode(text))).collect();
        let delivery =
            Delivery { node_config, secrets, bootstrap_kubeconfig: first.kubeconfig, etcd_start: first.etcd };
        let deliver = || base_config::deliver(&self.cluster, connection, &delivery, cx);
        if !facts.joined {
            return deliver();
        }
        let kubectl = kubectl(&self.cluster)?.within(cx);
        self.update.around(&kubectl, &connection.host().name, &changes, cx, deliver)
    }
}
