//! `turnup config hosts`: hosts of bare metal, taken from where people have them.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::Value;

use super::ConfigContext;
use super::answers::change;
use crate::config::{HOSTS, merge_hosts, read_hosts};
use crate::error::{Context as _, Error, Result};
use crate::input;

/// What to do with the hosts.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Take hosts over: lines `NAME ADDRESS ROLE`, CSV, an inventory of Ansible (INI or YAML),
    /// `provision.json`, the setting's own JSON or YAML; lines of ssh-keyscan give hosts their keys
    Import {
        /// The file; - for standard input
        file: PathBuf,
        /// Drop all hosts that are listed now
        #[arg(long)]
        replace: bool,
    },
}

pub(super) fn run(context: &ConfigContext<'_>, command: &Command) -> Result<()> {
    let Command::Import { file, replace } = command;
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?
    } else {
        input::read_text(file, input::DOCUMENT)?
    };
    let list = read_hosts(&text).map_err(|why| {
        let message = format!("no list of hosts: {}: {why}", file.display());
        Error::config(message).hint(format!("see what a host has: turnup config explain {HOSTS}"))
    })?;
    for remark in &list.remarks {
        context.printer.remark(remark);
    }
    change(context, |settings| {
        let known: Vec<Value> = serde_json::from_str(&settings.get(HOSTS)?).unwrap_or_default();
        let hosts = merge_hosts(if *replace { &[] } else { &known }, &list);
        settings.set(HOSTS, &Value::from(hosts).to_string())
    })
}
