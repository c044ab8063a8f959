//! The cluster's API through the real kubectl of the cluster's own version. The user can repeat
//! every call.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::{MemoryFile, Run, signals};
use crate::phase::Cx;

pub use crate::cluster::KUBECONFIG;

/// kubectl with one kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// The API server to ask in place of the kubeconfig's own.
    server: Option<String>,
    /// What the kubeconfig's path leads to where that is no file of a disk.
    _held: Option<MemoryFile>,
    log: Option<PathBuf>,
    deadline: Option<Instant>,
}

/// The client of the cluster's API: kubectl of the cluster's own version with the administrator's
/// kubeconfig.
pub fn kubectl(cluster: &Cluster) -> Result<Kubectl> {
    let program = cluster.resolved()?.path(&cluster.cache()?, "kubectl")?;
    Ok(Kubectl::new(program, cluster.store.path(KUBECONFIG)).reach(cluster))
}

/// Another control-plane host, where the kubeconfig names the first one and that is away: nothing
/// leads clients to all of them then.
fn find_other_server(cluster: &Cluster) -> Option<String> {
    let inventory = cluster.find_inventory().ok().flatten().filter(|inventory| inventory.api.node_balancer)?;
    let (own, port) = (inventory.api.host.parse::<IpAddr>().ok()?, inventory.api.port);
    let hosts: Vec<IpAddr> = inventory.control_planes().map(|host| host.address).collect();
    let answers =
        |address: &IpAddr| TcpStream::connect_timeout(&SocketAddr::new(*address, port), Duration::from_secs(1)).is_ok();
    if !hosts.contains(&own) || answers(&own) {
        return None;
    }
    let other = hosts.into_iter().find(|address| *address != own && answers(address))?;
    Some(format!("https://{other}:{port}"))
}

/// Whether a pod has come to its end and runs no more.
pub(super) fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// The longest that one call may take. It asks the server to answer within 20 s; a kubectl that
/// hangs for another reason must not hang us.
const LIMIT: Duration = Duration::from_mins(2);

/// A server-side apply with turnup as the field manager, which reverts changes by other clients;
/// for arguments that follow.
pub const APPLY: [&str; 4] = ["apply", "--server-side", "--field-manager=turnup", "--force-conflicts"];

impl Kubectl {
    /// `program` is the artifact; `kubeconfig` the file to use.
    #[must_use]
    pub fn new(program: PathBuf, kubeconfig: PathBuf) -> Self {
        Self { program, kubeconfig, server: None, _held: None, log: None, deadline: None }
    }

    /// Asks another control-plane host where the kubeconfig's own is away.
    pub(super) fn reach(mut self, cluster: &Cluster) -> Self {
        self.server = find_other_server(cluster);
        self
    }

    /// With a kubeconfig that is gone with the last clone of this.
    pub(super) fn in_memory(program: PathBuf, kubeconfig: MemoryFile) -> Self {
        let path = kubeconfig.path();
        Self { _held: Some(kubeconfig), ..Self::new(program, path) }
    }

    /// For a step: appends every call and its output to the step's log, and ends with the step's
    /// time.
    #[must_use]
    pub fn within(mut self, cx: &Cx) -> Self {
        self.log = Some(cx.log_path().to_owned());
        self.deadline = Some(Instant::now() + cx.remaining());
        self
    }

