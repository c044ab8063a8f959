//! Loads the tree and says what is wrong with it in the form of the C tools: `file:line:warning:
//! ...`.

use std::fmt::Write as _;

use super::options::Command;
use super::recursion;
use super::session::{Console, Exit, Step};
use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::dialect::{Dialect, Rule};
use crate::env::Env;
use crate::expr::{Atom, Expr, ExprId};
use crate::source::{Files, SearchPath, Sources, Span};
use crate::text;
use crate::tree::{Choice, Node, NodeId, SymbolId, Tree};
use crate::value::SymbolType;

/// The tree, or the end of the run. The seed of a random configuration is said first, so that the
/// run can be repeated.
pub(super) fn load(command: &Command, files: &dyn Files, env: &Env<'_>, console: &mut Console<'_>) -> Step<Tree> {
    let (name, files) = (&*command.kconfig, SearchPath::new(files, console.variable("srctree")));
    if !command.seed.is_empty() {
        let dialect = crate::load::detect_dialect(name, &files, env).dialect;
        if dialect.has(Rule::SeedOnOutput) { console.print(&command.seed) } else { console.error(&command.seed) }
    }
    console.flush();
    let tree = match crate::build::load_with_errors(name, &files, env) {
        Ok(tree) => tree,
        Err(found) => {
            console.error(&describe_all(&found, name));
            let is_directory = found.iter().any(|finding| finding.id == "K033");
            return Err(Exit(if is_directory { 2 } else { 1 }));
        }
    };
    let (text, refused) = Complaints { tree: &tree, text: String::new(), refused: false }.collect();
    if !text.is_empty() {
        console.error(&text);
    }
    if refused { Err(Exit(1)) } else { Ok(tree) }
}

/// What was found while reading, up to the error at which the C tools stop. Where the words are
/// ours, so is a last line about the rules.
fn describe_all(found: &Diagnostics, root: &str) -> String {
    let mut text = String::new();
    let dialect = found.detected().map_or(Dialect::LATEST, |detected| detected.dialect);
    for finding in found {
        describe(finding, dialect, found.sources(), root, &mut text);
        if matches!(finding.id, "K007" | "K008" | "K011" | "K014" | "K019" | "K033") {
            return text;
        }
    }
    if let Some(detected) = found.detected() {
        let _ = writeln!(text, "note: {}; KCONFIG_DIALECT names others", detected.explain());
    }
    text
}

/// One finding; writing to a String cannot fail.
fn describe(finding: &Diagnostic, dialect: Dialect, sources: &Sources, root: &str, text: &mut String) {
    let Some(label) = finding.labels.first() else { return };
    let at = sources.place(label.span);
    let quoted = finding.message.split('`').nth(1).unwrap_or_default();
    let _ = match finding.id {
        "K003" if finding.level == Level::Warning => writeln!(text, "{at}:warning: multi-line strings not supported"),
        "K007" if finding.labels.len() == 1 && quoted == root => writeln!(text, "can't find file {quoted}"),
        "K007" => writeln!(text, "{at}: can't open file \"{quoted}\""),
        "K008" => describe_recursion(finding, dialect, sources, text),
        "K019" => {
            let first = finding.labels.get(1).map_or(String::new(), |label| sources.place(label.span));
            writeln!(
                text,
                "{at}: error: repeated inclusion of {quoted}\n{first}: note: location of first inclusion of {quoted}"
            )
        }
        "K015" if dialect.has(Rule::JunkWarning) => describe_junk(&at, sources.slice(label.span), text),
        "K028" => writeln!(text, "{at}:warning: prompt redefined"),
        "K032" => writeln!(text, "{at}:warning: no new line at end of file"),
        "K033" => writeln!(text, "input in flex scanner failed"),
        "K036" => writeln!(text, "{at}:warning: environment variable {quoted} undefined"),
        _ if finding.level == Level::Warning => Ok(()),
        _ => writeln!(text, "{at}: {}", finding.message),
    };
}

