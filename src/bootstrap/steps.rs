//! The steps of the bootstrap phase, in the order of `phases/bootstrap/phase.toml`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::json;
use zeroize::Zeroizing;

use crate::artifacts::{Cache, Lock, Obtained};
use crate::change::{self, Change, Preview, Verb};
use crate::cluster::{Cluster, find_document};
use crate::document::{Document, Found};
use crate::error::{Class, Error, Result};
use crate::node::layout;
use crate::node::up::Delivery;
use crate::node::{Complete, Facts};
use crate::phase::{Action, Cx, Inputs, Phase, Proof};
use crate::provision::{Handoff, Host, Role};

use super::access::Access;
use super::api::{KUBECONFIG, Kubectl};
use super::assets::Assets;
use super::complete::{Completion, file_of};
use super::contents::Secrets;
use super::credentials;
use super::csr_approver::Policy;
use super::firewall;
use super::forecast::foresee_certificates;
use super::join::{HostCsrs, Join};
use super::machine;
use super::members::{Member, Members};
use super::membership::{self, Membership, Turns};
use super::node_groups::WaitForGroups;
use super::nodes::{self, Marks, Nodes};
use super::outfit::Seat;
use super::pki::{Authority, Leaf, Pki};
use super::reach::Reach;
use super::retire::Retire;

/// The phase for the hosts of the hand-off.
pub fn phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    let shared = || Arc::clone(cluster);
    let handoff = cluster.handoff()?;
    let (nodes, turns, csrs) = (Arc::new(Nodes::default()), Arc::new(Turns::default()), Arc::new(HostCsrs::default()));
    let step =
        || Node { cluster: shared(), handoff: handoff.clone(), nodes: Arc::clone(&nodes), turns: Arc::clone(&turns) };
    let mut manifest = cluster.manifest("bootstrap")?;
    // Nobody waits for hosts of groups where there are none.
    manifest.steps.retain(|step| step.name != "groups" || !handoff.groups.is_empty());
    let mut phase = cluster.phase("bootstrap", manifest, cluster.phase_hosts()?);
    phase.at_once = Members::count_at_once(&cluster.store, &handoff)?;
    Ok(phase
        .with("artifacts", Artifacts(step()))
        .with("pki", Certificates(step()))
        .with("members", Membership(step()))
        .with("inspect", Inspect(step()))
        .with("complete", Compute(step()))
        .with("control-plane", Up(step()))
        .with("api", Api(step()))
        .with("access", Access(step()))
        .with("groups", WaitForGroups(step()))
        .with("join", Join { node: step(), csrs })
        .with("register", Register(step()))
        .with("retire", Retire(step())))
}

/// The client of the cluster's API: kubectl of the cluster's own version with the administrator's kubeconfig.
pub fn kubectl(cluster: &Cluster) -> Result<Kubectl> {
    let program = cluster.obtained()?.path("kubectl")?;
    Ok(Kubectl::new(program, cluster.store.path(KUBECONFIG)))
}

/// The label of nodes that turnup made, and may delete when their host is gone.
pub(super) const MANAGED: &str = "turnup.dev/managed";

/// What all steps of this phase know.
pub(super) struct Node {
    pub(super) cluster: Arc<Cluster>,
    pub(super) handoff: Handoff,
    nodes: Arc<Nodes>,
    pub(super) turns: Arc<Turns>,
}

impl Node {
    pub(super) fn host(&self, name: Option<&str>) -> Result<&Host> {
        self.handoff.host(name.unwrap_or_default())
    }

    fn leaves(&self) -> Result<Vec<Leaf>> {
        let obtained = self.cluster.obtained()?;
        Completion { cluster: &self.cluster, handoff: &self.handoff, artifacts: &obtained }.leaves()
    }

    fn facts(&self, host: &str) -> Result<Facts> {
        match find_document(&self.cluster.store, &facts_file(host))? {
            Found::There(facts) => Ok(facts),
            _ => Err(Error::permanent(format!("{} is missing", facts_file(host))).hint("turnup bootstrap")),
        }
    }

