//! `turnup support-bundle`: one archive for a support request, without secrets.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::cluster::Cluster;
use crate::config::{Schema, Settings, TreeSource};
use crate::error::{Context as _, Result};
use crate::exec::signals;
use crate::state::Store;
use crate::support_bundle::{self, BundleManifest, BundleSubject};

use super::status::directories;
use super::{Global, Printer};

/// Where to.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The archive; turnup-<cluster>-<time>.tar.gz in this directory when not given
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Writes it and says what is missing in it.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    signals::install()?;
    let subject = subject(global)?;
    let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let to = args.to.clone().unwrap_or_else(|| format!("turnup-{}-{time}.tar.gz", subject.name).into());
    let manifest = support_bundle::write(&subject, &to)?;
    signals::check()?;
    if printer.is_json() {
        return printer.json(&json!({"schema": manifest.schema, "file": to, "manifest": manifest}));
    }
    describe(&manifest, printer);
    printer.line(&to.display().to_string())
}

fn describe(manifest: &BundleManifest, printer: &Printer) {
    for (what, why) in &manifest.missing {
        printer.remark(&format!("not in it: {what}: {why}"));
    }
    let (files, removed) = (manifest.files.len(), manifest.removed());
    printer.remark(&format!(
        "{files} files, {removed} secrets removed; MANIFEST.json lists them; nothing was sent anywhere"
    ));
}

/// The configuration's cluster; where there is no usable configuration, the only cluster that there
/// is something of.
fn subject(global: &Global) -> Result<BundleSubject> {
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let cluster = global.settings(&source).and_then(|settings| {
        let cluster = Cluster::open(&settings, source.clone(), &global.state_dir)?;
        Ok((settings, Arc::new(cluster)))
    });
    let error = match cluster {
        Ok((settings, cluster)) => {
            let (name, store) = (cluster.settings.name.clone(), cluster.store.clone());
            return Ok(BundleSubject { name, store, settings: Some(settings), cluster: Some(cluster), trouble: None });
        }
        Err(error) => error,
    };
    let settings = readable(global, &source);
    match directories(&global.state_dir).as_slice() {
        [name] => {
            let store = Store::at(global.state_dir.join(name));
            Ok(BundleSubject { name: name.clone(), store, settings, cluster: None, trouble: Some(error.render()) })
        }
        _ => Err(error),
    }
}

/// A configuration that has mistakes in it, as far as it can be read.
fn readable(global: &Global, source: &TreeSource) -> Option<Settings> {
    Settings::open(&global.config, Schema::load(source).ok()?).ok().flatten()
}
