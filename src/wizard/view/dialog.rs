//! What lies over the menus: editors, lists, questions, text.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _};

use super::drawn::Drawn;
use super::frame::{frame, frame_area, to_u16};
use super::text::shorten;
use super::theme::Theme;
use super::wrap::wrap;
use super::{details, editors, lists};
use crate::wizard::dialog::{Dialog, FilePreview, Pick, PickOption, PickPurpose, Repair, Tab};
use crate::wizard::keymap::{self, Hint, KeyContext};
use crate::wizard::model::Model;
use crate::wizard::msg::Msg;

/// Draws one dialog.
pub(super) fn draw(model: &Model, theme: Theme, dialog: &Dialog, area: Rect, buffer: &mut Buffer) -> Drawn {
    match dialog {
        Dialog::Edit { symbol, line, completions } => {
            Drawn::at(editors::draw_edit(model, theme, *symbol, (line, completions), area, buffer))
        }
        Dialog::Cell(cell) => Drawn::at(editors::draw_cell(theme, cell, area, buffer)),
        Dialog::Path { purpose, line, completions } => {
            Drawn::at(editors::draw_path(theme, *purpose, (line, completions), area, buffer))
        }
        Dialog::Search(search) => Drawn::at(lists::draw_search(model, theme, search, area, buffer)),
        Dialog::Pick(pick) => draw_pick(theme, pick, area, buffer),
        Dialog::Items(items) => lists::draw_items(model, theme, items, area, buffer),
        Dialog::Fields(fields) => lists::draw_fields(theme, fields, area, buffer),
        Dialog::Pasted { lines, scroll, .. } => draw_pasted(theme, lines, *scroll, area, buffer),
        Dialog::Problems { cursor } => lists::draw_problems(model, theme, *cursor, area, buffer),
        Dialog::Repair(repair) => draw_repair(model, theme, repair, area, buffer),
        Dialog::Preview(preview) => draw_preview(model, theme, preview, area, buffer),
        Dialog::Details { node, scroll } => {
            let lines = details::full(model, theme, *node);
            draw_lines(theme, model.title(*node), lines, *scroll, area, buffer)
        }
        Dialog::Keys { scroll } => {
            draw_lines(theme, "Keys", key_lines(theme, model.context_before()), *scroll, area, buffer)
        }
        Dialog::Text { title, lines, scroll } => {
            let lines = lines.iter().map(|line| Line::raw(line.clone())).collect();
            draw_lines(theme, title, lines, *scroll, area, buffer)
        }
        Dialog::Quit { lines, scroll } => draw_quit(model, theme, lines, *scroll, area, buffer),
        Dialog::Save { lines, scroll } => draw_save(theme, lines, *scroll, area, buffer),
        Dialog::Conflict { lines, scroll, .. } => {
            draw_conflict(theme, lines, (dialog.context(), *scroll), area, buffer)
        }
        Dialog::Recover { lines, scroll, .. } => draw_recover(theme, lines, *scroll, area, buffer),
    }
}

/// What a click means while a dialog is open: a line of a list is chosen, an answer is given; a
/// click beside them does nothing.
pub(super) fn hit(model: &Model, theme: Theme, area: Rect, at: Position) -> Option<Msg> {
    let Some(Dialog::Pick(pick)) = model.dialogs.last() else {
        return lists::hit(model, theme, area, at).or_else(|| hit_answer(model, theme, area, at));
    };
    let (size, foot) = measure_pick(pick, area);
    let (list, _) = lists::split(frame_area(size, area), foot);
    let line = lists::line_at(pick.cursor, pick.options.len(), list, at);
    line.map(|line| if line == pick.cursor { Msg::Accept } else { Msg::Select(line) })
}

/// The answer of a question in which this cell lies, as it is drawn.
fn hit_answer(model: &Model, theme: Theme, area: Rect, at: Position) -> Option<Msg> {
    let mut buffer = Buffer::empty(area);
    draw(model, theme, model.dialogs.last()?, area, &mut buffer);
    let row: String = (area.left()..area.right()).filter_map(|x| Some(buffer.cell((x, at.y))?.symbol())).collect();
    keymap::hints(model.context()).find_map(|hint| {
        let start = row.find(&answer_text(&hint))?;
        let first = row[..start].chars().count();
        let columns = first..first + answer_text(&hint).chars().count();
        columns.contains(&usize::from(at.x.checked_sub(area.x)?)).then_some(hint.msg)
    })
}

