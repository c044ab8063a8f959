//! Splits a file into logical lines: joins continuations, drops comments, takes help text out whole.
//!
//! Knows nothing of keywords; every position of a logical line can be traced back to the file.

use std::borrow::Cow;

use crate::source::{FileId, Span};

/// A run of a logical line that comes from one place of the file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it starts in the logical line.
    start: usize,
    line: u32,
    col: u32,
    /// For text that a macro produced: the length of the reference in the file.
    fixed: Option<u32>,
}

/// A line of the language, without its comment.
#[derive(Clone, Debug)]
pub(crate) struct LogicalLine<'s> {
    pub text: Cow<'s, str>,
    file: FileId,
    pieces: Vec<Piece>,
    first: Piece,
}

impl<'s> LogicalLine<'s> {
    fn new(file: FileId, text: &'s str, line: u32) -> Self {
        let first = Piece { start: 0, line, col: 1, fixed: None };
        Self { text: Cow::Borrowed(text), file, pieces: Vec::new(), first }
    }

    /// The line number on which it starts.
    pub(crate) fn number(&self) -> u32 {
        self.first.line
    }

    /// Where bytes `start..end` of the text are in the file; a range over several lines is cut at the first one's end.
    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        let after = self.pieces.partition_point(|piece| piece.start <= start);
        let piece = if after == 0 { &self.first } else { &self.pieces[after - 1] };
        if let Some(len) = piece.fixed {
            return Span { file: self.file, line: piece.line, col: piece.col, len };
        }
        let piece_end = self.pieces.get(after).map_or(self.text.len(), |next| next.start);
        let len = end.min(piece_end).saturating_sub(start);
        Span { file: self.file, line: piece.line, col: piece.col + narrow(start - piece.start), len: narrow(len) }
    }

    /// The whole line without the blanks around it.
    pub(crate) fn whole(&self) -> Span {
        let start = self.text.len() - self.text.trim_start().len();
        self.span(start, self.text.trim_end().len().max(start))
    }

    /// Replaces references: `replace` gets the text and pushes runs through the [`Rewriter`].
    pub(crate) fn rewritten(&self, rewrite: impl FnOnce(&mut Rewriter<'_, 's>)) -> LogicalLine<'s> {
        let mut rewriter = Rewriter { line: self, text: String::new(), pieces: Vec::new() };
        rewrite(&mut rewriter);
        let Rewriter { text, pieces, .. } = rewriter;
        LogicalLine { text: Cow::Owned(text), file: self.file, pieces, first: self.first }
    }

    fn append(&mut self, text: &str, line: u32) {
        let start = self.text.len();
        self.pieces.push(Piece { start, line, col: 1, fixed: None });
        self.text.to_mut().push_str(text);
    }
}

/// Builds the expanded form of a line.
pub(crate) struct Rewriter<'l, 's> {
    line: &'l LogicalLine<'s>,
    text: String,
    pieces: Vec<Piece>,
}

impl Rewriter<'_, '_> {
    /// Takes bytes `start..end` of the original as they are.
    pub(crate) fn copy(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let mut at = start;
        while at < end {
            let span = self.line.span(at, end);
            let len = (span.len as usize).clamp(1, end - at);
            self.pieces.push(Piece { start: self.text.len(), line: span.line, col: span.col, fixed: None });
            let stop = ceil_boundary(&self.line.text, at + len);
            self.text.push_str(&self.line.text[at..stop]);
            at = stop;
        }
    }

    /// Puts `text` in place of bytes `start..end` of the original.
    pub(crate) fn replace(&mut self, start: usize, end: usize, text: &str) {
        let span = self.line.span(start, end);
        self.pieces.push(Piece { start: self.text.len(), line: span.line, col: span.col, fixed: Some(span.len) });
        self.text.push_str(text);
    }
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at.min(text.len())
}

