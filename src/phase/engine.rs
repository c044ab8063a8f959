//! Runs the steps of a phase.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{Action, Inputs, Manifest, Sink};
use crate::state::{Lock, Store};
use crate::{Error, Result};

/// A host as the engine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
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
    pub hosts: Vec<Host>,
    /// Where custom commands run.
    pub work_dir: PathBuf,
    /// Values of the configuration paths that custom steps name as inputs.
    pub settings: Inputs,
}

/// What the engine would do with a step, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Run,
    /// Leave it: proven done.
    Skip,
    /// Only known once an earlier step has run.
    Unknown,
}

/// One line of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The step's id.
    pub id: String,
    /// The step's name.
    pub step: String,
    /// The host, for a host step.
    pub host: Option<String>,
    /// What would be done.
    pub decision: Decision,
    /// Why.
    pub why: String,
    /// What would change, as the action previews it.
    pub preview: Vec<String>,
}

/// How a phase went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Steps that ran.
    pub ran: usize,
    /// Steps that were proven done.
    pub skipped: usize,
    /// How long it took.
    pub elapsed: Duration,
}

/// Runs phases against one store.
pub struct Engine<'a> {
    store: &'a Store,
    _lock: &'a Lock,
    sink: Sink,
}

impl<'a> Engine<'a> {
    /// An engine; the lock is proof that nobody else writes.
    #[must_use]
    pub fn new(store: &'a Store, lock: &'a Lock, sink: Sink) -> Self {
        Self { store, _lock: lock, sink }
    }
    /// How many steps may run at once; 8 by default.
    #[must_use]
    pub fn parallel(self, _steps: usize) -> Self {
        self
    }
    /// The command that a failure tells the person to go on with; `turnup up` by default.
    #[must_use]
    pub fn next_command(self, _command: impl Into<String>) -> Self {
        self
    }
    /// Runs what is not proven done.
    pub fn run(&mut self, phase: &Phase) -> Result<Summary> {
        let _ = (self.store, &self.sink);
        Err(Error::bug(&phase.name))
    }
    /// What `run` would do, and why.
    pub fn plan(store: &Store, phase: &Phase) -> Result<Vec<Planned>> {
        let _ = store;
        Err(Error::bug(&phase.name))
    }
}
