//! How a cluster stands: its phases, nodes, addons, certificates, versions, and who works on it
//! now.
//!
//! It looks and changes nothing. What cannot be asked is no reason to keep silent about the rest:
//! it becomes a gap, with the reason.

mod agents;
mod backups;
mod certificate_list;
mod certificates;
mod components;
mod gap;
mod hosts;
mod live;
mod phases;
mod services;
mod text;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use jiff::Timestamp;
use serde::Serialize;

use crate::artifacts::ResolvedArtifacts;
use crate::bootstrap::rotation::{UnfinishedRotation, find_unfinished};
use crate::bootstrap::{KUBECONFIG, PendingCsr, PendingCsrs, UnansweredWebhook, restore};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::inventory::Host;
use crate::state::{Credential, Holder, Store};

pub(crate) use agents::HostAgent;
pub(crate) use backups::BackupStatus;
pub(crate) use certificate_list::{CertificateList, ListedCertificate};
pub(crate) use certificates::{Certificate, CertificateLife};
pub(crate) use components::ComponentDrift;
pub(crate) use gap::Gap;
pub(crate) use live::{AddonStatus, Live, NodeStatus};
pub(crate) use phases::{PhaseState, PhaseStatus};
pub(crate) use services::HostService;
pub(crate) use text::{render, render_live};
pub(crate) use tokens::TokenStatus;

/// The name and version of its JSON; it grows only by new fields.
pub(crate) const SCHEMA: &str = "turnup.status/1";

/// How a cluster stands.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// When it was looked at.
    pub at: Timestamp,
    /// The cluster's name.
    pub cluster: String,
    /// The target that makes its hosts; nothing without a configuration.
    pub target: Option<String>,
    /// `.turnup/<cluster>`, whether it is there or not.
    pub directory: PathBuf,
    /// Whether nothing was asked over the network.
    pub quick: bool,
    /// Who works on it now, or died while it did.
    pub lock: Option<Holder>,
    /// The phases in their order.
    pub phases: Vec<PhaseStatus>,
    /// The nodes as the API has them; nothing where it was not asked.
    pub nodes: Option<Vec<NodeStatus>>,
    /// Requests to join that are pending or denied; nothing where the API was not asked.
    pub unjoined: Option<Vec<PendingCsr>>,
    /// Requests for serving certificates that are pending; nothing where the API was not asked.
    pub unserved: Option<Vec<PendingCsr>>,
    /// Webhooks that must be asked and do not answer.
    pub unanswered_webhooks: Option<Vec<UnansweredWebhook>>,
    /// The addons as the API has them; nothing where it was not asked.
    pub addons: Option<Vec<AddonStatus>>,
    /// What components do not run with as their configuration says; nothing where they were not
    /// asked.
    pub drifts: Option<Vec<ComponentDrift>>,
    /// How backups of etcd stand; nothing where none are taken or the hosts were not asked.
    pub backup: Option<BackupStatus>,
    /// The agents of the hosts that answered.
    pub agents: Vec<HostAgent>,
    /// turnup's services on the hosts that answered.
    pub services: Vec<HostService>,
    /// Every certificate here and on the hosts that answered.
    pub certificates: Vec<Certificate>,
    /// Rotations of keysets that have not come to their ends.
    pub rotations: Vec<UnfinishedRotation>,
    /// Credentials that were issued besides the administrator's and have not expired, the oldest
    /// first.
    pub credentials: Vec<Credential>,
    /// The tokens with which new hosts of node groups join.
    pub join_tokens: Vec<TokenStatus>,
    /// What runs where.
    pub versions: Versions,
    /// The administrator's kubeconfig, once it is there.
    pub kubeconfig: Option<PathBuf>,
    /// What could not be asked, and why.
    pub gaps: Vec<Gap>,
}

/// Versions, wanted and found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Versions {
    /// This turnup.
    pub turnup: &'static str,
    /// The Kubernetes that the configuration wants.
    pub kubernetes: Option<String>,
    /// The artifacts of the cluster, by their ids.
    pub artifacts: BTreeMap<String, String>,
    /// Whether a host that answered has the same turnup as this one.
    pub same_turnup_on: BTreeMap<String, bool>,
}