    fn computed(&self, host: &str) -> Result<(Complete, Secrets)> {
        let facts = self.facts(host)?;
        let obtained = self.cluster.obtained()?;
        let completion = Completion { cluster: &self.cluster, handoff: &self.handoff, artifacts: &obtained };
        completion.complete(self.handoff.host(host)?, &facts)
    }

    /// What the work on one host depends on: which machine it is, and its complete configuration, secrets included by digest.
    pub(super) fn node_inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.host(host)?;
        let mut inputs = Inputs::new().with("host instance", &host.instance).with("turnup", self.cluster.version());
        let complete = match self.written_complete(&host.name)? {
            Ok(complete) => complete,
            Err(mark) => return Ok(inputs.with("complete configuration", mark)),
        };
        inputs.insert("Kubernetes version", &complete.kubernetes_version);
        inputs.extend(complete.files.iter().map(|file| (file.path.clone(), format!("{file:?}"))));
        inputs.extend(complete.units.iter().map(|unit| (unit.name.clone(), format!("{unit:?}"))));
        inputs.insert("binaries", format!("{:?}", complete.binaries));
        inputs.insert("images", format!("{:?}", complete.images));
        inputs.insert("kernel settings", format!("{:?} {:?}", complete.sysctls, complete.modules));
        Ok(inputs)
    }

    /// The API server's manifest as the host's complete configuration has it.
    fn api_manifest(&self, host: &str) -> Result<String> {
        Ok(self.written_complete(host)?.map_or_else(
            |mark| mark,
            |complete| {
                let manifest =
                    complete.files.iter().find(|file| layout::static_pod(&file.path) == Some("kube-apiserver"));
                manifest.map(|file| format!("{file:?}")).unwrap_or_default()
            },
        ))
    }

    /// The complete configuration that the step before has written; the mark that stands for it as long as it has not.
    fn written_complete(&self, host: &str) -> Result<std::result::Result<Complete, String>> {
        let bytes = self.cluster.store.read(file_of(host))?.unwrap_or_default();
        let complete = Complete::parse("", &String::from_utf8_lossy(&bytes));
        Ok(complete.map_err(|_| change::known_after(&format!("bootstrap/complete@{host}"))))
    }

    /// Asks the host itself whether it still is what it was made.
    pub(super) fn prove_host(&self, host: Option<&str>) -> Result<Proof> {
        let host = self.host(host)?;
        let (complete, _) = self.computed(&host.name)?;
        Ok(match Reach::for_proof(&self.cluster, host)?.differences(&complete) {
            Err(error) if error.class() == Class::Interrupted => return Err(error),
            Err(error) => Proof::Gone(format!("{} does not answer: {}", host.name, error.message())),
            Ok(changes) => changes.first().map_or(Proof::Holds, |change| Proof::Gone(change.describe_fault())),
        })
    }

    /// Everything that differs on a host, as far as there is one that can tell.
    pub(super) fn preview_host(&self, host: Option<&str>) -> Result<Preview> {
        let host = self.host(host)?;
        if let Some(step) = change::step_of_mark(&host.instance) {
            return Ok(Preview::after(step));
        }
        let inspected = Preview::after(format!("bootstrap/inspect@{}", host.name));
        let Ok((complete, _)) = self.computed(&host.name) else { return Ok(inspected) };
        match Reach::for_proof(&self.cluster, host)?.differences(&complete) {
            Ok(changes) => Ok(changes.into()),
            Err(error) if error.class() == Class::Interrupted => Err(error),
            // It does not answer, or has no turnup of this version yet.
            Err(_) => Ok(inspected),
        }
    }

    /// Looks at the host once more when a plan says what may change there.
    fn require_announced(reach: &Reach<'_>, complete: &Complete, cx: &Cx) -> Result<()> {
        if cx.is_bound() { cx.admit(&reach.differences(complete)?) } else { Ok(()) }
    }

    /// Brings one host, which has this turnup, to its complete configuration.
    pub(super) fn bring_up(
        &self,
        reach: &Reach<'_>,
        bootstrap_kubeconfig: Option<Zeroizing<String>>,
        cx: &Cx,
    ) -> Result<()> {
        let (complete, secrets) = self.computed(&reach.host().name)?;
        // Not by the facts of the inspection, which may be of another operator's run.
        firewall::require_way_in(&self.cluster, &self.handoff, reach.host(), reach.facts()?.client)?;
        Self::require_announced(reach, &complete, cx)?;
        let encode = |text: &Zeroizing<String>| {
            Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(text.as_bytes()))
        };
        let secrets = secrets.iter().map(|(name, text)| (name.clone(), encode(text))).collect();
        machine::deliver(reach, &Delivery { complete, secrets, bootstrap_kubeconfig }, cx)
    }
}

