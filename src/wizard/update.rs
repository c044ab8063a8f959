//! How the model changes: the only place where answers are given. Pure, but for what it asks the loop to do.

use kconfig::{SetError, SymbolId, Tri};

use super::line_edit::LineEdit;
use super::model::{Dialog, Model, Notice, Pick, PickOption, Place, Target};
use super::msg::{Effect, Msg};
use super::rows::{Row, RowKind};
use crate::config;

/// Takes one message.
pub(super) fn update(model: &mut Model, msg: Msg) -> Option<Effect> {
    model.notice = None;
    match msg {
        Msg::Save => return save(model, false),
        Msg::SaveAnyway => return save_anyway(model),
        Msg::SaveAndLeave => {
            model.dialogs.clear();
            model.leaving = true;
            return save(model, false);
        }
        Msg::Quit => return quit(model),
        Msg::Discard => return Some(Effect::Leave),
        Msg::Suspend => return Some(Effect::Suspend),
        Msg::Saved => return saved(model),
        Msg::NotSaved(lines) => open_text(model, "Not saved", lines),
        Msg::Conflict(why) => {
            let lines = vec![why, "Saving anyway replaces what is there now.".to_owned()];
            model.dialogs.push(Dialog::Save { lines, scroll: 0, overwrite: true });
        }
        Msg::Keys => model.dialogs.push(Dialog::Keys { scroll: 0 }),
        Msg::Cancel => {
            model.dialogs.pop();
            model.leaving = false;
        }
        other if model.dialogs.is_empty() => update_menu(model, &other),
        other => update_dialog(model, &other),
    }
    None
}

fn update_menu(model: &mut Model, msg: &Msg) {
    match msg {
        Msg::Move(by) => move_cursor(model, *by),
        Msg::First => move_cursor(model, isize::MIN),
        Msg::Last => move_cursor(model, isize::MAX),
        Msg::Back => back(model),
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
        Msg::Details => model.dialogs.push(Dialog::Details { node: row.node, scroll: 0 }),
        _ => {}
    }
}

fn move_cursor(model: &mut Model, by: isize) {
    let last = model.rows().len().saturating_sub(1);
    if let Some(place) = model.places.last_mut() {
        place.cursor = place.cursor.saturating_add_signed(by).min(last);
    }
}

/// Keeps the cursor on its entry when lines appear or vanish above it.
fn follow(model: &mut Model, node: kconfig::NodeId) {
    let rows = model.rows();
    if let Some(place) = model.places.last_mut() {
        let found = rows.iter().position(|row| row.node == node);
        place.cursor = found.unwrap_or(place.cursor).min(rows.len().saturating_sub(1));
    }
}

fn back(model: &mut Model) {
    if model.places.len() > 1 {
        model.places.pop();
        let cursor = model.place().cursor;
        // An answer given inside may have changed the lines of this menu.
        let last = model.rows().len().saturating_sub(1);
        if let Some(place) = model.places.last_mut() {
            place.cursor = cursor.min(last);
        }
    } else {
        say(model, "this is the top; q quits");
    }
}

fn open(model: &mut Model, row: &Row) {
    if row.submenu {
        return enter(model, row);
    }
    match row.kind {
        RowKind::Switch(..) => toggle(model, row),
        RowKind::Text(symbol) => edit(model, row, symbol),
        RowKind::Choice(choice) => pick_member(model, row, choice),
        RowKind::Menu | RowKind::Comment => {}
    }
}

fn enter(model: &mut Model, row: &Row) {
    if row.submenu {
        model.places.push(Place { menu: row.node, cursor: 0 });
    } else if !matches!(row.kind, RowKind::Switch(..)) {
        open(model, row);
    }
}

fn edit(model: &mut Model, row: &Row, symbol: SymbolId) {
    if !row.changeable {
        return explain(model, symbol);
    }
    let current = model.config.value(symbol).to_owned();
    let words = model.schema.rule(symbol).format.as_ref().and_then(|format| format.words());
    let Some(words) = words else {
        return model.dialogs.push(Dialog::Edit { symbol, line: LineEdit::new(&current) });
    };
    let options: Vec<PickOption> = words
        .iter()
        .map(|word| PickOption { label: word.clone(), value: word.clone(), current: *word == current })
        .collect();
    open_pick(model, &row.prompt, options, Target::Symbol(symbol));
}