impl Status {
    /// Looks at a cluster; `quick` asks nothing over the network.
    #[must_use]
    pub(crate) fn look(cluster: &Arc<Cluster>, quick: bool) -> Self {
        let mut status = Self::of_directory(&cluster.store, &cluster.settings.name);
        status.quick = quick;
        status.target = Some(cluster.settings.target.name().to_owned());
        status.versions.kubernetes = Some(cluster.settings.kubernetes_version.clone());
        let (hosts, api) = thread::scope(|scope| {
            let hosts = scope.spawn(|| if quick { hosts::HostAnswers::default() } else { hosts::ask(cluster) });
            let api = if quick { Ok(None) } else { Live::ask(cluster) };
            (hosts.join().unwrap_or_default(), api)
        });
        match if quick { Ok(Default::default()) } else { backups::ask(cluster) } {
            Ok((backup, gaps)) => {
                status.backup = backup;
                status.gaps.extend(gaps);
            }
            Err(error) => status.gaps.push(Gap::new("backups of etcd", error)),
        }
        match find_unfinished(cluster) {
            Ok(rotations) => status.rotations = rotations,
            Err(error) => status.gaps.push(Gap::new("the keysets", error)),
        }
        let away = api.is_err();
        match api {
            Ok(Some(Live { nodes, csrs, addons, webhooks })) => {
                status.ask_components(cluster, &nodes);
                (status.nodes, status.addons) = (Some(nodes), Some(addons));
                match csrs {
                    Ok(PendingCsrs { joining, serving }) => {
                        (status.unjoined, status.unserved) = (Some(joining), Some(serving));
                    }
                    Err(error) => status.gaps.push(Gap::new("requests of kubelets", error)),
                }
                match webhooks {
                    Ok(webhooks) => status.unanswered_webhooks = Some(webhooks),
                    Err(error) => status.gaps.push(Gap::new("admission webhooks", error)),
                }
            }
            Ok(None) => {}
            Err(error) => status.gaps.push(Gap::new("the API", error)),
        }
        (status.agents, status.services) = (hosts.agents, hosts.services);
        status.certificates.extend(hosts.certificates);
        status.versions.same_turnup_on = hosts.same_turnup;
        status.gaps.extend(hosts.gaps);
        match phases::judge(cluster, quick, away, status.is_busy()) {
            Ok(phases) => status.phases = phases,
            Err(error) => status.gaps.push(Gap::new("the phases", error)),
        }
        status
    }

    /// A kubelet that is not ready may not answer, and its node says why.
    fn ask_components(&mut self, cluster: &Cluster, nodes: &[NodeStatus]) {
        let ready: BTreeSet<&str> =
            nodes.iter().filter(|node| node.status == "Ready").map(|node| node.name.as_str()).collect();
        let asked = cluster.find_inventory().and_then(|inventory| {
            let hosts = inventory.map(|inventory| inventory.hosts).unwrap_or_default();
            let hosts: Vec<&Host> = hosts.iter().filter(|host| ready.contains(host.name.as_str())).collect();
            components::ask(cluster, &hosts)
        });
        match asked {
            Ok((drifts, gaps)) => {
                self.drifts = Some(drifts);
                self.gaps.extend(gaps);
            }
            Err(error) => self.gaps.push(Gap::new("the components", error)),
        }
    }

    /// What the directory alone tells, without a configuration.
    #[must_use]
    pub(crate) fn of_directory(store: &Store, name: &str) -> Self {
        let mut gaps = Vec::new();
        let mut keep = |what: &str, error: Error| gaps.push(Gap::new(what, error));
        // First of all: it explains why hosts and the API are silent, and what to do.
        if let Err(error) = restore::require_none(store) {
            keep("etcd", error);
        }
        let lock = store.holder().unwrap_or_else(|error| {
            keep("the lock", error);
            None
        });
        let resolved = store.read_json::<ResolvedArtifacts>(ResolvedArtifacts::FILE).unwrap_or_else(|error| {
            keep("the artifacts", error);
            None
        });
        let certificates = certificates::here(store).unwrap_or_else(|error| {
            keep("the certificates", error);
            Vec::new()
        });
        // The phases tell what is wrong with it.
        let state = store.state().unwrap_or_default();
        let now = Timestamp::now();
        let credentials = state.credentials.into_iter().filter(|credential| credential.expires > now).collect();
        let join_tokens = tokens::here(store).unwrap_or_else(|error| {
            keep("the join tokens", error);
            Vec::new()
        });
        let artifacts = resolved.iter().flat_map(ResolvedArtifacts::versions);
        let artifacts = artifacts.map(|(id, version)| (id.to_owned(), version.to_owned())).collect();
        let kubeconfig = store.path(KUBECONFIG);
        Self {
            schema: SCHEMA,
            at: now,
            cluster: name.to_owned(),
            target: None,
            directory: store.dir().to_owned(),
            quick: true,
            lock,
            phases: Vec::new(),
            nodes: None,
            unjoined: None,
            unserved: None,
            unanswered_webhooks: None,
            addons: None,
            drifts: None,
            backup: None,
            agents: Vec::new(),
            services: Vec::new(),
            certificates,
            rotations: Vec::new(),
            credentials,
            join_tokens,
            versions: Versions { turnup: env!("CARGO_PKG_VERSION"), artifacts, ..Versions::default() },
            kubeconfig: kubeconfig.is_file().then_some(kubeconfig),
            gaps,
        }
    }

    /// The same with what the journal says of each phase; whether it still holds is unknown without
    /// a configuration.
    #[must_use]
    pub(crate) fn without_configuration(state_dir: &Path, name: &str) -> Self {
        let store = Store::at(state_dir.join(name));
        let mut status = Self::of_directory(&store, name);
        match phases::recorded(&store, status.is_busy()) {
            Ok(phases) => status.phases = phases,
            Err(error) => status.gaps.push(Gap::new("the phases", error)),
        }
        status
    }

    fn is_busy(&self) -> bool {
        self.lock.as_ref().is_some_and(|holder| holder.alive)
    }

    /// The error of the first gap, which decides how the command ends.
    pub(crate) fn into_result(self) -> Result<()> {
        self.gaps.into_iter().next().map_or(Ok(()), |gap| Err(gap.error))
    }
}
