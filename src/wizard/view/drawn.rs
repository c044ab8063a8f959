//! What drawing tells the loop.

use ratatui::layout::Position;

/// What drawing has found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::wizard) struct Drawn {
    /// Where the terminal's cursor belongs, if anywhere.
    pub(in crate::wizard) cursor: Option<Position>,
    /// How many lines of what scrolls are below its first screen.
    pub(in crate::wizard) below: usize,
}

impl Drawn {
    pub(super) const fn at(cursor: Position) -> Self {
        Self { cursor: Some(cursor), below: 0 }
    }

    pub(super) const fn scrolls(below: usize) -> Self {
        Self { cursor: None, below }
    }
}
