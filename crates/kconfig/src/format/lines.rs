//! Takes a file apart into statements, comments, help texts and empty lines, as the reader of the
//! language does.

/// Words that open, close or stand between entries.
const TOP: &[&str] = &[
    "choice",
    "comment",
    "config",
    "endchoice",
    "endif",
    "endmenu",
    "if",
    "mainmenu",
    "menu",
    "menuconfig",
    "orsource",
    "osource",
    "rsource",
    "source",
];

/// One or more lines that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit<'t> {
    pub kind: UnitKind,
    /// The lines as in the file, without their ends.
    pub lines: Vec<&'t str>,
    /// The number of the first one, from 1.
    pub number: usize,
}

/// What the lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    Blank,
    /// A line with nothing but a comment.
    Comment,
    /// `config`, `menuconfig` and `choice`: what has an empty line before it.
    Entry,
    /// Everything else at the margin.
    Block,
    /// A line inside an entry.
    Attribute,
    /// `help` with its text.
    Help,
    /// An assignment, or a line that starts with a macro: blanks may matter.
    Macro,
}

impl Unit<'_> {
    /// Whether the line stood at the margin.
    pub(super) fn is_indented(&self) -> bool {
        self.lines.first().is_some_and(|line| line.starts_with(is_blank))
    }
}

pub(super) fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\x0c' | '\r')
}

/// The width of the blanks at the start, tabs going to the next multiple of eight.
pub(super) fn indentation(line: &str) -> usize {
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

pub(super) fn trim(line: &str) -> &str {
    line.trim_matches(is_blank)
}

/// The first word of a line.
pub(super) fn first_word(line: &str) -> &str {
    let line = line.trim_start_matches(is_blank);
    let end = line.find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')));
    &line[..end.unwrap_or(line.len())]
}

/// All units of a file in order.
pub(super) fn split(text: &str) -> Vec<Unit<'_>> {
    let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\r')).collect();
    // Behind the last end of line there is no line.
    let lines = if lines.last() == Some(&"") { &lines[..lines.len() - 1] } else { &lines[..] };
    let (mut units, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let start = at;
        let kind = classify(lines[at]);
        at += 1;
        match kind {
            UnitKind::Blank | UnitKind::Comment => {}
            _ => {
                while lines[at - 1].ends_with('\\') && at < lines.len() {
                    at += 1;
                }
                if kind == UnitKind::Help {
                    at = end_of_help(lines, at);
                }
            }
        }
        units.push(Unit { kind, lines: lines[start..at].to_vec(), number: start + 1 });
    }
    units
}

fn classify(line: &str) -> UnitKind {
    let text = trim(line);
    if text.is_empty() {
        return UnitKind::Blank;
    }
    if text.starts_with('#') {
        return UnitKind::Comment;
    }
    let word = first_word(line);
    match word {
        "help" | "---help---" => UnitKind::Help,
        "config" | "menuconfig" | "choice" => UnitKind::Entry,
        _ if TOP.contains(&word) => UnitKind::Block,
        _ if text.starts_with('$') || is_assignment(text, word) => UnitKind::Macro,
        _ => UnitKind::Attribute,
    }
}

/// `NAME = value` and its relatives, where the name is no word of the language.
fn is_assignment(text: &str, word: &str) -> bool {
    let after = text[word.len()..].trim_start_matches(is_blank);
    !word.is_empty() && ["=", ":=", "+="].iter().any(|operator| after.starts_with(operator))
}

/// Behind the last line of a help text that starts at `at`; empty lines at its end are not part of
/// it.
fn end_of_help(lines: &[&str], at: usize) -> usize {
    let (mut end, mut first) = (at, None);
    for (index, line) in lines.iter().enumerate().skip(at) {
        if trim(line).is_empty() {
            continue;
        }
        let width = indentation(line);
        if width == 0 || width < *first.get_or_insert(width) {
            break;
        }
        end = index + 1;
    }
    end
}
