//! A configuration file as all other modules use it: loaded, asked by name, changed all or nothing,
//! saved as a whole.
//!
//! Plain data that can be shared between threads: evaluation happens when something changes, not
//! when something is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kconfig::{Config, Origin, SetError, SymbolId, SymbolType, Tri};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::check::{check, judge};
use super::file::{self, Privacy};
use super::json;
use super::object::{self, Positions, Reading};
use super::problem::{Problem, ProblemSource, refuse};
use super::refusal::{Refusal, Refused, explain_command, refusal};
use super::schema::{ChangeEffect, Schema, TARGET};
use super::setting::{ComponentValue, Setting, SettingChange};
use super::source::TreeSource;
use crate::error::{Class, Error, Result};

/// What was in the file when it was read.
#[derive(Clone, Debug)]
struct Original {
    path: PathBuf,
    text: String,
}

/// A loaded configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    schema: Arc<Schema>,
    answers: Vec<(SymbolId, String)>,
    /// In the order of the menus.
    values: Arc<Vec<Setting>>,
    /// Made when it is asked for: most variants of a configuration are only read by name.
    object: OnceLock<Value>,
    reading: Vec<Problem>,
    judgement: Vec<Problem>,
    places: Positions,
    original: Option<Original>,
    /// Settings that were given for this run only, and where.
    given: BTreeMap<String, String>,
    /// Flags and fields of components that were given for this run only.
    component_values: Vec<ComponentValue>,
}

impl Settings {
    /// Below a cluster's directory: the configuration that the last complete `turnup up` worked
    /// with.
    pub const APPLIED: &'static str = "applied.json";

    /// The file's settings; an error when there is no file or anything in it is wrong.
    pub fn load(path: &Path, source: &TreeSource) -> Result<Self> {
        let schema = Schema::load(source)?;
        let settings = Self::open(path, schema)?.ok_or_else(|| missing(path))?;
        settings.usable(path)?;
        Ok(settings)
    }

    /// The file's settings, or the defaults when there is no file.
    pub fn load_or_default(path: &Path, source: &TreeSource) -> Result<Self> {
        let schema = Schema::load(source)?;
        let settings = Self::open(path, Arc::clone(&schema))?.unwrap_or_else(|| Self::from_defaults(schema));
        settings.usable(path)?;
        Ok(settings)
    }

    /// The settings of a cluster without any answers.
    pub fn defaults(source: &TreeSource) -> Result<Self> {
        Ok(Self::from_defaults(Schema::load(source)?))
    }

    /// The same over a schema that is loaded already.
    #[must_use]
    pub fn from_defaults(schema: Arc<Schema>) -> Self {
        let config = schema.config();
        let judgement = judge_all(&schema, &config, &Positions::new());
        Self::evaluate(schema, &config, judgement)
    }

    /// The file with all that is wrong in it, for callers that report or correct it; nothing when
    /// there is no file. Only a file that is no JSON object at all is an error here.
    pub fn open(path: &Path, schema: Arc<Schema>) -> Result<Option<Self>> {
        let Some(text) = file::read(path)? else { return Ok(None) };
        let document = parse(path, &text)?;
        Ok(Some(Self::read(path, schema, text, &document, find_exposed_secrets)))
    }

    /// The file read by the rules of earlier versions, with what that changed; nothing when there
    /// is no file.
    pub fn migrate(path: &Path, schema: Arc<Schema>) -> Result<Option<(Self, object::Migrated)>> {
        let Some(text) = file::read(path)? else { return Ok(None) };
        let (document, done) = object::migrate(&schema, &parse(path, &text)?);
        // Rewriting the file makes it private.
        Ok(Some((Self::read(path, schema, text, &document, |_, _, _| None), done)))
    }

