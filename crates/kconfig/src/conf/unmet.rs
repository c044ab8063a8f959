//! Complaints about symbols that are selected against their dependencies.

use super::session::Session;
use crate::dialect::Rule;
use crate::expr::{Expr, ExprId};
use crate::tree::SymbolId;
use crate::value::Tri;

impl Session<'_, '_> {
    /// Says what evaluation found since the last time, before the values that it found it with are
    /// forgotten.
    pub(super) fn report_unmet(&mut self) {
        let found = std::mem::take(&mut *self.config.answers.unmet.borrow_mut());
        if found.is_empty() || !self.tree.dialect().has(Rule::UnmetWarning) {
            return;
        }
        self.unmet += found.len();
        let mut text = String::new();
        for symbol in found {
            self.describe_unmet(symbol, &mut text);
        }
        self.console.error(&text);
    }

    fn describe_unmet(&self, symbol: SymbolId, text: &mut String) {
        let definition = self.tree.get(symbol);
        let direct = if self.config.evaluator().answer(symbol).direct == Tri::M { "m" } else { "n" };
        text.extend(["\nWARNING: unmet direct dependencies detected for ", &definition.name, "\n"]);
        text.extend(["  Depends on [", direct, "]: "]);
        self.push_expr(definition.direct_dependency, text);
        text.push('\n');
        self.push_alternatives(definition.selected_by, Tri::Y, "  Selected by [y]:\n", text);
        self.push_alternatives(definition.selected_by, Tri::M, "  Selected by [m]:\n", text);
    }

    /// One line for each term of a disjunction that has this value.
    pub(super) fn push_alternatives(&self, expr: ExprId, value: Tri, title: &str, text: &mut String) {
        let mut terms = vec![expr];
        let mut titled = false;
        while let Some(term) = terms.pop() {
            if let Expr::Or(left, right) = self.tree.expr(term) {
                terms.extend([right, left]);
                continue;
            }
            if self.config.holds(term) != value {
                continue;
            }
            if !std::mem::replace(&mut titled, true) {
                text.push_str(title);
            }
            text.push_str("  - ");
            self.push_selection(term, text);
            text.push('\n');
        }
    }
}
