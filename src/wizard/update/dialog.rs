//! Messages to the innermost dialog.

use kconfig::SymbolId;

use super::open::start_guide;
use super::scroll::scroll;
use super::{files, menu};
use crate::config;
use crate::config::format::Format;
use crate::wizard::dialog::{Dialog, FilePreview, Pick, PickOption, PickPurpose};
use crate::wizard::items::{ElementFields, Items, Pasted};
use crate::wizard::jump::{self, to_question};
use crate::wizard::line_edit::LineEdit;
use crate::wizard::model::Model;
use crate::wizard::msg::{Effect, Msg};

pub(super) fn update(model: &mut Model, msg: &Msg) -> Option<Effect> {
    match msg {
        Msg::Accept => return accept(model),
        Msg::Next => return go_on(model),
        _ => change(model, msg),
    }
    None
}

/// Takes the dialog's answer.
fn accept(model: &mut Model) -> Option<Effect> {
    match model.dialogs.last()? {
        Dialog::Path { .. } => return files::accept_path(model),
        Dialog::Pick(_) => return accept_pick(model),
        Dialog::Recover { .. } => {
            model.dialogs.pop();
            return Some(Effect::Recover);
        }
        Dialog::Edit { .. } => accept_edit(model),
        Dialog::Cell(_) => accept_cell(model),
        Dialog::Search(_) => accept_search(model),
        Dialog::Items(_) => accept_items(model),
        Dialog::Fields(_) => accept_fields(model),
        Dialog::Pasted { .. } => accept_pasted(model),
        Dialog::Repair(_) => accept_repair(model),
        Dialog::Problems { .. } => accept_problem(model),
        _ => {}
    }
    None
}

/// The completion of a path, or the next of several views or ways.
fn go_on(model: &mut Model) -> Option<Effect> {
    match model.dialogs.last()? {
        Dialog::Edit { .. } => return complete(model),
        Dialog::Path { line, .. } => return Some(Effect::Complete(line.text().to_owned())),
        Dialog::Cell(cell) if names_a_file(&cell.field.format) => {
            return Some(Effect::Complete(cell.line.text().to_owned()));
        }
        Dialog::Preview(preview) => {
            let next = FilePreview::of(model, preview.tab.next(model));
            model.dialogs.pop();
            model.dialogs.push(Dialog::Preview(next));
        }
        Dialog::Repair(repair) => {
            let mut repair = repair.clone();
            repair.next(model);
            model.dialogs.pop();
            model.dialogs.push(Dialog::Repair(repair));
        }
        _ => {}
    }
    None
}

/// What changes in the dialog itself.
fn change(model: &mut Model, msg: &Msg) {
    match model.dialogs.last_mut() {
        Some(Dialog::Edit { .. }) if matches!(msg, Msg::Count(_)) => count(model, msg),
        Some(Dialog::Edit { line, completions, .. } | Dialog::Path { line, completions, .. }) => {
            change_line(line, completions, msg);
        }
        Some(Dialog::Cell(cell)) => change_line(&mut cell.line, &mut Vec::new(), msg),
        Some(Dialog::Search(_)) => change_search(model, msg),
        Some(Dialog::Items(_)) => change_items(model, msg),
        Some(Dialog::Fields(_)) => change_fields(model, msg),
        Some(Dialog::Pick(pick)) => move_within(&mut pick.cursor, pick.options.len(), msg),
        Some(Dialog::Problems { cursor }) => move_within(cursor, model.problems.len(), msg),
        Some(Dialog::Repair(repair)) => scroll(&mut repair.scroll, msg),
        Some(Dialog::Preview(preview)) => scroll(&mut preview.scroll, msg),
        Some(
            Dialog::Recover { scroll: at, .. }
            | Dialog::Details { scroll: at, .. }
            | Dialog::Keys { scroll: at }
            | Dialog::Text { scroll: at, .. }
            | Dialog::Save { scroll: at, .. }
            | Dialog::Conflict { scroll: at, .. }
            | Dialog::Pasted { scroll: at, .. }
            | Dialog::Quit { scroll: at, .. },
        ) => scroll(at, msg),
        None => {}
    }
}

/// Moves a cursor that stays on one of so many lines.
pub(super) fn move_within(cursor: &mut usize, lines: usize, msg: &Msg) {
    scroll(cursor, msg);
    *cursor = (*cursor).min(lines.saturating_sub(1));
}

fn change_line(line: &mut LineEdit, completions: &mut Vec<String>, msg: &Msg) {
    match msg {
        Msg::Completed(found) => files::completed(line, completions, found),
        _ => drop(type_into(line, msg)),
    }
}

