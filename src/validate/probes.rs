//! Probe pods: a small HTTP server on every node that asks its neighbour, the Service of all, and
//! the cluster's DNS.
//!
//! The requests are made by the pods themselves (`agnhost netexec`, /dial); they are told to
//! through the API server's proxy.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minijinja::{Environment, UndefinedBehavior, context};
use serde_json::Value;

use crate::addons::collect_evidence;
use crate::addons::observed::{Observed, Pod};
use crate::bootstrap::{APPLY, Kubectl, with_unanswered};
use crate::cluster::Cluster;
use crate::error::{Class, Context as _, Error, Result};
use crate::phase::Cx;

use super::report::CheckResult;

/// Between two looks at the cluster.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(150);
/// Between two attempts to create the pods.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// What the names of our namespaces begin with.
const PREFIX: &str = "turnup-validate-";
const FILE: &str = "validate/probes.yaml";
const TEMPLATE: &str = "templates/validate/probes.yaml";
/// The port of the server in every pod.
const PORT: u16 = 8080;
/// The longest life of a validation; its pods end by themselves after this time
/// (`activeDeadlineSeconds`).
const LIFE_SECONDS: i64 = 900;
/// How many requests are under way at once.
const PARALLEL: usize = 4;
/// Beside the patience: the start of the pods, and for many nodes more, because every answer costs
/// a call.
const START: Duration = Duration::from_secs(30);
const PATIENCE_PER_NODE: Duration = Duration::from_millis(100);

/// One probe pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) name: String,
    pub(super) node: String,
    /// The index of the probe that it asks directly.
    pub(super) neighbour: usize,
}

/// What a probe asks for, each needing what comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// Another pod by its address.
    Pod,
    /// The Service by its address.
    Service,
    /// The Service by its name.
    Name,
}

/// Where probes and Service can be reached by now.
#[derive(Debug, Default)]
struct Addresses {
    pods: BTreeMap<String, String>,
    service: Option<String>,
}

/// The probe pods of one validation.
pub(super) struct Probes<'a> {
    cluster: &'a Cluster,
    kubectl: &'a Kubectl,
    cx: &'a Cx,
    /// One of its own for every validation: the one before may still be going away.
    namespace: String,
    pods: Vec<Probe>,
    deadline: Instant,
    answered: AtomicBool,
}