    /// No call takes longer than until then.
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.deadline = Some(end);
        self
    }

    /// A run with these arguments.
    pub fn command<S: AsRef<str>>(&self, args: &[S]) -> Run {
        let run = Run::new(&self.program)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .args(self.server.iter().map(|server| format!("--server={server}")))
            .arg("--request-timeout=20s")
            .args(args.iter().map(AsRef::as_ref))
            .dir("/")
            .timeout(self.deadline.map_or(LIMIT, |end| LIMIT.min(end.saturating_duration_since(Instant::now()))))
            .label(format!("kubectl {}", args.first().map_or("", |arg| arg.as_ref())));
        match &self.log {
            Some(log) => run.log(log),
            None => run,
        }
    }

    /// Runs and returns standard output.
    pub fn run<S: AsRef<str>>(&self, args: &[S]) -> Result<String> {
        self.ask_until_granted(|| self.command(args))
    }

    /// Runs with these bytes as standard input; used for objects that hold secrets and for
    /// everything that is not a file.
    pub fn run_with<S: AsRef<str>>(&self, args: &[S], stdin: &str) -> Result<String> {
        self.ask_until_granted(|| self.command(args).stdin(stdin))
    }

    /// Runs again while RBAC refuses: an API server that has just started knows no role binding
    /// yet and refuses everything, whichever of several the load balancer leads to. What was
    /// refused changed nothing.
    fn ask_until_granted(&self, command: impl Fn() -> Run) -> Result<String> {
        let start = Instant::now();
        loop {
            match self.ask(command()) {
                Err(error) if is_refused(error.evidence_lines()) && start.elapsed() < REFUSED_AT_START => {
                    signals::sleep(Duration::from_secs(1))?;
                }
                answer => return answer,
            }
        }
    }

    /// Runs once and returns standard output: for a question to which a refusal is an answer.
    pub(super) fn run_once<S: AsRef<str>>(&self, args: &[S]) -> Result<String> {
        self.ask(self.command(args))
    }

    fn ask(&self, command: Run) -> Result<String> {
        command.succeed().map(|output| output.stdout).map_err(|error| classify(error, &self.kubeconfig))
    }

    /// Applies a manifest on the server, with turnup as the field manager: changes by other clients
    /// are reverted.
    pub fn apply(&self, manifest: &str) -> Result<()> {
        self.run_with(&[&APPLY[..], &["--filename=-"]].concat(), manifest).map(drop)
    }

    /// Changes these fields of a Node; what is null is taken away.
    pub(super) fn patch_node(&self, node: &str, patch: &Value) -> Result<()> {
        self.run(&["patch", "node", node, "--type=merge", &format!("--patch={patch}")]).map(drop)
    }

    /// Runs and parses standard output as JSON.
    pub fn get<S: AsRef<str>>(&self, args: &[S]) -> Result<Value> {
        let mut all = vec!["get", "--output=json"];
        all.extend(args.iter().map(AsRef::as_ref));
        serde_json::from_str(&self.run(&all)?).context("kubectl get did not print JSON")
    }

    /// Whether the API server would let this user do anything at all.
    pub(super) fn may_do_everything(&self) -> Result<bool> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}},
        });
        // To validate, kubectl would look for what a user without rights may not see.
        let args = ["create", "--validate=false", "--output=json", "--filename=-"];
        let answer = match self.ask(self.command(&args).stdin(review.to_string())) {
            // Even this question is a right, which every user has by Kubernetes' own role bindings.
            Err(error) if is_refused(error.evidence_lines()) => return Ok(false),
            answer => answer?,
        };
        let answer: Value = serde_json::from_str(&answer).context("kubectl create did not print JSON")?;
        Ok(answer["status"]["allowed"] == true)
    }

    /// Whether the API server says that it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ask_ready().is_ok()
    }

    /// The same, with the reason when it does not.
    pub fn ask_ready(&self) -> Result<()> {
        let answer = self.run(&["get", "--raw=/readyz"])?;
        if answer.trim() == "ok" {
            Ok(())
        } else {
            Err(Error::transient("the API server is not ready").evidence(answer))
        }
    }
}

/// What kubectl says about a kubeconfig that it cannot use; without one it asks this machine's port
/// 8080.
const UNUSABLE: [&str; 5] =
    ["localhost:8080", "error loading config file", "invalid configuration", "unknown authority", "must be logged in"];
/// What it says about a server that is starting, restarting, busy or away.
const PASSING: [&str; 18] = [
    "connection refused",
    "was refused",
    "no route to host",
    "i/o timeout",
    "deadline exceeded",
    "Client.Timeout exceeded",
    "connection reset",
    "network is unreachable",
    "no such host",
    "InternalError",
    "readyz check failed",
    "EOF",
    "TLS handshake timeout",
    "ServiceUnavailable",
    "too many requests",
    "etcdserver",
    "the object has been modified",
    "not yet ready",
];

/// What it says when certificates are of another time: those of turnup are new, so a clock is
/// wrong.
const CLOCK: [&str; 2] = ["certificate has expired or is not yet valid", "certificate is not valid yet"];

