//! What follows from a condition: the values that symbols can still have once it holds.
//!
//! Proves contradictions and consequences, each only as far as it is certain; what it cannot decide
//! it calls possible and not implied. Reports nothing.

mod ask;
mod compare;
mod derive;
mod flags;
mod follow;
mod refute;
mod waiting;

use smallvec::{SmallVec, smallvec};

use crate::config::Config;
use crate::expr::{Atom, Expr, ExprId};
use crate::tree::{Symbol, SymbolId, Tree};
use crate::value::{SymbolType, Tri};

use self::ask::{Clause, Witnesses, has_many_terms};
use self::compare::Verdict;
use self::derive::Derived;
use self::flags::Flags;
use self::waiting::Waiting;
use super::elsewhere::Elsewhere;

/// A set of truth values: one bit each for `n`, `m` and `y`.
pub(super) type Set = u8;
/// `n` alone.
pub(super) const N: Set = 1;
/// `m` alone.
const M: Set = 2;
/// `y` alone.
pub(super) const Y: Set = 4;
/// Anything.
const ANY: Set = N | M | Y;

/// Clauses are looked through at most so often: each round decides at least one of them.
const MAX_ROUNDS: usize = 16;
/// One condition never makes so many symbols follow; a tree that is one knot would.
const MAX_CONSEQUENCES: usize = 2000;
/// A disjunction with more terms is too weak to conclude anything from.
const MAX_ALTERNATIVES: usize = 12;

/// An expression that is assumed to be not `n`, or, negated, not `y`.
type Literal = (ExprId, bool);
/// What holds all together; most are one or two.
type Way = SmallVec<[Literal; 2]>;
/// At least one of these holds.
type Ways = SmallVec<[Way; 4]>;
/// Values that a user or a default gives.
pub(super) type Assignment = Vec<(SymbolId, Set)>;

/// Whether a symbol that is on proves that its dependencies hold, although a `select` may break
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// They may be broken.
    Nothing,
    /// They hold: a symbol that breaks them is reported by itself.
    Dependencies,
}

/// How far the assumptions had come; see [`Facts::undo`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    trail: usize,
    clauses: usize,
    given: usize,
    waiting: waiting::Mark,
    forced: usize,
    needed: usize,
    consistent: bool,
}

/// Assumptions about one configuration, and what follows.
pub(super) struct Facts<'t> {
    tree: &'t Tree,
    /// Which symbols other files define, and which they set.
    defined: Vec<bool>,
    set: Vec<bool>,
    /// Of which nothing follows when they are off.
    ends: Vec<bool>,
    /// Of which so many select or imply them that nothing follows about who did.
    is_common: Vec<bool>,
    trust: Trust,
    domains: Vec<Set>,
    /// What each domain was before it shrank.
    trail: Vec<(SymbolId, Set)>,
    clauses: Vec<Clause>,
    /// How many clauses of single literals of one sign begin with each literal; see
    /// [`Facts::is_clause`].
    heads: Vec<u32>,
    witnesses: Witnesses,
    /// Comparisons and choices that are assumed and say nothing about a single symbol.
    given: Vec<Literal>,
    waiting: Waiting,
    /// Symbols that are on because something that is on selects them: that proves no dependency of
    /// theirs.
    forced: Flags,
    /// Those of them that something else needs on top: their dependencies count after all.
    needed: Flags,
    /// Symbols that have just become known to be on.
    fresh: Vec<SymbolId>,
    /// Symbols that have just become known to be off.
    fresh_off: Vec<SymbolId>,
    derived: Derived,
    consequences: usize,
    consistent: bool,
    /// One configuration for all that are tried out, with what was said in it last.
    trial: Option<Trial<'t>>,
    /// What may still be spent on looking for configurations.
    work: usize,
}

/// A configuration that is used again and again: what was said in it is taken back one by one.
struct Trial<'t> {
    config: Config<'t>,
    said: Vec<SymbolId>,
}

impl<'t> Facts<'t> {
    pub(super) fn new(tree: &'t Tree, elsewhere: &Elsewhere, trust: Trust) -> Self {
        let elsewhere_is =
            |is_such: &dyn Fn(&str) -> bool| tree.symbols.iter().map(|symbol| is_such(&symbol.name)).collect();
        let domains = (0..tree.symbols.len()).map(|index| domain_of(tree, SymbolId::new(index), elsewhere)).collect();
        let mut facts = Self {
            tree,
            ends: tree
                .symbols
                .iter()
                .map(|symbol| symbol.nodes.is_empty() || symbol.choice.is_some() || elsewhere.defines(&symbol.name))
                .collect(),
            is_common: tree
                .symbols
                .iter()
                .map(|symbol| [symbol.selected_by, symbol.implied_by].iter().any(|expr| has_many_terms(tree, *expr)))
                .collect(),
            defined: elsewhere_is(&|name| elsewhere.defines(name)),
            set: elsewhere_is(&|name| elsewhere.sets(name)),
            trust,
            domains,
            trail: Vec::new(),
            clauses: Vec::new(),
            heads: vec![0; 2 * tree.exprs.len()],
            witnesses: Witnesses::new(tree),
            given: Vec::new(),
            waiting: Waiting::new(tree),
            forced: Flags::new(tree.symbols.len()),
            needed: Flags::new(tree.symbols.len()),
            fresh: Vec::new(),
            fresh_off: Vec::new(),
            derived: Derived::default(),
            consequences: 0,
            consistent: true,
            trial: None,
            work: refute::WORK_PER_SYMBOL * tree.symbols.len(),
        };
        if trust == Trust::Dependencies {
            facts.derive_constants();
        }
        facts
    }