fn pick_member(model: &mut Model, row: &Row, choice: kconfig::ChoiceId) {
    let selected = model.config.selection(choice);
    let members = model.schema.tree().choice(choice).members.iter();
    let options = members
        .filter(|member| model.config.visible(**member) != Tri::N)
        .map(|member| PickOption {
            label: model.schema.prompt(*member).unwrap_or(model.schema.name(*member)).to_owned(),
            value: model.schema.name(*member).to_owned(),
            current: selected == Some(*member),
        })
        .collect();
    open_pick(model, &row.prompt, options, Target::Choice(choice));
}

fn open_pick(model: &mut Model, title: &str, options: Vec<PickOption>, target: Target) {
    let cursor = options.iter().position(|option| option.current).unwrap_or(0);
    model.dialogs.push(Dialog::Pick(Pick { title: title.to_owned(), options, cursor, target }));
}

/// Turns a bool over; a tristate goes through the values that it may have.
fn toggle(model: &mut Model, row: &Row) {
    let RowKind::Switch(symbol, now) = row.kind else { return };
    let possible = model.config.assignable(symbol);
    let position = possible.iter().position(|tri| *tri == now);
    match position.and_then(|at| possible.get((at + 1) % possible.len())) {
        Some(next) if *next != now => set(model, row.node, symbol, next.as_str()),
        _ => explain(model, symbol),
    }
}

fn switch(model: &mut Model, row: &Row, tri: Tri) {
    match row.kind {
        RowKind::Switch(symbol, now) if now != tri => set(model, row.node, symbol, tri.as_str()),
        RowKind::Switch(..) => {}
        _ => say(model, "this is no switch; Enter opens it"),
    }
}

fn reset(model: &mut Model, row: &Row) {
    let symbols: Vec<SymbolId> = match row.kind {
        RowKind::Choice(choice) => model.schema.tree().choice(choice).members.to_vec(),
        kind => kind.symbol().into_iter().collect(),
    };
    if symbols.is_empty() {
        return;
    }
    for symbol in symbols {
        model.config.unset(symbol);
    }
    model.judge();
    follow(model, row.node);
    say(model, "the default counts again");
}

/// Gives an answer the way a person does; says why when it is refused.
fn set(model: &mut Model, node: kconfig::NodeId, symbol: SymbolId, value: &str) {
    match model.config.set(symbol, value) {
        Ok(()) => {
            model.judge();
            follow(model, node);
        }
        Err(SetError::NotVisible { why, .. }) => complain(model, &format!("cannot be set now: {}", why.join("; "))),
        Err(error) => complain(model, &error.to_string()),
    }
}

/// Why a value cannot be changed.
fn explain(model: &mut Model, symbol: SymbolId) {
    let why = lock_reason(model, symbol).unwrap_or_else(|| "it has only this value".to_owned());
    complain(model, &why);
}

/// The sentence about what keeps a symbol at its value; nothing when a person may change it.
pub(super) fn lock_reason(model: &Model, symbol: SymbolId) -> Option<String> {
    let reasons = model.config.explain_visibility(symbol);
    if !reasons.is_empty() {
        return Some(format!("cannot be set now: {}", reasons.join("; ")));
    }
    if let kconfig::Origin::Select { by, .. } = model.config.origin(symbol) {
        return Some(format!("fixed: {} selects it", model.schema.name(by)));
    }
    let kind = model.schema.tree().get(symbol).kind;
    (kind.is_logical() && model.config.assignable(symbol).len() < 2)
        .then(|| "other settings leave only this value".to_owned())
}

