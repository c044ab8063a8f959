//! Packages of the host's distribution, by its own package manager: what is missing is installed,
//! and what turnup installed can be removed again. It asks no questions and upgrades nothing that
//! is there, but to a version that is pinned.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Class, Error, Result};
use crate::exec::{Failure, OnDeath, Run, signals};
use crate::format::split_package;

/// How long the package manager may take, waiting for others of its kind included.
const LIMIT: Duration = Duration::from_mins(20);
/// How long others may hold the lock of the package manager.
const LOCK: Duration = Duration::from_mins(5);
/// What is said where packages cannot be downloaded now, or another one holds the lock.
const PASSING: [&str; 8] = [
    "Failed to fetch",
    "Temporary failure",
    "Could not resolve",
    "Could not connect",
    "Unable to connect",
    "Cannot download",
    "Failed to download",
    "Could not get lock",
];

/// The package manager of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    /// Debian's and Ubuntu's.
    Apt,
    /// Red Hat's.
    Dnf,
}

impl Manager {
    fn find(wanted: &[String]) -> Result<Self> {
        let has = |program: &str| Path::new("/usr/bin").join(program).exists();
        match (has("apt-get"), has("dnf")) {
            (true, _) => Ok(Self::Apt),
            (_, true) => Ok(Self::Dnf),
            _ => {
                let message = format!("this host has neither apt-get nor dnf to install {}", wanted.join(", "));
                Err(Error::precondition(message).hint("choose an image that has the packages (phase2.host.packages)"))
            }
        }
    }

    /// The versions of a package that is installed, in each way in which a pin may say it.
    fn installed(self, name: &str) -> Vec<String> {
        let run = match self {
            Self::Apt => {
                Run::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status} ${Version}\\n", name])
            }
            Self::Dnf => Run::new("rpm").args([
                "--query",
                "--queryformat=installed %{VERSION} %{VERSION}-%{RELEASE} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\\n",
                name,
            ]),
        };
        // It fails for a package that it does not know.
        let listing = environment(run).output().map(|output| output.stdout).unwrap_or_default();
        read_versions(&listing)
    }

    /// Removes these and keeps their configuration files: rpm keeps those that were changed.
    fn removal(self, names: &[String]) -> Run {
        let (program, option) = match self {
            Self::Apt => ("dpkg", "--remove"),
            Self::Dnf => ("rpm", "--erase"),
        };
        Run::new(program).arg(option).args(names)
    }
}

fn read_versions(listing: &str) -> Vec<String> {
    let versions = listing.lines().filter_map(|line| line.strip_prefix("installed "));
    versions.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// Without questions, in English, with the directories of system programs, and with no restart of
/// services by needrestart: turnup decides when its own restart.
fn environment(run: Run) -> Run {
    run.dir("/")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("NEEDRESTART_SUSPEND", "1")
        .env("LC_ALL", "C")
        .env("HOME", "/root")
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .timeout(LIMIT)
        // Killed with us, it would leave a package half installed.
        .on_death(OnDeath::Nothing)
}

fn apt(words: &[&str]) -> Run {
    let lock = format!("--option=DPkg::Lock::Timeout={}", LOCK.as_secs());
    // A configuration file that was changed on the host stays as it is.
    let keep = ["--option=Dpkg::Options::=--force-confdef", "--option=Dpkg::Options::=--force-confold"];
    environment(Run::new("apt-get").args(["--quiet", &lock]).args(keep).args(words.iter().copied()))
}

/// Those of these packages that the host lacks, or has in another version than the pinned one.
pub(super) fn find_missing(wanted: &[String]) -> Result<Vec<String>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let manager = Manager::find(wanted)?;
    let is_missing = |package: &&String| {
        let (name, version) = split_package(package);
        let found = manager.installed(name);
        found.is_empty() || version.is_some_and(|version| !found.iter().any(|found| found == version))
    };
    Ok(wanted.iter().filter(is_missing).cloned().collect())
}

