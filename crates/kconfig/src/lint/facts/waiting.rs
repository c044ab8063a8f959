//! Selects of symbols that are on: the conditions of some hold later.
//!
//! Each waits for one symbol without which its condition is not certain, and is looked at again
//! when something becomes known about that one alone: a symbol such as a board brings hundreds of
//! selects, and nearly all of them wait. What is due is looked at in the order in which it came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::compare::Verdict;
use super::{Facts, M, N, Y};
use crate::expr::{Atom, Expr, ExprId};
use crate::tree::{SymbolId, Tree};

/// All selects of a tree, by the symbol that selects.
struct Selects {
    list: Vec<Select>,
    /// Where those of each symbol start, with the end of the last one behind.
    starts: Vec<usize>,
    /// The lines to wait in for what conditions need, one condition after the other.
    gates: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Select {
    target: SymbolId,
    condition: ExprId,
    /// From where to where its gates stand.
    gates: (usize, usize),
    /// Whether the condition needs more than its gates.
    needs_more: bool,
}

/// A select of a symbol that is on.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    /// Its number.
    select: usize,
    place: Place,
}

/// Where one is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Among those to look at.
    Due,
    /// Among those of this line, at this position.
    Behind(usize, usize),
    /// Among those whose target is on.
    Done,
}

/// How far the selects had come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    waiters: usize,
    done: usize,
}

/// All of them.
pub(super) struct Waiting {
    selects: Selects,
    waiters: Vec<Waiter>,
    /// Those that wait, two lines for each symbol: in the first until it is on, in the second until
    /// anything else is known about it.
    behind: Vec<Vec<usize>>,
    /// Those to look at again.
    due: BinaryHeap<Reverse<usize>>,
    /// From here on they were never looked at.
    unseen: usize,
    done: Vec<usize>,
}

/// Why a condition is not certain to hold.
enum Obstacle {
    /// As long as no more is known about a symbol: the number of its line.
    Symbol(usize),
    /// What no single symbol decides.
    Other,
}

impl Selects {
    fn new(tree: &Tree) -> Self {
        let mut selects = Self { list: Vec::new(), starts: vec![0], gates: Vec::new() };
        for symbol in &tree.symbols {
            for selection in &symbol.selects {
                let start = selects.gates.len();
                let needs_more = selects.open_gates(tree, selection.condition);
                selects.list.push(Select {
                    target: selection.target,
                    condition: selection.condition,
                    gates: (start, selects.gates.len()),
                    needs_more,
                });
            }
            selects.starts.push(selects.list.len());
        }
        selects
    }

    /// Adds the gates of a condition: symbols that have to be on, or off; whether there is more to
    /// it.
    fn open_gates(&mut self, tree: &Tree, condition: ExprId) -> bool {
        let mut needs_more = false;
        let mut open = vec![(condition, true)];
        while let Some((expr, positive)) = open.pop() {
            match tree.expr(expr) {
                Expr::Not(inner) => open.push((inner, !positive)),
                Expr::And(left, right) if positive => open.extend([(left, true), (right, true)]),
                Expr::Or(left, right) if !positive => open.extend([(left, false), (right, false)]),
                Expr::Atom(Atom::Symbol(symbol)) => self.gates.push(line_of(symbol, positive)),
                _ => needs_more |= expr != ExprId::YES || !positive,
            }
        }
        needs_more
    }
}

/// The line of those that need a symbol to be on, or something else of it.
fn line_of(symbol: SymbolId, on: bool) -> usize {
    2 * symbol.index() + usize::from(!on)
}

