//! The list of a menu's lines.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::text::shorten;
use super::theme::Theme;
use crate::wizard::model::Model;
use crate::wizard::row::{Deviation, Row, RowKind};

/// The narrowest column of values.
const LEAST_VALUE: usize = 12;

/// Draws the open menu with the cursor somewhere in the middle when it does not fit.
pub(super) fn draw(model: &Model, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let rows = model.rows();
    let cursor = model.place().cursor;
    let width = usize::from(area.width);
    let first = first_line(model, area);
    let longest = rows.iter().map(|row| prompt_width(model, row) + 2).max().unwrap_or(0);
    let prompts = longest.min(width.saturating_sub(LEAST_VALUE));
    for (index, (row, line)) in rows.iter().skip(first).zip(area.rows()).enumerate() {
        let text = compose(model, row, theme, prompts, width);
        text.render(line, buffer);
        if first + index == cursor {
            buffer.set_style(line, Theme::cursor());
        }
    }
    if rows.is_empty() {
        Line::styled(" nothing to ask here", Theme::dim()).render(area, buffer);
    }
    mark_more(theme, first, rows.len(), area, buffer);
}

/// The line at the top, so that the cursor is in the middle where there are lines enough.
pub(super) fn first_line(model: &Model, area: Rect) -> usize {
    let height = usize::from(area.height);
    model.place().cursor.saturating_sub(height / 2).min(model.rows().len().saturating_sub(height))
}

/// What stands for the entry: its prompt, or its name where names are shown.
fn title(model: &Model, row: &Row) -> String {
    match row.kind.symbol().filter(|_| model.show_names) {
        Some(symbol) => model.schema.name(symbol).to_owned(),
        None => row.prompt.clone(),
    }
}

/// Columns of mark, indentation, switch and prompt.
fn prompt_width(model: &Model, row: &Row) -> usize {
    2 + row.depth * 2 + if in_front(row) { 4 } else { 0 } + Span::raw(title(model, row)).width()
}

/// Switches stand before their prompt, as in menuconfig; other values behind it.
fn in_front(row: &Row) -> bool {
    matches!(row.kind, RowKind::Switch(..))
}

fn compose(model: &Model, row: &Row, theme: Theme, prompts: usize, width: usize) -> Line<'static> {
    let mut line = Line::default();
    line.push_span(mark(row, theme));
    line.push_span(Span::raw("  ".repeat(row.depth)));
    let value_style = match (row.changeable, row.custom) {
        (false, _) => Theme::dim(),
        (true, true) => theme.custom(),
        (true, false) => theme.value(),
    };
    if in_front(row) {
        line.push_span(Span::styled(format!("{} ", row.value), value_style));
    }
    let prompt_style = if row.changeable && !row.hidden { Style::new() } else { Theme::dim() };
    let room = prompts.saturating_sub(line.width());
    if row.kind == RowKind::Comment {
        let room = width.saturating_sub(line.width());
        line.push_span(Span::styled(shorten(&format!("*** {} ***", row.prompt), room), Theme::dim()));
        return line;
    }
    line.push_span(Span::styled(shorten(&title(model, row), room), prompt_style));
    line.push_span(Span::raw(" ".repeat(prompts.saturating_sub(line.width()))));
    if !in_front(row) {
        let room = width.saturating_sub(line.width() + 5);
        line.push_span(Span::styled(shorten(&row.value, room.max(4)), value_style));
    }
    if row.submenu {
        line.push_span(Span::styled(
            if row.value.is_empty() || in_front(row) { "--->" } else { " --->" },
            Theme::dim(),
        ));
    }
    line
}

/// What stands out at the left edge: a mistake, an entry that cannot be set now, one that differs
/// from what runs or from the profile, one that the file does not answer.
fn mark(row: &Row, theme: Theme) -> Span<'static> {
    match (row.wrong, row.hidden, row.deviation, row.new) {
        (true, ..) => Span::styled("! ", theme.error()),
        (_, true, ..) => Span::styled("x ", Theme::dim()),
        (_, _, Some(Deviation::Running), _) => Span::styled("~ ", theme.custom()),
        (_, _, Some(Deviation::Profile), _) => Span::styled("^ ", theme.custom()),
        (_, _, _, true) => Span::styled("* ", theme.notice()),
        _ => Span::raw("  "),
    }
}

/// Arrows at the right edge when there is more above or below.
fn mark_more(theme: Theme, first: usize, count: usize, area: Rect, buffer: &mut Buffer) {
    let edge = area.right().saturating_sub(1);
    if first > 0 {
        buffer.set_string(edge, area.top(), theme.up(), Theme::key());
    }
    if first + usize::from(area.height) < count {
        buffer.set_string(edge, area.bottom().saturating_sub(1), theme.down(), Theme::key());
    }
}
