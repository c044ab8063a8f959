//! `turnup config hosts`: hosts of bare metal, taken from where people have them.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::Value;

use super::answers::change;
use super::context::ConfigContext;
use crate::config::{HOSTS, HostList, merge_hosts, read_hosts};
use crate::error::{Context as _, Error, Result};
use crate::input;

/// What to do with the hosts.
#[derive(Debug, Subcommand)]
pub(super) enum HostsCommand {
    /// Take hosts over: lines `NAME ADDRESS ROLE`, CSV, an inventory of Ansible (INI or YAML),
    /// `provision.json`, the setting's own JSON or YAML; lines of ssh-keyscan give hosts their keys
    Import {
        /// The files; - for standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Drop all hosts that are listed now
        #[arg(long)]
        replace: bool,
    },
}

pub(super) fn run(context: &ConfigContext<'_>, command: &HostsCommand) -> Result<()> {
    let HostsCommand::Import { files, replace } = command;
    let lists = files.iter().map(|file| read(file)).collect::<Result<Vec<HostList>>>()?;
    change(context, |settings| {
        let known = if *replace { "[]".to_owned() } else { settings.get(HOSTS)? };
        let known: Vec<Value> = serde_json::from_str(&known).unwrap_or_default();
        // Keys may come before the file with their hosts.
        let mut all = HostList::default();
        for list in lists {
            all.hosts.extend(list.hosts);
            all.keys.extend(list.keys);
        }
        let merged = merge_hosts(&known, &all);
        for line in merged.tell() {
            context.printer.remark(&line);
        }
        settings.set(HOSTS, &Value::from(merged.hosts).to_string())
    })
}

fn read(file: &Path) -> Result<HostList> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?
    } else {
        input::read_text(file, input::DOCUMENT)?
    };
    read_hosts(&text).map_err(|why| {
        let message = format!("no list of hosts: {}: {why}", file.display());
        Error::config(message).hint(format!("see what a host has: turnup config explain {HOSTS}"))
    })
}