impl Waiting {
    pub(super) fn new(tree: &Tree) -> Self {
        Self {
            selects: Selects::new(tree),
            waiters: Vec::new(),
            behind: vec![Vec::new(); 2 * tree.symbols.len()],
            due: BinaryHeap::new(),
            unseen: 0,
            done: Vec::new(),
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { waiters: self.waiters.len(), done: self.done.len() }
    }

    pub(super) fn undo(&mut self, mark: Mark) {
        for at in self.done.split_off(mark.done) {
            self.make_due(at);
        }
        while self.waiters.len() > mark.waiters {
            if let Some(Waiter { place: Place::Behind(line, position), .. }) = self.waiters.pop() {
                self.leave(line, position);
            }
        }
        self.due.retain(|Reverse(at)| *at < mark.waiters);
        self.unseen = self.unseen.min(mark.waiters);
    }

    /// Keeps those alone, in their order, whose target is such.
    pub(super) fn retain(&mut self, is_such: impl Fn(SymbolId) -> bool) {
        let kept: Vec<usize> = self.waiters.iter().map(|waiter| waiter.select).collect();
        self.undo(Mark { waiters: 0, done: 0 });
        for select in kept.into_iter().filter(|select| is_such(self.selects.list[*select].target)) {
            self.waiters.push(Waiter { select, place: Place::Due });
        }
    }

    /// Adds those of a symbol, but for targets that are on already: they stay so for as long as
    /// this symbol.
    pub(super) fn push_all(&mut self, by: SymbolId, is_on: impl Fn(SymbolId) -> bool) {
        for select in self.selects.starts[by.index()]..self.selects.starts[by.index() + 1] {
            if !is_on(self.selects.list[select].target) {
                self.waiters.push(Waiter { select, place: Place::Due });
            }
        }
    }

    /// More is known about a symbol, and whether that is that it is on.
    pub(super) fn wake(&mut self, symbol: SymbolId, is_on: bool) {
        let line = 2 * symbol.index();
        for line in if is_on { line..line + 2 } else { line + 1..line + 2 } {
            while let Some(at) = self.behind[line].pop() {
                self.make_due(at);
            }
        }
    }

    fn make_due(&mut self, at: usize) {
        self.waiters[at].place = Place::Due;
        self.due.push(Reverse(at));
    }

    fn wait(&mut self, at: usize, line: usize) {
        let others = &mut self.behind[line];
        self.waiters[at].place = Place::Behind(line, others.len());
        others.push(at);
    }

    fn finish(&mut self, at: usize) {
        self.waiters[at].place = Place::Done;
        self.done.push(at);
    }

    fn leave(&mut self, line: usize, position: usize) {
        let others = &mut self.behind[line];
        others.swap_remove(position);
        if let Some(moved) = others.get(position) {
            self.waiters[*moved].place = Place::Behind(line, position);
        }
    }
}

impl Facts<'_> {
    /// Follows the selects whose conditions have come to hold; whether anything became known.
    pub(super) fn follow_selects(&mut self) -> bool {
        let before = self.trail.len();
        let mut next = Vec::new();
        let mut reached = 0;
        while let Some(Reverse(at)) = self.waiting.due.pop() {
            // What a later one brings is looked at in the next pass.
            if at < reached {
                next.push(Reverse(at));
                continue;
            }
            reached = at + 1;
            if !self.follow_select(at) {
                next.push(Reverse(at));
            }
        }
        while self.waiting.unseen < self.waiting.waiters.len() {
            let at = self.waiting.unseen;
            self.waiting.unseen += 1;
            if !self.follow_select(at) {
                next.push(Reverse(at));
            }
        }
        self.waiting.due.extend(next);
        self.trail.len() > before
    }

    /// Follows one select, or puts it where it is found again; false when it is to be looked at
    /// each time.
    fn follow_select(&mut self, at: usize) -> bool {
        let Select { target, condition, gates, needs_more } =
            self.waiting.selects.list[self.waiting.waiters[at].select];
        if self.domain(target) & N != 0 {
            let is_shut = |gate: &&usize| self.domains[**gate / 2] & if gate.is_multiple_of(2) { N } else { Y } != 0;
            if let Some(gate) = self.waiting.selects.gates[gates.0..gates.1].iter().find(is_shut) {
                self.waiting.wait(at, *gate);
                return true;
            }
            match if needs_more { self.find_obstacle(condition, true) } else { None } {
                Some(Obstacle::Symbol(line)) => {
                    self.waiting.wait(at, line);
                    return true;
                }
                Some(Obstacle::Other) => return false,
                None => {
                    self.forced.raise(target);
                    self.restrict(target, M | Y);
                }
            }
        }
        self.waiting.finish(at);
        true
    }

    /// What keeps a condition from being certain; a symbol where there is one. Chains are walked in
    /// a loop.
    fn find_obstacle(&self, mut expr: ExprId, positive: bool) -> Option<Obstacle> {
        let mut other = None;
        loop {
            let right = match self.tree.expr(expr) {
                Expr::And(left, right) if positive => {
                    expr = left;
                    right
                }
                Expr::Or(left, right) if !positive => {
                    expr = left;
                    right
                }
                _ => return self.find_obstacle_of_term(expr, positive).or(other),
            };
            match self.find_obstacle(right, positive) {
                Some(Obstacle::Symbol(line)) => return Some(Obstacle::Symbol(line)),
                found => other = other.or(found),
            }
        }
    }

    fn find_obstacle_of_term(&self, term: ExprId, positive: bool) -> Option<Obstacle> {
        let (symbol, set) = match self.tree.expr(term) {
            Expr::Not(inner) => return self.find_obstacle(inner, !positive),
            Expr::Atom(Atom::Symbol(symbol)) => (symbol, if positive { M | Y } else { N | M }),
            Expr::Compare(operator, left, right) => {
                match self.comparison(if positive { operator } else { operator.inverse() }, left, right) {
                    Verdict::Symbol(symbol, set) => (symbol, set),
                    _ => return (!self.implied(term, positive)).then_some(Obstacle::Other),
                }
            }
            _ => return (!self.implied(term, positive)).then_some(Obstacle::Other),
        };
        (self.domain(symbol) & !set != 0).then_some(Obstacle::Symbol(line_of(symbol, set == M | Y)))
    }
}
