//! How the model changes: the only place where answers are given. Pure, but for what it asks the
//! loop to do.

mod dialog;
mod files;
mod guide;
mod menu;
mod open;
mod scroll;

use super::dialog::{Dialog, FilePreview, Tab};
use super::guide::Guide;
use super::model::Model;
use super::msg::{Effect, Msg};
use super::preview::unsaved_lines;
use crate::input::unify_line_ends;

use open::open_text;
pub(super) use open::{ask_how, greet, start_guide};
pub(super) use scroll::settle;

/// Takes one message.
pub(super) fn update(model: &mut Model, msg: Msg) -> Option<Effect> {
    // What was said last stays while a path is completed beneath it.
    if !matches!(msg, Msg::Completed(_)) {
        model.notice = None;
    }
    let effect = take(model, msg);
    guide::refresh(model);
    model.refresh();
    // The summary says what the check says.
    let waits = model.guide.as_ref().is_some_and(Guide::is_at_end) && !model.is_checked();
    effect.or_else(|| waits.then_some(Effect::Check { then: None }))
}

fn take(model: &mut Model, msg: Msg) -> Option<Effect> {
    match msg {
        Msg::Paste(text) => {
            let text = unify_line_ends(&text);
            if model.dialogs.is_empty() && guide::paste(model, &text) {
                return None;
            }
            let typed = dialog::paste(model, &text)?;
            return take(model, typed);
        }
        Msg::Save => return files::save(model),
        Msg::SaveAnyway => return files::save_anyway(model),
        Msg::SaveAndLeave => {
            model.dialogs.clear();
            model.leaving = true;
            return files::save(model);
        }
        Msg::Quit => return quit(model),
        Msg::Discard => return Some(Effect::Leave),
        Msg::Interrupt => return Some(if model.is_unsaved() { Effect::Interrupt } else { Effect::Leave }),
        Msg::Suspend => return Some(Effect::Suspend),
        Msg::Saved => return files::saved(model),
        Msg::Written(path) => model.say(format!("wrote {path}")),
        Msg::Loaded(from, said, remarks) => files::loaded(model, &from, &said, remarks),
        Msg::NotSaved(lines) => open_text(model, "That did not work", lines),
        Msg::Conflict { lines, meets } => model.dialogs.push(Dialog::Conflict { lines, meets, scroll: 0 }),
        Msg::Reread(merge) => {
            model.leaving = false;
            return Some(Effect::Reread(merge));
        }
        Msg::Taken { disk, answers, merge, remarks } => files::taken(model, &disk, &answers, merge, remarks),
        Msg::Redraw => return Some(Effect::Redraw),
        Msg::Refuse => return refuse(model),
        Msg::Keys => model.dialogs.push(Dialog::Keys { scroll: 0 }),
        Msg::Cancel => {
            dialog::cancel(model);
            model.leaving = false;
        }
        Msg::Checked { problems, then } => {
            model.take_verdict(problems);
            return then.and_then(|then| take(model, *then));
        }
        other if !model.dialogs.is_empty() => return dialog::update(model, &other),
        Msg::Problems if !model.is_checked() => {
            return Some(Effect::Check { then: Some(Box::new(Msg::Problems)) });
        }
        Msg::Problems if model.problems.is_empty() => model.say("nothing is wrong"),
        Msg::Problems => model.dialogs.push(Dialog::Problems { cursor: 0 }),
        Msg::Preview => {
            let preview = FilePreview::of(model, Tab::File);
            model.dialogs.push(Dialog::Preview(preview));
        }
        other if model.guide.is_some() => return guide::update(model, &other),
        other => menu::update(model, &other),
    }
    None
}

/// Throws answers away when that is said twice: once may have been typed ahead.
fn refuse(model: &mut Model) -> Option<Effect> {
    match model.dialogs.last_mut() {
        Some(Dialog::Recover { refused, .. }) if !*refused => {
            *refused = true;
            model.complain("n once more throws these answers away");
            None
        }
        _ => {
            model.dialogs.pop();
            Some(Effect::Forget)
        }
    }
}

fn quit(model: &mut Model) -> Option<Effect> {
    if model.dialogs.is_empty() {
        guide::take_typed(model);
    }
    if model.is_unsaved() && !matches!(model.dialogs.last(), Some(Dialog::Recover { .. })) {
        model.dialogs.push(Dialog::Quit { lines: unsaved_lines(model), scroll: 0 });
        return None;
    }
    Some(Effect::Leave)
}
