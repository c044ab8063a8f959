//! A cluster for one measurement, in a directory of its own, that is removed however the
//! measurement ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::artifacts::ResolvedArtifacts;
use crate::cluster::Cluster;
use crate::config::{Settings, TreeSource};
use crate::error::{Context as _, Error, Result};
use crate::exec::{Run, Stream};
use crate::phase::{Cx, Event, Sink};

use super::milestone::end_of_phase;

/// The longest that any one command may take.
const TIMEOUT: Duration = Duration::from_mins(15);

/// The cluster's directory, and everything in it and around it that `turnup down` knows.
pub(super) struct Workspace {
    dir: Option<TempDir>,
    path: PathBuf,
    exe: PathBuf,
    work_dir: PathBuf,
    settings: Settings,
    source: TreeSource,
}

impl Workspace {
    /// A directory with a configuration; no host is made yet.
    pub(super) fn make(
        parent: &Path,
        settings: &Settings,
        source: &TreeSource,
        name: &str,
        subnet: &str,
        workers: u32,
    ) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("run-").tempdir_in(parent).context("cannot make a directory")?;
        let mut own = settings.clone();
        own.set_all(&[
            ("phase1.cluster_name", name),
            ("phase1.cloud_provider", "local"),
            ("phase1.num_nodes", &workers.to_string()),
            ("phase1.local.subnet", subnet),
        ])?;
        let path = dir.path().to_owned();
        let config = path.join("config.json");
        own.save(&config)?;
        // What the commands will read, so that a mistake shows before a host is made.
        let settings = Settings::load(&config, source)?;
        let exe = std::env::current_exe().context("cannot find turnup's own binary")?;
        let work_dir = std::env::current_dir().context("the working directory is gone")?;
        Ok(Self { dir: Some(dir), path, exe, work_dir, settings, source: source.clone() })
    }

    /// A turnup command on this cluster.
    pub(super) fn turnup(&self, args: &[&str]) -> Run {
        Run::new(&self.exe)
            .args(args.iter().copied())
            .arg("--config")
            .arg(self.path.join("config.json"))
            .arg("--state-dir")
            .arg(self.path.join("state"))
            .dir(&self.work_dir)
            .inherit("TURNUP_CACHE")
            .timeout(TIMEOUT)
            .log(self.log())
            .label(format!("turnup {}", args.first().copied().unwrap_or_default()))
    }

    /// The same, and all its events.
    pub(super) fn events(&self, args: &[&str]) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        let mut args = args.to_vec();
        args.extend(["--output", "json"]);
        self.turnup(&args).stream(|stream, line| {
            // After the events comes the result of the command, which is another form of JSON.
            if stream == Stream::Stdout
                && let Ok(event) = serde_json::from_str(line)
            {
                events.push(event);
            }
        })?;
        Ok(events)
    }

    /// Makes the hosts; returns the seconds that it took.
    pub(super) fn provision(&self) -> Result<f64> {
        let events = self.events(&["provision"])?;
        end_of_phase(&events, "provision").ok_or_else(|| Error::bug("turnup provision told nothing of its phase"))
    }

    /// The cluster with its artifacts, to work on from this process.
    pub(super) fn cluster(&self, cx: &Cx) -> Result<Arc<Cluster>> {
        let cluster = Cluster::open(&self.settings, self.source.clone(), &self.path.join("state"))?;
        let selection = cluster.select_artifacts()?;
        let resolved = ResolvedArtifacts::fetch(&cluster.cache()?, &selection, &cluster.settings.sources, cx)?;
        let resolved = cluster.with_own_images(resolved)?;
        cluster.write_document(ResolvedArtifacts::FILE, &resolved, 0o600)?;
        Ok(Arc::new(cluster))
    }

    /// A context for work done from this process.
    pub(super) fn context(&self, sink: Sink) -> Cx {
        Cx::detached("bench", sink, self.log(), TIMEOUT)
    }

    fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Removes the cluster and its directory.
    pub(super) fn remove(mut self) -> Result<()> {
        self.clean(false)
    }

    /// Removes the cluster after a failure, and keeps the log that tells about it.
    pub(super) fn abandon(mut self, error: Error) -> Error {
        let log = self.log();
        match self.clean(true) {
            Ok(()) if error.next().is_none() => error.hint(format!("less {}", log.display())),
            Ok(()) => error,
            Err(left) => error.evidence(left.message().to_owned()).hint(left.next().unwrap_or_default()),
        }
    }

    fn clean(&mut self, keep_log: bool) -> Result<()> {
        let Some(dir) = self.dir.take() else { return Ok(()) };
        // Also after a signal, and also when nothing was made yet.
        if let Err(error) = self.turnup(&["down", "--yes"]).cleanup().succeed() {
            // The directory is all that knows what is left.
            let kept = dir.keep();
            let command = format!("turnup down --yes --config {0}/config.json --state-dir {0}/state", kept.display());
            return Err(error.hint(command));
        }
        if keep_log {
            let _kept = dir.keep();
            return Ok(());
        }
        dir.close().context("cannot remove the directory of a measurement")
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Only after a panic or an early return, which tells its own story.
        let _told_elsewhere = self.clean(true);
    }
}
