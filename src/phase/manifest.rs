//! `phase.toml`: the steps of a phase and their order, as data.
//!
//! Reading is strict and reports every mistake of the file at once, each with its place. It knows
//! no phase: whether a built-in step of a name exists is the engine's question.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::format::parse_duration;
use crate::{Class, Error, Result};

/// The time for a step that gives none.
const TIMEOUT: Duration = Duration::from_mins(10);
const KEYS: &[&str] = &[
    "name", "summary", "scope", "roles", "after", "timeout", "retry", "run", "inputs", "before", "outputs", "where",
    "hosts",
];
/// In the outputs of a step that runs here for each host, this stands for the host's name.
pub(super) const HOST: &str = "{host}";

/// Once for the cluster, or once for each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Once for the cluster.
    Once,
    /// Once for each host.
    Host,
}

/// Where a command of the user's own runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsOn {
    /// On this machine, in the working directory.
    Here,
    /// On the host that the step is for.
    Host,
}

/// One `[[step]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name, unique in the phase.
    pub name: String,
    /// What it does, in a few words.
    pub summary: String,
    /// Once, or for each host.
    pub scope: Scope,
    /// Only for hosts with one of these roles; all hosts when empty.
    pub roles: Vec<String>,
    /// Steps that must have ended well before.
    pub after: Vec<String>,
    /// Time for all tries together.
    pub timeout: Duration,
    /// Classes of errors after which it is tried again: transient or none. What is permanent never
    /// is.
    pub retry: Vec<Class>,
    /// A command of the user's own in place of a built-in action.
    pub run: Vec<String>,
    /// Configuration paths that such a command depends on.
    pub inputs: Vec<String>,
    /// Steps that wait for such a command.
    pub before: Vec<String>,
    /// Files that it makes: relative to the working directory, or absolute on the host.
    pub outputs: Vec<String>,
    /// Where it runs.
    pub place: RunsOn,
    /// Only for hosts whose name fits one of these patterns; all hosts when empty. `*` stands for
    /// anything.
    pub hosts: Vec<String>,
}

impl Step {
    fn new() -> Self {
        Self {
            name: String::new(),
            summary: String::new(),
            scope: Scope::Once,
            roles: Vec::new(),
            after: Vec::new(),
            timeout: TIMEOUT,
            retry: vec![Class::Transient],
            run: Vec::new(),
            inputs: Vec::new(),
            before: Vec::new(),
            outputs: Vec::new(),
            place: RunsOn::Here,
            hosts: Vec::new(),
        }
    }

    /// Whether the step is done for a host of this name and role.
    #[must_use]
    pub(super) fn is_for(&self, name: &str, role: &str) -> bool {
        let named = self.hosts.is_empty() || self.hosts.iter().any(|pattern| fits(pattern, name));
        named && (self.roles.is_empty() || self.roles.iter().any(|wanted| wanted == role))
    }
}

/// Whether a name fits a pattern, in which `*` stands for any number of characters.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(start) else { return false };
    (0..=name.len()).filter_map(|at| name.get(at..)).any(|end| fits(rest, end))
}

/// A phase as data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// What the phase does, in a few words.
    pub summary: String,
    /// The steps in the order of the file.
    pub steps: Vec<Step>,
}

impl Manifest {
    /// What a setting says about the time of these steps goes before what the file says; its
    /// default leaves the file as it is.
    pub fn set_timeouts(&mut self, steps: &[&str], timeout: Duration, default: Duration) {
        let chosen = self.steps.iter_mut().filter(|step| steps.contains(&step.name.as_str()));
        chosen.filter(|_| timeout != default).for_each(|step| step.timeout = timeout);
    }

    /// Takes a step out that this cluster has not; those after it no longer wait for it.
    pub fn remove(&mut self, step: &str) {
        self.steps.retain(|one| one.name != step);
        self.steps.iter_mut().for_each(|one| one.after.retain(|name| name != step));
    }

