//! Between a configuration and its JSON object: reading with every mistake placed, writing in the
//! order of the tree.
//!
//! Pure: text in, text out. The object is nested by the dots of the names. An absent key means the
//! default, whatever the type; so a bool that is n is absent when n is its default, and `false`
//! when it is not.

use std::collections::BTreeMap;

use kconfig::{Config, SymbolId, SymbolType, Tri};
use serde_json::{Map, Value, json};

use super::format::Format;
use super::json::{self, JsonText, NamedValue, Position};
use super::problem::{Problem, ProblemLevel};
use super::schema::Schema;

/// Where each setting stands in a file.
pub(super) type Positions = BTreeMap<String, Position>;

/// What reading a file found besides values.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) problems: Vec<Problem>,
    pub(super) places: Positions,
}

/// Takes the values of an object into a fresh configuration.
pub(super) fn read(schema: &Schema, config: &mut Config<'_>, document: &JsonText) -> Reading {
    let mut reading = Reading::default();
    for duplicate in &document.duplicates {
        let name = duplicate.keys.join(".");
        let message = format!("`{name}` occurs twice; the first one is in line {}", duplicate.first.line);
        reading.problems.push(Problem::error(message).about(&name).at(duplicate.again));
    }
    for entry in gather_maps(schema, &document.entries) {
        match take_entry(schema, config, &entry) {
            Ok(Some(symbol)) => {
                reading.places.insert(schema.name(symbol).to_owned(), entry.value_at);
            }
            Ok(None) => {}
            Err(problem) => reading.problems.push(problem),
        }
    }
    reading.problems.extend(find_absent(schema, config, &reading.problems));
    forget_defaults(schema, config);
    reading
}

/// An answer that the default gives anyway is none: when what it derives from changes, it follows.
/// The file names every value, so otherwise a cluster's new name would leave all that is named
/// after it behind.
fn forget_defaults(schema: &Schema, config: &mut Config<'_>) {
    let mut without = config.clone();
    for symbol in schema.ordered() {
        let counts = config.user_value(*symbol).is_some() && config.visible(*symbol) != Tri::N;
        if counts && config.default_value(*symbol) == config.value(*symbol) {
            without.unset(*symbol);
        }
    }
    if schema.ordered().iter().all(|symbol| without.value(*symbol) == config.value(*symbol)) {
        *config = without;
    }
}

/// The entries, those inside the object of a map as the one value that they are.
fn gather_maps(schema: &Schema, entries: &[NamedValue]) -> Vec<NamedValue> {
    let is_map = |keys: &[String]| {
        let symbol = schema.tree().symbol(&keys.join("."));
        symbol.is_some_and(|symbol| matches!(schema.rule(symbol).format, Some(Format::Map(..))))
    };
    let mut gathered: Vec<NamedValue> = Vec::new();
    for entry in entries {
        let Some(depth) = (1..entry.keys.len()).find(|depth| is_map(&entry.keys[..*depth])) else {
            gathered.push(entry.clone());
            continue;
        };
        let (outer, inner) = entry.keys.split_at(depth);
        if gathered.last().is_none_or(|last| last.keys != outer) {
            let value = Value::Object(Map::new());
            gathered.push(NamedValue { keys: outer.to_vec(), value, key_at: entry.key_at, value_at: entry.key_at });
        }
        if let Some(NamedValue { value: Value::Object(members), .. }) = gathered.last_mut() {
            let nested = inner[1..].iter().rev().fold(entry.value.clone(), |value, key| json!({ key: value }));
            members.insert(inner[0].clone(), nested);
        }
    }
    gathered
}

fn take_entry(schema: &Schema, config: &mut Config<'_>, entry: &NamedValue) -> Result<Option<SymbolId>, Problem> {
    let name = entry.keys.join(".");
    if let Some(key) = entry.keys.iter().find(|key| key.contains('.')) {
        let nested = key.replace('.', "\": {\"");
        let message = format!("key `{key}` has dots; objects are nested instead: {{\"{nested}\": …");
        return Err(Problem::error(message).about(&name).at(entry.key_at));
    }
    let Some(symbol) = schema.tree().symbol(&name) else {
        return take_group(schema, entry, &name);
    };
    let kind = schema.tree().get(symbol).kind;
    let wrong = |expected: &str| {
        let message = format!("{name} must be {expected}, not {}", json::describe(&entry.value));
        Problem::error(message).about(&name).at(entry.value_at)
    };
    let text = match &schema.rule(symbol).format {
        Some(format) if format.is_structured() => format.to_text(&entry.value).map_err(|expected| wrong(&expected))?,
        _ => value_text(kind, &entry.value).map_err(wrong)?,
    };
    config.assign(symbol, &text).map_err(|error| Problem::error(error.to_string()).about(&name).at(entry.value_at))?;
    Ok(Some(symbol))
}

/// What was done to which setting.
pub(super) type Migrated = Vec<(String, String)>;

