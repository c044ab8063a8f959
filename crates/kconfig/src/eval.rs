//! Evaluation: what follows from the user's values, computed once and remembered.
//!
//! Follows the C tools' `sym_calc_value`. What a value needs is computed before it with a stack of its own, so that long
//! chains of dependencies cost no recursion. Decides nothing about what a person may set: that is `config`.

use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;

use crate::expr::{Atom, Compare, Expr, ExprId};
use crate::tree::{Choice, ChoiceId, NodeId, Symbol, SymbolId, Tree};
use crate::value::{SymbolType, Tri};

/// What the user said about one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UserValue {
    Tri(Tri),
    Text(String),
}

impl UserValue {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Tri(tri) => tri.as_str(),
            Self::Text(text) => text,
        }
    }
}

/// What the user said about one choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserChoice {
    pub selection: Option<SymbolId>,
    pub mode: Option<Tri>,
    /// One member was said to be `y` and a later one `m`: as in C the mode then counts as not set.
    pub contradictory: bool,
}

/// Everything that the user said.
#[derive(Clone, Debug)]
pub(crate) struct UserValues {
    pub symbols: Vec<Option<UserValue>>,
    pub choices: Vec<UserChoice>,
}

/// What decided a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    User,
    Default(usize),
    Select,
    Imply,
    Choice,
    Unset,
}

/// A computed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Computed {
    Tri(Tri),
    Text(Box<str>),
    /// Nothing gave a value; or the symbol has no type and stands for its name.
    None,
}

/// All that is known about one symbol.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub value: Computed,
    pub visible: Tri,
    /// The value of `depends on`.
    pub direct: Tri,
    /// The value that selects force.
    pub forced: Tri,
    pub written: bool,
    pub reason: Reason,
}

impl Answer {
    const NOTHING: Self = Self {
        value: Computed::None,
        visible: Tri::N,
        direct: Tri::N,
        forced: Tri::N,
        written: false,
        reason: Reason::Unset,
    };
}

/// All that is known about one choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChoiceAnswer {
    pub visible: Tri,
    pub mode: Tri,
    pub selection: Option<SymbolId>,
}

/// Answers so far; thrown away when a user value changes.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    symbols: Vec<OnceCell<Answer>>,
    choices: Vec<OnceCell<ChoiceAnswer>>,
    /// The modes of choices before their members were looked at.
    modes: Vec<OnceCell<(Tri, Tri)>>,
    /// Vertices that are being computed.
    busy: Vec<Cell<bool>>,
    nothing: Answer,
}

impl Answers {
    pub(crate) fn new(tree: &Tree) -> Self {
        let (symbols, choices) = (tree.symbols.len(), tree.choices.len());
        Self {
            symbols: vec![OnceCell::new(); symbols],
            choices: vec![OnceCell::new(); choices],
            modes: vec![OnceCell::new(); choices],
            busy: vec![Cell::new(false); symbols + choices],
            nothing: Answer::NOTHING,
        }
    }

    pub(crate) fn forget(&mut self) {
        self.symbols.fill(OnceCell::new());
        self.choices.fill(OnceCell::new());
        self.modes.fill(OnceCell::new());
    }
}