/// Up to 6.10 as far as the file itself, since then to the top.
fn describe_recursion(
    finding: &Diagnostic,
    dialect: Dialect,
    sources: &Sources,
    text: &mut String,
) -> std::fmt::Result {
    let quoted = finding.message.split('`').nth(1).unwrap_or_default();
    write!(text, "Recursive inclusion detected.\nInclusion path:\n  current file : {quoted}\n")?;
    let around = if dialect.has(Rule::ChoiceModes) { finding.labels.len() - 1 } else { finding.trail.len() };
    let around = finding.trail.iter().rev().take(around);
    let lines = finding.labels.first().map(|label| &label.span).into_iter().chain(around);
    lines.into_iter().try_for_each(|span| writeln!(text, "  included from: {}", sources.place(*span)))
}

/// Byte by byte, as C sees them.
fn describe_junk(at: &str, junk: &str, text: &mut String) -> std::fmt::Result {
    text::to_bytes(junk)
        .iter()
        .try_for_each(|byte| writeln!(text, "{at}:warning: ignoring unsupported character '{}'", text::char_of(*byte)))
}

/// What the C tools find out about a tree that could be read.
struct Complaints<'t> {
    tree: &'t Tree,
    text: String,
    refused: bool,
}

impl<'t> Complaints<'t> {
    fn collect(mut self) -> (String, bool) {
        for finding in &self.tree.findings {
            match finding.id {
                "K020" => {}
                "K013" => self.complain_of_help(finding),
                "K021" => self.warn_of_type(finding),
                "K029" => self.warn_of_blanks(finding),
                "K035" => self.warn_of_second_help(finding),
                _ => describe(finding, self.tree.dialect(), &self.tree.sources, "", &mut self.text),
            }
        }
        self.check_entries();
        self.refused |= self.tree.findings.iter().any(Diagnostic::is_error);
        if self.tree.dialect().has(Rule::ChoiceModes) {
            if self.refused {
                recursion::describe_all(self.tree, &mut self.text);
            }
        } else {
            self.check_strictly();
        }
        (self.text, self.refused)
    }

    fn warn(&mut self, span: Span, text: &str) {
        let place = place(self.tree, span);
        let _ = writeln!(self.text, "{place}:warning: {text}");
    }

    fn error(&mut self, span: Span, text: &str) {
        let place = place(self.tree, span);
        let _ = writeln!(self.text, "{place}: error: {text}");
        self.refused = true;
    }

    /// The entry of a symbol in which a line stands.
    fn entry_above(&self, span: Span) -> Option<(&'t Node, SymbolId)> {
        let tree = self.tree;
        let above = |node: &&Node| node.symbol.is_some() && node.span.file == span.file && node.span.line <= span.line;
        let node = tree.nodes.iter().rfind(above)?;
        Some((node, node.symbol?))
    }

    /// A help without a text: noticed at the next line that says something, an error since 6.8.
    fn complain_of_help(&mut self, finding: &Diagnostic) {
        let Some(label) = finding.labels.first() else { return };
        let name = self.entry_above(label.span).map_or("<choice>", |(_, symbol)| &*self.tree.get(symbol).name);
        let lines = self.tree.sources.text(label.span.file).lines().enumerate().skip(label.span.line as usize);
        let mut lines = lines.skip_while(|(_, line)| line.trim().is_empty());
        let line = lines.next().map_or(label.span.line as usize, |(index, _)| index + 1);
        let strict = self.tree.dialect().has(Rule::BlankHelpRefused);
        let word = if strict { "" } else { "warning: " };
        let path = self.tree.path(label.span.file);
        let _ = writeln!(self.text, "{path}:{line}: {word}'{name}' defined with blank help text");
        self.refused |= strict;
    }