/// What the reader found next.
#[derive(Debug)]
pub(crate) enum Raw<'s> {
    /// Nothing on the line.
    Blank,
    /// An ordinary comment.
    Comment,
    /// `#: key = value`: the text after `#:`.
    Annotation { text: &'s str, span: Span },
    /// A line of the language.
    Statement(LogicalLine<'s>),
}

/// Reads one file line by line.
#[derive(Debug)]
pub(crate) struct Reader<'s> {
    file: FileId,
    rest: &'s str,
    /// The number of the next line.
    line: u32,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(file: FileId, text: &'s str) -> Self {
        Self { file, rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    /// The place after the last line, for findings about the end of the file.
    pub(crate) fn end(&self) -> Span {
        Span { file: self.file, line: self.line.saturating_sub(1).max(1), col: 1, len: 0 }
    }

    /// The next line, whatever it is.
    pub(crate) fn next(&mut self) -> Option<Raw<'s>> {
        let number = self.line;
        let physical = self.take_line()?;
        let trimmed = physical.trim_start_matches(is_blank);
        if trimmed.is_empty() {
            return Some(Raw::Blank);
        }
        if let Some(comment) = trimmed.strip_prefix('#') {
            let Some(text) = comment.strip_prefix(':') else { return Some(Raw::Comment) };
            let col = narrow(physical.len() - trimmed.len()) + 1;
            let span = Span { file: self.file, line: number, col, len: narrow(trimmed.trim_end().len()) };
            return Some(Raw::Annotation { text, span });
        }
        let mut line = LogicalLine::new(self.file, physical, number);
        while let Some(joined) = line.text.strip_suffix('\\').map(str::len) {
            cut(&mut line.text, joined);
            let number = self.line;
            let Some(more) = self.take_line() else { break };
            line.append(more, number);
        }
        let code = find_comment(&line.text);
        cut(&mut line.text, code);
        if line.text.trim().is_empty() { Some(Raw::Comment) } else { Some(Raw::Statement(line)) }
    }

    /// Takes the help text that follows a `help` line: up to the first line indented less than its first one.
    pub(crate) fn help(&mut self) -> String {
        let mut help = String::new();
        let mut indent = None;
        let mut blank_lines = 0;
        while let Some((physical, _)) = self.peek_line() {
            let text = physical.trim_start_matches(is_blank);
            if text.trim_end().is_empty() {
                self.take_line();
                blank_lines += usize::from(indent.is_some());
                continue;
            }
            let width = indentation(physical);
            let first = *indent.get_or_insert(width);
            if width == 0 || width < first {
                break;
            }
            self.take_line();
            if !help.is_empty() {
                help.push('\n');
            }
            help.extend(std::iter::repeat_n('\n', std::mem::take(&mut blank_lines)));
            help.extend(std::iter::repeat_n(' ', width - first));
            help.push_str(text.trim_end());
        }
        help
    }

    fn peek_line(&self) -> Option<(&'s str, usize)> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, taken) = match self.rest.find('\n') {
            Some(end) => (&self.rest[..end], end + 1),
            None => (self.rest, self.rest.len()),
        };
        Some((line.strip_suffix('\r').unwrap_or(line), taken))
    }

    fn take_line(&mut self) -> Option<&'s str> {
        let (line, taken) = self.peek_line()?;
        self.rest = &self.rest[taken..];
        self.line += 1;
        Some(line)
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c' | '\r')
}

/// The width of the blanks at the start, tabs going to the next multiple of eight.
fn indentation(line: &str) -> usize {
    let mut width = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => width += 1,
            b'\t' => width = (width & !7) + 8,
            _ => break,
        }
    }
    width
}

/// Where the comment at the end of a line starts: the first `#` outside quotes and macro references.
fn find_comment(text: &str) -> usize {
    if !text.contains('#') {
        return text.len();
    }
    let bytes = text.as_bytes();
    let (mut quote, mut depth, mut at) = (None, 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, quote) {
            (b'\\', Some(_)) => at += 1,
            (b'"' | b'\'', None) => quote = Some(*byte),
            (byte, Some(open)) if *byte == open => quote = None,
            (b'$', _) if bytes.get(at + 1) == Some(&b'(') => {
                depth += 1;
                at += 1;
            }
            (b')', _) => depth = depth.saturating_sub(1),
            (b'#', None) if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

fn cut(text: &mut Cow<'_, str>, len: usize) {
    match text {
        Cow::Borrowed(borrowed) => *borrowed = &borrowed[..len],
        Cow::Owned(owned) => owned.truncate(len),
    }
}

/// Positions are counted in 32 bits; a line longer than that is cut in diagnostics only.
pub(crate) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::{Raw, Reader};
    use crate::source::Sources;

    fn statements(text: &str) -> Vec<String> {
        let (file, text) = Sources::default().add("Kconfig", text.as_bytes().to_vec());
        let mut reader = Reader::new(file, &text);
        let mut found = Vec::new();
        while let Some(raw) = reader.next() {
            if let Raw::Statement(line) = raw {
                found.push(line.text.into_owned());
            }
        }
        found
    }

    #[test]
    fn comments_end_lines_but_not_inside_quotes() {
        assert_eq!(statements("a \"b # c\" # d\n# e\n\t# f\n"), ["a \"b # c\" "]);
    }

    #[test]
    fn continuations_join_and_keep_their_places() {
        let (file, text) = Sources::default().add("Kconfig", b"depends on A && \\\r\n\tB\r\n".to_vec());
        let mut reader = Reader::new(file, &text);
        let Some(Raw::Statement(line)) = reader.next() else { unreachable!("a statement was written") };
        assert_eq!(line.text, "depends on A && \tB");
        let at = line.text.find('B').unwrap();
        let span = line.span(at, at + 1);
        assert_eq!((span.line, span.col, span.len), (2, 2, 1));
    }

    #[test]
    fn help_keeps_relative_indentation_and_ends_at_the_first_shallower_line() {
        let (file, text) = Sources::default().add("Kconfig", b"\t  one\n\n\t    two\n        \n\tthree\n".to_vec());
        let mut reader = Reader::new(file, &text);
        assert_eq!(reader.help(), "one\n\n  two");
        assert!(matches!(reader.next(), Some(Raw::Statement(line)) if line.text == "\tthree"));
    }
}
