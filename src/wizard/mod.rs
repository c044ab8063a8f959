//! The wizard: every question of the Kconfig tree on one screen.
//!
//! An Elm core: `model` is the state, `msg` what can happen, `update` how the state changes, `view`
//! the screen as a pure function of the state, `keymap` the one table of keys that also makes the
//! help. None of these know a terminal, a file or a clock; `terminal` is the loop that does,
//! `escape`, `burst` and `palette` what terminals need; `files` carries out what it is asked,
//! `checker` runs the check that all commands share. The wizard can do nothing that `turnup config`
//! cannot do without it.

mod accessible;
mod burst;
mod checker;
mod dialog;
mod end;
mod escape;
mod field_note;
mod files;
mod guide;
mod history;
mod input;
mod items;
mod jump;
mod keymap;
mod line_edit;
mod model;
mod msg;
mod palette;
mod picture;
mod preset;
mod preview;
mod questions;
mod recording;
mod repair;
mod row;
mod rows;
mod search;
mod start_from;
mod terminal;
mod update;
mod verdict;
mod view;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use kconfig::dotconfig;
use ratatui::layout::Rect;

use self::accessible::Conversation;
use self::dialog::Dialog;
use self::end::End;
use self::files::Files;
use self::model::{Form, Model, Saved};
use self::preset::Preset;
pub(crate) use self::questions::GuideScope;
pub(crate) use self::recording::Moment;
use self::recording::Recorder;
pub(crate) use self::verdict::ConfigurationCheck;
use crate::config::{ProblemLevel, Profile, Schema, Settings, TreeSource};
use crate::error::Result;

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartMode {
    /// With the menus; without a file, with the question how.
    Menus,
    /// With the questions of the guide.
    Guide,
    /// With the same questions as plain lines, for screen readers and pipes.
    Lines,
}

/// A session that can begin: the answers of a file, and the file.
pub(crate) struct Wizard {
    model: Model,
    files: Box<dyn Files>,
}

impl Wizard {
    /// Over our configuration; `settings` is the file, if there is one, `applied` what runs.
    pub(crate) fn over_settings(
        path: &Path,
        source: &TreeSource,
        settings: Option<Settings>,
        applied: Option<&Settings>,
        (begin, scope): (StartMode, GuideScope),
        check: ConfigurationCheck,
    ) -> Result<Self> {
        let schema = match &settings {
            Some(settings) => Arc::clone(settings.schema()),
            None => Schema::load(source)?,
        };
        let saved = settings.as_ref().map(|settings| Saved::Object(settings.json().clone()));
        let is_new = settings.is_none();
        let settings = settings.unwrap_or_else(|| Settings::from_defaults(Arc::clone(&schema)));
        let name = path.display().to_string();
        let mut model = Model::new(Arc::clone(&schema), settings.config(), name, Form::Object, saved);
        model.refresh();
        model.is_stale = !is_new && settings.differs_from_file();
        model.has_check = true;
        model.known = (!is_new).then(|| answered(&settings)).filter(|known| is_whole(&settings, known.len()));
        model.applied = applied.map(values);
        model.asks_all_but = scope.asks_all_but(&model);
        model.profiles = Preset::all(Profile::list(source)?, &schema);
        match begin {
            StartMode::Guide => update::start_guide(&mut model),
            StartMode::Menus if is_new => update::ask_how(&mut model),
            StartMode::Menus => tell_new(&mut model),
            StartMode::Lines => {}
        }
        // On top of everything: it must not be overlooked.
        update::greet(&mut model, greeting(path, &settings));
        let base = model.config.said();
        let form = files::ObjectFile { settings, schema, source: source.clone(), check };
        Ok(Self { model, files: Box::new(files::Session::new(form, path, base)) })
    }

    /// Whether there is a question that the file does not answer.
    #[must_use]
    pub(crate) fn has_new(&self) -> bool {
        self.model.new_settings().next().is_some()
    }

