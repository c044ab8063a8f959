//! The steps of the bootstrap phase, in the order of `phases/bootstrap/phase.toml`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::artifacts::{Artifact, Lock, ResolvedArtifacts, Source};
use crate::change::{Change, Preview, Verb};
use crate::cluster::{Cluster, TimeLimits, find_document};
use crate::document::{Document, Found};
use crate::error::{Class, Error, Result};
use crate::inventory::{Host, Role};
use crate::node::{Facts, NodeConfig};
use crate::phase::{Action, Check, Cx, Engine, Inputs, Limits, Phase};
use crate::unknown;

use super::api::{Kubectl, kubectl};
use super::assets::Assets;
use super::backup::BackupBeforeChange;
use super::backup_keys::BackupKeys;
use super::base_config;
use super::configuration;
use super::credentials;
use super::csr_approver::{Policy, role_label};
use super::delete_nodes::DeleteNodes;
use super::etcd_members::Members;
use super::etcd_step::{self, EtcdMembers};
use super::firewall;
use super::groups;
use super::host_connection::HostConnection;
use super::join::{HostCsrs, Join};
use super::kubelet_certificate;
use super::node_config::{facts_file, file_of};
use super::node_context::{FirstStart, NodeContext};
use super::node_groups::WaitForGroups;
use super::node_metadata::{self, MANAGED, NodeMetadata};
use super::node_target::NodeTarget;
use super::pki::{Authority, Pki};
use super::rbac::ApplyRbac;
use super::renew_groups::{self, RenewGroups};
use super::step_ids::{ARTIFACTS, GATHER_FACTS, NODE_CONFIG};

/// On Nodes to which no load balancer of a cloud sends anything.
const NO_BALANCER: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Steps that may take all the time that a host has.
const LONG_STEPS: [&str; 2] = ["control-plane", "join"];

/// The phase for the hosts of the inventory.
pub fn phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    let inventory = cluster.inventory()?;
    let (context, csrs) = (NodeContext::new(cluster, &inventory), Arc::new(HostCsrs::default()));
    let step = || context.clone();
    let mut manifest = cluster.manifest("bootstrap")?;
    // Without groups there are no hosts to wait for.
    manifest.steps.retain(|step| step.name != "wait-groups" || !inventory.groups.is_empty());
    let renews = renew_groups::can_renew(cluster, &inventory);
    manifest.steps.retain(|step| step.name != "renew-groups" || renews);
    let takes_backup = cluster.settings.backup.as_ref().is_some_and(|backup| backup.before_change);
    manifest.steps.retain(|step| step.name != "backup" || takes_backup);
    manifest.steps.retain(|step| step.name != "backup-keys" || cluster.settings.backup.is_some());
    let limits = &cluster.settings.limits;
    manifest.set_timeouts(&LONG_STEPS, limits.host_timeout, TimeLimits::HOST_TIMEOUT);
    let mut phase = cluster.phase("bootstrap", manifest, cluster.phase_hosts()?);
    phase.limits = Limits {
        phase: Some((limits.timeout, "phase2.timeout")),
        host: Some((limits.host_timeout, "phase2.host_timeout")),
        parallel: Some(limits.parallel_hosts),
    };
    phase.at_once = Members::count_at_once(&cluster.store, &inventory)?;
    if renews {
        phase = phase.with("renew-groups", RenewGroups(step()));
    }
    Ok(phase
        .with("artifacts", Artifacts(step()))
        .with("pki", Certificates(step()))
        .with("backup-keys", BackupKeys(Arc::clone(cluster)))
        .with("etcd-members", EtcdMembers(step()))
        .with("gather-facts", GatherFacts(step()))
        .with("node-config", WriteNodeConfig(step()))
        .with("backup", BackupBeforeChange(step()))
        .with("control-plane", Up(step()))
        .with("api", Api(step()))
        .with("rbac", ApplyRbac(step()))
        .with("wait-groups", WaitForGroups(step()))
        .with("join", Join { node: step(), csrs })
        .with("label-nodes", LabelNodes(step()))
        .with("delete-nodes", DeleteNodes(step())))
}

