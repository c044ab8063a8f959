//! The words of a line: keywords, names, texts and operators, each with its place.
//!
//! Splits and expands; what may follow what is the grammar's business.

use std::sync::Arc;

use super::macros::{Failure, Macros};
use super::reader::{LogicalLine, is_blank};
use crate::diagnostic::Diagnostic;
use crate::dialect::{Dialect, Rule};
use crate::expr::TextId;
use crate::names::{Names, is_name_byte};
use crate::source::Span;

/// How a variable is assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// `=`: expanded when used.
    Recursive,
    /// `:=`: expanded now.
    Simple,
    /// `+=`
    Append,
}

/// The letters of shapes, as `kconfig.pest` reads them.
pub(crate) mod kind {
    pub(crate) const WORD: u8 = b'w';
    pub(crate) const TEXT: u8 = b't';
    pub(crate) const IF: u8 = b'i';
    pub(crate) const ON: u8 = b'o';
    /// A character that means nothing.
    pub(crate) const JUNK: u8 = b'?';
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// Its letter in the shape.
    pub kind: u8,
    /// What it says; of operators nothing that matters.
    pub text: TextId,
    pub span: Span,
}

/// The tokens of one line; the buffers serve one line after another.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub list: Vec<Token>,
    /// Set by a line that assigns a variable: how, and where in the line the value starts. Nothing
    /// behind the operator is a token.
    pub assignment: Option<(Assignment, usize)>,
    /// Whether a text waits for the output of a command.
    pub pending: bool,
    /// A text that is not closed, where that is allowed.
    pub open_text: Option<Span>,
}

impl Tokens {
    /// Room for all lines but the longest.
    pub(crate) fn new() -> Self {
        Self { list: Vec::with_capacity(32), ..Self::default() }
    }
}

const WORD: u8 = 1;
const BLANK: u8 = 2;

/// What each byte is: part of a word, blank, or neither.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let character = byte as u8;
        if is_name_byte(character) {
            classes[byte] = WORD;
        } else if is_blank(character) {
            classes[byte] = BLANK;
        }
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

/// How many bytes of a word follow from `at` on. Eight at a time, because names are what most of a
/// tree consists of.
#[inline]
fn length_of_word(bytes: &[u8], at: usize) -> usize {
    let mut rest = &bytes[at..];
    while let Some((piece, more)) = rest.split_first_chunk::<8>() {
        let length = count_word_bytes(u64::from_le_bytes(*piece));
        if length < 8 {
            return bytes.len() - at - rest.len() + length;
        }
        rest = more;
    }
    // The last bytes of the line behind none; a byte of zero ends a word.
    let last = match bytes.last_chunk::<8>() {
        Some(piece) if !rest.is_empty() => u64::from_le_bytes(*piece) >> (64 - 8 * rest.len()),
        _ => rest.iter().rev().fold(0, |last, byte| last << 8 | u64::from(*byte)),
    };
    bytes.len() - at - rest.len() + count_word_bytes(last)
}

/// How many of eight bytes, from the lowest on, belong to a word: those that [`is_name_byte`] says.
#[inline]
fn count_word_bytes(bytes: u64) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte says what holds of it; with that bit out of the way no sum reaches
    // the next byte.
    let low = bytes & !HIGH;
    let between = |bytes: u64, first: u8, last: u8| {
        let not_below = bytes + ONES * u64::from(0x80 - first);
        let above = bytes + ONES * u64::from(0x7f - last);
        not_below & !above
    };
    let letters = between(low | (ONES * 0x20), b'a', b'z');
    let digits = between(low, b'-', b'9');
    let lines = between(low, b'_', b'_');
    let others = !(letters | digits | lines) | bytes;
    (others & HIGH).trailing_zeros() as usize / 8
}

/// Reads the tokens of a line into `tokens`; the first of them may turn out to be a keyword, see
/// [`Keyword`].
pub(crate) fn split_line(
    line: &LogicalLine<'_>,
    whole: Option<&Arc<String>>,
    names: &mut Names,
    macros: &mut Macros<'_>,
    path: &str,
    dialect: Dialect,
    tokens: &mut Tokens,
) -> Result<(), Diagnostic> {
    tokens.list.clear();
    tokens.assignment = None;
    tokens.pending = false;
    tokens.open_text = None;
    let text = &*line.text;
    let mut lexer = Lexer { line, whole, text, names, macros, path, dialect, tokens, at: 0 };
    while lexer.take_token()? {}
    Ok(())
}

