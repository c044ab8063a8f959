//! `.config`: the text form of a configuration, as the C tools read and write it.
//!
//! Never touches a file: the caller reads and writes the text, which holds bytes that are not UTF-8
//! as [`crate::text`] says.

mod line;

use std::fmt::Write as _;

use crate::config::Config;
use crate::dialect::{Dialect, Rule};
use crate::suggest::suggest;
use crate::tree::{NodeId, NodeKind, SymbolId};
use crate::value::{SymbolType, Tri};

pub(crate) use line::{Line, Sieve, Strictness, lines, unquote};

/// What one reading found besides values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<(usize, String)>);

impl Findings {
    /// Line numbers with sentences.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().map(|(line, text)| (*line, text.as_str()))
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Assigns the values of a `.config`; `prefix` is `CONFIG_` for Linux.
pub fn read(config: &mut Config<'_>, text: &str, prefix: &str) -> Findings {
    let mut findings = Findings::default();
    let mut numbers = Vec::new();
    let mut sieve = Sieve::new(config.tree().dialect());
    for (index, line) in text.lines().enumerate() {
        match read_line(config, sieve.pass(line), prefix) {
            Ok(Some(symbol)) if config.tree().get(symbol).kind.is_numeric() => numbers.push((index + 1, symbol)),
            Ok(_) => {}
            Err(finding) => findings.0.push((index + 1, finding)),
        }
    }
    drop_out_of_range(config, &numbers, &mut findings);
    findings
}

/// As the C tools: a number outside its range counts as not set, once all others are known.
fn drop_out_of_range(config: &mut Config<'_>, numbers: &[(usize, SymbolId)], findings: &mut Findings) {
    let mut dropped = Vec::new();
    for (line, symbol) in numbers {
        let definition = config.tree().get(*symbol);
        let Some((low, high)) = config.range(*symbol) else { continue };
        let Some(value) = config.user_value(*symbol) else { continue };
        if definition.kind.parse_number(value).is_some_and(|number| (low..=high).contains(&number)) {
            continue;
        }
        findings.0.push((*line, format!("{value} is out of range for {}; its default counts", definition.name)));
        dropped.push(*symbol);
    }
    for symbol in dropped {
        config.unset(symbol);
    }
}

/// The symbol that a line assigns.
fn read_line(config: &mut Config<'_>, line: &str, prefix: &str) -> Result<Option<SymbolId>, String> {
    let (name, value) = match Line::read(line, prefix, Strictness::Lenient) {
        Line::Nothing => return Ok(None),
        Line::Unexpected(line) => return Err(format!("`{line}` is not an assignment")),
        Line::Value(name, value) => (name, value),
        Line::Unset(name) => {
            let symbol = find_symbol(config, name)?;
            // Text symbols are never written so; a symbol that became one since has no value in
            // this file.
            let is_logical = config.tree().get(symbol).kind.is_logical();
            return if is_logical { assign(config, symbol, "n") } else { Ok(None) };
        }
    };
    let symbol = find_symbol(config, name)?;
    if config.tree().get(symbol).kind == SymbolType::String {
        return match unquote(value, config.tree().dialect().has(Rule::VerbatimStrings)) {
            Some(value) => assign(config, symbol, &value),
            None => Err(format!("the text of {name} is not in quotes")),
        };
    }
    assign(config, symbol, value)
}

fn assign(config: &mut Config<'_>, symbol: SymbolId, value: &str) -> Result<Option<SymbolId>, String> {
    config.assign(symbol, value).map(|()| Some(symbol)).map_err(|error| error.to_string())
}

fn find_symbol(config: &Config<'_>, name: &str) -> Result<SymbolId, String> {
    let tree = config.tree();
    tree.symbol(name).ok_or_else(|| match suggest(name, tree.symbols().map(|(_, symbol)| &*symbol.name)) {
        Some(near) => format!("{name} is not defined; did you mean `{near}`?"),
        None => format!("{name} is not defined"),
    })
}

/// The configuration as `.config`.
#[must_use]
pub fn write(config: &Config<'_>, prefix: &str) -> String {
    write_as(config, prefix, config.tree().dialect().has(Rule::EndOfMenu), &|_| true)
}

/// The same as the C tools wrote it before Linux 5.2, which did not say where a menu ends; only the
/// symbols that are kept.
#[must_use]
pub fn write_without_ends(config: &Config<'_>, prefix: &str, keeps: &dyn Fn(SymbolId) -> bool) -> String {
    write_as(config, prefix, false, keeps)
}

fn write_as(config: &Config<'_>, prefix: &str, ends: bool, keeps: &dyn Fn(SymbolId) -> bool) -> String {
    let tree = config.tree();
    let title = tree.node(tree.root()).prompt.as_ref().map_or("", |prompt| &*prompt.text);
    let mut writer = Writer {
        config,
        prefix,
        text: format!("#\n# Automatically generated file; DO NOT EDIT.\n# {title}\n#\n"),
        written: vec![false; tree.symbols.len()],
        needs_newline: false,
        dialect: tree.dialect(),
        ends,
        keeps,
    };
    writer.write_children();
    writer.text
}

/// The lines of what a user can set and what is not at its default: enough to get the same
/// configuration again.
#[must_use]
pub fn write_minimal(config: &Config<'_>, prefix: &str) -> String {
    let mut text = String::new();
    for symbol in config.tree().symbols_in_menus() {
        let settable = config.is_written(symbol) && config.visible(symbol) != Tri::N;
        if settable && config.default_value(symbol) != config.value(symbol) {
            push_line(config, symbol, prefix, &mut text);
        }
    }
    text
}

struct Writer<'c> {
    config: &'c Config<'c>,
    prefix: &'c str,
    text: String,
    /// A symbol with several definitions is written at the first.
    written: Vec<bool>,
    needs_newline: bool,
    dialect: Dialect,
    /// Whether lines say where a menu ends.
    ends: bool,
    keeps: &'c dyn Fn(SymbolId) -> bool,
}