/// The config that the phase would write for a node of an imagined cluster, as it is in memory.
pub fn simulate_node_config(cluster: &Arc<Cluster>, node: &str) -> Result<NodeConfig> {
    Engine::simulate_needs(&cluster.store, &phase(cluster)?, &NODE_CONFIG.on(node))?;
    NodeContext::new(cluster, &cluster.inventory()?).computed(node).map(|(node_config, _)| node_config)
}

/// What will be obtained: of what the lock file accepts what was obtained before, is in the cache,
/// or would be built. Nothing needs to be here for that.
pub(super) fn expected_artifacts(cluster: &Cluster) -> Result<ResolvedArtifacts> {
    let selection = cluster.select_artifacts()?;
    let known = match find_document::<ResolvedArtifacts>(&cluster.store, ResolvedArtifacts::FILE)? {
        Found::There(known) => Some(known),
        _ => None,
    };
    let cache = cluster.locate_cache().ok();
    let sources = &cluster.settings.sources;
    cluster.with_own_images(ResolvedArtifacts::expected(&selection, sources, known.as_ref(), cache.as_ref()))
}

/// A document that a step of ours wrote; what is missing or of an older turnup is recreated, what
/// is damaged or newer is an error.
fn prove_document<D: Document + Clone + 'static>(
    cluster: &Cluster,
    file: &str,
) -> Result<std::result::Result<D, Check>> {
    Ok(match find_document(&cluster.store, file)? {
        Found::There(document) => Ok(document),
        Found::Missing => Err(Check::Drifted(format!("{file} is missing"))),
        Found::Older(schema) => Err(Check::Drifted(format!("{file} is of an older turnup ({schema})"))),
    })
}

/// Binaries and images into the cache.
struct Artifacts(NodeContext);

impl Action for Artifacts {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let lock = Lock::load(&self.0.cluster.work_dir)?;
        let inputs = self.0.cluster.inputs(&["phase2.kubernetes_version", "phase2.artifacts"]);
        let images = self.0.cluster.read_images()?;
        let selection = self.0.cluster.select_from(&lock)?;
        let required: Vec<String> = selection.required().map(Artifact::id).collect();
        Ok(inputs
            .with("cluster.lock.json", lock.to_text()?)
            .with("own images", format!("{images:?}"))
            .with("images of addons", required.join(" ")))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let resolved: ResolvedArtifacts = match prove_document(&self.0.cluster, ResolvedArtifacts::FILE)? {
            Ok(resolved) => resolved,
            Err(gone) => return Ok(gone),
        };
        let cache = self.0.cluster.cache()?;
        Ok(match resolved.find_missing(&cache) {
            Some(name) => Check::Drifted(format!("{name} is no longer in the cache")),
            None => Check::Ok,
        })
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0.cluster;
        let selection = cluster.select_artifacts()?;
        let (cache, sources) = (cluster.cache()?, &cluster.settings.sources);
        for source in sources.iter() {
            if let Source::Bundle(place) = source {
                sources.require_complete(place, &selection)?;
            }
        }
        for file in &cluster.settings.artifacts.preload_images {
            cache.take_in(file, cx)?;
        }
        let resolved = cluster.with_own_images(ResolvedArtifacts::fetch(&cache, &selection, sources, cx)?)?;
        cluster.write_document(ResolvedArtifacts::FILE, &resolved, 0o600)
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        let expected = expected_artifacts(&self.0.cluster)?;
        self.0.cluster.write_document(ResolvedArtifacts::FILE, &expected, 0o600).map(|()| true)
    }
}

/// Authorities, keys and certificates.
struct Certificates(NodeContext);

