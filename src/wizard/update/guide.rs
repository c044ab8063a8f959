//! Messages to the guide.

use kconfig::NodeId;

use super::dialog::{counted, move_within, type_into};
use super::scroll::scroll;
use super::{dialog, menu};
use crate::config;
use crate::wizard::dialog::Dialog;
use crate::wizard::guide::{Answer, Guide, Question};
use crate::wizard::jump::{self, to_question};
use crate::wizard::line_edit::LineEdit;
use crate::wizard::model::Model;
use crate::wizard::msg::{Effect, Msg};
use crate::wizard::start_from;

pub(super) fn update(model: &mut Model, msg: &Msg) -> Option<Effect> {
    let node = model.guide.as_ref().and_then(Guide::node);
    match msg {
        Msg::Accept if is_at_end(model) => go_to_problem(model),
        Msg::Accept => accept(model),
        Msg::Add | Msg::Open => edit_rows(model, msg),
        Msg::Back => {
            take_typed(model);
            back(model);
        }
        Msg::Menus => {
            take_typed(model);
            leave(model, node);
        }
        Msg::Details => model.dialogs.extend(node.map(|node| Dialog::Details { node, scroll: 0 })),
        Msg::Count(by) => count(model, *by),
        _ => {
            let wrong = model.errors().count();
            if let Some(guide) = &mut model.guide {
                update_answer(guide, wrong, msg);
            }
        }
    }
    None
}

fn is_at_end(model: &Model) -> bool {
    model.guide.as_ref().is_some_and(Guide::is_at_end)
}

/// From the summary to the question about what is wrong there under the cursor.
fn go_to_problem(model: &mut Model) {
    let cursor = model.guide.as_ref().map_or(0, |guide| guide.cursor);
    let name = model.errors().nth(cursor).and_then(|problem| problem.symbol.clone());
    match name.and_then(|name| model.schema.tree().symbol(&name)) {
        Some(symbol) => to_question(model, symbol),
        None => model.say("this is about no single setting; F4 shows all"),
    }
}

/// The rows of the question in the dialog that edits them.
fn edit_rows(model: &mut Model, msg: &Msg) {
    let Some(Guide { answer: Answer::Rows(items), .. }) = &model.guide else { return };
    model.dialogs.push(Dialog::Items(items.clone()));
    if *msg == Msg::Add {
        dialog::update(model, msg);
    }
}

/// Lines that are pasted into a question with rows.
pub(super) fn paste(model: &mut Model, text: &str) -> bool {
    let Some(Guide { answer: Answer::Rows(items), .. }) = &model.guide else { return false };
    let items = items.clone();
    dialog::paste_records(model, items, text);
    true
}

/// The rows of the question follow the answer, wherever it was given.
pub(super) fn refresh(model: &mut Model) {
    let Some(Guide { question, answer: Answer::Rows(items), revision, .. }) = &model.guide else { return };
    if *revision == model.revision {
        return;
    }
    let (question, cursor) = (*question, items.cursor);
    let mut guide = Guide::at(model, question);
    if let Answer::Rows(items) = &mut guide.answer {
        items.cursor = cursor.min(items.rows.len().saturating_sub(1));
    }
    model.guide = Some(guide);
}

fn update_answer(guide: &mut Guide, wrong: usize, msg: &Msg) {
    match &mut guide.answer {
        Answer::Options { options, cursor } if matches!(msg, Msg::Move(-1 | 1) | Msg::Select(_)) => {
            move_within(cursor, options.len(), msg);
        }
        Answer::Rows(items) if matches!(msg, Msg::Move(-1 | 1) | Msg::Select(_)) => {
            move_within(&mut items.cursor, items.rows.len(), msg);
        }
        Answer::Nothing if wrong > 0 && matches!(msg, Msg::Move(-1 | 1)) => {
            move_within(&mut guide.cursor, wrong, msg);
        }
        Answer::Text(line) if !matches!(msg, Msg::Move(_)) => {
            type_into(line, msg);
        }
        _ => {
            // What is wrong stands at the top, and the line under the cursor stays in sight.
            if *msg == Msg::First {
                guide.cursor = 0;
            }
            scroll(&mut guide.scroll, msg);
        }
    }
}

