//! `turnup events`: what a run did, from its kept events; also while it goes on. Reads only.

use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::error::{Error, Result};
use crate::exec::signals;
use crate::phase::{self, Event, What};
use crate::report::{RecordedRun, Replay, Table, duration};
use crate::state::{KeptRun, Store, Tail};

use super::run::look_at_store;
use super::{Global, Printer};

/// How often a run that goes on is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Which run, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The run, as --list names it, or the beginning or end of its name; the last one by default
    #[arg(value_name = "RUN", conflicts_with_all = ["list", "schema"])]
    run: Option<String>,
    /// Go on with what happens, until the run has ended
    #[arg(long, short, conflicts_with_all = ["list", "schema"])]
    follow: bool,
    /// The runs whose events are kept
    #[arg(long, conflicts_with = "schema")]
    list: bool,
    /// The JSON Schema of one line of the stream
    #[arg(long)]
    schema: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    if args.schema {
        let text = serde_json::to_string_pretty(&phase::schema());
        return printer.line(&text.map_err(|error| Error::bug("the schema is no JSON").source(error))?);
    }
    let store = look_at_store(global)?;
    let runs = store.kept_runs()?;
    if args.list {
        return list(&store, &runs, printer);
    }
    let at = choose(&runs, args.run.as_deref())?;
    let mut earlier: Vec<KeptRun> =
        runs[..at].iter().filter(|run| run.command() == runs[at].command()).cloned().collect();
    earlier.reverse();
    show(&store, &runs[at], &earlier, args.follow, printer)
}

/// The run that is meant.
fn choose(runs: &[KeptRun], name: Option<&str>) -> Result<usize> {
    let last = runs.len().checked_sub(1).ok_or_else(|| {
        Error::usage("no events are kept for this cluster yet").hint("turnup up (every run keeps its events)")
    })?;
    let Some(name) = name else { return Ok(last) };
    let matching: Vec<usize> =
        (0..runs.len()).filter(|at| runs[*at].id.starts_with(name) || runs[*at].id.ends_with(name)).collect();
    if let Some(exact) = matching.iter().find(|at| runs[**at].id == name) {
        return Ok(*exact);
    }
    match matching.as_slice() {
        [one] => Ok(*one),
        [] => {
            let near = kconfig::suggest(name, runs.iter().map(|run| run.id.as_str()));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Err(Error::usage(format!("no events are kept of a run `{name}`{near}")).hint("turnup events --list"))
        }
        many => {
            let error = Error::usage(format!("`{name}` names {} runs", many.len()));
            Err(many.iter().fold(error, |error, at| error.evidence(&runs[*at].id)).hint("give more of the name"))
        }
    }
}

/// Shows a run, and with `follow` what is added to it until it has ended or its process is gone.
fn show(store: &Store, run: &KeptRun, earlier: &[KeptRun], follow: bool, printer: &Printer) -> Result<()> {
    if follow {
        signals::install()?;
    }
    let mut replay = (!printer.is_json()).then(|| Replay::new(Box::new(anstream::stdout())));
    let mut tail = Tail::new(&run.path);
    loop {
        // Asked first: a run that ends now has written all of its events by the next read.
        let is_running = store.owner().is_some();
        let mut ended = false;
        for line in tail.lines()? {
            let event: Option<Event> = serde_json::from_str(&line).ok();
            ended |= event.as_ref().is_some_and(|event| matches!(event.event, What::RunDone { .. }));
            match (&mut replay, event) {
                (Some(replay), Some(event)) => replay.show(&event),
                (Some(_), None) => printer.remark(&format!("{}: a line that is no event", run.path.display())),
                (None, _) => printer.json_text(&line)?,
            }
        }
        if ended || !follow || !is_running {
            break;
        }
        signals::check()?;
        thread::sleep(POLL_INTERVAL);
    }
    if let Some(replay) = replay {
        replay.finish(earlier);
    }
    Ok(())
}

fn list(store: &Store, runs: &[KeptRun], printer: &Printer) -> Result<()> {
    let recorded = runs.iter().map(RecordedRun::read).collect::<Result<Vec<RecordedRun>>>()?;
    let is_running = store.owner().is_some();
    let rows: Vec<(&KeptRun, &RecordedRun, &str)> = runs
        .iter()
        .zip(&recorded)
        .enumerate()
        .map(|(at, (run, past))| (run, past, verdict(past, is_running && at + 1 == runs.len())))
        .collect();
    if printer.is_json() {
        let run = |(run, past, verdict): &(&KeptRun, &RecordedRun, &str)| {
            let [ran, unchanged, failed, blocked] = past.counts;
            json!({
                "run": run.id, "command": run.command(), "began": past.began.map(|at| at.to_string()),
                "result": verdict, "seconds": past.seconds,
                "ran": ran, "unchanged": unchanged, "failed": failed, "not_started": blocked,
                "file": run.path.display().to_string(),
            })
        };
        return printer.json(&json!({"schema": "turnup.runs/1", "runs": rows.iter().map(run).collect::<Vec<_>>()}));
    }
    if rows.is_empty() {
        return printer.line("no events are kept for this cluster yet");
    }
    let mut table = Table::new(&["RUN", "BEGAN", "RESULT", "RAN", "TIME"]).right(3).right(4);
    for (run, past, verdict) in rows {
        let began = past.began.map_or_else(String::new, |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string());
        table.row([run.id.clone(), began, verdict.into(), past.counts[0].to_string(), duration(past.seconds)]);
    }
    printer.line(table.render().trim_end())
}

/// How a run ended.
const fn verdict(past: &RecordedRun, is_running: bool) -> &'static str {
    match past.ok {
        Some(true) => "done",
        Some(false) => "failed",
        None if is_running => "running",
        None => "killed",
    }
}
