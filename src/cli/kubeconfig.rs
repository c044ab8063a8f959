//! `turnup kubeconfig`: the administrator's, renewed; one for another user; or a break-glass one,
//! for the safe.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde_json::json;

use crate::bootstrap::credentials::{CredentialRequest, MASTERS, write_kubeconfig};
use crate::bootstrap::{KUBECONFIG, seal};
use crate::cluster::Cluster;
use crate::config::{parse_duration, people};
use crate::error::{Context as _, Error, Result};
use crate::state::{Credential, JournalEntry};

use super::run::{open_cluster, take_lock};
use super::{Global, Printer};

/// The life of a break-glass credential that says nothing else, and the longest.
const BREAK_GLASS: [Duration; 2] = [Duration::from_hours(1), Duration::from_hours(24)];
/// The shortest life of any.
const SHORTEST: Duration = Duration::from_mins(1);
/// In place of a file: standard output.
const STANDARD_OUTPUT: &str = "-";

/// Below the options.
const NOTES: &str = "\
Without options: renews the administrator's kubeconfig when about a third of its life is left, and prints
its path. With --user or --break-glass: writes another one, with a key of its own that is kept nowhere else.
A certificate cannot be revoked, so what it may do is bound to its groups, and its life is short.

    turnup kubeconfig --user bob --group viewers --to bob.kubeconfig
    kubectl create clusterrolebinding viewers --clusterrole=view --group=viewers

Break-glass is the group system:masters, which the API server lets do everything, whatever RBAC says. Each one
is in the journal, and in `turnup status`. For the safe, let age encrypt it (docs/access.md):

    turnup kubeconfig --break-glass --seal age1… --to safe.age --reason 'the safe in room 3' --yes
    age --decrypt --identity KEY safe.age >kubeconfig";

/// Options of `turnup kubeconfig`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
#[command(group(clap::ArgGroup::new("other").args(["user", "break_glass"])))]
pub struct Args {
    /// A kubeconfig for this user, in place of the administrator's
    #[arg(long, value_name = "NAME", requires = "to", value_parser = parse_user)]
    user: Option<String>,
    /// A group of that user, to which roles are bound; may be repeated
    #[arg(long, value_name = "GROUP", requires = "user", value_parser = parse_group)]
    group: Vec<String>,
    /// A kubeconfig of system:masters, for an emergency: asks, and is recorded
    #[arg(long, requires = "to")]
    break_glass: bool,
    /// How long it works: 90m, 8h [default: phase2.kubeconfig.lifetime; break-glass 1h, sealed
    /// 8760h]
    #[arg(long, value_name = "TIME", requires = "other", value_parser = parse_life)]
    lifetime: Option<Duration>,
    /// Where it is written, 0600; a file that is there is left alone; - is standard output
    #[arg(long, value_name = "FILE", requires = "other")]
    to: Option<PathBuf>,
    /// Have age encrypt it for this recipient: age1… or a public key of ssh; may be repeated
    #[arg(long, value_name = "RECIPIENT", requires = "other", value_parser = parse_recipient)]
    seal: Vec<String>,
    /// The same for the recipients in this file, one a line; may be repeated
    #[arg(long, value_name = "FILE", requires = "other")]
    seal_file: Vec<PathBuf>,
    /// Why, for the journal; asked for on a terminal
    #[arg(long, value_name = "TEXT", requires = "other", value_parser = parse_reason)]
    reason: Option<String>,
    /// Do not ask; required without a terminal, together with --reason
    #[arg(long, requires_all = ["break_glass", "reason"])]
    yes: bool,
}

fn parse_user(text: &str) -> Result<String, String> {
    people::judge_user(text).map(|()| text.to_owned())
}

fn parse_group(text: &str) -> Result<String, String> {
    let more = if text == MASTERS { "; for an emergency there is --break-glass" } else { "" };
    people::judge_group(text).map(|()| text.to_owned()).map_err(|why| why + more)
}

fn parse_recipient(text: &str) -> Result<String, String> {
    seal::judge_recipient(text).map(|()| text.to_owned())
}

fn parse_life(text: &str) -> Result<Duration, String> {
    let life = parse_duration(text).ok_or("expected a duration such as 90m or 8h")?;
    if life < SHORTEST { Err("at least a minute (1m)".to_owned()) } else { Ok(life) }
}

fn parse_reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err("expected a reason in one line".to_owned());
    }
    Ok(text.to_owned())
}

/// Renews the administrator's, or issues another one.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let cluster = open_cluster(global)?;
    let Some(to) = &args.to else {
        let inventory = cluster.inventory()?;
        let _lock = take_lock(&cluster.store, "turnup kubeconfig", printer)?;
        write_kubeconfig(&cluster, &inventory)?;
        return printer.line(&cluster.store.path(KUBECONFIG).display().to_string());
    };
    let order = order(args, &cluster, printer)?;
    issue(args, order, &cluster, to, printer)
}

