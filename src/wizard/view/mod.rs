//! The screen: a pure function of the model. Nothing is remembered between two frames.

mod details;
mod dialog;
mod drawn;
mod editors;
mod frame;
mod guide;
mod lists;
mod menu;
mod text;
mod theme;
mod wrap;

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Widget as _, Wrap};

pub(super) use self::drawn::Drawn;
pub(super) use self::editors::expected;
pub(super) use self::text::problem_line;
use self::text::shorten;
use self::theme::Theme;
use super::keymap::{self, Hint, KeyContext};
use super::model::Model;
use super::msg::Msg;
use crate::config::Problem;

/// Below this nothing can be read.
const SMALLEST: (u16, u16) = (44, 12);
/// From this width on, the details stand beside the menu.
const WIDE: u16 = 110;

/// Whether nothing can be read, so that keys must change nothing.
pub(super) const fn is_too_small(area: Rect) -> bool {
    area.width < SMALLEST.0 || area.height < SMALLEST.1
}

/// Draws everything.
pub(super) fn view(model: &Model, area: Rect, buffer: &mut Buffer) -> Drawn {
    let theme = Theme::new(model.colour, model.ascii);
    if is_too_small(area) {
        draw_too_small(area, buffer);
        return Drawn::default();
    }
    let said = foot_lines(model, theme, area.width);
    let [head, path, body, foot, keys] = lines(area, said.len());
    draw_head(model, head, buffer);
    let mut drawn = Drawn::default();
    if let Some(guide) = &model.guide {
        guide::draw_path(model, theme, guide, path, buffer);
        drawn = guide::draw(model, theme, guide, body, buffer);
    } else {
        draw_path(model, theme, path, buffer);
        draw_body(model, theme, body, buffer);
    }
    Paragraph::new(said).render(foot, buffer);
    draw_keys(model, keys, buffer);
    model.dialogs.iter().fold(drawn, |_, dialog| dialog::draw(model, theme, dialog, area, buffer))
}

/// What is said at the foot takes no more lines than this.
const HIGHEST_FOOT: u16 = 4;

/// Head, path, body, foot of so many lines, and keys.
fn lines(area: Rect, foot: usize) -> [Rect; 5] {
    let foot = frame::to_u16(foot).clamp(1, HIGHEST_FOOT.min(area.height / 5));
    Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(foot),
        Constraint::Length(1),
    ])
    .areas(area)
}

