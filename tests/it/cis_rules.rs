//! Evaluates the rules in `tests/cis-1.12.toml` against the files, processes and settings of a
//! host, real or rendered.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

const RULES: &str = include_str!("../cis-1.12.toml");

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Benchmark {
    places: BTreeMap<String, Vec<String>>,
    #[serde(rename = "rule")]
    pub(crate) rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) id: String,
    title: String,
    pub(crate) host: Host,
    pub(crate) look: Look,
    pub(crate) expect: Expect,
    #[serde(default)]
    pub(crate) or_unset: bool,
    remediation: String,
}

/// The hosts for which a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Host {
    ControlPlane,
    Every,
}

/// The comment at the head of the file explains each.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Look {
    Mode(Vec<String>),
    Owner(Vec<String>),
    OwnerBelow(String),
    DataMode([String; 2]),
    DataOwner([String; 2]),
    Flags(Vec<String>),
    Kubelet([String; 2]),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expect {
    Within(String),
    Is(String),
    IsNot(String),
    Has(String),
    Lacks(String),
    AtLeast(u64),
    Set(bool),
}

/// What was seen on a host.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Files and directories: mode and `user:group`.
    pub(crate) files: BTreeMap<String, (u32, String)>,
    /// Command lines by the name of the program.
    pub(crate) processes: BTreeMap<String, Vec<String>>,
    /// Configuration files that were read.
    pub(crate) settings: BTreeMap<String, Value>,
}

impl Benchmark {
    pub(crate) fn load() -> Self {
        toml::from_str(RULES).unwrap_or_else(|error| panic!("tests/cis-1.12.toml: {error}"))
    }

    pub(crate) fn rules_for(&self, host: Host) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.host == Host::Every || rule.host == host)
    }

    /// Every path that a rule may look at by name.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let named = self.rules.iter().flat_map(|rule| match &rule.look {
            Look::Mode(paths) | Look::Owner(paths) => paths.as_slice(),
            _ => &[],
        });
        named.filter(|path| !path.starts_with('$')).chain(self.places.values().flatten()).map(String::as_str).collect()
    }

    /// The paths that kube-bench would look at on this host.
    pub(crate) fn resolve<'a>(&'a self, paths: &'a [String], seen: &Seen) -> Vec<&'a str> {
        let is_there = |path: &&String| seen.files.contains_key(*path);
        let one = |path: &'a String| match path.strip_prefix('$') {
            Some(name) => self.places[name].iter().find(is_there),
            None => Some(path).filter(is_there),
        };
        paths.iter().filter_map(one).map(String::as_str).collect()
    }

    /// Why this host fails the rule; `None` when it passes.
    pub(crate) fn find_fault(&self, rule: &Rule, seen: &Seen) -> Option<String> {
        let found = self.find_values(rule, seen);
        let passes = |value: &Option<String>| rule.expect.holds(value.as_deref(), rule.or_unset);
        let bad: Vec<String> =
            found.iter().flatten().filter(|value| !passes(value)).map(|value| format!("{value:?}")).collect();
        let Rule { id, title, expect, remediation, .. } = rule;
        match &found {
            None => Some(format!("{id} {title}: there is nothing to look at; {remediation}")),
            Some(_) if bad.is_empty() => None,
            Some(_) => Some(format!("{id} {title}: {} is not {expect:?}; {remediation}", bad.join(", "))),
        }
    }

    /// The faults of a host.
    pub(crate) fn find_faults(&self, host: Host, seen: &Seen) -> Vec<String> {
        self.rules_for(host).filter_map(|rule| self.find_fault(rule, seen)).collect()
    }

    /// The values that the rule compares, `None` for one that is not set. Nothing when the file or
    /// process that would have them does not exist.
    fn find_values(&self, rule: &Rule, seen: &Seen) -> Option<Vec<Option<String>>> {
        let modes =
            |paths: Vec<&str>| paths.into_iter().map(|path| Some(format!("{:o}", seen.files[path].0))).collect();
        let owners = |paths: Vec<&str>| paths.into_iter().map(|path| Some(seen.files[path].1.clone())).collect();
        let values: Vec<Option<String>> = match &rule.look {
            Look::Mode(paths) => modes(self.resolve(paths, seen)),
            Look::Owner(paths) => owners(self.resolve(paths, seen)),
            Look::OwnerBelow(dir) => {
                let below = |path: &&String| *path == dir || path.starts_with(&format!("{dir}/"));
                owners(seen.files.keys().filter(below).map(String::as_str).collect())
            }
            Look::DataMode([process, name]) => modes(vec![seen.data_dir(process, name)?]),
            Look::DataOwner([process, name]) => owners(vec![seen.data_dir(process, name)?]),
            Look::Flags(words) => {
                let command = seen.processes.get(&words[0])?;
                words[1..].iter().map(|name| flag(command, name)).collect()
            }
            Look::Kubelet([name, path]) => {
                let conf = self.places["kubeletconf"].iter().find_map(|path| seen.settings.get(path))?;
                let value = path.split('.').try_fold(conf, |value, key| value.get(key));
                let text = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                vec![flag(seen.processes.get("kubelet")?, name).or(text)]
            }
        };
        (!values.is_empty()).then_some(values)
    }
}

impl Seen {
    fn data_dir(&self, process: &str, name: &str) -> Option<&str> {
        let dir = flag(self.processes.get(process)?, name)?;
        self.files.get_key_value(&dir).map(|(path, _)| path.as_str())
    }
}

impl Expect {
    fn holds(&self, value: Option<&str>, or_unset: bool) -> bool {
        let Some(value) = value else { return or_unset || matches!(self, Self::Set(false)) };
        match self {
            Self::Within(mode) => octal(value) & !octal(mode) == 0,
            Self::Is(wanted) => value == wanted,
            Self::IsNot(unwanted) => value != unwanted,
            Self::Has(part) => value.contains(part),
            Self::Lacks(part) => !value.contains(part),
            Self::AtLeast(number) => value.parse::<u64>().is_ok_and(|value| value >= *number),
            Self::Set(set) => *set,
        }
    }
}

fn octal(text: &str) -> u32 {
    u32::from_str_radix(text, 8).unwrap()
}

/// The value of a flag on a command line; `true` where it stands alone.
pub(crate) fn flag(command: &[String], name: &str) -> Option<String> {
    command.iter().find_map(|word| {
        let rest = word.strip_prefix("--")?.strip_prefix(name)?;
        if rest.is_empty() { Some("true".to_owned()) } else { rest.strip_prefix('=').map(str::to_owned) }
    })
}

#[test]
fn there_are_the_65_automated_items_each_once() {
    let benchmark = Benchmark::load();
    let ids: std::collections::BTreeSet<&str> = benchmark.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!((benchmark.rules.len(), ids.len()), (65, 65));
    let count = |section: &str| ids.iter().filter(|id| id.starts_with(section)).count();
    assert_eq!(["1.", "2.", "4."].map(count), [47, 6, 12], "control plane, etcd, every host");
    assert_eq!(benchmark.rules_for(Host::Every).count(), 12);
}
