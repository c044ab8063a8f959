//! `turnup down`: has the cluster remove what it made in its cloud, removes what provision made, or
//! makes hosts that existed before what they were; and then what turnup remembers of the cluster.
//! The artifact cache stays.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::bootstrap::cloud_resources::{
    CloudResource, CloudResources, delete_cloud_resources, find_cloud_resources, record_orphans,
};
use crate::bootstrap::reset::{self, ResetOutcome};
use crate::bootstrap::{give_up_etcd, remove_names, user_kubeconfig};
use crate::cluster::Cluster;
use crate::config::{Settings, TreeSource};
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::signals;
use crate::inventory::Host;
use crate::phase::What;
use crate::provision::{self, Made, Volumes, local};

use super::run::{ClusterSession, open_cluster, take_lock};
use super::{Global, Printer};

/// How long a cloud may take to delete everything.
const TIMEOUT: Duration = Duration::from_hours(1);
/// How long one host may take.
const HOST: Duration = Duration::from_mins(10);

/// For so long a cluster that does not answer is asked again what it made in its cloud.
const RECOVERY: Duration = Duration::from_mins(1);

/// Options of `turnup down`.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    /// Do not ask; required when stdin is not a terminal
    #[arg(long)]
    yes: bool,
    /// The cluster of this name below the state directory, whatever the configuration says, or when
    /// it is damaged or gone
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Forget hosts that ssh does not reach; what is on them stays there
    #[arg(long)]
    skip_unreachable: bool,
    /// Leave load balancers, volumes and snapshots that the cluster itself made in its cloud or
    /// storage: they cost money until you delete them
    #[arg(long)]
    keep_cloud_resources: bool,
    /// Also delete the volumes of etcd, and those that the cluster made for claims, with the data
    /// on them, whatever the configuration says
    #[arg(long)]
    destroy_volumes: bool,
    /// How many hosts are worked on at once [default: `phase2.parallel_hosts`]
    #[arg(long, value_name = "COUNT", value_parser = super::run::parse_count)]
    parallel: Option<usize>,
}

/// Takes the cluster down.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    signals::install()?;
    let cluster = open(args, global)?;
    let orphans = local::find_orphans(cluster.store.dir())?;
    if !cluster.store.dir().is_dir() && orphans.is_empty() {
        tell_absence(&cluster.settings.name, global, printer);
        return Ok(());
    }
    let session = ClusterSession::with(cluster, global, "down");
    let name = session.cluster.settings.name.clone();
    refuse_protected(&session.cluster, args.cluster.is_some())?;
    let made = removed_by_down(&session.cluster)?;
    let cloud_resources = look_into(&session, printer, args.keep_cloud_resources)?;
    if !args.keep_cloud_resources {
        cloud_resources.snapshots.require_none()?;
    }
    let of_claims = cloud_resources.going.iter().filter(|resource| resource.is_volume && !args.keep_cloud_resources);
    let volumes = choose_volumes(&session.cluster, &made, &of_claims.collect::<Vec<_>>(), args.destroy_volumes)?;
    let is_left = volumes == Volumes::Keep || args.keep_cloud_resources;
    if volumes == Volumes::Keep && !args.keep_cloud_resources {
        refuse_balancers(&cloud_resources)?;
    }
    let going = || cloud_resources.going.iter().map(ToString::to_string);
    let left = cloud_resources.staying.iter().chain(&cloud_resources.snapshots.going).cloned();
    let left: BTreeSet<String> = left.chain(going().filter(|_| is_left)).collect();
    for thing in &left {
        printer.remark(&format!("to be kept: {thing}"));
    }
    let stays = |line: &String| made.volumes.contains(line) || made.housing.contains(line);
    let kept = |line: &&String| volumes == Volumes::Keep && stays(line);
    let things = made.things.iter().filter(|line| !kept(line)).cloned();
    let things = things.chain(orphans.iter().map(|orphan| format!("local host {}", orphan.spec.name)));
    tell(&session, printer, &going().filter(|_| !is_left).chain(things).collect::<Vec<_>>());
    if !args.yes && !printer.confirm(&format!("Delete the cluster {name} with all its data?"), "turnup down --yes")? {
        return Err(Error::usage("nothing was deleted").hint("turnup down --yes"));
    }
    let kept = session.finish(|session| {
        let cluster = &session.cluster;
        let lock = session.lock()?;
        if cloud_resources.has_answered && !is_left {
            delete_cloud_resources(cluster, args.destroy_volumes, &session.context("down", TIMEOUT)?)?;
        }
        if cloud_resources.has_answered {
            record_orphans(cluster, &left)?;
        }
        // While there are hosts that reach the DNS server.
        let mut kept = left;
        kept.extend(remove_names(cluster)?);
        local::delete_orphans(&orphans)?;
        if provision::has_made(cluster)? {
            give_up_etcd(cluster)?;
            kept.extend(provision::destroy(cluster, volumes, &session.context("down", TIMEOUT)?)?);
        } else if let Some(inventory) = cluster.find_inventory()? {
            let hosts: Vec<&Host> = inventory.hosts.iter().collect();
            let again = if args.skip_unreachable { None } else { Some("turnup down --yes --skip-unreachable") };
            reset_hosts(session, &hosts, args.parallel, again)?;
        }
        user_kubeconfig::take_out(cluster)?;
        // Only after everything is gone: the state is the only record of what has to be deleted.
        cluster.store.delete(lock)?;
        Ok(kept)
    })?;
    for thing in &kept {
        printer.remark(&format!("kept, no longer managed by turnup: {thing}"));
    }
    printer.remark(&format!("the cluster {name} is gone"));
    Ok(())
}