/// All about an entry as lines without any style.
pub(super) fn plain_details(model: &Model, node: kconfig::NodeId, width: Option<u16>) -> Vec<String> {
    let lines = wrap::wrap(details::full(model, Theme::new(false, true), node), width.unwrap_or(78));
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

/// A text as lines of at most this width.
pub(super) fn plain_lines(text: &str, width: Option<u16>) -> Vec<String> {
    let lines = text.split('\n').map(|line| Line::raw(line.to_owned())).collect();
    wrap::wrap(lines, width.unwrap_or(u16::MAX)).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

/// What a click on this cell means.
pub(super) fn hit(model: &Model, area: Rect, at: Position) -> Option<Msg> {
    let theme = Theme::new(model.colour, model.ascii);
    let [_, path, body, _, keys] = lines(area, foot_lines(model, theme, area.width).len());
    if keys.contains(at) {
        return hit_key(model, keys.width, at.x);
    }
    if !model.dialogs.is_empty() {
        return dialog::hit(model, theme, area, at);
    }
    if let Some(guide) = &model.guide {
        return guide::hit(guide, body, at);
    }
    if path.contains(at) {
        return hit_path(model, path, at.x);
    }
    let list = menu_area(model, body);
    if !list.contains(at) {
        return None;
    }
    let line = menu::first_line(model, list) + usize::from(at.y - list.y);
    if line >= model.rows().len() {
        return None;
    }
    Some(if line == model.place().cursor { Msg::Open } else { Msg::Select(line) })
}

/// The hints for which the last line has room. The last ones give way, but for the key that lists
/// all keys.
fn key_hints(context: KeyContext, width: u16) -> Vec<Hint> {
    let mut hints: Vec<Hint> = keymap::hints(context).collect();
    // Behind the last one stands a blank, which may be missing.
    while hints.iter().map(hint_width).sum::<usize>() > usize::from(width) + 1 {
        let Some(last) = hints.iter().rposition(|hint| hint.msg != Msg::Keys) else { break };
        hints.remove(last);
    }
    hints
}

fn hint_width(hint: &Hint) -> usize {
    Span::raw(hint.key.as_str()).width() + Span::raw(hint.what).width() + 3
}

/// The hint under a column of the last line.
fn hit_key(model: &Model, width: u16, column: u16) -> Option<Msg> {
    let mut end = 0;
    for hint in key_hints(model.context(), width) {
        end += hint_width(&hint);
        if usize::from(column) < end {
            return Some(hint.msg);
        }
    }
    None
}

/// The menu of the path under a column: back to it.
fn hit_path(model: &Model, area: Rect, column: u16) -> Option<Msg> {
    let full = path_text(model);
    if Span::raw(&full).width() > path_room(area) {
        // Only the innermost menu is named; what stands before it is the way back.
        return (column < 4).then_some(Msg::Back);
    }
    let before = usize::from(column.checked_sub(area.x + 1)?);
    let mut end = 0;
    for (at, name) in full.split(PATH).enumerate() {
        end += Span::raw(name).width();
        if before < end {
            return (at + 1 < model.places.len()).then_some(Msg::To(at + 1));
        }
        end += PATH.len();
    }
    None
}

fn draw_too_small(area: Rect, buffer: &mut Buffer) {
    let (width, height) = SMALLEST;
    let text = format!(
        "This window is too small: {}x{}. The wizard needs {width}x{height}. Ctrl-C leaves; answers that are not saved are offered at the next start.",
        area.width, area.height
    );
    Clear.render(area, buffer);
    Paragraph::new(text).wrap(Wrap { trim: true }).render(area, buffer);
}

fn draw_head(model: &Model, area: Rect, buffer: &mut Buffer) {
    let title = model.title(model.schema.tree().root());
    buffer.set_style(area, Theme::bar());
    let state = match (&model.saved, model.is_unsaved()) {
        (None, _) => " (new)",
        (_, true) => " (changed)",
        _ => "",
    };
    let file = format!("{}{state} ", model.file);
    let room = usize::from(area.width).saturating_sub(Span::raw(&file).width() + 2);
    Line::from(format!(" {}", shorten(title, room))).render(area, buffer);
    Line::from(file).alignment(Alignment::Right).render(area, buffer);
}

fn draw_path(model: &Model, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let (full, room) = (path_text(model), path_room(area));
    let text = match full.rsplit_once(PATH) {
        // The innermost menu is the one to know.
        Some((_, last)) if Span::raw(&full).width() > room => shorten(&format!("...{PATH}{last}"), room),
        _ => full,
    };
    Line::styled(format!(" {text}"), theme.title()).render(area, buffer);
}

/// Between two menus of the path.
const PATH: &str = " > ";

/// The menus from the top to the open one.
fn path_text(model: &Model) -> String {
    let menus = model.places.iter().skip(1).map(|place| model.title(place.menu));
    std::iter::once("Top").chain(menus).collect::<Vec<_>>().join(PATH)
}

fn path_room(area: Rect) -> usize {
    usize::from(area.width).saturating_sub(2)
}

/// The menu, what is between, and the details: side by side where there is room.
fn parts(model: &Model, area: Rect) -> [Rect; 3] {
    if area.width >= WIDE {
        return Layout::horizontal([Constraint::Percentage(52), Constraint::Length(3), Constraint::Min(1)]).areas(area);
    }
    // The menu takes what it needs and leaves the details at least a few lines.
    let wanted = u16::try_from(model.rows().len()).unwrap_or(u16::MAX);
    let most = area.height.saturating_sub(1) * 3 / 5;
    Layout::vertical([Constraint::Length(wanted.clamp(3, most.max(3))), Constraint::Length(1), Constraint::Min(1)])
        .areas(area)
}

fn menu_area(model: &Model, body: Rect) -> Rect {
    let [menu, ..] = parts(model, body);
    menu
}

fn draw_body(model: &Model, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let [menu, line, details] = parts(model, area);
    menu::draw(model, theme, menu, buffer);
    if area.width >= WIDE {
        for row in line.rows() {
            buffer.set_string(row.x + 1, row.y, theme.vertical(), Theme::frame());
        }
        return details::draw_pane(model, theme, details, buffer);
    }
    buffer.set_string(line.x, line.y, theme.horizontal().repeat(usize::from(line.width)), Theme::frame());
    let inner = Rect { x: details.x + 1, width: details.width.saturating_sub(2), ..details };
    details::draw_pane(model, theme, inner, buffer);
}

/// What the last key did, or what is wrong.
fn foot_lines(model: &Model, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let wrong: Vec<&Problem> = model.errors().collect();
    let (text, style) = match (&model.notice, wrong.as_slice()) {
        (Some(notice), _) if notice.is_error => (notice.text.clone(), theme.error()),
        (Some(notice), _) => (notice.text.clone(), theme.notice()),
        (None, []) => return Vec::new(),
        (None, [problem]) => (format!("! {}", problem.message), theme.error()),
        (None, many) => {
            let where_to = if model.guide.is_some() { "the summary lists them" } else { "! lists them" };
            (format!("! {} things are wrong; {where_to}", many.len()), theme.error())
        }
    };
    wrap::wrap(vec![Line::styled(format!(" {text}"), style)], width.saturating_sub(1))
}

fn draw_keys(model: &Model, area: Rect, buffer: &mut Buffer) {
    buffer.set_style(area, Theme::bar());
    let mut line = Line::default();
    for hint in key_hints(model.context(), area.width) {
        line.push_span(Span::styled(format!(" {}", hint.key), Theme::key()));
        line.push_span(Span::raw(format!(" {} ", hint.what)));
    }
    line.render(area, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hint_is_cut_and_the_way_to_all_keys_stays() {
        for context in KeyContext::ALL {
            let all: Vec<Hint> = keymap::hints(context).collect();
            for width in SMALLEST.0..=200 {
                let hints = key_hints(context, width);
                let used: usize = hints.iter().map(hint_width).sum();
                assert!(used <= usize::from(width) + 1, "{context:?} at {width}: {used}");
                let lists = |hints: &[Hint]| hints.iter().any(|hint| hint.msg == Msg::Keys);
                assert_eq!(lists(&hints), lists(&all), "{context:?} at {width}");
                assert!(!hints.is_empty(), "{context:?} at {width}");
            }
        }
    }
}
