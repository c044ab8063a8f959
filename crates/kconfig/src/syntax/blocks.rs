//! Puts lines together: entries with their attributes, blocks with what they enclose, files with what they source.
//!
//! Goes on after an error, so that one run finds many. A line that is wrong is reported once and skipped.

use std::sync::Arc;

use super::ast::{Attribute, AttributeKind, Item, ItemKind, Word};
use super::line::{Parts, Rule, parse_line};
use super::macros::Assignment;
use super::reader::{LogicalLine, Raw, Reader};
use crate::diagnostic::Diagnostic;
use crate::load::Loader;
use crate::source::{FileId, Span};
use crate::suggest::suggest;
use crate::tree::Annotation;
use crate::value::SymbolType;

/// All words that may begin a line.
const KEYWORDS: &[&str] = &[
    "bool",
    "boolean",
    "choice",
    "comment",
    "config",
    "def_bool",
    "def_hex",
    "def_int",
    "def_string",
    "def_tristate",
    "default",
    "depends",
    "endchoice",
    "endif",
    "endmenu",
    "help",
    "hex",
    "if",
    "imply",
    "int",
    "mainmenu",
    "menu",
    "menuconfig",
    "modules",
    "option",
    "optional",
    "orsource",
    "osource",
    "prompt",
    "range",
    "rsource",
    "select",
    "source",
    "string",
    "transitional",
    "tristate",
    "visible",
];

/// Where attributes go.
#[derive(Debug)]
enum Target {
    /// Nowhere: an attribute here is out of place.
    None,
    /// To an entry that ends at the next one.
    Entry(Item),
    /// To the block that has just been opened.
    Block,
    /// Away: the line that opened the entry was wrong.
    Broken,
}

/// A block that is open.
#[derive(Debug)]
struct Frame {
    item: Item,
    closing: &'static str,
}

/// Parses one file.
pub(crate) struct Blocks<'l, 'a, 's> {
    loader: &'l mut Loader<'a>,
    file: FileId,
    reader: Reader<'s>,
    frames: Vec<Frame>,
    /// The items outside all blocks.
    items: Vec<Item>,
    target: Target,
    annotations: Vec<Annotation>,
}

/// The items of one file, its sources included.
pub(crate) fn parse_file(loader: &mut Loader<'_>, file: FileId, text: &Arc<str>) -> Vec<Item> {
    let reader = Reader::new(file, text);
    let mut blocks = Blocks {
        loader,
        file,
        reader,
        frames: Vec::new(),
        items: Vec::new(),
        target: Target::None,
        annotations: Vec::new(),
    };
    while let Some(raw) = blocks.reader.next() {
        match raw {
            Raw::Blank => blocks.drop_annotations(),
            Raw::Comment => {}
            Raw::Annotation { text, span } => blocks.annotations.push(split_annotation(text, span)),
            Raw::Statement(line) => blocks.take_statement(&line),
        }
    }
    blocks.finish()
}

fn split_annotation(text: &str, span: Span) -> Annotation {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    Annotation { key: key.trim().to_owned(), value: value.trim().to_owned(), span }
}

