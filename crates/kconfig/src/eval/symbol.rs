//! The value of one symbol: the user's, or what defaults, implies and selects give.

use super::number::{base_of, parse_prefix};
use super::{Answer, Computed, Evaluator, Reason, UserValue, narrow};
use crate::dialect::Rule;
use crate::expr::{Atom, Expr};
use crate::tree::{NodeId, Symbol, SymbolId};
use crate::value::{SymbolType, Tri};

impl<'a> Evaluator<'a> {
    /// The value of a symbol that is in no choice, had the user said nothing about it: a tree has
    /// no cycles, so nothing that it rests on rests on it.
    pub(crate) fn text_without_user(self, id: SymbolId) -> String {
        let answer = self.compute_from(id, None);
        match answer.value {
            Computed::Tri(tri) => tri.as_str().to_owned(),
            Computed::Text(text) => text.into(),
            Computed::None => String::new(),
        }
    }

    pub(super) fn compute_symbol(self, id: SymbolId) -> Answer {
        let answer = self.compute_from(id, self.user.symbols[id.index()].counted());
        if answer.direct < answer.forced && self.tree.get(id).kind.is_logical() {
            self.answers.unmet.borrow_mut().push(id);
        }
        answer
    }

    fn compute_from(self, id: SymbolId, said: Option<&UserValue>) -> Answer {
        let symbol = self.tree.get(id);
        if symbol.kind == SymbolType::Unknown {
            return Answer::NOTHING;
        }
        let visible = if symbol.transitional { Tri::Y } else { self.visibility(symbol) };
        let mut answer = Answer { visible, written: visible != Tri::N, ..Answer::NOTHING };
        // Members of choices are chosen, never selected or implied.
        if symbol.choice.is_none() && !symbol.transitional {
            self.compute_relations(symbol, &mut answer);
        }
        if symbol.kind.is_logical() {
            self.compute_logical(id, symbol, said, &mut answer);
        } else {
            self.compute_text(id, symbol, said, &mut answer);
        }
        answer.written &= symbol.env.is_none() && !symbol.transitional;
        answer
    }

    /// What others say about a symbol.
    fn compute_relations(self, symbol: &Symbol, answer: &mut Answer) {
        let dialect = self.tree.dialect();
        answer.direct = self.clamp(self.eval(symbol.direct_dependency), symbol.kind);
        answer.forced = self.clamp(self.eval(symbol.selected_by), symbol.kind);
        if answer.direct == Tri::N && dialect.has(Rule::SelectObeysDependencies) {
            answer.forced = Tri::N;
        }
        if answer.direct != Tri::N || dialect.has(Rule::ImplyObeysDependencies) {
            answer.implied = self.clamp(self.eval(symbol.implied_by), symbol.kind);
        }
    }

    /// The highest value of a symbol's prompts.
    pub(crate) fn visibility(self, symbol: &Symbol) -> Tri {
        let mut visible = Tri::N;
        for node in &symbol.nodes {
            visible = visible.max(self.prompt_visibility(*node));
        }
        self.clamp(visible, symbol.kind)
    }

    /// The value of one node's prompt condition.
    pub(crate) fn prompt_visibility(self, node: NodeId) -> Tri {
        let node = self.tree.node(node);
        let Some(prompt) = &node.prompt else { return Tri::N };
        let visible = self.eval(prompt.condition);
        // A tristate member that reaches only `m` is out while its choice is `y`.
        if visible == Tri::M
            && let Some(symbol) = node.symbol
            && self.tree.get(symbol).kind == SymbolType::Tristate
            && let Some(choice) = self.tree.get(symbol).choice
            && self.tree.has_mode(choice)
            && self.mode(choice) == Tri::Y
        {
            return Tri::N;
        }
        visible
    }

    fn compute_logical(self, id: SymbolId, symbol: &Symbol, said: Option<&UserValue>, answer: &mut Answer) {
        if let Some(choice) = symbol.choice
            && (answer.visible == Tri::Y || !self.tree.has_mode(choice))
        {
            let selected = self.choice_answer(choice).selection == Some(id) && answer.visible != Tri::N;
            answer.value = Computed::Tri(if selected { Tri::Y } else { Tri::N });
            answer.reason = Reason::Choice;
            return;
        }
        let user = match said {
            Some(UserValue::Tri(tri)) if answer.visible != Tri::N => Some(*tri),
            _ => None,
        };
        let mut value = if let Some(user) = user {
            answer.reason = Reason::User;
            user.min(answer.visible)
        } else {
            answer.written |= answer.forced != Tri::N;
            self.compute_default(symbol, answer)
        };
        if answer.forced > value {
            answer.reason = Reason::Select;
            value = answer.forced;
        }
        let mut value = self.clamp(value, symbol.kind);
        if value == Tri::M && answer.implied == Tri::Y && !self.tree.dialect().has(Rule::ImplyObeysDependencies) {
            value = Tri::Y;
        }
        if user.is_none() {
            self.adopt(id, symbol, answer.reason, || UserValue::Tri(value));
        }
        answer.value = Computed::Tri(value);
    }

