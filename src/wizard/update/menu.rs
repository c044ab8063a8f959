//! Messages to the menus.

use std::collections::BTreeSet;

use kconfig::{NodeId, SetError, SymbolId, Tri};

use super::files;
use super::open::start_guide;
use super::scroll::scroll;
use crate::config;
use crate::wizard::dialog::{Dialog, Pick, PickOption, PickPurpose, Repair};
use crate::wizard::field_note::notes;
use crate::wizard::items::Items;
use crate::wizard::jump;
use crate::wizard::line_edit::LineEdit;
use crate::wizard::model::{MenuPosition, Model};
use crate::wizard::msg::Msg;
use crate::wizard::repair::lock_reason;
use crate::wizard::row::{Row, RowKind};
use crate::wizard::rows;
use crate::wizard::search::Search;

pub(super) fn update(model: &mut Model, msg: &Msg) {
    match msg {
        Msg::Move(_) | Msg::First | Msg::Last | Msg::Select(_) => move_cursor(model, msg),
        Msg::Back => back(model),
        Msg::To(open) => model.places.truncate((*open).max(1)),
        Msg::Undo => undo(model),
        Msg::Redo => redo(model),
        Msg::Search => model.dialogs.push(Dialog::Search(Search::default())),
        Msg::Return => jump::back(model),
        Msg::ShowAll => show_all(model),
        Msg::ShowNames => model.show_names = !model.show_names,
        Msg::Guide => start_guide(model),
        Msg::Load | Msg::SaveAs | Msg::SaveMinimal => files::ask(model, msg),
        _ => {
            if let Some(row) = model.row() {
                update_row(model, &row, msg);
            }
        }
    }
}

fn update_row(model: &mut Model, row: &Row, msg: &Msg) {
    match msg {
        Msg::Open => open(model, row),
        Msg::Enter => enter(model, row),
        Msg::Toggle => toggle(model, row),
        Msg::Switch(tri) => switch(model, row, *tri),
        Msg::Reset => reset(model, row),
        Msg::Unlock => unlock(model, row),
        Msg::Details => model.dialogs.push(Dialog::Details { node: row.node, scroll: 0 }),
        _ => {}
    }
}

fn move_cursor(model: &mut Model, msg: &Msg) {
    if let Some(place) = model.places.last_mut() {
        scroll(&mut place.cursor, msg);
    }
}

fn back(model: &mut Model) {
    if model.places.len() > 1 {
        model.places.pop();
    } else {
        model.say("this is the top; q quits");
    }
}

fn open(model: &mut Model, row: &Row) {
    if row.submenu {
        return enter(model, row);
    }
    match row.kind {
        RowKind::Switch(..) => toggle(model, row),
        RowKind::Text(symbol) => edit(model, row, symbol),
        RowKind::Choice(choice) => {
            let options = rows::members(model, choice);
            model.dialogs.push(Dialog::Pick(Pick::new(&*row.prompt, options, PickPurpose::Choice(choice))));
        }
        RowKind::Menu | RowKind::Comment => {}
    }
}

fn enter(model: &mut Model, row: &Row) {
    if row.submenu {
        model.places.push(MenuPosition { menu: row.node, cursor: 0 });
    } else if !matches!(row.kind, RowKind::Switch(..)) {
        open(model, row);
    }
}

fn edit(model: &mut Model, row: &Row, symbol: SymbolId) {
    if !row.changeable {
        return explain(model, symbol);
    }
    let dialog = editor(model, symbol, model.config.value(symbol), &row.prompt);
    model.dialogs.push(dialog);
}

/// The editor that fits the format of a text.
pub(super) fn editor(model: &Model, symbol: SymbolId, current: &str, title: &str) -> Dialog {
    let schema = &model.schema;
    let format = schema.rule(symbol).format.as_ref();
    if let Some(words) = format.and_then(|format| format.words()) {
        let options = words.iter().map(|word| PickOption::word(word, current)).collect();
        return Dialog::Pick(Pick::new(title, options, PickPurpose::Symbol(symbol)));
    }
    match format.filter(|_| !schema.rule(symbol).secret).and_then(|format| Items::open(symbol, format, current)) {
        Some(items) => Dialog::Items(items.with_notes(notes(model, symbol))),
        None => Dialog::Edit { symbol, line: LineEdit::selected(current), completions: Vec::new() },
    }
}

/// Turns a bool over; a tristate goes through the values that it may have.
fn toggle(model: &mut Model, row: &Row) {
    let RowKind::Switch(symbol, now) = row.kind else { return };
    let possible = model.config.assignable(symbol);
    let position = possible.iter().position(|tri| *tri == now);
    // A default may be higher than what the user may set: then the first that is possible is next.
    let next = position.map_or(0, |at| (at + 1) % possible.len().max(1));
    match possible.get(next) {
        Some(next) if *next != now => set(model, row.node, symbol, next.as_str()),
        _ => explain(model, symbol),
    }
}

fn switch(model: &mut Model, row: &Row, tri: Tri) {
    match row.kind {
        RowKind::Switch(symbol, now) if now != tri => set(model, row.node, symbol, tri.as_str()),
        RowKind::Switch(..) => {}
        _ => model.say("this is no switch; Enter opens it"),
    }
}