pub(super) fn facts_file(host: &str) -> String {
    format!("outputs/facts/{host}.json")
}

/// A document that a step of ours wrote; what is missing or of an older turnup is made anew, what is damaged or newer is an error.
fn prove_document<D: Document>(cluster: &Cluster, file: &str) -> Result<std::result::Result<D, Proof>> {
    Ok(match find_document(&cluster.store, file)? {
        Found::There(document) => Ok(document),
        Found::Missing => Err(Proof::Gone(format!("{file} is missing"))),
        Found::Older(schema) => Err(Proof::Gone(format!("{file} is of an older turnup ({schema})"))),
    })
}

/// Binaries and images into the cache.
struct Artifacts(Node);

impl Action for Artifacts {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let lock = Lock::load(&self.0.cluster.work_dir)?;
        let inputs = self.0.cluster.inputs(&["phase2.kubernetes_version", "phase2.artifacts"]);
        Ok(inputs.with("cluster.lock.json", lock.to_text()?))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        let obtained: Obtained = match prove_document(&self.0.cluster, Obtained::FILE)? {
            Ok(obtained) => obtained,
            Err(gone) => return Ok(gone),
        };
        let cache = Cache::open()?;
        Ok(match obtained.find_missing(&cache) {
            Some(name) => Proof::Gone(format!("{name} is no longer in the cache")),
            None => Proof::Holds,
        })
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0.cluster;
        let selection = Lock::load(&cluster.work_dir)?.select(&cluster.settings.kubernetes_version)?;
        let obtained = Obtained::obtain(&Cache::open()?, &selection, &cluster.settings.sources, cx)?;
        cluster.write_document(Obtained::FILE, &obtained, 0o600)
    }

    fn foresee(&self, _host: Option<&str>) -> Result<bool> {
        let cluster = &self.0.cluster;
        let selection = Lock::load(&cluster.work_dir)?.select(&cluster.settings.kubernetes_version)?;
        let cache = Cache::locate().ok();
        let expected = Obtained::expected(&selection, &cluster.settings.sources, None, cache.as_ref());
        cluster.write_document(Obtained::FILE, &expected, 0o600).map(|()| true)
    }
}

/// Authorities, keys and certificates.
struct Certificates(Node);

impl Action for Certificates {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let leaves = self.0.leaves();
        let leaves = leaves.map(|leaves| format!("{leaves:?}"));
        let leaves = leaves.unwrap_or_else(|_| change::known_after("bootstrap/artifacts"));
        Ok(Inputs::new().with("names and addresses", leaves))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        let pki = Pki::new(&self.0.cluster.store);
        for leaf in self.0.leaves()? {
            if !pki.is_good(&leaf)? {
                return Ok(Proof::Gone(format!("pki/{}.crt is missing, does not fit, or ends its life", leaf.file)));
            }
        }
        Ok(Proof::Holds)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0.cluster;
        cluster.store.create_dir("pki")?;
        let pki = Pki::new(&cluster.store);
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
        let pki = Pki::new(&self.0.cluster.store);
        let mut changes = Vec::new();
        for leaf in self.0.leaves()? {
            if !pki.is_good(&leaf)? {
                let known = self.0.cluster.store.read(format!("pki/{}.crt", leaf.file))?.is_some();
                changes.push(Change::new(if known { Verb::Replace } else { Verb::Create }, "certificate", leaf.file));
            }
        }
        Ok(changes.into())
    }

    fn foresee(&self, _host: Option<&str>) -> Result<bool> {
        foresee_certificates(&self.0.cluster, &self.0.leaves()?).map(|()| true)
    }
}

