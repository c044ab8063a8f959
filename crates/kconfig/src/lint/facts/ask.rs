//! Whether a condition may still hold, and whether it is certain to, by what is known.
//!
//! These are asked millions of times: what answered a question last is looked at first.

use std::cell::Cell;

use super::compare::Verdict;
use super::{Facts, Literal, M, MAX_ALTERNATIVES, N, Way, Ways, Y};
use crate::expr::{Atom, Expr, ExprId};
use crate::tree::Tree;
use crate::value::Tri;

/// Ways of which at least one holds.
pub(super) struct Clause {
    pub ways: Ways,
    /// Two of them that were open when the clause was looked at last; one twice when that is not
    /// known.
    pub open: Cell<(usize, usize)>,
}

impl Clause {
    pub(super) fn new(ways: Ways) -> Self {
        Self { ways, open: Cell::new((0, 0)) }
    }

    /// The number of the first literal, if each way is a single one and all have the same sign.
    pub(super) fn head(&self) -> Option<usize> {
        let (_, sign) = *self.ways.first()?.first()?;
        let is_such = |way: &Way| matches!(&**way, [(_, other)] if *other == sign);
        self.ways.iter().all(is_such).then(|| number_of(self.ways[0][0]))
    }
}

/// A number that no other literal has.
fn number_of((expr, sign): Literal) -> usize {
    2 * expr.index() + usize::from(sign)
}

/// For each of the questions of [`Facts::any_term`] and each expression a term that was the answer
/// last, or `y`.
pub(super) struct Witnesses([Vec<Cell<ExprId>>; 4]);

impl Witnesses {
    pub(super) fn new(tree: &Tree) -> Self {
        Self(std::array::from_fn(|_| vec![Cell::new(ExprId::YES); tree.exprs.len()]))
    }
}