    fn read(
        path: &Path,
        schema: Arc<Schema>,
        text: String,
        document: &json::JsonText,
        find_more: impl Fn(&Path, &Schema, &Config<'_>) -> Option<Problem>,
    ) -> Self {
        let mut config = schema.config();
        let Reading { mut problems, places } = object::read(&schema, &mut config, document);
        problems.extend(find_more(path, &schema, &config).map(|problem| placed(problem, &places)));
        let judgement = judge_all(&schema, &config, &places);
        let original = Some(Original { path: path.to_owned(), text });
        Self { reading: problems, places, original, ..Self::evaluate(schema, &config, judgement) }
    }

    /// Takes over what a front-end has made of the answers.
    pub(crate) fn adopt(&mut self, config: &Config<'_>) {
        *self = self.evaluated(config, self.judge_all(config));
    }

    /// What would be wrong with these answers in its place.
    pub(super) fn judge_all(&self, config: &Config<'_>) -> Vec<Problem> {
        judge_all(&self.schema, config, &Positions::new())
    }

    /// The same file's settings with these answers, of which this is wrong, and with what was given
    /// for this run.
    pub(super) fn evaluated(&self, config: &Config<'_>, judgement: Vec<Problem>) -> Self {
        let own = Self::evaluate(Arc::clone(&self.schema), config, judgement);
        let (given, component_values) = (self.given.clone(), self.component_values.clone());
        Self { original: self.original.clone(), given, component_values, ..own }
    }

    fn evaluate(schema: Arc<Schema>, config: &Config<'_>, judgement: Vec<Problem>) -> Self {
        let ordered = schema.ordered();
        let answers =
            ordered.iter().filter_map(|symbol| Some((*symbol, config.user_value(*symbol)?.to_owned()))).collect();
        let values = ordered.iter().map(|symbol| setting(&schema, config, *symbol)).collect();
        Self {
            schema,
            answers,
            values: Arc::new(values),
            object: OnceLock::new(),
            reading: Vec::new(),
            judgement,
            places: Positions::new(),
            original: None,
            given: BTreeMap::new(),
            component_values: Vec::new(),
        }
    }

    /// The answers as a configuration that can be changed.
    pub(crate) fn config(&self) -> Config<'static> {
        let mut config = self.schema.config();
        for (symbol, value) in &self.answers {
            // Each value was taken once already.
            config.assign(*symbol, value).ok();
        }
        config
    }