/// The same object by the present rules: names that changed are the new ones, and texts of lists,
/// maps and records have their shape. With what was done, by name.
pub(super) fn migrate(schema: &Schema, document: &JsonText) -> (JsonText, Migrated) {
    let mut done = Vec::new();
    let mut entries: Vec<NamedValue> = document.entries.clone();
    for entry in &mut entries {
        let name = entry.keys.join(".");
        if let Some(renamed) = schema.find_renamed(&name).filter(|_| schema.tree().symbol(&name).is_none()) {
            entry.keys = schema.name(renamed).split('.').map(ToOwned::to_owned).collect();
            done.push((name, format!("is called {} now", schema.name(renamed))));
        }
        let name = entry.keys.join(".");
        let format = schema.tree().symbol(&name).and_then(|symbol| schema.rule(symbol).format.as_ref());
        let shaped = format.filter(|format| format.is_structured()).zip(entry.value.as_str());
        if let Some(value) =
            shaped.filter(|(format, text)| format.validate(text).is_ok()).map(|(f, text)| f.to_json(text))
        {
            entry.value = value;
            done.push((name, "is a list or an object now, no text".to_owned()));
        }
    }
    (JsonText { entries, duplicates: document.duplicates.clone() }, done)
}

/// What stands at a path that is no setting: an empty group, or a mistake.
fn take_group(schema: &Schema, entry: &NamedValue, name: &str) -> Result<Option<SymbolId>, Problem> {
    let prefix = format!("{name}.");
    let is_group = schema.tree().symbols().any(|(_, symbol)| symbol.name.starts_with(&prefix));
    if is_group && entry.value.is_object() {
        return Ok(None);
    }
    if is_group {
        let message =
            format!("`{name}` is a group of settings and must be an object, not {}", json::describe(&entry.value));
        return Err(Problem::error(message).about(name).at(entry.value_at));
    }
    let outer = (1..entry.keys.len()).map(|count| entry.keys[..count].join("."));
    if let Some(setting) = outer.into_iter().find(|outer| schema.tree().symbol(outer).is_some()) {
        let message = format!("`{setting}` is a setting, not a group; `{name}` does not exist");
        return Err(Problem::error(message).about(name).at(entry.key_at));
    }
    if let Some(renamed) = schema.find_renamed(name) {
        let message = format!("`{name}` is called {} now; to rename it: turnup config migrate", schema.name(renamed));
        return Err(Problem::error(message).about(name).at(entry.key_at));
    }
    let message = format!("there is no setting `{name}`{}", schema.suggestion(name));
    Err(Problem::error(message).about(name).at(entry.key_at))
}

/// The text that Kconfig has for a JSON value of this type, or what was expected.
fn value_text(kind: SymbolType, value: &Value) -> Result<String, &'static str> {
    match (kind, value) {
        (SymbolType::Bool | SymbolType::Tristate, Value::Bool(on)) => Ok(if *on { "y" } else { "n" }.to_owned()),
        (SymbolType::Tristate, Value::String(text)) if text == "m" => Ok(text.clone()),
        (SymbolType::Int, Value::Number(number)) if number.is_i64() => Ok(number.to_string()),
        (SymbolType::Hex | SymbolType::String | SymbolType::Unknown, Value::String(text)) => Ok(text.clone()),
        (SymbolType::Bool, _) => Err("true or false"),
        (SymbolType::Tristate, _) => Err("true, false or \"m\""),
        (SymbolType::Int, _) => Err("a whole number without quotes"),
        (SymbolType::Hex, _) => Err("a string such as \"0x1f\""),
        (SymbolType::String | SymbolType::Unknown, _) => Err("a string in quotes"),
    }
}

/// More settings than this that a file leaves out are counted, not named.
const MAX_ABSENT: usize = 5;

/// Questions that the file does not answer. A bool whose default is n is none of them: the object
/// leaves those out.
fn find_absent(schema: &Schema, config: &Config<'_>, known: &[Problem]) -> Vec<Problem> {
    let is_answered = |symbol: SymbolId| {
        let definition = schema.tree().get(symbol);
        config.user_value(symbol).is_some()
            || config.visible(symbol) == Tri::N
            || definition.choice.is_some()
            || (definition.kind.is_logical() && config.tri(symbol) == Tri::N)
            || known.iter().any(|problem| problem.symbol.as_deref() == Some(schema.name(symbol)))
    };
    let notice = |symbol: SymbolId| {
        let (name, shown) = (schema.name(symbol), show(schema, symbol, config.value(symbol)));
        Problem::notice(format!("{name} is new: its default {shown} is used")).about(name)
    };
    let absent: Vec<SymbolId> = schema.ordered().iter().copied().filter(|symbol| !is_answered(*symbol)).collect();
    // A short file is meant to be short: naming hundreds would hide what is wrong.
    if absent.len() > MAX_ABSENT {
        let message =
            format!("{} settings are not in it: their defaults are used; see turnup config list --new", absent.len());
        return vec![Problem::notice(message)];
    }
    absent.into_iter().map(notice).collect()
}

/// Values that were given and do not take effect.
pub(super) fn find_ineffective(schema: &Schema, config: &Config<'_>, places: &Positions) -> Vec<Problem> {
    let mut problems = Vec::new();
    for &symbol in schema.ordered() {
        let Some(given) = config.user_value(symbol) else { continue };
        let Some(problem) = judge_effect(schema, config, symbol, given) else { continue };
        let name = schema.name(symbol);
        problems.push(Problem { at: places.get(name).copied(), ..problem.about(name) });
    }
    problems
}