fn change_search(model: &mut Model, msg: &Msg) {
    let Some(Dialog::Search(search)) = model.dialogs.last_mut() else { return };
    if matches!(msg, Msg::Move(_) | Msg::Select(_)) {
        return move_within(&mut search.cursor, search.hits.len(), msg);
    }
    if type_into(&mut search.line, msg) {
        search.look(&model.index, &model.schema, &model.config);
    }
}

/// What a paste means: lines become elements where a list is edited, all else takes one line.
pub(super) fn paste(model: &mut Model, text: &str) -> Option<Msg> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if let Some(Dialog::Items(items)) = model.dialogs.last()
        && items.is_records()
    {
        let items = items.clone();
        paste_records(model, items, text);
        return None;
    }
    if let Some(Dialog::Items(items)) = model.dialogs.last_mut() {
        if let Err(why) = items.insert_lines(&lines) {
            model.complain(why);
        }
        return None;
    }
    if lines.len() < 2 {
        return Some(Msg::Type(text.trim_end_matches('\n').to_owned()));
    }
    if matches!(model.dialogs.last(), Some(Dialog::Cell(_)))
        && let Some(at) = model.dialogs.iter().rposition(|dialog| matches!(dialog, Dialog::Items(_)))
        && let Dialog::Items(items) = &mut model.dialogs[at]
        && !items.is_records()
    {
        match items.insert_lines(&lines) {
            Ok(()) => model.dialogs.truncate(at + 1),
            Err(why) => model.complain(why),
        }
        return None;
    }
    if model.typed_symbol().is_some_and(|symbol| matches!(model.schema.rule(symbol).format, Some(Format::List(_)))) {
        return Some(Msg::Type(lines.join(",")));
    }
    model.complain(format!("this takes one line, and {} were pasted: nothing was inserted", lines.len()));
    None
}

/// Records that are pasted over rows: taken at once where that only adds something that the text
/// says, or else after a question.
pub(super) fn paste_records(model: &mut Model, mut items: Items, text: &str) {
    match items.paste(&model.schema, text) {
        Err(why) => model.complain(why),
        Ok(Pasted { lines, asks: true }) => model.dialogs.push(Dialog::Pasted { items, lines, scroll: 0 }),
        Ok(Pasted { lines, .. }) => take_records(model, items, &lines),
    }
}

fn accept_pasted(model: &mut Model) {
    if let Some(Dialog::Pasted { items, lines, .. }) = model.dialogs.pop() {
        take_records(model, items, &lines);
    }
}

/// The rows become these, in the dialog that edits them or as the answer of the guide's question.
fn take_records(model: &mut Model, items: Items, lines: &[String]) {
    if let Some(Dialog::Items(open)) = model.dialogs.last_mut() {
        *open = items;
        judge_items(model);
    } else if !menu::give_rows(model, &items) {
        return;
    }
    if !lines.is_empty() {
        model.say(lines.join("; "));
    }
}

/// Closes the innermost dialog. An element of one part is its part: both are closed.
pub(super) fn cancel(model: &mut Model) {
    let closed = model.dialogs.pop();
    let part = matches!(closed, Some(Dialog::Cell(_) | Dialog::Pick(Pick { target: PickPurpose::Field(_), .. })));
    if part && matches!(model.dialogs.last(), Some(Dialog::Fields(fields)) if fields.columns.len() == 1) {
        model.dialogs.pop();
    }
}

/// What typing does to a line; returns whether its text may have changed.
pub(super) fn type_into(line: &mut LineEdit, msg: &Msg) -> bool {
    match msg {
        Msg::Type(text) => line.insert(text),
        Msg::Erase => line.erase(),
        Msg::EraseForward => line.erase_forward(),
        Msg::EraseLine => line.erase_all(),
        Msg::Cursor(place) => {
            line.go(*place);
            return false;
        }
        _ => return false,
    }
    true
}

fn accept_edit(model: &mut Model) {
    let Some(Dialog::Edit { symbol, line, .. }) = model.dialogs.last() else { return };
    let (symbol, text) = (*symbol, line.text().to_owned());
    // The view shows what is wrong while typing; a wrong value is not taken.
    if config::judge(&model.schema, &model.config, symbol, &text).is_some() {
        return;
    }
    model.dialogs.pop();
    set_here(model, symbol, &text);
}

