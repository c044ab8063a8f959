//! `turnup logs`: what the programs of a step said, from the log files of a cluster; also while
//! they say it. Reads only.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::error::{Error, Result};
use crate::exec::signals;
use crate::phase::split_host;
use crate::report::Table;
use crate::state::{Store, Tail};

use super::phase_name::PhaseName;
use super::run::look_at_store;
use super::{Global, Printer};

/// How often a log that grows is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Whose log, and how much of it.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The step: `join`, or `bootstrap/join` where two phases have it; without it, what there is
    #[arg(value_name = "STEP")]
    step: Option<String>,
    /// The host; without it, all hosts of the step
    #[arg(value_name = "HOST")]
    host: Option<String>,
    /// Go on with what is added, until no turnup process works on the cluster any more
    #[arg(long, short, requires = "step")]
    follow: bool,
    /// Only the last lines of each log
    #[arg(long, value_name = "LINES", requires = "step")]
    tail: Option<usize>,
}

/// One log file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StepLog {
    /// `bootstrap/join`, or a name without a phase.
    step: String,
    host: Option<String>,
    path: PathBuf,
}

impl StepLog {
    fn parse(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(".log")?;
        let (step, host) = split_host(name);
        let of_phase = |phase: PhaseName| {
            let rest = step.strip_prefix(phase.name())?.strip_prefix('-')?;
            Some(format!("{}/{rest}", phase.name()))
        };
        let step = PhaseName::ALL.into_iter().find_map(of_phase).unwrap_or_else(|| step.to_owned());
        Some(Self { step, host: host.map(str::to_owned), path })
    }

    fn name(&self) -> String {
        self.host.as_ref().map_or_else(|| self.step.clone(), |host| format!("{}@{host}", self.step))
    }

    /// The step without its phase.
    fn short(&self) -> &str {
        self.step.split_once('/').map_or(&self.step, |(_, short)| short)
    }

    /// Its size in bytes, and when something was last written to it.
    fn facts(&self) -> Result<(u64, Option<Timestamp>)> {
        let metadata = fs_err::metadata(&self.path)?;
        let written = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        Ok((metadata.len(), written))
    }
}

/// Runs the command.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let store = look_at_store(global)?;
    let logs = find_logs(&store)?;
    let Some(step) = &args.step else { return list(&logs, printer) };
    let chosen = choose(&logs, step, args.host.as_deref())?;
    show(&store, &chosen, args, printer)
}

fn find_logs(store: &Store) -> Result<Vec<StepLog>> {
    let Ok(entries) = fs_err::read_dir(store.path("logs")) else { return Ok(Vec::new()) };
    let mut logs = Vec::new();
    for entry in entries {
        logs.extend(StepLog::parse(entry?.path()));
    }
    logs.sort();
    Ok(logs)
}

/// The logs that are meant: of one step, of one host or of all of its hosts.
fn choose<'l>(logs: &'l [StepLog], step: &str, host: Option<&str>) -> Result<Vec<&'l StepLog>> {
    // As events and errors name it: `bootstrap/join@worker-0`.
    let (step, host) = match split_host(step) {
        (step, Some(named)) if host.is_none() => (step, Some(named)),
        _ => (step, host),
    };
    let of_step: Vec<&StepLog> = logs.iter().filter(|log| log.step == step || log.short() == step).collect();
    let mut steps: Vec<&str> = of_step.iter().map(|log| log.step.as_str()).collect();
    steps.dedup();
    match steps.as_slice() {
        [] => {
            let names = logs.iter().flat_map(|log| [log.step.as_str(), log.short()]);
            return Err(unknown(format!("there is no log of a step `{step}`"), kconfig::suggest(step, names)));
        }
        [_] => {}
        several => {
            let error = Error::usage(format!("{} phases have a step `{step}`", several.len()));
            return Err(error.hint(format!("turnup logs {}", several.join(" | turnup logs "))));
        }
    }
    let Some(host) = host else { return Ok(of_step) };
    let hosts = || of_step.iter().filter_map(|log| log.host.as_deref());
    let of_host: Vec<&StepLog> = of_step.iter().copied().filter(|log| log.host.as_deref() == Some(host)).collect();
    if of_host.is_empty() {
        let message = format!("there is no log of {} on a host `{host}`", steps[0]);
        return Err(unknown(message, kconfig::suggest(host, hosts())));
    }
    Ok(of_host)
}

fn unknown(message: String, near: Option<String>) -> Error {
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Error::usage(message + &near).hint("turnup logs (shows which logs there are)")
}

fn list(logs: &[StepLog], printer: &Printer) -> Result<()> {
    if printer.is_json() {
        let mut items = Vec::new();
        for log in logs {
            let (bytes, written) = log.facts()?;
            let written = written.map(|at| at.to_string());
            let file = log.path.display().to_string();
            items.push(json!({"step": log.step, "host": log.host, "bytes": bytes, "written": written, "file": file}));
        }
        return printer.json(&json!({"schema": "turnup.logs/1", "logs": items}));
    }
    if logs.is_empty() {
        return printer.line("no step of this cluster has written a log yet");
    }
    let mut table = Table::new(&["STEP", "HOST", "BYTES", "WRITTEN"]).right(2);
    for log in logs {
        let (bytes, written) = log.facts()?;
        let written = written.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string());
        table.row([log.step.clone(), log.host.clone().unwrap_or_default(), bytes.to_string(), written]);
    }
    printer.line(table.render().trim_end())
}

/// Shows the logs one after another, and with `--follow` what is added to any of them as long as a
/// process works on the cluster.
fn show(store: &Store, logs: &[&StepLog], args: &Args, printer: &Printer) -> Result<()> {
    if args.follow {
        signals::install()?;
    }
    let mut tail: Vec<Tail> = logs.iter().map(|log| Tail::new(&log.path)).collect();
    let mut headed = None;
    let mut first = true;
    loop {
        // Asked first: a process that ends now has written everything by the next read.
        let is_running = store.owner().is_some();
        for (at, log) in logs.iter().enumerate() {
            let fresh = tail[at].lines()?;
            let skip = args.tail.filter(|_| first).map_or(0, |tail| fresh.len().saturating_sub(tail));
            if fresh.is_empty() {
                continue;
            }
            if logs.len() > 1 && headed != Some(at) && !printer.is_json() {
                printer.line(&format!("{}==> {} <==", if headed.is_some() { "\n" } else { "" }, log.name()))?;
                headed = Some(at);
            }
            for line in &fresh[skip..] {
                print(log, line, printer)?;
            }
        }
        first = false;
        if !args.follow || !is_running {
            return Ok(());
        }
        signals::check()?;
        thread::sleep(POLL_INTERVAL);
    }
}

fn print(log: &StepLog, line: &str, printer: &Printer) -> Result<()> {
    if printer.is_json() {
        return printer.json(&json!({"schema": "turnup.log-line/1", "step": log.step, "host": log.host, "line": line}));
    }
    printer.line(line)
}