    /// What defaults and implies give a bool or tristate.
    fn compute_default(self, symbol: &Symbol, answer: &mut Answer) -> Tri {
        let mut value = Tri::N;
        if let Some((index, limit)) = self.active_default(symbol) {
            value = self.eval(symbol.defaults[index].value).min(limit);
            answer.written |= value != Tri::N || self.tree.dialect().has(Rule::DefaultsWritten);
            answer.reason = Reason::Default(narrow(index));
        }
        if answer.implied != Tri::N {
            answer.written = true;
            if answer.implied > value {
                answer.reason = Reason::Imply;
            }
            value = value.max(answer.implied);
            if self.tree.dialect().has(Rule::ImplyObeysDependencies) {
                value = value.min(answer.direct);
            }
        }
        value
    }

    /// A symbol whose default is a transitional one takes over what the user said about that.
    fn adopt(self, id: SymbolId, symbol: &Symbol, reason: Reason, value: impl FnOnce() -> UserValue) {
        let Reason::Default(index) = reason else { return };
        if let Expr::Atom(Atom::Symbol(old)) = self.tree.expr(symbol.defaults[index as usize].value)
            && self.tree.get(old).transitional
            && self.user.symbols[old.index()].counts
            && !self.user.symbols[id.index()].counts
        {
            self.answers.adopted.borrow_mut().push((id, value()));
        }
    }

    fn compute_text(self, id: SymbolId, symbol: &Symbol, said: Option<&UserValue>, answer: &mut Answer) {
        let mut value = if self.tree.dialect().has(Rule::NumbersStartAtZero) {
            match symbol.kind {
                SymbolType::Int => "0",
                SymbolType::Hex => "0x0",
                _ => "",
            }
        } else {
            ""
        };
        match said {
            Some(UserValue::Text(text)) if answer.visible != Tri::N => {
                value = text;
                answer.reason = Reason::User;
            }
            _ => {
                if let Some((index, _)) = self.active_default(symbol)
                    && let Expr::Atom(atom) = self.tree.expr(symbol.defaults[index].value)
                {
                    answer.written = true;
                    value = self.default_text(atom);
                    answer.reason = Reason::Default(narrow(index));
                    self.adopt(id, symbol, answer.reason, || UserValue::Text(value.into()));
                }
            }
        }
        let limited = self.limit(symbol, value);
        answer.value = Computed::Text(limited.unwrap_or(value.into()));
    }

    /// The text of a default: as in C, a bool or tristate has none but `n`.
    pub(crate) fn default_text(self, atom: Atom) -> &'a str {
        let text = self.atom_text(atom);
        match atom {
            Atom::Symbol(other) if self.tree.get(other).kind.is_logical() => Tri::N.as_str(),
            _ => text,
        }
    }

    /// The value that a range puts in place of one outside of it: the limit as it is written, or,
    /// in older dialects, its number.
    fn limit(self, symbol: &Symbol, text: &str) -> Option<Box<str>> {
        let (low, high) = self.active_limits(symbol)?;
        let number = parse_prefix(text, base_of(symbol.kind));
        let limit = if number < self.limit_number(symbol, low) {
            low
        } else if number > self.limit_number(symbol, high) {
            high
        } else {
            return None;
        };
        if self.tree.dialect().has(Rule::LimitsAsWritten) {
            return Some(self.atom_text(limit).into());
        }
        let number = self.limit_number(symbol, limit);
        Some(if symbol.kind == SymbolType::Hex { format!("{number:#x}") } else { number.to_string() }.into())
    }

    /// The first default whose condition holds, and how far it holds.
    pub(crate) fn active_default(self, symbol: &Symbol) -> Option<(usize, Tri)> {
        let conditions = symbol.defaults.iter().map(|default| self.eval(default.condition));
        conditions.enumerate().find(|(_, holds)| *holds != Tri::N)
    }

    /// The first range whose condition holds, as numbers.
    pub(crate) fn active_range(self, symbol: &Symbol) -> Option<(i64, i64)> {
        let (low, high) = self.active_limits(symbol)?;
        Some((self.limit_number(symbol, low), self.limit_number(symbol, high)))
    }

    /// The first range whose condition holds.
    pub(crate) fn active_limits(self, symbol: &Symbol) -> Option<(Atom, Atom)> {
        if !symbol.kind.is_numeric() {
            return None;
        }
        let range = symbol.ranges.iter().find(|range| self.eval(range.condition) != Tri::N)?;
        Some((range.low, range.high))
    }

    fn limit_number(self, symbol: &Symbol, atom: Atom) -> i64 {
        let kind = match atom {
            Atom::Symbol(other) if self.tree.get(other).kind.is_numeric() => self.tree.get(other).kind,
            _ => symbol.kind,
        };
        parse_prefix(self.atom_text(atom), base_of(kind))
    }
}