/// An error when the cluster is protected: by the configuration, or where that is gone, by the one
/// that it was turned up with.
fn refuse_protected(cluster: &Cluster, named: bool) -> Result<()> {
    let applied: Option<serde_json::Value> = if named { cluster.store.read_json(Settings::APPLIED)? } else { None };
    let of_applied = applied.is_some_and(|applied| applied["phase1"]["deletion_protection"] == true);
    if !cluster.settings.driver.deletion_protection && !of_applied {
        return Ok(());
    }
    let name = &cluster.settings.name;
    Err(Error::config(format!("the cluster {name} is protected from deletion (phase1.deletion_protection)"))
        .hint("turnup config set phase1.deletion_protection=n, then turnup down"))
}

/// What the cluster made in its cloud. An error when its API does not answer, unless all of it is
/// to be kept anyway: once the machines are gone, no controller deletes it.
fn look_into(session: &ClusterSession, printer: &Printer, forget: bool) -> Result<CloudResources> {
    let cluster = &session.cluster;
    let _lock = take_lock(&cluster.store, "turnup down", printer)?;
    match find_cloud_resources(cluster, if forget { Duration::ZERO } else { RECOVERY }) {
        Err(error) if error.class() == Class::Interrupted => Err(error),
        Err(_) if forget => Ok(CloudResources::default()),
        Err(error) => {
            let message =
                format!("the cluster cannot be asked what it made in its cloud or storage: {}", error.message());
            let error =
                error.evidence_lines().iter().cloned().fold(Error::new(error.class(), message), Error::evidence);
            Err(error.hint("turnup down again; to leave it there, if there is any: turnup down --keep-cloud-resources"))
        }
        found => found,
    }
}

/// An error when load balancers would stay with the volumes that are kept: the network would stay
/// with them, half taken down.
fn refuse_balancers(cloud_resources: &CloudResources) -> Result<()> {
    let balancers: Vec<&CloudResource> = cloud_resources.going.iter().filter(|resource| !resource.is_volume).collect();
    if balancers.is_empty() {
        return Ok(());
    }
    let error =
        Error::precondition("load balancers that the cluster made would stay, and keep its network from being deleted");
    Err(error
        .evidence_of(balancers)
        .hint("delete these objects, then turnup down; or leave them: turnup down --keep-cloud-resources"))
}

/// What becomes of volumes with data. An error where they would be lost without the user's consent.
fn choose_volumes(cluster: &Cluster, made: &Made, of_claims: &[&CloudResource], destroy: bool) -> Result<Volumes> {
    if destroy || made.volumes.is_empty() && of_claims.is_empty() {
        return Ok(Volumes::Destroy);
    }
    if cluster.settings.driver.keep_volumes {
        return Ok(Volumes::Keep);
    }
    // Before the second phase has started there is nothing on them.
    if of_claims.is_empty() && !provision::hold_data(cluster)? {
        return Ok(Volumes::Destroy);
    }
    let error = Error::precondition("volumes hold the data of the cluster, and nothing says what becomes of them");
    let error = made.volumes.iter().fold(error, |error, volume| error.evidence(volume.clone()));
    Err(error
        .evidence_of(of_claims)
        .hint("turnup down --destroy-volumes, or keep them: turnup config set phase1.etcd_volume.keep=y"))
}

