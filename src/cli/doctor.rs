//! `turnup doctor`: what this machine has and lacks, and the command that installs it.

use std::path::Path;

use owo_colors::OwoColorize as _;

use crate::Result;
use crate::cluster::{artifact_sources, cache_dir, local_releases};
use crate::config::{Settings, TreeSource};
use crate::doctor::{self, Finding, FindingLevel, Goal, Subject};
use crate::report::Table;

use super::{Global, Printer};

/// Shows every tool and every fact of this machine that matters; exits with 4 when something
/// required is missing.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to look for: a target, or development for the project's tests; the configuration's
    /// target, else local, when not given
    #[arg(long)]
    target: Option<String>,
    /// Install the missing packages first (as root, with the system's package manager)
    #[arg(long)]
    install: bool,
}

/// Runs it.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    let settings = configured(global);
    let configured = |name: &str| settings.as_ref().and_then(|settings| settings.get(name).ok());
    let target = args.target.clone().or_else(|| configured("phase1.cloud_provider"));
    let goal = target.map_or(Ok(Goal::LOCAL), |name| Goal::of(&name))?;
    let mut subject = Subject::of(goal);
    subject.kubernetes = configured("phase2.kubernetes_version");
    let releases = settings.as_ref().and_then(|settings| local_releases(settings).ok());
    // On another target there is no answer.
    subject.releases =
        releases.filter(|releases| releases.iter().all(|name| !name.is_empty())).unwrap_or(subject.releases);
    let packages = |settings: &Settings| settings.get_list("phase1.local.packages").ok();
    subject.root_packages = settings.as_ref().and_then(packages).unwrap_or_default();
    subject.sources = settings.as_ref().and_then(|settings| artifact_sources(settings).ok()).unwrap_or(subject.sources);
    let here = Path::new(".");
    subject.cache_dir = settings.as_ref().and_then(|settings| cache_dir(settings, here).ok().flatten());
    if args.install {
        let packages = doctor::missing_packages(&subject);
        if !packages.is_empty() {
            printer.remark(&format!("installing {}", packages.join(", ")));
        }
        doctor::install(&subject)?;
    }
    let mut findings = doctor::inspect(&subject);
    if printer.is_json() {
        printer.json(
            &serde_json::json!({"schema": "turnup.doctor/1", "target": goal.to_string(), "findings": findings}),
        )?;
    } else {
        if global.quiet {
            findings.retain(|finding| finding.level != FindingLevel::Ok);
        }
        print(&findings, printer)?;
    }
    doctor::require(goal, &findings)
}

/// The doctor is asked before there is a configuration, and when it is broken.
fn configured(global: &Global) -> Option<Settings> {
    global.settings(&TreeSource::find(Path::new("."))).ok()
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
    if findings.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["", "what", "found", "needed by"]);
    for finding in findings {
        let mark = match finding.level {
            FindingLevel::Ok => "ok",
            FindingLevel::Warning => "warn",
            FindingLevel::Missing => "MISS",
        };
        table.row([mark, &finding.name, &shorten(&finding.found), &finding.needed_by]);
    }
    for line in table.render().lines() {
        // Coloured after the widths are known, and only where anstream lets it through.
        match line.split_once(' ') {
            Some(("ok", rest)) => printer.coloured(&format!("{} {rest}", "ok".green())),
            Some(("warn", rest)) => printer.coloured(&format!("{} {rest}", "warn".yellow())),
            Some(("MISS", rest)) => printer.coloured(&format!("{} {rest}", "MISS".red())),
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