impl<'a> Probes<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        nodes: &[String],
        kubectl: &'a Kubectl,
        cx: &'a Cx,
        patience: Duration,
    ) -> Result<Self> {
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let mut random = [0; 3];
        getrandom::fill(&mut random).map_err(|error| Error::permanent(format!("no random numbers: {error}")))?;
        let namespace = format!("{PREFIX}{}", hex::encode(random));
        let probes = Self {
            cluster,
            kubectl,
            cx,
            namespace,
            pods: place(&nodes),
            deadline: Instant::now()
                + patience
                + START
                + PATIENCE_PER_NODE * u32::try_from(nodes.len()).unwrap_or(u32::MAX),
            answered: AtomicBool::new(false),
        };
        cluster.store.write_file(FILE, probes.render()?.as_bytes(), 0o600)?;
        Ok(probes)
    }

    fn render(&self) -> Result<String> {
        let image = self.cluster.resolved()?.reference("agnhost")?;
        render(&self.cluster.source.read_text(TEMPLATE)?, &self.namespace, &self.pods, &image)
    }

    /// Creates them. What the API server cannot take yet it may take later: after a power cut the
    /// pods of a webhook of the user's come up with all others.
    pub(super) fn start(&self) -> Result<()> {
        let file = format!("--filename={}", self.cluster.store.path(FILE).display());
        // kubectl's own look at the fields takes longer than all the rest, and the file is ours.
        let mut tried = self.kubectl.run(&["create", "--validate=ignore", &file]);
        while let Err(error) = tried {
            if error.class() != Class::Transient || Instant::now() >= self.deadline {
                return Err(with_unanswered(error, self.kubectl).hint("turnup status"));
            }
            self.cx.progress("the probe pods, once the API server takes them");
            self.cx.sleep(RETRY_INTERVAL)?;
            // Some of them may be there.
            tried = self.kubectl.run(&[&APPLY[..], &["--validate=ignore", &file]].concat());
        }
        Ok(())
    }

    /// Removes them, even after a signal, and what validations that were killed have left. The
    /// cluster finishes it by itself.
    pub(super) fn remove(&self) -> Result<()> {
        let mut args = vec!["delete", "namespace", "--ignore-not-found", "--wait=false", &self.namespace];
        let left = if self.cx.check().is_err() { Vec::new() } else { self.find_left() };
        args.extend(left.iter().map(String::as_str));
        let run = self.kubectl.command(&args).timeout(Duration::from_secs(30)).cleanup();
        run.succeed().map(drop).map_err(|error| error.hint(format!("kubectl delete namespace {}", self.namespace)))
    }

    /// Namespaces of validations that cannot be under way any more.
    fn find_left(&self) -> Vec<String> {
        let Ok(list) = self.kubectl.get(&["namespaces", "--selector=app.kubernetes.io/managed-by=turnup"]) else {
            return Vec::new();
        };
        left_over(&list, jiff::Timestamp::now())
    }

    /// Asks until every question is answered or the time is over.
    pub(super) fn check(&self) -> Result<Vec<CheckResult>> {
        let mut open = self.questions();
        let mut checks = BTreeMap::new();
        let mut seen = BTreeMap::new();
        let (observed, addresses) = loop {
            let (observed, addresses) = self.look()?;
            let is_over =
                |probe: usize| observed.pods.iter().any(|pod| pod.name == self.pods[probe].name && pod.is_over());
            for (task, answer) in self.ask_all(&open, &addresses) {
                match answer {
                    Ok(answer) => drop(checks.insert(task, self.passed(task, &answer))),
                    Err(why) => drop(seen.insert(task, why)),
                }
            }
            open.retain(|task| !checks.contains_key(task));
            let over = Instant::now() > self.deadline || self.cx.remaining() < Duration::from_secs(10);
            if over || open.iter().all(|task| self.needs(*task).into_iter().any(is_over)) {
                break (observed, addresses);
            }
            self.cx.sleep(POLL_INTERVAL)?;
        };
        let down: Vec<usize> =
            (0..self.pods.len()).filter(|probe| !addresses.pods.contains_key(&self.pods[*probe].name)).collect();
        let mut all: Vec<CheckResult> =
            down.iter().map(|probe| self.not_running(&self.pods[*probe], &observed)).collect();
        // A pod that does not run is said once, not for everything that it cannot do.
        open.retain(|task| !self.needs(*task).iter().any(|probe| down.contains(probe)));
        for task in open {
            let why = seen.get(&task).map_or("no answer", String::as_str);
            checks.insert(task, self.failed(task, why, &addresses));
        }
        all.extend(checks.into_values());
        Ok(all)
    }

    /// The probes that must run before this can be asked.
    fn needs(&self, (question, probe): (Question, usize)) -> Vec<usize> {
        if question == Question::Pod { vec![probe, self.pods[probe].neighbour] } else { vec![probe] }
    }

    /// Names first: the first answer of the cluster's DNS is what people wait for. What is switched
    /// off is not asked for.
    fn questions(&self) -> Vec<(Question, usize)> {
        let (services, names) = (self.cluster.settings.addons.kube_proxy, self.cluster.settings.addons.dns);
        let all = 0..self.pods.len();
        let of = |question: Question| all.clone().map(move |probe| (question, probe));
        let all = of(Question::Name).chain(of(Question::Service)).chain(of(Question::Pod));
        let is_on = |question: Question| match question {
            Question::Name => names && services,
            Question::Service => services,
            Question::Pod => true,
        };
        all.filter(|(question, _)| is_on(*question)).collect()
    }

    fn look(&self) -> Result<(Observed, Addresses)> {
        let list = match self.kubectl.get(&["pods,services", "--namespace", &self.namespace]) {
            Ok(list) => list,
            Err(error) if error.class() == Class::Transient && Instant::now() < self.deadline => Value::Null,
            Err(error) => return Err(error),
        };
        let observed = Observed::parse(&list);
        let running = observed.pods.iter().filter(|pod| pod.ready);
        let pods = running.filter_map(|pod| Some((pod.name.clone(), pod.address.clone()?))).collect();
        let mut services = list["items"].as_array().into_iter().flatten().filter(|item| item["kind"] == "Service");
        let service = services.find_map(|item| item["spec"]["clusterIP"].as_str()).map(str::to_owned);
        Ok((observed, Addresses { pods, service }))
    }

    /// Asks everything that can be asked by now, a few questions at a time.
    fn ask_all(
        &self,
        open: &[(Question, usize)],
        addresses: &Addresses,
    ) -> Vec<((Question, usize), Result<String, String>)> {
        let askable = open.iter().filter(|(question, probe)| self.target(*question, *probe, addresses).is_some());
        let tasks = Mutex::new(askable.copied());
        let answers = Mutex::new(Vec::new());
        let next = || tasks.lock().ok().and_then(|mut tasks| tasks.next());
        let work = || {
            while let Some((question, probe)) = next() {
                let target = self.target(question, probe, addresses).unwrap_or_default();
                let answer = self.ask(question, &self.pods[probe], &target);
                if let Ok(mut answers) = answers.lock() {
                    answers.push(((question, probe), answer));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..PARALLEL {
                scope.spawn(work);
            }
        });
        answers.into_inner().unwrap_or_default()
    }

    /// Host and port to dial; nothing as long as one of both ends is not there.
    fn target(&self, question: Question, probe: usize, addresses: &Addresses) -> Option<String> {
        let probe = &self.pods[probe];
        addresses.pods.get(&probe.name)?;
        let pair = |host: &str, port: u16| format!("host={host}&port={port}");
        match question {
            Question::Name => Some(pair("probe", 80)),
            Question::Service => Some(pair(addresses.service.as_ref()?, 80)),
            Question::Pod => Some(pair(addresses.pods.get(&self.pods[probe.neighbour].name)?, PORT)),
        }
    }

    fn ask(&self, question: Question, probe: &Probe, target: &str) -> Result<String, String> {
        let pod = format!("/api/v1/namespaces/{}/pods/{}:{PORT}/proxy", self.namespace, probe.name);
        let path = format!("{pod}/dial?{target}&protocol=http&request=hostname&tries=1");
        let said = self.kubectl.run(&["get", "--raw", &path]).map_err(|error| last_line(&error))?;
        let answer = read_answer(&said);
        // A name that leads to an address is an answer of the DNS server, whether or not a server
        // listens there already.
        if question == Question::Name && !self.answered.swap(true, Ordering::Relaxed) {
            self.cx.milestone("first pod answers DNS");
        }
        answer
    }

    fn passed(&self, (question, probe): (Question, usize), answer: &str) -> CheckResult {
        let probe = &self.pods[probe];
        let seen = self.pods.iter().find(|other| other.name == answer).map_or(answer, |other| &other.node);
        CheckResult::passed(question.name(), &probe.node, format!("{} {}", question.success(), seen))
    }

    fn failed(&self, (question, index): (Question, usize), why: &str, addresses: &Addresses) -> CheckResult {
        let probe = &self.pods[index];
        let logs = |what: &str| format!("kubectl --namespace=kube-system logs {what} --tail=20");
        let neighbour = &self.pods[probe.neighbour];
        let (to, port) = match question {
            Question::Name => ("probe".to_owned(), 80),
            Question::Service => (addresses.service.clone().unwrap_or_default(), 80),
            Question::Pod => (addresses.pods.get(&neighbour.name).cloned().unwrap_or_default(), PORT),
        };
        let why = self.connect(probe, &format!("{to}:{port}")).unwrap_or_else(|| why.to_owned());
        let (seen, next) = match question {
            Question::Name => {
                (format!("a pod cannot reach the Service `probe` by its name: {why}"), logs("deployment/coredns"))
            }
            Question::Service => {
                (format!("a pod cannot reach the Service address {to}: {why}"), logs("daemonset/kube-proxy"))
            }
            Question::Pod => {
                (format!("a pod cannot reach {to} on {}: {why}", neighbour.node), logs("daemonset/flannel"))
            }
        };
        CheckResult::failed(question.name(), &probe.node, seen, next)
    }

    fn not_running(&self, probe: &Probe, observed: &Observed) -> CheckResult {
        let pod = observed.pods.iter().find(|pod| pod.name == probe.name);
        let seen = pod.map_or_else(|| format!("the pod {} is gone", probe.name), |pod| self.explain_pod(pod));
        CheckResult::failed("probe pod", &probe.node, seen, format!("kubectl describe node {}", probe.node))
    }

    fn explain_pod(&self, pod: &Pod) -> String {
        let error = collect_evidence(
            Error::permanent(pod.describe()),
            self.kubectl,
            &self.namespace,
            std::slice::from_ref(pod),
        );
        let mine = error.evidence_lines().iter().rfind(|line| line.contains(&pod.name)).cloned();
        mine.map_or_else(|| pod.describe(), |line| format!("{}; {line}", pod.describe()))
    }

    /// What the pod itself says about this connection: refused, timed out, name not found.
    fn connect(&self, probe: &Probe, to: &str) -> Option<String> {
        let args =
            ["exec", &probe.name, "--namespace", &self.namespace, "--", "/agnhost", "connect", to, "--timeout=3s"];
        let failure = self.kubectl.command(&args).timeout(Duration::from_secs(20)).output().err()?;
        let said =
            failure.stderr().lines().find(|line| !line.trim().is_empty() && !line.contains("command terminated"))?;
        Some(said.trim().to_owned())
    }
}

