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
        self.command(args).succeed().map(|output| output.stdout).map_err(classify)
    }

    /// Runs with these bytes as standard input; used for objects that hold secrets and for everything that is not a file.
    pub fn run_with<S: AsRef<str>>(&self, args: &[S], stdin: String) -> Result<String> {
        self.command(args).stdin(stdin).succeed().map(|output| output.stdout).map_err(classify)
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

/// Failures that pass by themselves, by kubectl's own words: the server is starting, restarting or busy.
fn classify(error: Error) -> Error {
    let passing = [
        "connection refused",
        "was refused",
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
    let text = error.evidence_lines().join("\n");
    if error.class() == Class::Permanent && passing.iter().any(|word| text.contains(word)) {
        return text.lines().fold(Error::transient(error.message()), Error::evidence);
    }
    error
}
