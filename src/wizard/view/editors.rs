//! Dialogs around one line of text, and the line itself.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _, Wrap};

use super::frame::{frame, to_u16};
use super::text::shorten;
use super::theme::Theme;
use crate::config;
use crate::wizard::dialog::FilePurpose;
use crate::wizard::items::Cell;
use crate::wizard::line_edit::LineEdit;
use crate::wizard::model::Model;

/// The editor of a setting's text.
pub(super) fn draw_edit(
    model: &Model,
    theme: Theme,
    symbol: kconfig::SymbolId,
    (line, completions): (&LineEdit, &[String]),
    area: Rect,
    buffer: &mut Buffer,
) -> Position {
    let title = model.schema.prompt(symbol).unwrap_or(model.schema.name(symbol));
    let rule = model.schema.rule(symbol);
    let verdict = judge(model, theme, symbol, line.text());
    let text = Text { title, expected: expected(model, symbol), line, secret: rule.secret, verdict, completions };
    text.draw(theme, area, buffer)
}

/// What a value must look like.
pub(in crate::wizard) fn expected(model: &Model, symbol: kconfig::SymbolId) -> String {
    match (&model.schema.rule(symbol).format, model.config.range(symbol)) {
        (Some(format), _) => format!("Expected: {format}"),
        (None, Some((low, high))) => format!("Expected: a number from {low} to {high}"),
        (None, None) => format!("Expected: a value of type {}", model.schema.tree().get(symbol).kind),
    }
}

/// The text of one field of a list's element.
pub(super) fn draw_cell(theme: Theme, cell: &Cell, area: Rect, buffer: &mut Buffer) -> Position {
    let verdict = match cell.judge() {
        None => Line::styled("valid", theme.notice()),
        Some(why) => Line::styled(why, theme.error()),
    };
    let (title, expected) = (cell.field.name.as_str(), format!("Expected: {}", cell.field.format));
    Text { title, expected, line: &cell.line, secret: false, verdict, completions: &[] }.draw(theme, area, buffer)
}

/// The name of a file.
pub(super) fn draw_path(
    theme: Theme,
    purpose: FilePurpose,
    (line, completions): (&LineEdit, &[String]),
    area: Rect,
    buffer: &mut Buffer,
) -> Position {
    let (title, expected) = match purpose {
        FilePurpose::Load => {
            ("Take over the answers of", "A file of this form; what it does not say becomes the default.")
        }
        FilePurpose::SaveAs => {
            ("Save all answers to", "A file that exists is replaced. The wizard stays with its own file.")
        }
        FilePurpose::SaveMinimal => ("Save what is not so by default to", "A file that exists is replaced."),
    };
    let verdict = Line::styled("Tab completes", Theme::dim());
    Text { title, expected: expected.to_owned(), line, secret: false, verdict, completions }.draw(theme, area, buffer)
}

/// A dialog around one line of text.
struct Text<'a> {
    title: &'a str,
    expected: String,
    line: &'a LineEdit,
    secret: bool,
    verdict: Line<'static>,
    completions: &'a [String],
}

impl Text<'_> {
    fn draw(self, theme: Theme, area: Rect, buffer: &mut Buffer) -> Position {
        let more = to_u16(self.completions.len().min(6));
        let inner = frame(theme, self.title, (area.width.saturating_sub(8).min(72), 8 + more), area, buffer);
        let part = |offset: u16, height: u16| Rect {
            y: inner.y + offset,
            height: height.min(inner.height.saturating_sub(offset)),
            ..inner
        };
        Paragraph::new(self.expected).wrap(Wrap { trim: true }).style(Theme::dim()).render(part(0, 2), buffer);
        let cursor = draw_field(self.line, self.secret, part(3, 1), buffer);
        let room = 3 * usize::from(inner.width);
        let verdict = Line::styled(shorten(&self.verdict.to_string(), room), self.verdict.style);
        Paragraph::new(verdict).wrap(Wrap { trim: true }).render(part(5, 3), buffer);
        for (completion, row) in self.completions.iter().zip(part(8, more).rows()) {
            Line::styled(completion.clone(), theme.value()).render(row, buffer);
        }
        cursor
    }
}

/// What there is to say about the text as it stands.
pub(super) fn judge(model: &Model, theme: Theme, symbol: kconfig::SymbolId, text: &str) -> Line<'static> {
    let rule = model.schema.rule(symbol);
    match config::judge(&model.schema, &model.config, symbol, text) {
        Some(_) if rule.secret => return Line::styled("its format is not right yet", theme.error()),
        Some(why) => return Line::styled(why, theme.error()),
        None => {}
    }
    let mut with = model.config.clone();
    let taken = with.set(symbol, text);
    if let Err(why) = taken {
        return Line::styled(why.to_string(), theme.error());
    }
    // Right in itself, but not together with the rest: taken, and marked until the rest is changed
    // too. What was wrong elsewhere before is no matter of this text.
    let name = model.schema.name(symbol);
    let own = |problem: &config::Problem| problem.symbol.as_deref() == Some(name);
    let known = |problem: &config::Problem| model.problems.contains(problem);
    let clash = config::check(&model.schema, &with).into_iter().find(|problem| own(problem) || !known(problem));
    match (clash, &rule.example) {
        (Some(problem), _) => theme.problem(&problem),
        (None, Some(example)) => Line::styled(format!("valid; example: {example}"), theme.notice()),
        (None, None) => Line::styled("valid", theme.notice()),
    }
}

/// One line of text, scrolled so that the cursor is in sight.
pub(super) fn draw_field(line: &LineEdit, secret: bool, area: Rect, buffer: &mut Buffer) -> Position {
    let shown = |text: &str| if secret { "*".repeat(text.chars().count()) } else { text.to_owned() };
    let (text, before) = (shown(line.text()), shown(line.before_cursor()));
    let room = usize::from(area.width).saturating_sub(1);
    // From the cursor to the left as long as there is room.
    let (mut hidden, mut used) = (before.len(), 0);
    for (at, c) in before.char_indices().rev() {
        used += Span::raw(c.encode_utf8(&mut [0; 4]) as &str).width();
        if used > room {
            break;
        }
        hidden = at;
    }
    buffer.set_style(area, Theme::cursor());
    let style = if line.is_selected() { Theme::cursor().underlined() } else { Theme::cursor() };
    buffer.set_stringn(area.x, area.y, &text[hidden..], usize::from(area.width), style);
    let column = u16::try_from(Span::raw(&before[hidden..]).width()).unwrap_or(0);
    Position { x: area.x + column, y: area.y }
}
