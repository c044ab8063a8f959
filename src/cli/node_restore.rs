//! `turnup node restore`: what `turnup restore` runs on each control-plane host, in this order.

use std::io::Read as _;

use serde_json::Value;

use crate::error::{Context as _, Result};
use crate::node::backup::EtcdPrograms;
use crate::node::etcd_restore::{OwnMember, RestoreOrder};

use super::Printer;
use super::node_backup::json;

/// What to do with this host's member of etcd.
#[derive(Clone, Debug, clap::Subcommand)]
pub(super) enum RestoreCommand {
    /// Print how the member stands, as JSON; null where there is none
    Look,
    /// Print what is in the snapshot of a restore, as JSON
    Check {
        /// The restore
        id: String,
    },
    /// Stop the control plane of this host, now and at the next boot
    Stop,
    /// Print a part of the stopped member's database in base64
    Part {
        /// From which byte on
        #[arg(long, value_name = "COUNT")]
        offset: u64,
    },
    /// Read an order, put the member's data aside and the content of the snapshot in their place
    Restore,
    /// Start the control plane of this host, now and at each boot
    Start {
        /// The restore
        id: String,
    },
}

/// Does it.
pub(super) fn run(command: &RestoreCommand, printer: &Printer) -> Result<()> {
    let programs = &EtcdPrograms::HOST;
    match command {
        RestoreCommand::Look => match OwnMember::find()? {
            Some(member) => json(printer, &member.look(programs)),
            None => printer.json(&Value::Null),
        },
        RestoreCommand::Check { id } => json(printer, &OwnMember::require()?.check(programs, id)?),
        RestoreCommand::Stop => OwnMember::require()?.stop(),
        RestoreCommand::Part { offset } => printer.line(&OwnMember::require()?.part(*offset)?),
        RestoreCommand::Restore => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
            let order: RestoreOrder = serde_json::from_str(&text).context("standard input is not an order")?;
            OwnMember::require()?.restore(programs, &order)
        }
        RestoreCommand::Start { id } => OwnMember::require()?.start(id),
    }
}