/// A look at a tree with the user's values.
#[derive(Clone, Copy)]
pub(crate) struct Evaluator<'a> {
    pub tree: &'a Tree,
    pub user: &'a UserValues,
    pub answers: &'a Answers,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn answer(self, id: SymbolId) -> &'a Answer {
        self.ensure(id.index());
        // Still unknown only where something that is no dependency of the cycle check leads back: read as `n`.
        self.answers.symbols[id.index()].get().unwrap_or(&self.answers.nothing)
    }

    pub(crate) fn choice_answer(self, id: ChoiceId) -> ChoiceAnswer {
        self.ensure(self.tree.symbols.len() + id.index());
        let nothing = ChoiceAnswer { visible: Tri::N, mode: Tri::N, selection: None };
        self.answers.choices[id.index()].get().copied().unwrap_or(nothing)
    }

    pub(crate) fn tri(self, id: SymbolId) -> Tri {
        match self.answer(id).value {
            Computed::Tri(tri) => tri,
            Computed::Text(_) | Computed::None => Tri::N,
        }
    }

    /// The value as text; an untyped symbol is its own name.
    pub(crate) fn text(self, id: SymbolId) -> &'a str {
        match &self.answer(id).value {
            Computed::Tri(tri) => tri.as_str(),
            Computed::Text(text) => text,
            Computed::None if self.tree.get(id).kind == SymbolType::Unknown => &self.tree.get(id).name,
            Computed::None => "",
        }
    }

    /// Computes a vertex after all that it needs.
    fn ensure(self, vertex: usize) {
        if self.is_settled(vertex) {
            return;
        }
        let mut stack = vec![(vertex, 0)];
        self.answers.busy[vertex].set(true);
        while let Some((vertex, next)) = stack.last_mut() {
            let vertex = *vertex;
            let needed = self.tree.dependencies.of(vertex);
            let open = needed[*next..].iter().position(|target| !self.is_settled(*target as usize));
            if let Some(offset) = open {
                let target = needed[*next + offset] as usize;
                *next += offset + 1;
                self.answers.busy[target].set(true);
                stack.push((target, 0));
                continue;
            }
            self.compute(vertex);
            self.answers.busy[vertex].set(false);
            stack.pop();
        }
    }

    fn is_settled(self, vertex: usize) -> bool {
        let symbols = self.answers.symbols.len();
        let known = match self.answers.symbols.get(vertex) {
            Some(cell) => cell.get().is_some(),
            None => self.answers.choices[vertex - symbols].get().is_some(),
        };
        known || self.answers.busy[vertex].get()
    }

    /// Fills a cell; a second filling would find the same value and is dropped.
    fn compute(self, vertex: usize) {
        if let Some(cell) = self.answers.symbols.get(vertex) {
            let answer = self.compute_symbol(SymbolId::new(vertex));
            cell.get_or_init(|| answer);
        } else {
            let id = ChoiceId::new(vertex - self.answers.symbols.len());
            let answer = self.compute_choice(id);
            self.answers.choices[id.index()].get_or_init(|| answer);
        }
    }

    pub(crate) fn modules(self) -> Tri {
        self.tree.modules.map_or(Tri::N, |symbol| self.tri(symbol))
    }

    /// `m` is `y` for all but tristates, and for those too while modules are off.
    fn clamp(self, tri: Tri, kind: SymbolType) -> Tri {
        if tri == Tri::M && (kind != SymbolType::Tristate || self.modules() == Tri::N) { Tri::Y } else { tri }
    }

    fn compute_symbol(self, id: SymbolId) -> Answer {
        let symbol = self.tree.get(id);
        if symbol.kind == SymbolType::Unknown {
            return Answer::NOTHING;
        }
        let visible = self.visibility(symbol);
        let mut answer = Answer { visible, written: visible != Tri::N, ..Answer::NOTHING };
        answer.direct = self.clamp(self.eval(symbol.direct_dependency), symbol.kind);
        if symbol.kind.is_logical() {
            self.compute_logical(id, symbol, &mut answer);
        } else {
            self.compute_text(id, symbol, &mut answer);
        }
        answer.written &= symbol.env.is_none() && !symbol.transitional;
        answer
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
        if let Some(symbol) = node.symbol
            && visible == Tri::M
            && self.tree.get(symbol).kind == SymbolType::Tristate
            && let Some(choice) = self.tree.get(symbol).choice
            && self.first_mode(choice).1 == Tri::Y
        {
            return Tri::N;
        }
        visible
    }

    fn compute_logical(self, id: SymbolId, symbol: &Symbol, answer: &mut Answer) {
        if let Some(choice) = symbol.choice
            && answer.visible == Tri::Y
        {
            let selected = self.choice_answer(choice).selection == Some(id);
            answer.value = Computed::Tri(if selected { Tri::Y } else { Tri::N });
            answer.reason = Reason::Choice;
            return;
        }
        // Members of choices are chosen, never selected or implied.
        if symbol.choice.is_none() {
            answer.forced = self.clamp(self.eval(symbol.selected_by), symbol.kind);
        }
        let user = match &self.user.symbols[id.index()] {
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
        answer.value = Computed::Tri(self.clamp(value, symbol.kind));
    }

    /// What defaults and implies give a bool or tristate.
    fn compute_default(self, symbol: &Symbol, answer: &mut Answer) -> Tri {
        let mut value = Tri::N;
        if let Some((index, limit)) = self.active_default(symbol) {
            value = self.eval(symbol.defaults[index].value).min(limit);
            answer.written |= value != Tri::N;
            answer.reason = Reason::Default(index);
        }
        let implied = self.clamp(self.eval(symbol.implied_by), symbol.kind);
        if implied != Tri::N && symbol.choice.is_none() {
            answer.written = true;
            if implied > value {
                answer.reason = Reason::Imply;
            }
            value = value.max(implied).min(answer.direct);
        }
        value
    }

    fn compute_text(self, id: SymbolId, symbol: &Symbol, answer: &mut Answer) {
        match &self.user.symbols[id.index()] {
            Some(UserValue::Text(text)) if answer.visible != Tri::N => {
                answer.value = Computed::Text(text.as_str().into());
                answer.reason = Reason::User;
            }
            _ => {
                if let Some((index, _)) = self.active_default(symbol)
                    && let Expr::Atom(atom) = self.tree.expr(symbol.defaults[index].value)
                {
                    answer.written = true;
                    answer.value = Computed::Text(self.atom_text(atom).into());
                    answer.reason = Reason::Default(index);
                }
            }
        }
        let text = match &answer.value {
            Computed::Text(text) => &**text,
            _ => "",
        };
        if let Some(limited) = self.limit(symbol, text) {
            answer.value = Computed::Text(limited.into());
        }
    }

    /// The value that a range puts in place of one outside of it.
    fn limit(self, symbol: &Symbol, text: &str) -> Option<String> {
        let (low, high) = self.active_range(symbol)?;
        let number = parse_prefix(text, base_of(symbol.kind));
        let limit = if number < low {
            low
        } else if number > high {
            high
        } else {
            return None;
        };
        Some(if symbol.kind == SymbolType::Hex { format!("{limit:#x}") } else { limit.to_string() })
    }

    /// The first default whose condition holds, and how far it holds.
    fn active_default(self, symbol: &Symbol) -> Option<(usize, Tri)> {
        let conditions = symbol.defaults.iter().map(|default| self.eval(default.condition));
        conditions.enumerate().find(|(_, holds)| *holds != Tri::N)
    }

    /// The first range whose condition holds.
    pub(crate) fn active_range(self, symbol: &Symbol) -> Option<(i64, i64)> {
        if !symbol.kind.is_numeric() {
            return None;
        }
        let range = symbol.ranges.iter().find(|range| self.eval(range.condition) != Tri::N)?;
        let number = |atom| {
            let base = match atom {
                Atom::Symbol(other) if self.tree.get(other).kind.is_numeric() => base_of(self.tree.get(other).kind),
                _ => base_of(symbol.kind),
            };
            parse_prefix(self.atom_text(atom), base)
        };
        Some((number(range.low), number(range.high)))
    }

    /// Visibility and mode of a choice, before its members were looked at.
    fn first_mode(self, id: ChoiceId) -> (Tri, Tri) {
        if let Some(known) = self.answers.modes[id.index()].get() {
            return *known;
        }
        let choice = self.tree.choice(id);
        let mut visible = Tri::N;
        for node in &choice.nodes {
            visible = visible.max(self.prompt_visibility(*node));
        }
        let visible = self.clamp(visible, choice.kind);
        let user = self.user.choices[id.index()];
        let user = user.mode.filter(|_| !user.contradictory).map_or(Tri::N, |mode| mode.min(visible));
        // Whoever sees a choice that is not optional has to choose.
        let forced = if choice.optional { Tri::N } else { visible.min(Tri::M) };
        let mode = self.clamp(user.max(forced), choice.kind);
        *self.answers.modes[id.index()].get_or_init(|| (visible, mode))
    }

    fn compute_choice(self, id: ChoiceId) -> ChoiceAnswer {
        let choice = self.tree.choice(id);
        let (visible, mode) = self.first_mode(id);
        if mode != Tri::Y {
            return ChoiceAnswer { visible, mode, selection: None };
        }
        let selection = self.find_selection(id, choice);
        ChoiceAnswer { visible, mode: if selection.is_some() { mode } else { Tri::N }, selection }
    }

    /// The user's member, else the first default, else the first member, of those that are visible.
    fn find_selection(self, id: ChoiceId, choice: &Choice) -> Option<SymbolId> {
        let is_visible = |member: &SymbolId| self.visibility(self.tree.get(*member)) != Tri::N;
        if let Some(selected) = self.user.choices[id.index()].selection.filter(is_visible) {
            return Some(selected);
        }
        let defaults = choice.defaults.iter().filter(|default| self.eval(default.condition) != Tri::N);
        let members = defaults.filter_map(|default| match self.tree.expr(default.value) {
            Expr::Atom(Atom::Symbol(symbol)) if choice.members.contains(&symbol) => Some(symbol),
            _ => None,
        });
        members.chain(choice.members.iter().copied()).find(is_visible)
    }

    /// The value of an expression. Chains are walked in a loop; only real nesting recurses.
    pub(crate) fn eval(self, id: ExprId) -> Tri {
        match self.tree.expr(id) {
            Expr::Atom(atom) => self.atom_tri(atom),
            Expr::Not(inner) => !self.eval(inner),
            Expr::Compare(operator, left, right) => self.compare(operator, left, right),
            Expr::And(..) => {
                let (mut value, mut at) = (Tri::Y, id);
                while let Expr::And(left, right) = self.tree.expr(at) {
                    value = value.min(self.eval(right));
                    if value == Tri::N {
                        return value;
                    }
                    at = left;
                }
                value.min(self.eval(at))
            }
            Expr::Or(..) => {
                let (mut value, mut at) = (Tri::N, id);
                while let Expr::Or(left, right) = self.tree.expr(at) {
                    value = value.max(self.eval(right));
                    if value == Tri::Y {
                        return value;
                    }
                    at = left;
                }
                value.max(self.eval(at))
            }
        }
    }

    fn atom_tri(self, atom: Atom) -> Tri {
        match atom {
            Atom::Tri(tri) => tri,
            Atom::Text(_) => Tri::N,
            Atom::Symbol(symbol) => self.tri(symbol),
            Atom::Choice(choice) => match self.answers.choices[choice.index()].get() {
                Some(answer) => answer.mode,
                None => self.first_mode(choice).1,
            },
        }
    }

    pub(crate) fn atom_text(self, atom: Atom) -> &'a str {
        match atom {
            Atom::Text(text) => self.tree.text(text),
            Atom::Symbol(symbol) => self.text(symbol),
            Atom::Tri(_) | Atom::Choice(_) => self.atom_tri(atom).as_str(),
        }
    }

    fn compare(self, operator: Compare, left: Atom, right: Atom) -> Tri {
        let (left_text, right_text) = (self.atom_text(left), self.atom_text(right));
        let (left_kind, right_kind) = (self.atom_kind(left), self.atom_kind(right));
        let order = if left_kind == SymbolType::String && right_kind == SymbolType::String {
            left_text.cmp(right_text)
        } else {
            match (parse_operand(left_text, left_kind), parse_operand(right_text, right_kind)) {
                (Some(left), Some(right)) => left.order(right),
                _ => left_text.cmp(right_text),
            }
        };
        if operator.holds(order) { Tri::Y } else { Tri::N }
    }

    fn atom_kind(self, atom: Atom) -> SymbolType {
        match atom {
            Atom::Tri(_) => SymbolType::Tristate,
            Atom::Text(_) => SymbolType::Unknown,
            Atom::Symbol(symbol) => self.tree.get(symbol).kind,
            Atom::Choice(choice) => self.tree.choice(choice).kind,
        }
    }
}

