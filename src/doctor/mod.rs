//! What this machine has and lacks for turning up a cluster. It looks and, when told to, installs
//! packages; it changes nothing else.

mod artifacts;
mod finding;
mod goal;
mod host;
mod ports;
mod tools;

pub use finding::{Finding, FindingLevel, Subject};
pub use goal::Goal;

use crate::exec::tools::PackageManager;
use crate::exec::{OnDeath, Run};
use crate::{Class, Error, Result};

/// Looks at everything that the subject needs.
#[must_use]
pub fn inspect(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = tools::inspect(subject);
    findings.extend(artifacts::inspect(subject));
    findings.extend(host::inspect(subject));
    // The project's tests need some of what a build needs, and cannot do without it.
    let mut unique: Vec<Finding> = Vec::new();
    for finding in findings {
        match unique.iter_mut().find(|known| known.name == finding.name) {
            Some(known) if known.level < finding.level => *known = finding,
            Some(_) => {}
            None => unique.push(finding),
        }
    }
    unique
}

/// An error of class `Precondition` that names everything that is missing, when something is.
pub fn require(goal: Goal, findings: &[Finding]) -> Result<()> {
    let missing: Vec<&Finding> = findings.iter().filter(|finding| finding.level == FindingLevel::Missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|finding| finding.name.as_str()).collect();
    let error = Error::new(Class::Precondition, format!("this machine is not ready: {}", names.join(", ")));
    let error = missing.iter().fold(error, |error, finding| {
        let fix = finding.fix.as_deref().map_or_else(String::new, |fix| format!("; {fix}"));
        error.evidence(format!("{}: {} (needed by {}){fix}", finding.name, finding.found, finding.needed_by))
    });
    Err(error.hint(format!(
        "turnup doctor --install --target {goal} (installs the missing packages), or the commands above"
    )))
}

/// The packages whose tools are missing.
#[must_use]
pub fn missing_packages(subject: &Subject<'_>) -> Vec<String> {
    let Some(manager) = PackageManager::detect() else { return Vec::new() };
    let missing = inspect(subject).into_iter().filter(|finding| finding.level == FindingLevel::Missing);
    let of = |finding: Finding| manager.package(crate::exec::tools::describe(&finding.name)?).map(str::to_owned);
    let mut packages: Vec<String> = missing.filter_map(of).collect();
    packages.sort();
    packages.dedup();
    packages
}

/// Installs the packages that are missing with the system's package manager; returns their names.
pub fn install(subject: &Subject<'_>) -> Result<Vec<String>> {
    let packages = missing_packages(subject);
    if packages.is_empty() {
        return Ok(packages);
    }
    let Some(manager) = PackageManager::detect() else {
        return Err(Error::precondition("neither apt-get nor dnf is here, so packages must be installed by hand")
            .evidence(format!("missing: {}", packages.join(" "))));
    };
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    let command = manager.install_command(&names);
    if !rustix::process::geteuid().is_root() {
        return Err(Error::precondition("packages can only be installed by root")
            .hint(format!("sudo {}", shell_words::join(&command))));
    }
    if manager == PackageManager::Apt {
        // A fresh machine has no package lists. Old lists may do as well, so a failure here is not
        // the last word.
        drop(package_run(&["apt-get".to_owned(), "update".to_owned()]).output());
    }
    package_run(&command).succeed()?;
    Ok(packages)
}

fn package_run(command: &[String]) -> Run {
    let (program, arguments) = command.split_first().map_or(("true", &[][..]), |(first, rest)| (first.as_str(), rest));
    // Killed in the middle, a package manager leaves half-installed packages behind.
    Run::new(program).args(arguments).dir("/").env("DEBIAN_FRONTEND", "noninteractive").on_death(OnDeath::Terminate)
}
