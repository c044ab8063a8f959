//! What follows from a condition: the values that symbols can still have once it holds.
//!
//! Proves contradictions and consequences, each only as far as it is certain; what it cannot decide it calls possible and not
//! implied. Reports nothing.

use crate::expr::{Atom, Compare, Expr, ExprId};
use crate::tree::{Symbol, SymbolId, Tree};
use crate::value::{SymbolType, Tri};

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
/// At least one of these holds; each is a conjunction.
type Clause = Vec<Vec<Literal>>;
/// Values that a person or a default gives.
pub(super) type Assignment = Vec<(SymbolId, Set)>;

/// Whether a symbol that is on proves that its dependencies hold, although a `select` may break them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// They may be broken.
    Nothing,
    /// They hold: whoever broke them is reported itself.
    Dependencies,
}

/// How far the assumptions had come; see [`Facts::undo`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    trail: usize,
    clauses: usize,
    given: usize,
    waiting: usize,
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
    /// Comparisons and choices that are assumed and say nothing about a single symbol.
    given: Vec<Literal>,
    /// Selects of symbols that are on, by symbol and position: their conditions may come to hold.
    waiting: Vec<(SymbolId, usize)>,
    /// Symbols that have just become known to be on.
    fresh: Vec<SymbolId>,
    consequences: usize,
    consistent: bool,
}

impl<'t> Facts<'t> {
    pub(super) fn new(tree: &'t Tree, elsewhere: &'t Elsewhere, trust: Trust) -> Self {
        let domains = (0..tree.symbols.len()).map(|index| domain_of(tree, SymbolId::new(index), elsewhere)).collect();
        Self {
            tree,
            elsewhere,
            trust,
            domains,
            trail: Vec::new(),
            clauses: Vec::new(),
            given: Vec::new(),
            waiting: Vec::new(),
            fresh: Vec::new(),
            consequences: 0,
            consistent: true,
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
            consistent: self.consistent,
        }
    }

    pub(super) fn undo(&mut self, mark: Mark) {
        while self.trail.len() > mark.trail {
            if let Some((symbol, before)) = self.trail.pop() {
                self.domains[symbol.index()] = before;
            }
        }
        self.clauses.truncate(mark.clauses);
        self.given.truncate(mark.given);
        self.waiting.truncate(mark.waiting);
        self.consistent = mark.consistent;
        self.fresh.clear();
        self.consequences = 0;
    }

    /// Assumes that a condition holds; false when it then contradicts what is known.
    pub(super) fn assume(&mut self, condition: ExprId) -> bool {
        self.take(condition, true);
        self.settle();
        self.consistent
    }

    /// Assumes that a symbol is on.
    pub(super) fn assume_on(&mut self, symbol: SymbolId) -> bool {
        self.restrict(symbol, M | Y);
        self.settle();
        self.consistent
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
    }

    /// Takes an expression apart; disjunctions wait as clauses.
    fn take(&mut self, expr: ExprId, positive: bool) {
        let mut open = vec![(expr, positive)];
        while let Some((expr, positive)) = open.pop() {
            match self.tree.expr(expr) {
                Expr::Not(inner) => open.push((inner, !positive)),
                Expr::And(..) if positive => open.extend(self.tree.conjuncts(expr).into_iter().map(|term| (term, true))),
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
                    match self.comparison(if positive { operator } else { invert(operator) }, left, right) {
                        Verdict::Symbol(symbol, set) => self.restrict(symbol, set),
                        Verdict::Never => self.consistent = false,
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
            Atom::Symbol(symbol) => self.restrict(symbol, if positive { M | Y } else { N | M }),
            // A choice is on only where it is visible; one with several definitions is visible in any of them.
            Atom::Choice(choice) => {
                if let ([node], true) = (&*self.tree.choice(choice).nodes, positive)
                    && let Some(prompt) = &self.tree.node(*node).prompt
                {
                    open.push((prompt.condition, true));
                }
            }
        }
    }

    fn add_clause(&mut self, terms: Vec<ExprId>, positive: bool) {
        if terms.len() <= MAX_ALTERNATIVES {
            self.clauses.push(terms.into_iter().map(|term| vec![(term, positive)]).collect());
        } else if !terms.iter().any(|term| self.possible(*term, positive)) {
            self.consistent = false;
        }
    }

    /// Draws conclusions until there are no more.
    fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            while self.consistent
                && let Some(symbol) = self.fresh.pop()
            {
                self.consequences += 1;
                if self.consequences <= MAX_CONSEQUENCES {
                    self.follow(symbol);
                }
            }
            if !self.consistent || !(self.follow_selects() | self.decide_clauses()) {
                break;
            }
        }
        self.fresh.clear();
    }

