//! `turnup kconfig check`: everything that is wrong with a tree, as pictures or as JSON.

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use kconfig::lint::{self, Elsewhere, LINTS, Policy, Setting};
use kconfig::{Diagnostics, Level, Tree};
use serde_json::{Value, json};

use super::tree::{TreeArgs, refused, render};
use crate::cli::Printer;
use crate::error::{Error, Result};

/// Below the options.
const NOTES: &str = "\
A lint can be named by its id, as in --deny K103; `all` names all that are not fatal. A single id counts more than `all`,
and of several settings of one id the strictest counts.

With --output json each finding is one line: {\"schema\": \"turnup.kconfig.finding/1\", \"id\": \"K101\", \"level\": \"warning\",
\"message\": …, \"help\": …, \"labels\": [{\"file\": …, \"line\": 1, \"column\": 1, \"length\": 1, \"text\": …}, …]};
the first label is the place of the finding.

Exit codes: 0 without errors, 1 with errors or denied lints, 2 for a wrong command line, 3 when there is no such tree.";

/// Looks for mistakes.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// The top file of the tree
    #[arg(value_name = "PATH", default_value = "Kconfig")]
    path: String,
    /// Do not report this lint
    #[arg(long, value_name = "ID")]
    allow: Vec<String>,
    /// Report this lint as a warning
    #[arg(long, value_name = "ID")]
    warn: Vec<String>,
    /// Report this lint as an error
    #[arg(long, value_name = "ID")]
    deny: Vec<String>,
    /// Show all lints, each on one line, and stop
    #[arg(long)]
    list: bool,
    /// A name that only Kconfig files define which this tree does not read, as those of other
    /// architectures, is undefined
    #[arg(long)]
    closed: bool,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Runs the tool.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    let policy = policy(args)?;
    if args.list {
        return list(&policy, printer);
    }
    match args.tree.try_load(&args.path)? {
        Err(found) => {
            print(&found, printer, |span| found.location(span))?;
            Err(refused(&args.path, &found))
        }
        Ok(tree) => {
            let elsewhere = if args.closed { Elsewhere::default() } else { look_around(args.tree.directory(), &tree) };
            let bar = Bar::new(printer);
            let found = lint::check_watched(&tree, &policy, &elsewhere, &|done, steps| bar.show(done, steps));
            bar.clear();
            print(&found, printer, |span| tree.location(span))?;
            conclude(&found, &args.path, &tree, printer)
        }
    }
}

fn policy(args: &Args) -> Result<Policy> {
    let mut policy = Policy::default();
    let wishes = [(&args.allow, Setting::Allow), (&args.warn, Setting::Warn), (&args.deny, Setting::Deny)];
    for whole in [true, false] {
        for (ids, setting) in wishes {
            for id in ids.iter().filter(|id| (*id == "all") == whole) {
                let refuse = |error: lint::PolicyError| {
                    Error::usage(error.to_string()).hint("turnup kconfig check --list shows all lints")
                };
                policy.set(id, setting).map_err(refuse)?;
            }
        }
    }
    Ok(policy)
}

fn list(policy: &Policy, printer: &Printer) -> Result<()> {
    for lint in LINTS {
        let setting = if lint.fatal { "error" } else { policy.get(lint.id).as_str() };
        if printer.is_json() {
            printer.json(&json!({
                "schema": "turnup.kconfig.lint/1", "id": lint.id, "setting": setting, "fatal": lint.fatal, "summary": lint.summary,
            }))?;
        } else {
            printer.line(&format!("{}  {setting:<5}  {}", lint.id, lint.summary))?;
        }
    }
    Ok(())
}

fn print(found: &Diagnostics, printer: &Printer, locate: impl Fn(kconfig::Span) -> String) -> Result<()> {
    if !printer.is_json() {
        let text = render(found, std::io::stdout().is_terminal());
        return if text.is_empty() { Ok(()) } else { printer.coloured(&text) };
    }
    for finding in found {
        let labels: Vec<Value> = finding
            .labels
            .iter()
            .map(|label| {
                let place = locate(label.span);
                let file = place.rsplitn(3, ':').nth(2).unwrap_or_default();
                json!({
                    "file": file, "line": label.span.line, "column": label.span.col, "length": label.span.len,
                    "text": label.text,
                })
            })
            .collect();
        let level = if finding.level == Level::Error { "error" } else { "warning" };
        printer.json(&json!({
            "schema": "turnup.kconfig.finding/1", "id": finding.id, "level": level, "message": finding.message,
            "help": finding.help, "labels": labels,
        }))?;
    }
    Ok(())
}

/// Most trees are done before a bar could be read.
const PATIENCE: Duration = Duration::from_millis(500);

/// A progress bar on the user's terminal, when it takes long enough.
struct Bar(Option<(ProgressBar, Instant)>);

impl Bar {
    fn new(printer: &Printer) -> Self {
        let wanted = std::io::stderr().is_terminal() && !printer.is_quiet();
        Self(wanted.then(|| {
            let bar = ProgressBar::no_length();
            bar.set_style(
                ProgressStyle::with_template("checking {bar:40} {percent:>3}%").unwrap_or(ProgressStyle::default_bar()),
            );
            (bar, Instant::now())
        }))
    }

    fn show(&self, done: usize, steps: usize) {
        if let Some((bar, start)) = &self.0
            && start.elapsed() >= PATIENCE
        {
            bar.set_length(steps as u64);
            bar.set_position(done as u64);
        }
    }

    fn clear(&self) {
        if let Some((bar, _)) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn conclude(found: &Diagnostics, path: &str, tree: &Tree, printer: &Printer) -> Result<()> {
    let errors = found.iter().filter(|finding| finding.level == Level::Error).count();
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    if errors > 0 {
        let warnings = count(found.len() - errors, "warning");
        return Err(Error::permanent(format!("{path} has {} and {warnings}", count(errors, "error"))));
    }
    printer.remark(&format!("{path}: {}, by {}", count(found.len(), "warning"), tree.detected().explain()));
    Ok(())
}

/// The names in Kconfig files of the project that this tree does not read.
fn look_around(directory: &Path, tree: &Tree) -> Elsewhere {
    let read: HashSet<PathBuf> = tree.files().map(|path| directory.join(path)).collect();
    let mut elsewhere = Elsewhere::default();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        // What cannot be listed or read has no names for us; loading has told what it could not
        // read.
        let Ok(entries) = fs_err::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !name.to_string_lossy().starts_with('.') {
                open.push(path);
            } else if kind.is_file()
                && name.to_string_lossy().starts_with("Kconfig")
                && !read.contains(&path)
                && let Ok(bytes) = fs_err::read(&path)
            {
                elsewhere.add(&kconfig::text::from_bytes(bytes));
            }
        }
    }
    elsewhere
}