/// The size of a list to pick from, and how many lines of it the whole text of an option needs
/// where some have to be cut.
fn measure_pick(pick: &Pick, area: Rect) -> ((u16, u16), usize) {
    let widths = pick.options.iter().map(|option| Span::raw(&option.label).width() + 4);
    let width = to_u16(widths.max().unwrap_or(0).max(Span::raw(&pick.title).width() + 2).max(24));
    let room = area.width.saturating_sub(6);
    let whole = pick.options.iter().filter(|_| width > room).map(|option| whole_label(option, room).len());
    let foot = whole.max().unwrap_or(0);
    ((width.min(room), to_u16(pick.options.len() + if foot > 0 { foot + 1 } else { 0 })), foot)
}

fn whole_label(option: &PickOption, width: u16) -> Vec<Line<'static>> {
    wrap(vec![Line::styled(option.label.clone(), Theme::dim())], width)
}

fn draw_pick(theme: Theme, pick: &Pick, area: Rect, buffer: &mut Buffer) -> Drawn {
    let (size, foot) = measure_pick(pick, area);
    let inner = frame(theme, &pick.title, size, area, buffer);
    let (list, below) = lists::split(inner, foot);
    let lines = pick.options.iter().map(|option| {
        let mark = match pick.target {
            // These are things to do, none of which is so already.
            PickPurpose::Start | PickPurpose::Load => "",
            _ if option.current => "(X) ",
            _ => "( ) ",
        };
        let label = shorten(&option.label, usize::from(list.width).saturating_sub(4));
        Line::from(vec![Span::styled(mark, theme.value()), Span::raw(label)])
    });
    lists::draw_choices(theme, lines.collect(), pick.cursor, list, buffer);
    if let Some(option) = pick.options.get(pick.cursor).filter(|_| foot > 0) {
        Paragraph::new(whole_label(option, below.width)).render(below, buffer);
    }
    Drawn::default()
}

pub(super) fn draw_lines(
    theme: Theme,
    title: &str,
    lines: Vec<Line<'static>>,
    scroll: usize,
    area: Rect,
    buffer: &mut Buffer,
) -> Drawn {
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
        buffer.set_string(edge, inner.top(), theme.up(), Theme::key());
    }
    if scroll < most {
        buffer.set_string(edge, inner.bottom().saturating_sub(1), theme.down(), Theme::key());
    }
    Drawn::scrolls(most)
}

