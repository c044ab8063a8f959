//! Reads the files of a tree in the order in which they name each other.
//!
//! Files are parsed one after another because a macro may be assigned in one and used in the next.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::dialect::{Detected, Dialect, Rule, detect};
use crate::env::Env;
use crate::expr::{Exprs, TextId};
use crate::names::Names;
use crate::source::{FileId, Files, Sources, Span};
use crate::syntax::ast::{Attribute, Attributes, Item, Word};
use crate::syntax::blocks::parse_file;
use crate::syntax::lower::lower_pending;
use crate::syntax::macros::Macros;
use crate::syntax::reader::LogicalLine;
use crate::syntax::shape::{self, Parts, Shapes};
use crate::syntax::token::{Assignment, Keyword, Token, Tokens, kind, split_line};
use crate::text;

/// How deep blocks and files may nest together; Linux stays below thirty.
const MAX_DEPTH: usize = 250;
/// After so many errors the rest is not worth reading.
const MAX_ERRORS: usize = 200;

/// Files that source each other twice double with every level; Linux has 1,700.
const MAX_FILES: usize = 100_000;

/// A file that is being read.
#[derive(Debug)]
struct Open {
    file: FileId,
    path: String,
    /// The `source` line that named it; none for the root.
    from: Option<Span>,
    /// How many blocks and files are open around it.
    depth: usize,
}

