//! `turnup kconfig merge`: fragments of a `.config` become one, and nothing is lost without a word.

use std::path::{Path, PathBuf};

use kconfig::merge::{Encounter, Lost, Meeting, Merged, Rules, Source, apply, merge, switch_off_the_rest};
use kconfig::{Config, dotconfig};
use serde_json::json;

use super::output::replace;
use super::tree::{TreeArgs, default_config, read_text};
use crate::cli::Printer;
use crate::error::{Class, Error, Result};

/// Below the options.
const NOTES: &str = "\
The result goes to DIR/.config with -O, else to the file that KCONFIG_CONFIG names, else to .config. A symbol that no file
sets has its default. Remarks on overridden and lost values go to standard error.

With --output json each remark is one line on standard output: {\"schema\": \"turnup.kconfig.merge/1\", \"kind\": \"overridden\",
\"redundant\", \"kept\" or \"lost\", \"symbol\": …, \"requested\": {\"file\", \"line\", \"value\"}, …}.

Exit codes: 0 when merged, 1 with --strict when a request was overridden or lost (the result is written all the same), 3 when a
file cannot be read.";

/// Merges.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Args {
    /// The .config to start from
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// Fragments; a later one counts more
    #[arg(value_name = "FRAGMENT")]
    fragments: Vec<PathBuf>,
    /// Only merge the lines: read no tree, fill in no defaults
    #[arg(short)]
    merge_only: bool,
    /// Symbols that no file sets are off instead of their defaults
    #[arg(short = 'n', conflicts_with = "merge_only")]
    none: bool,
    /// Tell of fragments that repeat a value
    #[arg(short)]
    redundant: bool,
    /// A later m does not take an earlier y back
    #[arg(short = 'y')]
    builtin: bool,
    /// Fail when a request was overridden by a later fragment, or did not take effect
    #[arg(short, long)]
    strict: bool,
    /// The directory for the result
    #[arg(short = 'O', value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The top file of the tree
    #[arg(long = "tree", id = "tree_path", value_name = "PATH", default_value = "Kconfig")]
    tree_path: String,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Runs the tool.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    let files: Vec<&Path> = std::iter::once(&args.base).chain(&args.fragments).map(PathBuf::as_path).collect();
    let target = match &args.directory {
        Some(directory) if !directory.is_dir() => {
            return Err(Error::new(Class::Config, format!("there is no directory {}", directory.display()))
                .hint(format!("create it first: mkdir -p {}", directory.display())));
        }
        Some(directory) => directory.join(".config"),
        None => default_config(),
    };
    let texts = files.iter().map(|file| read_text(file)).collect::<Result<Vec<String>>>()?;
    let prefix = &args.tree.prefix.prefix;
    let merged = merge(&texts, prefix, Rules { builtin_wins: args.builtin });
    let report = MergeReport { files: &files, printer, prefix };
    let mut overridden = 0;
    for encounter in &merged.encounters {
        overridden += usize::from(encounter.meeting == Meeting::Overridden);
        if encounter.meeting != Meeting::Redundant || args.redundant {
            report.tell_encounter(encounter)?;
        }
    }
    let (text, lost) =
        if args.merge_only { (merged.to_text(prefix), Vec::new()) } else { complete(args, &merged, printer)? };
    for lost in &lost {
        report.tell_loss(lost)?;
    }
    replace(&target, &kconfig::text::to_bytes(&text))?;
    let partial = if args.merge_only { ", not completed" } else { "" };
    printer.remark(&format!("wrote {}{partial}", target.display()));
    if args.strict && overridden + lost.len() > 0 {
        let message = format!("{overridden} requests were overridden and {} lost", lost.len());
        return Err(Error::permanent(message));
    }
    Ok(())
}

/// The whole configuration, and what was lost on the way.
fn complete(args: &Args, merged: &Merged, printer: &Printer) -> Result<(String, Vec<Lost>)> {
    let tree = args.tree.load(&args.tree_path, printer)?;
    let mut config = Config::new(&tree);
    let prefix = &args.tree.prefix.prefix;
    let mut lost = apply(merged, &mut config, prefix);
    if args.none {
        switch_off_the_rest(&tree, &mut config);
        // What a request needed may be off now.
        lost = apply(merged, &mut config, prefix);
    }
    Ok((dotconfig::write(&config, prefix), lost))
}

/// Tells what happened to requests.
struct MergeReport<'a> {
    files: &'a [&'a Path],
    printer: &'a Printer,
    prefix: &'a str,
}

impl MergeReport<'_> {
    fn place(&self, source: &Source) -> String {
        let file = self.files.get(source.fragment).map_or_else(String::new, |file| file.display().to_string());
        format!("{file}:{}", source.request.line)
    }

    fn tell_encounter(&self, encounter: &Encounter) -> Result<()> {
        let (before, after) = (&encounter.before, &encounter.after);
        let kind = match encounter.meeting {
            Meeting::Overridden => "overridden",
            Meeting::Redundant => "redundant",
            Meeting::Kept => "kept",
        };
        if self.printer.is_json() {
            return self.printer.json(&json!({
                "schema": "turnup.kconfig.merge/1", "kind": kind, "symbol": before.request.name,
                "requested": self.json(before), "later": self.json(after),
            }));
        }
        let (first, second) = (self.place(before), self.place(after));
        let (was, line) = (before.request.to_line(self.prefix), after.request.to_line(self.prefix));
        self.printer.remark(&match encounter.meeting {
            Meeting::Overridden => format!("{second}: {line} overrides {was} of {first}"),
            Meeting::Redundant => format!("{second}: {line} is in {first} already"),
            Meeting::Kept => format!("{second}: {line} does not count: {was} of {first} is kept"),
        });
        Ok(())
    }

    fn tell_loss(&self, lost: &Lost) -> Result<()> {
        let request = &lost.source.request;
        if self.printer.is_json() {
            return self.printer.json(&json!({
                "schema": "turnup.kconfig.merge/1", "kind": "lost", "symbol": request.name,
                "requested": self.json(&lost.source), "actual": lost.actual, "why": lost.why,
            }));
        }
        let is = match &lost.actual {
            Some(value) if value == "n" => "it is off".to_owned(),
            Some(value) => format!("it is {value}"),
            None => "it has no value".to_owned(),
        };
        let mut text = format!("{}: {} took no effect: {is}", self.place(&lost.source), request.to_line(self.prefix));
        for reason in &lost.why {
            text.push_str("\n    ");
            text.push_str(reason);
        }
        self.printer.remark(&text);
        Ok(())
    }

    fn json(&self, source: &Source) -> serde_json::Value {
        let file = self.files.get(source.fragment).map(|file| file.display().to_string());
        json!({ "file": file, "line": source.request.line, "value": source.request.value })
    }
}
