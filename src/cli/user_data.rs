//! `turnup user-data`: the user data with which a machine that turnup does not make joins the
//! running cluster by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;

use crate::bootstrap::user_data::{self, ApiPlace};
use crate::bootstrap::{Group, groups};
use crate::cluster::user_data::UserDataFormat;
use crate::error::{Error, Result};
use crate::inventory::Role;
use crate::inventory::is_label;

use super::run::{open_cluster, take_lock};
use super::{Global, Printer};

/// Below the options.
const NOTES: &str = "\
The file holds a token with which its reader joins a worker of this group while the token is good: keep it
as a secret, and remove .turnup/<cluster>/pki/token-<GROUP>.json and run the command again when it leaked.
docs/user-data.md tells each line of it. The same command may be repeated: it keeps the token until less than
a third of its life is left, and then writes the next one; machines that have the old one join until it ends.";

/// Options of `turnup user-data`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// A name for the machines that will share this token: an RFC 1123 label
    #[arg(value_name = "GROUP", value_parser = parse_label)]
    group: String,
    /// Where the directory of `turnup artifacts export` is served [default:
    /// `phase1.user_data.artifacts_url`]
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    artifacts_url: Option<String>,
    /// What the image understands
    #[arg(long, value_name = "FORM", default_value = "cloud-init")]
    form: FormatName,
    /// The user that logs in; without keys there is no login
    #[arg(long, value_name = "NAME", default_value = "root")]
    user: String,
    /// A file with public keys that may log in, besides the cluster's own; may be repeated
    #[arg(long, value_name = "FILE")]
    keys: Vec<String>,
    /// Labels of the Nodes
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = parse_pair)]
    labels: Vec<(String, String)>,
    /// Take the machines to be like this node; else virtual machines with systemd and cgroup v2
    #[arg(long, value_name = "NODE")]
    like: Option<String>,
    /// How the names of the Nodes begin; a host whose own name begins otherwise gets it put before
    /// [default: GROUP-]
    #[arg(long, value_name = "PREFIX", value_parser = parse_prefix)]
    name_prefix: Option<String>,
    /// How long the token is good, at most a year
    #[arg(long, value_name = "HOURS", default_value_t = 2160, value_parser = clap::value_parser!(u64).range(1..=8760))]
    token_hours: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// cloud-init
    CloudInit,
    /// Ignition, version 3
    Ignition,
}

fn parse_label(text: &str) -> Result<String, String> {
    if is_label(text) { Ok(text.to_owned()) } else { Err("lower-case letters, digits and '-', at most 63".to_owned()) }
}

fn parse_prefix(text: &str) -> Result<String, String> {
    let is_prefix = text.strip_suffix('-').is_some_and(is_label);
    if is_prefix {
        Ok(text.to_owned())
    } else {
        Err("lower-case letters, digits and '-', with a '-' at the end".to_owned())
    }
}

fn parse_url(text: &str) -> Result<String, String> {
    let known = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    if known && !text.chars().any(|letter| letter.is_control() || letter == ' ') {
        Ok(text.to_owned())
    } else {
        Err("expected http://… or https://…".to_owned())
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "expected KEY=VALUE".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Renders, lets the token in, and prints where the file is.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let cluster = Arc::into_inner(open_cluster(global)?);
    let mut cluster = cluster.ok_or_else(|| Error::bug("a cluster that was just opened is shared"))?;
    let inventory = cluster.inventory()?;
    let facts = match &args.like {
        Some(node) => user_data::facts_of(&cluster, node)?,
        None => user_data::image_facts(),
    };
    let settings = &mut cluster.settings.user_data;
    settings.form = match args.form {
        FormatName::CloudInit => UserDataFormat::CloudInit,
        FormatName::Ignition => UserDataFormat::Ignition,
    };
    if let Some(url) = &args.artifacts_url {
        settings.artifacts_url.clone_from(url);
    }
    if settings.artifacts_url.is_empty() {
        let message = "nothing says where machines fetch turnup and the artifacts from";
        return Err(Error::usage(message)
            .hint("serve the directory of `turnup artifacts export DIR`, and: --artifacts-url URL"));
    }
    settings.token_lifetime = Duration::from_hours(args.token_hours);
    let form = settings.form;
    cluster.settings.access.user.clone_from(&args.user);
    cluster.settings.access.authorized_key_files = args.keys.iter().map(|file| cluster.work_dir.join(file)).collect();
    let name_prefix = args.name_prefix.clone();
    let group = Group {
        name: args.group.clone(),
        role: Role::Worker,
        name_prefix: name_prefix.unwrap_or_else(|| groups::name_prefix(&cluster, &args.group)),
        labels: BTreeMap::from_iter(args.labels.clone()),
        taints: Vec::new(),
        max_pods: None,
        kube_reserved: BTreeMap::new(),
    };
    groups::require_own_labels(&group.name, group.labels.keys())?;
    let lock = take_lock(&cluster.store, "turnup user-data", printer)?;
    let token = groups::admit(&cluster, &group)?;
    let servers = inventory.node_balancer().map(|list| list.line());
    let api = match &servers {
        Some(servers) => ApiPlace::Balancer(servers),
        None => ApiPlace::Host(inventory.api.host_for_nodes()),
    };
    let join = user_data::JoinParams { api, token: &token };
    let text = user_data::render(&cluster, &cluster.resolved()?, &facts, &group, join)?;
    let file = form.file_of(&group.name);
    cluster.store.write_file(&file, text.as_bytes(), 0o600)?;
    drop(lock);
    if !user_data::is_approved_by(&cluster, &inventory, &group)? {
        printer.remark("run turnup up: then the control plane lets machines of this group join");
    }
    printer.line(&cluster.store.path(file).display().to_string())
}
