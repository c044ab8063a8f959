//! The step `wait`: until every addon is rolled out and every node is Ready, with what is awaited
//! and why it does not come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bootstrap::{find_unanswered, kubectl};
use crate::error::{Class, Error, Result};
use crate::phase::{Action, Check, Cx, Inputs};

use super::context::AddonContext;
use super::evidence;
use super::observed::{Observed, Pod};
use super::rollout::Outlook;

/// Between two looks at the cluster.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a pod may show a reason that no waiting cures: images can still be on their way into a
/// new node.
const STUCK: Duration = Duration::from_secs(45);
/// From when on, and how often, it is looked whether a webhook holds everything up.
const WEBHOOKS: Duration = Duration::from_secs(20);
/// How long the API server may be away while we wait.
const AWAY: Duration = Duration::from_mins(1);

/// Until every addon is rolled out and every node is Ready.
pub(super) struct WaitForAddons(pub(super) Arc<AddonContext>);

impl Action for WaitForAddons {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let inputs = self.0.manifest_inputs(self.0.cluster_inputs()).with("network", self.0.has_network().to_string());
        let hosts = self.0.inventory.hosts.iter();
        Ok(hosts.fold(inputs, |inputs, host| inputs.with(format!("host {}", host.name), &host.instance)))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let outlook = self.0.outlook(&*self.0.look_once()?)?;
        Ok(outlook.missing.into_iter().next().map_or(Check::Ok, Check::Drifted))
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        self.0.forget_look();
        Waiting {
            context: &self.0,
            cx,
            told: Vec::new(),
            doing: String::new(),
            renewed: false,
            stuck_since: None,
            away_since: None,
            webhooks_at: Instant::now() + WEBHOOKS,
        }
        .run()
    }
}

/// One wait, with what it has already told.
struct Waiting<'a> {
    context: &'a AddonContext,
    cx: &'a Cx,
    told: Vec<String>,
    doing: String,
    renewed: bool,
    stuck_since: Option<Instant>,
    away_since: Option<Instant>,
    webhooks_at: Instant,
}

impl Waiting<'_> {
    fn run(mut self) -> Result<()> {
        loop {
            let started = Instant::now();
            if let Some(observed) = self.look()? {
                let outlook = self.context.outlook(&observed)?;
                self.tell(&outlook);
                if outlook.missing.is_empty() {
                    return Ok(());
                }
                self.renew(&observed)?;
                self.tell_webhooks();
                self.check_stuck(&observed, &outlook)?;
                if self.cx.remaining() < Duration::from_secs(10) {
                    let error = Error::transient("the addons do not become ready in time");
                    return Err(self.explain(error, &observed, &outlook));
                }
            }
            self.cx.sleep(POLL_INTERVAL.saturating_sub(started.elapsed()).max(POLL_INTERVAL / 4))?;
        }
    }

    /// What is there; nothing while the API server is away for a moment.
    fn look(&mut self) -> Result<Option<Observed>> {
        match self.context.look() {
            Ok(observed) => {
                self.away_since = None;
                Ok(Some(observed))
            }
            Err(error) => {
                let since = *self.away_since.get_or_insert_with(Instant::now);
                let passing = error.class() == Class::Transient && since.elapsed() < AWAY;
                if passing { Ok(None) } else { Err(error) }
            }
        }
    }

    fn tell(&mut self, outlook: &Outlook) {
        let nodes = outlook.ready_nodes.iter().map(|name| format!("node {name} Ready"));
        let dns = outlook.ready_addons.iter().any(|name| name == "coredns").then(|| "CoreDNS ready".to_owned());
        for milestone in nodes.chain(dns) {
            if !self.told.contains(&milestone) {
                self.cx.milestone(&*milestone);
                self.told.push(milestone);
            }
        }
        if let Some(first) = outlook.missing.first() {
            let doing = format!("waiting: {first}");
            if self.doing != doing {
                self.cx.progress(&*doing);
                self.doing = doing;
            }
        }
    }

    /// Names webhooks that must be asked and do not answer: they may be what is waited for.
    fn tell_webhooks(&mut self) {
        if Instant::now() < self.webhooks_at {
            return;
        }
        self.webhooks_at = Instant::now() + WEBHOOKS;
        let found = kubectl(&self.context.cluster).and_then(|kubectl| find_unanswered(&kubectl.within(self.cx)));
        // Whether the API answers is told elsewhere.
        for webhook in found.unwrap_or_default() {
            let said = webhook.advise();
            if !self.told.contains(&said) {
                self.cx.progress(&*said);
                self.told.push(said);
            }
        }
    }

    /// Gives pods of addons that were stuck before we came a fresh start, once: their cause may be
    /// repaired, but their back-off is long.
    fn renew(&mut self, observed: &Observed) -> Result<()> {
        if std::mem::replace(&mut self.renewed, true) {
            return Ok(());
        }
        let manifests = self.context.manifests()?;
        let is_ours = |pod: &&Pod| {
            let owner = pod.owner.as_deref().unwrap_or_default();
            manifests.iter().any(|manifest| owner == manifest.name || owner.starts_with(&format!("{}-", manifest.name)))
        };
        let names: Vec<&str> = observed
            .pods
            .iter()
            .filter(is_ours)
            .filter(|pod| pod.stuck().is_some())
            .map(|pod| pod.name.as_str())
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        self.cx.progress(format!("starting {} again", names.join(", ")));
        let options = ["delete", "pods", "--namespace=kube-system", "--ignore-not-found", "--wait=false"];
        let kubectl = kubectl(&self.context.cluster)?.within(self.cx);
        kubectl.run(&[&options[..], &names].concat()).map(drop)
    }

    fn check_stuck(&mut self, observed: &Observed, outlook: &Outlook) -> Result<()> {
        let Some((pod, why)) = observed.pods.iter().find_map(|pod| Some((pod, pod.stuck()?))) else {
            self.stuck_since = None;
            return Ok(());
        };
        if self.stuck_since.get_or_insert_with(Instant::now).elapsed() < STUCK {
            return Ok(());
        }
        let error = Error::permanent(format!("the pod {} cannot start: {why}", pod.name));
        Err(self.explain(error, observed, outlook))
    }

    fn explain(&self, error: Error, observed: &Observed, outlook: &Outlook) -> Error {
        let error = outlook.missing.iter().fold(error, Error::evidence);
        match kubectl(&self.context.cluster) {
            Ok(kubectl) => evidence::collect(error, &kubectl, "kube-system", &observed.pods),
            Err(_) => error,
        }
    }
}
