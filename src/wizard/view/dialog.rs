//! What lies over the menus: editors, lists, questions, text.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph, Widget as _, Wrap};

use super::theme::Theme;
use super::wrap::wrap;
use super::{details, shorten};
use crate::config;
use crate::wizard::keymap::{self, Context};
use crate::wizard::line_edit::LineEdit;
use crate::wizard::model::{Dialog, Model, Pick};

/// Draws one dialog; returns where the terminal's cursor belongs, if anywhere.
pub(super) fn draw(model: &Model, theme: Theme, dialog: &Dialog, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    match dialog {
        Dialog::Edit { symbol, line } => return Some(draw_edit(model, theme, *symbol, line, area, buffer)),
        Dialog::Pick(pick) => draw_pick(theme, pick, area, buffer),
        Dialog::Details { node, scroll } => {
            let lines = details::full(model, theme, *node);
            draw_lines(theme, model.title(*node), lines, *scroll, area, buffer);
        }
        Dialog::Keys { scroll } => draw_lines(theme, "Keys", key_lines(theme), *scroll, area, buffer),
        Dialog::Text { title, lines, scroll } => {
            let lines = lines.iter().map(|line| Line::raw(line.clone())).collect();
            draw_lines(theme, title, lines, *scroll, area, buffer);
        }
        Dialog::Quit => draw_quit(model, theme, area, buffer),
        Dialog::Save { lines, scroll, overwrite } => draw_save(theme, lines, *scroll, *overwrite, area, buffer),
    }
    None
}

/// Clears a frame of this inner size in the middle and returns what is inside.
fn frame(theme: Theme, title: &str, inner: (u16, u16), area: Rect, buffer: &mut Buffer) -> Rect {
    let width = inner.0.saturating_add(4).min(area.width.saturating_sub(2));
    let height = inner.1.saturating_add(2).min(area.height.saturating_sub(2));
    let outer = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(outer, buffer);
    let title = shorten(title, usize::from(width.saturating_sub(4)));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Theme::frame())
        .title(Span::styled(format!(" {title} "), theme.title()));
    let within = block.inner(outer);
    block.render(outer, buffer);
    Rect { x: within.x + 1, width: within.width.saturating_sub(2), ..within }
}

fn draw_edit(
    model: &Model,
    theme: Theme,
    symbol: kconfig::SymbolId,
    line: &LineEdit,
    area: Rect,
    buffer: &mut Buffer,
) -> Position {
    let title = model.schema.prompt(symbol).unwrap_or(model.schema.name(symbol));
    let inner = frame(theme, title, (area.width.saturating_sub(8).min(72), 8), area, buffer);
    let rule = model.schema.rule(symbol);
    let expected = match (&rule.format, model.config.range(symbol)) {
        (Some(format), _) => format!("Expected: {format}"),
        (None, Some((low, high))) => format!("Expected: a number from {low} to {high}"),
        (None, None) => format!("Expected: a value of type {}", model.schema.tree().get(symbol).kind),
    };
    let text_at = |offset: u16, height: u16| Rect {
        y: inner.y + offset,
        height: height.min(inner.height.saturating_sub(offset)),
        ..inner
    };
    Paragraph::new(expected).wrap(Wrap { trim: true }).style(Theme::dim()).render(text_at(0, 2), buffer);
    let field = text_at(3, 1);
    let cursor = draw_field(line, rule.secret, field, buffer);
    let verdict = judge(model, theme, symbol, line.text());
    Paragraph::new(verdict).wrap(Wrap { trim: true }).render(text_at(5, 3), buffer);
    cursor
}

/// What there is to say about the text as it stands.
fn judge(model: &Model, theme: Theme, symbol: kconfig::SymbolId, text: &str) -> Line<'static> {
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
    // Right in itself, but not together with the rest: taken, and marked until the rest is changed too.
    let known = |message: &String| model.problems.iter().any(|problem| problem.message == *message);
    let clash =
        config::check(&model.schema, &with).into_iter().map(|problem| problem.message).find(|message| !known(message));
    match (clash, &rule.example) {
        (Some(message), _) => Line::styled(format!("but then {message}"), theme.custom()),
        (None, Some(example)) => Line::styled(format!("right; example: {example}"), theme.notice()),
        (None, None) => Line::styled("right", theme.notice()),
    }
}