impl Blocks<'_, '_, '_> {
    fn report(&mut self, finding: Diagnostic) {
        self.loader.report(finding);
    }

    /// Structured comments that no entry follows.
    fn drop_annotations(&mut self) {
        if let Some(first) = std::mem::take(&mut self.annotations).into_iter().next() {
            let finding = Diagnostic::warning("K012", first.span, "this structured comment belongs to no entry");
            self.report(finding.with_help("put it directly above config, menuconfig, choice, menu or comment"));
        }
    }

    fn take_statement(&mut self, line: &LogicalLine<'_>) {
        if self.take_assignment(line) {
            return;
        }
        if !line.text.contains("$(") {
            self.dispatch(line);
            return;
        }
        match self.loader.expand(line, self.file) {
            Ok(expanded) if expanded.text.trim().is_empty() => {}
            Ok(expanded) => self.dispatch(&expanded),
            Err(finding) => self.report(finding),
        }
    }

    /// `NAME = value` and its relatives; keywords are no names.
    fn take_assignment(&mut self, line: &LogicalLine<'_>) -> bool {
        let text = line.text.trim_start();
        let start = line.text.len() - text.len();
        let name = &text[..text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(0)];
        let after = text[name.len()..].trim_start();
        let (how, length) = match after.as_bytes() {
            [b':', b'=', ..] => (Assignment::Simple, 2),
            [b'+', b'=', ..] => (Assignment::Append, 2),
            [b'=', ..] => (Assignment::Recursive, 1),
            _ => return false,
        };
        if name.is_empty() || KEYWORDS.contains(&name) {
            return false;
        }
        let value = start + (text.len() - after.len()) + length..line.text.len();
        if let Err(finding) = self.loader.assign(name, how, line, value, self.file) {
            self.report(finding);
        }
        true
    }

    fn dispatch(&mut self, line: &LogicalLine<'_>) {
        let (keyword, start) = first_word(&line.text);
        let span = line.span(start, start + keyword.len());
        let taken = match keyword {
            "config" | "menuconfig" => self.open_config(line, keyword == "menuconfig"),
            "comment" => self.open_comment(line),
            "mainmenu" => self.take_mainmenu(line),
            "source" | "osource" | "rsource" | "orsource" => self.take_source(line, keyword),
            "menu" | "choice" | "if" => self.open_block(line, keyword),
            "endmenu" | "endchoice" | "endif" => self.close_block(line, keyword, span),
            "help" | "---help---" => self.take_help(line, keyword, span),
            _ => self.take_attribute(line, keyword, span),
        };
        if let Err(finding) = taken {
            self.report(finding);
            let meant = if KEYWORDS.contains(&keyword) { None } else { suggest(keyword, KEYWORDS.iter().copied()) };
            let meant = meant.as_deref().unwrap_or(keyword);
            let opens = matches!(meant, "config" | "menuconfig" | "comment" | "mainmenu" | "menu" | "choice" | "if");
            if opens {
                self.close_entry();
                self.target = Target::Broken;
            }
            if matches!(meant, "menu" | "choice" | "if") {
                self.open_broken_block(line, meant);
            }
        }
    }

    fn open_config(&mut self, line: &LogicalLine<'_>, menu: bool) -> Result<(), Diagnostic> {
        let name = required(parse_line(line, Rule::name_line)?.word(), line)?;
        self.open_entry(line, ItemKind::Config { name, menu });
        Ok(())
    }

    fn open_comment(&mut self, line: &LogicalLine<'_>) -> Result<(), Diagnostic> {
        let text = required(parse_line(line, Rule::text_line)?.word(), line)?;
        self.open_entry(line, ItemKind::Comment(text));
        Ok(())
    }

    fn take_mainmenu(&mut self, line: &LogicalLine<'_>) -> Result<(), Diagnostic> {
        let text = required(parse_line(line, Rule::text_line)?.word(), line)?;
        self.drop_annotations();
        self.open_entry(line, ItemKind::MainMenu(text));
        self.close_entry();
        Ok(())
    }

    fn take_source(&mut self, line: &LogicalLine<'_>, keyword: &str) -> Result<(), Diagnostic> {
        let path = required(parse_line(line, Rule::text_line)?.word(), line)?;
        self.drop_annotations();
        self.close_entry();
        let depth = self.frames.len();
        let items = self.loader.source(self.file, &path, keyword, depth)?;
        let item =
            Item { kind: ItemKind::Source, span: line.whole(), annotations: Vec::new(), attributes: Vec::new(), items };
        self.push(item);
        Ok(())
    }

    fn open_block(&mut self, line: &LogicalLine<'_>, keyword: &str) -> Result<(), Diagnostic> {
        let kind = match keyword {
            "menu" => ItemKind::Menu(required(parse_line(line, Rule::text_line)?.word(), line)?),
            "choice" => ItemKind::Choice { name: parse_line(line, Rule::choice_line)?.word() },
            _ => ItemKind::If(required(parse_line(line, Rule::if_line)?.expression(), line)?),
        };
        self.close_entry();
        self.loader.check_depth(self.frames.len(), line.whole())?;
        self.target = if keyword == "if" { Target::None } else { Target::Block };
        if keyword == "if" {
            self.drop_annotations();
        }
        self.push_frame(line, kind);
        Ok(())
    }

    /// Keeps the nesting right after a block's first line was wrong.
    fn open_broken_block(&mut self, line: &LogicalLine<'_>, keyword: &str) {
        let word = Word { text: "".into(), quoted: true, span: line.whole() };
        let kind = if keyword == "choice" { ItemKind::Choice { name: None } } else { ItemKind::Menu(word) };
        self.push_frame(line, kind);
        if let Some(frame) = self.frames.last_mut() {
            frame.closing = closing_of(keyword);
        }
    }

    fn push_frame(&mut self, line: &LogicalLine<'_>, kind: ItemKind) {
        let closing = match kind {
            ItemKind::Menu(_) => "endmenu",
            ItemKind::Choice { .. } => "endchoice",
            _ => "endif",
        };
        let annotations = std::mem::take(&mut self.annotations);
        let item = Item { kind, span: line.whole(), annotations, attributes: Vec::new(), items: Vec::new() };
        self.frames.push(Frame { item, closing });
    }

    fn close_block(&mut self, line: &LogicalLine<'_>, keyword: &str, span: Span) -> Result<(), Diagnostic> {
        self.drop_annotations();
        self.close_entry();
        self.target = Target::None;
        let Some(at) = self.frames.iter().rposition(|frame| frame.closing == keyword) else {
            let message = format!("`{keyword}` closes nothing: no `{}` is open in this file", &keyword[3..]);
            return Err(Diagnostic::error("K004", span, message));
        };
        while self.frames.len() > at + 1 {
            self.close_unclosed(span, keyword);
        }
        if let Some(frame) = self.frames.pop() {
            self.push(frame.item);
        }
        parse_line(line, Rule::bare_line).map(drop)
    }

    /// A block that something else ended.
    fn close_unclosed(&mut self, end: Span, what: &str) {
        if let Some(frame) = self.frames.pop() {
            let opening = &frame.closing[3..];
            let finding = Diagnostic::error("K005", frame.item.span, format!("this `{opening}` is not closed"));
            self.report(finding.with_label(end, format!("`{}` is missing before {what}", frame.closing)));
            self.push(frame.item);
        }
    }

    fn take_help(&mut self, line: &LogicalLine<'_>, keyword: &str, span: Span) -> Result<(), Diagnostic> {
        if keyword == "help" {
            parse_line(line, Rule::bare_line)?;
        }
        let text = self.reader.help();
        if text.is_empty() {
            let finding = Diagnostic::warning("K013", span, "this help has no text");
            self.report(finding.with_help("indent the text below `help`"));
        }
        self.attach(Attribute { kind: AttributeKind::Help(text), span }, keyword)
    }

    fn take_attribute(&mut self, line: &LogicalLine<'_>, keyword: &str, span: Span) -> Result<(), Diagnostic> {
        let Some(rule) = rule_of(keyword) else { return Err(explain_unknown(keyword, span)) };
        let parts = parse_line(line, rule)?;
        for kind in lower_attribute(keyword, parts, line)? {
            self.attach(Attribute { kind, span }, keyword)?;
        }
        Ok(())
    }

    /// Gives an attribute to the entry or block that it stands in.
    fn attach(&mut self, attribute: Attribute, keyword: &str) -> Result<(), Diagnostic> {
        self.drop_annotations();
        let item = match &mut self.target {
            Target::Broken => return Ok(()),
            Target::None => None,
            Target::Entry(item) => Some(item),
            Target::Block => self.frames.last_mut().map(|frame| &mut frame.item),
        };
        let Some(item) = item else {
            let finding = Diagnostic::error("K006", attribute.span, format!("`{keyword}` stands in no entry"));
            return Err(finding.with_help("attributes follow the config, choice, menu or comment that they belong to"));
        };
        if let Some(place) = refuse(&item.kind, &attribute.kind) {
            let finding = Diagnostic::error("K006", attribute.span, format!("`{keyword}` is not allowed in {place}"));
            return Err(finding.with_label(item.span, "this entry"));
        }
        item.attributes.push(attribute);
        Ok(())
    }

    fn open_entry(&mut self, line: &LogicalLine<'_>, kind: ItemKind) {
        self.close_entry();
        let annotations = std::mem::take(&mut self.annotations);
        let item = Item { kind, span: line.whole(), annotations, attributes: Vec::new(), items: Vec::new() };
        self.target = Target::Entry(item);
    }

    fn close_entry(&mut self) {
        if let Target::Entry(item) = std::mem::replace(&mut self.target, Target::None) {
            self.push(item);
        }
    }

    fn push(&mut self, item: Item) {
        match self.frames.last_mut() {
            Some(frame) => frame.item.items.push(item),
            None => self.items.push(item),
        }
    }

    fn finish(mut self) -> Vec<Item> {
        self.drop_annotations();
        self.close_entry();
        while !self.frames.is_empty() {
            let end = self.reader.end();
            self.close_unclosed(end, "the end of this file");
        }
        self.items
    }
}

