//! `turnup doctor`: what this machine has and lacks, and the command that installs it.

use std::io::Write as _;

use clap::ValueEnum;
use owo_colors::OwoColorize as _;

use crate::doctor::{self, Finding, Level};
use crate::report::Table;
use crate::{Context as _, Result};

/// How findings are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Shows every tool and every fact of this machine that matters; exits with 4 when something required is missing.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How to show what was found.
    #[arg(long, value_enum, default_value_t)]
    output: Output,
    /// The provision target to look for: local, baremetal, gce, aws or azure.
    #[arg(long, default_value = "local")]
    target: String,
    /// Installs the missing packages first (as root, with the system's package manager).
    #[arg(long)]
    install: bool,
}

/// Runs it.
pub fn run(args: &Args) -> Result<()> {
    if args.install {
        let packages = doctor::missing_packages(&args.target);
        if !packages.is_empty() {
            // Standard output is for what was found.
            writeln!(anstream::stderr(), "installing {}", packages.join(", "))?;
        }
        doctor::install(&args.target)?;
    }
    let findings = doctor::inspect(&args.target);
    match args.output {
        Output::Text => print(&findings)?,
        Output::Json => {
            let report =
                serde_json::json!({ "schema": "turnup.doctor/1", "target": args.target, "findings": findings });
            let text = serde_json::to_string_pretty(&report).context("the findings are no JSON")?;
            writeln!(anstream::stdout(), "{text}")?;
        }
    }
    doctor::require(&findings)
}

/// Some tools say more than their version.
fn shorten(text: &str) -> String {
    const WIDTH: usize = 50;
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    text.chars().take(WIDTH - 1).chain(['…']).collect()
}

fn print(findings: &[Finding]) -> Result<()> {
    let mut table = Table::new(&["", "what", "found", "needed by"]);
    for finding in findings {
        let mark = match finding.level {
            Level::Ok => "ok",
            Level::Warning => "warn",
            Level::Missing => "MISS",
        };
        table.row([mark, &finding.name, &shorten(&finding.found), &finding.needed_by]);
    }
    let mut out = anstream::stdout().lock();
    for line in table.render().lines() {
        // Coloured after the widths are known, and only where anstream lets it through.
        match line.split_once(' ') {
            Some(("ok", rest)) => writeln!(out, "{} {rest}", "ok".green()),
            Some(("warn", rest)) => writeln!(out, "{} {rest}", "warn".yellow()),
            Some(("MISS", rest)) => writeln!(out, "{} {rest}", "MISS".red()),
            _ => writeln!(out, "{line}"),
        }?;
    }
    for finding in findings {
        if let Some(fix) = &finding.fix {
            writeln!(out, "{}: {fix}", finding.name)?;
        }
    }
    Ok(())
}