impl Writer<'_> {
    /// Walks the menus with a stack of nodes and the number of children already done.
    fn write_children(&mut self) {
        let tree = self.config.tree();
        let mut stack: Vec<(NodeId, usize)> = vec![(tree.root(), 0)];
        while let Some((id, next)) = stack.last_mut() {
            let node = tree.node(*id);
            if let Some(child) = node.children.get(*next).copied() {
                *next += 1;
                self.open(child);
                stack.push((child, 0));
            } else {
                let done = *id;
                stack.pop();
                if !stack.is_empty() {
                    self.close(done);
                }
            }
        }
    }

    fn open(&mut self, id: NodeId) {
        let node = self.config.tree().node(id);
        if let Some(symbol) = node.symbol {
            self.write_symbol(symbol);
        } else if let Some(prompt) =
            node.prompt.as_ref().filter(|_| node.choice.is_none() && self.config.node_visible(id))
        {
            for part in ["\n#\n# ", &*prompt.text, "\n#\n"] {
                self.text.push_str(part);
            }
            self.needs_newline = false;
        }
    }

    fn close(&mut self, id: NodeId) {
        let node = self.config.tree().node(id);
        let ends = self.ends && (self.dialect.has(Rule::EndOfEmptyMenu) || !node.children.is_empty());
        if let Some(prompt) =
            node.prompt.as_ref().filter(|_| ends && node.kind == NodeKind::Menu && self.config.node_visible(id))
        {
            let _ = writeln!(self.text, "# end of {}", prompt.text);
            self.needs_newline = true;
        }
    }

    fn write_symbol(&mut self, symbol: SymbolId) {
        let is_written = self.dialect.has(Rule::AllSymbolsWritten) || self.config.is_written(symbol);
        if self.written[symbol.index()] || !is_written || !(self.keeps)(symbol) {
            return;
        }
        self.written[symbol.index()] = true;
        if std::mem::take(&mut self.needs_newline) {
            self.text.push('\n');
        }
        push_line(self.config, symbol, self.prefix, &mut self.text);
    }
}

/// The line of one symbol.
#[must_use]
pub fn line(config: &Config<'_>, symbol: SymbolId, prefix: &str) -> String {
    let mut text = String::new();
    push_line(config, symbol, prefix, &mut text);
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// Appends the line of one symbol with its end; nothing for one without a type.
pub(crate) fn push_line(config: &Config<'_>, symbol: SymbolId, prefix: &str, text: &mut String) {
    let definition = config.tree().get(symbol);
    if definition.kind.is_logical() && config.tri(symbol) == Tri::N {
        text.extend(["# ", prefix, &definition.name, " is not set\n"]);
    } else {
        push_assignment(config, symbol, prefix, text);
    }
}

/// The same with `n` as a value like any other.
pub(crate) fn push_assignment(config: &Config<'_>, symbol: SymbolId, prefix: &str, text: &mut String) {
    let definition = config.tree().get(symbol);
    if definition.kind == SymbolType::Unknown {
        return;
    }
    let value = config.value(symbol);
    text.extend([prefix, &definition.name, "="]);
    if definition.kind == SymbolType::String {
        text.push('"');
        if config.tree().dialect().has(Rule::VerbatimStrings) {
            text.push_str(value);
        } else {
            push_escaped(value, text);
        }
        text.push('"');
    } else if value.is_empty() && config.tree().dialect().has(Rule::AllSymbolsWritten) {
        text.push('0');
    } else {
        text.push_str(value);
    }
    text.push('\n');
}

/// Appends a text with backslashes before quotes and backslashes.
pub(crate) fn push_escaped(value: &str, text: &mut String) {
    for piece in value.split_inclusive(['"', '\\']) {
        let end = piece.trim_end_matches(['"', '\\']).len();
        text.push_str(&piece[..end]);
        if end < piece.len() {
            text.extend(["\\", &piece[end..]]);
        }
    }
}
