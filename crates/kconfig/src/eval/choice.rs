//! Which member of a choice is selected: by modes as up to Linux 6.10, by all answers about the
//! members since.

use super::{ChoiceAnswer, Evaluator, UserValue};
use crate::dialect::Rule;
use crate::expr::{Atom, Expr};
use crate::tree::{Choice, ChoiceId, SymbolId};
use crate::value::Tri;

impl Evaluator<'_> {
    pub(super) fn compute_choice(self, id: ChoiceId) -> ChoiceAnswer {
        if self.tree.has_mode(id) { self.compute_by_mode(id) } else { self.compute_by_answers(id) }
    }

    /// Visibility and mode of a choice, before its members were looked at.
    fn first_mode(self, id: ChoiceId, choice: &Choice) -> (Tri, Tri) {
        let mut visible = Tri::N;
        for node in &choice.nodes {
            visible = visible.max(self.prompt_visibility(*node));
        }
        let visible = self.clamp(visible, choice.kind);
        let user = &self.user.choices[id.index()];
        let user = if user.counts && !user.contradictory { user.mode.min(visible) } else { Tri::N };
        // A visible choice that is not optional has to be made.
        let forced = if choice.optional { Tri::N } else { visible.min(Tri::M) };
        let mode = self.clamp(user.max(self.clamp(forced, choice.kind)), choice.kind);
        *self.answers.modes[id.index()].get_or_init(|| (visible, mode))
    }

    fn compute_by_mode(self, id: ChoiceId) -> ChoiceAnswer {
        let choice = self.tree.choice(id);
        if !choice.kind.is_logical() {
            // As in C: what is neither bool nor tristate is `n` as a condition, that of the members
            // too.
            self.answers.modes[id.index()].get_or_init(|| (Tri::N, Tri::N));
            return ChoiceAnswer::NOTHING;
        }
        let (visible, mode) = self.first_mode(id, choice);
        if mode != Tri::Y {
            return ChoiceAnswer { visible, mode, selection: None };
        }
        let mut seen = Vec::with_capacity(choice.members.len());
        for member in &choice.members {
            let visible = self.visibility(self.tree.get(*member));
            if visible != Tri::N {
                seen.push(*member);
            }
            self.answers.note_stranger(*member, visible);
        }
        // As in C: an undecided member makes the whole choice new.
        let user = &self.user.choices[id.index()];
        let all_decide = !self.tree.dialect().has(Rule::OneMemberDecides);
        if user.counts && all_decide && seen.iter().any(|member| !self.user.symbols[member.index()].counts) {
            self.answers.reopened.borrow_mut().push(id);
        }
        let selection =
            user.selection.filter(|member| seen.contains(member)).or_else(|| self.default_member(choice, &seen));
        ChoiceAnswer { visible, mode: if selection.is_some() { mode } else { Tri::N }, selection }
    }

    /// The first default that can be chosen, else the first member that can.
    fn default_member(self, choice: &Choice, seen: &[SymbolId]) -> Option<SymbolId> {
        for default in &choice.defaults {
            if self.eval(default.condition) != Tri::N
                && let Expr::Atom(Atom::Symbol(member)) = self.tree.expr(default.value)
                && (seen.contains(&member) || self.is_visible_stranger(member))
            {
                return Some(member);
            }
        }
        choice.members.iter().find(|member| seen.contains(member)).copied()
    }

    /// Whether a default that is no member of its choice counts: as in C where it was seen to be
    /// visible, and no member is selected then.
    fn is_visible_stranger(self, symbol: SymbolId) -> bool {
        let stale = self.answers.stale.borrow();
        let Some((_, before)) = stale.iter().find(|(stranger, _)| *stranger == symbol) else { return false };
        self.answers.visible_so_far(symbol).unwrap_or(*before) != Tri::N
    }

    /// What a choice selects when the user says nothing; `n` counts only for who says so.
    pub(crate) fn choice_default(self, id: ChoiceId) -> Option<SymbolId> {
        let choice = self.tree.choice(id);
        let is_seen = |member: &SymbolId| self.visibility(self.tree.get(*member)) != Tri::N;
        let seen: Vec<SymbolId> = choice.members.iter().filter(|member| is_seen(member)).copied().collect();
        self.default_member(choice, &seen)
    }

    /// The most important `y`; else the default unless the user said `n` to it; else the first
    /// member about which the user said nothing; else the least important `n`.
    fn compute_by_answers(self, id: ChoiceId) -> ChoiceAnswer {
        let choice = self.tree.choice(id);
        let mut visible = Tri::N;
        for node in &choice.nodes {
            visible = visible.max(self.prompt_visibility(*node));
        }
        let visible = self.clamp(visible, choice.kind);
        let order: &[SymbolId] = match &self.user.choices[id.index()].order {
            order if order.is_empty() => &choice.members,
            order => order,
        };
        let mut seen = Vec::with_capacity(order.len());
        let mut selection = None;
        for member in order {
            if self.visibility(self.tree.get(*member)) == Tri::N {
                continue;
            }
            seen.push(*member);
            if self.said(*member) == Some(Tri::Y) {
                selection = Some(*member);
                break;
            }
        }
        let selection = selection
            .or_else(|| self.default_member(choice, &seen).filter(|member| self.said(*member) != Some(Tri::N)))
            .or_else(|| {
                let unsaid = |member: &&SymbolId| seen.contains(member) && self.said(**member).is_none();
                choice.members.iter().find(unsaid).copied()
            })
            .or_else(|| seen.last().copied());
        let mode = if visible != Tri::N && selection.is_some() { Tri::Y } else { Tri::N };
        ChoiceAnswer { visible, mode, selection }
    }

    fn said(self, member: SymbolId) -> Option<Tri> {
        match self.user.symbols[member.index()].counted() {
            Some(UserValue::Tri(tri)) => Some(*tri),
            _ => None,
        }
    }
}
