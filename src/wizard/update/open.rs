//! What is opened over the menus: a text, the question how to begin, the guide.

use crate::wizard::dialog::{Dialog, Pick, PickOption, PickPurpose};
use crate::wizard::guide::Guide;
use crate::wizard::model::Model;

pub(super) fn open_text(model: &mut Model, title: &str, lines: Vec<String>) {
    model.leaving = false;
    model.dialogs.push(Dialog::Text { title: title.to_owned(), lines, scroll: 0 });
}

/// What the wizard says first about a file that is not wholly right; saving leaves out what it
/// could not take.
pub(in crate::wizard) fn greet(model: &mut Model, lines: Vec<String>) {
    if !lines.is_empty() {
        open_text(model, "Look at this first", lines);
    }
}

/// Without a file: which way to one.
pub(in crate::wizard) fn ask_how(model: &mut Model) {
    let option =
        |label: &str, value: &str| PickOption { label: label.to_owned(), value: value.to_owned(), current: false };
    let mut options = vec![option("Guide me: the few questions that a first cluster needs", "guide")];
    if !model.profiles.is_empty() {
        options.push(option("Start from a profile or another file", "profile"));
    }
    options.push(option("Show me all settings", "menus"));
    let title = format!("{} does not exist yet", model.file);
    model.dialogs.push(Dialog::Pick(Pick::new(title, options, PickPurpose::Start)));
}

/// Asks the questions one after the other.
pub(in crate::wizard) fn start_guide(model: &mut Model) {
    model.dialogs.clear();
    model.guide = Some(Guide::start(model));
}