/// Gives the answer, if it is another one, to the entry under the cursor.
fn set_here(model: &mut Model, symbol: SymbolId, text: &str) {
    if text == model.config.value(symbol) {
        return;
    }
    match model.row() {
        Some(row) => menu::set(model, row.node, symbol, text),
        None => drop(menu::give(model, &[(symbol, text.to_owned())])),
    }
}

/// One or ten more or less of a number, within its range.
fn count(model: &mut Model, msg: &Msg) {
    let (Some(Dialog::Edit { symbol, line, .. }), Msg::Count(by)) = (model.dialogs.last_mut(), msg) else { return };
    if let Some(text) = counted(&model.schema, &model.config, *symbol, line.text(), *by) {
        *line = LineEdit::selected(&text);
    }
}

/// The number, so much more, within its range; none for what is no number.
pub(super) fn counted(
    schema: &config::Schema,
    config: &kconfig::Config<'_>,
    symbol: SymbolId,
    text: &str,
    by: i64,
) -> Option<String> {
    let kind = schema.tree().get(symbol).kind;
    if !kind.is_numeric() {
        return None;
    }
    let lowest = if kind == kconfig::SymbolType::Hex { 0 } else { i64::MIN };
    let (low, high) = config.range(symbol).unwrap_or((lowest, i64::MAX));
    if low > high {
        return None;
    }
    let number = kind.parse_number(text)?.saturating_add(by).clamp(low, high);
    Some(if kind == kconfig::SymbolType::Hex { format!("{number:#x}") } else { number.to_string() })
}

fn complete(model: &Model) -> Option<Effect> {
    let Some(Dialog::Edit { symbol, line, .. }) = model.dialogs.last() else { return None };
    let format = model.schema.rule(*symbol).format.as_ref();
    format.filter(|format| names_a_file(format)).map(|_| Effect::Complete(line.text().to_owned()))
}

fn names_a_file(format: &Format) -> bool {
    match format {
        Format::Path | Format::File => true,
        Format::Any(formats) => formats.iter().any(names_a_file),
        _ => false,
    }
}

fn accept_pick(model: &mut Model) -> Option<Effect> {
    let Some(Dialog::Pick(pick)) = model.dialogs.pop() else { return None };
    let option = pick.options.get(pick.cursor)?;
    match pick.target {
        PickPurpose::Symbol(symbol) => set_here(model, symbol, &option.value),
        PickPurpose::Choice(_) => {
            let member = model.schema.tree().symbol(&option.value)?;
            let node = model.row().map(|row| row.node)?;
            menu::set(model, node, member, "y");
        }
        PickPurpose::Field(column) => take_part(model, column, option.value.clone()),
        PickPurpose::Load => return files::load(model, &option.value),
        PickPurpose::Start => match option.value.as_str() {
            "guide" => start_guide(model),
            "profile" => files::ask(model, &Msg::Load),
            _ => {}
        },
    }
    None
}

fn accept_search(model: &mut Model) {
    let Some(Dialog::Search(search)) = model.dialogs.pop() else { return };
    match search.hits.get(search.cursor) {
        Some((node, _)) => jump::to_node(model, *node),
        None => model.say("nothing was found"),
    }
}

fn accept_problem(model: &mut Model) {
    let Some(Dialog::Problems { cursor }) = model.dialogs.pop() else { return };
    let symbol = model.problems.get(cursor).and_then(|problem| problem.symbol.clone());
    match symbol.and_then(|name| model.schema.tree().symbol(&name)) {
        Some(symbol) => to_question(model, symbol),
        None => model.say("this is about no single setting"),
    }
}

fn accept_repair(model: &mut Model) {
    let Some(Dialog::Repair(repair)) = model.dialogs.pop() else { return };
    if repair.steps.is_empty() {
        return model.complain("no answers were found that unlock it");
    }
    let node = model.row().map(|row| row.node);
    if menu::give(model, &repair.steps) {
        model.stay_at(node);
    }
}

fn change_items(model: &mut Model, msg: &Msg) {
    let Some(Dialog::Items(items)) = model.dialogs.last_mut() else { return };
    match msg {
        Msg::Remove => items.remove(),
        Msg::Shift(by) => items.shift(*by),
        Msg::Add | Msg::Open => {
            let new = *msg == Msg::Add || items.rows.is_empty();
            if let Some(fields) = items.fields(new) {
                open_fields(model, fields, new);
            }
        }
        _ => move_within(&mut items.cursor, items.rows.len(), msg),
    }
}

/// An element of one part is edited at once; of a new one, what it needs is asked at once.
fn open_fields(model: &mut Model, fields: ElementFields, new: bool) {
    let single = fields.columns.len() == 1;
    model.dialogs.push(Dialog::Fields(fields));
    if single || new {
        open_cell(model);
    }
}