/// Forgets the answer of an entry; of a menu all answers in it.
fn reset(model: &mut Model, row: &Row) {
    let symbols: Vec<SymbolId> = match row.kind {
        RowKind::Choice(choice) => model.schema.tree().choice(choice).members.to_vec(),
        RowKind::Menu => below(model, row.node),
        kind => kind.symbol().into_iter().collect(),
    };
    let answered: Vec<SymbolId> =
        symbols.into_iter().filter(|symbol| model.config.user_value(*symbol).is_some()).collect();
    if answered.is_empty() {
        return model.say("the default counts already");
    }
    let what = model.command_to_unset(&answered);
    let forget = |config: &mut kconfig::Config<'static>| -> Result<(), SetError> {
        for symbol in &answered {
            config.unset(*symbol);
        }
        Ok(())
    };
    if model.change(what.clone(), forget).is_ok() {
        model.stay_at(Some(row.node));
        model.say(format!("{}; u undoes it", model.describe(&what)));
    }
}

/// The rows as the answer; whether they could be taken.
pub(super) fn give_rows(model: &mut Model, items: &Items) -> bool {
    let text = items.text();
    match config::judge(&model.schema, &model.config, items.symbol, &text) {
        Some(why) => {
            model.complain(format!("nothing was added: {why}"));
            false
        }
        None => give(model, &[(items.symbol, text)]),
    }
}

/// The symbols of a menu and of all menus in it.
fn below(model: &Model, node: NodeId) -> Vec<SymbolId> {
    let tree = model.schema.tree();
    let (mut stack, mut symbols) = (vec![node], Vec::new());
    while let Some(id) = stack.pop() {
        stack.extend(tree.node(id).children.iter().rev());
        symbols.extend(tree.node(id).symbol);
    }
    symbols
}

/// Gives an answer as the user would; reports the command for it, or why it is refused.
pub(super) fn set(model: &mut Model, node: NodeId, symbol: SymbolId, value: &str) {
    give(model, &[(symbol, value.to_owned())]);
    model.stay_at(Some(node));
}

/// Gives several answers at once, all or none. Returns whether they were taken.
pub(super) fn give(model: &mut Model, answers: &[(SymbolId, String)]) -> bool {
    let what = model.command(answers.iter().map(|(symbol, value)| (*symbol, value.as_str())));
    let before = model.config.said();
    let given = model.change(what.clone(), |config| {
        let all = answers.iter().try_for_each(|(symbol, value)| config.set(*symbol, value));
        if all.is_err() {
            config.say(&before);
        }
        all
    });
    match &given {
        Ok(()) => model.say(model.describe(&what)),
        Err(SetError::NotVisible { why, .. }) => {
            model.complain(format!("e unlocks it; cannot be set now: {}", why.join("; ")));
        }
        Err(error) => model.complain(error.to_string()),
    }
    given.is_ok()
}

/// Why a value cannot be changed.
fn explain(model: &mut Model, symbol: SymbolId) {
    let why = lock_reason(model, symbol).unwrap_or_else(|| "it has only this value".to_owned());
    model.complain(format!("e unlocks it; {why}"));
}

fn unlock(model: &mut Model, row: &Row) {
    let symbol = match row.kind {
        // A choice can be made when one of its members can be chosen.
        RowKind::Choice(choice) => model.schema.tree().choice(choice).members.first().copied(),
        // A menu is shown when something in it is.
        RowKind::Menu if row.hidden => {
            let asked = |symbol: &SymbolId| model.schema.prompt(*symbol).is_some();
            below(model, row.node).into_iter().find(asked)
        }
        kind => kind.symbol(),
    };
    match symbol.and_then(|symbol| Repair::find(model, symbol)) {
        Some(repair) => model.dialogs.push(Dialog::Repair(repair)),
        None if row.hidden => {
            let needs = unmet(model, row.node);
            model.complain(format!("shown only when {needs}"));
        }
        None => model.say("it can be changed: Enter; i tells why it has its value"),
    }
}

/// The conditions of a menu or comment that do not hold.
fn unmet(model: &Model, node: NodeId) -> String {
    let tree = model.schema.tree();
    let node = tree.node(node);
    let conditions = node.prompt.iter().map(|prompt| prompt.condition).chain([node.depends, node.visible_if]);
    let terms = conditions.flat_map(|condition| tree.conjuncts(condition));
    let open: BTreeSet<String> =
        terms.filter(|term| model.config.holds(*term) == Tri::N).map(|term| tree.show(term)).collect();
    if open.is_empty() { "something in it is".to_owned() } else { open.into_iter().collect::<Vec<_>>().join(" and ") }
}

fn undo(model: &mut Model) {
    let node = model.row().map(|row| row.node);
    let Some(step) = model.history.take_back() else { return model.say("there is nothing to undo") };
    model.config.undo(&step.delta);
    let text = format!("undone: {}", step.what);
    model.answered();
    model.stay_at(node);
    model.say(text);
}

fn redo(model: &mut Model) {
    let node = model.row().map(|row| row.node);
    let Some(step) = model.history.make_again() else { return model.say("there is nothing to redo") };
    model.config.redo(&step.delta);
    let text = format!("redone: {}", step.what);
    model.answered();
    model.stay_at(node);
    model.say(text);
}

fn show_all(model: &mut Model) {
    let node = model.row().map(|row| row.node);
    model.show_all = !model.show_all;
    if let Some(node) = node {
        model.stay_at(Some(node));
    }
    model.say(if model.show_all {
        "everything is shown, also what cannot be set now"
    } else {
        "only what can be set is shown"
    });
}
