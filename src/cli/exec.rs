//! `turnup exec HOST… -- COMMAND`: the operator's own commands on hosts, over the connections that
//! turnup itself uses.

use std::time::Duration;

use serde_json::json;

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::exec::{Stream, signals};
use crate::inventory::{Host, Inventory, Role};
use crate::parallel;

use super::run::{open_cluster, parse_count, parse_max_duration};
use super::{Global, Printer};

/// The name and version of the JSON, one line a host.
const SCHEMA: &str = "turnup.exec/1";
/// For a command that does not say otherwise.
const LONGEST: Duration = Duration::from_hours(1);

/// Below the options of `exec`.
const NOTES: &str = "\
The command runs as root, without a terminal and without a shell: for pipes and the like say
sh -c '…'. Lines of several hosts begin with the host's name. The exit code is 1 when a host failed.";

/// Where, and what.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Names of hosts, or all, control-plane, workers
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// The command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// On how many hosts at once
    #[arg(long, value_name = "COUNT", value_parser = parse_count, default_value_t = parallel::HOSTS)]
    parallel: usize,
    /// How long it may take on a host: 90s, 5m, 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_max_duration)]
    timeout: Option<Duration>,
}

/// Runs the command on all of them.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    signals::install()?;
    let cluster = open_cluster(global)?;
    let inventory = cluster.inventory()?;
    let hosts = select(&inventory, &args.hosts)?;
    let is_one = hosts.len() == 1;
    let limit = args.timeout.unwrap_or(LONGEST);
    let failed = parallel::map(&hosts, args.parallel, |host| {
        signals::check()?;
        run_on(&cluster, host, &args.command, limit, is_one, printer)
            .map(|code| (code != Some(0)).then_some((*host, code)))
    });
    let failed: Vec<(&Host, Option<i32>)> =
        failed.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let Some((first, _)) = failed.first() else { return Ok(()) };
    let told = |(host, code): &(&Host, Option<i32>)| {
        let code = code.map_or_else(|| "did not run to its end".to_owned(), |code| format!("exit code {code}"));
        format!("{}: {code}", host.name)
    };
    let error = Error::permanent(format!("the command failed on {} of {} hosts", failed.len(), hosts.len()));
    Err(error.evidence_of(failed.iter().map(told)).hint(format!("turnup ssh {}", first.name)))
}

/// The exit code; none where the host cannot be reached, or the command was ended.
fn run_on(
    cluster: &Cluster,
    host: &Host,
    command: &[String],
    limit: Duration,
    is_one: bool,
    printer: &Printer,
) -> Result<Option<i32>> {
    let mut lines = Vec::new();
    let prefix = if is_one { String::new() } else { format!("{}: ", host.name) };
    let ended = cluster.ssh(host)?.timeout(limit).try_stream(command, |stream, line| match stream {
        _ if printer.is_json() => lines.push(json!({"stream": name_of(stream), "text": line})),
        // A closed standard output ends the command when all hosts have ended.
        Stream::Stdout => drop(printer.line(&format!("{prefix}{line}"))),
        Stream::Stderr => printer.remark(&format!("{prefix}{line}")),
    });
    signals::check()?;
    let (code, why) = match ended {
        Ok(Ok(_)) => (Some(0), None),
        Ok(Err(failure)) => (failure.code(), None),
        Err(error) => (None, Some(error.message().to_owned())),
    };
    if printer.is_json() {
        printer.json(&json!({"schema": SCHEMA, "host": host.name, "code": code, "error": why, "lines": lines}))?;
    } else if let Some(why) = why {
        printer.remark(&format!("{prefix}{why}"));
    }
    Ok(code)
}

const fn name_of(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

/// Hosts by their names and by words for several of them, each once, in the order of the inventory.
fn select<'h>(inventory: &'h Inventory, words: &[String]) -> Result<Vec<&'h Host>> {
    let mut chosen = Vec::new();
    for word in words {
        let of_role = |role: Option<Role>| {
            inventory.hosts.iter().filter(move |host| role.is_none_or(|role| host.role == role)).collect::<Vec<_>>()
        };
        chosen.extend(match word.as_str() {
            "all" => of_role(None),
            "control-plane" => of_role(Some(Role::ControlPlane)),
            "workers" => of_role(Some(Role::Worker)),
            name => vec![inventory.find_named(name)?],
        });
    }
    Ok(inventory.hosts.iter().filter(|host| chosen.iter().any(|one| one.name == host.name)).collect())
}
