//! `turnup keyset`: the items of what can be rotated, and the steps of a rotation. A step changes
//! files of the cluster's directory alone, and `turnup up` carries it out; `rotate` is all of it.

use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use jiff::Timestamp;
use serde_json::json;

use crate::bootstrap::rotation::{self, ListedItem, Looked};
use crate::bootstrap::{KeysetName, RotationStep};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::report::Table;

use super::run::{RunArgs, RunOptionArgs, open_cluster, take_lock};
use super::up::converge;
use super::{Global, Printer};

/// The name and version of the JSON.
const SCHEMA: &str = "turnup.keyset/1";
/// Who holds the lock.
const COMMAND: &str = "turnup keyset";

/// Below the options.
const NOTES: &str = "\
    turnup keyset rotate etcd-ca      # all of it, resumed by the same command

A rotation has three steps, with a run after each (docs/certificates.md):

    turnup keyset create etcd-ca      # a second item, which everything will trust
    turnup up
    turnup keyset promote etcd-ca     # it signs; the one before stays trusted
    turnup up
    turnup keyset distrust etcd-ca    # the one before counts no longer
    turnup up";

/// What to do.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum What {
    /// List the items: which one is the primary, which are trusted, when they end
    List {
        /// One keyset alone
        #[arg(value_parser = names())]
        name: Option<KeysetName>,
    },
    /// Rotate in one go: a new item is made, signs, and the one before is distrusted, with a run of
    /// `turnup up` after each step; goes on where it was cut off
    Rotate {
        /// The keyset
        #[arg(value_parser = names())]
        name: KeysetName,
        /// What turnup does not see was looked at, for the step at which the rotation has stopped
        /// and which says what
        #[arg(long)]
        confirmed: bool,
        /// What every run takes
        #[command(flatten)]
        run: RunArgs,
    },
    /// Make a new item; after the next `turnup up` it is trusted everywhere
    Create {
        /// The keyset
        #[arg(value_parser = names())]
        name: KeysetName,
    },
    /// Let an item sign, or encrypt, once it is trusted everywhere; the one before stays trusted
    Promote(Chosen),
    /// Trust an item no longer, once nothing of it is in use; its files stay here
    Distrust(Chosen),
}

#[derive(Clone, Debug, clap::Args)]
struct Chosen {
    /// The keyset
    #[arg(value_parser = names())]
    name: KeysetName,
    /// The number of the item [default: the newer trusted one to promote, the older to distrust]
    item: Option<u32>,
    /// What turnup does not see was looked at: without it such a step is refused, and says what
    #[arg(long)]
    confirmed: bool,
}

fn names() -> impl clap::builder::TypedValueParser<Value = KeysetName> {
    let known = PossibleValuesParser::new(KeysetName::ALL.map(KeysetName::name));
    known.try_map(|name| KeysetName::find(&name).ok_or_else(|| Error::usage(format!("no keyset {name}"))))
}

/// Does it.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let cluster = open_cluster(global)?;
    if let What::List { name } = &args.what {
        let names = name.map_or_else(|| KeysetName::ALL.to_vec(), |name| vec![name]);
        return show(&rotation::list(&cluster, &names)?, printer);
    }
    require_directory(&cluster)?;
    if let What::Rotate { name, confirmed, run } = &args.what {
        return rotate(&cluster, *name, *confirmed, run, global, printer);
    }
    let lock = take_lock(&cluster.store, COMMAND, printer)?;
    let remark = |line: &str| printer.remark(line);
    let looked = |confirmed| Looked { confirmed, in_rotation: false, tell: &remark };
    let (verb, name, item) = match &args.what {
        What::Create { name } => (RotationStep::Create, *name, rotation::create(&cluster, *name)?),
        What::Promote(Chosen { name, item, confirmed }) => {
            (RotationStep::Promote, *name, rotation::promote(&cluster, *name, *item, &looked(*confirmed))?)
        }
        What::Distrust(Chosen { name, item, confirmed }) => {
            (RotationStep::Distrust, *name, rotation::distrust(&cluster, *name, *item, &looked(*confirmed))?)
        }
        What::List { .. } | What::Rotate { .. } => return Ok(()),
    };
    drop(lock);
    tell(verb, name, item, printer)
}

