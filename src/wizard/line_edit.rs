//! One line of text that is being edited.

use super::msg::CursorMove;

/// The text, and the cursor in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineEdit {
    text: String,
    /// The byte before which new text goes; always between two characters.
    cursor: usize,
    /// Whether what is typed first takes the place of all.
    selected: bool,
}

impl LineEdit {
    /// The cursor stands after the text.
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len(), selected: false }
    }

    /// The same for a value that stands: what is typed first replaces it, a key that moves the
    /// cursor keeps it.
    pub(super) fn selected(text: &str) -> Self {
        Self { selected: true, ..Self::new(text) }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether what is typed first takes the place of all.
    pub(super) const fn is_selected(&self) -> bool {
        self.selected && !self.text.is_empty()
    }

    pub(super) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Puts text before the cursor. One line is edited: line ends and other control characters are
    /// left out.
    pub(super) fn insert(&mut self, text: &str) {
        let clean: String = text.chars().filter(|c| !c.is_control()).collect();
        if std::mem::take(&mut self.selected) {
            self.erase_all();
        }
        self.text.insert_str(self.cursor, &clean);
        self.cursor += clean.len();
    }

    pub(super) fn go(&mut self, place: CursorMove) {
        self.selected = false;
        self.cursor = match place {
            CursorMove::Left => self.before_cursor().char_indices().next_back().map_or(0, |(at, _)| at),
            CursorMove::Right => {
                self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
            }
            CursorMove::Start => 0,
            CursorMove::End => self.text.len(),
        };
    }

    pub(super) fn erase(&mut self) {
        self.selected = false;
        if self.cursor > 0 {
            self.go(CursorMove::Left);
            self.text.remove(self.cursor);
        }
    }

    pub(super) fn erase_forward(&mut self) {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
    }

    pub(super) fn erase_all(&mut self) {
        self.text.clear();
        (self.cursor, self.selected) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_around_wide_characters() {
        let mut line = LineEdit::new("aé");
        line.go(CursorMove::Left);
        line.insert("x\ny");
        assert_eq!((line.text(), line.before_cursor()), ("axyé", "axy"));
        line.go(CursorMove::Right);
        line.go(CursorMove::Right);
        line.erase();
        assert_eq!(line.text(), "axy");
        line.go(CursorMove::Start);
        line.go(CursorMove::Left);
        line.erase();
        line.erase_forward();
        assert_eq!((line.text(), line.before_cursor()), ("xy", ""));
        line.go(CursorMove::End);
        line.erase_forward();
        line.erase_all();
        assert_eq!(line.text(), "");
    }
}