const fn base_of(kind: SymbolType) -> u32 {
    if matches!(kind, SymbolType::Hex) { 16 } else { 10 }
}

/// A side of a comparison that reads as a number.
#[derive(Clone, Copy)]
enum Operand {
    Signed(i64),
    Unsigned(u64),
}

impl Operand {
    /// One unsigned side makes the comparison unsigned, as in C.
    fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Signed(a), Self::Signed(b)) => a.cmp(&b),
            _ => self.bits().cmp(&other.bits()),
        }
    }

    fn bits(self) -> u64 {
        match self {
            Self::Signed(value) => value.cast_unsigned(),
            Self::Unsigned(value) => value,
        }
    }
}

fn parse_operand(text: &str, kind: SymbolType) -> Option<Operand> {
    match kind {
        SymbolType::Bool | SymbolType::Tristate => Some(Operand::Signed(match text {
            "n" => 0,
            "m" => 1,
            "y" => 2,
            _ => -1,
        })),
        SymbolType::Int => parse_whole(text, 10).and_then(|number| i64::try_from(number).ok()).map(Operand::Signed),
        SymbolType::Hex => {
            let number = parse_whole(text, 16)?;
            // `strtoull` wraps negative numbers around.
            let bits = u64::try_from(number).ok().or_else(|| i64::try_from(number).ok().map(i64::cast_unsigned))?;
            Some(Operand::Unsigned(bits))
        }
        SymbolType::String | SymbolType::Unknown => {
            let digits = text.trim_start_matches(['-', '+']);
            let base = match digits.as_bytes() {
                [b'0', b'x' | b'X', ..] => 16,
                [b'0', _, ..] => 8,
                _ => 10,
            };
            parse_whole(text, base).and_then(|number| i64::try_from(number).ok()).map(Operand::Signed)
        }
    }
}

