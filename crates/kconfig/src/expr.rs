//! Expressions: conditions and default values, shared in one arena per tree.
//!
//! Equal expressions have the same id, so that comparing two conditions is comparing two numbers.

use std::collections::HashMap;

use crate::source::FastHash;
use crate::tree::{ChoiceId, SymbolId};
use crate::value::Tri;

/// An expression of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(u32);

/// A word or constant text of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextId(u32);

impl TextId {
    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What comparisons compare and expressions are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// `n`, `m` or `y`.
    Tri(Tri),
    /// A quoted text or a number.
    Text(TextId),
    /// A symbol, defined or not.
    Symbol(SymbolId),
    /// The mode of a choice: not written by people, but members of a choice depend on it.
    Choice(ChoiceId),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Compare {
    /// As written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// Whether the operator holds for this order of its operands.
    #[must_use]
    pub const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// One node of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant, a symbol or a choice.
    Atom(Atom),
    /// `!a`
    Not(ExprId),
    /// `a && b`
    And(ExprId, ExprId),
    /// `a || b`
    Or(ExprId, ExprId),
    /// `a = b` and its relatives.
    Compare(Compare, Atom, Atom),
}

impl ExprId {
    /// The constant `y`: no condition.
    pub const YES: Self = Self(0);
    /// The constant `n`.
    pub const NO: Self = Self(1);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The arena of a tree's expressions.
#[derive(Debug)]
pub(crate) struct Exprs {
    list: Vec<Expr>,
    ids: HashMap<Expr, ExprId, FastHash>,
}

impl Default for Exprs {
    fn default() -> Self {
        let mut exprs = Self { list: Vec::new(), ids: HashMap::default() };
        exprs.intern(Expr::Atom(Atom::Tri(Tri::Y)));
        exprs.intern(Expr::Atom(Atom::Tri(Tri::N)));
        exprs
    }
}

impl Exprs {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, id: ExprId) -> Expr {
        self.list[id.0 as usize]
    }

    pub(crate) fn intern(&mut self, expr: Expr) -> ExprId {
        let next = ExprId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        let id = *self.ids.entry(expr).or_insert(next);
        if id == next {
            self.list.push(expr);
        }
        id
    }

    pub(crate) fn atom(&mut self, atom: Atom) -> ExprId {
        self.intern(Expr::Atom(atom))
    }

    pub(crate) fn not(&mut self, a: ExprId) -> ExprId {
        match a {
            ExprId::YES => ExprId::NO,
            ExprId::NO => ExprId::YES,
            _ => self.intern(Expr::Not(a)),
        }
    }

    pub(crate) fn and(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (a, b) {
            (ExprId::NO, _) | (_, ExprId::NO) => ExprId::NO,
            (ExprId::YES, other) | (other, ExprId::YES) => other,
            _ if a == b => a,
            _ => self.intern(Expr::And(a, b)),
        }
    }

    pub(crate) fn or(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (a, b) {
            (ExprId::YES, _) | (_, ExprId::YES) => ExprId::YES,
            (ExprId::NO, other) | (other, ExprId::NO) => other,
            _ if a == b => a,
            _ => self.intern(Expr::Or(a, b)),
        }
    }

    pub(crate) fn compare(&mut self, operator: Compare, left: Atom, right: Atom) -> ExprId {
        self.intern(Expr::Compare(operator, left, right))
    }

    /// The condition that `id` is `n`, spread over its symbols as the C tools do it.
    pub(crate) fn equals_no(&mut self, id: ExprId) -> ExprId {
        self.compare_no(id, Compare::Equal)
    }

    fn compare_no(&mut self, id: ExprId, operator: Compare) -> ExprId {
        let equal = operator == Compare::Equal;
        match self.get(id) {
            Expr::Atom(Atom::Tri(tri)) => {
                if (tri == Tri::N) == equal { ExprId::YES } else { ExprId::NO }
            }
            Expr::Atom(atom) => self.compare(operator, atom, Atom::Tri(Tri::N)),
            Expr::Not(inner) => self.compare_no(inner, if equal { Compare::Unequal } else { Compare::Equal }),
            // Chains are taken apart, so that only real nesting costs depth.
            Expr::And(..) => self.join_no(self.conjuncts(id), operator, equal),
            Expr::Or(..) => self.join_no(self.disjuncts(id), operator, !equal),
            Expr::Compare(..) => {
                if equal { self.not(id) } else { id }
            }
        }
    }

    fn join_no(&mut self, terms: Vec<ExprId>, operator: Compare, any: bool) -> ExprId {
        let mut joined = if any { ExprId::NO } else { ExprId::YES };
        for term in terms {
            let term = self.compare_no(term, operator);
            joined = if any { self.or(joined, term) } else { self.and(joined, term) };
        }
        joined
    }

    /// Calls `visit` with every atom; stops when it says so. Walks with its own stack: chains may be long.
    pub(crate) fn any_atom(&self, id: ExprId, mut visit: impl FnMut(Atom) -> bool) -> bool {
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.get(id) {
                Expr::Atom(atom) => {
                    if visit(atom) {
                        return true;
                    }
                }
                Expr::Not(a) => stack.push(a),
                Expr::And(a, b) | Expr::Or(a, b) => stack.extend([b, a]),
                Expr::Compare(_, left, right) => {
                    if visit(left) || visit(right) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// The terms of a conjunction in order; one term for anything else.
    pub(crate) fn conjuncts(&self, id: ExprId) -> Vec<ExprId> {
        self.terms(id, |expr| if let Expr::And(a, b) = expr { Some((a, b)) } else { None })
    }

    /// The terms of a disjunction in order; one term for anything else.
    pub(crate) fn disjuncts(&self, id: ExprId) -> Vec<ExprId> {
        self.terms(id, |expr| if let Expr::Or(a, b) = expr { Some((a, b)) } else { None })
    }

    fn terms(&self, id: ExprId, split: impl Fn(Expr) -> Option<(ExprId, ExprId)>) -> Vec<ExprId> {
        let (mut terms, mut stack) = (Vec::new(), vec![id]);
        while let Some(id) = stack.pop() {
            match split(self.get(id)) {
                Some((a, b)) => stack.extend([b, a]),
                None => terms.push(id),
            }
        }
        terms
    }

    /// Rewrites the leaves: chains are taken apart, so that only real nesting costs depth.
    pub(crate) fn rewrite(&mut self, id: ExprId, leaf: &impl Fn(&mut Self, Expr) -> Option<ExprId>) -> ExprId {
        match self.get(id) {
            Expr::Not(a) => {
                let a = self.rewrite(a, leaf);
                self.not(a)
            }
            Expr::And(..) => {
                let terms = self.conjuncts(id);
                let mut all = ExprId::YES;
                for term in terms {
                    let term = self.rewrite(term, leaf);
                    all = self.and(all, term);
                }
                all
            }
            Expr::Or(..) => {
                let terms = self.disjuncts(id);
                let mut any = ExprId::NO;
                for term in terms {
                    let term = self.rewrite(term, leaf);
                    any = self.or(any, term);
                }
                any
            }
            expr => leaf(self, expr).unwrap_or(id),
        }
    }
}
