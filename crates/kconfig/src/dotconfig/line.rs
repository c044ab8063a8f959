//! The one reader of lines of a `.config`; how strictly it reads is the caller's.
//!
//! Knows no symbols: whether a name or a value means anything is found out elsewhere.

use crate::dialect::{Dialect, Rule};

/// How a line is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// As people write: blanks at the end of a line do not count.
    Lenient,
    /// As the C tools up to 6.7: what follows `is not set` does not count, and a line without `=`
    /// is passed over.
    Start,
    /// As the C tools since 6.8: every character of a line counts.
    Whole,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'l> {
    /// Nothing: it is empty or a comment.
    Nothing,
    /// `# NAME is not set`
    Unset(&'l str),
    /// `NAME=value`: the value as written.
    Value(&'l str, &'l str),
    /// What no line of a `.config` says: as much of it as the C tools show.
    Unexpected(&'l str),
}

impl<'l> Line<'l> {
    /// Reads a line, with or without its end; `prefix` stands before all names.
    pub(crate) fn read(line: &'l str, prefix: &str, strictness: Strictness) -> Self {
        let line = if strictness == Strictness::Lenient { line.trim_end() } else { cut_as_c(line) };
        if line.is_empty() {
            return Self::Nothing;
        }
        if let Some(comment) = line.strip_prefix('#') {
            let unset = comment.strip_prefix(' ').and_then(|comment| comment.strip_prefix(prefix));
            let Some((name, rest)) = unset.and_then(|unset| unset.split_once(' ')) else { return Self::Nothing };
            let is_unset = match strictness {
                Strictness::Start => rest.starts_with("is not set"),
                Strictness::Lenient | Strictness::Whole => rest == "is not set",
            };
            return if is_unset { Self::Unset(name) } else { Self::Nothing };
        }
        let Some(rest) = line.strip_prefix(prefix) else {
            let shown = if strictness == Strictness::Start { line.split('\r').next().unwrap_or(line) } else { line };
            return Self::Unexpected(shown);
        };
        match memchr::memchr(b'=', rest.as_bytes()) {
            Some(at) => Self::Value(&rest[..at], &rest[at + 1..]),
            None if strictness == Strictness::Start => Self::Nothing,
            None => Self::Unexpected(line),
        }
    }

    /// The name and the value, `n` for what is not set.
    pub(crate) fn assignment(self) -> Option<(&'l str, &'l str)> {
        match self {
            Self::Unset(name) => Some((name, "n")),
            Self::Value(name, value) => Some((name, value)),
            Self::Nothing | Self::Unexpected(_) => None,
        }
    }
}

/// The lines of a text, each with its end.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        (!line.is_empty()).then_some(line)
    })
}

/// Passes on the lines of one file that count in a dialect, without what does not count in them.
pub(crate) struct Sieve {
    dialect: Dialect,
    is_among_old_names: bool,
}

impl Sieve {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, is_among_old_names: false }
    }

    /// What counts of the next line; of old names nothing does.
    pub(crate) fn pass<'l>(&mut self, line: &'l str) -> &'l str {
        if self.dialect.has(Rule::OldNamesSkipped) {
            match line.trim() {
                "# Deprecated options for backward compatibility" => self.is_among_old_names = true,
                "# End of deprecated options" => self.is_among_old_names = false,
                _ => {}
            }
            if self.is_among_old_names {
                return "";
            }
        }
        let line = if self.dialect.has(Rule::LineComments) { cut_comment(line) } else { line };
        if self.dialect.has(Rule::BlanksCut) { line.trim_end() } else { line }
    }
}

/// A value in front of its comment; a text in quotes has none.
fn cut_comment(line: &str) -> &str {
    let Some(at) = line.find('=').filter(|at| !line.starts_with('#') && !line[at + 1..].starts_with('"')) else {
        return line;
    };
    let value = &line[at + 1..];
    let comment = value.match_indices('#').find(|(hash, _)| value[..*hash].ends_with(char::is_whitespace));
    comment.map_or(line, |(hash, _)| &line[..at + 1 + hash])
}

/// The line up to its end; in C a text ends at the first zero byte, before the end of the line is
/// looked for.
fn cut_as_c(line: &str) -> &str {
    if let Some(zero) = memchr::memchr(0, line.as_bytes()) {
        return &line[..zero];
    }
    match line.strip_suffix('\n') {
        Some(line) => line.strip_suffix('\r').unwrap_or(line),
        None => line,
    }
}

/// The text between quotes; what follows the closing one is ignored, as in C. A `verbatim` text has
/// no escapes and ends with the line.
pub(crate) fn unquote(value: &str, verbatim: bool) -> Option<String> {
    let mut rest = value.strip_prefix('"')?;
    if verbatim {
        return rest.strip_suffix('"').map(str::to_owned);
    }
    let mut text = String::with_capacity(rest.len());
    loop {
        let at = rest.find(['"', '\\'])?;
        text.push_str(&rest[..at]);
        if rest.as_bytes()[at] == b'"' {
            return Some(text);
        }
        let next = rest[at + 1..].chars().next()?;
        text.push(next);
        rest = &rest[at + 1 + next.len_utf8()..];
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Strictness, unquote};

    #[test]
    fn strictness_decides_about_what_is_not_quite_a_line() {
        use Strictness::{Lenient, Start, Whole};
        let read = |line, strictness| Line::read(line, "C_", strictness);
        for strictness in [Lenient, Start, Whole] {
            assert_eq!(read("C_A=y\n", strictness), Line::Value("A", "y"));
            assert_eq!(read("# C_A is not set\r\n", strictness), Line::Unset("A"));
            assert_eq!(read("# C_A\n", strictness), Line::Nothing);
            assert_eq!(read("\n", strictness), Line::Nothing);
            assert_eq!(read("A=y\n", strictness), Line::Unexpected("A=y"));
        }
        assert_eq!(read("C_A=y \n", Lenient), Line::Value("A", "y"));
        assert_eq!(read("C_A=y \n", Whole), Line::Value("A", "y "));
        assert_eq!(read("# C_A is not set, is it\n", Start), Line::Unset("A"));
        assert_eq!(read("# C_A is not set, is it\n", Whole), Line::Nothing);
        assert_eq!(read("C_A\n", Start), Line::Nothing);
        assert_eq!(read("C_A\n", Whole), Line::Unexpected("C_A"));
        assert_eq!(read("C_A=\"x\0y\"\n", Start), Line::Value("A", "\"x"));
    }

    #[test]
    fn texts_are_between_quotes() {
        assert_eq!(unquote(r#""a\"b" c"#, false).as_deref(), Some("a\"b"));
        assert_eq!(unquote(r#""a\"b""#, true).as_deref(), Some(r#"a\"b"#));
        assert_eq!(unquote("\"a", false), None);
        assert_eq!(unquote("\"a", true), None);
        assert_eq!(unquote("\"", true), None);
    }
}
