//! Dialogs that are lists: what was found, elements, fields, what is wrong.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _};

use super::details;
use super::drawn::Drawn;
use super::editors::draw_field;
use super::frame::{frame, frame_area, to_u16};
use super::text::shorten;
use super::theme::Theme;
use super::wrap::wrap;
use crate::wizard::dialog::Dialog;
use crate::wizard::items::{ElementFields, Items};
use crate::wizard::model::Model;
use crate::wizard::msg::Msg;
use crate::wizard::rows::row_of;
use crate::wizard::search::{Search, SearchHit};

/// What is typed, what was found, and all about the hit under the cursor.
pub(super) fn draw_search(model: &Model, theme: Theme, search: &Search, area: Rect, buffer: &mut Buffer) -> Position {
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    let inner = frame(theme, "Find", search_size(area), area, buffer);
    let field = Rect { height: 1, ..inner };
    let cursor = draw_field(&search.line, false, field, buffer);
    let count = match (search.line.text().trim(), search.hits.len()) {
        ("", _) => "prompts, names, menus, values and help; words in any order".to_owned(),
        (_, 0) => "nothing is like that".to_owned(),
        (_, 1) => "1 entry".to_owned(),
        (_, count) => format!("{count} entries, the nearest first"),
    };
    Line::styled(count, Theme::dim()).render(Rect { y: inner.y + 1, height: 1, ..inner }, buffer);
    let list = search_list(inner);
    let title = |(node, _): &(kconfig::NodeId, SearchHit)| model.title(*node);
    let is_twice = |hit| search.hits.iter().filter(|other| title(other) == title(hit)).nth(1).is_some();
    let (first, height) = (first_shown(search.cursor, search.hits.len(), list), usize::from(list.height));
    let shown = search.hits.iter().enumerate().map(|(at, hit)| {
        let is_seen = (first..first + height).contains(&at);
        if is_seen { hit_line(model, theme, *hit, is_twice(hit), list.width) } else { Line::default() }
    });
    draw_choices(theme, shown.collect(), search.cursor, list, buffer);
    let below = Rect { y: list.bottom() + 1, height: inner.bottom().saturating_sub(list.bottom() + 1), ..list };
    if let Some((node, _)) = search.hits.get(search.cursor) {
        let mut lines = vec![Line::styled(way_to(model, *node), theme.title())];
        lines.extend(details::full(model, theme, *node));
        Paragraph::new(wrap(lines, below.width)).render(below, buffer);
    }
    cursor
}

fn search_size(area: Rect) -> (u16, u16) {
    (area.width.saturating_sub(6), area.height.saturating_sub(4))
}

/// The lines of what was found, below what is typed.
fn search_list(inner: Rect) -> Rect {
    let rest = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    Rect { height: rest.height * 3 / 5, ..rest }
}

/// Prompt, name and value, each in a column of its own; the menu around it where another hit has
/// the same prompt.
fn hit_line(
    model: &Model,
    theme: Theme,
    (node, found): (kconfig::NodeId, SearchHit),
    is_twice: bool,
    width: u16,
) -> Line<'static> {
    let tree = model.schema.tree();
    let name = tree.node(node).symbol.map_or("", |symbol| &tree.get(symbol).name);
    let value =
        row_of(model, node).map_or_else(String::new, |row| if row.submenu { "--->".to_owned() } else { row.value });
    let mut title = model.title(node).to_owned();
    if is_twice && let Some(menu) = menus_around(model, node).last() {
        title = format!("{title} ({menu})");
    }
    if found == SearchHit::Help {
        title.push_str(" (in its help)");
    }
    let seen = model.config.node_visible(node);
    let style = if seen { ratatui::style::Style::new() } else { Theme::dim() };
    let room = usize::from(width).saturating_sub(4);
    let (titles, names) = (room * 9 / 20, room * 7 / 20);
    let fill = |text: String, columns: usize| {
        let gap = " ".repeat(columns.saturating_sub(Span::raw(&text).width()) + 1);
        text + &gap
    };
    Line::from(vec![
        Span::styled(if seen { "  " } else { "x " }, Theme::dim()),
        Span::styled(fill(shorten(&title, titles), titles), style),
        Span::styled(fill(end_of(name, names), names), Theme::dim()),
        Span::styled(shorten(&value, room * 4 / 20), theme.value()),
    ])
}

/// The name, or three dots and its end: that is where names differ.
fn end_of(name: &str, room: usize) -> String {
    let letters = name.chars().count();
    if letters <= room {
        return name.to_owned();
    }
    std::iter::repeat_n('.', 3).chain(name.chars().skip(letters + 3 - room.max(3))).collect()
}