impl Question {
    const fn name(self) -> &'static str {
        match self {
            Self::Pod => "pod to pod",
            Self::Service => "pod to Service",
            Self::Name => "name of a Service",
        }
    }

    const fn success(self) -> &'static str {
        match self {
            Self::Pod => "answered by a pod on",
            Self::Service => "its address answered from",
            Self::Name => "resolved, and answered from",
        }
    }
}

pub(super) fn left_over(namespaces: &Value, now: jiff::Timestamp) -> Vec<String> {
    let is_old = |metadata: &Value| {
        let created: Option<jiff::Timestamp> =
            metadata["creationTimestamp"].as_str().and_then(|text| text.parse().ok());
        created.is_some_and(|created| now.duration_since(created).as_secs() > LIFE_SECONDS)
    };
    let all = namespaces["items"].as_array().into_iter().flatten().map(|item| &item["metadata"]);
    let old = all.filter(|metadata| metadata.get("deletionTimestamp").is_none() && is_old(metadata));
    old.filter_map(|metadata| metadata["name"].as_str())
        .filter(|name| name.starts_with(PREFIX))
        .map(str::to_owned)
        .collect()
}

/// One probe a node, each asking one on another node; a single node gets two.
pub(super) fn place(nodes: &[&str]) -> Vec<Probe> {
    let nodes = if let [only] = nodes { vec![*only, *only] } else { nodes.to_vec() };
    let count = nodes.len();
    let place = |(index, node): (usize, &&str)| Probe {
        name: format!("probe-{index}"),
        node: (*node).to_owned(),
        neighbour: (index + 1) % count,
    };
    nodes.iter().enumerate().map(place).collect()
}

pub(super) fn render(template: &str, namespace: &str, probes: &[Probe], image: &str) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let pods: Vec<minijinja::Value> =
        probes.iter().map(|probe| context! { name => &probe.name, node => &probe.node }).collect();
    let values = context! { namespace, image, pods };
    Ok(environment.render_str(template, &values).context(format!("cannot render {TEMPLATE}"))? + "\n")
}

/// The answer of /dial: `{"responses": ["probe-1"]}` or `{"errors": ["… connection refused"]}`.
pub(super) fn read_answer(text: &str) -> Result<String, String> {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    match (answer["responses"][0].as_str(), answer["errors"][0].as_str()) {
        (Some(response), _) => Ok(response.to_owned()),
        (None, Some(error)) => Err(error.to_owned()),
        (None, None) => Err(format!("an unexpected answer: {}", text.trim())),
    }
}

fn last_line(error: &Error) -> String {
    error.evidence_lines().last().map_or_else(|| error.message(), String::as_str).to_owned()
}
