//! Breaks lines between words. Continuations hang below the second column of lists and tables, so
//! that those stay readable.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A hanging indentation wider than this leaves too little room for text.
const WIDEST_HANG: usize = 30;

/// The lines, none wider than `width` columns.
pub(super) fn wrap(lines: Vec<Line<'static>>, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width).max(1);
    lines
        .into_iter()
        .flat_map(|line| if line.width() <= width { vec![line] } else { wrap_line(&line, width) })
        .collect()
}

/// The column below which continuations of this text belong: that of its second column, that behind
/// the number or dash of a list, or its indentation.
pub(super) fn hang(text: &str) -> usize {
    let indentation = text.len() - text.trim_start_matches(' ').len();
    let mut column = indentation + mark(&text[indentation..]);
    let bytes = text.as_bytes();
    for at in indentation + 2..bytes.len().min(WIDEST_HANG) {
        if bytes[at] != b' ' && bytes[at - 1] == b' ' && bytes[at - 2] == b' ' {
            column = at;
        }
    }
    column.min(WIDEST_HANG)
}

/// How wide the beginning of a list's entry is: `1. ` or `- `.
fn mark(text: &str) -> usize {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match text.split_at(digits) {
        (_, rest) if digits > 0 && rest.starts_with(". ") => digits + 2,
        ("", rest) if rest.starts_with("- ") => 2,
        _ => 0,
    }
}

fn wrap_line(line: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    let whole: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
    let hang = match hang(&whole) {
        wide if wide * 2 > width => 0,
        column => column,
    };
    let mut wrapped = Wrapped { lines: vec![Vec::new()], used: 0, width, hang };
    for span in &line.spans {
        for word in span.content.split_inclusive(' ') {
            wrapped.add(word, line.style.patch(span.style));
        }
    }
    wrapped.lines.into_iter().map(Line::from).collect()
}

struct Wrapped {
    lines: Vec<Vec<Span<'static>>>,
    used: usize,
    width: usize,
    hang: usize,
}

impl Wrapped {
    fn add(&mut self, word: &str, style: Style) {
        if self.used > self.hang && is_wider(word.trim_end(), self.width.saturating_sub(self.used)) {
            self.break_line();
        }
        let mut rest = word;
        // A word that is wider than a whole line is cut.
        while is_wider(rest.trim_end(), self.width.saturating_sub(self.used)) {
            let fitting = fitting(rest, self.width.saturating_sub(self.used).max(1));
            self.push(&rest[..fitting], style);
            rest = &rest[fitting..];
            self.break_line();
        }
        self.push(rest, style);
    }

    fn push(&mut self, text: &str, style: Style) {
        self.used += Span::raw(text).width();
        if let Some(line) = self.lines.last_mut() {
            line.push(Span::styled(text.to_owned(), style));
        }
    }

    fn break_line(&mut self) {
        self.lines.push(Vec::new());
        self.used = 0;
        self.push(&" ".repeat(self.hang), Style::new());
    }
}

/// Whether the text needs more columns; looks no further than it must.
fn is_wider(text: &str, columns: usize) -> bool {
    let mut used = 0;
    text.chars().any(|c| {
        used += Span::raw(c.encode_utf8(&mut [0; 4]) as &str).width();
        used > columns
    })
}

/// How many bytes of the text fit into the columns; at least one character.
fn fitting(text: &str, columns: usize) -> usize {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let mut fitting = text.chars().next().map_or(text.len(), char::len_utf8);
    for end in ends {
        if Span::raw(&text[..end]).width() > columns {
            break;
        }
        fitting = fitting.max(end);
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, width: u16) -> Vec<String> {
        wrap(vec![Line::raw(text.to_owned())], width)
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn breaks_between_words_and_cuts_only_what_must_be_cut() {
        assert_eq!(texts("one two three", 8), ["one two", "three"]);
        assert_eq!(texts("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(texts("", 4), [""]);
        assert_eq!(texts("漢字漢字", 3), ["漢", "字", "漢", "字"]);
    }

    #[test]
    fn continuations_hang_below_the_second_column() {
        assert_eq!(texts("ab   cdef ghij klmn", 10), ["ab   cdef", "     ghij", "     klmn"]);
        assert_eq!(texts("  indented text here", 12), ["  indented", "  text here"]);
        assert_eq!(texts("1. one two three", 10), ["1. one two", "   three"]);
        assert_eq!(texts("- one two", 6), ["- one", "  two"]);
    }

    proptest::proptest! {
        #[test]
        fn loses_no_word_and_never_exceeds_the_width(text in "[ a-zé漢]{0,60}", width in 2_u16..20) {
            let lines = wrap(vec![Line::raw(text.clone())], width);
            for line in &lines {
                proptest::prop_assert!(line.to_string().trim_end().chars().count() <= usize::from(width));
            }
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            let all: String = lines.iter().map(ToString::to_string).collect();
            proptest::prop_assert_eq!(letters(&all), letters(&text));
        }
    }
}