/// Reads the lists of packages again, and tells the names of all that will be on the host once
/// these are installed and are not yet, as far as the package manager says it.
pub(super) fn prepare(missing: &[String]) -> Result<Vec<String>> {
    let names = || missing.iter().map(|package| split_package(package).0);
    let manager = Manager::find(missing)?;
    let new: Vec<String> = names().filter(|name| manager.installed(name).is_empty()).map(str::to_owned).collect();
    if manager == Manager::Dnf {
        return Ok(new);
    }
    let told = apt(&["update"]).output().map_err(|failure| explain(&failure, missing, ""))?.stderr;
    let mut words = vec!["--simulate", "--no-install-recommends", "--allow-downgrades", "install"];
    words.extend(missing.iter().map(String::as_str));
    let plan = apt(&words).output().map_err(|failure| explain(&failure, missing, &told))?;
    Ok(read_plan(&plan.stdout))
}

/// The packages that apt would install and that are not there in any version: `Inst NAME (…`; with
/// an older one there it is `Inst NAME [VERSION] (…`.
fn read_plan(text: &str) -> Vec<String> {
    let new = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("Inst ")?.split_whitespace();
        let name = words.next()?;
        words.next().is_some_and(|next| next.starts_with('(')).then(|| name.to_owned())
    });
    new.collect()
}

/// Installs them.
pub(super) fn install(missing: &[String]) -> Result<()> {
    let packages = missing.iter().map(String::as_str);
    if Manager::find(missing)? == Manager::Dnf {
        return environment(dnf_install(missing)).output().map(drop).map_err(|failure| explain(&failure, missing, ""));
    }
    let words = ["install", "--yes", "--no-install-recommends", "--allow-downgrades"];
    let words: Vec<&str> = words.into_iter().chain(packages).collect();
    let Err(failure) = apt(&words).output() else { return Ok(()) };
    if !failure.stderr().contains("dpkg --configure -a") {
        return Err(explain(&failure, missing, ""));
    }
    // The host lost its power while packages were installed.
    environment(Run::new("dpkg").args(["--configure", "--pending"])).succeed()?;
    apt(&words).output().map(drop).map_err(|failure| explain(&failure, missing, ""))
}

/// dnf writes a version behind a dash.
fn dnf_install(missing: &[String]) -> Run {
    let names = missing.iter().map(|package| package.replacen('=', "-", 1));
    Run::new("dnf").args(["--assumeyes", "--quiet", "install"]).args(names)
}

/// The package manager's own last words, and those of the step before.
fn explain(failure: &Failure, missing: &[String], before: &str) -> Error {
    let said = format!("{before}\n{}\n{}", failure.ended().stdout, failure.stderr());
    let passing = failure.class() == Class::Transient || PASSING.iter().any(|mark| said.contains(mark));
    let (class, hint) = if passing {
        (
            Class::Transient,
            "the hosts must reach their package sources; look on the host with: apt-get update, dnf makecache",
        )
    } else if failure.class() == Class::Permanent {
        (Class::Permanent, "correct phase2.host.packages: names and versions are those of the host's distribution")
    } else {
        (failure.class(), "run the same command again")
    };
    let error = Error::new(class, format!("cannot install {}: {failure}", missing.join(", ")));
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.iter().rev().take(8).rev();
    last.fold(error, |error, line| error.evidence(line.trim_end())).hint(hint)
}

/// Removes those of these packages that are there and that no other one needs; their configuration
/// files stay. The names of those that stay are returned.
pub(super) fn remove(names: &[String]) -> Result<Vec<String>> {
    let Ok(manager) = Manager::find(names) else { return Ok(Vec::new()) };
    let present = || -> Vec<String> {
        let there = names.iter().filter(|name| !manager.installed(name).is_empty());
        there.cloned().collect()
    };
    let since = Instant::now();
    remove_most(manager, &present, &mut |names| {
        loop {
            // Neither manager removes what others need; that is no error.
            match environment(manager.removal(names)).output() {
                Err(failure) if failure.stderr().contains("lock") && since.elapsed() < LOCK => {
                    signals::sleep(Duration::from_secs(1))?;
                }
                Err(failure) if failure.code().is_none() => return Err(failure.into()),
                _ => return Ok(()),
            }
        }
    })
}