    pub(super) fn domain(&self, symbol: SymbolId) -> Set {
        self.domains[symbol.index()]
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            trail: self.trail.len(),
            clauses: self.clauses.len(),
            given: self.given.len(),
            waiting: self.waiting.mark(),
            forced: self.forced.len(),
            needed: self.needed.len(),
            consistent: self.consistent,
        }
    }

    pub(super) fn undo(&mut self, mark: Mark) {
        while self.trail.len() > mark.trail {
            if let Some((symbol, before)) = self.trail.pop() {
                self.domains[symbol.index()] = before;
            }
        }
        self.truncate_clauses(mark.clauses);
        self.given.truncate(mark.given);
        self.waiting.undo(mark.waiting);
        self.forced.truncate(mark.forced);
        self.needed.truncate(mark.needed);
        self.consistent = mark.consistent;
        self.fresh.clear();
        self.fresh_off.clear();
        self.consequences = 0;
    }

    /// Assumes that a condition holds; false when it then contradicts what is known.
    pub(super) fn assume(&mut self, condition: ExprId) -> bool {
        self.take(condition, true);
        self.settle();
        self.consistent
    }

    /// Assumes that a symbol is on; false when that is impossible, or when it proves all goals: no
    /// more is concluded then.
    pub(super) fn assume_on(&mut self, symbol: SymbolId, goals: &[ExprId]) -> bool {
        self.restrict(symbol, M | Y);
        !self.settle_until(&|facts| goals.iter().all(|goal| facts.implied(*goal, true))) && self.consistent
    }

    /// Assumes values.
    fn assume_values(&mut self, values: &[(SymbolId, Set)]) -> bool {
        for (symbol, set) in values {
            self.restrict(*symbol, *set);
        }
        self.settle();
        self.consistent
    }

    fn restrict(&mut self, symbol: SymbolId, set: Set) {
        let before = self.domains[symbol.index()];
        let after = before & set;
        if after == before {
            return;
        }
        self.trail.push((symbol, before));
        self.domains[symbol.index()] = after;
        self.waiting.wake(symbol, after & N == 0);
        self.consistent &= after != 0;
        if before & N != 0 && after & N == 0 {
            self.fresh.push(symbol);
        }
        if before & !N != 0 && after == N {
            self.fresh_off.push(symbol);
        }
    }

    /// Takes an expression apart; disjunctions wait as clauses.
    fn take(&mut self, expr: ExprId, positive: bool) {
        let mut open: SmallVec<[Literal; 8]> = smallvec![(expr, positive)];
        while let Some((expr, positive)) = open.pop() {
            match self.tree.expr(expr) {
                Expr::Not(inner) => open.push((inner, !positive)),
                Expr::And(left, right) if positive => open.extend([(left, true), (right, true)]),
                Expr::Or(left, right) if !positive => open.extend([(left, false), (right, false)]),
                Expr::And(..) => self.add_clause(self.tree.conjuncts(expr), false),
                Expr::Or(..) => self.add_clause(self.tree.disjuncts(expr), true),
                Expr::Atom(atom) => {
                    if matches!(atom, Atom::Choice(_)) {
                        self.given.push((expr, positive));
                    }
                    self.take_atom(atom, positive, &mut open);
                }
                Expr::Compare(operator, left, right) => {
                    match self.comparison(if positive { operator } else { operator.inverse() }, left, right) {
                        Verdict::Symbol(symbol, set) => self.restrict(symbol, set),
                        Verdict::Never => self.consistent = false,
                        Verdict::Within(symbol, set) => {
                            self.given.push((expr, positive));
                            self.restrict(symbol, set);
                        }
                        Verdict::Maybe => self.given.push((expr, positive)),
                    }
                }
            }
        }
    }

    fn take_atom(&mut self, atom: Atom, positive: bool, open: &mut SmallVec<[Literal; 8]>) {
        match atom {
            Atom::Tri(tri) => self.consistent &= tri != if positive { Tri::N } else { Tri::Y },
            Atom::Text(_) => self.consistent &= !positive,
            Atom::Symbol(symbol) => {
                self.restrict(symbol, if positive { M | Y } else { N | M });
                if positive && self.forced.has(symbol) && !self.needed.has(symbol) {
                    self.needed.raise(symbol);
                    open.extend(self.dependency_of(symbol).map(|dependency| (dependency, true)));
                }
            }
            // A choice is on only where it is visible; one with several definitions is visible in
            // any of them.
            Atom::Choice(choice) => {
                if let ([node], true) = (&*self.tree.choice(choice).nodes, positive)
                    && let Some(prompt) = &self.tree.node(*node).prompt
                {
                    open.push((prompt.condition, true));
                }
            }
        }
    }

    /// Keeps a clause that may teach something: not one that holds already, or that is too wide.
    fn push_open(&mut self, ways: Ways) {
        if (1..=MAX_ALTERNATIVES).contains(&ways.len()) && !ways.iter().any(|way| self.is_implied_way(way)) {
            self.push_clause(ways);
        }
    }

    fn push_clause(&mut self, ways: Ways) {
        let clause = Clause::new(ways);
        if let Some(head) = clause.head() {
            self.heads[head] += 1;
        }
        self.clauses.push(clause);
    }

    fn truncate_clauses(&mut self, length: usize) {
        for clause in self.clauses.drain(length..) {
            if let Some(head) = clause.head() {
                self.heads[head] -= 1;
            }
        }
    }

    fn add_clause(&mut self, terms: Vec<ExprId>, positive: bool) {
        if terms.len() <= MAX_ALTERNATIVES {
            self.push_clause(terms.into_iter().map(|term| smallvec![(term, positive)]).collect());
        } else if !terms.iter().any(|term| self.possible(*term, positive)) {
            self.consistent = false;
        }
    }

    /// Draws conclusions until there are no more.
    fn settle(&mut self) {
        self.settle_until(&|_| false);
    }

    /// The same, but stops as soon as enough is known; whether it is.
    fn settle_until(&mut self, is_enough: &dyn Fn(&Self) -> bool) -> bool {
        for _ in 0..MAX_ROUNDS {
            while self.consistent
                && let Some(symbol) = self.fresh.pop()
            {
                self.consequences += 1;
                if self.consequences <= MAX_CONSEQUENCES {
                    self.follow(symbol);
                }
            }
            if is_enough(self) {
                break;
            }
            while self.consistent
                && let Some(symbol) = self.fresh_off.pop()
            {
                self.consequences += 1;
                if self.consequences <= MAX_CONSEQUENCES {
                    self.follow_off(symbol);
                }
            }
            self.derive_noted();
            if !self.consistent || !(!self.fresh.is_empty() | self.follow_selects() | self.decide_clauses()) {
                break;
            }
        }
        self.fresh.clear();
        self.fresh_off.clear();
        self.forget_noted();
        is_enough(self)
    }

    /// Takes what is left of clauses with one way open; whether anything became known.
    fn decide_clauses(&mut self) -> bool {
        let before = self.trail.len();
        for index in 0..self.clauses.len() {
            let clause = &self.clauses[index];
            // Two ways that are open decide nothing; those that were are looked at first.
            let (first, second) = clause.open.get();
            if first != second
                && self.is_possible_way(&clause.ways[first])
                && self.is_possible_way(&clause.ways[second])
            {
                continue;
            }
            let mut open = (0..clause.ways.len()).filter(|way| self.is_possible_way(&clause.ways[*way]));
            match (open.next(), open.next()) {
                (None, _) => self.consistent = false,
                (Some(only), None) => {
                    let way = clause.ways[only].clone();
                    way.into_iter().for_each(|(expr, positive)| self.take(expr, positive));
                }
                (Some(first), Some(second)) => clause.open.set((first, second)),
            }
            if !self.consistent {
                return false;
            }
        }
        self.trail.len() > before
    }
}

