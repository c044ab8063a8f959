//! `turnup addons`: phase 3 alone; and which addons there are and the cluster has.

use crate::addons::AddonList;
use crate::error::{Context as _, Result};
use crate::exec::signals;
use crate::report::Table;

use super::phase_name::PhaseName;
use super::run::RunArgs;
use super::{Global, Printer, status, up};

/// A run, or what there is.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// What every run takes
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum What {
    /// List the addons: on or off, available and installed versions, and for which Kubernetes
    List,
}

/// Does it.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    match args.what {
        None => up::run_one(PhaseName::Addons, &args.run, global, printer),
        Some(What::List) => {
            signals::install()?;
            let cluster = status::look(global)?;
            show(&AddonList::look(&cluster)?, printer)
        }
    }
}

fn show(list: &AddonList, printer: &Printer) -> Result<()> {
    if printer.is_json() {
        return printer.json(&serde_json::to_value(list).context("cannot write the list as JSON")?);
    }
    let shown = |version: &Option<String>| version.clone().unwrap_or_else(|| "-".to_owned());
    let mut table = Table::new(&["ADDON", "ENABLED", "AVAILABLE", "INSTALLED", "KUBERNETES", "WHAT IT IS FOR"]);
    for addon in &list.addons {
        let enabled = if addon.enabled { "yes" } else { "no" };
        let kubernetes = addon.skew.as_ref().map_or(addon.kubernetes.as_str(), |why| why);
        table.row([
            &addon.name,
            enabled,
            &shown(&addon.available),
            &shown(&addon.installed),
            kubernetes,
            &addon.summary,
        ]);
    }
    printer.line(table.render().trim_end())?;
    for manifests in &list.manifests {
        let recorded = manifests.recorded.map_or_else(String::new, |count| format!(", {count} in the cluster"));
        printer.line(&format!("{}: {} objects{recorded}", manifests.setting, manifests.objects))?;
    }
    if !list.asked {
        printer.remark("the cluster was not asked: there is none yet");
    }
    Ok(())
}