/// The titles of the menus around an entry, the outermost first.
fn menus_around(model: &Model, node: kconfig::NodeId) -> Vec<&str> {
    let tree = model.schema.tree();
    let mut menus: Vec<&str> = std::iter::successors(tree.node(node).parent, |at| tree.node(*at).parent)
        .filter(|at| *at != tree.root() && tree.node(*at).prompt.is_some())
        .map(|at| model.title(at))
        .collect();
    menus.reverse();
    menus
}

/// The way through the menus to an entry.
fn way_to(model: &Model, node: kconfig::NodeId) -> String {
    std::iter::once("Top").chain(menus_around(model, node)).collect::<Vec<_>>().join(" > ")
}

/// The line at the top of a list, so that the cursor is in the middle.
pub(super) fn first_shown(cursor: usize, count: usize, area: Rect) -> usize {
    let height = usize::from(area.height);
    cursor.saturating_sub(height / 2).min(count.saturating_sub(height))
}

/// The line of a list that a click meets.
pub(super) fn line_at(cursor: usize, count: usize, list: Rect, at: Position) -> Option<usize> {
    let line = first_shown(cursor, count, list) + usize::from(at.y.checked_sub(list.y)?);
    (list.contains(at) && line < count).then_some(line)
}

/// What a click on a line of a list means: the cursor goes there, a second click is Enter.
pub(super) fn hit(model: &Model, theme: Theme, area: Rect, at: Position) -> Option<Msg> {
    let (line, cursor, open) = match model.dialogs.last()? {
        Dialog::Search(search) => {
            let area = Rect { height: area.height.saturating_sub(1), ..area };
            let list = search_list(frame_area(search_size(area), area));
            (line_at(search.cursor, search.hits.len(), list, at), search.cursor, Msg::Accept)
        }
        Dialog::Items(items) => (list_items(model, theme, items).line_at(area, at), items.cursor, Msg::Open),
        Dialog::Fields(fields) => (list_fields(theme, fields).line_at(area, at), fields.cursor, Msg::Open),
        Dialog::Problems { cursor } => {
            (list_problems(model, theme, *cursor, area).line_at(area, at), *cursor, Msg::Accept)
        }
        _ => return None,
    };
    line.map(|line| if line == cursor { open } else { Msg::Select(line) })
}

/// Lines of which one is under the cursor.
pub(super) fn draw_choices(theme: Theme, lines: Vec<Line<'static>>, cursor: usize, area: Rect, buffer: &mut Buffer) {
    let (height, count) = (usize::from(area.height), lines.len());
    let first = first_shown(cursor, count, area);
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
    /// As wide and high whatever line the cursor is on: so many lines below the list.
    steady: Option<usize>,
}

/// A dialog of a steady size is as wide as this where the screen is.
const STEADY: u16 = 76;

impl Listing<'_> {
    /// The size of what is inside of the frame, and what is said below the list.
    fn measure(&self, area: Rect) -> ((u16, u16), Vec<Line<'static>>) {
        let widest = self.lines.iter().chain(&self.below).map(Line::width).max().unwrap_or(0);
        let wanted = if self.steady.is_some() { STEADY } else { to_u16(widest).max(40) };
        let width = wanted.min(area.width.saturating_sub(6));
        let mut below = wrap(self.below.clone(), width);
        if let Some(height) = self.steady {
            below.resize(height, Line::default());
        }
        ((width, to_u16(self.lines.len() + below.len() + 1)), below)
    }

    fn draw(self, theme: Theme, area: Rect, buffer: &mut Buffer) -> Drawn {
        let area = Rect { height: area.height.saturating_sub(1), ..area };
        let (size, below) = self.measure(area);
        let inner = frame(theme, self.title, size, area, buffer);
        let (list, foot) = split(inner, below.len());
        let lines = self.lines.into_iter().map(|line| cut(line, usize::from(list.width))).collect();
        draw_choices(theme, lines, self.cursor, list, buffer);
        Paragraph::new(below).render(foot, buffer);
        Drawn::default()
    }

    /// The line that a click meets.
    fn line_at(&self, area: Rect, at: Position) -> Option<usize> {
        let area = Rect { height: area.height.saturating_sub(1), ..area };
        let (size, below) = self.measure(area);
        let (list, _) = split(frame_area(size, area), below.len());
        line_at(self.cursor, self.lines.len(), list, at)
    }
}