impl Action for Certificates {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let leaves = self.0.leaves();
        let leaves = leaves.map(|leaves| format!("{leaves:?}"));
        let leaves = leaves.unwrap_or_else(|_| unknown::after(&ARTIFACTS));
        let own = configuration::own_authority(&self.0.cluster)?;
        let inputs = self.0.cluster.inputs(&["phase2.pki.ca_", "phase2.pki.key_algorithm"]);
        Ok(inputs.with("names and addresses", leaves).with("own authority", own))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let pki = Pki::of(&self.0.cluster);
        for leaf in self.0.leaves()? {
            if !pki.is_good(&leaf)? {
                return Ok(Check::Drifted(format!("pki/{}.crt is missing, does not fit, or ends its life", leaf.file)));
            }
        }
        Ok(Check::Ok)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0.cluster;
        cluster.store.create_dir("pki")?;
        let pki = Pki::of(cluster);
        for authority in Authority::ALL {
            pki.ensure_authority(authority, &cluster.settings.name)?;
        }
        pki.ensure_service_account_key()?;
        pki.ensure_encryption_key()?;
        for leaf in self.0.leaves()? {
            pki.ensure_leaf(&leaf)?;
        }
        cx.milestone("certificates");
        Ok(())
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        let pki = Pki::of(&self.0.cluster);
        let mut changes = Vec::new();
        for leaf in self.0.leaves()? {
            if !pki.is_good(&leaf)? {
                let known = self.0.cluster.store.read(format!("pki/{}.crt", leaf.file))?.is_some();
                changes.push(Change::new(if known { Verb::Replace } else { Verb::Create }, "certificate", leaf.file));
            }
        }
        Ok(changes.into())
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        let cluster = &self.0.cluster;
        Pki::of(cluster).simulate(&cluster.settings.name, &self.0.leaves()?).map(|()| true)
    }
}

/// turnup on the host, and what it finds there.
struct GatherFacts(NodeContext);

impl Action for GatherFacts {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.0.host(host)?;
        Ok(Inputs::new().with("host instance", &host.instance).with("turnup", self.0.cluster.version()))
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        let file = facts_file(&self.0.host(host)?.name);
        Ok(match prove_document::<Facts>(&self.0.cluster, &file) {
            Ok(proof) => proof.map_or_else(|gone| gone, |_| Check::Ok),
            Err(_) => Check::Drifted(format!("{file} is damaged")),
        })
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let host = self.0.host(host)?;
        let facts = base_config::gather_facts(&self.0.cluster, host, cx)?;
        firewall::require_way_in(&self.0.cluster, &self.0.inventory, host, facts.client)?;
        self.0.cluster.write_document(&facts_file(&host.name), &facts, 0o600)
    }
}

/// The node config, as a file to read.
struct WriteNodeConfig(NodeContext);

