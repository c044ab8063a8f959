//! What a phase is: steps, what they do, and hosts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Action, HostAccess, Inputs, Manifest};

/// A host as the engine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseHost {
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its role, as `roles` in `phase.toml` names it.
    pub role: String,
}

/// A phase ready to run.
pub struct Phase {
    /// Its name: the first part of every step id.
    pub name: String,
    /// Its steps.
    pub manifest: Manifest,
    /// What built-in steps do, by step name.
    pub actions: HashMap<String, Box<dyn Action>>,
    /// The hosts.
    pub hosts: Vec<PhaseHost>,
    /// Where custom commands run.
    pub work_dir: PathBuf,
    /// Values of the configuration, for the custom steps that name some as inputs.
    pub settings: Inputs,
    /// What custom steps may know and use of the cluster.
    pub host_access: Option<Arc<dyn HostAccess>>,
    /// How many of its tasks must run side by side, because each waits for the others; 1 where none
    /// does.
    pub at_once: usize,
    /// How long its steps may take.
    pub limits: Limits,
}

/// How long a phase, and the steps of one host in it, may take; none where only the steps' own
/// times count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// All of it, and the setting that says so.
    pub phase: Option<(Duration, &'static str)>,
    /// The steps of one host together, without what they wait for, and the setting.
    pub host: Option<(Duration, &'static str)>,
    /// How many steps may run at once, unless the command says so.
    pub parallel: Option<usize>,
}

impl Phase {
    /// A phase without any actions yet.
    #[must_use]
    pub fn new(name: impl Into<String>, manifest: Manifest, hosts: Vec<PhaseHost>) -> Self {
        Self {
            name: name.into(),
            manifest,
            actions: HashMap::new(),
            hosts,
            work_dir: ".".into(),
            settings: Inputs::new(),
            host_access: None,
            at_once: 1,
            limits: Limits::default(),
        }
    }

    /// Adds what a built-in step does.
    #[must_use]
    pub fn with(mut self, step: &str, action: impl Action + 'static) -> Self {
        self.actions.insert(step.into(), Box::new(action));
        self
    }
}