    /// Takes what is left of clauses with one way open; whether anything became known.
    fn decide_clauses(&mut self) -> bool {
        let before = self.trail.len();
        for index in 0..self.clauses.len() {
            let open = |facts: &Self, alternative: &[Literal]| {
                alternative.iter().all(|(expr, positive)| facts.possible(*expr, *positive))
            };
            let mut ways = self.clauses[index].iter().filter(|alternative| open(self, alternative));
            match (ways.next().cloned(), ways.next()) {
                (None, _) => self.consistent = false,
                (Some(only), None) => only.into_iter().for_each(|(expr, positive)| self.take(expr, positive)),
                _ => {}
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
        // A dependency that is constantly `n` is what a macro found on this machine.
        let free = symbol.selectors.is_empty() && !self.elsewhere.sets(&symbol.name);
        if (free || self.trust == Trust::Dependencies) && symbol.direct_dependency != ExprId::NO {
            self.take(symbol.direct_dependency, true);
        }
        self.waiting.extend((0..symbol.selects.len()).map(|index| (id, index)));
        if !has_prompt(self.tree, symbol) && symbol.choice.is_none() && symbol.env.is_none() {
            self.take_causes(symbol);
        }
    }

    /// Follows the selects whose conditions have come to hold; whether anything became known.
    fn follow_selects(&mut self) -> bool {
        let before = self.trail.len();
        for at in 0..self.waiting.len() {
            let (by, index) = self.waiting[at];
            let selection = &self.tree.get(by).selects[index];
            if self.domain(selection.target) & N != 0 && self.implied(selection.condition, true) {
                self.restrict(selection.target, M | Y);
            }
        }
        self.trail.len() > before
    }

    /// A symbol without a prompt is on only because something made it so.
    fn take_causes(&mut self, symbol: &Symbol) {
        if self.elsewhere.sets(&symbol.name) {
            return;
        }
        let by_others = [symbol.selected_by, symbol.implied_by].into_iter().flat_map(|expr| self.tree.disjuncts(expr));
        let mut causes: Clause =
            by_others.filter(|expr| *expr != ExprId::NO).map(|expr| vec![(expr, true)]).collect();
        // A constant `n` is what a macro found on this machine, or a switch for whoever edits the file: not for ever.
        let written = |expr: ExprId| if expr == ExprId::NO { ExprId::YES } else { expr };
        causes.extend(
            symbol.defaults.iter().map(|default| vec![(default.condition, true), (written(default.value), true)]),
        );
        if (1..=MAX_ALTERNATIVES).contains(&causes.len()) {
            self.clauses.push(causes);
        }
    }

    /// Whether a condition may still hold, looking at each symbol alone.
    pub(super) fn possible(&self, expr: ExprId, positive: bool) -> bool {
        match self.tree.expr(expr) {
            Expr::Not(inner) => self.possible(inner, !positive),
            Expr::And(..) if positive => self.tree.conjuncts(expr).iter().all(|term| self.possible(*term, true)),
            Expr::And(..) => self.tree.conjuncts(expr).iter().any(|term| self.possible(*term, false)),
            Expr::Or(..) if positive => self.tree.disjuncts(expr).iter().any(|term| self.possible(*term, true)),
            Expr::Or(..) => self.tree.disjuncts(expr).iter().all(|term| self.possible(*term, false)),
            Expr::Atom(Atom::Tri(tri)) => tri != if positive { Tri::N } else { Tri::Y },
            Expr::Atom(Atom::Text(_)) => !positive,
            Expr::Atom(Atom::Choice(_)) => true,
            Expr::Atom(Atom::Symbol(symbol)) => self.domain(symbol) & if positive { M | Y } else { N | M } != 0,
            Expr::Compare(operator, left, right) => {
                match self.comparison(if positive { operator } else { invert(operator) }, left, right) {
                    Verdict::Symbol(symbol, set) => self.domain(symbol) & set != 0,
                    Verdict::Never => false,
                    Verdict::Maybe => true,
                }
            }
        }
    }

    /// Whether a condition is certain to hold.
    pub(super) fn implied(&self, expr: ExprId, positive: bool) -> bool {
        match self.tree.expr(expr) {
            Expr::Not(inner) => self.implied(inner, !positive),
            Expr::And(..) if positive => self.tree.conjuncts(expr).iter().all(|term| self.implied(*term, true)),
            Expr::Or(..) if !positive => self.tree.disjuncts(expr).iter().all(|term| self.implied(*term, false)),
            Expr::And(..) => self.implied_clause(&self.tree.conjuncts(expr), false),
            Expr::Or(..) => self.implied_clause(&self.tree.disjuncts(expr), true),
            Expr::Atom(Atom::Choice(_)) => self.given.contains(&(expr, positive)),
            // What is not `n` in every case is certain.
            Expr::Atom(Atom::Symbol(symbol)) => self.domain(symbol) & if positive { N } else { Y } == 0,
            Expr::Atom(atom) => atom == Atom::Tri(Tri::M) || (atom == Atom::Tri(Tri::Y)) == positive,
            Expr::Compare(operator, left, right) => {
                match self.comparison(if positive { operator } else { invert(operator) }, left, right) {
                    Verdict::Symbol(symbol, set) => self.domain(symbol) & !set == 0,
                    Verdict::Maybe => self.given.contains(&(expr, positive)),
                    Verdict::Never => false,
                }
            }
        }
    }

    fn implied_clause(&self, terms: &[ExprId], positive: bool) -> bool {
        let holds = |term: &ExprId| self.implied(*term, positive);
        let listed = |alternative: &Vec<Literal>| {
            matches!(&**alternative, [(expr, sign)] if *sign == positive && terms.contains(expr))
        };
        terms.iter().any(holds) || self.clauses.iter().any(|clause| clause.iter().all(listed))
    }

    /// Whether a condition is certain to hold once each open disjunction is looked at case by case.
    pub(super) fn implied_by_cases(&mut self, goal: ExprId) -> bool {
        if self.implied(goal, true) {
            return true;
        }
        (0..self.clauses.len()).any(|index| {
            let cases = self.clauses[index].clone();
            cases.into_iter().all(|case| {
                let mark = self.mark();
                case.into_iter().for_each(|(expr, positive)| self.take(expr, positive));
                self.settle();
                let holds = !self.consistent || self.implied(goal, true);
                self.undo(mark);
                holds
            })
        })
    }

    /// Values under which a condition does not hold though all assumptions do; none when that is not certain.
    pub(super) fn refute(&mut self, goal: ExprId) -> Option<Assignment> {
        let values = self.find_refutation(goal, true)?;
        let mark = self.mark();
        let works = self.assume_values(&values) && self.clauses_have_ways() && !self.possible(goal, true);
        self.undo(mark);
        works.then_some(values)
    }

    /// Whether every clause has a way that leads to no contradiction.
    fn clauses_have_ways(&mut self) -> bool {
        (0..self.clauses.len()).all(|index| {
            let ways = self.clauses[index].clone();
            ways.into_iter().any(|way| {
                let mark = self.mark();
                way.into_iter().for_each(|(expr, positive)| self.take(expr, positive));
                self.settle();
                let works = self.consistent;
                self.undo(mark);
                works
            })
        })
    }

    fn find_refutation(&self, expr: ExprId, positive: bool) -> Option<Assignment> {
        let all = |terms: Vec<ExprId>| {
            terms.into_iter().try_fold(Assignment::new(), |mut values, term| {
                for (symbol, set) in self.find_refutation(term, positive)? {
                    if values.iter().any(|(known, before)| *known == symbol && before & set == 0) {
                        return None;
                    }
                    values.push((symbol, set));
                }
                Some(values)
            })
        };
        let any = |terms: Vec<ExprId>| terms.into_iter().find_map(|term| self.find_refutation(term, positive));
        match self.tree.expr(expr) {
            Expr::Not(inner) => self.find_refutation(inner, !positive),
            Expr::And(..) if positive => any(self.tree.conjuncts(expr)),
            Expr::Or(..) if !positive => any(self.tree.disjuncts(expr)),
            Expr::And(..) => all(self.tree.conjuncts(expr)),
            Expr::Or(..) => all(self.tree.disjuncts(expr)),
            Expr::Atom(Atom::Symbol(symbol)) => self.move_out(symbol, if positive { N } else { Y }),
            Expr::Compare(operator, left, right) => {
                match self.comparison(if positive { operator } else { invert(operator) }, left, right) {
                    Verdict::Symbol(symbol, set) => self.move_out(symbol, ANY & !set),
                    Verdict::Never => Some(Assignment::new()),
                    Verdict::Maybe => None,
                }
            }
            Expr::Atom(Atom::Choice(_)) => None,
            Expr::Atom(_) => (!self.possible(expr, positive)).then(Assignment::new),
        }
    }

    /// A value of the set that the symbol is certain to be able to take.
    fn move_out(&self, id: SymbolId, set: Set) -> Option<Assignment> {
        let domain = self.domain(id);
        if domain & !set == 0 {
            return Some(Assignment::new());
        }
        if domain & set & N != 0 && self.can_be_off(id) {
            return Some(vec![(id, N)]);
        }
        (domain & set & Y != 0 && self.can_be_on(id)).then(|| vec![(id, Y)])
    }

    fn can_be_off(&self, id: SymbolId) -> bool {
        let symbol = self.tree.get(id);
        if let Some(choice) = symbol.choice {
            return self.tree.choice(choice).members.len() > 1;
        }
        if symbol.nodes.is_empty() {
            return false;
        }
        let prompts = symbol.nodes.iter().filter_map(|node| self.tree.node(*node).prompt.as_ref());
        if prompts.clone().next().is_some() {
            return prompts.clone().any(|prompt| self.possible(prompt.condition, true));
        }
        let forced = |expr: ExprId| self.possible(expr, true);
        !symbol.defaults.iter().any(|default| forced(default.condition) && forced(default.value))
            && !self.implied(symbol.selected_by, true)
            && !self.implied(symbol.implied_by, true)
    }

    fn can_be_on(&self, id: SymbolId) -> bool {
        let nodes = self.tree.get(id).nodes.iter();
        nodes.filter_map(|node| self.tree.node(*node).prompt.as_ref()).any(|prompt| self.implied(prompt.condition, true))
    }

    /// What a comparison says.
    fn comparison(&self, operator: Compare, left: Atom, right: Atom) -> Verdict {
        let (operator, left, right) = match (left, right) {
            (Atom::Tri(_) | Atom::Text(_), Atom::Symbol(_)) => (swap(operator), right, left),
            _ => (operator, left, right),
        };
        match (left, right) {
            (Atom::Symbol(symbol), Atom::Tri(tri)) => self.compare_symbol(operator, symbol, tri),
            (Atom::Symbol(symbol), Atom::Text(text))
                if self.tree.get(symbol).kind.is_logical() && self.tree.symbol_is_defined(symbol) =>
            {
                // A bool is never anything but `n`, `m` and `y`; order is left alone.
                match (operator, Tri::parse(self.tree.text(text))) {
                    (Compare::Equal, None) => Verdict::Never,
                    _ => Verdict::Maybe,
                }
            }
            _ => Verdict::Maybe,
        }
    }

    fn compare_symbol(&self, operator: Compare, symbol: SymbolId, tri: Tri) -> Verdict {
        let definition = self.tree.get(symbol);
        if !definition.kind.is_logical() || definition.nodes.is_empty() {
            // A name that nobody defines stands for itself as text.
            let nowhere = definition.nodes.is_empty() && self.domain(symbol) == N;
            return if nowhere && operator == Compare::Equal { Verdict::Never } else { Verdict::Maybe };
        }
        let bit = match tri {
            Tri::N => N,
            Tri::M => M,
            Tri::Y => Y,
        };
        Verdict::Symbol(
            symbol,
            match operator {
                Compare::Equal => bit,
                Compare::Unequal => ANY & !bit,
                Compare::Less => bit - 1,
                Compare::LessEqual => (bit - 1) | bit,
                Compare::Greater => ANY & !((bit - 1) | bit),
                Compare::GreaterEqual => ANY & !(bit - 1),
            },
        )
    }
}

/// What a comparison demands.
enum Verdict {
    /// That this symbol has one of these values.
    Symbol(SymbolId, Set),
    /// What is impossible.
    Never,
    /// What nobody knows.
    Maybe,
}

impl Tree {
    fn symbol_is_defined(&self, symbol: SymbolId) -> bool {
        !self.get(symbol).nodes.is_empty()
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

const fn invert(operator: Compare) -> Compare {
    match operator {
        Compare::Equal => Compare::Unequal,
        Compare::Unequal => Compare::Equal,
        Compare::Less => Compare::GreaterEqual,
        Compare::LessEqual => Compare::Greater,
        Compare::Greater => Compare::LessEqual,
        Compare::GreaterEqual => Compare::Less,
    }
}

/// The same comparison with its sides exchanged.
const fn swap(operator: Compare) -> Compare {
    match operator {
        Compare::Less => Compare::Greater,
        Compare::LessEqual => Compare::GreaterEqual,
        Compare::Greater => Compare::Less,
        Compare::GreaterEqual => Compare::LessEqual,
        same => same,
    }
}
