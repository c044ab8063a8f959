//! What the binaries and images of a cluster need of this machine, and what is known about those
//! that are pinned.

use super::finding::{Finding, FindingLevel, Subject};
use super::tools;
use crate::Result;
use crate::artifacts::{Advisories, Artifact, Cache, Cgo, Lock, NoProgress, Selection, Source};

const PINNED: &str = "every node";

pub(super) fn inspect(subject: &Subject<'_>) -> Vec<Finding> {
    let pinned = look(subject).unwrap_or_else(|error| {
        // No fault of the machine: the step that reads the file stops the run, as an error of the
        // configuration.
        vec![
            Finding::new("cluster.lock.json", FindingLevel::Warning, error.message(), PINNED)
                .fix(error.next().unwrap_or("correct it")),
        ]
    });
    pinned.into_iter().chain(roots(subject)).collect()
}

fn look(subject: &Subject<'_>) -> Result<Vec<Finding>> {
    let lock = Lock::load(subject.dir)?;
    let selection = lock.select(subject.kubernetes.as_deref().unwrap_or(&lock.default))?;
    let mut findings = vec![known_holes(&selection)?];
    findings.extend(subject.sources.iter().filter_map(|source| bundle(source, subject, &selection)));
    for (artifact, cgo) in c_builds(subject, &selection) {
        findings.extend(c_tools(subject, artifact, cgo));
    }
    Ok(findings)
}

/// A bundle has everything, or the run would stop half-way.
fn bundle(source: &Source, subject: &Subject<'_>, selection: &Selection) -> Option<Finding> {
    let Source::Bundle(place) = source else { return None };
    let name = "offline bundle";
    let fix = "where there is a network: turnup artifacts bundle PLACE; see phase2.artifacts.bundle";
    Some(match subject.sources.require_complete(place, selection) {
        Ok(()) => Finding::new(name, FindingLevel::Ok, format!("{place} is complete"), PINNED),
        Err(error) => Finding::new(name, FindingLevel::Missing, error.to_string(), PINNED).fix(fix),
    })
}

fn known_holes(selection: &Selection) -> Result<Finding> {
    let advisories = Advisories::embedded()?;
    let (found, name) = (advisories.inspect(selection), "pinned versions");
    Ok(if found.is_empty() {
        let good = format!("no known holes as of {}", advisories.dated);
        Finding::new(name, FindingLevel::Ok, good, PINNED)
    } else {
        Finding::new(name, FindingLevel::Warning, found.join("; "), PINNED)
            .fix("take a newer turnup, or pin fixed versions in cluster.lock.json: turnup artifacts lock --write")
    })
}

/// What would be built here with a C compiler: not in the cache, and the configuration builds from
/// source.
fn c_builds<'a>(subject: &Subject<'_>, selection: &'a Selection) -> Vec<(&'a Artifact, &'a Cgo)> {
    let cache = Cache::locate_in(subject.cache_dir.as_deref());
    let is_here = |artifact: &Artifact| {
        cache.as_ref().is_ok_and(|cache| matches!(cache.lookup(artifact, &subject.sources, &NoProgress), Ok(Some(_))))
    };
    let built = subject.sources.iter().any(|source| *source == Source::Build);
    let with_c = selection.required().filter_map(|artifact| Some((artifact, artifact.binary()?.cgo.as_ref()?)));
    with_c.filter(|(artifact, _)| built && !is_here(artifact)).collect()
}

/// The compiler and the libraries. Where another source comes first, the build may never be asked
/// for.
fn c_tools(subject: &Subject<'_>, artifact: &Artifact, cgo: &Cgo) -> Vec<Finding> {
    let others =
        subject.sources.iter().any(|source| matches!(source, Source::Bundle(_) | Source::Mirror(_) | Source::Upstream));
    let absent = if others { FindingLevel::Warning } else { FindingLevel::Missing };
    let why = format!("the build of {artifact}; not with phase2.artifacts.upstream or a mirror");
    let names = cgo.needs();
    names.iter().map(|name| tools::look(name, absent, &why)).collect()
}

/// Of each release that local hosts are made of.
fn roots<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = Finding> + 'a {
    let releases = subject.releases.iter().filter(|_| subject.goal.makes_local_hosts());
    releases.filter_map(|release| rootfs(subject, release))
}

fn rootfs(subject: &Subject<'_>, release: &str) -> Option<Finding> {
    // The doctor tells each name once.
    let name = match &subject.releases[..] {
        [_] => "root of local hosts".to_owned(),
        _ => format!("root of local hosts ({release})"),
    };
    let why = "security updates of local hosts";
    let cache = Cache::locate_in(subject.cache_dir.as_deref()).ok()?;
    let root = cache.find_host_root(release, &subject.root_packages)?;
    let with = match subject.root_packages.join(",") {
        none if none.is_empty() => none,
        packages => format!(" --with {packages}"),
    };
    Some(match root.complaint() {
        None => Finding::new(&name, FindingLevel::Ok, format!("made {} days ago", root.age_days()), why),
        Some(complaint) => Finding::new(&name, FindingLevel::Warning, complaint, why)
            .fix(format!("turnup artifacts rootfs {release}{with} --renew   (after turnup down)")),
    })
}