    fn warn_of_second_help(&mut self, finding: &Diagnostic) {
        let (Some(place), Some(entry)) = (finding.labels.first(), finding.labels.get(1)) else { return };
        let name = self.entry_above(entry.span).map_or("<choice>", |(_, symbol)| &*self.tree.get(symbol).name);
        let at = self.tree.sources.place(place.span);
        let text = "defined with more than one help text -- only the last one will be used";
        let _ = writeln!(self.text, "{at}: warning: '{name}' {text}");
    }

    /// `NAME is KIND already; ...`: the words that matter are the name, the type before and the
    /// type now.
    fn warn_of_type(&mut self, finding: &Diagnostic) {
        let Some(label) = finding.labels.first() else { return };
        let Some((node, symbol)) = self.entry_above(label.span) else { return };
        let definition = self.tree.get(symbol);
        let now = match self.tree.source_text(label.span) {
            "int" => "integer",
            word => word.trim_start_matches("def_"),
        };
        let before = type_name(definition.kind);
        let text = format!("ignoring type redefinition of '{}' from '{before}' to '{now}'", definition.name);
        self.warn(node.span, &text);
    }

    /// Blanks at the end of a prompt are fine in C.
    fn warn_of_blanks(&mut self, finding: &Diagnostic) {
        let Some(label) = finding.labels.first() else { return };
        let text = self.tree.source_text(label.span);
        if text.trim_start_matches(['"', '\'']).starts_with(|c: char| c.is_ascii_whitespace()) {
            self.warn(label.span, "leading whitespace ignored");
        }
    }

    /// Every entry after those below it.
    fn check_entries(&mut self) {
        let mut warned = vec![false; self.tree.symbols.len()];
        let mut stack: Vec<(NodeId, usize)> = vec![(self.tree.root(), 0)];
        while let Some((id, next)) = stack.last_mut() {
            let node = self.tree.node(*id);
            if let Some(child) = node.children.get(*next) {
                *next += 1;
                stack.push((*child, 0));
                continue;
            }
            if let Some(symbol) = node.symbol
                && !std::mem::replace(&mut warned[symbol.index()], true)
            {
                self.check_symbol(node, symbol);
            }
            if let Some(choice) = node.choice {
                self.check_choice(*id, self.tree.choice(choice));
            }
            stack.pop();
        }
    }

    fn check_symbol(&mut self, node: &Node, id: SymbolId) {
        let tree = self.tree;
        let symbol = tree.get(id);
        let mut found: Vec<(Span, String)> = Vec::new();
        for default in &symbol.defaults {
            let value = tree.expr(default.value);
            if !symbol.kind.is_logical() && symbol.kind != SymbolType::Unknown && !matches!(value, Expr::Atom(_)) {
                let text = format!("default for config symbol '{}' must be a single symbol", symbol.name);
                found.push((default.span, text));
            }
            if let (Expr::Atom(atom), true) = (value, symbol.kind.is_numeric())
                && !self.is_number(atom, symbol.kind)
            {
                found.push((default.span, format!("'{}': number is invalid", symbol.name)));
            }
        }
        let selects = symbol.selects.iter().map(|selection| (selection, "select"));
        for (selection, word) in selects.chain(symbol.implies.iter().map(|selection| (selection, "imply"))) {
            let target = tree.get(selection.target);
            if !symbol.kind.is_logical() {
                let text = format!("config symbol '{}' uses {word}, but is not bool or tristate", symbol.name);
                found.push((selection.span, text));
            } else if !target.kind.is_logical() && target.kind != SymbolType::Unknown {
                let text = format!(
                    "'{}' has wrong type. '{word}' only accept arguments of bool and tristate type",
                    target.name
                );
                found.push((selection.span, text));
            }
        }
        for range in &symbol.ranges {
            if !symbol.kind.is_numeric() {
                found.push((range.span, "range is only allowed for int or hex symbols".to_owned()));
            }
            if !self.is_number(range.low, symbol.kind) || !self.is_number(range.high, symbol.kind) {
                found.push((range.span, "range is invalid".to_owned()));
            }
        }
        found.sort_by_key(|(span, _)| *span);
        if symbol.kind == SymbolType::Unknown {
            self.warn(node.span, "config symbol defined without type");
        }
        for (span, text) in found {
            self.warn(span, &text);
        }
    }

