//! Messages about files: saving, loading, naming them.

use kconfig::history::Said;

use super::open::open_text;
use crate::wizard::dialog::{Dialog, FilePurpose, Pick, PickOption, PickPurpose};
use crate::wizard::guide::Guide;
use crate::wizard::line_edit::LineEdit;
use crate::wizard::model::Model;
use crate::wizard::msg::{Effect, Merge, Msg};
use crate::wizard::preset::Preset;
use crate::wizard::preview::unsaved_lines;

pub(super) fn save(model: &mut Model) -> Option<Effect> {
    if !model.is_unsaved() && !model.is_stale {
        model.say("nothing to save: the file has these answers already");
        return model.leaving.then_some(Effect::Leave);
    }
    if !model.is_checked() {
        return Some(Effect::Check { then: Some(Box::new(Msg::Save)) });
    }
    let lines: Vec<String> = model.errors().map(|problem| problem.message.clone()).collect();
    if lines.is_empty() {
        return Some(Effect::Save { overwrite: false });
    }
    model.dialogs.push(Dialog::Save { lines, scroll: 0 });
    None
}

pub(super) fn save_anyway(model: &mut Model) -> Option<Effect> {
    match model.dialogs.pop() {
        Some(Dialog::Save { .. }) => Some(Effect::Save { overwrite: false }),
        Some(Dialog::Conflict { .. }) => Some(Effect::Save { overwrite: true }),
        _ => None,
    }
}

pub(super) fn saved(model: &mut Model) -> Option<Effect> {
    let changes = unsaved_lines(model);
    model.saved = Some(model.to_save());
    model.is_stale = false;
    // The file names everything now.
    let written =
        model.schema.tree().symbols().map(|(symbol, _)| symbol).filter(|symbol| model.config.is_written(*symbol));
    model.known = Some(written.collect());
    model.answered();
    let told: Vec<&str> = changes.iter().map(|line| line.trim_start_matches(['~', '+', '-', ' '])).collect();
    model.say(match told.as_slice() {
        [] => format!("saved {}", model.file),
        [one] => format!("saved {}: {one}", model.file),
        [first, others @ ..] => format!("saved {}: {first}; {} more", model.file, others.len()),
    });
    model.leaving.then_some(Effect::Leave)
}

/// The file was read again: from now on the answers are these, as one change that can be undone.
pub(super) fn taken(model: &mut Model, disk: &Said, answers: &Said, merge: Merge, remarks: Vec<String>) {
    model.dialogs.pop();
    let mine = model.config.said();
    model.config.say(disk);
    model.saved = Some(model.to_save());
    model.config.say(&mine);
    let file = model.file.clone();
    take_over(model, &format!("the answers of {file}"), answers);
    model.say(match merge {
        Merge::Nothing => format!("{file} was read again; u brings your answers back"),
        Merge::Mine => format!("{file} was read again, and your changes were made to it; s saves"),
        Merge::Theirs => format!("{file} was read again, and your other changes were made to it; s saves"),
    });
    if !remarks.is_empty() {
        open_text(model, "Not all of it could be taken over", remarks);
    }
}

fn take_over(model: &mut Model, what: &str, said: &Said) {
    let taken = model.change(what.to_owned(), |config| {
        config.say(said);
        Ok(())
    });
    debug_assert!(taken.is_ok(), "answers that were said once can be said again");
    if model.guide.is_some() {
        model.guide = Some(Guide::start(model));
    }
    let node = model.row().map(|row| row.node);
    model.stay_at(node);
}

/// Asks for a file.
pub(super) fn ask(model: &mut Model, msg: &Msg) {
    let purpose = match msg {
        Msg::Load if !model.profiles.is_empty() => return ask_profile(model),
        Msg::Load => FilePurpose::Load,
        Msg::SaveMinimal => FilePurpose::SaveMinimal,
        _ => FilePurpose::SaveAs,
    };
    open_path(model, purpose);
}

fn open_path(model: &mut Model, purpose: FilePurpose) {
    model.dialogs.push(Dialog::Path { purpose, line: LineEdit::new(""), completions: Vec::new() });
}

fn ask_profile(model: &mut Model) {
    let profile = |preset: &Preset| PickOption {
        label: format!("{}: {}", preset.name, preset.purpose),
        value: preset.name.clone(),
        current: false,
    };
    let mut options: Vec<PickOption> = model.profiles.iter().map(profile).collect();
    options.push(PickOption { label: "another file ...".to_owned(), value: String::new(), current: false });
    model.dialogs.push(Dialog::Pick(Pick::new("Take over the answers of", options, PickPurpose::Load)));
}

/// Loads a profile, or asks for a file where its name is empty.
pub(super) fn load(model: &mut Model, profile: &str) -> Option<Effect> {
    if profile.is_empty() {
        open_path(model, FilePurpose::Load);
        return None;
    }
    Some(Effect::LoadProfile(profile.to_owned()))
}

pub(super) fn accept_path(model: &mut Model) -> Option<Effect> {
    let Some(Dialog::Path { purpose, line, .. }) = model.dialogs.last() else { return None };
    let path = line.text().trim().to_owned();
    if path.is_empty() {
        return None;
    }
    let effect = match purpose {
        FilePurpose::Load => Effect::Load(path),
        FilePurpose::SaveAs => Effect::Write { path, minimal: false },
        FilePurpose::SaveMinimal => Effect::Write { path, minimal: true },
    };
    model.dialogs.pop();
    Some(effect)
}

/// Takes over all answers, as one change that can be taken back.
pub(super) fn loaded(model: &mut Model, from: &str, said: &Said, remarks: Vec<String>) {
    take_over(model, &format!("the answers of {from}"), said);
    model.say(format!("took over the answers of {from}"));
    if !remarks.is_empty() {
        open_text(model, "Not all of it could be taken over", remarks);
    }
}

/// Takes the longest beginning that all found files have in common.
pub(super) fn completed(line: &mut LineEdit, completions: &mut Vec<String>, found: &[String]) {
    let Some(first) = found.first() else {
        completions.clear();
        return;
    };
    let common = found[1..].iter().fold(first.as_str(), |common, other| {
        let same = common.char_indices().zip(other.chars()).take_while(|((_, a), b)| a == b);
        let end = same.last().map_or(0, |((at, c), _)| at + c.len_utf8());
        &common[..end]
    });
    if common.len() > line.text().len() {
        *line = LineEdit::new(common);
    }
    *completions = if found.len() > 1 { found.to_vec() } else { Vec::new() };
}
