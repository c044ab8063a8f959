//! `turnup backup`: backups of etcd. The control-plane hosts take them by themselves
//! (`phase2.backup.store`); this takes one now, lists, verifies and fetches them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::bootstrap::{backup, backup_open};
use crate::error::{Error, Result};
use crate::node::backup::{Identities, StoreOutcome};
use crate::report::Table;

use super::run::{ClusterSession, open_cluster};
use super::{Global, Printer};

/// The name and version of the JSON.
const SCHEMA: &str = "turnup.backup-command/1";
/// For one backup of a large etcd.
const TIMEOUT: Duration = Duration::from_mins(15);

/// Below the options.
const NOTES: &str = "\
Control-plane hosts take backups by themselves once phase2.backup.store is not none. docs/backup.md says how
a cluster is brought back to one.";

/// What to do.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum What {
    /// Take a backup now, on the first control-plane host that can
    Now,
    /// List the backups of every control-plane host, the newest first
    List,
    /// Restore a backup into a directory on its host that is removed again, and compare hash,
    /// revision and number of keys with its manifest
    Verify {
        /// Its name [default: the newest]
        name: Option<String>,
        #[command(flatten)]
        trust: TrustArgs,
    },
    /// Copy a backup to this machine, and check that it is whole
    Download {
        /// Its name
        name: String,
        /// The file to write, which must not exist
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        /// Accept a backup that the cluster has not signed, as those of before it signed any
        #[arg(long)]
        unsigned: bool,
    },
    /// Make the cluster's directory and the configuration again from an encrypted backup, where
    /// both are lost; nothing that is there is replaced
    Open {
        /// The backup
        file: PathBuf,
        /// The file with the private key of age, as age-keygen writes it
        #[arg(long, value_name = "FILE")]
        identity: PathBuf,
        /// The short name of the key that has signed it, as `turnup backup verify` shows it;
        /// another one is refused
        #[arg(long, value_name = "SHA256:…")]
        signer: Option<String>,
    },
}

/// What opens a backup, and who is believed.
#[derive(Clone, Debug, clap::Args)]
struct TrustArgs {
    /// The file with the private key of age, as age-keygen writes it, for an encrypted backup; it
    /// does not leave this machine
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Accept a backup that the cluster has not signed, as those of before it signed any
    #[arg(long)]
    unsigned: bool,
}

/// Does it.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    match &args.what {
        What::Now => now(global, printer),
        What::List => list(global, printer),
        What::Verify { name, trust } => verify(name.as_deref(), trust, global, printer),
        What::Open { file, identity, signer } => open(file, identity, signer.as_deref(), global, printer),
        What::Download { name, to, unsigned } => {
            let manifest = backup::download(open_cluster(global)?.as_ref(), name, to, *unsigned)?.manifest;
            if printer.is_json() {
                return printer.json(&json!({"schema": SCHEMA, "file": to, "manifest": manifest}));
            }
            printer.line(&format!("{}: revision {} of {}", to.display(), manifest.revision, manifest.time))
        }
    }
}

fn now(global: &Global, printer: &Printer) -> Result<()> {
    let session = ClusterSession::start(global, "backup")?;
    let taken = session.finish(|session| {
        let _lock = session.lock()?;
        backup::take(&session.cluster, &session.context("backup", TIMEOUT)?)
    })?;
    let backup = &taken.backup;
    let failed = taken.stored.as_ref().and_then(StoreOutcome::error);
    if printer.is_json() {
        printer.json(&json!({"schema": SCHEMA, "taken": taken}))?;
        return failed.map_or(Ok(()), Err);
    }
    printer.line(&format!("{} on {}, {}", backup.name, backup.host, size(backup.bytes)))?;
    for name in &taken.deleted {
        printer.remark(&format!("superseded and deleted: {name}"));
    }
    for name in &taken.others {
        printer.remark(&format!("not a backup of {}, left alone: {name}", backup.host));
    }
    let Some(stored) = &taken.stored else { return Ok(()) };
    for name in &stored.copied {
        printer.line(&format!("{name} copied to {}", stored.place))?;
    }
    for name in &stored.deleted {
        printer.remark(&format!("superseded and deleted in the store: {name}"));
    }
    failed.map_or(Ok(()), Err)
}

