//! Selects that force a symbol whose dependencies may not hold.
//!
//! `select` does not look at dependencies. For each one this asks: in a configuration in which the
//! selecting symbol is on and the condition holds, must the dependencies of the target hold too?
//! What follows from the selecting symbol counts: its own dependencies, those of what it needs,
//! what all of these select, and for a symbol without a prompt who can have switched it on. K102
//! says that they never hold; K103 names a symbol that a user can switch off there, and has a
//! configuration to show for it. Anything else is silent.

use super::Linter;
use super::elsewhere::Elsewhere;
use super::facts::{Facts, N, Trust, has_prompt};
use crate::diagnostic::Diagnostic;
use crate::expr::ExprId;
use crate::tree::{Selection, SymbolId};

impl Linter<'_> {
    pub(super) fn check_selects(&mut self) {
        if self.wants("K102") || self.wants("K103") {
            self.check_unmet();
        }
        if self.wants("K120") {
            self.check_overruled();
        }
    }

    fn check_unmet(&mut self) {
        // This is about configurations of this very tree: what only other files define is off.
        let nowhere = Elsewhere::default();
        let mut facts = Facts::new(self.tree, &nowhere, Trust::Dependencies);
        for (id, symbol) in self.tree.symbols() {
            self.step();
            let doubtful: Vec<&Selection> =
                symbol.selects.iter().filter(|selection| !self.is_carried(selection)).collect();
            if doubtful.is_empty() || !symbol.kind.is_logical() {
                continue;
            }
            let mark = facts.mark();
            let needed: Vec<ExprId> = doubtful.iter().map(|selection| self.needed(selection)).collect();
            if facts.assume_on(id, &needed) {
                for selection in doubtful {
                    if facts.implied(self.needed(selection), true) {
                        continue;
                    }
                    let inner = facts.mark();
                    if facts.assume(selection.condition) {
                        self.check_select(id, selection, &mut facts);
                    }
                    facts.undo(inner);
                }
            }
            facts.undo(mark);
        }
    }

    /// What the target of a select depends on.
    fn needed(&self, selection: &Selection) -> ExprId {
        self.tree.get(selection.target).direct_dependency
    }

    /// Whether the condition of a select says word for word what its target depends on: most do.
    fn is_carried(&self, selection: &Selection) -> bool {
        let target = self.tree.get(selection.target);
        if target.nodes.is_empty() || target.direct_dependency == ExprId::YES || target.choice.is_some() {
            return true;
        }
        let given = self.tree.conjuncts(selection.condition);
        self.tree.conjuncts(target.direct_dependency).iter().all(|term| given.contains(term))
    }

    /// The selecting symbol is known to be on, and the select to count.
    fn check_select(&mut self, by: SymbolId, selection: &Selection, facts: &mut Facts<'_>) {
        let needed = self.tree.get(selection.target).direct_dependency;
        if !facts.possible(needed, true) {
            self.report_unmet("K102", by, selection, &self.impossible(needed, facts));
        } else if let Some(values) = facts.refute(by, selection) {
            let missing: Vec<SymbolId> = values.iter().map(|(symbol, _)| *symbol).collect();
            let off = values.iter().all(|(_, set)| *set == N);
            self.report_missing(by, selection, &missing, off);
        }
    }

    /// The symbols of the terms that cannot hold.
    fn impossible(&self, needed: ExprId, facts: &Facts<'_>) -> Vec<SymbolId> {
        let terms = self.tree.conjuncts(needed);
        let broken = terms.into_iter().filter(|term| !facts.possible(*term, true));
        broken.flat_map(|term| self.tree.symbols_in(term)).collect()
    }

    fn report_unmet(&mut self, id: &'static str, by: SymbolId, selection: &Selection, why: &[SymbolId]) {
        if !self.wants(id) {
            return;
        }
        let (name, target) = (&self.tree.get(by).name, &self.tree.get(selection.target).name);
        let message = format!("{name} selects {target}, whose dependencies never hold while {name} is on");
        let finding = Diagnostic::warning(id, selection.span, message);
        let finding = self.label_dependency(finding, selection.target, why);
        self.report(finding.with_help(format!("drop the select, or let {name} depend on what {target} needs")));
    }

    fn report_missing(&mut self, by: SymbolId, selection: &Selection, missing: &[SymbolId], off: bool) {
        if !self.wants("K103") {
            return;
        }
        let (name, target) = (&self.tree.get(by).name, &self.tree.get(selection.target).name);
        let names: Vec<&str> = missing.iter().map(|symbol| &*self.tree.get(*symbol).name).collect();
        let listed = names.join(" and ");
        let (message, help) = if off {
            let message = format!("{name} selects {target} without what it depends on: {listed} can be off");
            (message, format!("let {name} depend on {listed}, or `imply {target}`"))
        } else {
            let message = format!("{name} selects {target}, whose dependencies may fail: it depends on {listed}");
            (message, format!("let {name} depend on what {target} depends on, or `imply {target}`"))
        };
        let finding = Diagnostic::warning("K103", selection.span, message);
        let finding = self.label_dependency(finding, selection.target, missing);
        self.report(finding.with_help(help));
    }

    /// Shows where the target says what it depends on.
    fn label_dependency(&self, finding: Diagnostic, target: SymbolId, symbols: &[SymbolId]) -> Diagnostic {
        let name = &self.tree.get(target).name;
        let nodes = &self.tree.get(target).nodes;
        let written = symbols.iter().find_map(|symbol| {
            nodes.iter().find_map(|node| self.find_dependency(*node, *symbol)).map(|(_, span)| span)
        });
        match written.or_else(|| self.definition(target)) {
            Some(span) => finding.with_label(span, format!("{name} depends on this")),
            None => finding,
        }
    }

    fn check_overruled(&mut self) {
        let mut found = Vec::new();
        for (_, symbol) in self.tree.symbols() {
            for selection in &symbol.selects {
                let target = self.tree.get(selection.target);
                if !has_prompt(self.tree, target) {
                    continue;
                }
                let message = format!("{} selects {}, which has a prompt", symbol.name, target.name);
                let mut finding = Diagnostic::warning("K120", selection.span, message);
                if let Some(span) = self.definition(selection.target) {
                    finding = finding.with_label(span, "the user is asked here, and overruled");
                }
                found.push(finding.with_help("`depends on` or `imply` leaves the user the last word"));
            }
        }
        self.findings.extend(found);
    }
}