struct Lexer<'x, 'l, 'e> {
    line: &'x LogicalLine<'l>,
    /// The text of the line's file.
    whole: Option<&'x Arc<String>>,
    /// What the line says.
    text: &'x str,
    names: &'x mut Names,
    macros: &'x mut Macros<'e>,
    path: &'x str,
    dialect: Dialect,
    tokens: &'x mut Tokens,
    at: usize,
}

impl Lexer<'_, '_, '_> {
    /// Takes the next token; whether there may be more.
    #[inline]
    fn take_token(&mut self) -> Result<bool, Diagnostic> {
        let text = self.text;
        let bytes = text.as_bytes();
        while self.at < bytes.len() && class(bytes[self.at]) == BLANK {
            if bytes[self.at] >= b'\x0c' && bytes[self.at] <= b'\r' && !self.dialect.has(Rule::AnyLineEnds) {
                self.push(kind::JUNK, TextId::new(0), self.at + 1);
            } else {
                self.at += 1;
            }
        }
        let Some(&byte) = bytes.get(self.at) else { return Ok(false) };
        if class(byte) == WORD || byte == b'$' && self.dialect.has(Rule::Macros) {
            self.take_word()?;
            return Ok(true);
        }
        if byte == b'"' || byte == b'\'' {
            self.take_text(byte)?;
            return Ok(true);
        }
        if byte == b'#' {
            return Ok(false);
        }
        let next = bytes.get(self.at + 1).copied();
        if let Some((how, length)) = self.find_assignment(byte, next) {
            self.tokens.assignment = Some((how, self.at + length));
            return Ok(false);
        }
        let (kind, length) = match (byte, next) {
            (b'&', Some(b'&')) => (b'&', 2),
            (b'|', Some(b'|')) => (b'|', 2),
            (b'!', Some(b'=')) => (b'~', 2),
            (b'<', Some(b'=')) => (b'[', 2),
            (b'>', Some(b'=')) => (b']', 2),
            (b'=' | b'<' | b'>' | b'!' | b'(' | b')', _) => (byte, 1),
            _ => (kind::JUNK, text[self.at..].chars().next().map_or(1, char::len_utf8)),
        };
        self.push(kind, TextId::new(0), self.at + length);
        Ok(true)
    }

    #[inline]
    fn push(&mut self, kind: u8, text: TextId, end: usize) {
        let span = self.line.span(self.at, end);
        self.tokens.list.push(Token { kind, text, span });
        self.at = end;
    }

    /// `=`, `:=` or `+=` behind the first word of a line, unless that is a keyword.
    fn find_assignment(&self, byte: u8, next: Option<u8>) -> Option<(Assignment, usize)> {
        let [first] = self.tokens.list.as_slice() else { return None };
        if !self.dialect.has(Rule::Macros) {
            return None;
        }
        if first.kind != kind::WORD || Keyword::of(first.text).is_some() {
            return None;
        }
        match (byte, next) {
            (b'=', _) => Some((Assignment::Recursive, 1)),
            (b':', Some(b'=')) => Some((Assignment::Simple, 2)),
            (b'+', Some(b'=')) => Some((Assignment::Append, 2)),
            _ => None,
        }
    }

    /// A word; references in it are part of it, and what they make is not split again.
    #[inline]
    fn take_word(&mut self) -> Result<(), Diagnostic> {
        let text = self.text;
        let bytes = text.as_bytes();
        let end = self.at + length_of_word(bytes, self.at);
        if bytes.get(end) == Some(&b'$') && self.dialect.has(Rule::Macros) {
            return self.take_expanded_word(end);
        }
        let (line, whole, start) = (self.line, self.whole, self.at);
        let id = self.names.intern_piece(&bytes[start..end], || line.keep(whole, start..end));
        let kind = match Keyword::of(id) {
            Some(Keyword::If) if !self.tokens.list.is_empty() => kind::IF,
            Some(Keyword::On) if !self.tokens.list.is_empty() => kind::ON,
            _ => kind::WORD,
        };
        self.push(kind, id, end);
        Ok(())
    }

    #[cold]
    fn take_expanded_word(&mut self, mut end: usize) -> Result<(), Diagnostic> {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut word = text[self.at..end].to_owned();
        while let Some(&byte) = bytes.get(end) {
            if byte == b'$' {
                end = self.expand(end, &mut word)?;
            } else if class(byte) == WORD {
                word.push(char::from(byte));
                end += 1;
            } else {
                break;
            }
        }
        if word.is_empty() {
            self.at = end;
            return Ok(());
        }
        let id = self.names.intern(&word);
        self.push(kind::WORD, id, end);
        Ok(())
    }

    /// Appends what the `$` at `at` stands for; gives the position behind it.
    fn expand(&mut self, at: usize, into: &mut String) -> Result<usize, Diagnostic> {
        let text = self.text;
        if text.as_bytes().get(at + 1) != Some(&b'(') || !self.dialect.has(Rule::Macros) {
            into.push('$');
            return Ok(at + 1);
        }
        let span = self.line.span(at, text.len());
        let (end, value) = self.macros.expand_reference(text, at, span, self.path);
        match value {
            Ok(value) => {
                self.tokens.pending |= Macros::is_pending(&value);
                into.push_str(&value);
                Ok(end)
            }
            Err(failure) => Err(describe_failure(self.line.span(at, end), failure)),
        }
    }

    fn take_text(&mut self, quote: u8) -> Result<(), Diagnostic> {
        let start = self.at + 1;
        let rest = &self.text[start..];
        match memchr::memchr3(quote, b'\\', b'$', rest.as_bytes()) {
            None => self.take_open_text(rest, self.text.len()),
            Some(length) if rest.as_bytes()[length] != quote => self.take_escaped_text(quote, start + length),
            Some(length) => {
                let id = self.names.add(self.line.keep(self.whole, start..start + length));
                self.push(kind::TEXT, id, start + length + 1);
                Ok(())
            }
        }
    }

    /// A text that ends with its line for want of a quote.
    #[cold]
    fn take_open_text(&mut self, value: &str, end: usize) -> Result<(), Diagnostic> {
        if !self.dialect.has(Rule::OpenTexts) {
            return Err(self.refuse_open_text());
        }
        self.tokens.open_text = Some(self.line.span(self.at, end));
        let id = self.names.intern(value);
        self.push(kind::TEXT, id, end);
        Ok(())
    }

    /// A text with escapes or references; plain up to `end`. A backslash stands for the character
    /// behind it.
    #[cold]
    fn take_escaped_text(&mut self, quote: u8, mut end: usize) -> Result<(), Diagnostic> {
        let text = self.text;
        let mut value = text[self.at + 1..end].to_owned();
        while let Some(c) = text[end..].chars().next() {
            match c {
                '$' => end = self.expand(end, &mut value)?,
                '\\' => {
                    end += 1;
                    if let Some(escaped) = text[end..].chars().next() {
                        value.push(escaped);
                        end += escaped.len_utf8();
                    }
                }
                c if c == char::from(quote) => {
                    if self.dialect.has(Rule::DollarTexts) {
                        // What commands print is expanded too, so that it cannot come later.
                        value = self.macros.resolve(&value, self.line.span(self.at, end))?;
                        value = expand_variables(&value, |name| self.macros.read_variable(name));
                    }
                    let id = self.names.intern(&value);
                    self.push(kind::TEXT, id, end + 1);
                    return Ok(());
                }
                c => {
                    value.push(c);
                    end += c.len_utf8();
                }
            }
        }
        self.take_open_text(&value, end)
    }

    fn refuse_open_text(&self) -> Diagnostic {
        let span = self.line.span(self.at, self.line.text.len());
        Diagnostic::error("K003", span, "this text is not closed")
            .with_help("texts end on the line on which they start, with the quote that opens them")
    }
}