impl Action for WriteNodeConfig {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.0.host(host)?;
        let cluster = &self.0.cluster;
        let facts = self.0.facts(&host.name).map(|facts| facts.fingerprint());
        let facts = facts.unwrap_or_else(|_| unknown::after(&GATHER_FACTS.on(&host.name)));
        let resolved = cluster.store.read(ResolvedArtifacts::FILE)?;
        let resolved = resolved.unwrap_or_else(|| unknown::after(&ARTIFACTS).into_bytes());
        // Of the other hosts only their number matters, whether the control plane is kept free of
        // pods, and to the nftables rules their addresses. Certificates are no input: what they say
        // follows from the rest, and `verify` sees one that was renewed.
        let workers = self.0.inventory.hosts.iter().any(|host| host.role == Role::Worker);
        let this = if host.role == Role::ControlPlane {
            let members = Members::read(cluster, &self.0.inventory)?;
            json!([host, workers, members.get(&host.name).map(|member| member.first.join(",")).unwrap_or_default()])
        } else {
            json!(host)
        };
        let policy = Policy::find(host.role, cluster, &self.0.inventory)?.map(|policy| policy.flags());
        let target = NodeTarget::of_host(host, "", groups::find_record(cluster, host)?);
        Ok(cluster
            .inputs(&[
                "phase1.cluster_name",
                "phase1.control_plane.runs_pods",
                "phase1.etcd_volume.identity",
                "phase1.user_data.identity",
                "phase2.",
            ])
            .with("nftables rules", firewall::rules_of(cluster, &self.0.inventory, host)?.unwrap_or_default())
            .with("CSR approver", policy.unwrap_or_default().join(" "))
            .with("files and programs", format!("{:?}", Assets::find(cluster, &target)?))
            .with("group", format!("{:?}", target.record))
            .with("overrides of components", configuration::digest(cluster)?)
            .with("host", this.to_string())
            .with("API endpoint", format!("{:?}", self.0.inventory.api))
            .with("templates", cluster.source.digest("templates/bootstrap"))
            .with("artifacts", resolved)
            .with("facts", facts)
            .with("turnup", cluster.version()))
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        let name = &self.0.host(host)?.name;
        let Some(bytes) = self.0.cluster.store.read(file_of(name))? else {
            return Ok(Check::Drifted(format!("{} is missing", file_of(name))));
        };
        let (node_config, _) = self.0.computed(name)?;
        let same = serde_json::from_slice::<NodeConfig>(&bytes).is_ok_and(|found| found == node_config);
        Ok(if same { Check::Ok } else { Check::Drifted(format!("{} was changed", file_of(name))) })
    }

    fn run(&self, host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.simulate(host).map(drop)
    }

    fn simulate(&self, host: Option<&str>) -> Result<bool> {
        let name = &self.0.host(host)?.name;
        let (node_config, _) = self.0.computed(name)?;
        self.0.cluster.store.write_json(file_of(name), &node_config, 0o600).map(|()| true)
    }
}

/// The control-plane host becomes a node: etcd, API server, controller manager and scheduler run as
/// static pods.
struct Up(NodeContext);

impl Action for Up {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        self.0.node_inputs(host)
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        self.0.prove_host(host)
    }

    fn preview(&self, host: Option<&str>) -> Result<Preview> {
        self.0.preview_host(host)
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let host = self.0.host(host)?;
        let connection = HostConnection::new(&self.0.cluster, host, cx)?;
        connection.copy_turnup(&self.0.cluster)?;
        etcd_step::start(&self.0, host, cx, |etcd| {
            self.0.bring_up(&connection, FirstStart { etcd, ..FirstStart::default() }, cx)
        })?;
        if kubelet_certificate::is_of_former_item(&self.0.cluster, &connection)? {
            connection.relink_kubelet_certificate()?;
        }
        Ok(())
    }
}

/// The API server answers with the administrator's kubeconfig.
struct Api(NodeContext);

impl Action for Api {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let endpoint = format!("{:?}", self.0.inventory.api);
        let instances = self.0.inventory.control_plane_instances();
        let mut inputs = self.0.cluster.inputs(&[
            "phase2.kube_context_name",
            "phase2.kubeconfig.lifetime",
            "phase2.kubeconfig.merge",
            "phase2.kubeconfig.user",
        ]);
        inputs.insert("host instance", instances);
        inputs.insert("API endpoint", endpoint);
        // A changed manifest restarts the API server, which has to be waited for.
        for host in self.0.inventory.control_planes() {
            inputs.insert(format!("kube-apiserver of {}", host.name), self.0.api_manifest(&host.name)?);
        }
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        if let Some(fault) = credentials::find_fault(&self.0.cluster, &self.0.inventory)? {
            return Ok(Check::Drifted(fault));
        }
        let drifted = |error: Error| Check::Drifted(format!("the API server is not ready: {}", error.in_one_line()));
        Ok(kubectl(&self.0.cluster)?.ask_ready().map_or_else(drifted, |()| Check::Ok))
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        credentials::write_kubeconfig(&self.0.cluster, &self.0.inventory)?;
        let kubectl = kubectl(&self.0.cluster)?.within(cx);
        let waited = wait_until_ready(&kubectl, cx)?;
        cx.milestone("API server ready");
        if waited {
            // While there was no API server to talk to, kubelet's tries to register and to show its
            // static pods have backed off to seven seconds and a minute; a new start tries at once.
            // The static pods run on.
            for host in self.0.inventory.control_planes() {
                HostConnection::new(&self.0.cluster, host, cx)?.restart_kubelet()?;
            }
        }
        Ok(())
    }
}

