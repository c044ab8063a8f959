//! What follows from a symbol that is on, and from one that is off.

use smallvec::smallvec;

use super::{Facts, MAX_ALTERNATIVES, N, Trust, Ways};
use crate::expr::ExprId;
use crate::tree::SymbolId;
use crate::value::SymbolType;

impl Facts<'_> {
    /// What is off because a symbol is: it is not selected and, without a prompt, its first default
    /// is not `y`.
    pub(super) fn follow_off(&mut self, id: SymbolId) {
        if self.ends[id.index()] {
            return;
        }
        let symbol = self.tree.get(id);
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
        self.note_derived(id, false);
    }

    /// What a symbol that is on brings with it.
    pub(super) fn follow(&mut self, id: SymbolId) {
        let symbol = self.tree.get(id);
        // A definition for another architecture may ask for something else.
        if self.defined[id.index()] {
            return;
        }
        if !self.forced.has(id)
            && let Some(dependency) = self.dependency_of(id)
        {
            self.take(dependency, true);
        }
        let domains = &self.domains;
        self.waiting.push_all(id, |target| domains[target.index()] & N == 0);
        // Of a choice of bools one is on.
        if let Some(choice) = symbol.choice.map(|choice| self.tree.choice(choice))
            && choice.kind == SymbolType::Bool
        {
            choice.members.iter().filter(|member| **member != id).for_each(|member| self.restrict(*member, N));
        }
        self.note_derived(id, true);
        if symbol.choice.is_none() && symbol.env.is_none() {
            self.take_causes(id);
        }
    }

    /// What holds because a symbol is on, as far as that is to be trusted.
    pub(super) fn dependency_of(&self, id: SymbolId) -> Option<ExprId> {
        let symbol = self.tree.get(id);
        let free = symbol.selectors.is_empty() && !self.set[id.index()];
        // A dependency that is constantly `n` is what a macro found on this machine.
        let known = symbol.direct_dependency != ExprId::NO && !self.defined[id.index()];
        // The C tools leave a definition that depends on nothing out of the joined dependency, but
        // it is one that needs nothing.
        let known = known && symbol.nodes.iter().all(|node| self.tree.node(*node).depends != ExprId::YES);
        ((free || self.trust == Trust::Dependencies) && known).then_some(symbol.direct_dependency)
    }

    /// A symbol is on only because something made it so: the user, a default, or another symbol.
    pub(super) fn take_causes(&mut self, id: SymbolId) {
        let symbol = self.tree.get(id);
        if self.set[id.index()] || self.is_common[id.index()] {
            return;
        }
        let by_others = [symbol.selected_by, symbol.implied_by].into_iter().filter(|expr| *expr != ExprId::NO);
        // What is certain teaches nothing.
        if by_others.clone().any(|expr| self.implies_term(expr)) {
            return;
        }
        // A constant `n` is from a macro on this machine, or a switch to edit: it may change.
        let written = |expr: ExprId| if expr == ExprId::NO { ExprId::YES } else { expr };
        let prompts = symbol.nodes.iter().filter_map(|node| self.tree.node(*node).prompt.as_ref());
        let prompts = prompts.map(|prompt| written(prompt.condition));
        if prompts.clone().any(|condition| self.implied(condition, true)) {
            return;
        }
        let mut causes = Ways::new();
        for expr in by_others {
            causes.extend(self.tree.disjuncts(expr).into_iter().map(|term| smallvec![(term, true)]));
        }
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
        causes.extend(prompts.map(|condition| smallvec![(condition, true)]));
        self.push_open(causes);
    }
}