/// One line of text, scrolled so that the cursor is in sight.
fn draw_field(line: &LineEdit, secret: bool, area: Rect, buffer: &mut Buffer) -> Position {
    let shown = |text: &str| if secret { "*".repeat(text.chars().count()) } else { text.to_owned() };
    let (text, before) = (shown(line.text()), shown(line.before_cursor()));
    let room = usize::from(area.width).saturating_sub(1);
    let mut hidden = 0;
    while Span::raw(&before[hidden..]).width() > room {
        hidden += before[hidden..].chars().next().map_or(1, char::len_utf8);
    }
    buffer.set_style(area, Theme::cursor());
    buffer.set_stringn(area.x, area.y, &text[hidden..], usize::from(area.width), Theme::cursor());
    let column = u16::try_from(Span::raw(&before[hidden..]).width()).unwrap_or(0);
    Position { x: area.x + column, y: area.y }
}

fn draw_pick(theme: Theme, pick: &Pick, area: Rect, buffer: &mut Buffer) {
    let widest = pick.options.iter().map(|option| Span::raw(&option.label).width() + 4).max().unwrap_or(0);
    let width = widest.max(Span::raw(&pick.title).width() + 2).max(24);
    let count = pick.options.len();
    let inner = frame(theme, &pick.title, (to_u16(width), to_u16(count)), area, buffer);
    let height = usize::from(inner.height);
    let first = pick.cursor.saturating_sub(height / 2).min(count.saturating_sub(height));
    for ((index, option), row) in pick.options.iter().enumerate().skip(first).zip(inner.rows()) {
        let mark = if option.current { "(X) " } else { "( ) " };
        let label = shorten(&option.label, usize::from(row.width).saturating_sub(4));
        Line::from(vec![Span::styled(mark, theme.value()), Span::raw(label)]).render(row, buffer);
        if index == pick.cursor {
            buffer.set_style(row, Theme::cursor());
        }
    }
}

fn draw_lines(theme: Theme, title: &str, lines: Vec<Line<'static>>, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let width = area.width.saturating_sub(6).min(90);
    let lines = wrap(lines, width);
    let needed = lines.len();
    let inner =
        frame(theme, title, (width, to_u16(needed)), Rect { height: area.height.saturating_sub(1), ..area }, buffer);
    let most = needed.saturating_sub(usize::from(inner.height));
    let scroll = scroll.min(most);
    Paragraph::new(lines).scroll((to_u16(scroll), 0)).render(inner, buffer);
    let edge = inner.right();
    if scroll > 0 {
        buffer.set_string(edge, inner.top(), "↑", Theme::key());
    }
    if scroll < most {
        buffer.set_string(edge, inner.bottom().saturating_sub(1), "↓", Theme::key());
    }
}

fn key_lines(theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for context in Context::ALL {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::styled(context.title(), theme.title()));
        for binding in keymap::bindings(context) {
            lines.push(Line::from(vec![
                Span::styled(format!("{:>24}  ", binding.names()), Theme::key()),
                Span::raw(binding.help),
            ]));
        }
    }
    lines
}

fn draw_quit(model: &Model, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let question = match model.saved {
        Some(_) => format!("Your changes are not in {} yet.", model.file),
        None => format!("{} does not exist yet.", model.file),
    };
    let mut lines = vec![Line::raw(question), Line::default()];
    lines.extend(answers(Context::Quit));
    let inner = frame(theme, "Save before leaving?", (46, to_u16(lines.len())), area, buffer);
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(inner, buffer);
}

fn draw_save(theme: Theme, reasons: &[String], scroll: usize, overwrite: bool, area: Rect, buffer: &mut Buffer) {
    let title = if overwrite { "The file has changed on disk" } else { "Something is not right yet" };
    let mut lines: Vec<Line<'static>> =
        reasons.iter().map(|reason| Line::styled(reason.clone(), theme.error())).collect();
    lines.push(Line::default());
    lines.extend(answers(Context::Save));
    draw_lines(theme, title, lines, scroll, area, buffer);
}

/// The keys of a question, one a line.
fn answers(context: Context) -> impl Iterator<Item = Line<'static>> {
    keymap::hints(context)
        .map(move |(key, what)| Line::from(vec![Span::styled(format!("{key:>5}  "), Theme::key()), Span::raw(what)]))
}

fn to_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