/// All steps with their runs. A rotation that is under way begins with a run: the one of its last
/// step may have been cut off. What the operator has looked at is good for the step at which the
/// rotation has stopped, and for none that comes later.
fn rotate(
    cluster: &Arc<Cluster>,
    name: KeysetName,
    confirmed: bool,
    run: &RunArgs,
    global: &Global,
    printer: &Printer,
) -> Result<()> {
    let remark = |line: &str| printer.remark(line);
    let locked = || take_lock(&cluster.store, COMMAND, printer);
    let lock = locked()?;
    let made = rotation::begin(cluster, name)?;
    if let Some(item) = made {
        remark(&did(RotationStep::Create, name, item));
    }
    drop(lock);
    let mut confirmed = confirmed && made.is_none();
    loop {
        let cluster = converge(run, &RunOptionArgs::default(), None, global)?;
        let lock = locked()?;
        let step = rotation::advance(&cluster, name, &Looked { confirmed, in_rotation: true, tell: &remark })?;
        drop(lock);
        confirmed = false;
        if let Some((step, item)) = step {
            remark(&did(step, name, item));
            continue;
        }
        if name == KeysetName::KubernetesCa {
            for line in rotation::find_holders(&cluster) {
                remark(&line);
            }
        }
        return show(&rotation::list(&cluster, &[name])?, printer);
    }
}

fn did(step: RotationStep, name: KeysetName, item: u32) -> String {
    let did = match step {
        RotationStep::Create => "is made, and will be trusted",
        RotationStep::Promote => "is the primary",
        RotationStep::Distrust => "is distrusted",
    };
    format!("{name}: item {item} {did}")
}

/// Taking the lock would make it.
fn require_directory(cluster: &Cluster) -> Result<()> {
    if cluster.store.dir().is_dir() {
        return Ok(());
    }
    Err(Error::precondition(format!("there is no cluster {}", cluster.settings.name)).hint("turnup up"))
}

fn tell(verb: RotationStep, name: KeysetName, item: u32, printer: &Printer) -> Result<()> {
    let restarts = rotation::restarts(name, verb);
    if printer.is_json() {
        return printer.json(&json!({
            "schema": SCHEMA, "did": verb.name(), "keyset": name.name(), "item": item, "restarts": restarts,
        }));
    }
    printer.line(&format!("{}; next: turnup up", did(verb, name, item)))?;
    let restarts = if restarts.is_empty() {
        "which restarts nothing".to_owned()
    } else {
        format!("which restarts {}, one host after another on the control plane", restarts.join(", "))
    };
    printer.remark(&format!("turnup up carries it out, {restarts}; turnup plan shows it"));
    Ok(())
}

fn show(items: &[ListedItem], printer: &Printer) -> Result<()> {
    if printer.is_json() {
        let items: Vec<_> = items
            .iter()
            .map(|item| {
                json!({
                    "keyset": item.keyset.name(), "item": item.id, "state": item.state.name(),
                    "created": item.created, "ends": item.ends, "files": item.files,
                })
            })
            .collect();
        return printer.json(&json!({"schema": SCHEMA, "items": items}));
    }
    if items.is_empty() {
        printer.remark("no keyset has an item yet: turnup up makes the first ones");
        return Ok(());
    }
    let mut table = Table::new(&["KEYSET", "ITEM", "STATE", "ENDS", "FILES"]).right(1);
    for item in items {
        let ends = item.ends.map_or_else(|| "never".to_owned(), day);
        let files: Vec<String> = item.files.iter().map(|file| file.display().to_string()).collect();
        table.row([item.keyset.name(), &item.id.to_string(), item.state.name(), &ends, &files.join(" ")]);
    }
    printer.line(table.render().trim_end())
}

fn day(time: Timestamp) -> String {
    let mark = if time <= Timestamp::now() { " (ended)" } else { "" };
    format!("{}{mark}", time.strftime("%Y-%m-%d"))
}