/// turnup on the host, and what it finds there.
struct Inspect(Node);

impl Action for Inspect {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.0.host(host)?;
        Ok(Inputs::new().with("host instance", &host.instance).with("turnup", self.0.cluster.version()))
    }

    fn verify(&self, host: Option<&str>) -> Result<Proof> {
        let file = facts_file(&self.0.host(host)?.name);
        Ok(match prove_document::<Facts>(&self.0.cluster, &file) {
            Ok(proof) => proof.map_or_else(|gone| gone, |_| Proof::Holds),
            Err(_) => Proof::Gone(format!("{file} is damaged")),
        })
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let host = self.0.host(host)?;
        let facts = machine::inspect(&self.0.cluster, host, cx)?;
        firewall::require_way_in(&self.0.cluster, &self.0.handoff, host, facts.client)?;
        self.0.cluster.write_document(&facts_file(&host.name), &facts, 0o600)
    }
}

/// The complete configuration of a node, as a file to read.
struct Compute(Node);

impl Action for Compute {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.0.host(host)?;
        let cluster = &self.0.cluster;
        let facts = self.0.facts(&host.name).map(|facts| facts.fingerprint());
        let facts = facts.unwrap_or_else(|_| change::known_after(&format!("bootstrap/inspect@{}", host.name)));
        let obtained = cluster.store.read(Obtained::FILE)?;
        let obtained = obtained.unwrap_or_else(|| change::known_after("bootstrap/artifacts").into_bytes());
        // Of the other hosts only their number matters, whether the control plane is kept free of pods, and to the nftables rules
        // their addresses. Certificates are no input: what they say follows from the rest, and `verify` sees one that was renewed.
        let workers = self.0.handoff.hosts.iter().any(|host| host.role == Role::Worker);
        let this = if host.role == Role::ControlPlane {
            let members = Members::read(cluster, &self.0.handoff)?;
            json!([host, workers, members.get(&host.name).map(Member::first_start).unwrap_or_default()])
        } else {
            json!(host)
        };
        let policy = Policy::find(host.role, cluster, &self.0.handoff)?.map(|policy| policy.flags());
        Ok(cluster
            .inputs(&["phase1.cluster_name", "phase2."])
            .with("nftables rules", firewall::rules_of(cluster, &self.0.handoff, host)?.unwrap_or_default())
            .with("CSR approver", policy.unwrap_or_default().join(" "))
            .with("files and programs", format!("{:?}", Assets::find(cluster, &Seat::of_host(host, ""))?))
            .with("host", this.to_string())
            .with("API endpoint", format!("{:?}", self.0.handoff.api))
            .with("templates", cluster.source.digest("templates/bootstrap"))
            .with("artifacts", obtained)
            .with("facts", facts)
            .with("turnup", cluster.version()))
    }

    fn verify(&self, host: Option<&str>) -> Result<Proof> {
        let name = &self.0.host(host)?.name;
        let Some(bytes) = self.0.cluster.store.read(file_of(name))? else {
            return Ok(Proof::Gone(format!("{} is missing", file_of(name))));
        };
        let (complete, _) = self.0.computed(name)?;
        let same = serde_json::from_slice::<Complete>(&bytes).is_ok_and(|found| found == complete);
        Ok(if same { Proof::Holds } else { Proof::Gone(format!("{} was changed", file_of(name))) })
    }

    fn run(&self, host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.foresee(host).map(drop)
    }

    fn foresee(&self, host: Option<&str>) -> Result<bool> {
        let name = &self.0.host(host)?.name;
        let (complete, _) = self.0.computed(name)?;
        self.0.cluster.store.write_json(file_of(name), &complete, 0o600).map(|()| true)
    }
}

/// The control-plane host becomes a node: etcd, API server, controller manager and scheduler run as static pods.
struct Up(Node);