/// Replaces each `$NAME` and `${NAME}` once; what has no value stays.
///
/// kconfiglib does so last, with what escapes and macros left: `"\$NAME"` is the variable as well.
fn expand_variables(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut expanded, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('$') {
        let behind = &rest[at + 1..];
        let (name, length) = if let Some(inside) = behind.strip_prefix('{') {
            inside.find('}').map_or(("", 0), |end| (&inside[..end], end + 2))
        } else {
            let end = behind.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(behind.len());
            (&behind[..end], end)
        };
        expanded.push_str(&rest[..at]);
        match value(name).filter(|_| !name.is_empty()) {
            Some(value) => expanded.push_str(&value),
            None => expanded.push_str(&rest[at..=at + length]),
        }
        rest = &behind[length..];
    }
    expanded + rest
}

pub(crate) fn describe_failure(span: Span, failure: Failure) -> Diagnostic {
    match failure {
        Failure::Broken(message) => Diagnostic::error("K011", span, message),
        Failure::Refused(message) => Diagnostic::error("K014", span, message).with_text("the tree refuses this"),
    }
}

macro_rules! keywords {
    ($($name:ident = $word:literal),* $(,)?) => {
        /// The words that may begin a line, and `on`. Their texts are the first that a tree's names
        /// hold, in this order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword {
            $(#[doc = concat!("`", $word, "`")] $name),*
        }

        impl Keyword {
            const ALL: &[(Self, &'static str)] = &[$((Self::$name, $word)),*];
        }
    };
}

keywords! {
    Bool = "bool",
    Boolean = "boolean",
    Choice = "choice",
    Comment = "comment",
    Config = "config",
    DefBool = "def_bool",
    DefHex = "def_hex",
    DefInt = "def_int",
    DefString = "def_string",
    DefTristate = "def_tristate",
    Default = "default",
    Depends = "depends",
    EndChoice = "endchoice",
    EndIf = "endif",
    EndMenu = "endmenu",
    Help = "help",
    OldHelp = "---help---",
    Hex = "hex",
    If = "if",
    Imply = "imply",
    Int = "int",
    MainMenu = "mainmenu",
    Menu = "menu",
    MenuConfig = "menuconfig",
    Modules = "modules",
    On = "on",
    Option = "option",
    Optional = "optional",
    Prompt = "prompt",
    Range = "range",
    Select = "select",
    Source = "source",
    OptionalSource = "osource",
    RelativeSource = "rsource",
    OptionalRelativeSource = "orsource",
    GlobSource = "gsource",
    GlobRelativeSource = "grsource",
    String = "string",
    Transitional = "transitional",
    Tristate = "tristate",
    Visible = "visible",
}

impl Keyword {
    /// The keyword that a text of [`Keyword::names`] is.
    pub(crate) fn of(text: TextId) -> Option<Self> {
        Self::ALL.get(text.index()).map(|(keyword, _)| *keyword)
    }

    /// Names that hold the keywords and nothing else.
    pub(crate) fn names() -> Names {
        let mut names = Names::default();
        for (_, word) in Self::ALL {
            names.intern(word);
        }
        names
    }

    /// As written.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The rule by which a dialect has the word; all have those without one.
    pub(crate) fn rule(self) -> Option<Rule> {
        Some(match self {
            Self::Boolean => Rule::Boolean,
            Self::OldHelp => Rule::OldHelp,
            Self::DefInt | Self::DefHex | Self::DefString => Rule::DefinedTypes,
            Self::Imply => Rule::Imply,
            Self::Modules => Rule::ModulesWord,
            Self::Transitional => Rule::Transitional,
            Self::OptionalSource
            | Self::RelativeSource
            | Self::OptionalRelativeSource
            | Self::GlobSource
            | Self::GlobRelativeSource => Rule::RelativeSource,
            _ => return None,
        })
    }

    /// Whether the word is followed by a text, which older dialects take without quotes.
    pub(crate) fn takes_text(self) -> bool {
        matches!(
            self,
            Self::Source
                | Self::OptionalSource
                | Self::RelativeSource
                | Self::OptionalRelativeSource
                | Self::MainMenu
                | Self::Menu
                | Self::Comment
                | Self::Prompt
                | Self::Bool
                | Self::Boolean
                | Self::Tristate
                | Self::Int
                | Self::Hex
                | Self::String
        )
    }

    /// All words that may begin a line.
    pub(crate) fn words() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(|(keyword, _)| *keyword != Self::On).map(|(_, word)| *word)
    }

    /// The keyword that a misspelt word most likely means.
    pub(crate) fn suggest(word: &str) -> Option<Self> {
        let near = crate::suggest::suggest(word, Self::words())?;
        Self::ALL.iter().find(|(_, word)| *word == near).map(|(keyword, _)| *keyword)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_where_the_bytes_of_names_end() {
        for byte in 0..=u8::MAX {
            for before in 0..20 {
                let text = [&b"x".repeat(before)[..], &[byte], b"yyy"].concat();
                let length = if is_name_byte(byte) { text.len() } else { before };
                assert_eq!(length_of_word(&text, 0), length, "{byte:#x} behind {before}");
                assert_eq!(length_of_word(&[b" = ", &text[..]].concat(), 3), length, "{byte:#x} behind {before}");
            }
        }
    }
}