/// All keys, those first that one asked about.
fn key_lines(theme: Theme, first: KeyContext) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let others = KeyContext::ALL.into_iter().filter(|context| *context != first);
    for context in std::iter::once(first).chain(others) {
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

fn draw_quit(model: &Model, theme: Theme, changes: &[String], scroll: usize, area: Rect, buffer: &mut Buffer) -> Drawn {
    let question = match model.saved {
        Some(_) => format!("Your changes are not in {} yet.", model.file),
        None => format!("{} does not exist yet.", model.file),
    };
    let mut lines = vec![Line::raw(question), Line::default()];
    // Before the changes, which may be many.
    lines.extend(answers(KeyContext::Quit));
    if !changes.is_empty() {
        lines.push(Line::default());
        lines.extend(changes.iter().map(|change| Line::styled(change.clone(), theme.value())));
    }
    draw_lines(theme, "Save before leaving?", lines, scroll, area, buffer)
}

fn draw_save(theme: Theme, reasons: &[String], scroll: usize, area: Rect, buffer: &mut Buffer) -> Drawn {
    let mut lines: Vec<Line<'static>> =
        reasons.iter().map(|reason| Line::styled(reason.clone(), theme.error())).collect();
    lines.push(Line::default());
    lines.extend(answers(KeyContext::Save));
    draw_lines(theme, "Something is not right yet", lines, scroll, area, buffer)
}

fn draw_conflict(
    theme: Theme,
    differences: &[String],
    (context, scroll): (KeyContext, usize),
    area: Rect,
    buffer: &mut Buffer,
) -> Drawn {
    let mut lines: Vec<Line<'static>> = differences.iter().map(|line| Line::raw(line.clone())).collect();
    lines.push(Line::default());
    lines.extend(answers(context));
    draw_lines(theme, "The file has changed on disk", lines, scroll, area, buffer)
}

fn draw_pasted(theme: Theme, found: &[String], scroll: usize, area: Rect, buffer: &mut Buffer) -> Drawn {
    let mut lines: Vec<Line<'static>> = found.iter().map(|line| Line::styled(line.clone(), theme.value())).collect();
    lines.push(Line::default());
    lines.extend(answers(KeyContext::Pasted));
    draw_lines(theme, "Take this list over?", lines, scroll, area, buffer)
}

fn draw_recover(theme: Theme, changes: &[String], scroll: usize, area: Rect, buffer: &mut Buffer) -> Drawn {
    let mut lines =
        vec![Line::raw("A session ended before it saved. These answers of it are not in the file:"), Line::default()];
    lines.extend(changes.iter().map(|change| Line::styled(change.clone(), theme.value())));
    lines.push(Line::default());
    lines.extend(answers(KeyContext::Recover));
    draw_lines(theme, "Unsaved answers were kept", lines, scroll, area, buffer)
}

fn draw_repair(model: &Model, theme: Theme, repair: &Repair, area: Rect, buffer: &mut Buffer) -> Drawn {
    let name = model.schema.prompt(repair.symbol).unwrap_or(model.schema.name(repair.symbol));
    let mut lines = vec![Line::styled("Locked, because it", theme.title())];
    lines.extend(repair.reasons.iter().map(|reason| Line::raw(format!("  {reason}"))));
    lines.push(Line::default());
    if repair.steps.is_empty() {
        lines.push(Line::styled("No answers were found that would unlock it.", theme.error()));
    } else {
        lines.push(Line::styled("The fewest answers that unlock it", theme.title()));
        if !repair.others.is_empty() {
            let count = repair.others.len() + 1;
            lines.push(Line::raw(format!("  (way {} of {count}; Tab shows the next)", repair.number)));
        }
        let step = |(symbol, value): &(kconfig::SymbolId, String)| {
            let prompt = model.schema.prompt(*symbol).unwrap_or_default();
            Line::from(vec![
                Span::styled(
                    format!("  {}={}", model.schema.name(*symbol), model.shown(*symbol, value)),
                    theme.custom(),
                ),
                Span::styled(format!("  {prompt}"), Theme::dim()),
            ])
        };
        lines.extend(repair.steps.iter().map(step));
    }
    if !repair.effects.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled("What follows from them", theme.title()));
        lines.extend(repair.effects.iter().map(|effect| Line::raw(format!("  {effect}"))));
    }
    draw_lines(theme, name, lines, repair.scroll, area, buffer)
}

fn draw_preview(model: &Model, theme: Theme, preview: &FilePreview, area: Rect, buffer: &mut Buffer) -> Drawn {
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    let inner = frame(theme, "Preview", (area.width.saturating_sub(6), area.height.saturating_sub(4)), area, buffer);
    let mut tabs = Line::default();
    for tab in Tab::shown(model) {
        let style = if tab == preview.tab { Theme::cursor() } else { Theme::dim() };
        tabs.push_span(Span::styled(format!(" {} ", tab.title()), style));
        tabs.push_span(Span::raw(" "));
    }
    tabs.render(Rect { height: 1, ..inner }, buffer);
    let body = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let style = |line: &str| match line.chars().next() {
        Some('+') => theme.notice(),
        Some('-') => theme.error(),
        Some('~') => theme.custom(),
        _ => ratatui::style::Style::new(),
    };
    let is_file = preview.tab == Tab::File;
    let height = usize::from(body.height);
    let lines =
        preview.lines.iter().map(|line| Line::styled(line.clone(), if is_file { theme.value() } else { style(line) }));
    let lines = wrap(lines.collect(), body.width);
    let scroll = preview.scroll.min(lines.len().saturating_sub(height));
    Paragraph::new(lines.iter().skip(scroll).take(height).cloned().collect::<Vec<_>>()).render(body, buffer);
    if scroll > 0 {
        buffer.set_string(body.right(), body.top(), theme.up(), Theme::key());
    }
    if scroll + height < lines.len() {
        buffer.set_string(body.right(), body.bottom().saturating_sub(1), theme.down(), Theme::key());
    }
    Drawn::scrolls(lines.len().saturating_sub(height))
}

/// The keys of a question, one a line.
fn answers(context: KeyContext) -> impl Iterator<Item = Line<'static>> {
    keymap::hints(context).map(|hint| {
        let text = answer_text(&hint);
        let (key, what) = text.split_at(text.len() - hint.what.len());
        Line::from(vec![Span::styled(key.to_owned(), Theme::key()), Span::raw(what.to_owned())])
    })
}

fn answer_text(hint: &Hint) -> String {
    format!("{:>5}  {}", hint.key, hint.what)
}