/// The first word of a line and where it starts.
fn first_word(text: &str) -> (&str, usize) {
    let rest = text.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).unwrap_or(rest.len());
    // A line that starts with something else entirely is shown up to its first blank.
    let end = if end == 0 { rest.find(char::is_whitespace).unwrap_or(rest.len()) } else { end };
    (&rest[..end], text.len() - rest.len())
}

fn explain_unknown(word: &str, span: Span) -> Diagnostic {
    let finding = Diagnostic::error("K001", span, format!("`{word}` is not a word of the language"));
    match suggest(word, KEYWORDS.iter().copied()) {
        Some(near) => finding.with_help(format!("did you mean `{near}`?")),
        None => finding,
    }
}

fn closing_of(keyword: &str) -> &'static str {
    match keyword {
        "menu" => "endmenu",
        "choice" => "endchoice",
        _ => "endif",
    }
}

fn rule_of(keyword: &str) -> Option<Rule> {
    Some(match keyword {
        "bool" | "boolean" | "tristate" | "int" | "hex" | "string" => Rule::type_line,
        "def_bool" | "def_tristate" | "def_int" | "def_hex" | "def_string" | "default" => Rule::default_line,
        "prompt" => Rule::prompt_line,
        "depends" => Rule::depends_line,
        "select" | "imply" => Rule::select_line,
        "range" => Rule::range_line,
        "visible" => Rule::visible_line,
        "option" => Rule::option_line,
        "modules" | "optional" | "transitional" => Rule::bare_line,
        _ => return None,
    })
}

