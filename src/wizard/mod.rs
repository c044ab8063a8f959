//! The wizard: every question of the Kconfig tree on one screen.
//!
//! An Elm core: `model` is the state, `msg` what can happen, `update` how the state changes, `view` the screen as a pure function of the
//! state, `keymap` the one table of keys that also makes the help. None of these know a terminal, a file or a clock; `terminal` is the
//! loop that does, and the only thing that carries out effects. The wizard can do nothing that `turnup config set` cannot.

mod keymap;
mod line_edit;
mod model;
mod msg;
mod rows;
mod terminal;
mod update;
mod view;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use self::model::Model;
use crate::config::{Level, Schema, Settings};
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

/// Runs the wizard on this process's terminal; `settings` is the file, if there is one.
pub fn run(path: &Path, schema: &Arc<Schema>, settings: Option<Settings>) -> Result<End> {
    let saved = settings.as_ref().map(|settings| settings.json().clone());
    let mut settings = settings.unwrap_or_else(|| Settings::from_defaults(Arc::clone(schema)));
    let mut model = Model::new(Arc::clone(schema), settings.config(), path.display().to_string(), saved);
    model.colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    model.is_stale = model.saved.is_some() && settings.differs_from_file();
    update::greet(&mut model, greeting(path, &settings));
    let written = terminal::run(&mut model, &mut settings, path)?;
    Ok(match (model.is_unsaved(), written) {
        (true, _) => End::Discarded,
        (false, true) => End::Saved,
        (false, false) => End::Unchanged,
    })
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
