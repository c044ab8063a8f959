//! Going to an entry wherever it is, and back to where one was.

use kconfig::{NodeId, SymbolId};

use super::guide::{Guide, Question};
use super::model::{MenuPosition, Model, Stop};
use super::questions::questions;
use super::rows;

/// Goes to a symbol's entry: the first that is shown.
pub(super) fn to_symbol(model: &mut Model, symbol: SymbolId) {
    let nodes = model.schema.tree().get(symbol).nodes.to_vec();
    let shown = nodes.iter().find(|node| model.config.node_visible(**node)).or_else(|| nodes.first());
    if let Some(node) = shown {
        to_node(model, *node);
    }
}

/// Goes to an entry; what is hidden is shown for that.
pub(super) fn to_node(model: &mut Model, node: NodeId) {
    let from = Stop { places: model.places.clone(), node: model.row().map(|row| row.node), show_all: model.show_all };
    let mut found = find(model, node);
    if found.is_none() && !model.show_all {
        model.show_all = true;
        found = find(model, node);
        model.show_all = found.is_some();
    }
    let Some(places) = found else { return model.complain("this entry is in no menu") };
    model.trail.push(from);
    model.places = places;
    let hidden = model.rows_hidden();
    model.say(if hidden { "cannot be set now; e tells what would unlock it; o goes back" } else { "o goes back" });
}

/// To the question about a setting, or, where the guide does not ask it, to its entry in the menus.
pub(super) fn to_question(model: &mut Model, symbol: SymbolId) {
    let is_asked = |question: &Question| match question {
        Question::Node(node) => model.schema.tree().node(*node).symbol == Some(symbol),
        Question::Profile => false,
    };
    let question = questions(model).into_iter().find(is_asked).filter(|_| model.guide.is_some());
    if question.is_some() {
        model.guide = Some(Guide::at(model, question));
    } else {
        model.guide = None;
        to_symbol(model, symbol);
    }
}

/// Goes back to where the last jump began.
pub(super) fn back(model: &mut Model) {
    match model.trail.pop() {
        Some(stop) => {
            (model.places, model.show_all) = (stop.places, stop.show_all);
            model.stay_at(stop.node);
        }
        None => model.say("you have not jumped"),
    }
}

/// The open menus and lines that lead to an entry, as things are shown now.
fn find(model: &Model, node: NodeId) -> Option<Vec<MenuPosition>> {
    let tree = model.schema.tree();
    let mut way: Vec<NodeId> = std::iter::successors(Some(node), |at| tree.node(*at).parent).collect();
    way.reverse();
    let mut places = Vec::new();
    let mut menu = tree.root();
    let mut last = None;
    for step in way.into_iter().skip(1) {
        let rows = rows::rows(model, menu);
        let Some(cursor) = rows.iter().position(|row| row.node == step) else { continue };
        last = Some(step);
        places.push(MenuPosition { menu, cursor });
        if rows[cursor].submenu && step != node {
            menu = step;
        } else if step != node {
            // Its entries stand in the same menu.
            places.pop();
        }
    }
    // A member of a choice is where its choice is.
    let choice = tree.node(node).parent.filter(|parent| tree.node(*parent).choice.is_some());
    if last != Some(node)
        && let Some(choice) = choice
    {
        return find(model, choice);
    }
    (last == Some(node)).then_some(places)
}