/// The cluster of the configuration, or the one that is named. What has to be removed stands in its
/// directory and not in the settings, so that defaults do where the file cannot be read.
fn open(args: &Args, global: &Global) -> Result<Arc<Cluster>> {
    let Some(name) = &args.cluster else { return open_cluster(global).map_err(|error| name_others(error, global)) };
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    if !work_dir.join(&global.state_dir).join(name).is_dir() {
        let error = Error::usage(format!("there is no cluster {name} in {}", global.state_dir.display()));
        let known = clusters(global);
        let near = kconfig::suggest(name, known.iter().map(String::as_str));
        let error = known.iter().fold(error, |error, known| error.evidence(known.clone()));
        return Err(match near {
            Some(near) => error.hint(format!("turnup down --cluster {near}")),
            None => error,
        });
    }
    let source = TreeSource::find(&work_dir);
    let written = global.settings(&source).ok();
    let fitting = written.filter(|found| found.get("phase1.cluster_name").is_ok_and(|found| found == *name));
    if let Some(settings) = fitting
        && let Ok(cluster) = Cluster::open(&settings, TreeSource::find(&work_dir), &global.state_dir)
    {
        return Ok(Arc::new(cluster));
    }
    // What it was turned up with says more than defaults: where Terraform's state is, and whose
    // credentials it needs.
    let applied = work_dir.join(&global.state_dir).join(name).join(Settings::APPLIED);
    if let Ok(settings) = Settings::load(&applied, &source)
        && settings.get("phase1.cluster_name").is_ok_and(|found| found == *name)
        && let Ok(cluster) = Cluster::open(&settings, TreeSource::find(&work_dir), &global.state_dir)
    {
        return Ok(Arc::new(cluster));
    }
    let mut settings = Settings::defaults(&source)?;
    settings.set_all(&[("phase1.cluster_name", name.as_str())])?;
    Cluster::open(&settings, source, &global.state_dir).map(Arc::new)
}

/// A cluster that does not exist is down already; the ones that do exist are named, in case one of
/// them was meant.
fn tell_absence(name: &str, global: &Global, printer: &Printer) {
    let others = clusters(global);
    let others = if others.is_empty() {
        String::new()
    } else {
        format!("; clusters there: {} (turnup down --cluster NAME)", others.join(", "))
    };
    printer.remark(&format!("there is no cluster {name} in {}: nothing to do{others}", global.state_dir.display()));
}

/// Names of the directories that are clusters' own.
fn clusters(global: &Global) -> Vec<String> {
    let entries = fs_err::read_dir(&global.state_dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = dirs.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn name_others(error: Error, global: &Global) -> Error {
    match clusters(global).as_slice() {
        [] => error,
        names if error.class() == Class::Config => {
            error.hint(format!("turnup down --cluster {} (needs no configuration)", names.join("|")))
        }
        _ => error,
    }
}

/// What will be removed, a line each.
fn removed_by_down(cluster: &Cluster) -> Result<Made> {
    let mut made = if provision::has_made(cluster)? {
        provision::list_made(cluster)?
    } else {
        let hosts = cluster.find_inventory()?.map(|inventory| inventory.hosts).unwrap_or_default();
        Made { things: hosts.iter().map(removed_from).collect(), ..Made::default() }
    };
    made.things.push(format!("the directory {}", cluster.store.dir().display()));
    Ok(made)
}

/// What a reset removes from a host, in a few words.
pub(super) fn removed_from(host: &Host) -> String {
    let role = host.role.name();
    format!(
        "from the host {} ({}, {role}): what its restore log says that turnup and pods made there",
        host.name, host.address
    )
}

/// Says what will be removed, before anything is asked or done.
pub(super) fn tell(session: &ClusterSession, printer: &Printer, lines: &[String]) {
    for line in lines {
        session.tell(printer, format!("to be removed: {line}"));
    }
}

/// Resets all these hosts and names those that failed. `forget` is the command that goes on without
/// those that ssh does not reach; none when they are to be forgotten already.
pub(super) fn reset_hosts(
    session: &ClusterSession,
    hosts: &[&Host],
    parallel: Option<usize>,
    forget: Option<&str>,
) -> Result<()> {
    let parallel = parallel.unwrap_or(session.cluster.settings.limits.parallel_hosts);
    let context = |host: &Host| session.context(&format!("{}@{}", session.command(), host.name), HOST);
    let (mut failed, mut class) = (Vec::new(), Class::Transient);
    for (host, outcome) in hosts.iter().zip(reset::reset(&session.cluster, hosts, parallel, &context)) {
        let message = match outcome {
            ResetOutcome::Clean(count) => format!("{}: clean, {count} things removed or put back", host.name),
            ResetOutcome::Unreachable(error) if forget.is_none() => {
                format!("{}: forgotten as it is: {}", host.name, error.message())
            }
            ResetOutcome::Unreachable(error) => {
                failed.push(format!("{}: {}", host.name, error.message()));
                continue;
            }
            ResetOutcome::Failed(error) => {
                class = error.class();
                failed.push(format!("{}: {}", host.name, error.message()));
                failed.extend(error.evidence_lines().iter().map(|line| format!("  {line}")));
                continue;
            }
        };
        session.reporter.sink().emit(What::Note { message });
    }
    signals::check()?;
    if failed.is_empty() {
        return Ok(());
    }
    let hosts = failed.iter().filter(|line| !line.starts_with(' ')).count();
    let error = Error::new(class, format!("{hosts} hosts are not clean; what is known of the cluster stays"));
    let error = failed.into_iter().fold(error, Error::evidence);
    let again = format!("turnup {} again", session.command());
    Err(error.hint(match (class, forget) {
        (Class::Transient, Some(forget)) => format!("{again}; without hosts that do not answer: {forget}"),
        _ => again,
    }))
}