    /// Reads a manifest; `file` is the name that errors show.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        Self::parse_for(file, text, &[])
    }

    /// The same, and a role that is not one of these is a mistake.
    pub fn parse_for(file: &str, text: &str, roles: &[&str]) -> Result<Self> {
        let mut reader = Reader { text, roles, mistakes: Vec::new() };
        let table = match DeTable::parse(text) {
            Ok(table) => table,
            Err(error) => {
                reader.mistake(error.span().unwrap_or_default(), error.message());
                return Err(reader.into_error(file));
            }
        };
        let manifest = reader.manifest(table.get_ref());
        if reader.mistakes.is_empty() { Ok(manifest) } else { Err(reader.into_error(file)) }
    }
}

/// Collects mistakes with their places in the text.
struct Reader<'t> {
    text: &'t str,
    /// The roles that there are; any when empty.
    roles: &'t [&'t str],
    mistakes: Vec<(usize, String)>,
}

/// Where the parts of a step are that are checked once the step, or all steps, are known.
struct KeyRanges {
    name: Range<usize>,
    /// The values by their keys.
    of: BTreeMap<&'static str, Range<usize>>,
    /// Names of other steps.
    steps: Vec<(String, Range<usize>)>,
    outputs: Vec<(String, Range<usize>)>,
}