fn judge_effect(schema: &Schema, config: &Config<'_>, symbol: SymbolId, given: &str) -> Option<Problem> {
    let name = schema.name(symbol);
    let value = config.value(symbol);
    if let Some((low, high)) = out_of_range(config, symbol, given) {
        return Some(Problem::error(format!("{name} is {given}, but must lie between {low} and {high}")));
    }
    // A setting that cannot be changed now is written too when it has a value: reading it back is
    // no contradiction.
    if given == value || (value.is_empty() && given == "n") {
        return None;
    }
    if config.visible(symbol) == Tri::N {
        let why = config.explain_visibility(symbol).join("; ");
        return Some(Problem::notice(format!("{name} has no effect: it cannot be set now: {why}")));
    }
    let logical = schema.tree().get(symbol).kind.is_logical();
    logical.then(|| Problem::notice(format!("{name} is {value} whatever the file says: other settings decide")))
}

/// The range, when the text is a number outside it.
pub(super) fn out_of_range(config: &Config<'_>, symbol: SymbolId, text: &str) -> Option<(i64, i64)> {
    let (low, high) = config.range(symbol)?;
    let number = config.tree().get(symbol).kind.parse_number(text)?;
    (number < low || number > high).then_some((low, high))
}

/// The object of a configuration.
pub(crate) fn write(schema: &Schema, config: &Config<'_>) -> Value {
    let mut root = Map::new();
    for symbol in schema.ordered().iter().copied().filter(|symbol| config.is_written(*symbol)) {
        let value = json_value(schema, symbol, config.value(symbol));
        if let Some(value) = value.or_else(|| json_off(schema, config, symbol)) {
            insert(&mut root, schema.name(symbol), value);
        }
    }
    Value::Object(root)
}

/// The object with only what is not so by default.
pub(super) fn write_minimal(schema: &Schema, config: &Config<'_>) -> Value {
    let mut root = Map::new();
    for symbol in schema.ordered().iter().copied().filter(|symbol| config.is_written(*symbol)) {
        if config.default_value(symbol) == config.value(symbol) {
            continue;
        }
        let value = json_value(schema, symbol, config.value(symbol)).unwrap_or(Value::Bool(false));
        insert(&mut root, schema.name(symbol), value);
    }
    Value::Object(root)
}

/// The text of the file.
pub(crate) fn render(object: &Value) -> String {
    // The alternate form is the indented one; a Value always has a text.
    format!("{object:#}\n")
}

/// A value as JSON has it; nothing for what has none and for what is off.
pub(crate) fn json_value(schema: &Schema, symbol: SymbolId, text: &str) -> Option<Value> {
    if let Some(format) = schema.rule(symbol).format.as_ref().filter(|format| format.is_structured()) {
        return Some(format.to_json(text));
    }
    match schema.tree().get(symbol).kind {
        SymbolType::Bool | SymbolType::Tristate => match text {
            "y" => Some(Value::Bool(true)),
            "m" => Some(Value::String("m".to_owned())),
            _ => None,
        },
        SymbolType::Int => text.parse::<i64>().ok().map(Value::from),
        SymbolType::Hex if text.is_empty() => None,
        SymbolType::Hex | SymbolType::String | SymbolType::Unknown => Some(Value::String(text.to_owned())),
    }
}

/// `false`, for a bool that is n although its default is not.
fn json_off(schema: &Schema, config: &Config<'_>, symbol: SymbolId) -> Option<Value> {
    let definition = schema.tree().get(symbol);
    // The member that is chosen says which ones are not.
    if !definition.kind.is_logical() || definition.choice.is_some() || config.user_value(symbol).is_none() {
        return None;
    }
    matches!(config.default_value(symbol).as_str(), "y" | "m").then_some(Value::Bool(false))
}

fn insert(root: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            root.insert(name.to_owned(), value);
        }
        Some((group, rest)) => {
            let inner = root.entry(group).or_insert_with(|| Value::Object(Map::new()));
            // The schema refuses names that are both a value and a group.
            if let Value::Object(members) = inner {
                insert(members, rest, value);
            }
        }
    }
}

/// A value for people: quoted when it is text, hidden when it is secret, of records the keys.
pub(crate) fn show(schema: &Schema, symbol: SymbolId, text: &str) -> String {
    match schema.tree().get(symbol).kind {
        _ if schema.rule(symbol).secret && !text.is_empty() => "(secret)".to_owned(),
        SymbolType::String | SymbolType::Unknown
            if let Some(brief) = schema.rule(symbol).format.as_ref().and_then(|format| format.summarize(text)) =>
        {
            brief
        }
        SymbolType::String | SymbolType::Unknown => Value::String(text.to_owned()).to_string(),
        _ => text.to_owned(),
    }
}

/// Whether any problem stops the configuration from being used.
pub(super) fn has_errors(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.level == ProblemLevel::Error)
}