    /// The file that they were read from; the one of the command line's default where they were
    /// not.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.original.as_ref().map_or(Path::new(".config.json"), |original| &original.path)
    }

    /// The tree and its rules.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The value of a setting: `y` or `n` of bools, text of others, empty for what does not count
    /// now.
    pub fn get(&self, name: &str) -> Result<String> {
        self.setting(name).map(|setting| setting.value.clone())
    }

    /// Whether a bool is y.
    pub fn get_bool(&self, name: &str) -> Result<bool> {
        self.setting(name).map(|setting| setting.value == "y")
    }

    /// The number; 0 for one that does not count now.
    pub fn get_int(&self, name: &str) -> Result<i64> {
        let setting = self.setting(name)?;
        match setting.kind.parse_number(&setting.value) {
            Some(number) => Ok(number),
            None if setting.value.is_empty() => Ok(0),
            None => Err(Error::bug(format!("{name} is asked for as a number, but is of type {}", setting.kind))),
        }
    }

    fn find(&self, name: &str) -> Option<&Setting> {
        self.values.get(self.schema.rank(self.schema.tree().symbol(name)?)?)
    }

    /// The setting of this name.
    pub(crate) fn setting(&self, name: &str) -> Result<&Setting> {
        match self.find(name) {
            Some(setting) => Ok(setting),
            None => self.schema.find(name).and(Err(Error::bug(format!("{name} has no value")))),
        }
    }

    /// Whether the setting has this value, and is in force as said.
    pub(super) fn has(&self, name: &str, value: &str, written: bool) -> bool {
        self.find(name).is_some_and(|setting| setting.value == value && setting.written == written)
    }

    /// Every setting in the order of the menus.
    #[must_use]
    pub fn list(&self) -> &[Setting] {
        &self.values
    }

    /// Everything that is wrong or worth knowing, in the order of the file.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.reading.iter().chain(&self.judgement).cloned().collect();
        problems.sort_by_key(|problem| (problem.level, problem.at.is_none(), problem.at));
        problems
    }

    /// The object as the file has it: nested by dots, in the order of the menus, without bools that
    /// are n by default.
    #[must_use]
    pub fn json(&self) -> &Value {
        self.object.get_or_init(|| object::write(&self.schema, &self.config()))
    }

    /// The settings whose names begin with one of the prefixes, and their values; secrets by
    /// digest. Input of a phase's steps.
    #[must_use]
    pub fn subset_digest(&self, prefixes: &[&str]) -> BTreeMap<String, String> {
        let is_chosen = |setting: &&Setting| prefixes.iter().any(|prefix| setting.name.starts_with(prefix));
        self.values
            .iter()
            .filter(is_chosen)
            .map(|setting| {
                let digest = || hex::encode(Sha256::digest(setting.value.as_bytes()));
                let value = if setting.secret { digest() } else { setting.value.clone() };
                (setting.name.clone(), value)
            })
            .collect()
    }

    pub(super) fn remember_component_values(&mut self, values: Vec<ComponentValue>) {
        self.component_values = values;
    }

    /// Flags and fields of components that were given for this run only.
    #[must_use]
    pub fn component_values(&self) -> &[ComponentValue] {
        &self.component_values
    }

    pub(super) fn remember_given(&mut self, given: BTreeMap<String, String>) {
        self.given = given;
    }

    /// Where a value comes from, in a few words.
    pub fn origin(&self, name: &str, path: &Path) -> Result<String> {
        let setting = self.setting(name)?;
        Ok(match (self.given.get(name), self.places.get(name)) {
            (Some(place), _) => place.clone(),
            (None, Some(at)) if setting.from_user => format!("{}:{at}", path.display()),
            (None, _) if setting.from_user => "set".to_owned(),
            (None, _) if !setting.written && setting.value.is_empty() => "not asked".to_owned(),
            (None, Some(at)) => format!("default, as in {}:{at}", path.display()),
            (None, _) => "default".to_owned(),
        })
    }

    /// The problem with what gave its setting for this run, or its place in the file.
    pub(super) fn located(&self, problem: Problem) -> Problem {
        let given = problem.symbol.as_ref().and_then(|name| self.given.get(name)).cloned();
        Problem { source: given.map_or(ProblemSource::File, ProblemSource::Run), ..placed(problem, &self.places) }
    }

    /// Whether the file has a value for it.
    #[must_use]
    pub fn is_answered(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Whether it is in force with another value than its default.
    #[must_use]
    pub fn is_changed(&self, name: &str) -> bool {
        self.find(name).is_some_and(|setting| setting.written && setting.value != setting.default)
    }

    /// What the tree says that a change does to a running cluster.
    pub fn effect(&self, name: &str) -> Result<Option<ChangeEffect>> {
        Ok(self.schema.rule(self.schema.find(name)?).effect)
    }

    /// Where the hosts come from; empty in a tree of other people.
    #[must_use]
    pub fn target(&self) -> String {
        self.get(TARGET).unwrap_or_default()
    }

    /// Sets one value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<Vec<SettingChange>> {
        self.set_all(&[(name, value)])
    }

    /// Sets all of these values, in whatever order their dependencies ask for, or none; says all
    /// that is wrong at once.
    pub fn set_all(&mut self, assignments: &[(&str, &str)]) -> Result<Vec<SettingChange>> {
        let mut config = self.config();
        let mut refused = Vec::new();
        let mut pending = Vec::new();
        for (index, (name, value)) in assignments.iter().enumerate() {
            match self.schema.find(name) {
                Ok(_) if assignments[..index].iter().any(|(earlier, _)| earlier == name) => {
                    refused.push(Refused { why: format!("{name} is given twice"), next: format!("give {name} once") });
                }
                Ok(symbol) => pending.push((symbol, spelled(self.schema.tree().get(symbol).kind, value))),
                Err(error) => refused.push(Refused::unknown(&error)),
            }
        }
        refused.extend(self.apply(&mut config, pending));
        if !refused.is_empty() {
            return Err(refusal(&refused));
        }
        let names: Vec<&str> = assignments.iter().map(|(name, _)| *name).collect();
        self.replace(&config, &names)
    }

    /// Sets what can be set until nothing more can; returns the reasons for the rest.
    fn apply(&self, config: &mut Config<'_>, mut pending: Vec<(SymbolId, String)>) -> Vec<Refused> {
        let mut refused = Vec::new();
        loop {
            let mut waiting = Vec::new();
            let count = pending.len();
            for (symbol, value) in pending {
                match self.set_one(config, symbol, &value) {
                    Ok(()) => {}
                    Err(Refusal::Later(why)) => waiting.push((symbol, value, why)),
                    Err(Refusal::Never(why)) => refused.push(why),
                }
            }
            if waiting.is_empty() || waiting.len() == count {
                refused.extend(waiting.into_iter().map(|(_, _, why)| why));
                return refused;
            }
            pending = waiting.into_iter().map(|(symbol, value, _)| (symbol, value)).collect();
        }
    }

    fn set_one(&self, config: &mut Config<'_>, symbol: SymbolId, value: &str) -> Result<(), Refusal> {
        let (name, secret) = (self.schema.name(symbol), self.schema.rule(symbol).secret);
        let reveal = |why: String| if secret { "the value is not valid".to_owned() } else { why };
        let wrong = |why: String| {
            let next = match self.schema.tree().get(symbol).kind {
                SymbolType::Bool => format!("turnup config set {name}=y, or {name}=n"),
                _ => explain_command(name),
            };
            Refusal::Never(Refused { why: format!("{name}: {}", reveal(why)), next })
        };
        let locked = |why: String| {
            let wish = if secret { name.to_owned() } else { format!("{name}={value}") };
            let next = format!("turnup config why-not {} --apply", shell_words::quote(&wish));
            Refusal::Later(Refused { why, next })
        };
        match config.set(symbol, value) {
            Ok(()) => judge(&self.schema, config, symbol, value).map_or(Ok(()), |why| Err(wrong(why))),
            Err(SetError::NotVisible { why, .. }) => Err(match judge(&self.schema, config, symbol, value) {
                // Unlocking it would not help a value that it never takes.
                Some(why) => wrong(why),
                None => locked(format!("{name} cannot be set now: {}", why.join("; "))),
            }),
            Err(SetError::WrongType { .. } | SetError::OutOfRange { .. }) => {
                Err(wrong(judge(&self.schema, config, symbol, value).unwrap_or_else(|| "not valid".to_owned())))
            }
            Err(error) => Err(locked(error.to_string())),
        }
    }

    /// Forgets these values, so that defaults count again; also removes keys of the file that are
    /// no settings.
    pub fn unset(&mut self, names: &[&str]) -> Result<Vec<SettingChange>> {
        let mut config = self.config();
        let mut refused = Vec::new();
        for name in names {
            let in_file = self.reading.iter().any(|problem| problem.symbol.as_deref() == Some(*name));
            match self.schema.find(name) {
                Ok(symbol) => config.unset(symbol),
                Err(_) if in_file => {}
                Err(error) => refused.push(Refused::unknown(&error)),
            }
        }
        if !refused.is_empty() {
            return Err(refusal(&refused));
        }
        self.replace(&config, names)
    }

    /// Takes the new state when it is right; what was said about these names in the file is
    /// settled.
    fn replace(&mut self, config: &Config<'_>, settled: &[&str]) -> Result<Vec<SettingChange>> {
        let is_settled = |problem: &&Problem| problem.symbol.as_deref().is_none_or(|name| !settled.contains(&name));
        let reading = self.reading.iter().filter(is_settled).cloned().collect();
        let judgement = judge_all(&self.schema, config, &self.places);
        let own = Self::evaluate(Arc::clone(&self.schema), config, judgement);
        let mut next = Self { reading, places: self.places.clone(), original: self.original.clone(), ..own };
        let problems = next.check();
        if object::has_errors(&problems) {
            let wrong = problems.iter().filter(|problem| problem.level == super::ProblemLevel::Error);
            let refused = wrong.map(|problem| Refused {
                why: problem.message.clone(),
                next: problem.symbol.as_deref().map_or_else(|| "turnup config check".to_owned(), explain_command),
            });
            return Err(refusal(&refused.collect::<Vec<_>>()));
        }
        next.reading.clear();
        let changes = self.differences(&next);
        *self = next;
        Ok(changes)
    }

    /// The settings that differ between these and others.
    #[must_use]
    pub fn differences(&self, next: &Self) -> Vec<SettingChange> {
        let value = |of: &Self, name: &str| {
            let setting = of.find(name).filter(|setting| setting.written)?;
            let symbol = of.schema.tree().symbol(name)?;
            Some((object::show(&of.schema, symbol, &setting.value), setting.json(&of.schema)))
        };
        let changed = |setting: &Setting| {
            let (before, old) = value(self, &setting.name).unzip();
            let (after, new) = value(next, &setting.name).unzip();
            let values = [old, new].map(Option::unwrap_or_default);
            let differs = self.find(&setting.name).map(|old| (&old.value, old.written))
                != Some((&setting.value, setting.written));
            differs.then_some(SettingChange { name: setting.name.clone(), before, after, values })
        };
        next.list().iter().filter_map(changed).collect()
    }

    /// An error that lists everything that makes the settings unusable; nothing when they can be
    /// used.
    pub fn usable(&self, path: &Path) -> Result<()> {
        refuse(path, &self.check())
    }

    /// Writes the file as a whole. Refused when it is not as it was when it was read, or is no JSON
    /// object any more.
    pub fn save(&mut self, path: &Path) -> Result<()> {
        let known = self.original.as_ref().filter(|original| original.path == path);
        let expected = known.map(|original| &original.text);
        let now = file::read(path)?;
        if now.as_ref() != expected && now.as_ref() != Some(&self.text()) {
            let what = if expected.is_some() { "was changed" } else { "was created" };
            return Err(Error::new(
                Class::Transient,
                format!("{} {what} by another process meanwhile", path.display()),
            )
            .hint("look at it, then run the same command again"));
        }
        self.overwrite(path)
    }

    /// Writes the file whatever is in it now, as long as that is a JSON object or nothing.
    pub(crate) fn overwrite(&mut self, path: &Path) -> Result<()> {
        if let Some(text) = file::read(path)? {
            parse(path, &text)?;
        }
        let secret = self.values.iter().any(|setting| setting.secret && setting.written && !setting.value.is_empty());
        let privacy = if secret { Privacy::Private } else { Privacy::Shared };
        let text = self.text();
        file::replace(path, &text, privacy)?;
        self.original = Some(Original { path: path.to_owned(), text });
        Ok(())
    }

    /// The object without what is so by default.
    #[must_use]
    pub fn minimal(&self) -> Value {
        object::write_minimal(&self.schema, &self.config())
    }

    /// Leaves out of the object what is so by default.
    pub(crate) fn make_minimal(&mut self) {
        self.object = self.minimal().into();
    }

    /// Replaces the file by the minimal object; whether it was another one.
    pub fn save_minimal(&mut self, path: &Path) -> Result<bool> {
        self.make_minimal();
        let differs = self.differs_from_file();
        if differs {
            self.save(path)?;
        }
        Ok(differs)
    }

    /// The text that saving writes.
    #[must_use]
    pub fn text(&self) -> String {
        object::render(self.json())
    }

    /// Whether saving would change the file that these settings were read from.
    #[must_use]
    pub fn differs_from_file(&self) -> bool {
        self.original.as_ref().is_none_or(|original| original.text != self.text())
    }
}

