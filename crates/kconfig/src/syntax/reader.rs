//! Splits a file into logical lines: joins continuations, drops comments, takes help text out
//! whole.
//!
//! Knows nothing of keywords; every position of a logical line can be traced back to the file.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use thin_vec::ThinVec;

use crate::dialect::{Dialect, Rule};
use crate::excerpt::Excerpt;
use crate::names::is_name_byte;
use crate::source::{FileId, Span};

/// A physical line behind the first of a logical one.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it starts in the logical line.
    start: usize,
    line: u32,
}

/// A line of the language, its continuations joined.
#[derive(Clone, Debug)]
pub(crate) struct LogicalLine<'s> {
    pub text: Cow<'s, str>,
    file: FileId,
    line: u32,
    /// Where it starts in the text of the file.
    offset: usize,
    pieces: ThinVec<Piece>,
}

impl<'s> LogicalLine<'s> {
    fn new(file: FileId, text: &'s str, line: u32, offset: usize) -> Self {
        Self { text: Cow::Borrowed(text), file, line, offset, pieces: ThinVec::new() }
    }

    /// A piece of the line for keeping; `whole` is the text of the file.
    pub(crate) fn keep(&self, whole: Option<&Arc<String>>, piece: Range<usize>) -> Excerpt {
        match (&self.text, whole) {
            (Cow::Borrowed(_), Some(whole)) => Excerpt::new(whole, self.offset + piece.start..self.offset + piece.end),
            (text, _) => text[piece].into(),
        }
    }

