//! `phase.toml`: the steps of a phase and their order, as data.
//!
//! Reading is strict and reports every mistake of the file at once, each with its place. It knows no phase: whether a built-in step of a
//! name exists is the engine's question.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{Class, Error, Result};

/// The time for a step that gives none.
const BUDGET: Duration = Duration::from_mins(10);
const KEYS: &[&str] = &["name", "summary", "scope", "roles", "after", "budget", "retry", "run", "inputs"];

/// Once for the cluster, or once for each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Once for the cluster.
    Once,
    /// Once for each host.
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
    pub budget: Duration,
    /// Classes of errors after which it is tried again.
    pub retry: Vec<Class>,
    /// A command of the user's own in place of a built-in action.
    pub run: Vec<String>,
    /// Configuration paths that such a command depends on.
    pub inputs: Vec<String>,
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
    /// Reads a manifest; `file` is the name that errors show.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let mut reader = Reader { text, mistakes: Vec::new() };
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
    mistakes: Vec<(usize, String)>,
}

/// Where the parts of a step are that are checked once all steps are known.
struct Places {
    name: Range<usize>,
    after: Vec<(String, Range<usize>)>,
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

    fn step(&mut self, item: &Spanned<DeValue<'_>>) -> (Step, Places) {
        let mut step = Step {
            name: String::new(),
            summary: String::new(),
            scope: Scope::Once,
            roles: Vec::new(),
            after: Vec::new(),
            budget: BUDGET,
            retry: vec![Class::Transient],
            run: Vec::new(),
            inputs: Vec::new(),
        };
        let mut places = Places { name: item.span(), after: Vec::new() };
        let empty = DeTable::new();
        let table = if let DeValue::Table(table) = item.get_ref() { table } else { &empty };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "name" => {
                    step.name = self.string(value);
                    places.name = value.span();
                }
                "summary" => step.summary = self.string(value),
                "scope" => step.scope = self.scope(value),
                "roles" => step.roles = self.plain_strings(value),
                "after" => {
                    places.after = self.strings(value);
                    step.after = places.after.iter().map(|(name, _)| name.clone()).collect();
                }
                "budget" => step.budget = self.duration(value),
                "retry" => step.retry = self.classes(value),
                "run" => step.run = self.plain_strings(value),
                "inputs" => step.inputs = self.plain_strings(value),
                other => {
                    let what = unknown("key", other, KEYS.iter().copied());
                    self.mistake(key.span(), what);
                }
            }
        }
        self.check_step(&step, &places);
        (step, places)
    }

    fn check_step(&mut self, step: &Step, places: &Places) {
        let name_is_good = !step.name.is_empty()
            && step.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !name_is_good {
            let what = format!("a step needs a `name` of small letters, digits and `-`, not \"{}\"", step.name);
            self.mistake(places.name.clone(), what);
        }
        if step.scope == Scope::Once && !step.roles.is_empty() {
            self.mistake(
                places.name.clone(),
                format!("step `{}` has `roles`, so it needs scope = \"host\"", step.name),
            );
        }
        if step.run.is_empty() && !step.inputs.is_empty() {
            let what = format!("step `{}` has `inputs`, which only a step with `run` may have", step.name);
            self.mistake(places.name.clone(), what);
        }
    }

    fn check_names(&mut self, steps: &[Step], places: &[Places]) {
        let mut seen = BTreeSet::new();
        for (step, place) in steps.iter().zip(places) {
            if !seen.insert(step.name.as_str()) {
                self.mistake(place.name.clone(), format!("there are two steps `{}`", step.name));
            }
        }
        for place in places {
            for (name, at) in &place.after {
                if !seen.contains(name.as_str()) {
                    self.mistake(at.clone(), unknown("step", name, seen.iter().copied()));
                }
            }
        }
    }

    fn check_cycle(&mut self, steps: &[Step], places: &[Places]) {
        let index: BTreeMap<&str, usize> =
            steps.iter().enumerate().map(|(at, step)| (step.name.as_str(), at)).collect();
        let mut marks = vec![Mark::New; steps.len()];
        for start in 0..steps.len() {
            if let Some(cycle) = find_cycle(start, steps, &index, &mut marks, &mut Vec::new()) {
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

    fn duration(&mut self, value: &Spanned<DeValue<'_>>) -> Duration {
        let text = self.string(value);
        parse_duration(&text).unwrap_or_else(|| {
            self.mistake(
                value.span(),
                format!("a time is a number with s, m or h, like \"90s\" or \"10m\", not \"{text}\""),
            );
            BUDGET
        })
    }

    fn classes(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<Class> {
        let mut classes = Vec::new();
        for (name, at) in self.strings(value) {
            match name.as_str() {
                "transient" => classes.push(Class::Transient),
                "permanent" => classes.push(Class::Permanent),
                other => {
                    self.mistake(
                        at,
                        format!("what can be tried again is \"transient\" or \"permanent\", not \"{other}\""),
                    );
                }
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

fn find_cycle(
    at: usize,
    steps: &[Step],
    index: &BTreeMap<&str, usize>,
    marks: &mut [Mark],
    path: &mut Vec<usize>,
) -> Option<Vec<usize>> {
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
    for name in &steps[at].after {
        if let Some(next) = index.get(name.as_str())
            && let Some(cycle) = find_cycle(*next, steps, index, marks, path)
        {
            return Some(cycle);
        }
    }
    path.pop();
    marks[at] = Mark::Done;
    None
}

fn parse_duration(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return None,
    };
    (number > 0).then_some(Duration::from_secs(number.checked_mul(factor)?))
}

/// "unknown key `buget`; did you mean `budget`?"
pub(super) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let distance = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    let nearest = known.map(|candidate| (distance(candidate), candidate)).min();
    match nearest {
        Some((distance, candidate)) if distance <= candidate.len().max(3) / 3 => {
            format!("unknown {what} `{name}`; did you mean `{candidate}`?")
        }
        _ => format!("unknown {what} `{name}`"),
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
