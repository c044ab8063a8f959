//! `turnup status`: how a cluster stands. Also the end of `turnup up`.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::bootstrap::KUBECONFIG;
use crate::cluster::Cluster;
use crate::config::TreeSource;
use crate::error::{Context as _, Error, Result};
use crate::status::{self, Live, Status};

use super::{Global, Printer};

/// What to look at.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Ask nothing over the network: only what this machine knows
    #[arg(long)]
    quick: bool,
}

/// Shows all that can be known, and then fails with the class of what could not be asked.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let cluster = match look(global) {
        Ok(cluster) => cluster,
        Err(error) => {
            for name in directories(&global.state_dir) {
                show(&Status::without_configuration(&global.state_dir, &name), printer)?;
            }
            return Err(error);
        }
    };
    let status = Status::look(&cluster, args.quick);
    show(&status, printer)?;
    status.into_result().map_err(|error| match error.next() {
        None => error.hint("turnup up (goes on where something is missing)"),
        Some(_) => error,
    })
}

/// The cluster that the configuration describes, whether it is there or not.
pub(super) fn look(global: &Global) -> Result<Arc<Cluster>> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let settings = global.settings(&source)?;
    Cluster::open(&settings, source, &global.state_dir).map(Arc::new)
}

/// The clusters of which there is something here.
pub(super) fn directories(state_dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(state_dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn show(status: &Status, printer: &Printer) -> Result<()> {
    if printer.is_json() {
        let value = serde_json::to_value(status);
        return printer.json(&value.map_err(|error| Error::bug(error.to_string()))?);
    }
    printer.line(status::render(status).trim_end())
}

/// What the API says about a cluster that is up.
pub(super) struct Overview {
    live: Live,
    kubeconfig: String,
}

impl Overview {
    pub(super) fn read(cluster: &Cluster) -> Result<Self> {
        Ok(Self { live: Live::read(cluster)?, kubeconfig: cluster.store.path(KUBECONFIG).display().to_string() })
    }

    pub(super) fn print(&self, printer: &Printer) -> Result<()> {
        let Live { nodes, csrs, addons, webhooks } = &self.live;
        let csrs = csrs.as_ref().ok();
        if printer.is_json() {
            return printer.json(&json!({
                "schema": status::SCHEMA, "nodes": nodes, "unjoined": csrs.map(|csrs| &csrs.joining),
                "unserved": csrs.map(|csrs| &csrs.serving), "unanswered_webhooks": webhooks.as_ref().ok(),
                "addons": addons, "kubeconfig": self.kubeconfig,
            }));
        }
        printer.line(&status::render_live(&self.live))?;
        printer.line(&format!("export KUBECONFIG={}", shell_words::quote(&self.kubeconfig)))
    }
}