    /// Where bytes `start..end` of the text are in the file; a range over several lines is cut at
    /// the first one's end.
    #[inline]
    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        if self.pieces.is_empty() {
            return Span {
                file: self.file,
                line: self.line,
                col: column(start),
                len: length(end.saturating_sub(start)),
            };
        }
        let after = self.pieces.partition_point(|piece| piece.start <= start);
        let piece = after.checked_sub(1).map_or(Piece { start: 0, line: self.line }, |index| self.pieces[index]);
        let piece_end = self.pieces.get(after).map_or(self.text.len(), |next| next.start);
        let len = length(end.min(piece_end).saturating_sub(start));
        Span { file: self.file, line: piece.line, col: column(start - piece.start), len }
    }

    /// The whole line without the blanks around it.
    pub(crate) fn whole(&self) -> Span {
        let start = self.text.bytes().position(|byte| !is_blank(byte)).unwrap_or(0);
        let end = self.text.bytes().rposition(|byte| !is_blank(byte)).map_or(start, |end| end + 1);
        self.span(start, end)
    }

    /// Where a word is that stands alone on the line.
    #[inline]
    pub(crate) fn find_only(&self, word: &str) -> Option<Span> {
        let before = self.text.strip_suffix(word)?;
        let is_alone = before.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        is_alone.then(|| self.span(before.len(), self.text.len()))
    }

    /// The first word.
    pub(crate) fn keyword(&self) -> Span {
        let start = self.text.bytes().position(|byte| !is_blank(byte)).unwrap_or(0);
        let length = self.text.bytes().skip(start).position(|byte| !is_name_byte(byte));
        self.span(start, length.map_or(self.text.len(), |length| start + length))
    }

    /// The place behind the last word.
    pub(crate) fn end(&self) -> Span {
        let end = self.text[..find_comment(&self.text)].trim_end().len();
        self.span(end, end)
    }

    /// The text from a place of this line on.
    pub(crate) fn rest_from(&self, span: Span) -> &str {
        let piece = self.pieces.iter().find(|piece| piece.line == span.line).map_or(0, |piece| piece.start);
        self.text.get(piece + usize::from(span.col.saturating_sub(1))..).unwrap_or_default()
    }

    /// The same for keeping after the file is parsed.
    pub(crate) fn to_owned_line(&self) -> LogicalLine<'static> {
        let text = Cow::Owned(self.text.clone().into_owned());
        LogicalLine { text, file: self.file, line: self.line, offset: self.offset, pieces: self.pieces.clone() }
    }

    fn append(&mut self, text: &str, line: u32) {
        self.pieces.push(Piece { start: self.text.len(), line });
        self.text.to_mut().push_str(text);
    }
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

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads one file line by line.
#[derive(Debug)]
pub(crate) struct Reader<'s> {
    file: FileId,
    /// The carriage return and the byte order mark are characters like others, and a text ends with
    /// its line.
    strict: bool,
    text: &'s str,
    /// Where the next line starts in it.
    at: usize,
    /// The number of the next line.
    line: u32,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(file: FileId, text: &'s str, dialect: Dialect) -> Self {
        let strict = !dialect.has(Rule::AnyLineEnds);
        let at = if !strict && text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        Self { file, strict, text, at, line: 1 }
    }

    /// The place of a last line that has no end.
    pub(crate) fn open_end(&self) -> Span {
        Span { file: self.file, line: self.line.saturating_sub(1).max(1), col: 1, len: 0 }
    }

    /// The line behind what was read last: where the C tools notice what a help text is.
    pub(crate) fn here(&self) -> Span {
        Span { file: self.file, line: self.line, col: 1, len: 0 }
    }

    /// The place after the last line, for findings about the end of the file.
    pub(crate) fn end(&self) -> Span {
        Span { file: self.file, line: self.line.saturating_sub(1).max(1), col: 1, len: 0 }
    }

    /// The next line, whatever it is.
    pub(crate) fn next(&mut self) -> Option<Raw<'s>> {
        let (number, offset) = (self.line, self.at);
        let physical = self.take_line()?;
        let strict = self.strict;
        let is_skipped = |byte| if strict { matches!(byte, b' ' | b'\t') } else { is_blank(byte) };
        let start = physical.bytes().position(|byte| !is_skipped(byte)).unwrap_or(physical.len());
        let trimmed = &physical[start..];
        if trimmed.is_empty() {
            return Some(Raw::Blank);
        }
        if let Some(comment) = trimmed.strip_prefix('#') {
            let Some(text) = comment.strip_prefix(':') else { return Some(Raw::Comment) };
            let col = column(physical.len() - trimmed.len());
            let span = Span { file: self.file, line: number, col, len: length(trimmed.trim_end().len()) };
            return Some(Raw::Annotation { text, span });
        }
        let mut line = LogicalLine::new(self.file, physical, number, offset);
        while line.text.ends_with('\\') && joins_next(&line.text, self.strict) {
            let joined = line.text.len() - 1;
            cut(&mut line.text, joined);
            let number = self.line;
            let Some(more) = self.take_line() else { break };
            line.append(more, number);
        }
        Some(Raw::Statement(line))
    }

    /// Passes over the help text that follows a `help` line, as [`Reader::help`] has it; whether
    /// there is any. Half of the lines of a tree are help, so this looks at their beginnings only.
    pub(crate) fn skip_help(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let mut base = None;
        while self.at < bytes.len() {
            let (width, start) = measure_indentation(bytes, self.at);
            let end = start + find_line_end(&bytes[start..]);
            let is_blank = start == end || !self.strict && bytes[start..end] == *b"\r";
            if !is_blank && (width == 0 || width < *base.get_or_insert(width)) {
                break;
            }
            self.at = bytes.len().min(end + 1);
            self.line += 1;
        }
        base.is_some_and(|base| base > 0)
    }

    /// The help text that follows a `help` line, as the C tools have it: up to the first line that
    /// is indented less than the first one, with the line ends in front of that. Unlike them it
    /// never starts in the first column, where the next entry stands.
    pub(crate) fn help(&mut self) -> String {
        let mut help = String::new();
        let ended = self.walk_help(|indentation, text| {
            help.extend(std::iter::repeat_n(' ', indentation));
            help.push_str(trim_end(text));
            help.push('\n');
        });
        // A line in the first column ends the text without a line end.
        if ended {
            help.pop();
        }
        help
    }

    /// Goes through the lines of a help text: how much more each is indented than the first, and
    /// what it says. Whether it was ended by a line in the first column.
    fn walk_help(&mut self, mut take: impl FnMut(usize, &str)) -> bool {
        let mut first = None;
        while let Some((physical, taken)) = self.peek_line() {
            let (width, start) = measure_indentation(physical.as_bytes(), 0);
            let text = &physical[start..];
            let mut more = 0;
            if !text.is_empty() {
                let base = *first.get_or_insert(width);
                if width == 0 || width < base {
                    return false;
                }
                more = width - base;
            }
            take(more, text);
            self.skip(taken);
            if self.text.as_bytes().get(self.at).is_some_and(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
                return true;
            }
        }
        false
    }

    /// Where the next line starts in the file's text.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// The next line, and where the one behind it starts.
    fn peek_line(&self) -> Option<(&'s str, usize)> {
        let bytes = self.text.as_bytes();
        if self.at >= bytes.len() {
            return None;
        }
        let end = self.at + find_line_end(&bytes[self.at..]);
        let line = &self.text[self.at..end];
        Some((if self.strict { line } else { line.strip_suffix('\r').unwrap_or(line) }, bytes.len().min(end + 1)))
    }

    fn take_line(&mut self) -> Option<&'s str> {
        let (line, next) = self.peek_line()?;
        self.skip(next);
        Some(line)
    }

    fn skip(&mut self, next: usize) {
        self.at = next;
        self.line += 1;
    }
}

