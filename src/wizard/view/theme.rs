//! Every style of the wizard. Sixteen colours at most, so that the terminal's own palette decides;
//! all of it readable without any.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::Line;

use crate::config::{Problem, ProblemLevel};

const ASCII: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// The styles; without colour only weight and inversion are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colour: bool,
    ascii: bool,
}

impl Theme {
    pub(super) const fn new(colour: bool, ascii: bool) -> Self {
        Self { colour, ascii }
    }

    /// Between menu and details.
    pub(super) const fn vertical(self) -> &'static str {
        if self.ascii { "|" } else { "│" }
    }

    /// The same, lying.
    pub(super) const fn horizontal(self) -> &'static str {
        if self.ascii { "-" } else { "─" }
    }

    /// There is more above.
    pub(super) const fn up(self) -> &'static str {
        if self.ascii { "^" } else { "↑" }
    }

    /// There is more below.
    pub(super) const fn down(self) -> &'static str {
        if self.ascii { "v" } else { "↓" }
    }

    /// A part of a bar that is done, and one that is not.
    pub(super) const fn bar_parts(self) -> (&'static str, &'static str) {
        if self.ascii { ("#", ".") } else { ("█", "░") }
    }

    /// The lines around a dialog.
    pub(super) const fn border(self) -> border::Set<'static> {
        if self.ascii { ASCII } else { border::ROUNDED }
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
        self.coloured(Color::Magenta).add_modifier(Modifier::BOLD)
    }

    /// What cannot be changed, and remarks.
    pub(super) fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is wrong.
    pub(super) fn error(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// One finding in a line.
    pub(super) fn problem(self, problem: &Problem) -> Line<'static> {
        let style = match problem.level {
            ProblemLevel::Error => self.error(),
            ProblemLevel::Notice => self.notice(),
        };
        Line::styled(super::text::problem_line(problem), style)
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
