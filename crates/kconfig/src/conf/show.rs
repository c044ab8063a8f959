//! Expressions as the C tools show them: every symbol with its value.

use super::session::Session;
use crate::expr::{Atom, Expr, ExprId};
use crate::tree::Tree;
use crate::value::SymbolType;

/// How tightly the operator around an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    None,
    Or,
    And,
    Not,
}

impl Session<'_, '_> {
    /// Appends an expression.
    pub(super) fn push_expr(&self, expr: ExprId, text: &mut String) {
        self.push_level(expr, Level::None, text);
    }

    /// Appends an expression as a term of a conjunction.
    pub(super) fn push_term(&self, expr: ExprId, text: &mut String) {
        self.push_level(expr, Level::And, text);
    }

    fn push_level(&self, expr: ExprId, around: Level, text: &mut String) {
        let (terms, own, operator) = match self.tree.expr(expr) {
            Expr::Atom(atom) => return self.push_atom(atom, text),
            Expr::Compare(operator, left, right) => {
                self.push_atom(left, text);
                text.push_str(operator.as_str());
                return self.push_atom(right, text);
            }
            Expr::Not(inner) => {
                text.push('!');
                return self.push_level(inner, Level::Not, text);
            }
            Expr::And(..) => (self.tree.exprs.conjuncts(expr), Level::And, " && "),
            Expr::Or(..) => (self.tree.exprs.disjuncts(expr), Level::Or, " || "),
        };
        let enclosed = own < around;
        text.push_str(if enclosed { "(" } else { "" });
        for (index, term) in terms.into_iter().enumerate() {
            text.push_str(if index == 0 { "" } else { operator });
            self.push_level(term, own, text);
        }
        text.push_str(if enclosed { ")" } else { "" });
    }

    pub(super) fn push_atom(&self, atom: Atom, text: &mut String) {
        let evaluator = self.config.evaluator();
        match atom {
            Atom::Text(id) => text.push_str(self.tree.text(id)),
            Atom::Choice(choice) if self.tree.choice(choice).name.is_none() => text.push_str("<choice>"),
            _ => {
                text.push_str(name_of(self.tree, atom));
                if evaluator.atom_kind(atom) != SymbolType::Unknown {
                    text.extend([" [=", evaluator.atom_text(atom), "]"]);
                }
            }
        }
    }
}

/// What an atom is called.
fn name_of(tree: &Tree, atom: Atom) -> &str {
    match atom {
        Atom::Tri(tri) => tri.as_str(),
        Atom::Text(id) => tree.text(id),
        Atom::Symbol(symbol) => &tree.get(symbol).name,
        Atom::Choice(choice) => tree.choice(choice).name.as_deref().unwrap_or("<choice>"),
    }
}
