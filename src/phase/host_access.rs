//! What a custom step may know and use of the cluster around it. This module knows no ssh: the
//! caller that loads the phase provides the connection.

use std::ffi::OsString;
use std::path::Path;

use super::Cx;
use crate::Result;
use crate::exec::{Failure, Output};

/// What is known of a host before anything runs on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// The address at which it is reached.
    pub address: String,
    /// Another text for another machine of the same name.
    pub instance: String,
}

/// The cluster as a step of the user's own sees it.
pub trait HostAccess: Send + Sync {
    /// Variables for a command on this machine, as they are when it starts. None is a secret.
    fn variables(&self) -> Vec<(&'static str, OsString)>;
    /// The cluster's name.
    fn cluster(&self) -> String;
    /// Whether this phase makes the hosts, so that what is known of them changes while it runs.
    fn makes_hosts(&self) -> bool;
    /// What is known of a host; nothing before it has been handed over.
    fn host(&self, host: &str) -> Result<Option<HostFacts>>;
    /// Copies a file to a host, whole or not at all.
    fn copy(&self, host: &str, local: &Path, remote: &str, mode: u32, cx: &Cx) -> Result<()>;
    /// Runs a command on a host as root. The outer error is a connection that failed.
    fn run(&self, host: &str, argv: &[String], cx: &Cx) -> Result<Result<Output, Failure>>;
    /// Runs a command that only looks: not logged, and given up soon.
    fn look(&self, host: &str, argv: &[String]) -> Result<Result<Output, Failure>>;
}
