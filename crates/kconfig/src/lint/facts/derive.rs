//! Symbols without a prompt that are on because their first default says so.

use super::{Facts, M, N, Trust, Y, has_prompt};
use crate::expr::{Atom, Expr, ExprId};
use crate::tree::{SymbolId, Tree};

/// Which of them to look at when something becomes known.
#[derive(Default)]
pub(super) struct Derived {
    /// For each symbol those whose defaults may apply once it is on.
    by_on: Vec<Vec<SymbolId>>,
    /// The same for one that is off.
    by_off: Vec<Vec<SymbolId>>,
    /// Those that are to be looked at, and which they are.
    noted: Vec<SymbolId>,
    is_noted: Vec<bool>,
}

impl Derived {
    fn new(tree: &Tree, hidden: &[SymbolId]) -> Self {
        let size = tree.symbols.len();
        let mut derived = Self {
            by_on: vec![Vec::new(); size],
            by_off: vec![Vec::new(); size],
            noted: Vec::new(),
            is_noted: vec![false; size],
        };
        for id in hidden {
            let defaults = &tree.get(*id).defaults;
            for (at, default) in defaults.iter().enumerate() {
                derived.depend(tree, *id, default.condition);
                derived.depend(tree, *id, default.value);
                // One that says something else stands in the way until it cannot apply.
                if default.value != ExprId::YES && at + 1 < defaults.len() {
                    derived.depend_on_all(tree, *id, default.condition);
                }
            }
        }
        derived
    }

    /// The symbol is to be looked at when the expression may have become certain.
    fn depend(&mut self, tree: &Tree, id: SymbolId, expr: ExprId) {
        let mut open = vec![(expr, true)];
        while let Some((expr, positive)) = open.pop() {
            match tree.expr(expr) {
                Expr::Not(inner) => open.push((inner, !positive)),
                Expr::And(left, right) if positive => open.extend([(left, true), (right, true)]),
                Expr::Or(left, right) if !positive => open.extend([(left, false), (right, false)]),
                Expr::Atom(Atom::Symbol(symbol)) if positive => push_once(&mut self.by_on[symbol.index()], id),
                Expr::Atom(Atom::Symbol(symbol)) => push_once(&mut self.by_off[symbol.index()], id),
                _ => self.depend_on_all(tree, id, expr),
            }
        }
    }

    fn depend_on_all(&mut self, tree: &Tree, id: SymbolId, expr: ExprId) {
        for symbol in tree.symbols_in(expr) {
            push_once(&mut self.by_on[symbol.index()], id);
            push_once(&mut self.by_off[symbol.index()], id);
        }
    }
}

/// One symbol after another is gone through: what is there already is last.
fn push_once(list: &mut Vec<SymbolId>, id: SymbolId) {
    if list.last() != Some(&id) {
        list.push(id);
    }
}

impl Facts<'_> {
    /// What holds in every configuration: symbols without a prompt whose defaults always apply.
    pub(super) fn derive_constants(&mut self) {
        let tree = self.tree;
        let hidden: Vec<SymbolId> = tree.symbols().map(|(id, _)| id).filter(|id| self.is_derived(*id)).collect();
        self.derived = Derived::new(tree, &hidden);
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
        let domains = &self.domains;
        self.waiting.retain(|target| domains[target.index()] & N != 0);
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
            if !self.implied(default.value, true) && self.possible(default.condition, true) {
                return;
            }
        }
    }

    /// Remembers to look at the symbols whose defaults may apply because one has become known.
    pub(super) fn note_derived(&mut self, id: SymbolId, on: bool) {
        if self.trust == Trust::Dependencies {
            let Derived { by_on, by_off, noted, is_noted } = &mut self.derived;
            for other in &if on { by_on } else { by_off }[id.index()] {
                // What is on already is derived.
                if self.domains[other.index()] & N != 0 && !std::mem::replace(&mut is_noted[other.index()], true) {
                    noted.push(*other);
                }
            }
        }
    }

    /// Looks at them, each once, however many of the symbols that it mentions have become known.
    pub(super) fn derive_noted(&mut self) {
        while let Some(id) = self.derived.noted.pop() {
            self.derived.is_noted[id.index()] = false;
            if self.consistent {
                self.derive(id);
            }
        }
    }

    /// Forgets them.
    pub(super) fn forget_noted(&mut self) {
        while let Some(id) = self.derived.noted.pop() {
            self.derived.is_noted[id.index()] = false;
        }
    }
}