    /// Over any Kconfig tree and its `.config`; `text` is what the file has, if there is one.
    #[must_use]
    pub(crate) fn over_tree(path: &Path, schema: &Arc<Schema>, prefix: &str, text: Option<String>) -> Self {
        let mut config = schema.config();
        let found = text.as_ref().map(|text| dotconfig::read(&mut config, text, prefix));
        let saved = text.as_ref().map(|_| Saved::Said(Box::new(config.said())));
        let form = Form::DotConfig { prefix: prefix.to_owned() };
        let mut model = Model::new(Arc::clone(schema), config, path.display().to_string(), form, saved);
        model.refresh();
        model.is_stale = text.as_ref().is_some_and(|text| *text != dotconfig::write(&model.config, prefix));
        model.known = text.as_ref().map(|_| {
            let symbols = schema.tree().symbols().map(|(symbol, _)| symbol);
            symbols.filter(|symbol| model.config.user_value(*symbol).is_some()).collect()
        });
        let found = found.iter().flat_map(dotconfig::Findings::iter);
        let remarks = found.map(|(line, finding)| format!("{}:{line}: {finding}", path.display()));
        update::greet(&mut model, remarks.collect());
        let form = files::DotConfig { schema: Arc::clone(schema), prefix: prefix.to_owned(), original: text };
        let base = model.config.said();
        Self { model, files: Box::new(files::Session::new(form, path, base)) }
    }

    /// Runs on this process's terminal; the user's input is written into `record`.
    pub(crate) fn run(mut self, record: Option<&Path>) -> Result<End> {
        self.look_around();
        if self.files.has_others() {
            self.model.complain(files::OTHERS);
        }
        if let Some(lines) = self.files.draft(&self.model) {
            self.model.dialogs.push(Dialog::Recover { lines, scroll: 0, refused: false });
        }
        let written = terminal::run(&mut self.model, &mut *self.files, &mut Recorder::open(record)?)?;
        Ok(match (self.model.is_unsaved(), written) {
            (true, _) => End::Discarded,
            (false, true) => End::Saved,
            (false, false) => End::Unchanged,
        })
    }

    /// Asks line by line on standard input and output.
    pub(crate) fn run_in_lines(mut self) -> Result<End> {
        let (interactive, mut output) = (std::io::stdin().is_terminal(), std::io::stdout());
        let mut input = std::io::stdin().lock();
        let is_shown = std::io::stdout().is_terminal();
        let width = crossterm::terminal::size().ok().filter(|_| is_shown).map(|(width, _)| width);
        let conversation = Conversation { input: &mut input, output: &mut output, interactive, width };
        conversation.run(&mut self.model, &mut *self.files)
    }

    /// Plays a recorded session again on a screen of this width and height. Needs no terminal and
    /// writes nothing.
    pub(crate) fn play(mut self, recording: &str, size: (u16, u16)) -> Result<Vec<Moment>> {
        recording::play(&mut self.model, &mut *self.files, recording, Rect::new(0, 0, size.0, size.1))
    }

    /// What the terminal can show.
    fn look_around(&mut self) {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let terminal = variable("TERM").unwrap_or_default();
        self.model.colour = variable("NO_COLOR").is_none() && !MONOCHROME.contains(&terminal.as_str());
        self.model.ascii = crate::terminal::is_ascii_only();
    }
}

/// Terminals without colours, by `TERM`.
const MONOCHROME: [&str; 3] = ["vt100", "vt102", "vt220"];

/// The values that count, by their settings' names.
fn values(settings: &Settings) -> BTreeMap<String, String> {
    let written = settings.list().iter().filter(|setting| setting.written);
    written.map(|setting| (setting.name.clone(), setting.value.clone())).collect()
}

/// Whether the file means to name every setting: in one that says only what is special, nothing is
/// new because it is missing.
fn is_whole(settings: &Settings, answered: usize) -> bool {
    let written = settings.list().iter().filter(|setting| setting.written).count();
    answered * 2 > written
}

fn answered(settings: &Settings) -> BTreeSet<kconfig::SymbolId> {
    let symbols = settings.schema().tree().symbols();
    symbols.filter(|(_, symbol)| settings.is_answered(&symbol.name)).map(|(id, _)| id).collect()
}

/// A tree that has got settings since the file was written is no reason to ask all again.
fn tell_new(model: &mut Model) {
    let count = model.new_settings().count();
    if count > 0 {
        let settings = if count == 1 { "1 setting is".to_owned() } else { format!("{count} settings are") };
        model.say(format!("{settings} new since the file was written; only these: turnup config --new"));
    }
}

/// What the user must know about the file before changing it.
fn greeting(path: &Path, settings: &Settings) -> Vec<String> {
    let errors = settings.check().into_iter().filter(|problem| problem.level == ProblemLevel::Error);
    let mut lines: Vec<String> = errors.map(|problem| problem.line(path)).collect();
    if !lines.is_empty() {
        lines.push(String::new());
        lines.push(
            "Defaults stand in for values that cannot be used; saving writes those and drops unknown keys.".to_owned(),
        );
    }
    lines
}
