//! Every style of the wizard. Sixteen colours at most, so that the terminal's own palette decides; all of it readable without any.

use ratatui::style::{Color, Modifier, Style};

/// Between menu and details.
pub(super) const VERTICAL: &str = "│";
/// The same, lying.
pub(super) const HORIZONTAL: &str = "─";

/// The styles; without colour only weight and inversion are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colour: bool,
}

impl Theme {
    pub(super) const fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// First and last line.
    pub(super) fn bar() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A key in the last line.
    pub(super) fn key() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Where we are; headings.
    pub(super) fn title(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The line under the cursor.
    pub(super) fn cursor() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A value.
    pub(super) fn value(self) -> Style {
        self.coloured(Color::Cyan)
    }

    /// A value that is not the default.
    pub(super) fn custom(self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What cannot be changed, and remarks.
    pub(super) fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is wrong.
    pub(super) fn error(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What was done.
    pub(super) fn notice(self) -> Style {
        self.coloured(Color::Green)
    }

    /// Lines around and between.
    pub(super) fn frame() -> Style {
        Self::dim()
    }
}
