//! What follows from a condition: the values that symbols can still have once it holds.
//!
//! Proves contradictions and consequences, each only as far as it is certain; what it cannot decide
//! it calls possible and not implied. Reports nothing.

mod ask;
mod compare;
mod refute;

use smallvec::{SmallVec, smallvec};

use crate::config::Config;
use crate::expr::{Atom, Expr, ExprId};
use crate::tree::{Symbol, SymbolId, Tree};
use crate::value::{SymbolType, Tri};

use self::ask::{Clause, Witnesses};
use self::compare::Verdict;
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
    waiting: usize,
    forced: usize,
    needed: usize,
    consistent: bool,
}

/// Assumptions about one configuration, and what follows.
pub(super) struct Facts<'t> {
    tree: &'t Tree,
    elsewhere: &'t Elsewhere,
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
    /// Selects of symbols that are on, by symbol and position: their conditions may come to hold.
    waiting: Vec<(SymbolId, usize)>,
    /// Symbols that are on because something that is on selects them: that proves no dependency of
    /// theirs.
    forced: Vec<SymbolId>,
    /// Those of them that something else needs on top: their dependencies count after all.
    needed: Vec<SymbolId>,
    /// Symbols that have just become known to be on.
    fresh: Vec<SymbolId>,
    /// Symbols that have just become known to be off.
    fresh_off: Vec<SymbolId>,
    /// For each symbol those without a prompt whose defaults mention it.
    derived: Vec<Vec<SymbolId>>,
    /// Those of them that are to be looked at, and which they are.
    noted: Vec<SymbolId>,
    is_noted: Vec<bool>,
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
    pub(super) fn new(tree: &'t Tree, elsewhere: &'t Elsewhere, trust: Trust) -> Self {
        let domains = (0..tree.symbols.len()).map(|index| domain_of(tree, SymbolId::new(index), elsewhere)).collect();
        let mut facts = Self {
            tree,
            elsewhere,
            trust,
            domains,
            trail: Vec::new(),
            clauses: Vec::new(),
            heads: vec![0; 2 * tree.exprs.len()],
            witnesses: Witnesses::new(tree),
            given: Vec::new(),
            waiting: Vec::new(),
            forced: Vec::new(),
            needed: Vec::new(),
            fresh: Vec::new(),
            fresh_off: Vec::new(),
            derived: vec![Vec::new(); if trust == Trust::Dependencies { tree.symbols.len() } else { 0 }],
            noted: Vec::new(),
            is_noted: vec![false; tree.symbols.len()],
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

    /// What holds in every configuration: symbols without a prompt whose defaults always apply.
    fn derive_constants(&mut self) {
        let tree = self.tree;
        let hidden: Vec<SymbolId> = tree.symbols().map(|(id, _)| id).filter(|id| self.is_derived(*id)).collect();
        for id in &hidden {
            for default in &tree.get(*id).defaults {
                for symbol in tree.symbols_in(default.condition).into_iter().chain(tree.symbols_in(default.value)) {
                    let of_symbol = &mut self.derived[symbol.index()];
                    // One symbol after another: what is there already is last.
                    if of_symbol.last() != Some(id) {
                        of_symbol.push(*id);
                    }
                }
            }
        }
        // More than one look: a default may rest on a symbol that comes later.
        let mut known = usize::MAX;
        while known != self.trail.len() {
            known = self.trail.len();
            for id in &hidden {
                self.derive(*id);
            }
            self.settle();
        }
        // What is decided needs no second look; the rest of these clauses would be looked at for
        // every single question.
        self.truncate_clauses(0);
        let open =
            |(by, index): &(SymbolId, usize)| self.domains[tree.get(*by).selects[*index].target.index()] & N != 0;
        self.waiting.retain(open);
        self.consistent = true;
    }

    fn is_derived(&self, id: SymbolId) -> bool {
        let symbol = self.tree.get(id);
        symbol.kind.is_logical()
            && !symbol.defaults.is_empty()
            && symbol.choice.is_none()
            && symbol.env.is_none()
            && !has_prompt(self.tree, symbol)
    }

    /// Switches a symbol without a prompt on when its first default certainly says so.
    fn derive(&mut self, id: SymbolId) {
        if self.domain(id) & N == 0 {
            return;
        }
        for default in &self.tree.get(id).defaults {
            if !self.is_held_back(default.condition) && self.implied(default.condition, true) {
                if self.implied(default.value, true) {
                    self.restrict(id, M | Y);
                }
                return;
            }
            // A default that may come first and say something else.
            if self.possible(default.condition, true) && !self.implied(default.value, true) {
                return;
            }
        }
    }

    pub(super) fn domain(&self, symbol: SymbolId) -> Set {
        self.domains[symbol.index()]
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            trail: self.trail.len(),
            clauses: self.clauses.len(),
            given: self.given.len(),
            waiting: self.waiting.len(),
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
        self.waiting.truncate(mark.waiting);
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
        let mut open = vec![(expr, positive)];
        while let Some((expr, positive)) = open.pop() {
            match self.tree.expr(expr) {
                Expr::Not(inner) => open.push((inner, !positive)),
                Expr::And(..) if positive => {
                    open.extend(self.tree.conjuncts(expr).into_iter().map(|term| (term, true)));
                }
                Expr::Or(..) if !positive => {
                    open.extend(self.tree.disjuncts(expr).into_iter().map(|term| (term, false)));
                }
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

    fn take_atom(&mut self, atom: Atom, positive: bool, open: &mut Vec<Literal>) {
        match atom {
            Atom::Tri(tri) => self.consistent &= tri != if positive { Tri::N } else { Tri::Y },
            Atom::Text(_) => self.consistent &= !positive,
            Atom::Symbol(symbol) => {
                self.restrict(symbol, if positive { M | Y } else { N | M });
                if positive && self.forced.contains(&symbol) && !self.needed.contains(&symbol) {
                    self.needed.push(symbol);
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
        while let Some(id) = self.noted.pop() {
            self.is_noted[id.index()] = false;
        }
        is_enough(self)
    }

    /// What is off because a symbol is: it is not selected and, without a prompt, its first default
    /// is not `y`.
    fn follow_off(&mut self, id: SymbolId) {
        let symbol = self.tree.get(id);
        if symbol.nodes.is_empty() || self.elsewhere.defines(&symbol.name) || symbol.choice.is_some() {
            return;
        }
        self.take(symbol.selected_by, false);
        // The user switched it off, or its first default is not `y`. In other trees of the project
        // a symbol that is always `y` here may not exist.
        let first = symbol.defaults.first().filter(|_| symbol.env.is_none() && self.trust == Trust::Dependencies);
        if let Some(default) = first {
            let mut ways: Ways = smallvec![smallvec![(default.condition, false)], smallvec![(default.value, false)]];
            let prompts = symbol.nodes.iter().filter_map(|node| self.tree.node(*node).prompt.as_ref());
            ways.extend(prompts.map(|prompt| smallvec![(prompt.condition, true)]));
            self.push_open(ways);
        }
        self.note_derived(id);
    }

    /// Remembers to look at the symbols whose defaults mention one that has become known.
    fn note_derived(&mut self, id: SymbolId) {
        if self.trust == Trust::Dependencies {
            for other in &self.derived[id.index()] {
                if !std::mem::replace(&mut self.is_noted[other.index()], true) {
                    self.noted.push(*other);
                }
            }
        }
    }

    /// Looks at them, each once, however many of the symbols that it mentions have become known.
    fn derive_noted(&mut self) {
        while let Some(id) = self.noted.pop() {
            self.is_noted[id.index()] = false;
            if self.consistent {
                self.derive(id);
            }
        }
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

    /// What a symbol that is on brings with it.
    fn follow(&mut self, id: SymbolId) {
        let symbol = self.tree.get(id);
        // A definition for another architecture may ask for something else.
        if self.elsewhere.defines(&symbol.name) {
            return;
        }
        if !self.forced.contains(&id)
            && let Some(dependency) = self.dependency_of(id)
        {
            self.take(dependency, true);
        }
        self.waiting.extend((0..symbol.selects.len()).map(|index| (id, index)));
        // Of a choice of bools one is on.
        if let Some(choice) = symbol.choice.map(|choice| self.tree.choice(choice))
            && choice.kind == SymbolType::Bool
        {
            choice.members.iter().filter(|member| **member != id).for_each(|member| self.restrict(*member, N));
        }
        self.note_derived(id);
        if symbol.choice.is_none() && symbol.env.is_none() {
            self.take_causes(symbol);
        }
    }

    /// What holds because a symbol is on, as far as that is to be trusted.
    fn dependency_of(&self, id: SymbolId) -> Option<ExprId> {
        let symbol = self.tree.get(id);
        let free = symbol.selectors.is_empty() && !self.elsewhere.sets(&symbol.name);
        // A dependency that is constantly `n` is what a macro found on this machine.
        let known = symbol.direct_dependency != ExprId::NO && !self.elsewhere.defines(&symbol.name);
        // The C tools leave a definition that depends on nothing out of the joined dependency, but
        // it is one that needs nothing.
        let known = known && symbol.nodes.iter().all(|node| self.tree.node(*node).depends != ExprId::YES);
        ((free || self.trust == Trust::Dependencies) && known).then_some(symbol.direct_dependency)
    }

    /// Follows the selects whose conditions have come to hold; whether anything became known.
    fn follow_selects(&mut self) -> bool {
        let before = self.trail.len();
        for at in 0..self.waiting.len() {
            let (by, index) = self.waiting[at];
            let selection = &self.tree.get(by).selects[index];
            let is_open = self.domain(selection.target) & N != 0 && !self.is_held_back(selection.condition);
            if is_open && self.implied(selection.condition, true) {
                self.forced.push(selection.target);
                self.restrict(selection.target, M | Y);
            }
        }
        self.trail.len() > before
    }

    /// A symbol is on only because something made it so: the user, a default, or another symbol.
    fn take_causes(&mut self, symbol: &Symbol) {
        if self.elsewhere.sets(&symbol.name) {
            return;
        }
        let by_others = [symbol.selected_by, symbol.implied_by].into_iter().filter(|expr| *expr != ExprId::NO);
        // Of what many select nothing follows.
        if by_others.clone().any(|expr| self.has_many_terms(expr)) {
            return;
        }
        let by_others = by_others.flat_map(|expr| self.tree.disjuncts(expr));
        let mut causes: Ways = by_others.map(|expr| smallvec![(expr, true)]).collect();
        // A constant `n` is from a macro on this machine, or a switch to edit: it may change.
        let written = |expr: ExprId| if expr == ExprId::NO { ExprId::YES } else { expr };
        for default in &symbol.defaults {
            causes.push(smallvec![(written(default.condition), true), (written(default.value), true)]);
            if causes.len() > MAX_ALTERNATIVES {
                return;
            }
            // Behind a default that always applies there is none.
            if !self.is_held_back(default.condition) && self.implied(default.condition, true) {
                break;
            }
        }
        let prompts = symbol.nodes.iter().filter_map(|node| self.tree.node(*node).prompt.as_ref());
        causes.extend(prompts.map(|prompt| smallvec![(written(prompt.condition), true)]));
        self.push_open(causes);
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