/// The Node object is there, with labels, which a kubelet may not give itself, and taints.
struct LabelNodes(NodeContext);

impl LabelNodes {
    /// What the Node of this host is to carry; its own labels count more than those of its group,
    /// and these more than those of all nodes.
    fn metadata(&self, host: &Host) -> Result<NodeMetadata> {
        let (cluster, inventory) = (&self.0.cluster, &self.0.inventory);
        let record = groups::find_record(cluster, host)?;
        let own = [role_label::of(host.role), MANAGED.to_owned()].map(|label| (label, String::new()));
        let mut labels = cluster.settings.node_labels.clone();
        labels.extend(record.map(|record| record.labels.clone()).unwrap_or_default());
        labels.extend(host.node_labels().into_iter().chain(own));
        let runs_pods = host.role == Role::Worker
            || cluster.settings.control_plane.runs_pods
            || !groups::has_workers(cluster, inventory);
        let controller = cluster.settings.find_cloud_controller().filter(|_| host.role == Role::ControlPlane);
        if controller.is_some_and(|cloud| !runs_pods || !cloud.balances_control_plane()) {
            labels.insert(NO_BALANCER.to_owned(), String::new());
        }
        let of_role = (!runs_pods).then(node_metadata::control_plane_taint).into_iter();
        let of_group = record.map(|record| record.taints.clone()).unwrap_or_default();
        Ok(NodeMetadata::new(labels, of_role.chain(of_group).chain(host.taints.clone()).collect()))
    }
}

impl Action for LabelNodes {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.0.host(host)?;
        let cluster = self.0.inventory.control_plane_instances();
        let inputs = Inputs::new().with("host instance", &host.instance).with("cluster", cluster);
        Ok(inputs.with("labels and taints", format!("{:?}", self.metadata(host)?)))
    }

    fn verify(&self, host: Option<&str>) -> Result<Check> {
        let host = self.0.host(host)?;
        let carries = self.0.nodes.carries(&kubectl(&self.0.cluster)?, &host.name, &self.metadata(host)?);
        Ok(if carries.is_ok_and(|carries| carries) {
            Check::Ok
        } else {
            Check::Drifted(format!("the node {} is not registered with its labels and taints", host.name))
        })
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let host = self.0.host(host)?;
        let kubectl = kubectl(&self.0.cluster)?.within(cx);
        let now = node_metadata::wait_for(&kubectl, &host.name, cx)?;
        node_metadata::mark(&kubectl, &host.name, &now, &self.metadata(host)?)?;
        cx.milestone(format!("node {} registered", host.name));
        Ok(())
    }
}

/// Waits for the API server; returns whether it had to wait. While it starts, it may return errors
/// that only the operator could fix, such as that it knows no user; errors that last longer than
/// the start are real.
pub(super) fn wait_until_ready(kubectl: &Kubectl, cx: &Cx) -> Result<bool> {
    const STARTING: Duration = Duration::from_secs(10);
    let mut hopeless_since = None;
    let mut waited = false;
    while let Err(error) = kubectl.ask_ready() {
        waited = true;
        if error.class() == Class::Precondition {
            let since = *hopeless_since.get_or_insert_with(Instant::now);
            if since.elapsed() > STARTING.min(cx.remaining() / 2) {
                return Err(error);
            }
        } else {
            hopeless_since = None;
        }
        if cx.remaining() < Duration::from_secs(5) {
            if hopeless_since.is_some() {
                return Err(error);
            }
            let late = Error::transient("the API server does not become ready");
            let why = kubectl.run(&["get", "--raw=/readyz?verbose"]).err().unwrap_or(error);
            let late = why.evidence_lines().iter().cloned().fold(late, Error::evidence);
            return Err(late.hint("turnup status"));
        }
        cx.sleep(Duration::from_millis(100))?;
    }
    Ok(waited)
}