fn type_of(keyword: &str) -> SymbolType {
    match keyword.strip_prefix("def_").unwrap_or(keyword) {
        "bool" | "boolean" => SymbolType::Bool,
        "tristate" => SymbolType::Tristate,
        "int" => SymbolType::Int,
        "hex" => SymbolType::Hex,
        "string" => SymbolType::String,
        _ => SymbolType::Unknown,
    }
}

fn lower_attribute(
    keyword: &str,
    mut parts: Parts<'_, '_>,
    line: &LogicalLine<'_>,
) -> Result<Vec<AttributeKind>, Diagnostic> {
    let default = |parts: &mut Parts<'_, '_>| -> Result<AttributeKind, Diagnostic> {
        let value = required(parts.expression(), line)?;
        Ok(AttributeKind::Default { value, condition: parts.condition() })
    };
    let one = match keyword {
        "bool" | "boolean" | "tristate" | "int" | "hex" | "string" => {
            let kind = AttributeKind::Type { kind: type_of(keyword) };
            let Some(text) = parts.word() else { return Ok(vec![kind]) };
            return Ok(vec![kind, AttributeKind::Prompt { text, condition: parts.condition() }]);
        }
        "default" => default(&mut parts)?,
        "prompt" => AttributeKind::Prompt { text: required(parts.word(), line)?, condition: parts.condition() },
        "depends" => {
            let expression = required(parts.expression(), line)?;
            AttributeKind::DependsOn { expression, condition: parts.condition() }
        }
        "select" => AttributeKind::Select { target: required(parts.word(), line)?, condition: parts.condition() },
        "imply" => AttributeKind::Imply { target: required(parts.word(), line)?, condition: parts.condition() },
        "range" => {
            let (low, high) = (required(parts.word(), line)?, required(parts.word(), line)?);
            AttributeKind::Range { low, high, condition: parts.condition() }
        }
        "visible" => AttributeKind::VisibleIf(required(parts.expression(), line)?),
        "option" => lower_option(&mut parts, line)?,
        "modules" => AttributeKind::Modules,
        "optional" => AttributeKind::Optional,
        "transitional" => AttributeKind::Transitional,
        _ => return Ok(vec![AttributeKind::Type { kind: type_of(keyword) }, default(&mut parts)?]),
    };
    Ok(vec![one])
}