/// All that is wrong with answers, or worth knowing; what has no effect is only said to have none.
fn judge_all(schema: &Schema, config: &Config<'_>, places: &Positions) -> Vec<Problem> {
    let mut judgement = object::find_ineffective(schema, config, places);
    let known: Vec<Option<String>> = judgement.iter().map(|problem| problem.symbol.clone()).collect();
    let further = check(schema, config).into_iter().filter(|problem| !known.contains(&problem.symbol));
    judgement.extend(further.map(|problem| placed(problem, places)));
    judgement
}

/// The problem with the place of its setting in the file.
fn placed(problem: Problem, places: &Positions) -> Problem {
    let at = problem.symbol.as_ref().and_then(|name| places.get(name)).copied();
    Problem { at, ..problem }
}

/// Secrets in a file that others may read.
fn find_exposed_secrets(path: &Path, schema: &Schema, config: &Config<'_>) -> Option<Problem> {
    let given = |symbol: &SymbolId| config.user_value(*symbol).is_some_and(|value| !value.is_empty());
    let secret = schema.ordered().iter().copied().filter(|symbol| schema.rule(*symbol).secret).find(given)?;
    if !file::is_readable_by_others(path) {
        return None;
    }
    let (name, shown) = (schema.name(secret), shell_words::quote(&path.display().to_string()).into_owned());
    let message = format!("{name} is a secret, and others may read this file: chmod 600 {shown}");
    Some(Problem::error(message).about(name))
}