impl Args {
    fn is_sealed(&self) -> bool {
        !self.seal.is_empty() || !self.seal_file.is_empty()
    }
}

/// The request within its limits; break-glass only after a confirmation.
fn order(args: &Args, cluster: &Cluster, printer: &Printer) -> Result<CredentialRequest> {
    let settings = &cluster.settings.kubeconfig;
    let (default, most, limit) = match (args.break_glass, args.is_sealed()) {
        (true, true) => (people::LONGEST, people::LONGEST, "a sealed break-glass credential"),
        (true, false) => (BREAK_GLASS[0], BREAK_GLASS[1], "a break-glass credential that is not sealed"),
        (false, _) => (settings.lifetime, settings.max_lifetime, "phase2.kubeconfig.max_lifetime"),
    };
    let life = args.lifetime.unwrap_or(default);
    if life > most {
        let message = format!("--lifetime {}: {limit} allows {} at most", hours(life), hours(most));
        return Err(Error::usage(message).hint(format!("turnup kubeconfig … --lifetime {}", hours(most))));
    }
    match &args.user {
        Some(user) => {
            let (user, groups, reason) = (user.clone(), args.group.clone(), args.reason.clone());
            Ok(CredentialRequest { user, groups, life, reason })
        }
        None => Ok(CredentialRequest::break_glass(life, reason(args, &cluster.settings.name, life, printer)?)),
    }
}

/// The reason, from the command line or the terminal; giving one there is the confirmation.
fn reason(args: &Args, cluster: &str, life: Duration, printer: &Printer) -> Result<String> {
    let without = "turnup kubeconfig --break-glass --to FILE --yes --reason 'why'";
    if let (true, Some(reason)) = (args.yes, &args.reason) {
        return Ok(reason.clone());
    }
    let what = format!(
        "A credential of {MASTERS} for the cluster {cluster}, for {}: nothing restrains who has it, and it cannot be revoked.",
        hours(life)
    );
    let nothing = || Error::usage("nothing was issued").hint(without);
    if let Some(reason) = &args.reason {
        let yes = printer.confirm(&format!("{what} Issue it?"), without)?;
        return if yes { Ok(reason.clone()) } else { Err(nothing()) };
    }
    let answer = printer.ask(&format!("{what}\nWhat for? It goes into the journal; nothing issues none: "), without)?;
    parse_reason(&answer).map_err(|_| nothing())
}

fn hours(life: Duration) -> String {
    let minutes = life.as_secs() / 60;
    if minutes.is_multiple_of(60) { format!("{}h", minutes / 60) } else { format!("{minutes}m") }
}

/// Makes it, records it, and only then lets it out.
fn issue(args: &Args, order: CredentialRequest, cluster: &Cluster, to: &Path, printer: &Printer) -> Result<()> {
    let inventory = cluster.inventory()?;
    let lock = take_lock(&cluster.store, "turnup kubeconfig", printer)?;
    refuse_to_overwrite(to)?;
    let (kubeconfig, mut credential) = order.issue(cluster, &inventory)?;
    let sealed = args.is_sealed().then(|| seal::seal(&kubeconfig, &args.seal, &args.seal_file, &cluster.work_dir));
    let sealed = sealed.transpose()?;
    let files = args.seal_file.iter().map(|file| file.display().to_string());
    credential.sealed_for = args.seal.iter().cloned().chain(files).collect();
    cluster.store.record(&lock, JournalEntry::Issued { credential: credential.clone() })?;
    cluster.store.flush(&lock)?;
    drop(lock);
    write(to, sealed.as_deref().unwrap_or(&kubeconfig), printer)?;
    describe(&credential, to, printer)
}

fn refuse_to_overwrite(to: &Path) -> Result<()> {
    if to.as_os_str() == STANDARD_OUTPUT || fs_err::symlink_metadata(to).is_err() {
        return Ok(());
    }
    Err(Error::usage(format!("{} is there already", to.display())).hint("turnup kubeconfig … --to another file"))
}

fn write(to: &Path, text: &str, printer: &Printer) -> Result<()> {
    if to.as_os_str() == STANDARD_OUTPUT {
        return printer.line(text.trim_end());
    }
    let open = fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.context(format!("cannot write {}", to.display()))
}

fn describe(credential: &Credential, to: &Path, printer: &Printer) -> Result<()> {
    let Credential { user, groups, serial, expires, sealed_for, .. } = credential;
    let groups = if groups.is_empty() { "no group".to_owned() } else { groups.join(", ") };
    let sealed = if sealed_for.is_empty() { "" } else { ", encrypted by age" };
    let ends = expires.strftime("%Y-%m-%d %H:%M:%SZ");
    printer.remark(&format!("{user} ({groups}) until {ends}, serial {serial}{sealed}"));
    if to.as_os_str() == STANDARD_OUTPUT {
        return Ok(());
    }
    if printer.is_json() {
        return printer.json(&json!({"schema": "turnup.kubeconfig/1", "file": to, "credential": credential}));
    }
    printer.line(&to.display().to_string())
}