fn lower_option(parts: &mut Parts<'_, '_>, line: &LogicalLine<'_>) -> Result<AttributeKind, Diagnostic> {
    let name = required(parts.word(), line)?;
    match (&*name.text, parts.word()) {
        ("modules", None) => Ok(AttributeKind::Modules),
        ("env", Some(variable)) => Ok(AttributeKind::Env(variable)),
        ("defconfig_list" | "allnoconfig_y", None) => Ok(AttributeKind::Ignored),
        ("env", None) => {
            Err(Diagnostic::error("K002", name.span, "`option env` needs a variable: option env=\"NAME\""))
        }
        (other, _) => {
            let finding = Diagnostic::error("K001", name.span, format!("there is no option `{other}`"));
            let known = ["modules", "env", "defconfig_list", "allnoconfig_y"];
            Err(match suggest(other, known.into_iter()) {
                Some(near) => finding.with_help(format!("did you mean `{near}`?")),
                None => finding,
            })
        }
    }
}

/// Where an attribute may not stand, as words for a message.
fn refuse(item: &ItemKind, attribute: &AttributeKind) -> Option<&'static str> {
    use AttributeKind as A;
    match item {
        ItemKind::Config { .. } => matches!(attribute, A::VisibleIf(_) | A::Optional).then_some("a config"),
        ItemKind::Choice { .. } => {
            let allowed = matches!(
                attribute,
                A::Type { .. } | A::Prompt { .. } | A::Default { .. } | A::DependsOn { .. } | A::Optional | A::Help(_)
            );
            (!allowed).then_some("a choice")
        }
        ItemKind::Menu(_) => (!matches!(attribute, A::DependsOn { .. } | A::VisibleIf(_))).then_some("a menu"),
        ItemKind::Comment(_) => (!matches!(attribute, A::DependsOn { .. })).then_some("a comment"),
        ItemKind::MainMenu(_) | ItemKind::If(_) | ItemKind::Source => Some("this place"),
    }
}

/// The grammar guarantees the part; a finding rather than a panic if it were not there.
fn required<T>(part: Option<T>, line: &LogicalLine<'_>) -> Result<T, Diagnostic> {
    part.ok_or_else(|| Diagnostic::error("K002", line.whole(), "this line is not complete"))
}