fn accept_items(model: &mut Model) {
    let Some(Dialog::Items(items)) = model.dialogs.last_mut() else { return };
    let (symbol, text) = (items.symbol, items.text());
    if let Some(why) = config::judge(&model.schema, &model.config, symbol, &text) {
        items.wrong = Some(why);
        return;
    }
    model.dialogs.pop();
    set_here(model, symbol, &text);
}

fn change_fields(model: &mut Model, msg: &Msg) {
    let Some(Dialog::Fields(fields)) = model.dialogs.last_mut() else { return };
    match msg {
        Msg::Open => open_cell(model),
        Msg::Details => {
            let field = &fields.columns[fields.cursor];
            let (title, lines) = (field.name.clone(), fields.about(fields.cursor));
            model.dialogs.push(Dialog::Text { title, lines, scroll: 0 });
        }
        Msg::Remove => {
            fields.texts[fields.cursor].clear();
            fields.wrong = None;
        }
        _ => {
            fields.wrong = None;
            move_within(&mut fields.cursor, fields.columns.len(), msg);
        }
    }
}

fn accept_fields(model: &mut Model) {
    let Some(Dialog::Fields(fields)) = model.dialogs.last_mut() else { return };
    if fields.is_untouched() {
        // Nothing was said: a new element is not started, an old one stays as it was.
        return cancel(model);
    }
    let wrong = fields.judge();
    if wrong.is_some() && fields.wrong == wrong {
        // It was said at the key before, and nothing was done about it.
        cancel(model);
        return model.say("the element is left as it was: what was typed could not be taken");
    }
    fields.wrong = wrong;
    if fields.wrong.is_some() {
        return;
    }
    let Some(Dialog::Fields(fields)) = model.dialogs.pop() else { return };
    if let Some(Dialog::Items(items)) = model.dialogs.last_mut() {
        items.take(fields.row, fields.texts);
    }
    judge_items(model);
}

/// What is wrong with the elements together, such as two hosts with one address: said at once, as
/// it will be said of the setting.
fn judge_items(model: &mut Model) {
    let Some(Dialog::Items(items)) = model.dialogs.last() else { return };
    let (symbol, text) = (items.symbol, items.text());
    let mut with = model.config.clone();
    if config::judge(&model.schema, &with, symbol, &text).is_some() || with.set(symbol, &text).is_err() {
        return;
    }
    let name = model.schema.name(symbol);
    let is_own = |problem: &config::Problem| problem.symbol.as_deref() == Some(name);
    let wrong = config::check(&model.schema, &with).into_iter().find(is_own).map(|problem| problem.message);
    if let Some(Dialog::Items(items)) = model.dialogs.last_mut() {
        items.wrong = wrong;
    }
}

fn open_cell(model: &mut Model) {
    let Some(Dialog::Fields(fields)) = model.dialogs.last() else { return };
    let (column, current) = (fields.cursor, fields.texts[fields.cursor].clone());
    let field = &fields.columns[column];
    let words = match &field.format {
        Format::Enum(words) => Some(words.clone()),
        Format::Bool => Some(vec!["true".to_owned(), "false".to_owned()]),
        _ => None,
    };
    model.dialogs.push(match words {
        Some(words) => {
            let options = words.iter().map(|word| PickOption::word(word, &current)).collect();
            Dialog::Pick(Pick::new(&*field.name, options, PickPurpose::Field(column)))
        }
        None => Dialog::Cell(fields.cell(column)),
    });
}

fn accept_cell(model: &mut Model) {
    let Some(Dialog::Cell(cell)) = model.dialogs.last() else { return };
    let (column, text) = (cell.column, cell.line.text().to_owned());
    // The view shows what is wrong while typing; a wrong value is not taken.
    if cell.judge().is_some() {
        return;
    }
    model.dialogs.pop();
    take_part(model, column, text);
}

/// One part of an element; where it is the only one, the element is taken with it.
fn take_part(model: &mut Model, column: usize, text: String) {
    let Some(Dialog::Fields(fields)) = model.dialogs.last_mut() else { return };
    fields.texts[column] = text;
    fields.wrong = None;
    if fields.columns.len() == 1 {
        return accept_fields(model);
    }
    // On to what is missing, or else to the next field.
    let missing = fields.missing_from(column + 1);
    fields.cursor = missing.unwrap_or((column + 1).min(fields.columns.len() - 1));
    if missing.is_some() {
        open_cell(model);
    }
}
