//! Writes the units of a file in the canonical form.

use super::lines::{Unit, UnitKind, indentation, is_blank, trim};

/// The width of a tab and two spaces.
const HELP_WIDTH: usize = 10;

/// The whole file.
pub(super) fn write(units: &[Unit<'_>]) -> String {
    let mut writer = Writer { text: String::new(), before: None, gap: false, after_empty_help: false };
    for (at, unit) in units.iter().enumerate() {
        if unit.kind == UnitKind::Blank {
            writer.gap = true;
        } else {
            let rest = &units[at..];
            let inside = unit.kind == UnitKind::Comment && unit.is_indented() && writer.is_inside(rest);
            writer.write_gap(unit, inside, rest);
            writer.write_unit(unit, inside);
            writer.before = Some(unit.kind);
            writer.gap = false;
        }
    }
    writer.text
}

/// A backslash before the blanks at the end of a line joins nothing; without them it would.
fn keep_end(text: &str, line: &str) -> String {
    let blank = if text.ends_with('\\') && !line.ends_with('\\') { " " } else { "" };
    format!("{text}{blank}")
}

struct Writer {
    text: String,
    /// What was written last; a comment inside an entry counts as an attribute.
    before: Option<UnitKind>,
    /// Whether there were empty lines since.
    gap: bool,
    /// An indented line here would become its text.
    after_empty_help: bool,
}

impl Writer {
    fn line(&mut self, indent: &str, text: &str) {
        if !text.is_empty() {
            self.text.push_str(indent);
            self.text.push_str(text);
        }
        self.text.push('\n');
    }

    /// The empty line before a unit, or none; `inside` tells of a comment in an entry, `rest`
    /// starts with the unit.
    fn write_gap(&mut self, unit: &Unit<'_>, inside: bool, rest: &[Unit<'_>]) {
        let Some(before) = self.before else { return };
        let wanted = match unit.kind {
            UnitKind::Entry => before != UnitKind::Comment || self.gap,
            // Comments directly above an entry belong to it.
            UnitKind::Comment if before != UnitKind::Comment && !inside => {
                let next = rest.iter().find(|next| next.kind != UnitKind::Comment);
                self.gap || next.is_some_and(|next| next.kind == UnitKind::Entry)
            }
            UnitKind::Attribute | UnitKind::Help => self.gap && before == UnitKind::Comment,
            _ => self.gap,
        };
        if wanted {
            self.text.push('\n');
        }
    }

    fn write_unit(&mut self, unit: &Unit<'_>, inside: bool) {
        let after_empty_help = std::mem::replace(&mut self.after_empty_help, false);
        let indent = if after_empty_help { "" } else { "\t" };
        match unit.kind {
            UnitKind::Blank => {}
            UnitKind::Comment => {
                self.line(if inside { indent } else { "" }, trim(unit.lines[0]));
            }
            UnitKind::Entry | UnitKind::Block => self.write_statement("", unit),
            UnitKind::Attribute => self.write_statement(indent, unit),
            UnitKind::Macro => {
                // Blanks at the end of a value are part of it.
                let first = unit.lines[0].trim_start_matches(is_blank);
                self.line("", first);
                for line in &unit.lines[1..] {
                    self.line("", line);
                }
            }
            UnitKind::Help => self.write_help(indent, unit),
        }
    }

    /// Whether a comment stands inside an entry: directly behind one of its lines, or before one.
    fn is_inside(&self, rest: &[Unit<'_>]) -> bool {
        use UnitKind::{Attribute, Blank, Comment, Entry, Help};
        let next = rest.iter().find(|next| !matches!(next.kind, Comment | Blank));
        let behind = matches!(self.before, Some(Attribute | Help | Entry | Comment)) && !self.gap;
        let ends_inside = self.text.lines().last().is_some_and(|line| {
            // A comment at the margin is outside, and so is what follows it.
            self.before != Some(Comment) || line.starts_with('\t')
        });
        next.is_some_and(|next| matches!(next.kind, Attribute | Help)) || behind && ends_inside
    }

    fn write_statement(&mut self, indent: &str, unit: &Unit<'_>) {
        match &*unit.lines {
            [only] => self.line(indent, &keep_end(&squeeze(trim(only)), only)),
            [first, middle @ .., last] => {
                self.line(indent, first.trim_start_matches(is_blank));
                for line in middle {
                    self.line("", line);
                }
                self.line("", &keep_end(last.trim_end_matches(is_blank), last));
            }
            [] => {}
        }
    }

    fn write_help(&mut self, indent: &str, unit: &Unit<'_>) {
        let keyword = squeeze(trim(unit.lines[0]));
        let keyword = keyword.strip_prefix("---help---").map_or(keyword.clone(), |rest| format!("help{rest}"));
        self.line(indent, &keyword);
        let text = unit.lines[1..].iter().skip_while(|line| trim(line).is_empty());
        let mut first = None;
        for line in text {
            let width = indentation(line);
            let content = trim(line);
            let base = *first.get_or_insert(width);
            // A tab and two spaces, and on from there as tabs go.
            let width = HELP_WIDTH + width.saturating_sub(base);
            let indent = "\t".repeat(width / 8) + &" ".repeat(width % 8);
            self.line(&indent, content);
        }
        self.after_empty_help = first.is_none();
    }
}

/// One space between words, spaces around `&&` and `||`, none inside parentheses and behind `!`;
/// texts and comments as they are.
///
/// A line with a macro stays as it is: blanks in arguments matter.
fn squeeze(line: &str) -> String {
    if line.contains('$') {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let taken = match letter {
            '"' | '\'' => {
                let end = end_of_text(rest);
                out.push_str(&rest[..end]);
                end
            }
            '#' => {
                ensure_space(&mut out);
                out.push_str(rest);
                rest.len()
            }
            '&' | '|' if rest[1..].starts_with(letter) => {
                ensure_space(&mut out);
                out.push_str(&rest[..2]);
                out.push(' ');
                2 + blanks(&rest[2..])
            }
            '(' => {
                out.push('(');
                1 + blanks(&rest[1..])
            }
            '!' if !rest[1..].starts_with('=') => {
                out.push('!');
                1 + blanks(&rest[1..])
            }
            ')' => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push(')');
                1
            }
            letter if is_blank(letter) => {
                ensure_space(&mut out);
                blanks(rest)
            }
            letter => {
                out.push(letter);
                letter.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

fn ensure_space(out: &mut String) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
}

/// How many bytes of blanks a text starts with.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

/// Behind the quote that closes the text; a text that is not closed goes to the end of the line.
fn end_of_text(text: &str) -> usize {
    let mut letters = text.char_indices();
    let Some((_, quote)) = letters.next() else { return 0 };
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return at + 1;
        }
    }
    text.len()
}