/// The state of one loading run.
pub(crate) struct Loader<'a> {
    files: &'a dyn Files,
    pub(crate) env: &'a Env<'a>,
    pub(crate) detected: Detected,
    pub(crate) sources: Sources,
    pub(crate) names: Names,
    pub(crate) exprs: Exprs,
    pub(crate) findings: Vec<Diagnostic>,
    /// The lines of all entries; an [`Item`] knows which are its own.
    pub(crate) attributes: Attributes,
    shapes: Shapes,
    errors: usize,
    macros: Macros<'a>,
    open: Vec<Open>,
    /// Which line named each file that was read first.
    named: HashMap<String, Span>,
    /// Whether any line waits for commands.
    pending: bool,
    /// The symbols with `option env` so far, each with its variable.
    pub(crate) variables: Vec<(TextId, TextId)>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(files: &'a dyn Files, env: &'a Env<'a>) -> Self {
        Self {
            files,
            env,
            detected: Detected::named(env.dialect().unwrap_or(Dialect::LATEST)),
            sources: Sources::default(),
            names: Keyword::names(),
            exprs: Exprs::default(),
            findings: Vec::new(),
            attributes: Attributes::default(),
            shapes: Shapes::default(),
            errors: 0,
            macros: Macros::new(env),
            open: Vec::new(),
            named: HashMap::new(),
            pending: false,
            variables: Vec::new(),
        }
    }

    /// Parses the root file and all it sources.
    pub(crate) fn load(&mut self, root: &str) -> Vec<Item> {
        match self.files.read(root) {
            Ok(bytes) => {
                if self.env.dialect().is_none() {
                    self.detected = detect_from(&bytes, self.files, self.env);
                }
                self.macros.obey(self.dialect());
                let mut items = self.parse(root, bytes, None, 0);
                self.settle(&mut items);
                items
            }
            Err(error) => {
                let (file, _) = self.sources.add(root, Vec::new());
                let span = Span { file, line: 1, col: 1, len: 0 };
                self.report(explain_unreadable(root, &error, span));
                Vec::new()
            }
        }
    }

    /// Whose rules count.
    #[inline]
    pub(crate) fn dialect(&self) -> Dialect {
        self.detected.dialect
    }

    pub(crate) fn report(&mut self, finding: Diagnostic) {
        self.errors += usize::from(finding.is_error());
        if self.errors <= MAX_ERRORS {
            self.findings.push(finding);
        }
    }

    /// Reads the tokens of a line.
    pub(crate) fn split(
        &mut self,
        line: &LogicalLine<'_>,
        file: FileId,
        tokens: &mut Tokens,
    ) -> Result<(), Diagnostic> {
        let (path, whole) = (self.sources.path(file), self.sources.whole(file));
        let split = split_line(line, whole, &mut self.names, &mut self.macros, path, self.detected.dialect, tokens);
        self.pending |= tokens.pending;
        if let Some(span) = tokens.open_text {
            let finding = Diagnostic::warning("K003", span, "this text is not closed: it ends with the line");
            self.report(finding.with_help("texts end on the line on which they start, with the quote that opens them"));
        }
        // Visible effects run as soon as they can.
        split?;
        self.macros.run_effects(false)
    }

    /// Puts the outputs of commands into tokens; a word that became empty is dropped.
    pub(crate) fn resolve_tokens(&mut self, tokens: &mut Vec<Token>) -> Result<(), Diagnostic> {
        for token in tokens.iter_mut() {
            let text = self.names.text(token.text);
            if Macros::is_pending(text) {
                let text = self.macros.resolve(text, token.span)?;
                token.text = self.names.intern(&text);
            }
        }
        tokens.retain(|token| token.kind != kind::WORD || !self.names.text(token.text).is_empty());
        Ok(())
    }

    /// Matches a line against the rule of its keyword.
    pub(crate) fn parts<'x>(
        &'x mut self,
        rule: shape::Rule,
        rest: &'x [Token],
        line: &LogicalLine<'_>,
    ) -> Result<Parts<'x>, Diagnostic> {
        self.shapes.match_line(rule, rest, &mut self.names, &mut self.exprs, line)
    }

    /// Assigns a variable; its value starts at `value` of the line and is taken to its end,
    /// comments and all.
    pub(crate) fn assign(
        &mut self,
        name: Token,
        how: Assignment,
        line: &LogicalLine<'_>,
        value: usize,
        file: FileId,
    ) -> Result<(), Diagnostic> {
        let text = line.text[value..].trim_start_matches([' ', '\t']);
        let span = line.span(line.text.len() - text.len(), line.text.len());
        let name = self.names.text(name.text);
        self.macros.assign(name, how, text, span, self.sources.path(file))?;
        self.macros.run_effects(false)
    }

    /// Waits for all commands and puts what they printed into the lines that wait for it.
    fn settle(&mut self, items: &mut [Item]) {
        if let Err(finding) = self.macros.run_effects(true) {
            self.report(finding);
        }
        for finding in self.macros.take_findings() {
            self.report(finding);
        }
        if self.pending {
            self.settle_items(items);
        }
    }

    fn settle_items(&mut self, items: &mut [Item]) {
        for item in items {
            if self.attributes.of(item).any(|attribute| matches!(attribute, Attribute::Pending(_))) {
                item.attributes = self.settle_entry(item);
            }
            self.settle_items(&mut item.items);
        }
    }

    /// Writes the lines of an entry again behind all others: a waiting one may have become two or
    /// none.
    fn settle_entry(&mut self, item: &Item) -> Range<u32> {
        let start = self.attributes.len();
        for number in item.attributes.clone() {
            match self.attributes.take(number) {
                Attribute::Pending(pending) => match lower_pending(self, &pending, item) {
                    Ok(settled) => settled.into_iter().flatten().for_each(|attribute| self.attributes.push(attribute)),
                    Err(finding) => self.report(finding),
                },
                settled => self.attributes.push(settled),
            }
        }
        start..self.attributes.len()
    }

    /// Refuses what would nest too deep; `blocks` are open in the current file.
    pub(crate) fn check_depth(&self, blocks: usize, span: Span) -> Result<usize, Diagnostic> {
        let depth = self.open.last().map_or(0, |open| open.depth) + blocks + 1;
        if depth > MAX_DEPTH {
            let message = format!("blocks and files nest more than {MAX_DEPTH} levels deep here");
            return Err(Diagnostic::error("K010", span, message));
        }
        Ok(depth)
    }

    /// The items of the files that a `source` line names.
    pub(crate) fn source(
        &mut self,
        from: FileId,
        path: Word,
        keyword: Keyword,
        blocks: usize,
    ) -> Result<Vec<Item>, Diagnostic> {
        use Keyword as K;
        let depth = self.check_depth(blocks, path.span)?;
        let dialect = self.dialect();
        let relative = matches!(keyword, K::RelativeSource | K::OptionalRelativeSource | K::GlobRelativeSource);
        // `gsource` is an old name of what `osource` is now.
        let optional = !matches!(keyword, K::Source | K::RelativeSource) || dialect.has(Rule::MissingSources);
        let base = if relative { parent_of(self.sources.path(from)) } else { "" };
        let written = self.names.text(path.text);
        let pattern = if dialect.has(Rule::DollarNames) {
            join(base, &expand_dollars(written, |name| self.value_of(name)))
        } else {
            join(base, written)
        };
        let mut items = Vec::new();
        for name in self.find_files(&pattern, from, path, optional)? {
            if let Some(position) = self.open.iter().position(|open| open.path == name) {
                return Err(self.explain_recursion(position, &name, path.span));
            }
            if dialect.has(Rule::RepeatedSourceRefused) {
                if let Some(first) = self.named.get(&name) {
                    let finding = Diagnostic::error("K019", path.span, format!("`{name}` is sourced a second time"));
                    return Err(finding.with_label(*first, "the first time"));
                }
                self.named.insert(name.clone(), path.span);
            }
            if self.sources.len() >= MAX_FILES {
                return Err(Diagnostic::error(
                    "K010",
                    path.span,
                    format!("this tree reads more than {MAX_FILES} files"),
                ));
            }
            match self.files.read(&name) {
                Ok(bytes) => items.append(&mut self.parse(&name, bytes, Some(path.span), depth)),
                Err(error) if optional && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(explain_unreadable(&name, &error, path.span)),
            }
        }
        Ok(items)
    }

    fn parse(&mut self, path: &str, bytes: Vec<u8>, from: Option<Span>, depth: usize) -> Vec<Item> {
        let (file, text) = self.sources.add(path, bytes);
        self.open.push(Open { file, path: path.to_owned(), from, depth });
        let items = if self.errors > MAX_ERRORS { Vec::new() } else { parse_file(self, file, &text) };
        self.open.pop();
        items
    }

    /// What `$NAME` stands for in a path: the variable that `option env` of the symbol names, else
    /// the variable of that name.
    fn value_of(&self, name: &str) -> Option<String> {
        let of_symbol = self.variables.iter().find(|(symbol, _)| self.names.text(*symbol) == name);
        self.env.read(of_symbol.map_or(name, |(_, variable)| self.names.text(*variable)))
    }

    /// One path, or all that a glob matches in order.
    fn find_files(&self, pattern: &str, from: FileId, path: Word, optional: bool) -> Result<Vec<String>, Diagnostic> {
        let dialect = self.dialect();
        if !pattern.contains(['*', '?', '[']) || !dialect.has(Rule::Globs) {
            if dialect.has(Rule::SourcesBesideFile) && self.files.read(pattern).is_err() {
                let beside = join(parent_of(self.sources.path(from)), pattern);
                if self.files.read(&beside).is_ok() {
                    return Ok(vec![beside]);
                }
            }
            return Ok(vec![pattern.to_owned()]);
        }
        let top = if pattern.starts_with('/') { "/" } else { "" };
        let mut found = vec![top.to_owned()];
        for part in pattern.split('/') {
            let mut next = Vec::new();
            for directory in &found {
                if !part.contains(['*', '?', '[']) {
                    next.push(join(directory, part));
                    continue;
                }
                let mut names = match self.files.list(directory) {
                    Ok(names) => names,
                    Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                        continue;
                    }
                    Err(error) => return Err(explain_unreadable(directory, &error, path.span)),
                };
                names.retain(|name| matches_glob(part.as_bytes(), name.as_bytes()));
                names.sort_unstable();
                next.extend(names.iter().map(|name| join(directory, name)));
            }
            found = next;
        }
        // A directory that matched may lack the file behind it.
        found.retain(|name| self.files.read(name).is_ok());
        if found.is_empty() && !optional && !dialect.has(Rule::EmptyGlobs) {
            let finding =
                Diagnostic::error("K007", path.span, format!("no file matches `{}`", self.names.text(path.text)));
            return Err(finding.with_help("`osource` accepts that there is none"));
        }
        Ok(found)
    }

    fn explain_recursion(&self, position: usize, name: &str, span: Span) -> Diagnostic {
        let mut finding = Diagnostic::error("K008", span, format!("`{name}` sources itself"));
        finding.trail = self.open.iter().filter_map(|open| open.from).collect();
        for open in &self.open[position + 1..] {
            if let Some(from) = open.from {
                finding = finding.with_label(from, format!("which sources `{}`", self.sources.path(open.file)));
            }
        }
        finding
    }
}