/// What was typed counts also for who leaves the question another way; what would be refused is let
/// go.
pub(super) fn take_typed(model: &mut Model) {
    let Some(Guide { question: Some(Question::Node(node)), answer: answer @ Answer::Text(_), .. }) =
        model.guide.clone()
    else {
        return;
    };
    answer_question(model, node, &answer);
    model.notice = None;
}

/// Takes the answer, if it can be taken, and goes on.
fn accept(model: &mut Model) {
    let Some(Guide { question: Some(question), answer, .. }) = model.guide.clone() else { return };
    let before = model.revision;
    let taken = match question {
        Question::Node(node) => answer_question(model, node, &answer),
        Question::Profile => choose_profile(model, &answer),
    };
    if !taken {
        return;
    }
    let symbol = match question {
        Question::Node(node) => model.schema.tree().node(node).symbol,
        Question::Profile => None,
    };
    let problem = symbol.and_then(|symbol| model.problem(symbol)).map(|problem| problem.message.clone());
    if let Some(why) = problem.filter(|_| model.revision != before) {
        // Another setting may be what has to change: it is taken when it is given again.
        return model.complain(why);
    }
    let notice = model.notice.take();
    let next = model.guide.as_ref().and_then(|guide| guide.next(model));
    model.guide = Some(Guide::at(model, next));
    model.notice = notice;
}

fn choose_profile(model: &mut Model, answer: &Answer) -> bool {
    let Answer::Options { options, cursor } = answer else { return false };
    if let Some(option) = options.get(*cursor) {
        start_from::choose(model, &option.value);
    }
    true
}

fn answer_question(model: &mut Model, node: NodeId, answer: &Answer) -> bool {
    let tree = model.schema.tree();
    let (symbol, value) = match answer {
        Answer::Options { options, cursor } => {
            let Some(option) = options.get(*cursor) else { return true };
            match tree.node(node).symbol {
                Some(symbol) => (symbol, option.value.clone()),
                // Of a choice one picks a member.
                None => match tree.symbol(&option.value) {
                    Some(member) => (member, "y".to_owned()),
                    None => return true,
                },
            }
        }
        Answer::Text(line) => {
            let Some(symbol) = tree.node(node).symbol else {
                let text = line.text().to_owned();
                model.complain(format!("`{text}` is none of the possible answers"));
                return false;
            };
            (symbol, line.text().to_owned())
        }
        Answer::Rows(_) | Answer::Nothing => return true,
    };
    if model.config.value(symbol) == value {
        return true;
    }
    if let Some(why) = config::judge(&model.schema, &model.config, symbol, &value) {
        let why = if model.schema.rule(symbol).secret { "its format is not right yet".to_owned() } else { why };
        model.complain(why);
        return false;
    }
    menu::give(model, &[(symbol, value)])
}

fn back(model: &mut Model) {
    let previous = model.guide.as_ref().and_then(|guide| guide.previous(model));
    match previous {
        Some(question) => model.guide = Some(Guide::at(model, Some(question))),
        None => model.say("this is the first question; F4 shows all settings"),
    }
}

/// On to the menus, at the same entry.
fn leave(model: &mut Model, node: Option<NodeId>) {
    model.guide = None;
    if let Some(node) = node {
        jump::to_node(model, node);
        model.trail.clear();
    }
    model.say("these are all settings; w goes back to the guide");
}

fn count(model: &mut Model, by: i64) {
    let Some(Guide { question: Some(Question::Node(node)), answer: Answer::Text(line), .. }) = &mut model.guide else {
        return;
    };
    let Some(symbol) = model.schema.tree().node(*node).symbol else { return };
    if let Some(text) = counted(&model.schema, &model.config, symbol, line.text(), by) {
        *line = LineEdit::new(&text);
    }
}
