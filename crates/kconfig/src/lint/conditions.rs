//! Conditions that can never hold, and the symbols that nothing can switch on.
//!
//! A block is reported once, at the line that makes it unreachable; what is inside of it is not
//! reported again.

use super::Linter;
use super::facts::{Facts, N, Trust, has_no_source};
use crate::diagnostic::Diagnostic;
use crate::expr::{Atom, Compare, Expr, ExprId};
use crate::source::Span;
use crate::suggest::Candidates;
use crate::tree::{Node, NodeId, NodeKind, SymbolId};
use crate::value::Tri;

impl Linter<'_> {
    pub(super) fn check_conditions(&mut self) {
        if self.wants("K101") {
            self.check_reachability();
        }
        if self.wants("K107") {
            self.check_sources();
        }
        if self.wants("K108") {
            self.check_comparisons();
        }
        if self.wants("K121") {
            self.check_repetition();
        }
    }

    fn check_reachability(&mut self) {
        let mut facts = Facts::new(self.tree, self.elsewhere, Trust::Nothing);
        let mut dead = vec![false; self.tree.nodes.len()];
        let nothing = facts.mark();
        // Neighbours often have the same condition: what follows from it is kept from one to the
        // next.
        let mut assumed: Option<(ExprId, bool)> = None;
        for (id, node) in self.tree.entries() {
            self.step();
            if self.tree.block_around(id).is_some_and(|block| dead[block.index()]) {
                dead[id.index()] = true;
                continue;
            }
            let reachable = match assumed {
                Some((condition, reachable)) if condition == node.depends => reachable,
                _ => {
                    facts.undo(nothing);
                    facts.assume(node.depends)
                }
            };
            assumed = Some((node.depends, reachable));
            if reachable {
                self.check_entry(id, node, &mut facts);
            } else {
                dead[id.index()] = true;
                self.report_dead_entry(id, node, &facts);
            }
        }
    }

    /// The conditions inside an entry that can itself be reached.
    fn check_entry(&mut self, id: NodeId, node: &Node, facts: &mut Facts<'_>) {
        let mut conditions: Vec<(ExprId, Span, &str)> = Vec::new();
        if let Some(prompt) = &node.prompt {
            conditions.push((prompt.condition, prompt.span, "this prompt is never shown"));
        }
        if let Some(symbol) = node.symbol.map(|symbol| self.tree.get(symbol)) {
            let defaults = symbol.defaults.iter().filter(|default| default.node == id);
            conditions.extend(defaults.map(|default| (default.condition, default.span, "this default never counts")));
            let selects = symbol.selects.iter().filter(|select| select.node == id);
            conditions.extend(selects.map(|select| (select.condition, select.span, "this select never counts")));
            let implies = symbol.implies.iter().filter(|imply| imply.node == id);
            conditions.extend(implies.map(|imply| (imply.condition, imply.span, "this imply never counts")));
            let ranges = symbol.ranges.iter().filter(|range| range.node == id);
            conditions.extend(ranges.map(|range| (range.condition, range.span, "this range never counts")));
        }
        if let Some(choice) = node.choice.map(|choice| self.tree.choice(choice)) {
            let defaults = choice.defaults.iter().filter(|default| default.node == id);
            conditions.extend(defaults.map(|default| (default.condition, default.span, "this default never counts")));
        }
        for (condition, span, what) in conditions {
            // A constant is what a macro made of this machine.
            if condition == node.depends || condition == ExprId::NO {
                continue;
            }
            let mark = facts.mark();
            if !facts.assume(condition) {
                let finding = Diagnostic::warning("K101", span, format!("{what}: its condition can never hold"));
                self.report_contradiction(finding, condition, id, facts);
            }
            facts.undo(mark);
        }
    }

    fn report_dead_entry(&mut self, id: NodeId, node: &Node, facts: &Facts<'_>) {
        let written: Vec<(ExprId, Span)> = self.tree.written_dependencies(id).collect();
        if written.iter().any(|(expr, _)| *expr == ExprId::NO) {
            return;
        }
        let what = match (node.kind, node.symbol) {
            (NodeKind::If, _) => "what this `if` encloses".to_owned(),
            (NodeKind::Menu, _) => "this menu".to_owned(),
            (NodeKind::Choice, _) => "this choice".to_owned(),
            (NodeKind::Comment, _) => "this comment".to_owned(),
            (_, Some(symbol)) => self.tree.get(symbol).name.to_string(),
            _ => "this entry".to_owned(),
        };
        // The line at which it goes wrong: the first that is impossible by itself, else the last.
        let impossible = written.iter().find(|(expr, _)| !self.is_possible_alone(*expr));
        let span = impossible.or(written.last()).map_or(node.span, |(_, span)| *span);
        let finding = Diagnostic::warning("K101", span, format!("{what} is unreachable: its condition can never hold"));
        self.report_contradiction(finding, node.depends, id, facts);
    }

    /// Whether a condition can hold when nothing else is known.
    fn is_possible_alone(&mut self, condition: ExprId) -> bool {
        let alone = self.alone();
        let mark = alone.mark();
        let possible = alone.assume(condition);
        alone.undo(mark);
        possible
    }

    /// Whether a condition looks possible, and is not for what follows from it.
    fn is_impossible_in_the_end(&mut self, condition: ExprId) -> bool {
        self.alone().possible(condition, true) && !self.is_possible_alone(condition)
    }

    /// Says which part of a condition is impossible, and where its opponent stands. Silent where
    /// the cause is reported itself.
    fn report_contradiction(&mut self, finding: Diagnostic, condition: ExprId, node: NodeId, facts: &Facts<'_>) {
        let terms = self.tree.conjuncts(condition);
        if let Some((symbol, reason)) = terms.iter().find_map(|term| self.explain_constant(*term, facts)) {
            if reason.is_empty() {
                return;
            }
            let finding = finding.with_text(reason);
            let finding = match self.definition(symbol) {
                Some(span) => finding.with_label(span, "defined here"),
                None => match self.nearest(symbol) {
                    Some(near) => finding.with_help(format!("did you mean `{near}`?")),
                    None => finding.with_help("define it, or drop what needs it"),
                },
            };
            return self.report(finding);
        }
        // A symbol that nothing can ever switch on is found where it is defined.
        let is_consequence = terms.iter().any(|term| {
            matches!(self.tree.expr(*term), Expr::Atom(Atom::Symbol(_))) && self.is_impossible_in_the_end(*term)
        });
        if is_consequence {
            return;
        }
        let opponents = terms.iter().flat_map(|term| self.tree.symbols_in(*term));
        let Some(symbol) = opponents.into_iter().find(|symbol| facts.domain(*symbol) == 0) else {
            let which = if terms.len() == 1 { "never" } else { "never all of" };
            return self.report(finding.with_text(format!("{which} {}", self.tree.show(condition))));
        };
        if self.tree.modules().is_none() && self.wants_m(&terms, symbol) {
            let text = format!("{} is never m: no symbol of the tree is marked `modules`", self.tree.get(symbol).name);
            return self.report(finding.with_text(text));
        }
        let name = &self.tree.get(symbol).name;
        let main = finding.labels[0].span;
        let mut finding = finding.with_text(format!("{name} would have to be on and off at once"));
        let mut at = Some(node);
        while let Some(id) = at {
            for (expr, span) in self.tree.written_dependencies(id) {
                if self.tree.mentions(expr, symbol) && span != main {
                    finding = finding.with_label(span, format!("this speaks of {name} too"));
                }
            }
            at = self.tree.block_around(id);
        }
        self.report(finding);
    }

    fn wants_m(&self, terms: &[ExprId], symbol: SymbolId) -> bool {
        terms
            .iter()
            .any(|term| self.tree.expr(*term) == Expr::Compare(Compare::Equal, Atom::Symbol(symbol), Atom::Tri(Tri::M)))
    }

    /// A term that needs a symbol to be what it never is, and why; without a reason when that is
    /// reported elsewhere.
    fn explain_constant(&self, term: ExprId, facts: &Facts<'_>) -> Option<(SymbolId, String)> {
        let symbol = match self.tree.expr(term) {
            Expr::Atom(Atom::Symbol(symbol))
            | Expr::Compare(Compare::Equal, Atom::Symbol(symbol), Atom::Tri(Tri::Y | Tri::M))
            | Expr::Compare(Compare::Unequal, Atom::Symbol(symbol), Atom::Tri(Tri::N)) => symbol,
            Expr::Compare(Compare::Equal, Atom::Symbol(symbol), _) if self.tree.get(symbol).nodes.is_empty() => symbol,
            _ => return None,
        };
        let definition = self.tree.get(symbol);
        let name = &definition.name;
        if definition.nodes.is_empty() && !self.elsewhere.defines(name) {
            return Some((symbol, format!("{name} is not defined, so it is n")));
        }
        if !definition.nodes.is_empty() && has_no_source(self.tree, definition) && !self.elsewhere.sets(name) {
            let known = self.wants("K107");
            return Some((symbol, if known { String::new() } else { format!("nothing can switch {name} on") }));
        }
        let textual = !definition.kind.is_logical() && !definition.nodes.is_empty();
        (textual && facts.domain(symbol) & !N == 0)
            .then(|| (symbol, format!("{name} is {}: as a condition it is n", with_article(definition.kind.as_str()))))
    }

    fn nearest(&self, symbol: SymbolId) -> Option<&str> {
        let tree = self.tree;
        let names = self.names.get_or_init(|| Candidates::new(tree.symbols().map(|(_, other)| &*other.name)));
        names.nearest(&tree.get(symbol).name)
    }

    /// Symbols without a prompt, a default or a symbol that selects them.
    fn check_sources(&mut self) {
        for (id, symbol) in self.tree.symbols() {
            let logical = symbol.kind.is_logical();
            if logical && has_no_source(self.tree, symbol) && !self.elsewhere.sets(&symbol.name) {
                let Some(span) = self.definition(id) else { continue };
                let message = format!("nothing can switch {} on", symbol.name);
                let finding = Diagnostic::warning("K107", span, message)
                    .with_text("no prompt, no default, and nothing selects or implies it")
                    .with_help("drop it, or give it a prompt, a default or a symbol that selects it");
                self.report(finding);
            }
        }
    }

    /// Texts that a bool or tristate, or a number, never has.
    fn check_comparisons(&mut self) {
        let mut found = Vec::new();
        for (id, node) in self.tree.entries() {
            let written = self.tree.written_dependencies(id);
            found.extend(written.flat_map(|(expr, span)| self.find_strange(expr, span)));
            let Some(symbol) = node.symbol.map(|symbol| self.tree.get(symbol)) else { continue };
            let defaults = symbol.defaults.iter().filter(|default| default.node == id);
            // Conditions hold what was inherited too: a finding there has been made at its own line
            // already.
            for default in defaults {
                found.extend(self.find_strange(default.value, default.span));
            }
        }
        self.findings.extend(found);
    }

    fn find_strange(&self, expr: ExprId, span: Span) -> Vec<Diagnostic> {
        let (mut open, mut found) = (vec![expr], Vec::new());
        while let Some(expr) = open.pop() {
            match self.tree.expr(expr) {
                Expr::Not(inner) => open.push(inner),
                Expr::And(..) => open.extend(self.tree.conjuncts(expr)),
                Expr::Or(..) => open.extend(self.tree.disjuncts(expr)),
                Expr::Compare(_, Atom::Symbol(symbol), Atom::Text(text))
                | Expr::Compare(_, Atom::Text(text), Atom::Symbol(symbol)) => {
                    let (symbol, text) = (self.tree.get(symbol), self.tree.text(text));
                    let fits = !symbol.kind.is_logical() && !symbol.kind.is_numeric() || symbol.kind.accepts(text);
                    // An empty text asks whether a number is set at all.
                    if !(fits || symbol.kind.is_numeric() && text.is_empty()) {
                        let message = format!("{} is never `{text}`", symbol.name);
                        let label = format!("{} is {}", symbol.name, with_article(symbol.kind.as_str()));
                        let finding = Diagnostic::warning("K108", span, message).with_text(label);
                        let near =
                            if symbol.kind.is_logical() { "compare with y, m or n" } else { "compare with a number" };
                        found.push(finding.with_help(near));
                    }
                }
                Expr::Compare(..) | Expr::Atom(_) => {}
            }
        }
        found
    }

    /// Dependencies that a block around an entry has already.
    fn check_repetition(&mut self) {
        let mut found = Vec::new();
        for (id, _) in self.tree.entries() {
            let Some(around) = self.tree.block_around(id) else { continue };
            let inherited = self.tree.conjuncts(self.tree.node(around).depends);
            for (expr, span) in self.tree.written_dependencies(id) {
                let terms = self.tree.conjuncts(expr);
                let Some(term) = terms.iter().find(|term| **term != ExprId::YES && inherited.contains(term)) else {
                    continue;
                };
                let message = format!("the block around depends on {} already", self.tree.show(*term));
                let symbols = self.tree.symbols_in(*term);
                let mut finding = Diagnostic::warning("K121", span, message);
                if let Some((_, first)) = symbols.first().and_then(|symbol| self.find_dependency(around, *symbol)) {
                    finding = finding.with_label(first, "here");
                }
                found.push(finding);
            }
        }
        self.findings.extend(found);
    }
}

pub(super) fn with_article(kind: &str) -> String {
    if kind == "int" { "an int".to_owned() } else { format!("a {kind}") }
}