/// The rules that a tree is read by: those that the environment names, else those that its top file
/// and its Makefile speak for.
#[must_use]
pub fn detect_dialect(root: &str, files: &dyn Files, env: &Env<'_>) -> Detected {
    match env.dialect() {
        Some(dialect) => Detected::named(dialect),
        None => detect_from(&files.read(root).unwrap_or_default(), files, env),
    }
}

fn detect_from(top: &[u8], files: &dyn Files, env: &Env<'_>) -> Detected {
    let makefile = || files.read("Makefile").ok().map(text::from_bytes);
    detect(&text::from_slice(top), &|name| env.get(name), &makefile)
}

fn explain_unreadable(name: &str, error: &io::Error, span: Span) -> Diagnostic {
    if error.kind() == io::ErrorKind::IsADirectory {
        return Diagnostic::error("K033", span, format!("`{name}` is a directory"));
    }
    let finding = Diagnostic::error("K007", span, format!("cannot read `{name}`: {error}"));
    if error.kind() == io::ErrorKind::NotFound {
        return finding.with_help("paths are relative to the tree's root; `rsource` takes them relative to this file");
    }
    finding
}

/// Replaces each `$NAME`; what has no value becomes nothing.
pub(crate) fn expand_dollars(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut pieces = text.split('$');
    let mut expanded = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(piece.len());
        expanded.push_str(&value(&piece[..end]).unwrap_or_default());
        expanded.push_str(&piece[end..]);
    }
    expanded
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Appends a path to a directory and resolves `.` and `..`.
fn join(directory: &str, path: &str) -> String {
    // Nearly all paths are whole and plain.
    let is_plain = |path: &str| !path.as_bytes().windows(2).any(|pair| matches!(pair, b"//" | b"/."));
    if directory.is_empty() && !path.starts_with(['/', '.']) && is_plain(path) {
        return path.trim_end_matches('/').to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { directory };
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') || directory.starts_with('/') { format!("/{joined}") } else { joined }
}

/// `*`, `?` and `[abc]`, `[a-z]`, `[!a]` within one component; linear in the product of the
/// lengths.
fn matches_glob(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p + 1, n));
            p += 1;
        } else if let Some(taken) = pattern.get(p..).and_then(|rest| match_one(rest, name[n])) {
            p += taken;
            n += 1;
        } else if let Some((star, from)) = retry {
            (p, n) = (star, from + 1);
            retry = Some((star, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// How many bytes of the pattern match one byte of the name.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] | [b'*', ..] => None,
        [b'?', ..] => Some(1),
        [b'[', set @ ..] => {
            let end = set.iter().skip(1).position(|b| *b == b']').map(|at| at + 1)?;
            let (negated, members) = match &set[..end] {
                [b'!' | b'^', members @ ..] => (true, members),
                members => (false, members),
            };
            (contains(members, byte) != negated).then_some(end + 2)
        }
        [literal, ..] => (*literal == byte).then_some(1),
    }
}

fn contains(members: &[u8], byte: u8) -> bool {
    let mut at = 0;
    while let Some(&low) = members.get(at) {
        if members.get(at + 1) == Some(&b'-')
            && let Some(&high) = members.get(at + 2)
        {
            if (low..=high).contains(&byte) {
                return true;
            }
            at += 3;
            continue;
        }
        if low == byte {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{join, matches_glob};

    #[test]
    fn paths_are_joined_and_cleaned() {
        assert_eq!(join("a/b", "../c/./Kconfig"), "a/c/Kconfig");
        assert_eq!(join("", "a//Kconfig"), "a/Kconfig");
        assert_eq!(join("a", "/etc/Kconfig"), "/etc/Kconfig");
    }

    #[test]
    fn globs_match_one_component() {
        for (pattern, name, expected) in [
            ("*", "abc", true),
            ("*", ".abc", false),
            ("K*g", "Kconfig", true),
            ("K*g", "Kconfigs", false),
            ("[a-c]?", "b1", true),
            ("[!a-c]?", "b1", false),
            ("*a*b*c", "xaxbxbc", true),
            ("[", "[", false),
        ] {
            assert_eq!(matches_glob(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
