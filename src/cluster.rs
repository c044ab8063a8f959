//! One cluster: its settings as typed values, its directory, its templates. What every phase is given.
//!
//! The settings are read once; nothing here decides anything about a node (that is `bootstrap::complete`).

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::artifacts::{Cache, Lock, Sources};
use crate::config::{Network, Settings, TreeSource};
use crate::error::{Error, Result};
use crate::phase::Inputs;
use crate::state::Store;

/// A cluster that a command works on.
pub struct Cluster {
    /// What the configuration says.
    pub settings: ClusterSettings,
    /// Kconfig, phases and templates.
    pub source: TreeSource,
    /// `.turnup/<cluster>/`.
    pub store: Store,
    /// turnup's own binary: what Terraform calls back and what is copied to the hosts.
    pub exe: PathBuf,
    /// The directory in which the command was given.
    pub work_dir: PathBuf,
    /// Every setting by name, as an input of steps.
    pub inputs: Inputs,
}

/// The settings by their types; one field a symbol of the Kconfig tree.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the Kconfig tree")]
pub struct ClusterSettings {
    pub name: String,
    pub target: String,
    pub num_nodes: u32,
    pub ssh_user: String,
    pub hosts_file: String,
    pub ssh_key_file: String,
    pub subnet: Network,
    pub root_suite: String,
    pub kubernetes_version: String,
    pub pod_cidr: Network,
    pub service_cidr: Network,
    pub cluster_domain: String,
    pub api_port: u16,
    pub max_pods: u32,
    pub audit: bool,
    pub encryption_at_rest: bool,
    pub tls13: bool,
    pub pod_security: bool,
    pub run_addons: bool,
    pub kube_proxy: bool,
    pub cni: bool,
    pub dns: bool,
    pub dns_replicas: u32,
    pub sources: Sources,
}
