//! Versions with known holes, as data (`advisories.toml`): what `turnup doctor` holds the lock file
//! against, and the look at bare metal the programs that a host has already.
//!
//! It is as old as its date says, and no replacement for a scanner. It asks no network.

use jiff::civil::Date;
use semver::Version;
use serde::Deserialize;

use super::selection::Selection;
use crate::{Error, Result};

/// The whole table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisories {
    /// The day up to which it was brought up to date.
    pub dated: Date,
    #[serde(rename = "advisory")]
    advisories: Vec<Advisory>,
}

/// One hole, or several that were closed together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisory {
    /// The binary's name in the lock file: `runc`.
    pub program: String,
    /// CVE numbers.
    pub ids: Vec<String>,
    /// The first good version of each minor version, `1.2.8`; older minor versions are all bad,
    /// newer ones all good.
    pub fixed: Vec<Version>,
    /// What it lets happen, in half a sentence.
    pub what: String,
}

impl Advisory {
    /// Whether this version has the hole.
    #[must_use]
    pub fn concerns(&self, version: &Version) -> bool {
        let line = |version: &Version| (version.major, version.minor);
        match self.fixed.iter().find(|fixed| line(fixed) == line(version)) {
            Some(fixed) => version < fixed,
            None => self.fixed.iter().all(|fixed| line(version) < line(fixed)),
        }
    }
}

impl Advisories {
    /// The table that this program was built with.
    pub fn embedded() -> Result<Self> {
        toml::from_str(include_str!("advisories.toml"))
            .map_err(|error| Error::bug("src/artifacts/advisories.toml cannot be read").source(error))
    }

    /// What is known about a version, as the program or a lock file says it: `v1.1.5+ds1`.
    #[must_use]
    pub fn find(&self, program: &str, version: &str) -> Vec<&Advisory> {
        let Some(version) = parse_version(version) else { return Vec::new() };
        self.advisories.iter().filter(|one| one.program == program && one.concerns(&version)).collect()
    }

    /// What is known about the artifacts of a selection: `etcd 3.6.8: CVE-2026-44283 (fixed in
    /// 3.6.11)`.
    #[must_use]
    pub fn inspect(&self, selection: &Selection) -> Vec<String> {
        let binaries = selection.artifacts.iter().filter(|artifact| artifact.binary().is_some());
        let of = |artifact: &super::Artifact| {
            let found = self.find(&artifact.name, &artifact.version);
            (!found.is_empty()).then(|| format!("{artifact}: {}", describe(&found)))
        };
        binaries.filter_map(of).collect()
    }
}

/// The numbers and where they are fixed, in one line.
#[must_use]
pub fn describe(advisories: &[&Advisory]) -> String {
    let one = |advisory: &&Advisory| {
        let fixed: Vec<String> = advisory.fixed.iter().map(Version::to_string).collect();
        format!("{} (fixed in {})", advisory.ids.join(", "), fixed.join(", "))
    };
    advisories.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Distributions append to a version what semantic versioning reads in another way.
fn parse_version(text: &str) -> Option<Version> {
    let text = text.trim().trim_start_matches('v');
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    Version::parse(text[..end].trim_end_matches('.')).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::artifacts::Lock;

    fn ids(program: &str, version: &str) -> Vec<String> {
        let advisories = Advisories::embedded().unwrap();
        advisories.find(program, version).into_iter().flat_map(|advisory| advisory.ids.clone()).collect()
    }

    #[test]
    fn nothing_that_the_lock_file_pins_has_a_known_hole() {
        let (advisories, lock) = (Advisories::embedded().unwrap(), Lock::embedded().unwrap());
        for version in lock.versions() {
            let found = advisories.inspect(&lock.select(version).unwrap());
            assert!(found.is_empty(), "{version}: {found:?}");
        }
    }

    #[test]
    fn every_program_of_the_table_is_pinned() {
        let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
        for advisory in Advisories::embedded().unwrap().advisories {
            assert!(selection.binary(&advisory.program).is_ok(), "{advisory:?}");
            assert!(advisory.ids.iter().all(|id| id.starts_with("CVE-")) && !advisory.fixed.is_empty(), "{advisory:?}");
        }
    }

    #[test]
    fn each_minor_version_has_a_fix_of_its_own() {
        let escape = "CVE-2025-31133".to_owned();
        for bad in ["1.1.5+ds1", "1.1.15", "v1.2.7", "1.3.2", "0.1.1"] {
            assert!(ids("runc", bad).contains(&escape), "{bad}");
        }
        for good in ["1.2.8", "1.3.6", "1.4.0", "1.5.2", "2.0.0", "nonsense", ""] {
            assert!(!ids("runc", good).contains(&escape), "{good}");
        }
        assert_eq!(ids("runc", "1.4.2"), ["CVE-2026-41579"]);
        assert_eq!(ids("etcd", "3.6.8"), ["CVE-2026-44283", "CVE-2026-73500"]);
        assert_eq!(ids("crun", "0.0.1"), [""; 0]);
    }
}