/// `true` and `false` are what the file says for `y` and `n`.
pub(super) fn spelled(kind: SymbolType, value: &str) -> String {
    let text = match value {
        "true" if kind.is_logical() => "y",
        "false" if kind.is_logical() => "n",
        other => other,
    };
    text.to_owned()
}

fn setting(schema: &Schema, config: &Config<'_>, symbol: SymbolId) -> Setting {
    let default = match config.user_value(symbol) {
        Some(_) => config.default_value(symbol),
        None => config.value(symbol).to_owned(),
    };
    Setting {
        name: schema.name(symbol).to_owned(),
        prompt: schema.prompt(symbol).map(ToOwned::to_owned),
        kind: schema.tree().get(symbol).kind,
        value: config.value(symbol).to_owned(),
        default,
        from_user: config.origin(symbol) == Origin::User,
        visible: config.visible(symbol) != Tri::N,
        written: config.is_written(symbol),
        secret: schema.rule(symbol).secret,
    }
}

fn parse(path: &Path, text: &str) -> Result<json::JsonText> {
    json::parse(text).map_err(|wrong| {
        let shown = path.display();
        let quoted = shell_words::quote(&shown.to_string()).into_owned();
        let defaults = command(path, "config defaults");
        Error::config(format!("{shown}:{}: {}", wrong.at, wrong.message))
            .evidence("the file is no JSON object, so it is neither used nor overwritten")
            .hint(format!("correct it, or move it away and start again: mv {quoted} {quoted}.broken && {defaults}"))
    })
}

fn missing(path: &Path) -> Error {
    let (defaults, wizard) = (command(path, "config defaults"), command(path, "config"));
    Error::config(format!("{} does not exist", path.display()))
        .hint(format!("write one with the defaults: {defaults}; or answer the questions: {wizard}"))
}

/// A command for this file, as the user would type it.
fn command(path: &Path, what: &str) -> String {
    if path == Path::new(".config.json") {
        return format!("turnup {what}");
    }
    format!("turnup --config {} {what}", shell_words::quote(&path.display().to_string()))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