pub(super) fn has_prompt(tree: &Tree, symbol: &Symbol) -> bool {
    symbol.nodes.iter().any(|node| tree.node(*node).prompt.is_some())
}

/// Whether nothing in the tree can give a symbol a value.
pub(super) fn has_no_source(tree: &Tree, symbol: &Symbol) -> bool {
    !has_prompt(tree, symbol)
        && symbol.defaults.is_empty()
        && symbol.selectors.is_empty()
        && symbol.impliers.is_empty()
        && symbol.env.is_none()
        && !symbol.transitional
        && symbol.choice.is_none()
}

/// The values that a symbol may have in any configuration of the tree.
fn domain_of(tree: &Tree, id: SymbolId, elsewhere: &Elsewhere) -> Set {
    let symbol = tree.get(id);
    let constant = if symbol.nodes.is_empty() {
        !elsewhere.defines(&symbol.name)
    } else {
        has_no_source(tree, symbol) && !elsewhere.sets(&symbol.name) && !elsewhere.defines(&symbol.name)
    };
    match symbol.kind {
        _ if constant => N,
        SymbolType::Bool => N | Y,
        SymbolType::Tristate if tree.modules().is_none() => N | Y,
        SymbolType::Tristate | SymbolType::Unknown => ANY,
        SymbolType::Int | SymbolType::Hex | SymbolType::String => N,
    }
}
