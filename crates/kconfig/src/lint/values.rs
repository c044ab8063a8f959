//! Defaults and ranges that do not go together, and lines that say what has been said.

use super::Linter;
use super::facts::{Facts, Trust, has_prompt};
use crate::diagnostic::Diagnostic;
use crate::expr::{Atom, Expr, ExprId};
use crate::source::Span;
use crate::tree::{DefaultValue, NodeId, RangeLimit, Symbol, SymbolId};
use crate::value::Tri;

impl Linter<'_> {
    pub(super) fn check_values(&mut self) {
        let mut facts = Facts::new(self.tree, self.elsewhere, Trust::Nothing);
        for (_, symbol) in self.tree.symbols() {
            if self.wants("K104") {
                self.check_ranges(symbol, &mut facts);
            }
            if self.wants("K106") {
                self.check_order(symbol);
            }
            if self.wants("K109") {
                self.check_twice(symbol);
            }
            if self.wants("K122") {
                self.check_default_n(symbol);
            }
        }
        if self.wants("K124") {
            self.check_unused();
        }
    }

    /// A constant default that the range in force moves elsewhere.
    fn check_ranges(&mut self, symbol: &Symbol, facts: &mut Facts<'_>) {
        if !symbol.kind.is_numeric() || symbol.ranges.is_empty() {
            return;
        }
        for default in &symbol.defaults {
            let Some(value) = self.constant(symbol, default) else { continue };
            let mark = facts.mark();
            if facts.assume(default.condition) {
                // The first range that applies counts: one that only may apply makes the answer
                // unknown.
                let applies = symbol.ranges.iter().find(|range| facts.possible(range.condition, true));
                if let Some(range) = applies.filter(|range| facts.implied(range.condition, true))
                    && let Some((low, high)) = self.limits(symbol, range)
                    && !(low..=high).contains(&value)
                {
                    let moved = if value < low { low } else { high };
                    let show = |number: i64| {
                        if symbol.kind.as_str() == "hex" { format!("{number:#x}") } else { number.to_string() }
                    };
                    let message =
                        format!("the default of {} is outside its range: it becomes {}", symbol.name, show(moved));
                    let finding = Diagnostic::warning("K104", default.span, message);
                    self.report(finding.with_label(range.span, "this range applies"));
                }
            }
            facts.undo(mark);
        }
    }

    fn constant(&self, symbol: &Symbol, default: &DefaultValue) -> Option<i64> {
        match self.tree.expr(default.value) {
            Expr::Atom(Atom::Text(text)) => symbol.kind.parse_number(self.tree.text(text)),
            _ => None,
        }
    }

    fn limits(&self, symbol: &Symbol, range: &RangeLimit) -> Option<(i64, i64)> {
        let number = |atom| match atom {
            Atom::Text(text) => symbol.kind.parse_number(self.tree.text(text)),
            _ => None,
        };
        Some((number(range.low)?, number(range.high)?))
    }

    /// Defaults of one definition behind one without a condition, or with the same condition. Other
    /// definitions of the symbol are left alone: an early default that hides a later file's is how
    /// such trees override.
    fn check_order(&mut self, symbol: &Symbol) {
        for (at, later) in symbol.defaults.iter().enumerate() {
            let unconditional = self.tree.node(later.node).depends;
            let hides = |early: &&DefaultValue| {
                early.node == later.node && (early.condition == unconditional || early.condition == later.condition)
            };
            let Some(early) = symbol.defaults[..at].iter().find(hides) else { continue };
            let message = format!("this default of {} is never reached", symbol.name);
            let text = if early.condition == unconditional { "this one always applies" } else { "the same condition" };
            let finding = Diagnostic::warning("K106", later.span, message).with_label(early.span, text);
            self.report(finding.with_help("the first default whose condition holds counts"));
        }
    }

    /// Selects, implies and dependencies that the same entry has already.
    fn check_twice(&mut self, symbol: &Symbol) {
        for (list, word) in [(&symbol.selects, "selects"), (&symbol.implies, "implies")] {
            for (at, later) in list.iter().enumerate() {
                let same = |early: &&crate::tree::Selection| {
                    early.node == later.node && early.target == later.target && early.condition == later.condition
                };
                if let Some(early) = list[..at].iter().find(same) {
                    let message = format!("{} {word} {} twice", symbol.name, self.tree.get(later.target).name);
                    self.report(
                        Diagnostic::warning("K109", later.span, message).with_label(early.span, "the first time"),
                    );
                }
            }
        }
        for node in &symbol.nodes {
            self.check_dependencies(*node, &symbol.name);
        }
    }

    fn check_dependencies(&mut self, node: NodeId, name: &str) {
        let written: Vec<(ExprId, Span)> = self.tree.written_dependencies(node).collect();
        for (at, (expr, span)) in written.iter().enumerate() {
            // Macros make constants; that two of them agree is luck.
            if matches!(*expr, ExprId::YES | ExprId::NO) {
                continue;
            }
            if let Some((_, first)) = written[..at].iter().find(|(early, _)| early == expr) {
                let message = format!("{name} depends on {} twice", self.tree.show(*expr));
                self.report(Diagnostic::warning("K109", *span, message).with_label(*first, "the first time"));
            }
        }
    }

    /// `default n` where nothing else could have given a value.
    fn check_default_n(&mut self, symbol: &Symbol) {
        if let ([default], [_]) = (&*symbol.defaults, &*symbol.nodes)
            && symbol.kind.is_logical()
            && self.tree.expr(default.value) == Expr::Atom(Atom::Tri(Tri::N))
        {
            let message = format!("{} is n anyway when nothing else is said", symbol.name);
            self.report(Diagnostic::warning("K122", default.span, message).with_help("drop this line"));
        }
    }

    /// Symbols that are mentioned by no entry but their own. Whether a program uses them is not
    /// known here.
    fn check_unused(&mut self) {
        let mut used = vec![false; self.tree.symbols.len()];
        let mut mark = |by: Option<SymbolId>, expr: ExprId| {
            for symbol in self.tree.symbols_in(expr).into_iter().filter(|symbol| Some(*symbol) != by) {
                used[symbol.index()] = true;
            }
        };
        for (id, node) in self.tree.entries() {
            for (expr, _) in self.tree.written_dependencies(id) {
                mark(node.symbol, expr);
            }
            mark(node.symbol, node.visible_if);
            if let Some(prompt) = &node.prompt {
                mark(node.symbol, prompt.condition);
            }
        }
        for (id, symbol) in self.tree.symbols() {
            let defaults = symbol.defaults.iter().flat_map(|default| [default.value, default.condition]);
            let selections = symbol.selects.iter().chain(&symbol.implies).map(|selection| selection.condition);
            defaults.chain(selections).for_each(|expr| mark(Some(id), expr));
        }
        let targets = self.tree.symbols().flat_map(|(_, symbol)| symbol.selects.iter().chain(&symbol.implies));
        let targets: Vec<SymbolId> = targets.map(|selection| selection.target).collect();
        for target in targets {
            used[target.index()] = true;
        }
        for (id, symbol) in self.tree.symbols() {
            if !used[id.index()]
                && symbol.choice.is_none()
                && Some(id) != self.tree.modules()
                && let Some(span) = self.definition(id)
            {
                let message = format!("no other entry mentions {}", symbol.name);
                let finding = Diagnostic::warning("K124", span, message);
                let hidden = !has_prompt(self.tree, symbol);
                self.report(if hidden { finding.with_text("and it has no prompt") } else { finding });
            }
        }
    }
}