/// Tries all at once and, where the manager then removes none of them, one by one until none goes
/// any more: the next one may be what needed the one before.
fn remove_most(
    manager: Manager,
    present: &dyn Fn() -> Vec<String>,
    remove: &mut dyn FnMut(&[String]) -> Result<()>,
) -> Result<Vec<String>> {
    let mut left = present();
    if !left.is_empty() {
        remove(&left)?;
        left = present();
    }
    // dpkg removes what it can.
    while manager == Manager::Dnf && !left.is_empty() {
        left.iter().try_for_each(|name| remove(std::slice::from_ref(name)))?;
        let now = present();
        if now.len() == left.len() {
            break;
        }
        left = now;
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::cell::RefCell;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn configuration_files_stay() {
        assert_eq!(Manager::Apt.removal(&names(&["jq"])).to_string(), "dpkg --remove jq");
    }

    /// One that others need keeps no other package on a host of Red Hat's.
    #[test]
    fn rpm_removes_what_it_can() {
        let there = RefCell::new(names(&["base", "tool", "shared"]));
        let left = remove_most(Manager::Dnf, &|| there.borrow().clone(), &mut |names| {
            let is_needed = |name: &String| {
                name == "shared" || (name == "base" && there.borrow().contains(&"tool".to_owned()) && names.len() == 1)
            };
            if !names.iter().any(is_needed) {
                there.borrow_mut().retain(|name| !names.contains(name));
            }
            Ok(())
        });
        assert_eq!(left.unwrap(), ["shared"]);
    }

    /// What dnf 4 of Rocky 9 and dnf 5 of Fedora print.
    #[test]
    fn dnfs_own_words_are_understood() {
        let run = dnf_install(&names(&["jq", "socat=1.7.4.1-5.el9"]));
        assert_eq!(run.to_string(), "dnf --assumeyes --quiet install jq socat-1.7.4.1-5.el9");
        assert_eq!(
            read_versions("installed 1.7.4.1 1.7.4.1-5.el9 0:1.7.4.1-5.el9\n"),
            ["1.7.4.1", "1.7.4.1-5.el9", "0:1.7.4.1-5.el9"]
        );
        assert_eq!(read_versions("package socat is not installed\n"), [""; 0]);
        let class_of = |said: &str| {
            let failed = Run::new("sh").args(["-c", "printf '%s\n' \"$1\" >&2; exit 1", "sh", said]).dir("/").output();
            explain(&failed.unwrap_err(), &names(&["jq"]), "").class()
        };
        for away in [
            "Error: Failed to download metadata for repo 'baseos': Cannot prepare internal mirrorlist: Curl error (6): Couldn't resolve host name",
            "Failed to download package \"jq-0:1.7.1-8.fc41.x86_64\": Cannot download, all mirrors were already tried without success",
        ] {
            assert_eq!(class_of(away), Class::Transient, "{away}");
        }
        for wrong in ["No match for argument: nope\nError: Unable to find a match: nope", "No match for argument: nope"]
        {
            assert_eq!(class_of(wrong), Class::Permanent, "{wrong}");
        }
    }

    #[test]
    fn what_apt_would_install_is_known_before() {
        let plan = "NOTE: This is only a simulation!\nInst libonig5 (6.9.8-1 Debian:12.1/stable [amd64])\n\
                    Inst libc6 [2.36-9] (2.36-10 Debian:12.1/stable [amd64])\nInst jq (1.6-2.1 Debian:12.1/stable [amd64])\n\
                    Conf jq (1.6-2.1 Debian:12.1/stable [amd64])\n";
        assert_eq!(read_plan(plan), ["libonig5", "jq"]);
    }

    #[test]
    fn only_what_is_installed_counts() {
        assert_eq!(read_versions("installed 1.6-2.1\n"), ["1.6-2.1"]);
        assert_eq!(read_versions("config-files 1.6-2.1\n"), Vec::<String>::new());
        assert_eq!(read_versions("installed 1.6 1.6-2 0:1.6-2\n"), ["1.6", "1.6-2", "0:1.6-2"]);
    }
}
