//! The cluster's API through the real kubectl of the cluster's own version. Every call is one that a person can repeat.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Class, Context as _, Error, Result};
use crate::exec::Run;

/// Where the administrator's kubeconfig lies below the cluster's directory.
pub const KUBECONFIG: &str = "kubeconfig";

/// kubectl with one kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    log: Option<PathBuf>,
}

impl Kubectl {
    /// `program` is the artifact; `kubeconfig` the file to use.
    #[must_use]
    pub fn new(program: PathBuf, kubeconfig: PathBuf) -> Self {
        Self { program, kubeconfig, log: None }
    }

    /// Appends every call and its output to this file.
    #[must_use]
    pub fn log(mut self, path: &Path) -> Self {
        self.log = Some(path.to_owned());
        self
    }

    /// A run with these arguments.
    pub fn command<S: AsRef<str>>(&self, args: &[S]) -> Run {
        let run = Run::new(&self.program)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg("--request-timeout=20s")
            .args(args.iter().map(AsRef::as_ref))
            .dir("/")
            .label(format!("kubectl {}", args.first().map_or("", |arg| arg.as_ref())));
        match &self.log {
            Some(log) => run.log(log),
            None => run,
        }
    }

    /// Runs and returns standard output.
    pub fn run<S: AsRef<str>>(&self, args: &[S]) -> Result<String> {
        self.command(args).succeed().map(|output| output.stdout).map_err(|error| classify(error, &self.kubeconfig))
    }

    /// Runs with these bytes as standard input; used for objects that hold secrets and for everything that is not a file.
    pub fn run_with<S: AsRef<str>>(&self, args: &[S], stdin: String) -> Result<String> {
        self.command(args)
            .stdin(stdin)
            .succeed()
            .map(|output| output.stdout)
            .map_err(|error| classify(error, &self.kubeconfig))
    }

    /// Runs and parses standard output as JSON.
    pub fn get<S: AsRef<str>>(&self, args: &[S]) -> Result<Value> {
        let mut all = vec!["get", "--output=json"];
        all.extend(args.iter().map(AsRef::as_ref));
        serde_json::from_str(&self.run(&all)?).context("kubectl get did not print JSON")
    }

    /// Whether the API server says that it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let answer = self.command(&["get", "--raw=/readyz"]).output();
        answer.is_ok_and(|output| output.stdout.trim() == "ok")
    }
}

/// What kubectl says about a kubeconfig that it cannot use; without one it asks this machine's port 8080.
const UNUSABLE: [&str; 5] =
    ["localhost:8080", "error loading config file", "invalid configuration", "unknown authority", "must be logged in"];
/// What it says about a server that is starting, restarting, busy or away.
const PASSING: [&str; 12] = [
    "connection refused",
    "was refused",
    "no route to host",
    "i/o timeout",
    "deadline exceeded",
    "EOF",
    "TLS handshake timeout",
    "ServiceUnavailable",
    "too many requests",
    "etcdserver",
    "the object has been modified",
    "not yet ready",
];

/// The class of a failure and the way out of it, by kubectl's own words.
fn classify(error: Error, kubeconfig: &Path) -> Error {
    if error.class() != Class::Permanent {
        return error;
    }
    // One line a try of kubectl's own says nothing new.
    let lines: Vec<String> =
        error.evidence_lines().iter().filter(|line| !line.contains("memcache.go")).cloned().collect();
    let says = |words: &[&str]| words.iter().any(|word| lines.iter().any(|line| line.contains(word)));
    if says(&UNUSABLE) {
        let message = format!("the kubeconfig {} is damaged or of another cluster", kubeconfig.display());
        return lines.iter().fold(Error::person(message), Error::evidence).hint("turnup kubeconfig (writes it anew)");
    }
    if says(&PASSING) {
        return lines.iter().fold(Error::transient(error.message()), Error::evidence);
    }
    error
}
