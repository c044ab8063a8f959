//! `turnup kconfig fmt`: files in the canonical form, rewritten in place or only checked.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use kconfig::format;
use serde_json::json;

use super::output::replace;
use super::tree::render;
use crate::cli::Printer;
use crate::error::{Class, Context as _, Error, Result};

/// Below the options.
const NOTES: &str = "\
Only blanks and empty lines change, and ---help--- becomes help: entries at the margin, attributes behind one tab, help behind a
tab and two spaces, one empty line before each entry. A file that does not parse is refused and left alone; the others are
formatted all the same.

With --output json each file that is, or with --check would be, changed is one line: {\"schema\": \"turnup.kconfig.format/1\", \"file\": …}.

Exit codes: 0 when all is well, 1 with --check when a file would change, and when a file was refused.";

/// Formats files.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(super) struct Args {
    /// Kconfig files; - for standard input, which goes to standard output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write nothing; print which files would change
    #[arg(long)]
    check: bool,
}

/// What became of one file.
enum Outcome {
    Same,
    Changed,
    Refused,
}

/// Runs the tool.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    let (mut changed, mut refused) = (0_usize, 0_usize);
    for file in &args.files {
        match format_file(file, args.check, printer)? {
            Outcome::Same => {}
            Outcome::Changed => changed += 1,
            Outcome::Refused => refused += 1,
        }
    }
    let count = |number: usize| format!("{number} file{}", if number == 1 { "" } else { "s" });
    if refused > 0 {
        return Err(Error::permanent(format!("{} refused and left alone", count(refused))));
    }
    if args.check && changed > 0 {
        let names: Vec<String> = args.files.iter().map(|file| file.display().to_string()).collect();
        let all = if names.len() > 3 {
            "the same without --check".to_owned()
        } else {
            format!("turnup kconfig fmt {}", names.join(" "))
        };
        return Err(Error::permanent(format!("{} would change", count(changed))).hint(all));
    }
    Ok(())
}

fn format_file(path: &Path, check: bool, printer: &Printer) -> Result<Outcome> {
    let standard = path == Path::new("-");
    let name = if standard { "standard input".to_owned() } else { path.display().to_string() };
    let bytes = if standard {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        bytes
    } else {
        fs_err::read(path).context_class(Class::Config, format!("cannot read {name}"))?
    };
    let formatted = match format::format(&name, &bytes) {
        Ok(formatted) => formatted,
        Err(found) => {
            printer.coloured_remark(&render(&found, std::io::stderr().is_terminal()));
            return Ok(Outcome::Refused);
        }
    };
    let changed = formatted != bytes;
    if standard && !check {
        anstream::stdout().lock().write_all(&formatted).context("cannot write to standard output")?;
        return Ok(Outcome::Same);
    }
    if !changed {
        return Ok(Outcome::Same);
    }
    if !check {
        replace(path, &formatted)?;
    }
    if printer.is_json() {
        printer.json(&json!({ "schema": "turnup.kconfig.format/1", "file": name }))?;
    } else if check {
        printer.line(&name)?;
    } else {
        printer.remark(&format!("formatted {name}"));
    }
    Ok(Outcome::Changed)
}
