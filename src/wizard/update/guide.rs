//! Messages to the guide.

use kconfig::{NodeId, SymbolId};

use super::dialog::{counted, move_within, type_into};
use super::{menu, scroll};
use crate::config;
use crate::wizard::dialog::Dialog;
use crate::wizard::guide::{Answer, Guide, questions};
use crate::wizard::jump;
use crate::wizard::line_edit::LineEdit;
use crate::wizard::model::Model;
use crate::wizard::msg::{Effect, Msg};

pub(super) fn update(model: &mut Model, msg: &Msg) -> Option<Effect> {
    let node = model.guide.as_ref().and_then(|guide| guide.node);
    match msg {
        Msg::Accept => accept(model),
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
            if let Some(guide) = &mut model.guide {
                update_answer(guide, msg);
            }
        }
    }
    None
}

fn update_answer(guide: &mut Guide, msg: &Msg) {
    match &mut guide.answer {
        Answer::Options { options, cursor } if matches!(msg, Msg::Move(-1 | 1) | Msg::Select(_)) => {
            move_within(cursor, options.len(), msg);
        }
        Answer::Text(line) if !matches!(msg, Msg::Move(_)) => {
            type_into(line, msg);
        }
        _ => scroll(&mut guide.scroll, msg),
    }
}

/// What was typed counts also for who leaves the question another way; what would be refused is let
/// go.
pub(super) fn take_typed(model: &mut Model) {
    let Some(Guide { node: Some(node), answer: answer @ Answer::Text(_), .. }) = model.guide.clone() else { return };
    answer_question(model, node, &answer);
    model.notice = None;
}

/// Takes the answer, if it can be taken, and goes on.
fn accept(model: &mut Model) {
    let Some(Guide { node: Some(node), answer, .. }) = model.guide.clone() else { return };
    let before = model.revision;
    if !answer_question(model, node, &answer) {
        return;
    }
    let symbol = model.schema.tree().node(node).symbol;
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
        Answer::Nothing => return true,
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
        Some(node) => model.guide = Some(Guide::at(model, Some(node))),
        None => model.say("this is the first question; F4 shows all settings"),
    }
}

/// To the question about a setting, or, where the guide does not ask it, to its entry in the menus.
pub(super) fn go_to(model: &mut Model, symbol: SymbolId) {
    let is_asked = |node: &NodeId| model.schema.tree().node(*node).symbol == Some(symbol);
    let question = questions(model).into_iter().find(is_asked).filter(|_| model.guide.is_some());
    if question.is_some() {
        model.guide = Some(Guide::at(model, question));
    } else {
        model.guide = None;
        jump::to_symbol(model, symbol);
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
    let Some(Guide { node: Some(node), answer: Answer::Text(line), .. }) = &mut model.guide else { return };
    let Some(symbol) = model.schema.tree().node(*node).symbol else { return };
    if let Some(text) = counted(&model.schema, &model.config, symbol, line.text(), by) {
        *line = LineEdit::new(&text);
    }
}