/// For so long a refusal may be that of an API server that has just started.
const REFUSED_AT_START: Duration = Duration::from_secs(30);

/// Whether RBAC refused the user; admission control has other words. A refusal of the `OpenAPI`
/// document, which `apply` asks for first, comes without its text: client-go says "unknown".
fn is_refused(lines: &[String]) -> bool {
    lines.iter().any(|line| {
        line.contains("is forbidden: User ") && line.contains(" cannot ")
            || line.contains("failed to download openapi: unknown")
    })
}

/// The class of a failure and the way out of it, by kubectl's own words.
fn classify(error: Error, kubeconfig: &Path) -> Error {
    if error.class() != Class::Permanent {
        return error;
    }
    // One line a try of kubectl's own says nothing new.
    let lines: Vec<String> =
        error.evidence_lines().iter().filter(|line| !line.contains("memcache.go")).cloned().collect();
    let says = |words: &[&str]| words.iter().any(|word| lines.iter().any(|line| line.contains(word)));
    // What the API server says about the pod that it asks is not about itself.
    let is_of_webhook = says(&["failed calling webhook"]);
    if says(&CLOCK) && !is_of_webhook {
        let error = Error::precondition("the API server's certificate is expired or not yet valid; check the clocks");
        let hint = "compare the clocks: date --utc, here and on the control-plane host";
        return lines.iter().fold(error, Error::evidence).hint(hint);
    }
    if says(&UNUSABLE) && !is_of_webhook {
        let message = format!("the kubeconfig {} is damaged or of another cluster", kubeconfig.display());
        return lines
            .iter()
            .fold(Error::precondition(message), Error::evidence)
            .hint("turnup kubeconfig (recreates it)");
    }
    if is_refused(&lines) {
        return error.hint("turnup bootstrap (restores the role binding turnup:cluster-admins)");
    }
    if says(&PASSING) {
        // What is tried again is told in one line, and kubectl's last one is the cause.
        let said = lines.iter().rev().find(|line| !line.starts_with("log: ") && !line.starts_with("$ "));
        let message = said.map_or_else(|| error.message().to_owned(), |said| format!("{}: {said}", error.message()));
        return lines.iter().fold(Error::transient(message), Error::evidence);
    }
    error
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const REFUSAL: &str =
        "Error from server (Forbidden): nodes is forbidden: User \"u\" cannot list resource \"nodes\"";

    #[test]
    fn a_webhook_that_does_not_answer_yet_is_worth_another_attempt() {
        for why in ["x509: certificate signed by unknown authority", "x509: certificate is not valid yet"] {
            let line = format!("InternalError: failed calling webhook \"a\": failed to call webhook: {why}");
            let error = classify(Error::permanent("kubectl apply failed").evidence(line), Path::new("/k"));
            assert_eq!(error.class(), Class::Transient, "{why}");
        }
    }

    /// A kubectl that is refused with these words once.
    fn refused_once(dir: &Path, words: &str) -> Kubectl {
        let (program, asked) = (dir.join("kubectl"), dir.join("asked"));
        let refuse = format!("if mkdir '{}' 2>/dev/null; then echo '{words}' >&2; exit 1; fi", asked.display());
        fs_err::write(&program, format!("#!/bin/sh\n{refuse}\necho '{{\"items\": []}}'\n")).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Kubectl::new(program, dir.join("kubeconfig"))
    }

    #[test]
    fn what_an_api_server_refuses_while_it_starts_is_asked_again() {
        let openapi = "error: error validating data: failed to download openapi: unknown; if you choose";
        for words in [REFUSAL, openapi] {
            let dir = tempfile::tempdir().unwrap();
            let kubectl = refused_once(dir.path(), words);
            assert!(kubectl.run_once(&["get", "nodes"]).is_err(), "the first answer is a refusal");
            fs_err::remove_dir(dir.path().join("asked")).unwrap();
            assert_eq!(kubectl.get(&["nodes"]).unwrap(), json!({"items": []}));
            fs_err::remove_dir(dir.path().join("asked")).unwrap();
            kubectl.apply("{}").unwrap();
        }
    }
}
