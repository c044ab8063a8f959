//! Where a release of Debian or Ubuntu comes from: its archive and the place of its security
//! updates, as this machine's apt names them.
//!
//! This file names no place of its own. It reads apt's files and asks no network.

use std::path::Path;

use crate::{Error, Result};

/// Whose release a root is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distribution {
    /// Debian.
    Debian,
    /// Ubuntu.
    Ubuntu,
}

impl Distribution {
    /// The releases of Ubuntu that roots are made of; every other one is Debian's.
    const UBUNTU: [&str; 1] = ["noble"];

    /// Whose release this is (`bookworm`).
    #[must_use]
    pub fn of(release: &str) -> Self {
        if Self::UBUNTU.contains(&release) { Self::Ubuntu } else { Self::Debian }
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Debian => "Debian",
            Self::Ubuntu => "Ubuntu",
        }
    }

    /// What its archive's signature is checked with. Without it debootstrap would only warn.
    #[must_use]
    pub const fn keyring(self) -> &'static str {
        match self {
            Self::Debian => "/usr/share/keyrings/debian-archive-keyring.gpg",
            Self::Ubuntu => "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
        }
    }

    /// The components of its archive that hosts take packages from.
    pub(super) const fn components(self) -> &'static [&'static str] {
        match self {
            Self::Debian => &["main"],
            // Some of what a node needs (conntrack) is not in Ubuntu's main.
            Self::Ubuntu => &["main", "universe"],
        }
    }

    /// The script of debootstrap that knows its releases, for one that came after debootstrap.
    pub(super) const fn script(self) -> &'static str {
        match self {
            Self::Debian => "sid",
            Self::Ubuntu => "gutsy",
        }
    }

    const fn setting(self) -> &'static str {
        match self {
            Self::Debian => "phase1.local.debian_mirror",
            Self::Ubuntu => "phase1.local.ubuntu_mirror",
        }
    }
}

/// Where a release comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archive {
    /// Whose it is.
    of: Distribution,
    /// The archive: `http://deb.debian.org/debian`.
    pub(super) mirror: String,
    /// The archive of security updates; none where apt of this machine has none.
    pub(super) security: Option<String>,
}

impl Archive {
    /// What apt's directory (`/etc/apt`) says about a release (`bookworm`); the archive is another
    /// one where it is named.
    pub(super) fn find(apt: &Path, release: &str, named: &str) -> Result<Self> {
        let distribution = Distribution::of(release);
        let found = read_sources(apt);
        let of = |suite: &str| found.iter().find(|(_, suites)| suites.iter().any(|found| found == suite));
        // Every mirror has every supported release, whichever one this machine runs.
        let ending = |end: &str| found.iter().find(|(uri, _)| uri.trim_end_matches('/').ends_with(end));
        let own = if distribution == Distribution::Debian { "/debian" } else { "/ubuntu" };
        let mirror = of(release).or_else(|| ending(own)).map(|(uri, _)| uri.as_str());
        let mirror = Some(named).filter(|named| !named.is_empty()).or(mirror).ok_or_else(|| {
            let name = distribution.name();
            Error::precondition(format!("the apt configuration of this machine names no mirror of {name}"))
                .hint(format!("set {}, or choose another target than local", distribution.setting()))
        })?;
        let security = of(&format!("{release}-security")).map(|(uri, _)| uri.clone());
        let security = security.or_else(|| match distribution {
            Distribution::Debian => ending("/debian-security").map(|(uri, _)| uri.clone()),
            // It is a suite of the archive itself, on every mirror.
            Distribution::Ubuntu => Some(mirror.to_owned()),
        });
        Ok(Self { of: distribution, mirror: mirror.to_owned(), security })
    }

    /// `/etc/apt/sources.list` of a machine with this release.
    pub(super) fn sources_list(&self, release: &str) -> String {
        let components = self.of.components().join(" ");
        let security = self.security.as_ref().map(|uri| format!("deb {uri} {release}-security {components}\n"));
        format!("deb {} {release} {components}\n{}", self.mirror, security.unwrap_or_default())
    }
}

fn read_sources(apt: &Path) -> Vec<AptSource> {
    let mut files = vec![apt.join("sources.list")];
    if let Ok(entries) = fs_err::read_dir(apt.join("sources.list.d")) {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        // apt reads only these two kinds of file, and an unreadable one cannot be asked.
        let Ok(text) = fs_err::read_to_string(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => found.extend(text.lines().filter_map(parse_line)),
            Some("sources") => found.extend(text.split("\n\n").flat_map(parse_stanza)),
            _ => {}
        }
    }
    found
}

/// An archive's address and the suites that are taken from it.
type AptSource = (String, Vec<String>);

/// `deb [options] URI suite component…`
fn parse_line(line: &str) -> Option<AptSource> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let rest = rest.strip_prefix('[').map_or(rest, |options| options.split_once(']').map_or("", |(_, rest)| rest));
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    words.any(|component| component == "main").then(|| (uri.to_owned(), vec![suite.to_owned()]))
}