impl Facts<'_> {
    /// Whether a condition may still hold, looking at each symbol alone.
    #[inline]
    pub(in crate::lint) fn possible(&self, expr: ExprId, positive: bool) -> bool {
        match self.tree.expr(expr) {
            Expr::Atom(Atom::Symbol(symbol)) => self.domain(symbol) & if positive { M | Y } else { N | M } != 0,
            other => self.is_possible(expr, other, positive),
        }
    }

    fn is_possible(&self, expr: ExprId, written: Expr, positive: bool) -> bool {
        match written {
            Expr::Not(inner) => self.possible(inner, !positive),
            Expr::And(..) if positive => !self.any_term(expr, 0, &|term| !self.possible(term, true)),
            Expr::Or(..) if !positive => !self.any_term(expr, 0, &|term| !self.possible(term, false)),
            Expr::And(..) | Expr::Or(..) => self.any_term(expr, 1, &|term| self.possible(term, positive)),
            Expr::Atom(Atom::Tri(tri)) => tri != if positive { Tri::N } else { Tri::Y },
            Expr::Atom(Atom::Text(_)) => !positive,
            Expr::Atom(_) => true,
            Expr::Compare(operator, left, right) => {
                match self.comparison(if positive { operator } else { operator.inverse() }, left, right) {
                    Verdict::Symbol(symbol, set) | Verdict::Within(symbol, set) => self.domain(symbol) & set != 0,
                    Verdict::Never => false,
                    Verdict::Maybe => true,
                }
            }
        }
    }

    /// Whether a condition is certain to hold.
    #[inline]
    pub(in crate::lint) fn implied(&self, expr: ExprId, positive: bool) -> bool {
        match self.tree.expr(expr) {
            // What is not `n` in every case is certain.
            Expr::Atom(Atom::Symbol(symbol)) => self.domain(symbol) & if positive { N } else { Y } == 0,
            other => self.is_implied(expr, other, positive),
        }
    }

    fn is_implied(&self, expr: ExprId, written: Expr, positive: bool) -> bool {
        match written {
            Expr::Not(inner) => self.implied(inner, !positive),
            Expr::And(..) if positive => !self.any_term(expr, 2, &|term| !self.implied(term, true)),
            Expr::Or(..) if !positive => !self.any_term(expr, 2, &|term| !self.implied(term, false)),
            Expr::And(..) | Expr::Or(..) => {
                self.any_term(expr, 3, &|term| self.implied(term, positive)) || self.is_clause(expr, positive)
            }
            Expr::Atom(Atom::Choice(_)) => self.given.contains(&(expr, positive)),
            Expr::Atom(atom) => atom == Atom::Tri(Tri::M) || (atom == Atom::Tri(Tri::Y)) == positive,
            Expr::Compare(operator, left, right) => {
                match self.comparison(if positive { operator } else { operator.inverse() }, left, right) {
                    Verdict::Symbol(symbol, set) => self.domain(symbol) & !set == 0,
                    Verdict::Maybe | Verdict::Within(..) => self.given.contains(&(expr, positive)),
                    Verdict::Never => false,
                }
            }
        }
    }

    /// Whether the term that kept a conjunction from being certain the last time is a symbol that
    /// still does: a short answer for most.
    pub(super) fn is_held_back(&self, expr: ExprId) -> bool {
        match self.tree.expr(self.witnesses.0[2][expr.index()].get()) {
            Expr::Atom(Atom::Symbol(symbol)) if matches!(self.tree.expr(expr), Expr::And(..)) => {
                self.domain(symbol) & N != 0
            }
            _ => false,
        }
    }

    pub(super) fn is_possible_way(&self, way: &[Literal]) -> bool {
        way.iter().all(|(expr, positive)| self.possible(*expr, *positive))
    }

    pub(super) fn is_implied_way(&self, way: &[Literal]) -> bool {
        way.iter().all(|(expr, positive)| self.implied(*expr, *positive))
    }

    /// Whether any term of a conjunction or disjunction is such: this is asked more often than all
    /// else. The term that was such the last time that the same was asked is looked at first;
    /// `question` is the number of the question.
    fn any_term(&self, expr: ExprId, question: usize, is_such: &dyn Fn(ExprId) -> bool) -> bool {
        let witness = &self.witnesses.0[question][expr.index()];
        let of_and = matches!(self.tree.expr(expr), Expr::And(..));
        if witness.get() != ExprId::YES && is_such(witness.get()) {
            return true;
        }
        let found = self.find_term(expr, of_and, is_such);
        found.inspect(|term| witness.set(*term)).is_some()
    }

    /// Chains lean to the left and are walked in a loop.
    fn find_term(&self, mut expr: ExprId, of_and: bool, is_such: &dyn Fn(ExprId) -> bool) -> Option<ExprId> {
        loop {
            let right = match self.tree.expr(expr) {
                Expr::And(left, right) if of_and => {
                    expr = left;
                    right
                }
                Expr::Or(left, right) if !of_and => {
                    expr = left;
                    right
                }
                _ => return is_such(expr).then_some(expr),
            };
            if let Some(found) = self.find_term(right, of_and, is_such) {
                return Some(found);
            }
        }
    }

    /// Whether a term of a disjunction is certain to hold.
    pub(super) fn implies_term(&self, expr: ExprId) -> bool {
        match self.tree.expr(expr) {
            Expr::Or(..) => self.any_term(expr, 3, &|term| self.implied(term, true)),
            _ => self.implied(expr, true),
        }
    }

    /// Whether one of the known clauses says that a term holds.
    fn is_clause(&self, expr: ExprId, positive: bool) -> bool {
        // Nearly always there is none: this is asked of every disjunction.
        let begins = |term| self.heads[number_of((term, positive))] > 0;
        if self.find_term(expr, !positive, &begins).is_none() {
            return false;
        }
        let terms = if positive { self.tree.disjuncts(expr) } else { self.tree.conjuncts(expr) };
        let listed = |way: &Way| matches!(&**way, [(expr, sign)] if *sign == positive && terms.contains(expr));
        self.clauses.iter().any(|clause| clause.ways.iter().all(listed))
    }
}

/// Whether a disjunction has more terms than clauses may have.
pub(super) fn has_many_terms(tree: &Tree, expr: ExprId) -> bool {
    let (mut open, mut count) = (vec![expr], 0);
    while let Some(expr) = open.pop() {
        match tree.expr(expr) {
            Expr::Or(left, right) => open.extend([left, right]),
            _ => count += 1,
        }
        if count + open.len() > MAX_ALTERNATIVES {
            return true;
        }
    }
    false
}