impl Reader<'_> {
    fn mistake(&mut self, at: Range<usize>, what: impl Into<String>) {
        self.mistakes.push((at.start, what.into()));
    }

    fn into_error(mut self, file: &str) -> Error {
        self.mistakes.sort();
        let places: Vec<String> = self
            .mistakes
            .iter()
            .map(|(offset, what)| {
                let before = self.text.get(..*offset).unwrap_or(self.text);
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                format!("{file}:{line}:{column}: {what}")
            })
            .collect();
        let error = match places.as_slice() {
            [one] => Error::config(one),
            many => many.iter().fold(Error::config(format!("{file} has {} mistakes", many.len())), Error::evidence),
        };
        error.hint(format!("correct {file}, then run the same command again"))
    }

    fn manifest(&mut self, table: &DeTable<'_>) -> Manifest {
        let mut manifest = Manifest::default();
        let mut places = Vec::new();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "summary" => manifest.summary = self.string(value),
                "step" => {
                    let DeValue::Array(items) = value.get_ref() else {
                        self.mistake(value.span(), "`step` is a list of tables: write [[step]]");
                        continue;
                    };
                    for item in items {
                        let (step, place) = self.step(item);
                        manifest.steps.push(step);
                        places.push(place);
                    }
                }
                other => {
                    let what = unknown("key", other, ["summary", "step"].into_iter());
                    self.mistake(key.span(), what);
                }
            }
        }
        self.check_names(&manifest.steps, &places);
        self.check_cycle(&manifest.steps, &places);
        manifest
    }

    fn step(&mut self, item: &Spanned<DeValue<'_>>) -> (Step, KeyRanges) {
        let mut step = Step::new();
        let mut places = KeyRanges { name: item.span(), of: BTreeMap::new(), steps: Vec::new(), outputs: Vec::new() };
        let empty = DeTable::new();
        let table = if let DeValue::Table(table) = item.get_ref() { table } else { &empty };
        for (key, value) in table {
            let Some(known) = KEYS.iter().copied().find(|known| *known == key.get_ref()) else {
                let what = unknown("key", key.get_ref(), KEYS.iter().copied());
                self.mistake(key.span(), what);
                continue;
            };
            places.of.insert(known, value.span());
            self.value(known, value, &mut step, &mut places);
        }
        // A command on hosts runs for each of them, said or not.
        if step.place == RunsOn::Host && !places.of.contains_key("scope") {
            step.scope = Scope::Host;
        }
        self.check_step(&step, &places);
        self.check_own(&step, &places);
        (step, places)
    }

    fn value(&mut self, key: &str, value: &Spanned<DeValue<'_>>, step: &mut Step, places: &mut KeyRanges) {
        match key {
            "name" => {
                step.name = self.string(value);
                places.name = value.span();
            }
            "summary" => step.summary = self.string(value),
            "scope" => step.scope = self.scope(value),
            "roles" => step.roles = self.role_names(value),
            "after" => step.after = self.step_names(value, places),
            "before" => step.before = self.step_names(value, places),
            "timeout" => step.timeout = self.duration(value),
            "retry" => step.retry = self.classes(value),
            "run" => step.run = self.plain_strings(value),
            "inputs" => step.inputs = self.plain_strings(value),
            "outputs" => {
                places.outputs = self.strings(value);
                step.outputs = places.outputs.iter().map(|(path, _)| path.clone()).collect();
            }
            "where" => step.place = self.place(value),
            // The last one of KEYS.
            _ => step.hosts = self.plain_strings(value),
        }
    }

    fn step_names(&mut self, value: &Spanned<DeValue<'_>>, places: &mut KeyRanges) -> Vec<String> {
        let names = self.strings(value);
        places.steps.extend(names.iter().cloned());
        names.into_iter().map(|(name, _)| name).collect()
    }

    fn role_names(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        let names = self.strings(value);
        for (name, at) in &names {
            if !self.roles.is_empty() && !self.roles.contains(&name.as_str()) {
                self.mistake(at.clone(), unknown("role", name, self.roles.iter().copied()));
            }
        }
        names.into_iter().map(|(name, _)| name).collect()
    }

    fn check_step(&mut self, step: &Step, places: &KeyRanges) {
        let name_is_good = !step.name.is_empty()
            && step.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !name_is_good {
            let what = format!("a step needs a `name` of small letters, digits and `-`, not \"{}\"", step.name);
            self.mistake(places.name.clone(), what);
        }
        for (key, list) in [("roles", &step.roles), ("hosts", &step.hosts)] {
            if step.scope == Scope::Once && !list.is_empty() {
                let what = format!("step `{}` has `{key}`, so it needs scope = \"host\"", step.name);
                self.mistake(places.name.clone(), what);
            }
        }
        if !places.of.contains_key("run") {
            for key in ["inputs", "before", "outputs", "where", "hosts"] {
                if places.of.contains_key(key) {
                    let what = format!("step `{}` has `{key}`, which only a step with `run` may have", step.name);
                    self.mistake(places.name.clone(), what);
                }
            }
        }
    }

    /// What is asked of steps with a command of the user's own.
    fn check_own(&mut self, step: &Step, places: &KeyRanges) {
        if let Some(at) = places.of.get("run")
            && step.run.first().is_none_or(String::is_empty)
        {
            self.mistake(at.clone(), "`run` is a list: the command and its arguments");
        }
        if step.place == RunsOn::Host
            && step.scope == Scope::Once
            && let Some(at) = places.of.get("scope")
        {
            self.mistake(at.clone(), "where = \"host\" needs scope = \"host\"; `hosts` and `roles` name some of them");
        }
        for (path, at) in &places.outputs {
            let wrong = match (step.place, step.scope) {
                _ if path.is_empty() || path.contains(['\n', '\\']) => Some("an output is the path of a file"),
                (RunsOn::Host, _) if !path.starts_with('/') => Some("an output on a host begins with `/`"),
                (RunsOn::Here, Scope::Host) if !path.contains(HOST) => Some(
                    "this runs here once for each host, so each host needs a file of its own: put {host} into the path",
                ),
                _ => None,
            };
            if let Some(wrong) = wrong {
                self.mistake(at.clone(), wrong);
            }
        }
    }

    fn check_names(&mut self, steps: &[Step], places: &[KeyRanges]) {
        let mut seen = BTreeSet::new();
        for (step, place) in steps.iter().zip(places) {
            if !seen.insert(step.name.as_str()) {
                self.mistake(place.name.clone(), format!("there are two steps `{}`", step.name));
            }
        }
        for place in places {
            for (name, at) in &place.steps {
                if !seen.contains(name.as_str()) {
                    self.mistake(at.clone(), unknown("step", name, seen.iter().copied()));
                }
            }
        }
    }

    fn check_cycle(&mut self, steps: &[Step], places: &[KeyRanges]) {
        let index: BTreeMap<&str, usize> =
            steps.iter().enumerate().map(|(at, step)| (step.name.as_str(), at)).collect();
        let needs: Vec<Vec<usize>> = steps
            .iter()
            .map(|step| {
                let hooks = steps.iter().enumerate().filter(|(_, hook)| hook.before.contains(&step.name));
                let after = step.after.iter().filter_map(|name| index.get(name.as_str()).copied());
                after.chain(hooks.map(|(at, _)| at)).collect()
            })
            .collect();
        let mut marks = vec![Mark::New; steps.len()];
        for start in 0..steps.len() {
            if let Some(cycle) = find_cycle(start, &needs, &mut marks, &mut Vec::new()) {
                let names: Vec<&str> = cycle.iter().map(|at| steps[*at].name.as_str()).collect();
                let at = places[cycle[0]].name.clone();
                self.mistake(at, format!("steps wait for each other: {}", names.join(" → ")));
                return;
            }
        }
    }

    fn string(&mut self, value: &Spanned<DeValue<'_>>) -> String {
        if let DeValue::String(text) = value.get_ref() {
            return text.to_string();
        }
        self.mistake(value.span(), "a string is needed here");
        String::new()
    }

    fn strings(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<(String, Range<usize>)> {
        let DeValue::Array(items) = value.get_ref() else {
            self.mistake(value.span(), "a list of strings is needed here");
            return Vec::new();
        };
        items.iter().map(|item| (self.string(item), item.span())).collect()
    }

    fn plain_strings(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        self.strings(value).into_iter().map(|(text, _)| text).collect()
    }

    fn scope(&mut self, value: &Spanned<DeValue<'_>>) -> Scope {
        match self.string(value).as_str() {
            "host" => Scope::Host,
            "once" | "" => Scope::Once,
            other => {
                self.mistake(value.span(), format!("scope is \"once\" or \"host\", not \"{other}\""));
                Scope::Once
            }
        }
    }

    fn place(&mut self, value: &Spanned<DeValue<'_>>) -> RunsOn {
        match self.string(value).as_str() {
            "host" => RunsOn::Host,
            "here" | "" => RunsOn::Here,
            other => {
                self.mistake(value.span(), format!("where is \"here\" or \"host\", not \"{other}\""));
                RunsOn::Here
            }
        }
    }

    fn duration(&mut self, value: &Spanned<DeValue<'_>>) -> Duration {
        let text = self.string(value);
        parse_duration(&text).filter(|time| !time.is_zero()).unwrap_or_else(|| {
            self.mistake(
                value.span(),
                format!("a time is a duration like \"90s\", \"10m\" or \"1h30m\", not \"{text}\""),
            );
            TIMEOUT
        })
    }

    fn classes(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<Class> {
        let mut classes = Vec::new();
        for (name, at) in self.strings(value) {
            match name.as_str() {
                "transient" => classes.push(Class::Transient),
                // All others would fail the same way again, or wait for the user.
                other => self.mistake(at, format!("only what is \"transient\" can be tried again, not \"{other}\"")),
            }
        }
        classes
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

fn find_cycle(at: usize, needs: &[Vec<usize>], marks: &mut [Mark], path: &mut Vec<usize>) -> Option<Vec<usize>> {
    match marks[at] {
        Mark::Done => return None,
        Mark::Open => {
            let start = path.iter().position(|step| *step == at).unwrap_or_default();
            return Some(path[start..].iter().copied().chain([at]).collect());
        }
        Mark::New => {}
    }
    marks[at] = Mark::Open;
    path.push(at);
    for next in &needs[at] {
        if let Some(cycle) = find_cycle(*next, needs, marks, path) {
            return Some(cycle);
        }
    }
    path.pop();
    marks[at] = Mark::Done;
    None
}

/// "unknown key `timout`; did you mean `timeout`?"
pub(super) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match kconfig::suggest(name, known) {
        Some(near) => format!("unknown {what} `{name}`; did you mean `{near}`?"),
        None => format!("unknown {what} `{name}`"),
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
