//! The tables of what components accept: one for each pinned version, and what the pinned binaries
//! say.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "the program under test is no child of turnup")]

use std::collections::BTreeMap;
use std::process::Command;

use turnup::artifacts::{Cache, Lock, NoProgress, Sources, describe_components, read_help};
use turnup::component::{
    ComponentReference, Difference, HelpFlag, Reference, compare, compare_gates, read_pflag, versions_with,
};
use turnup::config::TreeSource;

use crate::cluster_support::Site;

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

/// What only programs of the same Go modules tell: fields of files and gates, with types and
/// defaults, hidden flags. `turnup artifacts reference` reads them in the same way.
#[test]
#[ignore = "builds every pinned version: make test-components"]
fn components_of_every_version_have_what_the_tables_say() {
    let (lock, cache) = (Lock::embedded().unwrap(), Cache::open().unwrap());
    let mut wrong = Vec::new();
    for version in lock.versions() {
        let table = Reference::load(&TreeSource::embedded(), version).unwrap();
        let found = describe_components(&lock, version, &cache, &Sources::default(), &NoProgress).unwrap();
        for Difference { entry, old, new } in compare(Some(&table), &found).unwrap() {
            wrong.push(format!("{version} {entry}: table {old:?}, binaries {new:?}"));
        }
    }
    assert!(wrong.is_empty(), "turnup artifacts reference --write:\n{}", wrong.join("\n"));
}

/// Part of the tests with hosts, which have its binary.
#[test]
fn cluster_containerd_has_the_keys_that_the_table_says() {
    let site = Site::new("containerd-keys");
    site.warm_cache();
    let containerd = site.ok(&["artifacts", "path", "containerd"]).out;
    let output = Command::new(containerd.trim()).args(["config", "default"]).output().unwrap();
    let (_, table) = include_str!("../../src/bootstrap/containerd_default.toml").split_once('\n').unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), table, "src/bootstrap/containerd_default.toml");
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
        let gates = help.get(name).map(|flag| flag.gates.clone()).unwrap_or_default();
        (name.clone(), HelpFlag { shown_type, default, deprecated, words: flag.words.clone(), gates })
    });
    let mut shown: BTreeMap<String, HelpFlag> = shown.collect();
    let mut told = compare_gates(&component.feature_gates, help);
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

#[test]
fn names_that_a_list_may_have_come_from_the_help() {
    let help = "Flags:\n\n      --plugins strings   On by default (A). Comma-delimited list of admission plugins: A, B. Any order.\n      \
                --controllers strings   '*' is all.\n          All controllers: a-controller, b-controller\n          \
                Disabled-by-default controllers: b-controller (default [*])\n";
    let flags = read_pflag(help);
    assert_eq!(flags["plugins"].words, ["A", "B"]);
    assert_eq!(flags["controllers"].words, ["a-controller", "b-controller"]);
    for version in Lock::embedded().unwrap().versions() {
        let table = Reference::load(&TreeSource::embedded(), version).unwrap();
        let controllers = table.component("kube-controller-manager").unwrap().flag("controllers").unwrap();
        assert_eq!(controllers.unknown_word("*,token-cleaner-controller,-ttl-controller"), None);
        assert_eq!(controllers.unknown_word("*,-ttl-controler"), Some("ttl-controler"));
        assert_eq!(controllers.suggest_word("ttl-controler").as_deref(), Some("ttl-controller"));
        let plugins = table.component("kube-apiserver").unwrap().flag("enable-admission-plugins").unwrap();
        assert_eq!(plugins.unknown_word("PodNodeSelector,NodeRestriction"), None);
        assert_eq!(plugins.unknown_word("PodNodeSelektor"), Some("PodNodeSelektor"));
    }
}