fn update_dialog(model: &mut Model, msg: &Msg) {
    match model.dialogs.last_mut() {
        Some(Dialog::Edit { line, .. }) => match msg {
            Msg::Type(text) => line.insert(text),
            Msg::Erase => line.erase(),
            Msg::EraseForward => line.erase_forward(),
            Msg::EraseLine => line.erase_before(),
            Msg::Cursor(place) => line.go(*place),
            Msg::Accept => accept_edit(model),
            _ => {}
        },
        Some(Dialog::Pick(pick)) => {
            if *msg == Msg::Accept {
                return accept_pick(model);
            }
            scroll(&mut pick.cursor, msg);
            pick.cursor = pick.cursor.min(pick.options.len().saturating_sub(1));
        }
        Some(
            Dialog::Details { scroll: at, .. }
            | Dialog::Keys { scroll: at }
            | Dialog::Text { scroll: at, .. }
            | Dialog::Save { scroll: at, .. },
        ) => scroll(at, msg),
        Some(Dialog::Quit) | None => {}
    }
}

fn scroll(at: &mut usize, msg: &Msg) {
    match msg {
        Msg::Move(by) => *at = at.saturating_add_signed(*by).min(10_000),
        Msg::First => *at = 0,
        Msg::Last => *at = 10_000,
        _ => {}
    }
}

fn accept_edit(model: &mut Model) {
    let Some(Dialog::Edit { symbol, line }) = model.dialogs.last() else { return };
    let (symbol, text) = (*symbol, line.text().to_owned());
    // The view shows what is wrong while typing; a wrong value is not taken.
    if config::judge(&model.schema, &model.config, symbol, &text).is_some() {
        return;
    }
    model.dialogs.pop();
    if text != model.config.value(symbol)
        && let Some(row) = model.row()
    {
        set(model, row.node, symbol, &text);
    }
}

fn accept_pick(model: &mut Model) {
    let Some(Dialog::Pick(pick)) = model.dialogs.pop() else { return };
    let (Some(option), Some(row)) = (pick.options.get(pick.cursor), model.row()) else { return };
    match pick.target {
        Target::Symbol(symbol) => set(model, row.node, symbol, &option.value),
        Target::Choice(choice) => {
            let Some(member) = model.schema.tree().symbol(&option.value) else { return };
            match model.config.set_choice(choice, member) {
                Ok(()) => {
                    model.judge();
                    follow(model, row.node);
                }
                Err(error) => complain(model, &error.to_string()),
            }
        }
    }
}

fn save(model: &mut Model, overwrite: bool) -> Option<Effect> {
    if !model.is_unsaved() && !model.is_stale {
        say(model, "nothing to save: the file has these answers already");
        return model.leaving.then_some(Effect::Leave);
    }
    if model.problems.is_empty() {
        return Some(Effect::Save { overwrite });
    }
    let lines = model.problems.iter().map(|problem| problem.message.clone()).collect();
    model.dialogs.push(Dialog::Save { lines, scroll: 0, overwrite });
    None
}

fn save_anyway(model: &mut Model) -> Option<Effect> {
    match model.dialogs.pop() {
        Some(Dialog::Save { overwrite, .. }) => Some(Effect::Save { overwrite }),
        _ => None,
    }
}

fn saved(model: &mut Model) -> Option<Effect> {
    model.saved = Some(model.object());
    model.is_stale = false;
    say(model, &format!("saved {}", model.file));
    model.leaving.then_some(Effect::Leave)
}

fn quit(model: &mut Model) -> Option<Effect> {
    if model.is_unsaved() {
        model.dialogs.push(Dialog::Quit);
        return None;
    }
    Some(Effect::Leave)
}

fn open_text(model: &mut Model, title: &str, lines: Vec<String>) {
    model.leaving = false;
    model.dialogs.push(Dialog::Text { title: title.to_owned(), lines, scroll: 0 });
}

fn say(model: &mut Model, text: &str) {
    model.notice = Some(Notice { text: text.to_owned(), is_error: false });
}

fn complain(model: &mut Model, text: &str) {
    model.notice = Some(Notice { text: text.to_owned(), is_error: true });
}

/// What the wizard says first about a file that is not wholly right; saving leaves out what it could not take.
pub(super) fn greet(model: &mut Model, lines: Vec<String>) {
    if !lines.is_empty() {
        open_text(model, "Look at this first", lines);
    }
}