fn list(global: &Global, printer: &Printer) -> Result<()> {
    let hosts = backup::list(open_cluster(global)?.as_ref())?;
    let answers = || hosts.iter().filter_map(|host| Some((&host.host, host.list.as_ref().ok()?)));
    let mut all: Vec<_> = answers().flat_map(|(_, list)| &list.backups).collect();
    all.sort_by_key(|backup| std::cmp::Reverse(backup.time));
    // Every host tells of the same store; what it has beside the hosts counts.
    let store = answers().find_map(|(_, list)| list.stored.as_ref());
    if printer.is_json() {
        let others: Vec<_> = answers().map(|(host, list)| json!({"host": host, "names": list.others})).collect();
        printer.json(&json!({"schema": SCHEMA, "backups": all, "others": others, "stored": store}))?;
    } else if all.is_empty() {
        printer.remark("there is no backup yet: turnup backup now takes one");
    } else {
        let mut table = Table::new(&["BACKUP", "HOST", "REVISION", "KUBERNETES", "REASON", "SIZE"]).right(2).right(5);
        for one in all {
            let (revision, version, reason) = match (&one.manifest, &one.damage) {
                (Some(manifest), _) => {
                    (manifest.revision.to_string(), manifest.kubernetes_version.as_str(), manifest.reason.as_str())
                }
                (None, _) => ("-".to_owned(), "-", "damaged"),
            };
            table.row([&one.name, &one.host, &revision, version, reason, &size(one.bytes)]);
        }
        printer.line(table.render().trim_end())?;
    }
    if !printer.is_json() {
        for (host, name) in answers().flat_map(|(host, list)| list.others.iter().map(move |name| (host, name))) {
            printer.remark(&format!("not a backup of {host}, left alone: {name}"));
        }
    }
    if let Some(store) = store.filter(|_| !printer.is_json()) {
        let is_here = |name: &str| answers().any(|(_, list)| list.backups.iter().any(|backup| backup.name == name));
        printer.line(&format!("{}: {} backups", store.place, store.backups.len()))?;
        for (_, object) in store.backups.iter().rev().filter(|(_, object)| !is_here(&object.name)) {
            printer.line(&format!("{} in the store alone, {}", object.name, size(object.bytes)))?;
        }
        if let Some(problem) = &store.problem {
            return Err(Error::precondition(problem.clone()).hint("turnup backup now (tries again, and says more)"));
        }
    }
    // Shown is what is known; a host that does not tell is an error after all.
    hosts.into_iter().try_for_each(|host| host.list.map(drop))
}

/// From nothing: no configuration is read, and no cluster is known.
fn open(file: &Path, identity: &Path, signer: Option<&str>, global: &Global, printer: &Printer) -> Result<()> {
    let identities = Identities::read(identity)?;
    let opened = backup_open::open(file, &identities, &global.state_dir, &global.config, signer)?;
    let (manifest, directory) = (&opened.manifest, opened.directory.display());
    if printer.is_json() {
        return printer.json(&json!({
            "schema": SCHEMA, "directory": opened.directory, "configuration": global.config, "files": opened.files,
            "signer": opened.signer, "manifest": manifest,
        }));
    }
    printer.line(&format!("{directory}: {} files of {}, as of {}", opened.files, manifest.cluster, manifest.time))?;
    printer.line(&format!("{}: the configuration", global.config.display()))?;
    printer.remark(&format!("signed by {}; compare it with what you wrote down", opened.signer));
    printer.remark(&format!(
        "next: put the new hosts into the configuration; turnup up; turnup restore --file {} --identity {}",
        file.display(),
        identity.display()
    ));
    Ok(())
}

fn verify(name: Option<&str>, trust: &TrustArgs, global: &Global, printer: &Printer) -> Result<()> {
    let cluster = open_cluster(global)?;
    let verified = backup::verify(cluster.as_ref(), name, trust.identity.as_deref(), trust.unsigned)?;
    let signer = backup::signer_name(&cluster)?.filter(|_| verified.signed.signature.is_some());
    if printer.is_json() {
        let value =
            json!({"name": verified.name, "host": verified.host, "manifest": verified.manifest, "signer": signer});
        return printer.json(&json!({"schema": SCHEMA, "verified": value}));
    }
    let manifest = &verified.manifest;
    printer.line(&format!(
        "{} on {} can be restored: revision {}, {} keys, hash {}",
        verified.name, verified.host, manifest.revision, manifest.keys, manifest.hash
    ))?;
    match (signer, &manifest.encrypted) {
        (Some(signer), Some(_)) => printer.remark(&format!("encrypted, and signed by {signer}")),
        (Some(signer), None) => printer.remark(&format!("signed by {signer}")),
        (None, _) => printer.remark("not signed"),
    }
    Ok(())
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    const MEGA: u64 = 1_000_000;
    if bytes < MEGA { format!("{} kB", bytes.div_ceil(1000)) } else { format!("{} MB", bytes.div_ceil(MEGA)) }
}