    fn is_number(&self, atom: Atom, kind: SymbolType) -> bool {
        match atom {
            Atom::Text(text) => kind.accepts(self.tree.text(text)),
            Atom::Symbol(other) => {
                let other = self.tree.get(other);
                other.kind.is_numeric() || other.kind == SymbolType::Unknown && kind.accepts(&other.name)
            }
            Atom::Tri(_) | Atom::Choice(_) => false,
        }
    }

    /// One of the places of a choice: its own defaults at the first, before members of other places
    /// are known; those of members where they stand.
    fn check_choice(&mut self, place: NodeId, choice: &Choice) {
        let is_first = choice.nodes.first() == Some(&place);
        let node = self.tree.node(place);
        if is_first && choice.kind == SymbolType::Unknown {
            self.warn(node.span, "config symbol defined without type");
        }
        if is_first && node.prompt.is_none() && choice.has_mode(self.tree.dialect()) {
            self.warn(node.span, "choice must have a prompt");
        }
        let defaults = if is_first { choice.defaults.as_slice() } else { &[] };
        for default in defaults {
            let here = |symbol| node.children.iter().any(|child| self.tree.node(*child).symbol == Some(symbol));
            if let Expr::Atom(Atom::Symbol(symbol)) = self.tree.expr(default.value)
                && !here(symbol)
            {
                let name = &self.tree.get(symbol).name;
                let text = format!("choice default symbol '{name}' is not contained in the choice");
                self.warn(default.span, &text);
            }
        }
        if choice.has_mode(self.tree.dialect()) {
            let stands_here = |node: &NodeId| self.tree.node(*node).own.parent == Some(place);
            let members = choice.members.iter().map(|member| self.tree.get(*member));
            for member in members.filter(|member| member.nodes.iter().any(stands_here)) {
                for default in &member.defaults {
                    self.warn(default.span, "defaults for choice values not supported");
                }
            }
        }
    }

    /// Since 6.11: recursive dependencies, transitional symbols and members of choices, in the
    /// order of the menus.
    fn check_strictly(&mut self) {
        let mut check = recursion::Check::new(self.tree);
        for (_, node) in self.tree.nodes() {
            if self.refused {
                check.visit(node, &mut self.text);
            }
            if let Some(symbol) = node.symbol.filter(|symbol| self.tree.get(*symbol).transitional) {
                self.check_transitional(node, symbol);
            }
            if let Some(choice) = node.choice.filter(|choice| !self.tree.has_mode(*choice)) {
                for member in &self.tree.choice(choice).members {
                    for default in &self.tree.get(*member).defaults {
                        self.error(default.span, "defaults for choice values not supported");
                    }
                }
            }
        }
    }

    fn check_transitional(&mut self, node: &Node, id: SymbolId) {
        const TEXT: &str = "transitional symbols can only have help sections";
        if node.depends != ExprId::YES || node.visible_if != ExprId::YES {
            return self.error(node.span, TEXT);
        }
        let symbol = self.tree.get(id);
        let prompts = symbol.nodes.iter().filter_map(|node| self.tree.node(*node).prompt.as_ref());
        let spans = prompts.map(|prompt| prompt.span);
        let spans = spans.chain(symbol.defaults.iter().map(|default| default.span));
        let spans = spans.chain(symbol.selects.iter().chain(&symbol.implies).map(|selection| selection.span));
        if let Some(first) = spans.chain(symbol.ranges.iter().map(|range| range.span)).min() {
            self.error(first, TEXT);
        }
    }
}

fn place(tree: &Tree, span: Span) -> String {
    format!("{}:{}", tree.path(span.file), span.line)
}

/// How the C tools call a type.
pub(super) fn type_name(kind: SymbolType) -> &'static str {
    if kind == SymbolType::Int { "integer" } else { kind.as_str() }
}
