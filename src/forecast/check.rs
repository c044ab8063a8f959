//! Can a configuration be turned up? The one check that `config check`, `plan` and the commands
//! that change a cluster share: what one of them refuses, all refuse, in the same words.
//!
//! Looks at settings, templates, files that settings name, and what the cluster's directory already
//! has; asks no host and no cloud.

use std::path::Path;
use std::sync::Arc;

use super::Forecast;
use crate::bootstrap;
use crate::cluster::{Cluster, ClusterSettings};
use crate::component::OVERRIDES;
use crate::config::{Problem, ProblemLevel, Schema, Settings, TARGET, TreeSource, refuse};
use crate::error::{Class, Error, Result};

/// What the configuration is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// All phases: hosts are made.
    Hosts,
    /// The later phases: hosts exist.
    Nodes,
}

/// What is wrong with a configuration, or worth knowing about it.
#[derive(Debug)]
pub struct Verdict {
    /// Each finding, in the order in which they are shown.
    pub problems: Vec<Problem>,
    /// What a phase refuses, as it says it; it is one of the problems, too.
    refusal: Option<(Problem, Error)>,
}

impl Verdict {
    /// Checks these settings; the cluster's directory lies below `state_dir`.
    #[must_use]
    pub fn of(settings: &Settings, source: &TreeSource, state_dir: &Path, purpose: Purpose) -> Self {
        let mut problems = settings.check_whole(Path::new(""));
        let is_right = problems.iter().all(|problem| problem.level != ProblemLevel::Error);
        let shadow = is_right.then(|| Cluster::shadow(settings, source.clone(), state_dir));
        problems.extend(shadow.as_ref().and_then(|cluster| find_old_gates(settings, cluster.as_ref().ok()?)));
        let refusal = shadow.and_then(|cluster| find_refusal(settings, source, state_dir, purpose, cluster).err());
        let refusal = refusal.map(|error| (settings.as_problem(&error), error));
        problems.extend(refusal.as_ref().map(|(problem, _)| problem.clone()));
        // What is to be corrected stands before what is only to be known.
        problems.sort_by_key(|problem| problem.level);
        Self { problems, refusal }
    }

    /// An error when the configuration cannot be used; `path` is its file.
    pub fn into_result(self, path: &Path) -> Result<()> {
        if let Some((problem, error)) = self.refusal {
            return Err(problem.locate(error, path));
        }
        refuse(path, &self.problems)
    }

    /// What a run would not do although it is asked for, and what will be refused after the next
    /// upgrade, where the configuration stays so.
    pub fn warnings<'v>(&'v self, schema: &'v Schema) -> impl Iterator<Item = &'v Problem> {
        let counts = move |problem: &&Problem| {
            let about = problem.symbol.as_deref();
            let is_of_gates = about == Some(OVERRIDES) || about == Some("phase2.feature_gates");
            problem.level == ProblemLevel::Notice && (is_of_gates || about.is_some_and(|name| schema.needs_more(name)))
        };
        self.problems.iter().filter(counts)
    }
}

/// Feature gates in the user's own overrides that the next version does not have.
fn find_old_gates(settings: &Settings, cluster: &Cluster) -> Option<Problem> {
    settings.get(OVERRIDES).ok().filter(|file| !file.is_empty())?;
    settings.warn_of_gates(OVERRIDES, cluster.settings.overrides.gates())
}

/// The first thing that a phase would refuse before it begins; `shadow` is the cluster as it would
/// become.
fn find_refusal(
    settings: &Settings,
    source: &TreeSource,
    state_dir: &Path,
    purpose: Purpose,
    shadow: Result<Cluster>,
) -> Result<()> {
    // A tree of another kind describes no clusters, and the commands that work on one say what it
    // lacks.
    if [TARGET, "phase1.cluster_name", "phase2.kubernetes_version"]
        .iter()
        .any(|name| settings.schema().find(name).is_err())
    {
        return Ok(());
    }
    let typed = ClusterSettings::read(settings, Path::new(""))?;
    if let Ok(cluster) = &shadow {
        bootstrap::require_same_runtimes(cluster)?;
        bootstrap::require_supported_hop(cluster)?;
    }
    if purpose == Purpose::Hosts {
        typed.user_data.require_source()?;
    }
    let simulate = |cluster: Cluster| match (purpose, cluster.find_inventory()) {
        // The step that writes it mends it, or says what is wrong with it.
        (_, Err(_)) | (Purpose::Nodes, Ok(None)) => Ok(()),
        (Purpose::Nodes, Ok(Some(_))) => Forecast::check_nodes(settings, source, state_dir),
        (Purpose::Hosts, Ok(_)) => {
            bootstrap::provision_phase(&Arc::new(cluster))?;
            Forecast::check(settings, source, state_dir)
        }
    };
    match shadow.and_then(simulate) {
        Err(error) if error.class() == Class::Config => Err(error),
        // What is wrong with other things than the configuration is said by the step that meets it.
        _ => Ok(()),
    }
}