impl Action for Up {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        self.0.node_inputs(host)
    }

    fn verify(&self, host: Option<&str>) -> Result<Proof> {
        self.0.prove_host(host)
    }

    fn preview(&self, host: Option<&str>) -> Result<Preview> {
        self.0.preview_host(host)
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let host = self.0.host(host)?;
        let reach = Reach::new(&self.0.cluster, host, cx)?;
        reach.copy_turnup(&self.0.cluster)?;
        membership::start(&self.0, host, cx, || self.0.bring_up(&reach, None, cx))
    }
}

/// The API server answers with the administrator's kubeconfig.
struct Api(Node);

impl Action for Api {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let endpoint = format!("{:?}", self.0.handoff.api);
        let instances = self.0.handoff.control_plane_instances();
        let mut inputs = self.0.cluster.inputs(&["phase2.kubeconfig.lifetime", "phase2.kubeconfig.user"]);
        inputs.insert("host instance", instances);
        inputs.insert("API endpoint", endpoint);
        // With another manifest the API server starts anew, and is to be waited for.
        for host in self.0.handoff.control_planes() {
            inputs.insert(format!("kube-apiserver of {}", host.name), self.0.api_manifest(&host.name)?);
        }
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        if let Some(fault) = credentials::find_fault(&self.0.cluster, &self.0.handoff)? {
            return Ok(Proof::Gone(fault));
        }
        let ready = kubectl(&self.0.cluster)?.is_ready();
        Ok(if ready { Proof::Holds } else { Proof::Gone("the API server does not answer".into()) })
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        credentials::write_kubeconfig(&self.0.cluster, &self.0.handoff)?;
        let kubectl = kubectl(&self.0.cluster)?.within(cx);
        let waited = wait_until_ready(&kubectl, cx)?;
        cx.milestone("API server ready");
        if waited {
            // While there was no API server to talk to, kubelet's tries to register and to show its static pods have backed off to
            // seven seconds and a minute; a new start tries at once. The static pods run on.
            for host in self.0.handoff.control_planes() {
                Reach::new(&self.0.cluster, host, cx)?.restart_kubelet()?;
            }
        }
        Ok(())
    }
}

/// The Node object is there, with labels, which a kubelet may not give itself, and taints.
struct Register(Node);

impl Action for Register {
    fn inputs(&self, host: Option<&str>) -> Result<Inputs> {
        let host = self.0.host(host)?;
        let cluster = self.0.handoff.control_plane_instances();
        let inputs = Inputs::new().with("host instance", &host.instance).with("cluster", cluster);
        Ok(inputs.with("labels and taints", format!("{:?}", marks(host))))
    }

    fn verify(&self, host: Option<&str>) -> Result<Proof> {
        let host = self.0.host(host)?;
        let carries = self.0.nodes.carries(&kubectl(&self.0.cluster)?, &host.name, &marks(host));
        Ok(if carries.is_ok_and(|carries| carries) {
            Proof::Holds
        } else {
            Proof::Gone(format!("the node {} is not registered with its labels and taints", host.name))
        })
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let host = self.0.host(host)?;
        let kubectl = kubectl(&self.0.cluster)?.within(cx);
        let now = nodes::wait_for(&kubectl, &host.name, cx)?;
        nodes::mark(&kubectl, &host.name, &now, &marks(host))?;
        cx.milestone(format!("node {} registered", host.name));
        Ok(())
    }
}

/// What the Node of this host is to carry.
fn marks(host: &Host) -> Marks {
    let role = format!("node-role.kubernetes.io/{}", host.role.name());
    let own = [role, MANAGED.to_owned()].map(|label| (label, String::new()));
    Marks::new(host.node_labels().into_iter().chain(own).collect(), host.taints.clone())
}

/// Waits for the API server; whether there was anything to wait for. While it starts, it may say things that only a person could
/// change, such as that it knows nobody; said for longer than that takes, they are true.
fn wait_until_ready(kubectl: &Kubectl, cx: &Cx) -> Result<bool> {
    const STARTING: Duration = Duration::from_secs(10);
    let mut hopeless_since = None;
    let mut waited = false;
    while let Err(error) = kubectl.ask_ready() {
        waited = true;
        if error.class() == Class::Person {
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
