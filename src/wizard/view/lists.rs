//! Dialogs that are lists: what was found, elements, fields, what is wrong.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _};

use super::editors::draw_field;
use super::frame::{frame, to_u16};
use super::theme::Theme;
use super::wrap::wrap;
use super::{Drawn, details, shorten};
use crate::wizard::items::{Fields, Items};
use crate::wizard::model::Model;
use crate::wizard::rows::row_of;
use crate::wizard::search::{Search, SearchHit};

/// What is typed, what was found, and all about the hit under the cursor.
pub(super) fn draw_search(model: &Model, theme: Theme, search: &Search, area: Rect, buffer: &mut Buffer) -> Position {
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    let inner = frame(theme, "Find", (area.width.saturating_sub(6), area.height.saturating_sub(4)), area, buffer);
    let field = Rect { height: 1, ..inner };
    let cursor = draw_field(&search.line, false, field, buffer);
    let count = match (search.line.text().trim(), search.hits.len()) {
        ("", _) => "names, prompts and help texts; several words must all be there".to_owned(),
        (_, 0) => "nothing is like that".to_owned(),
        (_, 1) => "1 entry".to_owned(),
        (_, count) => format!("{count} entries, the nearest first"),
    };
    Line::styled(count, Theme::dim()).render(Rect { y: inner.y + 1, height: 1, ..inner }, buffer);
    let rest = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let list = Rect { height: rest.height * 3 / 5, ..rest };
    let lines = search.hits.iter().map(|(node, found)| hit_line(model, theme, *node, *found, list.width));
    draw_choices(theme, lines.collect(), search.cursor, list, buffer);
    let below = Rect { y: list.bottom() + 1, height: rest.height.saturating_sub(list.height + 1), ..rest };
    if let Some((node, _)) = search.hits.get(search.cursor) {
        let mut lines = vec![Line::styled(way_to(model, *node), theme.title())];
        lines.extend(details::full(model, theme, *node));
        Paragraph::new(wrap(lines, below.width)).render(below, buffer);
    }
    cursor
}

fn hit_line(model: &Model, theme: Theme, node: kconfig::NodeId, found: SearchHit, width: u16) -> Line<'static> {
    let tree = model.schema.tree();
    let prompt = model.title(node).to_owned();
    let name = tree.node(node).symbol.map_or("", |symbol| &tree.get(symbol).name);
    let value = row_of(model, node).map_or_else(String::new, |row| row.value);
    let room = usize::from(width).saturating_sub(Span::raw(&value).width() + 4);
    let remark = if found == SearchHit::Help { " (in its help)" } else { "" };
    let seen = model.config.node_visible(node);
    let style = if seen { ratatui::style::Style::new() } else { Theme::dim() };
    let mark = if seen { "  " } else { "x " };
    let title = shorten(&format!("{prompt}{remark}"), room * 3 / 5);
    let gap = " ".repeat((room * 3 / 5).saturating_sub(Span::raw(&title).width()) + 1);
    let name = shorten(name, room * 2 / 5);
    let gap_of_name = " ".repeat((room * 2 / 5).saturating_sub(Span::raw(&name).width()) + 1);
    Line::from(vec![
        Span::styled(mark, Theme::dim()),
        Span::styled(title, style),
        Span::raw(gap),
        Span::styled(name, Theme::dim()),
        Span::raw(gap_of_name),
        Span::styled(value, theme.value()),
    ])
}

/// The menus around an entry.
fn way_to(model: &Model, node: kconfig::NodeId) -> String {
    let tree = model.schema.tree();
    let mut menus: Vec<&str> = std::iter::successors(tree.node(node).parent, |at| tree.node(*at).parent)
        .filter(|at| *at != tree.root() && tree.node(*at).prompt.is_some())
        .map(|at| model.title(at))
        .collect();
    menus.push("Top");
    menus.reverse();
    menus.join(" > ")
}