/// The number that a whole text is, read as `strtoll` reads it.
fn parse_whole(text: &str, base: u32) -> Option<i128> {
    let (number, rest) = split_number(text, base)?;
    rest.is_empty().then_some(number)
}

/// The number at the start of a text, 0 when there is none, at most what 64 bits hold.
fn parse_prefix(text: &str, base: u32) -> i64 {
    let number = split_number(text, base).map_or(0, |(number, _)| number);
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

fn split_number(text: &str, base: u32) -> Option<(i128, &str)> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) if base == 16 && rest.starts_with(|c: char| c.is_ascii_hexdigit()) => rest,
        _ => digits,
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let number = i128::from_str_radix(&digits[..end], base).unwrap_or(i128::MAX);
    Some((if negative { -number } else { number }, &digits[end..]))
}

#[cfg(test)]
mod tests {
    use super::{parse_prefix, parse_whole};

    #[test]
    fn numbers_read_as_c_reads_them() {
        assert_eq!(parse_whole("0x1f", 16), Some(31));
        assert_eq!(parse_whole("1f", 10), None);
        assert_eq!(parse_whole("-5", 10), Some(-5));
        assert_eq!(parse_whole("", 10), None);
        assert_eq!(parse_prefix("12abc", 10), 12);
        assert_eq!(parse_prefix("", 10), 0);
        assert_eq!(parse_prefix("99999999999999999999", 10), i64::MAX);
        assert_eq!(parse_prefix("0x", 16), 0);
    }
}
