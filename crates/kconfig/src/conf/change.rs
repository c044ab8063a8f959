//! What an answer at the prompt changes, and which answers are taken.

use super::session::Session;
use crate::dialect::Rule;
use crate::eval::{UserSymbol, UserValue, number};
use crate::tree::{ChoiceId, SymbolId};
use crate::value::{SymbolType, Tri};

impl Session<'_, '_> {
    /// Whether a bool or tristate takes a value now.
    pub(super) fn takes(&self, symbol: SymbolId, value: Tri) -> bool {
        let definition = self.tree.get(symbol);
        let evaluator = self.config.evaluator();
        let answer = evaluator.answer(symbol);
        let is_member = definition.choice.is_some_and(|choice| self.tree.has_mode(choice)) && answer.visible == Tri::Y;
        let is_tristate = definition.kind == SymbolType::Tristate && evaluator.modules() != Tri::N && !is_member;
        if !definition.kind.is_logical() || value == Tri::M && !is_tristate || answer.visible <= answer.forced {
            return false;
        }
        if is_member { value == Tri::Y } else { (answer.forced..=answer.visible).contains(&value) }
    }

    /// Sets a bool or tristate; false when it does not take the value.
    pub(super) fn set_tri(&mut self, symbol: SymbolId, value: Tri) -> bool {
        let old = self.config.tri(symbol);
        let strict = !self.tree.dialect().has(Rule::ChoiceModes);
        if (strict || old != value) && !self.takes(symbol, value) {
            return false;
        }
        let choice = self.tree.get(symbol).choice.filter(|choice| self.tree.has_mode(*choice));
        if let Some(choice) = choice.filter(|_| value == Tri::Y) {
            self.select(choice, symbol);
        }
        self.config.user.symbols[symbol.index()] = UserSymbol::new(UserValue::Tri(value));
        if old != value {
            self.recompute();
        }
        true
    }

    /// Selecting one member decides about all.
    fn select(&mut self, choice: ChoiceId, member: SymbolId) {
        let user = &mut self.config.user.choices[choice.index()];
        (user.selection, user.counts, user.contradictory) = (Some(member), true, false);
        self.config.answers.reopened.borrow_mut().retain(|reopened| *reopened != choice);
        for member in &self.tree.choice(choice).members {
            if self.config.visible(*member) != Tri::N {
                let user = &mut self.config.user.symbols[member.index()];
                user.value.get_or_insert(UserValue::Tri(Tri::N));
                user.counts = true;
            }
        }
    }

    /// Selects a member of a choice without a mode: all members that can be seen have a value from
    /// then on.
    pub(super) fn choose(&mut self, choice: ChoiceId, selected: SymbolId) {
        let mut differs = false;
        for member in &self.tree.choice(choice).members {
            let member = *member;
            if self.config.visible(member) == Tri::N {
                continue;
            }
            let value = if member == selected { Tri::Y } else { Tri::N };
            differs |= self.config.tri(member) != value;
            self.config.user.symbols[member.index()] = UserSymbol::new(UserValue::Tri(value));
            self.config.prefer(choice, member);
        }
        if differs {
            self.recompute();
        }
    }

    /// Whether a choice takes a mode now.
    pub(super) fn takes_mode(&self, choice: ChoiceId, value: Tri) -> bool {
        let is_tristate =
            self.tree.choice(choice).kind == SymbolType::Tristate && self.config.evaluator().modules() != Tri::N;
        let (visible, forced) = (self.config.choice_visible(choice), self.forced_mode(choice));
        (value != Tri::M || is_tristate) && visible > forced && (forced..=visible).contains(&value)
    }

    /// The mode that a choice has at least.
    pub(super) fn forced_mode(&self, choice: ChoiceId) -> Tri {
        let definition = self.tree.choice(choice);
        if definition.optional {
            return Tri::N;
        }
        self.config.evaluator().clamp(self.config.choice_visible(choice).min(Tri::M), definition.kind)
    }

    /// Sets the mode of a choice; false when it does not take it.
    pub(super) fn set_mode(&mut self, choice: ChoiceId, value: Tri) -> bool {
        let old = self.config.mode(choice);
        if old != value && !self.takes_mode(choice, value) {
            return false;
        }
        let user = &mut self.config.user.choices[choice.index()];
        (user.mode, user.counts, user.contradictory) = (value, true, false);
        self.config.answers.reopened.borrow_mut().retain(|reopened| *reopened != choice);
        if old != value {
            self.recompute();
        }
        true
    }

    /// Whether the user said something about a choice.
    pub(super) fn has_mode_value(&self, choice: ChoiceId) -> bool {
        let user = &self.config.user.choices[choice.index()];
        user.counts && !user.contradictory && !self.config.answers.reopened.borrow().contains(&choice)
    }

    pub(super) fn is_text_within_range(&self, symbol: SymbolId, kind: SymbolType, text: &str) -> bool {
        if kind == SymbolType::String {
            return true;
        }
        if !kind.accepts(text) {
            return false;
        }
        let Some((low, high)) = self.config.range(symbol) else { return true };
        // As C's `strtoll`, which stops at what 64 bits hold.
        (low..=high).contains(&number::parse_prefix(text, number::base_of(kind)))
    }

    /// Sets an int, hex or string; false when the text is no value of it or out of its range.
    pub(super) fn set_text(&mut self, symbol: SymbolId, text: &str) -> bool {
        let kind = self.tree.get(symbol).kind;
        if !self.is_text_within_range(symbol, kind, text) {
            return false;
        }
        let is_bare_hex = kind == SymbolType::Hex && !text.starts_with("0x") && !text.starts_with("0X");
        let value = if is_bare_hex { format!("0x{text}") } else { text.to_owned() };
        let user = &mut self.config.user.symbols[symbol.index()];
        let same = user.value.as_ref().is_some_and(|old| old.as_str() == text);
        *user = UserSymbol::new(UserValue::Text(value.into()));
        if is_bare_hex || !same {
            self.recompute();
        }
        true
    }
}