/// Lines of which one is under the cursor.
fn draw_choices(theme: Theme, lines: Vec<Line<'static>>, cursor: usize, area: Rect, buffer: &mut Buffer) {
    let (height, count) = (usize::from(area.height), lines.len());
    let first = cursor.saturating_sub(height / 2).min(count.saturating_sub(height));
    for ((index, line), row) in lines.into_iter().enumerate().skip(first).zip(area.rows()) {
        line.render(row, buffer);
        if index == cursor {
            buffer.set_style(row, Theme::cursor());
        }
    }
    if first > 0 {
        buffer.set_string(area.right(), area.top(), theme.up(), Theme::key());
    }
    if first + height < count {
        buffer.set_string(area.right(), area.bottom().saturating_sub(1), theme.down(), Theme::key());
    }
}

/// A list of lines with something to say below it.
struct Listing<'a> {
    title: &'a str,
    lines: Vec<Line<'static>>,
    cursor: usize,
    below: Vec<Line<'static>>,
}

impl Listing<'_> {
    fn draw(self, theme: Theme, area: Rect, buffer: &mut Buffer) -> Drawn {
        let area = Rect { height: area.height.saturating_sub(1), ..area };
        let widest = self.lines.iter().chain(&self.below).map(Line::width).max().unwrap_or(0);
        let width = to_u16(widest).max(40).min(area.width.saturating_sub(6));
        let below = wrap(self.below, width);
        let inner = frame(theme, self.title, (width, to_u16(self.lines.len() + below.len() + 1)), area, buffer);
        let foot = to_u16(below.len()).min(inner.height.saturating_sub(2));
        let list = Rect { height: inner.height.saturating_sub(foot + 1), ..inner };
        draw_choices(theme, self.lines, self.cursor, list, buffer);
        Paragraph::new(below).render(Rect { y: inner.bottom().saturating_sub(foot), height: foot, ..inner }, buffer);
        Drawn::default()
    }
}

/// The elements of a list.
pub(super) fn draw_items(model: &Model, theme: Theme, items: &Items, area: Rect, buffer: &mut Buffer) -> Drawn {
    let title = model.schema.prompt(items.symbol).unwrap_or(model.schema.name(items.symbol));
    let empty = || vec![Line::styled("(empty; a adds an element)", Theme::dim())];
    let rows: Vec<Line<'static>> = items.rows.iter().map(|row| Line::raw(items.summary(row))).collect();
    let below = match &items.wrong {
        Some(why) => vec![Line::styled(why.clone(), theme.error())],
        None => vec![Line::styled(items.expected(), Theme::dim())],
    };
    let lines = if rows.is_empty() { empty() } else { rows };
    Listing { title, lines, cursor: items.cursor, below }.draw(theme, area, buffer)
}

/// The fields of an element.
pub(super) fn draw_fields(theme: Theme, fields: &Fields, area: Rect, buffer: &mut Buffer) -> Drawn {
    let width = fields.columns.iter().map(|field| Span::raw(&field.name).width()).max().unwrap_or(0);
    let line = |(field, text): (&crate::config::format::Field, &String)| {
        let gap = " ".repeat(width.saturating_sub(Span::raw(&field.name).width()) + 2);
        let shown = match (text.as_str(), field.required) {
            ("", true) => Span::styled("(needed)", theme.error()),
            ("", false) => Span::styled("(left out)", Theme::dim()),
            (text, _) => Span::styled(text.to_owned(), theme.value()),
        };
        Line::from(vec![Span::raw(format!("{}{gap}", field.name)), shown])
    };
    let lines = fields.columns.iter().zip(&fields.texts).map(line).collect();
    let expected = fields.columns.get(fields.cursor).map(|field| format!("Expected: {}", field.format));
    let below = match &fields.wrong {
        Some(why) => vec![Line::styled(why.clone(), theme.error())],
        None => vec![Line::styled(expected.unwrap_or_default(), Theme::dim())],
    };
    Listing { title: fields.title(), lines, cursor: fields.cursor, below }.draw(theme, area, buffer)
}

/// What is wrong.
pub(super) fn draw_problems(model: &Model, theme: Theme, cursor: usize, area: Rect, buffer: &mut Buffer) -> Drawn {
    let room = usize::from(area.width).saturating_sub(8);
    let lines = model.problems.iter().map(|problem| Line::styled(shorten(&problem.message, room), theme.error()));
    let below = model.problems.get(cursor).map(|problem| Line::raw(problem.message.clone()));
    let lines = lines.collect();
    Listing { title: "What is wrong", lines, cursor, below: below.into_iter().collect() }.draw(theme, area, buffer)
}
