//! Puts lines together: entries with their attributes, blocks with what they enclose, files with
//! what they source.
//!
//! Goes on after an error, so that one run finds many. A line that is wrong is reported once and
//! skipped.

use thin_vec::ThinVec;

use super::ast::{Attribute, Item, ItemKind, PendingLine, Word};
use super::lower::{explain_foreign, lower_attribute, refuse_in, required, rule_of};
use super::macros::Macros;
use super::reader::{LogicalLine, Raw, Reader, length, narrow};
use super::shape::{Parts, Rule as Shape, describe_token};
use super::token::{Keyword, Token, Tokens, kind};
use crate::diagnostic::Diagnostic;
use crate::dialect::Rule;
use crate::expr::TextId;
use crate::load::Loader;
use crate::source::{FileId, Span};
use crate::tree::{Annotation, HelpPlace};

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
    closing: Keyword,
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
    annotations: ThinVec<Annotation>,
}

/// An entry with its help is about as long, in bytes.
const LENGTH_OF_ENTRY: usize = 256;

/// The items of one file, its sources included.
pub(crate) fn parse_file(loader: &mut Loader<'_>, file: FileId, text: &str) -> Vec<Item> {
    let reader = Reader::new(file, text, loader.dialect());
    let mut blocks = Blocks {
        loader,
        file,
        reader,
        frames: Vec::new(),
        items: Vec::with_capacity(text.len() / LENGTH_OF_ENTRY),
        target: Target::None,
        annotations: ThinVec::new(),
    };
    let (mut says_something, mut tokens) = (false, Tokens::new());
    while let Some(raw) = blocks.reader.next() {
        says_something = false;
        match raw {
            Raw::Blank => blocks.drop_annotations(),
            Raw::Comment => {}
            Raw::Annotation { text, span } => blocks.annotations.push(split_annotation(text, span)),
            Raw::Statement(line) => says_something = blocks.take_statement(&line, &mut tokens),
        }
    }
    if says_something && !text.ends_with('\n') && blocks.loader.dialect().has(Rule::OpenEndWarning) {
        let end = blocks.reader.open_end();
        blocks.report(Diagnostic::warning("K032", end, "the last line has no end"));
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
    #[inline]
    fn drop_annotations(&mut self) {
        if !self.annotations.is_empty() {
            self.report_annotations();
        }
    }

    #[cold]
    fn report_annotations(&mut self) {
        if let Some(first) = std::mem::take(&mut self.annotations).into_iter().next() {
            let finding = Diagnostic::warning("K012", first.span, "this structured comment belongs to no entry");
            self.report(finding.with_help("put it directly above config, menuconfig, choice, menu or comment"));
        }
    }

    /// Takes a line; whether it says anything and no help text follows it.
    fn take_statement(&mut self, line: &LogicalLine<'_>, tokens: &mut Tokens) -> bool {
        let behind = self.reader.offset();
        // Every sixth line is this one.
        if let Some(span) = line.find_only(Keyword::Help.as_str()) {
            self.take_help(span, Keyword::Help).unwrap_or_else(|finding| self.report(finding));
            return self.reader.offset() == behind;
        }
        match self.loader.split(line, self.file, tokens) {
            Ok(()) => self.take_tokens(line, tokens),
            Err(finding) => {
                let keyword = tokens.list.first().and_then(|first| Keyword::of(first.text));
                self.recover(line, keyword, finding);
            }
        }
        !tokens.list.is_empty() && self.reader.offset() == behind
    }

    fn take_tokens(&mut self, line: &LogicalLine<'_>, tokens: &mut Tokens) {
        // Only references that made nothing, for what they do.
        let Some(first) = tokens.list.first().copied() else { return };
        if let Some((how, value)) = tokens.assignment {
            let taken = self.loader.assign(first, how, line, value, self.file);
            return taken.unwrap_or_else(|finding| self.report(finding));
        }
        let keyword = (first.kind == kind::WORD).then(|| Keyword::of(first.text)).flatten();
        if self.loader.dialect().has(Rule::BareTexts)
            && keyword.is_some_and(Keyword::takes_text)
            && let Some(text) = tokens.list.get_mut(1).filter(|token| token.kind == kind::WORD)
        {
            text.kind = kind::TEXT;
        }
        if tokens.pending {
            self.name_symbols(&tokens.list[1..]);
            if let Some(keyword) = keyword.filter(|keyword| rule_of(*keyword).is_some() && self.takes_attributes()) {
                let line = PendingLine { keyword, tokens: tokens.list[1..].to_vec(), line: line.to_owned_line() };
                let attached = self.attach(Attribute::Pending(Box::new(line)), first.span, keyword);
                return attached.unwrap_or_else(|finding| self.report(finding));
            }
            if let Err(finding) = self.loader.resolve_tokens(&mut tokens.list) {
                return self.recover(line, keyword, finding);
            }
        }
        if let Err(finding) = self.dispatch(line, keyword, first, tokens.list.get(1..).unwrap_or_default()) {
            if self.take_without_junk(line, tokens) {
                return;
            }
            let text = self.loader.names.text(first.text);
            let meant = keyword.or_else(|| (first.kind == kind::WORD).then(|| Keyword::suggest(text)).flatten());
            self.recover(line, meant, finding);
        }
    }

    /// Symbols are numbered in the order in which the files name them, also by lines that wait.
    fn name_symbols(&mut self, tokens: &[Token]) {
        for token in tokens.iter().filter(|token| token.kind == kind::WORD) {
            let text = self.loader.names.text(token.text);
            if !Macros::is_pending(text) {
                self.loader.names.bare(token.text, token.span);
            }
        }
    }

    /// A line that makes sense without its characters that mean nothing is taken so, as the C tools
    /// take it.
    fn take_without_junk(&mut self, line: &LogicalLine<'_>, tokens: &Tokens) -> bool {
        let (junk, list): (Vec<Token>, Vec<Token>) = tokens.list.iter().partition(|token| token.kind == kind::JUNK);
        if junk.is_empty() {
            return false;
        }
        if let Some((first, rest)) = list.split_first() {
            let keyword = (first.kind == kind::WORD).then(|| Keyword::of(first.text)).flatten();
            if self.dispatch(line, keyword, *first, rest).is_err() {
                return false;
            }
        }
        for token in junk {
            let shown = describe_token(line, token);
            self.report(Diagnostic::warning("K015", token.span, format!("{shown} means nothing here and is ignored")));
        }
        true
    }

    fn dispatch(
        &mut self,
        line: &LogicalLine<'_>,
        keyword: Option<Keyword>,
        first: Token,
        rest: &[Token],
    ) -> Result<(), Diagnostic> {
        let Some(keyword) = keyword else { return Err(self.explain_unknown(line, first)) };
        self.refuse_foreign(keyword, first.span)?;
        match keyword {
            Keyword::Config | Keyword::MenuConfig => self.open_config(line, rest, keyword == Keyword::MenuConfig),
            Keyword::Comment => self.open_comment(line, rest),
            Keyword::MainMenu => self.take_mainmenu(line, rest),
            Keyword::Source
            | Keyword::OptionalSource
            | Keyword::RelativeSource
            | Keyword::OptionalRelativeSource
            | Keyword::GlobSource
            | Keyword::GlobRelativeSource => self.take_source(line, rest, keyword),
            Keyword::Menu | Keyword::Choice | Keyword::If => self.open_block(line, rest, keyword),
            Keyword::EndMenu | Keyword::EndChoice | Keyword::EndIf => self.close_block(line, rest, keyword, first.span),
            Keyword::Help | Keyword::OldHelp => {
                self.parts(Shape::bare_line, rest, line)?;
                self.take_help(first.span, keyword)
            }
            _ => self.take_attribute(line, rest, keyword, first),
        }
    }

    /// Refuses what other dialects have, and what this one does not allow inside a choice.
    fn refuse_foreign(&self, keyword: Keyword, span: Span) -> Result<(), Diagnostic> {
        let dialect = self.loader.dialect();
        if let Some(rule) = keyword.rule().filter(|rule| !dialect.has(*rule)) {
            return Err(explain_foreign(keyword.as_str(), rule, dialect, span));
        }
        let refused = match keyword {
            Keyword::Menu | Keyword::Choice => Rule::MenusInChoicesRefused,
            Keyword::MenuConfig => Rule::MenuconfigsInChoicesRefused,
            Keyword::Source => Rule::SourcesInChoicesRefused,
            _ => return Ok(()),
        };
        let around = self.frames.iter().rfind(|frame| frame.closing != Keyword::EndIf);
        let Some(choice) = around.filter(|frame| frame.closing == Keyword::EndChoice && dialect.has(refused)) else {
            return Ok(());
        };
        let word = keyword.as_str();
        let finding =
            Diagnostic::error("K006", span, format!("`{word}` is not allowed in a choice by the rules of {dialect}"));
        Err(finding.with_label(choice.item.span, "this choice"))
    }

    /// Reports what is wrong with a line and keeps the nesting right: what the line most likely
    /// opened is open.
    fn recover(&mut self, line: &LogicalLine<'_>, meant: Option<Keyword>, finding: Diagnostic) {
        self.report(finding);
        let Some(meant) = meant else { return };
        if matches!(
            meant,
            Keyword::Config
                | Keyword::MenuConfig
                | Keyword::Comment
                | Keyword::MainMenu
                | Keyword::Menu
                | Keyword::Choice
                | Keyword::If
        ) {
            self.close_entry();
            self.target = Target::Broken;
        }
        if matches!(meant, Keyword::Menu | Keyword::Choice | Keyword::If) {
            self.open_broken_block(line, meant);
        }
    }

    fn takes_attributes(&self) -> bool {
        matches!(self.target, Target::Entry(_) | Target::Block)
    }

    /// The parts of a line behind its keyword.
    fn parts<'x>(
        &'x mut self,
        rule: Shape,
        rest: &'x [Token],
        line: &LogicalLine<'_>,
    ) -> Result<Parts<'x>, Diagnostic> {
        self.loader.parts(rule, rest, line)
    }

    fn open_config(&mut self, line: &LogicalLine<'_>, rest: &[Token], menu: bool) -> Result<(), Diagnostic> {
        let name = required(self.parts(Shape::name_line, rest, line)?.word(), line)?;
        // Symbols are numbered in the order in which the files name them.
        let symbol = self.loader.names.symbol(name.text, name.span);
        self.open_entry(line, ItemKind::Config { symbol, menu });
        Ok(())
    }

    fn open_comment(&mut self, line: &LogicalLine<'_>, rest: &[Token]) -> Result<(), Diagnostic> {
        let text = required(self.parts(Shape::text_line, rest, line)?.word(), line)?;
        self.open_entry(line, ItemKind::Comment(text));
        Ok(())
    }

    fn take_mainmenu(&mut self, line: &LogicalLine<'_>, rest: &[Token]) -> Result<(), Diagnostic> {
        let text = required(self.parts(Shape::text_line, rest, line)?.word(), line)?;
        self.drop_annotations();
        self.open_entry(line, ItemKind::MainMenu(text));
        self.close_entry();
        Ok(())
    }

    fn take_source(&mut self, line: &LogicalLine<'_>, rest: &[Token], keyword: Keyword) -> Result<(), Diagnostic> {
        let path = required(self.parts(Shape::text_line, rest, line)?.word(), line)?;
        self.drop_annotations();
        self.close_entry();
        let depth = self.frames.len();
        let items = self.loader.source(self.file, path, keyword, depth)?;
        let mut item = self.new_item(line, ItemKind::Source);
        item.items = items;
        self.push(item);
        Ok(())
    }

    fn open_block(&mut self, line: &LogicalLine<'_>, rest: &[Token], keyword: Keyword) -> Result<(), Diagnostic> {
        let kind = match keyword {
            Keyword::Menu => ItemKind::Menu(required(self.parts(Shape::text_line, rest, line)?.word(), line)?),
            Keyword::Choice => {
                let name = self.parts(Shape::choice_line, rest, line)?.word();
                ItemKind::Choice { name, after: narrow(self.loader.names.count_symbols()) }
            }
            _ => ItemKind::If(required(self.parts(Shape::if_line, rest, line)?.expression(), line)?),
        };
        self.close_entry();
        self.loader.check_depth(self.frames.len(), line.whole())?;
        self.target = if keyword == Keyword::If { Target::None } else { Target::Block };
        if keyword == Keyword::If {
            self.drop_annotations();
        }
        self.push_frame(line, kind);
        Ok(())
    }

    /// Keeps the nesting right after a block's first line was wrong.
    fn open_broken_block(&mut self, line: &LogicalLine<'_>, keyword: Keyword) {
        let word = Word { text: TextId::new(0), span: line.whole() };
        let kind =
            if keyword == Keyword::Choice { ItemKind::Choice { name: None, after: 0 } } else { ItemKind::Menu(word) };
        self.push_frame(line, kind);
        if let Some(frame) = self.frames.last_mut() {
            frame.closing = match keyword {
                Keyword::Menu => Keyword::EndMenu,
                Keyword::Choice => Keyword::EndChoice,
                _ => Keyword::EndIf,
            };
        }
    }

    fn push_frame(&mut self, line: &LogicalLine<'_>, kind: ItemKind) {
        let closing = match kind {
            ItemKind::Menu(_) => Keyword::EndMenu,
            ItemKind::Choice { .. } => Keyword::EndChoice,
            _ => Keyword::EndIf,
        };
        let item = self.new_item(line, kind);
        self.frames.push(Frame { item, closing });
    }

    fn close_block(
        &mut self,
        line: &LogicalLine<'_>,
        rest: &[Token],
        keyword: Keyword,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let word = keyword.as_str();
        self.drop_annotations();
        self.close_entry();
        self.target = Target::None;
        let Some(at) = self.frames.iter().rposition(|frame| frame.closing == keyword) else {
            let message = format!("`{word}` closes nothing: no `{}` is open in this file", &word[3..]);
            return Err(Diagnostic::error("K004", span, message));
        };
        while self.frames.len() > at + 1 {
            self.close_unclosed(span, word);
        }
        if let Some(frame) = self.frames.pop() {
            self.push(frame.item);
        }
        self.parts(Shape::bare_line, rest, line).map(drop)
    }

    /// A block that something else ended.
    fn close_unclosed(&mut self, end: Span, what: &str) {
        if let Some(frame) = self.frames.pop() {
            let closing = frame.closing.as_str();
            let opening = &closing[3..];
            let finding = Diagnostic::error("K005", frame.item.span, format!("this `{opening}` is not closed"));
            self.report(finding.with_label(end, format!("`{closing}` is missing before {what}")));
            self.push(frame.item);
        }
    }

    /// The text behind a `help` line.
    fn take_help(&mut self, span: Span, keyword: Keyword) -> Result<(), Diagnostic> {
        let place = HelpPlace { file: self.file, offset: narrow(self.reader.offset()) };
        if !self.reader.skip_help() {
            let finding = Diagnostic::warning("K013", span, "this help has no text");
            self.report(finding.with_help("indent the text below `help`"));
        }
        self.attach(Attribute::Help(place), span, keyword)
    }

    fn take_attribute(
        &mut self,
        line: &LogicalLine<'_>,
        rest: &[Token],
        keyword: Keyword,
        first: Token,
    ) -> Result<(), Diagnostic> {
        let Some(rule) = rule_of(keyword) else { return Err(self.explain_unknown(line, first)) };
        let dialect = self.loader.dialect();
        let [one, two] = lower_attribute(keyword, first.span, self.parts(rule, rest, line)?, line, dialect)?;
        if let Some(attribute) = one {
            self.attach(attribute, first.span, keyword)?;
        }
        two.map_or(Ok(()), |attribute| self.attach(attribute, first.span, keyword))
    }

    /// Gives an attribute to the entry or block that it stands in.
    fn attach(&mut self, attribute: Attribute, span: Span, keyword: Keyword) -> Result<(), Diagnostic> {
        self.drop_annotations();
        let item = match &mut self.target {
            Target::Broken => return Ok(()),
            Target::None => None,
            Target::Entry(item) => Some(item),
            Target::Block => self.frames.last_mut().map(|frame| &mut frame.item),
        };
        let Some(item) = item else {
            let finding = Diagnostic::error("K006", span, format!("`{}` stands in no entry", keyword.as_str()));
            return Err(finding.with_help("attributes follow the config, choice, menu or comment that they belong to"));
        };
        refuse_in(item, &attribute, span, keyword, self.loader.dialect())?;
        match (&attribute, &item.kind) {
            (Attribute::Help(_), ItemKind::Config { .. } | ItemKind::Choice { .. })
                if self.loader.dialect().has(Rule::SecondHelpWarning)
                    && self.loader.attributes.of(item).any(|line| matches!(line, Attribute::Help(_))) =>
            {
                let finding = Diagnostic::warning("K035", self.reader.here(), "a second help text; this one counts");
                self.loader.report(finding.with_label(item.span, "this entry"));
            }
            (Attribute::Env(variable), ItemKind::Config { symbol, .. }) => {
                let name = self.loader.names.text_of_symbol(*symbol);
                self.loader.variables.push((name, variable.text));
            }
            _ => {}
        }
        self.loader.attributes.push(attribute);
        item.attributes.end = self.loader.attributes.len();
        Ok(())
    }

    /// An entry without lines; they are the next.
    fn new_item(&mut self, line: &LogicalLine<'_>, kind: ItemKind) -> Item {
        let annotations = std::mem::take(&mut self.annotations);
        let next = self.loader.attributes.len();
        Item { kind, span: line.whole(), annotations, attributes: next..next, items: Vec::new() }
    }

    fn open_entry(&mut self, line: &LogicalLine<'_>, kind: ItemKind) {
        self.close_entry();
        let item = self.new_item(line, kind);
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

    /// The first word of a line is not a keyword; other text is shown up to its first blank.
    fn explain_unknown(&self, line: &LogicalLine<'_>, first: Token) -> Diagnostic {
        let rest = line.rest_from(first.span);
        let (word, span) = if first.kind == kind::WORD {
            (self.loader.names.text(first.text), first.span)
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (&rest[..end], Span { len: length(end), ..first.span })
        };
        let finding = Diagnostic::error("K001", span, format!("`{word}` is not a word of the language"));
        match Keyword::suggest(word) {
            Some(near) => finding.with_help(format!("did you mean `{}`?", near.as_str())),
            None => finding,
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
