//! The tables of what components accept: one for each pinned version, and what the pinned binaries
//! say.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use turnup::artifacts::{Cache, Lock, NoProgress, Sources, read_help};
use turnup::component::{ComponentReference, HelpFlag, Reference, versions_with};
use turnup::config::TreeSource;

#[test]
fn every_pinned_version_has_a_table_of_its_own_components() {
    let lock = Lock::embedded().unwrap();
    let mut pinned = lock.versions();
    pinned.reverse();
    assert_eq!(versions_with(&TreeSource::embedded(), |_| true).unwrap(), pinned);
    for version in pinned {
        let selection = lock.select(version).unwrap();
        for (name, component) in &Reference::load(&TreeSource::embedded(), version).unwrap().components {
            assert_eq!(component.version, selection.binary(name).unwrap().version, "{name} of {version}");
        }
    }
}

/// Part of the tests with hosts, which have its binaries.
#[test]
fn cluster_components_accept_what_the_tables_say() {
    compare_with_binaries(&[&Lock::embedded().unwrap().default]);
}

#[test]
#[ignore = "builds every pinned version: make test-components"]
fn components_of_every_version_accept_what_the_tables_say() {
    compare_with_binaries(&Lock::embedded().unwrap().versions());
}

fn compare_with_binaries(versions: &[&str]) {
    let (lock, cache) = (Lock::embedded().unwrap(), Cache::open().unwrap());
    let mut wrong = Vec::new();
    for version in versions {
        let selection = lock.select(version).unwrap();
        let table = Reference::load(&TreeSource::embedded(), version).unwrap();
        let helps = read_help(&selection, &cache, &Sources::default(), &NoProgress).unwrap();
        assert!(helps.keys().eq(table.components.keys()), "{version}");
        for (name, component) in &table.components {
            let told = differences(component, &helps[name], name == "etcd");
            wrong.extend(told.into_iter().map(|told| format!("{version} {name} {told}")));
        }
    }
    assert!(wrong.is_empty(), "turnup artifacts reference --write:\n{}", wrong.join("\n"));
}

/// What help and table do not share. etcd's help shows no types, and not all defaults.
fn differences(component: &ComponentReference, help: &BTreeMap<String, HelpFlag>, by_hand: bool) -> Vec<String> {
    let shown = component.flags.iter().filter(|(_, flag)| !flag.hidden).map(|(name, flag)| {
        let shown_type = flag.placeholder.as_ref().unwrap_or(&flag.type_name).clone();
        let (default, deprecated) = (flag.default.clone(), flag.deprecated.clone());
        (name.clone(), HelpFlag { shown_type, default, deprecated })
    });
    let mut shown: BTreeMap<String, HelpFlag> = shown.collect();
    let mut told = Vec::new();
    for (name, flag) in help {
        let same = |known: &HelpFlag| {
            if by_hand { known.deprecated == flag.deprecated } else { known == flag }
        };
        match shown.remove(name) {
            Some(known) if same(&known) => {}
            known => told.push(format!("--{name}: table {known:?}, help {flag:?}")),
        }
    }
    told.extend(shown.keys().map(|name| format!("--{name} is not in the help")));
    told
}
