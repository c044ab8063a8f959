//! Expressions as the C tools show them: simplified as far as they simplify, every symbol with its
//! value.

use super::session::Session;
use crate::expr::{Atom, Compare, Expr, ExprId};
use crate::tree::Tree;
use crate::value::{SymbolType, Tri};

/// An expression in which only symbols are negated, and no term stands twice.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Atom(Atom),
    Not(Atom),
    Compare(Compare, Atom, Atom),
    And(Vec<Self>),
    Or(Vec<Self>),
}

impl Form {
    fn new(tree: &Tree, expr: ExprId, negated: bool) -> Self {
        let all = match tree.expr(expr) {
            Expr::Atom(Atom::Tri(tri)) => return Self::Atom(Atom::Tri(if negated { !tri } else { tri })),
            Expr::Atom(atom) => return if negated { Self::Not(atom) } else { Self::Atom(atom) },
            Expr::Not(inner) => return Self::new(tree, inner, !negated),
            Expr::Compare(operator, left, right) => {
                let operator = if negated { operator.inverse() } else { operator };
                return Self::compare(tree, operator, left, right);
            }
            Expr::And(..) => !negated,
            Expr::Or(..) => negated,
        };
        let terms = match tree.expr(expr) {
            Expr::And(..) => tree.exprs.conjuncts(expr),
            _ => tree.exprs.disjuncts(expr),
        };
        let mut forms = Vec::new();
        for term in terms {
            match (Self::new(tree, term, negated), all) {
                (Self::And(inner), true) | (Self::Or(inner), false) => forms.extend(inner),
                (form, _) => forms.push(form),
            }
        }
        Self::join(forms, all)
    }

    /// Comparisons of a bool with a constant are that bool or its opposite.
    fn compare(tree: &Tree, operator: Compare, left: Atom, right: Atom) -> Self {
        if let (Atom::Symbol(symbol), Atom::Tri(tri)) = (left, right)
            && tree.get(symbol).kind == SymbolType::Bool
            && matches!(operator, Compare::Equal | Compare::Unequal)
        {
            let equal = operator == Compare::Equal;
            return match tri {
                Tri::M => Self::Atom(Atom::Tri(if equal { Tri::N } else { Tri::Y })),
                tri if (tri == Tri::Y) == equal => Self::Atom(left),
                _ => Self::Not(left),
            };
        }
        Self::Compare(operator, left, right)
    }

    /// Of equal terms the last stays.
    fn join(forms: Vec<Self>, all: bool) -> Self {
        let (neutral, decisive) = if all { (Tri::Y, Tri::N) } else { (Tri::N, Tri::Y) };
        let mut kept: Vec<Self> = Vec::with_capacity(forms.len());
        for form in forms {
            if form == Self::Atom(Atom::Tri(neutral)) {
                continue;
            }
            if form == Self::Atom(Atom::Tri(decisive)) {
                return form;
            }
            if let Some(at) = kept.iter().position(|other| *other == form) {
                kept.remove(at);
            }
            kept.push(form);
        }
        match (kept.len(), all) {
            (0, _) => Self::Atom(Atom::Tri(neutral)),
            (1, _) => kept.swap_remove(0),
            (_, true) => Self::And(kept),
            (_, false) => Self::Or(kept),
        }
    }
}

impl Session<'_, '_> {
    /// Appends an expression.
    pub(super) fn push_expr(&self, expr: ExprId, text: &mut String) {
        self.push_form(&Form::new(self.tree, expr, false), false, text);
    }

    /// Appends an expression as a term of a conjunction.
    pub(super) fn push_term(&self, expr: ExprId, text: &mut String) {
        self.push_form(&Form::new(self.tree, expr, false), true, text);
    }

    /// Appends what selects or implies: the symbol, then its condition.
    pub(super) fn push_selection(&self, expr: ExprId, text: &mut String) {
        if let Expr::And(left, right) = self.tree.expr(expr)
            && let Expr::Atom(atom) = self.tree.expr(left)
        {
            self.push_atom(atom, text);
            text.push_str(" && ");
            self.push_term(right, text);
        } else {
            self.push_expr(expr, text);
        }
    }

    fn push_form(&self, form: &Form, is_term: bool, text: &mut String) {
        let (terms, operator, enclosed) = match form {
            Form::Atom(atom) => return self.push_atom(*atom, text),
            Form::Not(atom) => {
                text.push('!');
                return self.push_atom(*atom, text);
            }
            Form::Compare(operator, left, right) => {
                self.push_atom(*left, text);
                text.push_str(operator.as_str());
                return self.push_atom(*right, text);
            }
            Form::And(terms) => (terms, " && ", false),
            Form::Or(terms) => (terms, " || ", is_term),
        };
        text.push_str(if enclosed { "(" } else { "" });
        for (index, term) in terms.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { operator });
            self.push_form(term, matches!(form, Form::And(_)), text);
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