/// The length of the line that these bytes begin with. Lines are too short for a search that has to
/// be prepared: sixteen bytes at a time, which the compiler compares at once.
#[inline]
fn find_line_end(bytes: &[u8]) -> usize {
    let (pieces, rest) = bytes.as_chunks::<16>();
    let mut at = 0;
    for piece in pieces {
        if piece.iter().fold(0, |found, byte| found | u8::from(*byte == b'\n')) != 0 {
            return at + find_in_piece(u128::from_le_bytes(*piece));
        }
        at += piece.len();
    }
    at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// Which of sixteen bytes ends the line.
#[inline]
fn find_in_piece(piece: u128) -> usize {
    const ONES: u128 = u128::MAX / 0xff;
    // A byte of zero is where the line ends; the lowest bit that is set belongs to the first of
    // them.
    let zeros = piece ^ (ONES * 0x0a);
    let found = zeros.wrapping_sub(ONES) & !zeros & (ONES << 7);
    found.trailing_zeros() as usize / 8
}

/// The width of the blanks from `at` on, tabs going to the next multiple of eight, and where they
/// end.
#[inline]
fn measure_indentation(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let mut width = 0;
    loop {
        match bytes.get(at) {
            Some(b' ') => width += 1,
            Some(b'\t') => width = (width & !7) + 8,
            _ => return (width, at),
        }
        at += 1;
    }
}

pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c' | b'\r')
}

fn trim_end(text: &str) -> &str {
    let end = text.bytes().rposition(|byte| !matches!(byte, b' ' | b'\t'));
    &text[..end.map_or(0, |end| end + 1)]
}

/// Whether the backslash at the end of a line joins the next one to it: not in a comment and, in C,
/// not in a text.
fn joins_next(text: &str, strict: bool) -> bool {
    let (comment, is_open) = find_end(text);
    comment == text.len() && !(strict && is_open)
}

/// Where the comment at the end of a line starts: the first `#` outside quotes and macro
/// references.
fn find_comment(text: &str) -> usize {
    if !text.contains('#') {
        return text.len();
    }
    find_end(text).0
}

/// The same, and whether the line ends in a text that is not closed.
fn find_end(text: &str) -> (usize, bool) {
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
            (b'#', None) if depth == 0 => return (at, false),
            _ => {}
        }
        at += 1;
    }
    (text.len(), quote.is_some())
}

fn cut(text: &mut Cow<'_, str>, len: usize) {
    match text {
        Cow::Borrowed(borrowed) => *borrowed = &borrowed[..len],
        Cow::Owned(owned) => owned.truncate(len),
    }
}

/// Positions are counted in 32 bits, those in a line in 16: what lies behind is cut in diagnostics
/// only.
pub(crate) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn column(offset: usize) -> u16 {
    length(offset).saturating_add(1)
}

pub(crate) fn length(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::{Dialect, Raw, Reader};
    use crate::source::Sources;

    fn statements(text: &str) -> Vec<String> {
        let (file, text) = Sources::default().add("Kconfig", text.as_bytes().to_vec());
        let mut reader = Reader::new(file, &text, Dialect::EXTENDED);
        let mut found = Vec::new();
        while let Some(raw) = reader.next() {
            if let Raw::Statement(line) = raw {
                found.push(line.text.into_owned());
            }
        }
        found
    }

    #[test]
    fn comments_are_no_statements_and_stay_behind_those() {
        assert_eq!(statements("a \"b # c\" # d\n# e\n\t# f\n"), ["a \"b # c\" # d"]);
    }

    #[test]
    fn continuations_join_and_keep_their_places() {
        let (file, text) = Sources::default().add("Kconfig", b"depends on A && \\\r\n\tB\r\n".to_vec());
        let mut reader = Reader::new(file, &text, Dialect::EXTENDED);
        let Some(Raw::Statement(line)) = reader.next() else { unreachable!("a statement was written") };
        assert_eq!(line.text, "depends on A && \tB");
        let at = line.text.find('B').unwrap();
        let span = line.span(at, at + 1);
        assert_eq!((span.line, span.col, span.len), (2, 2, 1));
    }

    #[test]
    fn help_keeps_relative_indentation_and_ends_at_the_first_shallower_line() {
        let (file, text) = Sources::default().add("Kconfig", b"\t  one\n\n\t    two\n        \n\tthree\n".to_vec());
        let mut reader = Reader::new(file, &text, Dialect::EXTENDED);
        // The line end of the blank line belongs to it, as in C.
        assert_eq!(reader.help(), "one\n\n  two\n\n");
        assert!(matches!(reader.next(), Some(Raw::Statement(line)) if line.text == "\tthree"));
    }
}
