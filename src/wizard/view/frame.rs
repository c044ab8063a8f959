//! The frame around a dialog, in the middle of the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::{Block, Clear, Widget as _};

use super::text::shorten;
use super::theme::Theme;

/// What is inside a frame of this inner size in the middle.
pub(super) fn frame_area(inner: (u16, u16), area: Rect) -> Rect {
    let outer = outer_area(inner, area);
    Rect {
        x: outer.x + 2,
        y: outer.y + 1,
        width: outer.width.saturating_sub(4),
        height: outer.height.saturating_sub(2),
    }
}

fn outer_area(inner: (u16, u16), area: Rect) -> Rect {
    let width = inner.0.saturating_add(4).min(area.width.saturating_sub(2));
    let height = inner.1.saturating_add(2).min(area.height.saturating_sub(2));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// Clears a frame of this inner size in the middle and returns what is inside.
pub(super) fn frame(theme: Theme, title: &str, inner: (u16, u16), area: Rect, buffer: &mut Buffer) -> Rect {
    let outer = outer_area(inner, area);
    // A column beside it, too: half a sign of the screen behind would stand there.
    let around = Rect { x: outer.x.saturating_sub(1), width: outer.width.saturating_add(2), ..outer };
    Clear.render(around.intersection(area), buffer);
    let title = shorten(title, usize::from(outer.width.saturating_sub(4)));
    let block = Block::bordered()
        .border_set(theme.border())
        .border_style(Theme::frame())
        .title(Span::styled(format!(" {title} "), theme.title()));
    block.render(outer, buffer);
    frame_area(inner, area)
}

/// A size on the screen; the largest one where it is larger.
pub(super) fn to_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