/// The line, with dots at its end where it is longer than there is room.
fn cut(mut line: Line<'static>, room: usize) -> Line<'static> {
    let mut left = room;
    for span in &mut line.spans {
        let width = span.width();
        if width > left {
            span.content = shorten(&span.content, left).into();
        }
        left = left.saturating_sub(width);
    }
    line
}

/// The list, and so many lines at the foot, with a free line between.
pub(super) fn split(inner: Rect, foot: usize) -> (Rect, Rect) {
    let foot = to_u16(foot).min(inner.height.saturating_sub(2));
    let list = Rect { height: inner.height.saturating_sub(if foot == 0 { 0 } else { foot + 1 }), ..inner };
    (list, Rect { y: inner.bottom().saturating_sub(foot), height: foot, ..inner })
}

/// The elements of a list.
pub(super) fn draw_items(model: &Model, theme: Theme, items: &Items, area: Rect, buffer: &mut Buffer) -> Drawn {
    list_items(model, theme, items).draw(theme, area, buffer)
}

fn list_items<'a>(model: &'a Model, theme: Theme, items: &Items) -> Listing<'a> {
    let title = model.schema.prompt(items.symbol).unwrap_or(model.schema.name(items.symbol));
    let empty = || vec![Line::styled("(empty; a adds an element)", Theme::dim())];
    let rows: Vec<Line<'static>> = items.rows.iter().map(|row| Line::raw(items.summary(row))).collect();
    let below = match &items.wrong {
        Some(why) => vec![Line::styled(why.clone(), theme.error())],
        None => vec![Line::styled(items.expected(), Theme::dim())],
    };
    let lines = if rows.is_empty() { empty() } else { rows };
    let steady = items.is_records().then_some(2);
    Listing { title, lines, cursor: items.cursor, below, steady }
}

/// The fields of an element.
pub(super) fn draw_fields(theme: Theme, fields: &ElementFields, area: Rect, buffer: &mut Buffer) -> Drawn {
    list_fields(theme, fields).draw(theme, area, buffer)
}

fn list_fields(theme: Theme, fields: &ElementFields) -> Listing<'_> {
    let width = fields.columns.iter().map(|field| Span::raw(&field.name).width()).max().unwrap_or(0);
    let line = |(column, text): (usize, &String)| {
        let field = &fields.columns[column];
        let gap = " ".repeat(width.saturating_sub(Span::raw(&field.name).width()) + 2);
        let shown = match (text.as_str(), field.required) {
            ("", true) => Span::styled("(needed)", theme.error()),
            ("", false) => {
                let default = fields.note(column).default.as_ref();
                Span::styled(
                    default.map_or_else(|| "(left out)".to_owned(), |text| format!("(left out: {text})")),
                    Theme::dim(),
                )
            }
            (text, _) => Span::styled(text.to_owned(), theme.value()),
        };
        Line::from(vec![Span::raw(format!("{}{gap}", field.name)), shown])
    };
    let lines = (0..fields.columns.len()).zip(&fields.texts).map(line).collect();
    let below = match &fields.wrong {
        Some(why) => vec![
            Line::styled(why.clone(), theme.error()),
            Line::styled("Esc once more leaves the element as it was.", Theme::dim()),
        ],
        None => describe_field(fields),
    };
    Listing { title: fields.title(), lines, cursor: fields.cursor, below, steady: Some(FIELD_LINES) }
}

/// Lines about the field under the cursor.
const FIELD_LINES: usize = 4;

/// What the field under the cursor must look like and is for.
fn describe_field(fields: &ElementFields) -> Vec<Line<'static>> {
    let Some(field) = fields.columns.get(fields.cursor) else { return Vec::new() };
    let expected = Line::styled(format!("Expected: {}", field.format), Theme::dim());
    let help = fields.note(fields.cursor).help.clone();
    std::iter::once(expected).chain(help.map(Line::raw)).collect()
}

/// What is wrong.
pub(super) fn draw_problems(model: &Model, theme: Theme, cursor: usize, area: Rect, buffer: &mut Buffer) -> Drawn {
    list_problems(model, theme, cursor, area).draw(theme, area, buffer)
}

fn list_problems(model: &Model, theme: Theme, cursor: usize, area: Rect) -> Listing<'static> {
    let room = usize::from(area.width).saturating_sub(8);
    let lines = model.problems.iter().map(|problem| {
        let line = theme.problem(problem);
        Line::styled(shorten(&line.to_string(), room), line.style)
    });
    let below = model.problems.get(cursor).map(|problem| Line::raw(problem.message.clone()));
    let lines = lines.collect();
    Listing { title: "What is wrong", lines, cursor, below: below.into_iter().collect(), steady: None }
}
