//! The file as it would be saved, and what differs from the file, from the defaults and from what
//! runs. Secrets are not shown.

use std::collections::{BTreeMap, BTreeSet};

use kconfig::{Config, dotconfig};
use serde_json::Value;

use super::dialog::{FilePreview, Tab};
use super::model::{Form, Model, Saved};

impl Tab {
    pub(super) const ALL: [Self; 4] = [Self::File, Self::Saved, Self::Defaults, Self::Applied];

    /// Its heading.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::File => "The file",
            Self::Saved => "Not saved yet",
            Self::Defaults => "Not the default",
            Self::Applied => "Not what runs",
        }
    }

    /// Those that mean something: a tree of other people describes nothing that runs.
    pub(super) fn shown(model: &Model) -> impl Iterator<Item = Self> {
        let all = model.form == Form::Object;
        Self::ALL.into_iter().filter(move |tab| all || *tab != Self::Applied)
    }

    /// The one behind it, in a circle.
    pub(super) fn next(self, model: &Model) -> Self {
        let tabs: Vec<Self> = Self::shown(model).collect();
        let at = tabs.iter().position(|tab| *tab == self).unwrap_or(0);
        tabs[(at + 1) % tabs.len()]
    }
}

impl FilePreview {
    /// This view of the answers.
    pub(super) fn of(model: &Model, tab: Tab) -> Self {
        let lines = match tab {
            Tab::File => document(model).lines().map(ToOwned::to_owned).collect(),
            Tab::Saved => from_saved(model),
            Tab::Defaults => from_defaults(model),
            Tab::Applied => model.applied.as_ref().map_or_else(
                || vec!["Nothing runs yet that turnup up has finished.".to_owned()],
                |applied| differences(model, applied, &values(model, &model.config)),
            ),
        };
        let lines = if lines.is_empty() { vec!["No difference.".to_owned()] } else { lines };
        Self { tab, lines, scroll: 0 }
    }
}

/// The text of the file.
pub(super) fn document(model: &Model) -> String {
    match &model.form {
        Form::Object => {
            let mut object = model.object();
            hide_secrets(model, &mut object);
            crate::config::render(&object)
        }
        Form::DotConfig { prefix } => dotconfig::write(&model.config, prefix),
    }
}

fn hide_secrets(model: &Model, object: &mut Value) {
    let tree = model.schema.tree();
    for (id, symbol) in tree.symbols().filter(|(id, _)| model.schema.rule(*id).secret) {
        let place = symbol.name.split('.').try_fold(&mut *object, |inner, key| inner.get_mut(key));
        let nothing = |value: &Value| value.is_null() || value.as_str() == Some("");
        if let Some(value) = place.filter(|value| !nothing(value)) {
            *value = model.shown(id, "set").into();
        }
    }
}

fn from_defaults(model: &Model) -> Vec<String> {
    changed_lines(model, &model.schema.config(), &model.config)
}

fn from_saved(model: &Model) -> Vec<String> {
    let missing = model.saved.is_none().then(|| format!("{} does not exist yet.", model.file));
    missing.into_iter().chain(unsaved_lines(model)).collect()
}

/// What saving changes, a line each; in a file that is not there yet, what is not the default. What
/// only comes or goes with an answer stands behind the answers.
pub(super) fn unsaved_lines(model: &Model) -> Vec<String> {
    let mut lines = match &model.saved {
        None => from_defaults(model),
        Some(Saved::Said(said)) => changed_lines(model, &model.with(said), &model.config),
        Some(Saved::Object(object)) => differences(model, &leaves(object), &leaves(&model.object())),
    };
    lines.sort_by_key(|line| !line.starts_with('~'));
    lines
}

/// The values of an object by their paths.
fn leaves(object: &Value) -> BTreeMap<String, String> {
    fn collect(value: &Value, path: &str, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, value) in members {
                    let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(value, &inner, into);
                }
            }
            Value::String(text) => drop(into.insert(path.to_owned(), text.clone())),
            other => drop(into.insert(path.to_owned(), other.to_string())),
        }
    }
    let mut into = BTreeMap::new();
    collect(object, "", &mut into);
    into
}

/// The values that count, by their names.
fn values(model: &Model, config: &Config<'_>) -> BTreeMap<String, String> {
    let written = model.schema.tree().symbols().filter(|(id, _)| config.is_written(*id));
    written.map(|(id, symbol)| (symbol.name.to_string(), config.value(id).to_owned())).collect()
}

/// What differs between two configurations, a line each.
pub(super) fn changed_lines(model: &Model, before: &Config<'_>, after: &Config<'_>) -> Vec<String> {
    differences(model, &values(model, before), &values(model, after))
}

fn differences(model: &Model, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    // The leaves of a map are no settings of their own.
    let symbol = |name: &str| {
        let mut names = std::iter::successors(Some(name), |name| Some(name.rsplit_once('.')?.0));
        names.find_map(|name| model.schema.tree().symbol(name))
    };
    let shown = |name: &String, value: &String| match symbol(name) {
        Some(symbol) => model.shown(symbol, value),
        None => value.clone(),
    };
    let line = |name: &String| match (before.get(name), after.get(name)) {
        (Some(before), Some(after)) if before == after => None,
        (Some(before), Some(after)) => Some(format!("~ {name}: {} -> {}", shown(name, before), shown(name, after))),
        (None, Some(after)) => Some(format!("+ {name}: {}", shown(name, after))),
        (before, None) => Some(format!("- {name}: {}", before.map_or_else(String::new, |before| shown(name, before)))),
    };
    names.into_iter().filter_map(line).collect()
}
