//! The screen: a pure function of the model. Nothing is remembered between two frames.

mod details;
mod dialog;
mod menu;
mod theme;
mod wrap;

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Widget as _, Wrap};

use self::theme::Theme;
use super::keymap;
use super::model::Model;

/// Below this nothing can be read.
const SMALLEST: (u16, u16) = (44, 12);
/// From this width on, the details stand beside the menu.
const WIDE: u16 = 110;

/// Draws everything; returns where the terminal's cursor belongs, if anywhere.
pub(super) fn view(model: &Model, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let theme = Theme::new(model.colour);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        draw_too_small(area, buffer);
        return None;
    }
    let [head, path, body, foot, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_head(model, head, buffer);
    draw_path(model, theme, path, buffer);
    draw_body(model, theme, body, buffer);
    draw_foot(model, theme, foot, buffer);
    draw_keys(model, keys, buffer);
    model.dialogs.iter().fold(None, |_, dialog| dialog::draw(model, theme, dialog, area, buffer))
}

fn draw_too_small(area: Rect, buffer: &mut Buffer) {
    let (width, height) = SMALLEST;
    let text = format!(
        "This window is too small: {}x{}. The wizard needs {width}x{height}; make it larger.",
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
    let names: Vec<&str> = model.places.iter().skip(1).map(|place| model.title(place.menu)).collect();
    let full = std::iter::once("Top").chain(names.iter().copied()).collect::<Vec<_>>().join(" > ");
    let room = usize::from(area.width).saturating_sub(2);
    let text = match (Span::raw(&full).width() > room, names.last()) {
        // The innermost menu is the one to know.
        (true, Some(last)) => shorten(&format!("... > {last}"), room),
        _ => full,
    };
    Line::styled(format!(" {text}"), theme.title()).render(area, buffer);
}

fn draw_body(model: &Model, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.width >= WIDE {
        let [left, line, right] =
            Layout::horizontal([Constraint::Percentage(52), Constraint::Length(3), Constraint::Min(1)]).areas(area);
        menu::draw(model, theme, left, buffer);
        for row in line.rows() {
            buffer.set_string(row.x + 1, row.y, theme::VERTICAL, Theme::frame());
        }
        details::draw_pane(model, theme, right, buffer);
        return;
    }
    // The menu takes what it needs and leaves the details at least a few lines.
    let wanted = u16::try_from(model.rows().len()).unwrap_or(u16::MAX);
    let most = area.height.saturating_sub(1) * 3 / 5;
    let [top, line, bottom] =
        Layout::vertical([Constraint::Length(wanted.clamp(3, most.max(3))), Constraint::Length(1), Constraint::Min(1)])
            .areas(area);
    menu::draw(model, theme, top, buffer);
    buffer.set_string(line.x, line.y, theme::HORIZONTAL.repeat(usize::from(line.width)), Theme::frame());
    let inner = Rect { x: bottom.x + 1, width: bottom.width.saturating_sub(2), ..bottom };
    details::draw_pane(model, theme, inner, buffer);
}

fn draw_foot(model: &Model, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width).saturating_sub(2);
    let (text, style) = match (&model.notice, model.problems.as_slice()) {
        (Some(notice), _) if notice.is_error => (notice.text.clone(), theme.error()),
        (Some(notice), _) => (notice.text.clone(), theme.notice()),
        (None, []) => return,
        (None, [problem]) => (format!("! {}", problem.message), theme.error()),
        (None, many) => (format!("! {} things are wrong; follow the ! marks", many.len()), theme.error()),
    };
    Line::styled(format!(" {}", shorten(&text, room)), style).render(area, buffer);
}

fn draw_keys(model: &Model, area: Rect, buffer: &mut Buffer) {
    buffer.set_style(area, Theme::bar());
    let mut line = Line::default();
    for (key, what) in keymap::hints(model.context()) {
        line.push_span(Span::styled(format!(" {key}"), Theme::key()));
        line.push_span(Span::raw(format!(" {what} ")));
    }
    line.render(area, buffer);
}

/// The text, or its beginning and three dots.
fn shorten(text: &str, room: usize) -> String {
    if Span::raw(text).width() <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if Span::raw(format!("{short}{c}")).width() + 3 > room {
            break;
        }
        short.push(c);
    }
    format!("{short}...")
}
