//! `turnup doctor`: what this machine has and lacks, and the command that installs it.

use owo_colors::OwoColorize as _;

use crate::Result;
use crate::doctor::{self, Finding, Level};
use crate::report::Table;

use super::Printer;

/// Shows every tool and every fact of this machine that matters; exits with 4 when something required is missing.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The provision target to look for: local, baremetal
    #[arg(long, default_value = "local")]
    target: String,
    /// Install the missing packages first (as root, with the system's package manager)
    #[arg(long)]
    install: bool,
}

/// Runs it.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    if args.install {
        let packages = doctor::missing_packages(&args.target);
        if !packages.is_empty() {
            printer.remark(&format!("installing {}", packages.join(", ")));
        }
        doctor::install(&args.target)?;
    }
    let findings = doctor::inspect(&args.target);
    if printer.is_json() {
        printer.json(&serde_json::json!({"schema": "turnup.doctor/1", "target": args.target, "findings": findings}))?;
    } else {
        print(&findings, printer)?;
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

fn print(findings: &[Finding], printer: &Printer) -> Result<()> {
    let mut table = Table::new(&["", "what", "found", "needed by"]);
    for finding in findings {
        let mark = match finding.level {
            Level::Ok => "ok",
            Level::Warning => "warn",
            Level::Missing => "MISS",
        };
        table.row([mark, &finding.name, &shorten(&finding.found), &finding.needed_by]);
    }
    for line in table.render().lines() {
        // Coloured after the widths are known, and only where anstream lets it through.
        match line.split_once(' ') {
            Some(("ok", rest)) => printer.line(&format!("{} {rest}", "ok".green())),
            Some(("warn", rest)) => printer.line(&format!("{} {rest}", "warn".yellow())),
            Some(("MISS", rest)) => printer.line(&format!("{} {rest}", "MISS".red())),
            _ => printer.line(line),
        }?;
    }
    for finding in findings {
        if let Some(fix) = &finding.fix {
            printer.line(&format!("{}: {fix}", finding.name))?;
        }
    }
    Ok(())
}
