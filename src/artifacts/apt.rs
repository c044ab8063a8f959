//! Where this machine's apt gets Debian from: the mirror of a release, and the place of its
//! security updates.
//!
//! This file names no place of its own. It reads apt's files and asks no network.

use std::path::Path;

use crate::{Error, Result};

/// Where a release of Debian comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Debian {
    /// The archive: `http://deb.debian.org/debian`.
    pub(super) mirror: String,
    /// The archive of security updates; none where apt of this machine has none.
    pub(super) security: Option<String>,
}

impl Debian {
    /// What apt's directory (`/etc/apt`) says about a release (`bookworm`); the archive is another
    /// one where it is named.
    pub(super) fn find(apt: &Path, release: &str, named: &str) -> Result<Self> {
        let found = read_sources(apt);
        let of = |suite: &str| found.iter().find(|(_, suites)| suites.iter().any(|found| found == suite));
        // Every mirror of Debian has every supported release, whichever one this machine runs.
        let ending = |end: &str| found.iter().find(|(uri, _)| uri.trim_end_matches('/').ends_with(end));
        let mirror = of(release).or_else(|| ending("/debian")).map(|(uri, _)| uri.as_str());
        let mirror = Some(named).filter(|named| !named.is_empty()).or(mirror).ok_or_else(|| {
            Error::precondition("the apt configuration of this machine names no mirror of Debian")
                .hint("set phase1.local.debian_mirror, or choose another target than local")
        })?;
        let security = of(&format!("{release}-security")).or_else(|| ending("/debian-security"));
        Ok(Self { mirror: mirror.to_owned(), security: security.map(|(uri, _)| uri.clone()) })
    }

    /// `/etc/apt/sources.list` of a machine with this release.
    pub(super) fn sources_list(&self, release: &str) -> String {
        let security = self.security.as_ref().map(|uri| format!("deb {uri} {release}-security main\n"));
        format!("deb {} {release} main\n{}", self.mirror, security.unwrap_or_default())
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

    fn apt(files: &[(&str, &str)]) -> Result<Debian> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("sources.list.d")).unwrap();
        for (name, text) in files {
            fs_err::write(dir.path().join(name), text).unwrap();
        }
        Debian::find(dir.path(), "bookworm", "")
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
        let named = |dir: &Path| Debian::find(dir, "bookworm", "http://near.example/debian").unwrap();
        let text = "deb http://near.example/debian bookworm main\n";
        assert_eq!(named(dir.path()).sources_list("bookworm"), text, "apt names none");
        let lines =
            "deb http://far.example/debian bookworm main\ndeb http://far.example/security bookworm-security main\n";
        fs_err::write(dir.path().join("sources.list"), lines).unwrap();
        assert_eq!(named(dir.path()).mirror, "http://near.example/debian");
        assert_eq!(named(dir.path()).security.as_deref(), Some("http://far.example/security"));
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
