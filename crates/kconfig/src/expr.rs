//! Expressions: conditions and default values, shared in one arena per tree.
//!
//! Equal expressions have the same id, so that comparing two conditions is comparing two numbers.

use std::num::NonZeroU32;

use hashbrown::HashTable;

use crate::ids::{ChoiceId, SymbolId};
use crate::source::hash_of;
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

    /// The operator that holds where this one does not.
    pub(crate) const fn inverse(self) -> Self {
        match self {
            Self::Equal => Self::Unequal,
            Self::Unequal => Self::Equal,
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
        }
    }

    /// The operator for exchanged operands.
    pub(crate) const fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            equality => equality,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl std::hash::Hash for Expr {
    /// Two numbers; the derived hash of nested enums would be five.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let (tag, left, right) = match *self {
            Self::Atom(atom) => (0, atom.key(), 0),
            Self::Not(a) => (1, u64::from(a.0), 0),
            Self::And(a, b) => (2, u64::from(a.0), u64::from(b.0)),
            Self::Or(a, b) => (3, u64::from(a.0), u64::from(b.0)),
            Self::Compare(operator, left, right) => (4 + operator as u64, left.key(), right.key()),
        };
        state.write_u64(left ^ (tag << 56));
        state.write_u64(right);
    }
}

impl Atom {
    /// A number that no other atom of a tree has.
    const fn key(self) -> u64 {
        let (tag, value) = match self {
            Self::Tri(tri) => (0, tri as u64),
            Self::Text(text) => (1, text.0 as u64),
            Self::Symbol(symbol) => (2, symbol.index() as u64),
            Self::Choice(choice) => (3, choice.index() as u64),
        };
        value << 2 | tag
    }
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
    /// The numbers of expressions by what they are.
    ids: HashTable<ExprId>,
    /// Which of `n` (1), `m` (2) and choices (4) each expression names: those that name none of
    /// them are treated alike everywhere.
    named: Vec<u8>,
    /// The expression that each symbol alone is, once it was made.
    of_symbols: Vec<Option<NonZeroU32>>,
}

const CHOICE: u8 = 4;

const fn bits_of(atom: Atom) -> u8 {
    match atom {
        Atom::Tri(Tri::N) => 1,
        Atom::Tri(Tri::M) => 2,
        Atom::Choice(_) => CHOICE,
        _ => 0,
    }
}

impl Default for Exprs {
    fn default() -> Self {
        // Room for a kernel: growing a table means moving it.
        let ids = HashTable::with_capacity(57_000);
        let mut exprs = Self { list: Vec::new(), ids, named: Vec::new(), of_symbols: Vec::new() };
        exprs.intern(Expr::Atom(Atom::Tri(Tri::Y)));
        exprs.intern(Expr::Atom(Atom::Tri(Tri::N)));
        exprs
    }
}

impl Exprs {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Expr> {
        self.list.iter().copied()
    }

    pub(crate) fn get(&self, id: ExprId) -> Expr {
        self.list[id.0 as usize]
    }

    pub(crate) fn intern(&mut self, expr: Expr) -> ExprId {
        let hash = hash_of(&expr);
        if let Some(id) = self.ids.find(hash, |id| self.list[id.index()] == expr) {
            return *id;
        }
        let id = ExprId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        let named = match expr {
            Expr::Atom(atom) => bits_of(atom),
            Expr::Not(a) => self.named[a.index()],
            Expr::And(a, b) | Expr::Or(a, b) => self.named[a.index()] | self.named[b.index()],
            Expr::Compare(_, left, right) => bits_of(left) | bits_of(right),
        };
        self.list.push(expr);
        self.named.push(named);
        self.ids.insert_unique(hash, id, |id| hash_of(&self.list[id.index()]));
        id
    }

    /// Gives back what only making expressions needs.
    pub(crate) fn seal(&mut self) {
        self.ids = HashTable::new();
        self.named = Vec::new();
        self.of_symbols = Vec::new();
    }

    /// Whether an expression names the constant `n` or `m`.
    pub(crate) fn names_constant(&self, id: ExprId, constant: Tri) -> bool {
        self.named[id.index()] & bits_of(Atom::Tri(constant)) != 0
    }

    /// Whether an expression names a choice.
    pub(crate) fn names_choice(&self, id: ExprId) -> bool {
        self.named[id.index()] & CHOICE != 0
    }

    /// The expression of this number.
    pub(crate) fn nth(&self, index: usize) -> Expr {
        self.list[index]
    }

    #[inline]
    pub(crate) fn atom(&mut self, atom: Atom) -> ExprId {
        match atom {
            Atom::Symbol(symbol) => match self.of_symbols.get(symbol.index()) {
                Some(Some(id)) => ExprId(id.get()),
                _ => self.intern_symbol(symbol),
            },
            _ => self.intern(Expr::Atom(atom)),
        }
    }

    fn intern_symbol(&mut self, symbol: SymbolId) -> ExprId {
        let id = self.intern(Expr::Atom(Atom::Symbol(symbol)));
        if self.of_symbols.len() <= symbol.index() {
            self.of_symbols.resize(symbol.index() + 1, None);
        }
        // The first expression is `y`.
        self.of_symbols[symbol.index()] = NonZeroU32::new(id.0);
        id
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
                if (tri == Tri::N) == equal {
                    ExprId::YES
                } else {
                    ExprId::NO
                }
            }
            Expr::Atom(atom) => self.compare(operator, atom, Atom::Tri(Tri::N)),
            Expr::Not(inner) => self.compare_no(inner, operator.inverse()),
            // Chains are taken apart, so that only real nesting costs depth.
            Expr::And(..) => self.join_no(self.conjuncts(id), operator, equal),
            Expr::Or(..) => self.join_no(self.disjuncts(id), operator, !equal),
            Expr::Compare(..) => {
                if equal {
                    self.not(id)
                } else {
                    id
                }
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

    /// Calls `visit` with every atom; stops when it says so.
    pub(crate) fn any_atom(&self, id: ExprId, mut visit: impl FnMut(Atom) -> bool) -> bool {
        self.visit_atoms(id, &mut visit)
    }

    /// Chains, which may be long, are walked in a loop; only real nesting recurses.
    fn visit_atoms(&self, mut id: ExprId, visit: &mut impl FnMut(Atom) -> bool) -> bool {
        loop {
            match self.get(id) {
                Expr::Atom(atom) => return visit(atom),
                Expr::Compare(_, left, right) => return visit(left) || visit(right),
                Expr::Not(inner) => id = inner,
                Expr::And(left, right) | Expr::Or(left, right) => {
                    if self.visit_atoms(right, visit) {
                        return true;
                    }
                    id = left;
                }
            }
        }
    }

    /// Whether any term of a conjunction is such; their order is not kept.
    pub(crate) fn any_conjunct(&self, mut id: ExprId, is_such: &impl Fn(Expr) -> bool) -> bool {
        while let Expr::And(left, right) = self.get(id) {
            if self.any_conjunct(right, is_such) {
                return true;
            }
            id = left;
        }
        is_such(self.get(id))
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