/// One stanza of a `.sources` file.
fn parse_stanza(stanza: &str) -> Vec<AptSource> {
    let field = |name: &str| -> Vec<String> {
        let lines = stanza.lines().filter(|line| !line.starts_with('#'));
        let value =
            lines.filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        value.map(|(_, value)| value.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
    };
    let is = |name: &str, wanted: &str| field(name).iter().any(|value| value == wanted);
    if !is("Types", "deb") || !is("Components", "main") || is("Enabled", "no") {
        return Vec::new();
    }
    field("URIs").into_iter().map(|uri| (uri, field("Suites"))).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn apt(files: &[(&str, &str)]) -> Result<Archive> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("sources.list.d")).unwrap();
        for (name, text) in files {
            fs_err::write(dir.path().join(name), text).unwrap();
        }
        Archive::find(dir.path(), "bookworm", "")
    }

    #[test]
    fn takes_archive_and_security_updates_of_apt() {
        let stanzas = "Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n\
                       Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\nComponents: main\n";
        let debian = apt(&[("sources.list.d/debian.sources", stanzas)]).unwrap();
        assert_eq!(
            debian.sources_list("bookworm"),
            "deb http://mirror.example/debian bookworm main\ndeb http://mirror.example/debian-security bookworm-security main\n"
        );
        let line = "# deb http://old.example/debian bookworm main\ndeb [signed-by=/k arch=amd64] http://line.example/debian bookworm main\n\
                    deb http://line.example/security bookworm-security main contrib\n";
        let debian = apt(&[("sources.list", line)]).unwrap();
        assert_eq!(debian.mirror, "http://line.example/debian");
        assert_eq!(debian.security.as_deref(), Some("http://line.example/security"));
        let other = "deb http://else.example/debian/ trixie main\ndeb http://else.example/debian-security trixie-security main\n";
        let debian = apt(&[("sources.list", other)]).unwrap();
        assert_eq!(debian.mirror, "http://else.example/debian/");
        assert_eq!(debian.security.as_deref(), Some("http://else.example/debian-security"), "of another release");
    }

    #[test]
    fn a_machine_without_security_updates_gives_none() {
        let debian = apt(&[("sources.list", "deb http://mirror.example/debian bookworm main\n")]).unwrap();
        assert_eq!(debian.security, None);
        assert_eq!(debian.sources_list("bookworm"), "deb http://mirror.example/debian bookworm main\n");
    }

    #[test]
    fn a_mirror_that_is_named_counts_more_than_apts() {
        let dir = tempfile::tempdir().unwrap();
        let named = |dir: &Path| Archive::find(dir, "bookworm", "http://near.example/debian").unwrap();
        let text = "deb http://near.example/debian bookworm main\n";
        assert_eq!(named(dir.path()).sources_list("bookworm"), text, "apt names none");
        let lines =
            "deb http://far.example/debian bookworm main\ndeb http://far.example/security bookworm-security main\n";
        fs_err::write(dir.path().join("sources.list"), lines).unwrap();
        assert_eq!(named(dir.path()).mirror, "http://near.example/debian");
        assert_eq!(named(dir.path()).security.as_deref(), Some("http://far.example/security"));
    }

    #[test]
    fn a_release_of_ubuntu_comes_from_ubuntus_own_archive() {
        let dir = tempfile::tempdir().unwrap();
        let lines = "deb http://mirror.example/debian bookworm main\ndeb http://mirror.example/debian-security bookworm-security main\n";
        fs_err::write(dir.path().join("sources.list"), lines).unwrap();
        let archive = Archive::find(dir.path(), "noble", "http://archive.example/ubuntu").unwrap();
        assert_eq!(
            archive.sources_list("noble"),
            "deb http://archive.example/ubuntu noble main universe\ndeb http://archive.example/ubuntu noble-security main universe\n"
        );
        let error = Archive::find(dir.path(), "noble", "").unwrap_err().render();
        assert!(error.contains("names no mirror of Ubuntu") && error.contains("phase1.local.ubuntu_mirror"), "{error}");
        let lines = "deb http://near.example/ubuntu jammy main\ndeb http://far.example/ubuntu noble-security main\n";
        fs_err::write(dir.path().join("sources.list"), lines).unwrap();
        let archive = Archive::find(dir.path(), "noble", "").unwrap();
        assert_eq!(archive.mirror, "http://near.example/ubuntu", "of another release");
        assert_eq!(archive.security.as_deref(), Some("http://far.example/ubuntu"));
    }

    #[test]
    fn says_so_when_there_is_none() {
        let error = apt(&[
            ("sources.list", "deb http://mirror.example/ubuntu noble main\n"),
            (
                "sources.list.d/off.sources",
                "Types: deb\nEnabled: no\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n",
            ),
        ]);
        insta::assert_snapshot!(error.unwrap_err().render());
    }
}
