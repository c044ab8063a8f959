//! The wizard: every question of the Kconfig tree on one screen.
//!
//! An Elm core: `model` is the state, `msg` what can happen, `update` how the state changes, `view` the screen as a pure function of the
//! state, `keymap` the one table of keys that also makes the help. None of these know a terminal, a file or a clock; `terminal` is the
//! loop that does; `files` carries out what it is asked. The wizard can do nothing that `turnup config` cannot do without it.

mod accessible;
mod dialog;
mod files;
mod guide;
mod history;
mod items;
mod jump;
mod keymap;
mod line_edit;
mod model;
mod msg;
mod preview;
mod repair;
mod rows;
mod search;
mod terminal;
mod update;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use kconfig::dotconfig;

use self::accessible::Conversation;
use self::dialog::Dialog;
use self::files::Files;
use self::model::{Form, Model, Saved};
use crate::config::{Level, Profile, Schema, Settings, TreeSource};
use crate::error::Result;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The file was written and has the last answers.
    Saved,
    /// There was nothing to write.
    Unchanged,
    /// Answers were given up.
    Discarded,
}

impl End {
    /// One line for the terminal that is back.
    #[must_use]
    pub fn describe(self, path: &Path) -> String {
        let file = path.display();
        match self {
            Self::Saved => format!("wrote {file}"),
            Self::Unchanged => format!("{file} is as it was"),
            Self::Discarded => format!("not saved: {file} is as it was last written"),
        }
    }
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With the menus; without a file, with the question how.
    Menus,
    /// With the questions of the guide.
    Guide,
    /// With the same questions as plain lines, for screen readers and pipes.
    Lines,
}

/// Runs the wizard over our configuration on this process's terminal; `settings` is the file, if there is one.
pub fn run(
    path: &Path,
    source: &TreeSource,
    settings: Option<Settings>,
    applied: Option<&Settings>,
    begin: Begin,
) -> Result<End> {
    let schema = match &settings {
        Some(settings) => Arc::clone(settings.schema()),
        None => Schema::load(source)?,
    };
    let saved = settings.as_ref().map(|settings| Saved::Object(settings.json().clone()));
    let is_new = settings.is_none();
    let settings = settings.unwrap_or_else(|| Settings::from_defaults(Arc::clone(&schema)));
    let mut model = Model::new(Arc::clone(&schema), settings.config(), path.display().to_string(), Form::Object, saved);
    model.is_stale = !is_new && settings.differs_from_file();
    model.known = (!is_new).then(|| answered(&settings)).filter(|known| is_whole(&settings, known.len()));
    model.applied = applied.map(|applied| {
        applied
            .list()
            .into_iter()
            .filter(|setting| setting.written)
            .map(|setting| (setting.name, setting.value))
            .collect()
    });
    model.profiles = Profile::list(source)?.into_iter().map(|profile| (profile.name, profile.purpose)).collect();
    update::greet(&mut model, greeting(path, &settings));
    let object = files::Object { settings, schema, source: source.clone() };
    let mut files = files::Session { form: object, path: path.to_owned() };
    match begin {
        Begin::Lines => {
            let (person, mut output) = (std::io::stdin().is_terminal(), std::io::stdout());
            let mut input = std::io::stdin().lock();
            return Conversation { input: &mut input, output: &mut output, person }.run(&mut model, &mut files);
        }
        Begin::Guide => update::start_guide(&mut model),
        Begin::Menus if is_new => update::ask_how(&mut model),
        Begin::Menus => {}
    }
    converse(&mut model, &mut files)
}

/// Runs the wizard over any Kconfig tree and its `.config`; `text` is what the file has, if there is one.
pub fn run_on_tree(path: &Path, schema: &Arc<Schema>, prefix: &str, text: Option<String>) -> Result<End> {
    let mut config = schema.config();
    let found = text.as_ref().map(|text| dotconfig::read(&mut config, text, prefix));
    let saved = text.as_ref().map(|_| Saved::Said(Box::new(config.said())));
    let form = Form::DotConfig { prefix: prefix.to_owned() };
    let mut model = Model::new(Arc::clone(schema), config, path.display().to_string(), form, saved);
    model.known = text.as_ref().map(|_| {
        let symbols = schema.tree().symbols().map(|(symbol, _)| symbol);
        symbols.filter(|symbol| model.config.user_value(*symbol).is_some()).collect()
    });
    let remarks = found
        .iter()
        .flat_map(dotconfig::Findings::iter)
        .map(|(line, finding)| format!("{}:{line}: {finding}", path.display()));
    update::greet(&mut model, remarks.collect());
    let form = files::DotConfig { schema: Arc::clone(schema), prefix: prefix.to_owned(), original: text };
    converse(&mut model, &mut files::Session { form, path: path.to_owned() })
}

/// Whether the file means to name every setting: in one that says only what is special, nothing is new because it is missing.
fn is_whole(settings: &Settings, answered: usize) -> bool {
    let written = settings.list().iter().filter(|setting| setting.written).count();
    answered * 2 > written
}

fn answered(settings: &Settings) -> BTreeSet<kconfig::SymbolId> {
    let symbols = settings.schema().tree().symbols();
    symbols.filter(|(_, symbol)| settings.is_answered(&symbol.name)).map(|(id, _)| id).collect()
}

fn converse(model: &mut Model, files: &mut dyn Files) -> Result<End> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    model.colour = variable("NO_COLOR").is_none();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default();
    model.ascii = is_ascii(&locale, &variable("TERM").unwrap_or_default());
    if let Some(lines) = files.draft(model) {
        model.dialogs.push(Dialog::Recover { lines, scroll: 0 });
    }
    let written = terminal::run(model, files)?;
    Ok(match (model.is_unsaved(), written) {
        (true, _) => End::Discarded,
        (false, true) => End::Saved,
        (false, false) => End::Unchanged,
    })
}

/// Whether lines and arrows would come out as rubbish: a terminal that says it is no more than ASCII, or a locale that is not UTF-8.
fn is_ascii(locale: &str, terminal: &str) -> bool {
    let utf8 = locale.to_lowercase().replace('-', "").contains("utf8");
    let plain = ["C", "POSIX"].contains(&locale);
    matches!(terminal, "vt100" | "vt102" | "vt220" | "ansi")
        || !locale.is_empty() && !utf8 && (plain || locale.contains('.'))
}

/// What a person must know about the file before they change it.
fn greeting(path: &Path, settings: &Settings) -> Vec<String> {
    let errors = settings.check().into_iter().filter(|problem| problem.level == Level::Error);
    let mut lines: Vec<String> = errors.map(|problem| problem.line(path)).collect();
    if !lines.is_empty() {
        lines.push(String::new());
        lines.push(
            "Defaults stand in for values that cannot be used; saving writes those and drops unknown keys.".to_owned(),
        );
    }
    lines
}
